/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The ranges of addresses that are doorbells. Internal to hca_trap.
 */
#ifndef HCA_TRAP_TABLE_H
#define HCA_TRAP_TABLE_H

#include "hca_trap.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One trapped range. A cache line each; assembly reads start and len. */
struct hca_trap_region {
    _Alignas(64) _Atomic(uintptr_t) start;
    atomic_size_t len; /* 0: free */
    atomic_uint seq;   /* odd while it changes */
    _Atomic(hca_trap_fn) fn;
    _Atomic(void *) arg;
    _Atomic(struct hca_push *) push;
};
static_assert(offsetof(struct hca_trap_region, len) == 8, "for assembly");
static_assert(sizeof(struct hca_trap_region) == 64, "for assembly");

/* A range as found or to add: a copy, as the range may go at any time */
struct hca_trap_hit {
    uintptr_t start;
    size_t len;
    hca_trap_fn fn;
    void *arg;
    struct hca_push *push;
};

/* The slots, and the end of those ever used. Assembly searches up to there. */
extern struct hca_trap_region hca_trap_regions[];
extern _Atomic(struct hca_trap_region *) hca_trap_regions_end;

/**
 * Finds the range that holds an address. Lock-free, from any context.
 *
 * @return false if there is none; hit is undefined then.
 */
bool hca_trap_table_find(uintptr_t addr, struct hca_trap_hit *hit);

/* Returns true if a range overlaps; another thread may add one right after. */
bool hca_trap_table_overlaps(uintptr_t start, size_t len);

/* @return 0 or -ENOSPC. Overlapping ranges are not detected. */
int hca_trap_table_add(struct hca_trap_hit new);

/* @return 0, or -ENOENT if no range begins at @start. */
int hca_trap_table_del(uintptr_t start);

#endif
