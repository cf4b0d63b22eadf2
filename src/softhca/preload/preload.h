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

#include "softhca/base/hca_sys.h"
#include "softhca/doorbell/hca_trap.h"

#include <stdbool.h>

/* A function that takes the place of another library's. */
#define PRELOAD_EXPORT __attribute__((visibility("default")))

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
