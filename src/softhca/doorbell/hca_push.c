/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Collects the stores of a push; see hca_push.h. Trampolines call it before
 * they have saved vector registers, hence HCA_GENERAL_REGS: such a function
 * inlines no other, not even be64toh(). Formats: PRM, ctrl segment.
 */
#include "hca_push.h"
#include "hca_trap_table.h"

#include <common/prm.h>
#include <string.h>

#define HCA_GENERAL_REGS __attribute__((target("general-regs-only")))
#define PUSH_BLOCK_DS    4 /* octowords of a block of 64 bytes */

/* Returns a store as bits of hca_push.words; 0 if it is not in whole words, or
 * goes beyond its half. */
HCA_GENERAL_REGS static uint32_t push_words(unsigned pos, unsigned size)
{
    uint64_t words;

    if ((pos | size) & 7) {
        return 0;
    }

    words = ((1ull << (size / 8)) - 1) << (pos / 8);
    return (words > UINT32_MAX) ? 0 : words;
}

/* Returns the bits of a row that begins with this ctrl segment: the WQE in
 * whole blocks. 0 if it is no WQE, or longer than a half. */
HCA_GENERAL_REGS static uint32_t push_row(uint64_t ctrl)
{
    unsigned ds = __builtin_bswap64(ctrl) & PRM_CTRL_DS;

    if ((ds == 0) || (ds * 16 > HCA_PUSH_HALF_SIZE)) {
        return 0;
    }

    ds = (ds + PUSH_BLOCK_DS - 1) / PUSH_BLOCK_DS;
    return UINT32_MAX >> (32 - 8 * ds);
}

/* A first store of less than a block completes no row: the length of the row is
 * not needed yet. A later store may exceed the row. The store of the ctrl
 * segment may come later, as compilers reorder the stores of a block, which
 * write combining puts together. */
HCA_GENERAL_REGS void *hca_push_part(struct hca_push *push, uintptr_t offset,
                                     unsigned size, uint64_t ctrl)
{
    uintptr_t half = (offset - HCA_PUSH_START) / HCA_PUSH_HALF_SIZE;
    unsigned pos   = offset % HCA_PUSH_HALF_SIZE;
    uint32_t words = push_words(pos, size);
    uint32_t row, all;

    if ((half >= HCA_PUSH_HALVES) || (words == 0)) {
        return NULL;
    }

    if (pos == 0) {
        if ((size == 8) || (push->words[half] != 0) ||
            ((size == PUSH_BLOCK_DS * 16) && (push_row(ctrl) <= words))) {
            return NULL;
        }
        all = words;
    } else if ((push->words[half] == 0) || (push->data[half][0] == 0)) {
        all = push->words[half] | words;
    } else {
        row = push_row(push->data[half][0]);
        all = push->words[half] | (words & row);
        if ((row == 0) || ((all | 1) == row)) {
            return NULL;
        }
    }

    push->words[half] = all;
    return (uint8_t *)push->data[half] + pos;
}

bool hca_push_last(struct hca_push *push, uintptr_t offset, const void *value,
                   unsigned size)
{
    unsigned half  = hca_push_half(offset);
    unsigned pos   = offset % HCA_PUSH_HALF_SIZE;
    uint32_t words = push_words(pos, size), row;

    if (words == 0) {
        return false;
    }

    if (size == PUSH_BLOCK_DS * 16) {
        memcpy((uint8_t *)push->data[half] + pos, value, PUSH_BLOCK_DS * 16);
    } else {
        memcpy((uint8_t *)push->data[half] + pos, value, size);
    }
    row               = push_row(push->data[half][0]);
    push->words[half] = (push->words[half] | words) & row;
    return (row != 0) && ((push->words[half] | 1) == row);
}

/* Looks up @addr like hca_trap_table_find(), without copying the region. */
HCA_GENERAL_REGS void *hca_push_store(uintptr_t addr, unsigned size,
                                      uint64_t ctrl)
{
    struct hca_trap_region *end, *r;
    struct hca_push *push;
    uintptr_t offset;

    end = atomic_load_explicit(&hca_trap_regions_end, memory_order_acquire);
    for (r = hca_trap_regions; r < end; ++r) {
        offset = addr - atomic_load_explicit(&r->start, memory_order_relaxed);
        if (offset < atomic_load_explicit(&r->len, memory_order_relaxed)) {
            push = atomic_load_explicit(&r->push, memory_order_acquire);
            return (push == NULL) ? NULL :
                                    hca_push_part(push, offset, size, ctrl);
        }
    }
    return NULL;
}
