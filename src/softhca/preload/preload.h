/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The outer shell: functions of libc and libibverbs that this library defines
 * in their place, because it is preloaded. A process that never looks for RDMA
 * devices pays a few comparisons for each call; the first look attaches it.
 *
 * preload.c has the shared functions, and the library's start and end;
 * preload_path.c, preload_fd.c, preload_memory.c, preload_netlink.c,
 * preload_signal.c, preload_end.c and preload_verbs.c the rest.
 *
 * preload/ is called by the program, as if it were libc. It knows which path or
 * descriptor is a device's and passes that on to dispatch/; it does not know
 * the meaning of ioctls. The files of sysfs are its own (hca_sysfs.h).
 */
#ifndef PRELOAD_H
#define PRELOAD_H

#include "softhca/base/hca_sys.h"
#include "softhca/doorbell/hca_trap.h"

#include <stdbool.h>

/* A function that replaces another library's. */
#define PRELOAD_EXPORT __attribute__((visibility("default")))

/* Returns the path to use for @path: itself, or for /sys/class/infiniband* and
 * /dev/infiniband its counterpart in this process' run-time directory, in a
 * buffer of this thread that the next call overwrites. Relative paths stay.
 * @return NULL with errno = ENOENT if there are no devices: attaching failed
 *         (logged), or the process has detached; or with ENAMETOOLONG. */
const char *preload_path(const char *path);

/* Returns N if @path is the device node uverbsN; else -1. */
int preload_minor(const char *path);

/* Makes @fd, opened on the counterpart of @path, a device if @path is a device
 * node. @return @fd, also if negative; or -1 with errno set and @fd closed. */
int preload_opened(const char *path, int fd);

/* Makes @fd, of status @st, a device if it is a duplicate of one opened here.
 * Logs if another process has opened it. Keeps errno. */
void preload_fd_adopt(int fd, const struct stat *st);

/* Records that devices may have numbers up to @fd, which dispatch_*() has made
 * one. */
void preload_fd_opened(int fd);

/* Returns true if @fd, which was opened as a device, still is one: a program
 * may close it by a system call of its own, and the number may be another
 * file's now. Forgets such a number. Costs one system call if it was a device;
 * keeps errno. */
bool preload_fd_is_device(int fd);

/* Returns false in a child of vfork(), which runs in its parent's memory and
 * has run no pthread_atfork() handler. */
bool preload_is_own_process(void);

/* Initializes preload_is_own_process() when the library starts. */
void preload_fd_init(void);

/* Handles signals that end the process, if it runs under valgrind: see
 * preload_end.c. Called at each look for devices; only the first has an
 * effect. */
void preload_end_install(void);

/* Translate the program's handler to the one to install, and back. */
hca_trap_sighandler preload_end_put(int sig, hca_trap_sighandler handler);
hca_trap_sighandler preload_end_get(hca_trap_sighandler handler);

#endif
