/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The program's view of the signals that the trap owns. Internal to hca_trap;
 * the functions that stand in for libc's are in hca_trap.h.
 */
#ifndef HCA_TRAP_SIG_H
#define HCA_TRAP_SIG_H

#include <signal.h>
#include <ucontext.h>

typedef void (*hca_trap_sig_fn)(int sig, siginfo_t *info, void *context);

/**
 * Installs @handler for SIGSEGV and SIGBUS, unless it is in place; an action
 * found there becomes the program's. Translates the calling thread's mask.
 *
 * @return 0 or -errno.
 */
int hca_trap_sig_install(hca_trap_sig_fn handler);

/* Returns true for a fault of an instruction, false for a signal that was
 * sent. */
static inline int hca_trap_sig_is_fault(const siginfo_t *info)
{
    return info->si_code > 0;
}

/* Does with @sig, SIGSEGV or SIGBUS, what the kernel would do if only the
 * program's action were installed. Called from the handler. It does not return
 * if the program's handler does not. */
void hca_trap_sig_chain(int sig, siginfo_t *info, ucontext_t *uc);

#endif
