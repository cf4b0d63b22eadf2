/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Operations on descriptors: closing, duplicating, receiving from a socket.
 * Called like preload.c.
 */
#define _GNU_SOURCE
#undef _FORTIFY_SOURCE /* no inline variants of functions defined here */
#include "preload.h"
#include "softhca/base/hca_fd.h"
#include "softhca/base/hca_log.h"
#include "softhca/dispatch/dispatch.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

static _Atomic pid_t preload_pid;
static _Atomic unsigned preload_top_fd; /* no device is open above it */

static void preload_set_pid(void)
{
    atomic_store(&preload_pid, getpid());
}

void preload_fd_init(void)
{
    preload_set_pid();
    pthread_atfork(NULL, NULL, preload_set_pid);
}

bool preload_is_own_process(void)
{
    return atomic_load(&preload_pid) == getpid();
}

/* Returns true for a device that this process may close. A child of vfork()
 * closes descriptors before exec(), among them devices of its parent. */
static bool preload_is_device(int fd)
{
    return dispatch_is_open(fd) && preload_is_own_process();
}

bool preload_fd_is_device(int fd)
{
    int err = errno;
    struct stat st;

    if (!dispatch_is_open(fd)) {
        return false;
    }
    if ((hca_sys()->fstat(fd, &st) == 0) && dispatch_has_file(fd, &st)) {
        return true;
    }
    if (preload_is_own_process()) {
        dispatch_close(fd);
    }
    errno = err;
    return false;
}

void preload_fd_adopt(int fd, const struct stat *st)
{
    int err = errno;

    if (dispatch_may_adopt(fd, st) && preload_is_own_process()) {
        if (dispatch_adopt(fd, atomic_load(&preload_top_fd))) {
            preload_fd_opened(fd);
        } else {
            hca_warn("descriptor %d: another process has opened this device: "
                     "open it in this process",
                     fd);
        }
    }
    errno = err;
}

void preload_fd_opened(int fd)
{
    unsigned top = atomic_load(&preload_top_fd);

    while ((top < (unsigned)fd) &&
           !atomic_compare_exchange_weak(&preload_top_fd, &top, fd)) {
    }
}

PRELOAD_EXPORT int close(int fd)
{
    if (hca_fd_is_own(fd)) { /* the program has no such descriptor */
        errno = EBADF;
        return -1;
    }
    if (preload_is_device(fd)) {
        dispatch_close(fd);
    }
    return hca_sys()->close(fd);
}

static void preload_closing(unsigned first, unsigned last)
{
    unsigned top = atomic_load(&preload_top_fd);

    last = (last < top) ? last : top;
    for (unsigned fd = first; fd <= last; fd++) {
        if (preload_is_device(fd)) {
            dispatch_close(fd);
        }
    }
}

/* Closes the range except the device's own descriptors. */
static int preload_close_around(unsigned first, unsigned last, int flags)
{
    unsigned own;
    int ret = 0;

    while ((ret == 0) && hca_fd_next(first, last, &own)) {
        if (own > first) {
            ret = hca_sys()->close_range(first, own - 1, flags);
        }
        if (own == last) {
            return ret;
        }
        first = own + 1;
    }
    return (ret != 0) ? ret : hca_sys()->close_range(first, last, flags);
}

PRELOAD_EXPORT int close_range(unsigned first, unsigned last, int flags)
{
    /* with CLOSE_RANGE_UNSHARE, threads that keep the old table lose them, too:
     * a device belongs to the process */
    if ((flags & ~CLOSE_RANGE_UNSHARE) == 0) {
        preload_closing(first, last);
    }
    return preload_close_around(first, last, flags);
}

PRELOAD_EXPORT void closefrom(int first)
{
    unsigned from = (first < 0) ? 0 : first, own;

    preload_closing(from, UINT_MAX);
    while (hca_fd_next(from, UINT_MAX, &own)) {
        for (; from < own; from++) {
            hca_sys()->close(from);
        }
        from = own + 1;
    }
    hca_sys()->closefrom(from);
}

