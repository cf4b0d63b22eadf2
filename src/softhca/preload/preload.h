/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The outer shell: functions of libc and libibverbs that this library defines
 * in their place, because it is preloaded. A process that never looks for RDMA
 * devices pays one comparison for each call; the first look attaches it.
 *
 * preload.c has what the others share, and the library's start and end;
 * preload_path.c, preload_fd.c, preload_netlink.c, preload_signal.c, preload_end.c
 * and preload_verbs.c the rest.
 *
 * preload/ is called by the program, who takes it for libc. It knows which path
 * or descriptor is a device's and hands that on to dispatch/; what an ioctl
 * means it does not know. The files of sysfs are its own (hca_sysfs.h).
 */
#ifndef PRELOAD_H
#define PRELOAD_H

#include "softhca/doorbell/hca_trap.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* A function that takes the place of another library's. */
#define PRELOAD_EXPORT __attribute__((visibility("default")))

/* What is called of libc behind the functions defined here. */
#define PRELOAD_LIBC(_X) \
    _X(openat) _X(access) _X(faccessat) _X(stat) _X(lstat) \
    _X(fstatat) _X(statx) _X(opendir) _X(scandir) _X(fopen) _X(readlink) \
    _X(realpath) _X(socket) _X(ioctl) _X(close) _X(close_range) \
    _X(closefrom) _X(dup) _X(dup2) _X(dup3) _X(fcntl) _X(recvmsg) \
    _X(recvmmsg) _X(sendmsg) _X(fstat) _X(_exit)

#define PRELOAD_LIBC_MEMBER(_name) __typeof__(_name) *_name;

struct preload_libc {
    PRELOAD_LIBC(PRELOAD_LIBC_MEMBER)
};

/* The real functions. Looked up when the library starts; before that (another
 * library's constructor) by the first caller. */
const struct preload_libc *preload_libc(void);

/* Where a path leads: itself, or if it is one of /sys/class/infiniband* or
 * /dev/infiniband, its counterpart in this process' run-time directory, in a
 * buffer of this thread that the next call overwrites.
 * @return NULL with errno = ENOENT if there are no devices: attaching failed
 *         (logged) or is over. */
const char *preload_path(const char *path);

/* N if path is that of the device node uverbsN; else -1. */
int preload_minor(const char *path);

/* Makes fd, opened on the counterpart of path, a device if path is a device
 * node. @return fd, or -1 with errno set and fd closed. */
int preload_opened(const char *path, int fd);

/* Makes fd, of that status, a device if another process has opened it as one. */
void preload_fd_import(int fd, const struct stat *st);

/* fd is a device from now on. */
void preload_fd_opened(int fd);

/* Whether fd, which was opened as a device, still is one: a program may close
 * it by a system call of its own, and the number come back as another file's.
 * Such a number is forgotten. One system call if it was a device. */
bool preload_fd_is_device(int fd);

/* False in a child of vfork(), which runs in its parent's memory and ran no
 * pthread_atfork() handler. */
bool preload_is_own_process(void);

/* When the library starts. */
void preload_fd_init(void);

/* Under valgrind, from the first look at the devices on: see preload_end.c. */
void preload_end_install(void);

/* What the kernel gets in place of the program's handler, and back. */
hca_trap_sighandler preload_end_put(int sig, hca_trap_sighandler handler);
hca_trap_sighandler preload_end_get(hca_trap_sighandler handler);

#endif
