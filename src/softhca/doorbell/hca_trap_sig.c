/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Installs our handler in front of the program's, delivers signals that are not
 * ours, and replaces libc's functions for signals. Called in any thread and
 * context, also by the handler of hca_trap. Specification: signal(7),
 * sigaction(2), Linux force_sig_info() for faults that are ignored or blocked.
 */
#define _GNU_SOURCE
#include "hca_trap_sig.h"
#include "hca_trap.h"
#include "hca_trap_virt.h"
#include "softhca/base/hca_sys.h"

#include <errno.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

static _Atomic(hca_trap_sig_fn) installed;
static void (*_Atomic at_end)(void); /* hca_trap_at_end() */

/* Installs our handler. SA_ONSTACK and SA_RESTART are as in the program's
 * action, as ours calls its handler; if it has no handler, both are set.
 * SA_NODEFER: the device, called in our handler, may fault in a guarded
 * copy. */
static int action_install(const struct hca_trap_virt *v,
                          const struct sigaction *act)
{
    const int follow     = SA_ONSTACK | SA_RESTART;
    struct sigaction own = {
        .sa_sigaction = atomic_load(&installed),
        .sa_flags     = SA_SIGINFO | SA_NODEFER |
                    (hca_trap_is_handler(act) ? act->sa_flags & follow :
                                                follow),
    };

    return hca_sys()->sigaction(v->sig, &own, NULL) ? -errno : 0;
}

/* Runs when the program unblocks a signal that was sent while blocked. */
static void marker_handler(int marker, siginfo_t *info, void *context)
{
    struct hca_trap_virt *v;
    int saved_errno = errno;

    for (v = hca_trap_virts; v < HCA_TRAP_VIRT_END; ++v) {
        if (v->marker == marker) {
            info->si_signo = v->sig;
            hca_trap_sig_chain(v->sig, info, context);
        }
    }
    errno = saved_errno;
}

static int marker_install(int marker)
{
    struct sigaction own = {
        .sa_sigaction = marker_handler,
        .sa_flags     = SA_SIGINFO | SA_ONSTACK | SA_RESTART,
    };
    struct sigaction old;

    if (hca_sys()->sigaction(marker, NULL, &old) != 0) {
        return -errno;
    }

    if (old.sa_handler != SIG_DFL) {
        return 0; /* ours, or one that the program uses */
    }
    return hca_sys()->sigaction(marker, &own, NULL) ? -errno : 0;
}

static int virt_install(struct hca_trap_virt *v, hca_trap_sig_fn handler)
{
    struct sigaction old;
    int ret;

    if (hca_sys()->sigaction(v->sig, NULL, &old) != 0) {
        return -errno;
    }

    if ((old.sa_flags & SA_SIGINFO) && (old.sa_sigaction == handler)) {
        return 0;
    }

    hca_trap_mask_to_program(&old.sa_mask);
    hca_trap_virt_put(v, &old, NULL);
    atomic_store(&installed, handler);
    ret = action_install(v, &old);
    return ret ? ret : marker_install(v->marker);
}

int hca_trap_sig_install(hca_trap_sig_fn handler)
{
    struct hca_trap_virt *v;
    sigset_t mask;
    int ret;

    for (v = hca_trap_virts; v < HCA_TRAP_VIRT_END; ++v) {
        ret = virt_install(v, handler);
        if (ret < 0) {
            return ret;
        }
    }

    /* signals blocked before: inherited by exec, or set before the load */
    hca_sys()->pthread_sigmask(SIG_BLOCK, NULL, &mask);
    hca_trap_mask_to_program(&mask);
    hca_trap_mask_to_kernel(&mask);
    hca_sys()->pthread_sigmask(SIG_SETMASK, &mask, NULL);
    return 0;
}

/* Calls the program's handler under its mask. After our return the kernel
 * restores the mask from the frame, which the handler may have changed. */
static void chain_call(const struct sigaction *act, int sig, siginfo_t *info,
                       ucontext_t *uc)
{
    sigset_t mask = act->sa_mask;

    if (!(act->sa_flags & SA_NODEFER)) {
        sigaddset(&mask, sig);
    }
    hca_trap_mask_to_kernel(&mask);
    hca_sys()->pthread_sigmask(SIG_BLOCK, &mask, NULL);
    if (act->sa_flags & SA_SIGINFO) {
        act->sa_sigaction(sig, info, uc);
    } else {
        act->sa_handler(sig);
    }

    if (sigismember(&uc->uc_sigmask, sig)) {
        hca_trap_mask_to_kernel(&uc->uc_sigmask);
    }
}

static void signal_self(int sig, siginfo_t *info)
{
    syscall(SYS_rt_tgsigqueueinfo, getpid(), syscall(SYS_gettid), sig, info);
}

