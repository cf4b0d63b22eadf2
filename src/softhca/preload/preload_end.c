/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Under valgrind, ends the process by a signal that the program leaves at its
 * default action. valgrind then searches for leaks, without calling any code of
 * the program, and would read the whole segment: 4 GiB, mostly holes, which get
 * memory when they are read. So this library installs a handler for such
 * signals. It hides the segment, then raises the signal with the default
 * action. sigaction() does not show it to the program. hca_trap.h handles
 * SIGSEGV and SIGBUS, and calls hca_fabric_hide() as well.
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

/* Returns true if preload_end() replaces the default action of @sig, which ends
 * the process. Not SIGSEGV and SIGBUS: hca_trap.h handles these. Nor real-time
 * signals, of which valgrind uses some. */
static bool preload_end_handles(int sig)
{
    static const uint8_t signals[] = {
        SIGHUP,  SIGINT,    SIGQUIT, SIGTRAP, SIGABRT, SIGFPE,    SIGILL,
        SIGUSR1, SIGUSR2,   SIGPIPE, SIGALRM, SIGTERM, SIGSTKFLT, SIGXCPU,
        SIGXFSZ, SIGVTALRM, SIGPROF, SIGIO,   SIGPWR,  SIGSYS,
    };

    return atomic_load(&preload_end_on) &&
           (memchr(signals, sig, sizeof(signals)) != NULL);
}

/* Hides the segment, and ends the process by the default action of @sig. */
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
    return ((handler == SIG_DFL) && preload_end_handles(sig)) ? preload_end :
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
        if (preload_end_handles(sig) &&
            (hca_trap_sigaction(sig, NULL, &act) == 0) &&
            (act.sa_handler == SIG_DFL)) {
            act.sa_handler = preload_end;
            hca_trap_sigaction(sig, &act, NULL);
        }
    }
}
