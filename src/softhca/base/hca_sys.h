/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The functions of libc that the preloaded library replaces: the real ones, or
 * those of another preloaded library behind this one. preload/ passes to them
 * all calls that do not concern the device. The device calls them for its own
 * files, so that these never pass through preload/.
 *
 * A call that must not be a cancellation point, or that hooks must not see
 * (UCX's memory hooks), is made by syscall() instead.
 */
#ifndef HCA_SYS_H
#define HCA_SYS_H

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#if __GLIBC_PREREQ(2, 35)
#define HCA_SYS_2_35(_X) _X(epoll_pwait2)
#else
#define HCA_SYS_2_35(_X)
#endif

/* clang-format off */
#define HCA_SYS(_X) \
    _X(openat) _X(access) _X(faccessat) _X(stat) _X(lstat) _X(fstat) \
    _X(fstatat) _X(statx) _X(opendir) _X(scandir) _X(fopen) _X(readlink) \
    _X(realpath) _X(socket) _X(ioctl) _X(close) _X(close_range) \
    _X(closefrom) _X(dup) _X(dup2) _X(dup3) _X(fcntl) _X(recvmsg) \
    _X(recvmmsg) _X(sendmsg) _X(sigaction) _X(signal) _X(pthread_sigmask) \
    _X(sigsuspend) _X(ppoll) _X(pselect) _X(epoll_pwait) \
    HCA_SYS_2_35(_X) _X(_exit) _X(madvise)
/* clang-format on */

#define HCA_SYS_MEMBER(_name) __typeof__(_name) *_name;

struct hca_sys {
    HCA_SYS(HCA_SYS_MEMBER)
};

/* Returns the real functions. The first call looks them up: at load, or earlier
 * if the constructor of another library calls a replaced function. */
const struct hca_sys *hca_sys(void);

#endif