/* Ends the process by the default action, after our return. A fault repeats,
 * and dumps core where it happened. A signal that was sent is sent again, and
 * blocked until the return. */
static void chain_default(int sig, siginfo_t *info)
{
    struct sigaction act = {.sa_handler = SIG_DFL};
    void (*end)(void)    = atomic_load(&at_end);
    sigset_t mask;

    if (end != NULL) {
        end();
    }
    hca_sys()->sigaction(sig, &act, NULL);
    if (!hca_trap_sig_is_fault(info)) {
        sigemptyset(&mask);
        sigaddset(&mask, sig);
        hca_sys()->pthread_sigmask(SIG_BLOCK, &mask, NULL);
        signal_self(sig, info);
    }
}

void hca_trap_sig_chain(int sig, siginfo_t *info, ucontext_t *uc)
{
    struct hca_trap_virt *v = hca_trap_virt_find(sig);
    int fault               = hca_trap_sig_is_fault(info);
    int blocked             = sigismember(&uc->uc_sigmask, v->marker);
    struct sigaction act;

    if (blocked && !fault) {
        signal_self(v->marker, info); /* pending, as the marker is blocked */
        return;
    }

    hca_trap_virt_take(v, &act);
    if (hca_trap_is_handler(&act) && !blocked) {
        chain_call(&act, sig, info, uc);
    } else if (fault || (act.sa_handler == SIG_DFL)) {
        chain_default(sig, info);
    }
}

void hca_trap_at_end(void (*fn)(void))
{
    atomic_store(&at_end, fn);
}

static int virt_sigaction(struct hca_trap_virt *v, const struct sigaction *act,
                          struct sigaction *oldact)
{
    struct sigaction own;
    int ret;

    if (act == NULL) {
        if (oldact != NULL) {
            hca_trap_virt_get(v, oldact);
        }
        return 0;
    }

    own = *act; /* oldact may be the same memory */
    hca_trap_virt_put(v, &own, oldact);
    ret = action_install(v, &own);
    if (ret < 0) {
        errno = -ret;
        return -1;
    }
    return 0;
}

int hca_trap_sigaction(int sig, const struct sigaction *act,
                       struct sigaction *oldact)
{
    struct hca_trap_virt *v = hca_trap_virt_find(sig);
    struct sigaction own;

    if ((v != NULL) && (atomic_load(&installed) != NULL)) {
        return virt_sigaction(v, act, oldact);
    }

    if (act != NULL) {
        own = *act;
        hca_trap_mask_to_kernel(&own.sa_mask);
        act = &own;
    }

    if (hca_sys()->sigaction(sig, act, oldact) != 0) {
        return -1;
    }

    if (oldact != NULL) {
        hca_trap_mask_to_program(&oldact->sa_mask);
    }
    return 0;
}

static hca_trap_sighandler signal_set(int sig, hca_trap_sighandler handler,
                                      int flags)
{
    struct sigaction act = {.sa_handler = handler, .sa_flags = flags};
    struct sigaction old;

    if (handler == SIG_ERR) {
        errno = EINVAL;
        return SIG_ERR;
    }

    return hca_trap_sigaction(sig, &act, &old) ? SIG_ERR : old.sa_handler;
}

/* Leaves other signals to libc, which takes siginterrupt() into account. */
hca_trap_sighandler hca_trap_signal(int sig, hca_trap_sighandler handler)
{
    if (hca_trap_virt_find(sig) == NULL) {
        return hca_sys()->signal(sig, handler);
    }
    return signal_set(sig, handler, SA_RESTART);
}

hca_trap_sighandler hca_trap_sysv_signal(int sig, hca_trap_sighandler handler)
{
    return signal_set(sig, handler, SA_RESETHAND | SA_NODEFER);
}

int hca_trap_pthread_sigmask(int how, const sigset_t *set, sigset_t *oldset)
{
    sigset_t own;
    int ret;

    if (set != NULL) {
        own = *set; /* oldset may be the same memory */
        hca_trap_mask_to_kernel(&own);
    }

    ret = hca_sys()->pthread_sigmask(how, (set != NULL) ? &own : NULL, oldset);
    if ((ret == 0) && (oldset != NULL)) {
        hca_trap_mask_to_program(oldset);
    }
    return ret;
}

const sigset_t *hca_trap_wait_mask(const sigset_t *set, sigset_t *own)
{
    if (set == NULL) {
        return NULL;
    }
    *own = *set;
    hca_trap_mask_to_kernel(own);
    return own;
}

int hca_trap_sigprocmask(int how, const sigset_t *set, sigset_t *oldset)
{
    int ret = hca_trap_pthread_sigmask(how, set, oldset);

    if (ret != 0) {
        errno = ret;
        return -1;
    }
    return 0;
}
