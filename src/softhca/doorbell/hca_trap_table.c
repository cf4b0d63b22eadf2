/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The table of doorbell ranges. hca_trap_add() and hca_trap_del() write it in
 * any thread, handlers and trampolines read it. Each slot has a sequence
 * number: a writer claims the slot by making it odd, a reader skips a slot that
 * changed meanwhile. So neither a handler nor a forked child ever waits.
 */
#include "hca_trap_table.h"

#include <errno.h>

#define TABLE_SIZE 8192 /* UAR pages of a process: see uverbs_mmap.c */

__attribute__((
    visibility("hidden"))) struct hca_trap_region hca_trap_regions[TABLE_SIZE];

/* End of the slots ever used. Read by assembly. */
__attribute__((visibility(
    "hidden"))) _Atomic(struct hca_trap_region *) hca_trap_regions_end =
    hca_trap_regions;

static inline bool region_read(struct hca_trap_region *r,
                               struct hca_trap_hit *hit)
{
    unsigned seq = atomic_load_explicit(&r->seq, memory_order_acquire);

    hit->start = atomic_load_explicit(&r->start, memory_order_relaxed);
    hit->len   = atomic_load_explicit(&r->len, memory_order_relaxed);
    hit->fn    = atomic_load_explicit(&r->fn, memory_order_relaxed);
    hit->arg   = atomic_load_explicit(&r->arg, memory_order_relaxed);
    hit->push  = atomic_load_explicit(&r->push, memory_order_relaxed);
    atomic_thread_fence(memory_order_acquire); /* pairs with region_write() */
    return !(seq & 1) &&
           (seq == atomic_load_explicit(&r->seq, memory_order_relaxed));
}

/* Skips slots that are changing: their range is not complete yet, or about to
 * go. */
bool hca_trap_table_find(uintptr_t addr, struct hca_trap_hit *hit)
{
    struct hca_trap_region *end, *r;

    end = atomic_load_explicit(&hca_trap_regions_end, memory_order_acquire);
    for (r = hca_trap_regions; r < end; ++r) {
        if ((addr - atomic_load_explicit(&r->start, memory_order_relaxed) <
             atomic_load_explicit(&r->len, memory_order_relaxed)) &&
            region_read(r, hit) && (addr - hit->start < hit->len)) {
            return true;
        }
    }
    return false;
}

/* Writes a slot that the caller has claimed, and releases it. */
static void region_write(struct hca_trap_region *r, struct hca_trap_hit new)
{
    atomic_thread_fence(memory_order_release);
    atomic_store_explicit(&r->len, 0, memory_order_relaxed);
    atomic_store_explicit(&r->fn, new.fn, memory_order_relaxed);
    atomic_store_explicit(&r->arg, new.arg, memory_order_relaxed);
    atomic_store_explicit(&r->push, new.push, memory_order_release);
    atomic_store_explicit(&r->start, new.start, memory_order_release);
    atomic_store_explicit(&r->len, new.len, memory_order_release);
    atomic_fetch_add_explicit(&r->seq, 1, memory_order_release);
}

static bool region_claim(struct hca_trap_region *r)
{
    unsigned seq = atomic_load(&r->seq);

    return !(seq & 1) && atomic_compare_exchange_strong(&r->seq, &seq, seq + 1);
}

bool hca_trap_table_overlaps(uintptr_t start, size_t len)
{
    struct hca_trap_region *r, *end = atomic_load(&hca_trap_regions_end);
    struct hca_trap_hit hit;

    for (r = hca_trap_regions; r < end; ++r) {
        if (region_read(r, &hit) && (hit.len > 0) &&
            (start < hit.start + hit.len) && (hit.start < start + len)) {
            return true;
        }
    }
    return false;
}

static void region_extend(struct hca_trap_region *end)
{
    struct hca_trap_region *old = atomic_load(&hca_trap_regions_end);

    while ((old < end) &&
           !atomic_compare_exchange_weak(&hca_trap_regions_end, &old, end)) {
    }
}

int hca_trap_table_add(struct hca_trap_hit new)
{
    struct hca_trap_region *r;

    for (r = hca_trap_regions; r < hca_trap_regions + TABLE_SIZE; ++r) {
        if ((atomic_load(&r->len) != 0) || !region_claim(r)) {
            continue;
        }

        if (atomic_load(&r->len) != 0) { /* taken before the claim */
            atomic_fetch_add(&r->seq, 1);
            continue;
        }

        region_write(r, new);
        region_extend(r + 1);
        return 0;
    }
    return -ENOSPC;
}

int hca_trap_table_del(uintptr_t start)
{
    static const struct hca_trap_hit none;
    struct hca_trap_region *r, *end;

    end = atomic_load(&hca_trap_regions_end);
    for (r = hca_trap_regions; r < end; ++r) {
        if ((atomic_load(&r->start) == start) && (atomic_load(&r->len) != 0) &&
            region_claim(r)) {
            region_write(r, none);
            return 0;
        }
    }
    return -ENOENT;
}
