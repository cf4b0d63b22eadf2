/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The end of a process by a signal that it does not handle. valgrind then looks
 * for leaks without a further instruction of the program, and would read all of
 * the segment: 4 GiB of holes, which take memory as they are read. So under
 * valgrind, and there only, this library handles signals that the program does
 * not. The handler hides the segment and does what the signal does; the program
 * does not see it. SIGSEGV and SIGBUS are the trap's (hca_trap.h), which calls
 * the same function.
 */
#define _GNU_SOURCE
#include "preload.h"
#include "softhca/base/hca_valgrind.h"
#include "softhca/doorbell/hca_trap.h"
#include "softhca/fabric/hca_fabric.h"

#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/syscall.h>

static atomic_bool preload_end_on;

/* Returns true for signals that end a process, except SIGSEGV and SIGBUS. */
static bool preload_end_is(int sig)
{
    static const uint8_t signals[] = {
        SIGHUP,  SIGINT,  SIGQUIT, SIGABRT, SIGFPE,  SIGILL,  SIGUSR1,
        SIGUSR2, SIGPIPE, SIGALRM, SIGTERM, SIGXCPU, SIGXFSZ,
    };

    return atomic_load(&preload_end_on) &&
           (memchr(signals, sig, sizeof(signals)) != NULL);
}

static void preload_end(int sig)
{
    struct sigaction act = {.sa_handler = SIG_DFL};
    sigset_t set;

    hca_fabric_hide();
    sigemptyset(&set);
    sigaddset(&set, sig);
    hca_trap_sigaction(sig, &act, NULL);
    hca_trap_pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), sig);
}

hca_trap_sighandler preload_end_put(int sig, hca_trap_sighandler handler)
{
    return ((handler == SIG_DFL) && preload_end_is(sig)) ? preload_end :
                                                           handler;
}

hca_trap_sighandler preload_end_get(hca_trap_sighandler handler)
{
    return (handler == preload_end) ? SIG_DFL : handler;
}

/* Replaces each default action that was inherited or set before; those set
 * later pass through preload_end_put(). */
void preload_end_install(void)
{
    struct sigaction act;

    if (!hca_valgrind_active() || atomic_exchange(&preload_end_on, true)) {
        return;
    }
    hca_trap_at_end(hca_fabric_hide);
    for (int sig = 1; sig < SIGRTMIN; sig++) {
        if (preload_end_is(sig) && (hca_trap_sigaction(sig, NULL, &act) == 0) &&
            (act.sa_handler == SIG_DFL)) {
            act.sa_handler = preload_end;
            hca_trap_sigaction(sig, &act, NULL);
        }
    }
}
