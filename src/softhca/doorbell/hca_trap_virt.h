/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The program's own actions for SIGSEGV and SIGBUS, kept virtual while ours
 * are installed, and the names of the two in masks: where the program blocks
 * one, the kernel is told to block a signal that stands for it. Called in any
 * thread and context. Internal to hca_trap_sig.
 */
#ifndef HCA_TRAP_VIRT_H
#define HCA_TRAP_VIRT_H

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>

#define HCA_TRAP_NUM_VIRTS 2

/* More than the threads that can be in the middle of one sigaction() call. */
#define HCA_TRAP_VIRT_SLOTS 64

struct hca_trap_virt {
    int sig;
    int marker; /* stands for sig in kernel masks */
    atomic_uint next;
    atomic_uint current;
    struct sigaction slots[HCA_TRAP_VIRT_SLOTS];
};

extern struct hca_trap_virt hca_trap_virts[HCA_TRAP_NUM_VIRTS];

#define HCA_TRAP_VIRT_END (hca_trap_virts + HCA_TRAP_NUM_VIRTS)

static inline bool hca_trap_is_handler(const struct sigaction *act)
{
    return (act->sa_handler != SIG_DFL) && (act->sa_handler != SIG_IGN);
}

/* @return NULL for the signals that are not ours. */
struct hca_trap_virt *hca_trap_virt_find(int sig);

/* Reads the program's action. @return the number under which it was
 * published. */
unsigned hca_trap_virt_get(struct hca_trap_virt *v, struct sigaction *act);

/* Replaces the program's action.
 * @param oldact  receives the previous one, if not NULL */
void hca_trap_virt_put(struct hca_trap_virt *v, const struct sigaction *act,
                       struct sigaction *oldact);

/* Reads the action for one signal about to be delivered. SA_RESETHAND resets it
 * in the same step. */
void hca_trap_virt_take(struct hca_trap_virt *v, struct sigaction *act);

/* Turns the program's mask into the kernel's. Only single words are touched:
 * the mask in a signal frame is shorter than sigset_t. */
void hca_trap_mask_to_kernel(sigset_t *mask);

/* Turns the kernel's mask into the program's. A signal that is really blocked,
 * since before we were loaded, stays in it. */
void hca_trap_mask_to_program(sigset_t *mask);

#endif
