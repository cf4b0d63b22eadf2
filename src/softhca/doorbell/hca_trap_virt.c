/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The program's actions and masks for our signals: see hca_trap_virt.h. No
 * locks: an action is written to a free slot and then published by its number.
 * So handlers and forked children always find a complete one.
 */
#define _GNU_SOURCE
#include "hca_trap_virt.h"

#include <stddef.h>

struct hca_trap_virt hca_trap_virts[HCA_TRAP_NUM_VIRTS] = {
    {.sig = SIGSEGV, .marker = 60},
    {.sig = SIGBUS, .marker = 61},
};

struct hca_trap_virt *hca_trap_virt_find(int sig)
{
    struct hca_trap_virt *v;

    for (v = hca_trap_virts; v < HCA_TRAP_VIRT_END; ++v) {
        if (v->sig == sig) {
            return v;
        }
    }
    return NULL;
}

unsigned hca_trap_virt_get(struct hca_trap_virt *v, struct sigaction *act)
{
    unsigned current;

    do {
        current = atomic_load_explicit(&v->current, memory_order_acquire);
        *act    = v->slots[current % HCA_TRAP_VIRT_SLOTS];
        atomic_thread_fence(memory_order_acquire);
    } while (current !=
             atomic_load_explicit(&v->current, memory_order_relaxed));
    return current;
}

static unsigned virt_prepare(struct hca_trap_virt *v,
                             const struct sigaction *act)
{
    unsigned number = atomic_fetch_add(&v->next, 1) + 1;

    v->slots[number % HCA_TRAP_VIRT_SLOTS] = *act;
    return number;
}

void hca_trap_virt_put(struct hca_trap_virt *v, const struct sigaction *act,
                       struct sigaction *oldact)
{
    unsigned number = virt_prepare(v, act);

    number = atomic_exchange(&v->current, number);
    if (oldact != NULL) {
        *oldact = v->slots[number % HCA_TRAP_VIRT_SLOTS];
    }
}

void hca_trap_virt_take(struct hca_trap_virt *v, struct sigaction *act)
{
    struct sigaction reset;
    unsigned current;

    do {
        current = hca_trap_virt_get(v, act);
        if (!(act->sa_flags & SA_RESETHAND) || !hca_trap_is_handler(act)) {
            return;
        }
        reset            = *act;
        reset.sa_handler = SIG_DFL;
    } while (!atomic_compare_exchange_strong(&v->current, &current,
                                             virt_prepare(v, &reset)));
}

void hca_trap_mask_to_kernel(sigset_t *mask)
{
    struct hca_trap_virt *v;

    for (v = hca_trap_virts; v < HCA_TRAP_VIRT_END; ++v) {
        if (sigismember(mask, v->sig)) {
            sigdelset(mask, v->sig);
            sigaddset(mask, v->marker);
        } else {
            sigdelset(mask, v->marker);
        }
    }
}

void hca_trap_mask_to_program(sigset_t *mask)
{
    struct hca_trap_virt *v;

    for (v = hca_trap_virts; v < HCA_TRAP_VIRT_END; ++v) {
        if (sigismember(mask, v->marker)) {
            sigdelset(mask, v->marker);
            sigaddset(mask, v->sig);
        }
    }
}
