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
 * Puts the handler in front of SIGSEGV and SIGBUS, or back there if something
 * replaced it behind our back; what was there becomes the program's action.
 *
 * @return 0 or -errno.
 */
int hca_trap_sig_install(hca_trap_sig_fn handler);

/* A fault caused by an instruction, not a signal that somebody sent. */
static inline int hca_trap_sig_is_fault(const siginfo_t *info)
{
    return info->si_code > 0;
}

/* Does with the signal what the kernel would have done, had only the program's
 * action been installed. Called from the handler; may not return. */
void hca_trap_sig_chain(int sig, siginfo_t *info, ucontext_t *uc);

#endif