/* Records that @newfd now refers to the file of @fd. */
static int preload_duplicated(int fd, int newfd)
{
    if ((newfd >= 0) && preload_fd_is_device(fd) && preload_is_own_process() &&
        (dispatch_dup(fd, newfd) == 0)) {
        preload_fd_opened(newfd);
    }
    return newfd;
}

PRELOAD_EXPORT int dup(int fd)
{
    return preload_duplicated(fd, hca_sys()->dup(fd));
}

PRELOAD_EXPORT int dup3(int fd, int newfd, int flags)
{
    bool is_device = (fd != newfd) && preload_is_device(newfd);
    int ret        = hca_sys()->dup3(fd, newfd, flags);

    if (is_device && (ret >= 0)) {
        dispatch_close(newfd);
    }
    if (ret >= 0) {
        hca_fd_unmark(newfd);
    }
    return preload_duplicated(fd, ret);
}

PRELOAD_EXPORT int dup2(int fd, int newfd)
{
    return (fd == newfd) ? hca_sys()->dup2(fd, newfd) : dup3(fd, newfd, 0);
}

/* The argument is none, a number or a pointer: it is passed on as a pointer,
 * which can hold all. */
PRELOAD_EXPORT int fcntl(int fd, int cmd, ...)
{
    va_list ap;
    void *arg;
    int ret;

    va_start(ap, cmd);
    arg = va_arg(ap, void *);
    va_end(ap);
    ret = hca_sys()->fcntl(fd, cmd, arg);
    return ((cmd == F_DUPFD) || (cmd == F_DUPFD_CLOEXEC)) ?
               preload_duplicated(fd, ret) :
               ret;
}

PRELOAD_EXPORT int fcntl64(int fd, int cmd, ...)
{
    va_list ap;
    void *arg;

    va_start(ap, cmd);
    arg = va_arg(ap, void *);
    va_end(ap);
    return fcntl(fd, cmd, arg); /* files are 64-bit on x86-64 */
}

static void preload_received_fds(const struct cmsghdr *cmsg)
{
    int fd;

    for (size_t at = 0; CMSG_LEN(at + sizeof(fd)) <= cmsg->cmsg_len;
         at += sizeof(fd)) {
        memcpy(&fd, CMSG_DATA(cmsg) + at, sizeof(fd));
        if (dispatch_adopt(fd, atomic_load(&preload_top_fd))) {
            preload_fd_opened(fd);
        }
    }
}

/* Handles descriptors that came with a message. A duplicate of a device opened
 * here keeps that open from now on, even if it is not used before the first one
 * is closed. */
static void preload_received(struct msghdr *msg)
{
    struct cmsghdr *cmsg = (msg->msg_controllen == 0) ? NULL :
                                                        CMSG_FIRSTHDR(msg);

    for (; cmsg != NULL; cmsg = CMSG_NXTHDR(msg, cmsg)) {
        if ((cmsg->cmsg_level == SOL_SOCKET) &&
            (cmsg->cmsg_type == SCM_RIGHTS)) {
            preload_received_fds(cmsg);
        }
    }
}

PRELOAD_EXPORT ssize_t recvmsg(int fd, struct msghdr *msg, int flags)
{
    ssize_t ret = hca_sys()->recvmsg(fd, msg, flags);

    if (ret >= 0) {
        preload_received(msg);
    }
    return ret;
}

PRELOAD_EXPORT int recvmmsg(int fd, struct mmsghdr *msgs, unsigned count,
                            int flags, struct timespec *timeout)
{
    int ret = hca_sys()->recvmmsg(fd, msgs, count, flags, timeout);

    for (int i = 0; i < ret; i++) {
        preload_received(&msgs[i].msg_hdr);
    }
    return ret;
}
