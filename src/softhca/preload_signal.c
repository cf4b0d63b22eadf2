/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * How programs handle and block signals: the device's handler for the faults
 * of doorbells stays in place and stays reachable, whatever they ask for
 * (hca_trap.h). Here are only the names under which libc offers that.
 */
#define _GNU_SOURCE
#include "preload.h"
#include "hca_trap.h"

#include <signal.h>

PRELOAD_EXPORT int sigaction(int sig, const struct sigaction *act,
                             struct sigaction *old)
{
    return hca_trap_sigaction(sig, act, old);
}

int __sigaction(int sig, const struct sigaction *act, struct sigaction *old);

PRELOAD_EXPORT int __sigaction(int sig, const struct sigaction *act,
                               struct sigaction *old)
{
    return hca_trap_sigaction(sig, act, old);
}

PRELOAD_EXPORT sighandler_t signal(int sig, sighandler_t handler)
{
    return hca_trap_signal(sig, handler);
}

sighandler_t bsd_signal(int sig, sighandler_t handler);

PRELOAD_EXPORT sighandler_t bsd_signal(int sig, sighandler_t handler)
{
    return hca_trap_signal(sig, handler);
}

PRELOAD_EXPORT sighandler_t ssignal(int sig, sighandler_t handler)
{
    return hca_trap_signal(sig, handler);
}

PRELOAD_EXPORT sighandler_t sysv_signal(int sig, sighandler_t handler)
{
    return hca_trap_sysv_signal(sig, handler);
}

/* signal() of programs that are built for strict ISO C or X/Open. */
PRELOAD_EXPORT sighandler_t __sysv_signal(int sig, sighandler_t handler)
{
    return hca_trap_sysv_signal(sig, handler);
}

PRELOAD_EXPORT int sigprocmask(int how, const sigset_t *set, sigset_t *old)
{
    return hca_trap_sigprocmask(how, set, old);
}

PRELOAD_EXPORT int pthread_sigmask(int how, const sigset_t *set, sigset_t *old)
{
    return hca_trap_pthread_sigmask(how, set, old);
}
