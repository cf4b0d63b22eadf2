/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The program's own actions for SIGSEGV and SIGBUS, kept here while ours are
 * installed, and the translation of masks: if the program blocks one of the
 * two, the kernel blocks a signal that stands for it. Called in any thread and
 * context. Internal to hca_trap_sig.
 */
#ifndef HCA_TRAP_VIRT_H
#define HCA_TRAP_VIRT_H

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>

#define HCA_TRAP_NUM_VIRTS 2

/* More than the threads that are inside sigaction() at once: the slot of an
 * action is reused after so many others. */
#define HCA_TRAP_VIRT_SLOTS 64

struct hca_trap_virt {
    int sig;
    int marker;          /* stands for sig in kernel masks */
    atomic_uint next;    /* last number given to an action */
    atomic_uint current; /* number of the action in force */
    struct sigaction slots[HCA_TRAP_VIRT_SLOTS];
};

extern struct hca_trap_virt hca_trap_virts[HCA_TRAP_NUM_VIRTS];

#define HCA_TRAP_VIRT_END (hca_trap_virts + HCA_TRAP_NUM_VIRTS)

static inline bool hca_trap_is_handler(const struct sigaction *act)
{
    return (act->sa_handler != SIG_DFL) && (act->sa_handler != SIG_IGN);
}

/* @return NULL for all signals but SIGSEGV and SIGBUS. */
struct hca_trap_virt *hca_trap_virt_find(int sig);

/* Reads the program's action. @return the number under which it was
 * published. */
unsigned hca_trap_virt_get(struct hca_trap_virt *v, struct sigaction *act);

/* Replaces the program's action.
 * @param oldact  receives the previous one, if not NULL */
void hca_trap_virt_put(struct hca_trap_virt *v, const struct sigaction *act,
                       struct sigaction *oldact);

/* Reads the action for one signal about to be delivered, and resets it in the
 * same step if it has SA_RESETHAND. */
void hca_trap_virt_take(struct hca_trap_virt *v, struct sigaction *act);

/* Turns the program's mask into the kernel's. Touches only its first 64 bits:
 * the mask in a signal frame is shorter than sigset_t. */
void hca_trap_mask_to_kernel(sigset_t *mask);

/* Turns the kernel's mask into the program's. SIGSEGV and SIGBUS stay in it if
 * the kernel blocks them, as before the library was loaded. */
void hca_trap_mask_to_program(sigset_t *mask);

#endif
