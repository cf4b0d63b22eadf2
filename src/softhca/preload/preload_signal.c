/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Exports libc's functions for handlers and masks of signals. They keep the
 * device's handler for doorbell faults installed and unblocked (hca_trap.h),
 * and hide the handler of preload_end.c. sigset(), sighold(), sigblock() and
 * system calls of the program bypass them.
 */
#define _GNU_SOURCE
#include "preload.h"

static int preload_sigaction(int sig, const struct sigaction *act,
                             struct sigaction *old)
{
    struct sigaction own;
    int ret;

    if (act != NULL) {
        own            = *act; /* old may be the same memory */
        own.sa_handler = preload_end_put(sig, act->sa_handler);
        act            = &own;
    }
    ret = hca_trap_sigaction(sig, act, old);
    if ((ret == 0) && (old != NULL)) {
        old->sa_handler = preload_end_get(old->sa_handler);
    }
    return ret;
}

PRELOAD_EXPORT int sigaction(int sig, const struct sigaction *act,
                             struct sigaction *old)
{
    return preload_sigaction(sig, act, old);
}

int __sigaction(int sig, const struct sigaction *act, struct sigaction *old);

PRELOAD_EXPORT int __sigaction(int sig, const struct sigaction *act,
                               struct sigaction *old)
{
    return preload_sigaction(sig, act, old);
}

static sighandler_t preload_signal(int sig, sighandler_t handler)
{
    return preload_end_get(hca_trap_signal(sig, preload_end_put(sig, handler)));
}

static sighandler_t preload_sysv_signal(int sig, sighandler_t handler)
{
    return preload_end_get(
        hca_trap_sysv_signal(sig, preload_end_put(sig, handler)));
}

PRELOAD_EXPORT sighandler_t signal(int sig, sighandler_t handler)
{
    return preload_signal(sig, handler);
}

sighandler_t bsd_signal(int sig, sighandler_t handler);

PRELOAD_EXPORT sighandler_t bsd_signal(int sig, sighandler_t handler)
{
    return preload_signal(sig, handler);
}

PRELOAD_EXPORT sighandler_t ssignal(int sig, sighandler_t handler)
{
    return preload_signal(sig, handler);
}

PRELOAD_EXPORT sighandler_t sysv_signal(int sig, sighandler_t handler)
{
    return preload_sysv_signal(sig, handler);
}

/* signal() of programs built for strict ISO C or X/Open. */
PRELOAD_EXPORT sighandler_t __sysv_signal(int sig, sighandler_t handler)
{
    return preload_sysv_signal(sig, handler);
}

PRELOAD_EXPORT int sigprocmask(int how, const sigset_t *set, sigset_t *old)
{
    return hca_trap_sigprocmask(how, set, old);
}

PRELOAD_EXPORT int pthread_sigmask(int how, const sigset_t *set, sigset_t *old)
{
    return hca_trap_pthread_sigmask(how, set, old);
}

/* --- waiting under a mask ----------------------------------------------- */

PRELOAD_EXPORT int sigsuspend(const sigset_t *mask)
{
    sigset_t own;

    return hca_sys()->sigsuspend(hca_trap_wait_mask(mask, &own));
}

PRELOAD_EXPORT int ppoll(struct pollfd *fds, nfds_t count,
                         const struct timespec *timeout, const sigset_t *mask)
{
    sigset_t own;

    return hca_sys()->ppoll(fds, count, timeout,
                            hca_trap_wait_mask(mask, &own));
}

int __ppoll_chk(struct pollfd *fds, nfds_t count,
                const struct timespec *timeout, const sigset_t *mask,
                size_t size);

/* ppoll() of programs built with _FORTIFY_SOURCE. */
PRELOAD_EXPORT int __ppoll_chk(struct pollfd *fds, nfds_t count,
                               const struct timespec *timeout,
                               const sigset_t *mask, size_t size)
{
    if (size / sizeof(*fds) < count) {
        abort();
    }
    return ppoll(fds, count, timeout, mask);
}

PRELOAD_EXPORT int pselect(int count, fd_set *in, fd_set *out, fd_set *except,
                           const struct timespec *timeout, const sigset_t *mask)
{
    sigset_t own;

    return hca_sys()->pselect(count, in, out, except, timeout,
                              hca_trap_wait_mask(mask, &own));
}

PRELOAD_EXPORT int epoll_pwait(int fd, struct epoll_event *events, int max,
                               int timeout, const sigset_t *mask)
{
    sigset_t own;

    return hca_sys()->epoll_pwait(fd, events, max, timeout,
                                  hca_trap_wait_mask(mask, &own));
}

#if __GLIBC_PREREQ(2, 35)
PRELOAD_EXPORT int epoll_pwait2(int fd, struct epoll_event *events, int max,
                                const struct timespec *timeout,
                                const sigset_t *mask)
{
    sigset_t own;

    return hca_sys()->epoll_pwait2(fd, events, max, timeout,
                                   hca_trap_wait_mask(mask, &own));
}
#endif
