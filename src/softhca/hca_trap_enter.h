/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The way from a storing instruction into the device without a signal frame.
 * Internal to hca_trap; hca_patch builds code that calls hca_trap_enter but
 * gets its address at init.
 */
#ifndef HCA_TRAP_ENTER_H
#define HCA_TRAP_ENTER_H

#include "hca_insn.h"
#include "hca_trap.h"

#include <stdatomic.h>
#include <stdint.h>

/* One trapped range. A cache line each; assembly reads start and len. */
struct hca_trap_region {
    _Alignas(64) _Atomic(uintptr_t) start;
    atomic_size_t                   len;  /* 0: free */
    atomic_uint                     seq;  /* odd while it changes */
    _Atomic(hca_trap_fn)            fn;
    _Atomic(void*)                  arg;
};
static_assert(offsetof(struct hca_trap_region, len) == 8, "for assembly");
static_assert(sizeof(struct hca_trap_region) == 64, "for assembly");

/* What a lookup yields: a copy, as the range may go at any time. */
struct hca_trap_hit {
    uintptr_t   start;
    size_t      len;
    hca_trap_fn fn;
    void       *arg;
};

/**
 * Find the range that holds an address. Lock-free, from any context.
 *
 * @return false if there is none; hit is unchanged then.
 */
bool hca_trap_find(uintptr_t addr, struct hca_trap_hit *hit);

/*
 * Assembly. In: rax = address that the instruction stores to; the stack, from
 * rsp upwards: return address, struct hca_insn_src, rflags, rax, address of
 * the next instruction, then the red zone (128 bytes) of the interrupted code.
 * Out: rax = 0 if the device took the store, 1 if no range holds the address.
 * Everything else is preserved except the arithmetic flags; DF is clear.
 */
extern const char hca_trap_enter[] __attribute__((visibility("hidden")));

/* Assembly: calls hca_trap_enter with the stack prepared as above except for
 * the return address, then goes on at the next instruction. */
extern const char hca_trap_bounce[] __attribute__((visibility("hidden")));

#endif
