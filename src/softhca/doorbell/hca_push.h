/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * BlueFlame registers of a page of doorbells, and the WQEs being pushed to
 * them. A push is a row of stores to a half of a register that together are a
 * WQE in whole blocks, beginning with its ctrl segment. Only the last store of
 * a row calls the device: earlier ones are collected here. In this way a push
 * costs not much more than a doorbell, which is a store of eight bytes to the
 * beginning of a half.
 *
 * A register has one writer at a time, as write combining requires: nothing
 * here is locked. The trap collects, exec/ reads the collected data.
 */
#ifndef HCA_PUSH_H
#define HCA_PUSH_H

#include <stdbool.h>
#include <stdint.h>

/* The registers of a UAR page: two, of two halves each (mlx5_ifc.h of Linux:
 * log_bf_reg_size is that of a whole one; MLX5_BF_OFFSET of its driver.h) */
#define HCA_PUSH_START     0x800u
#define HCA_PUSH_END       0xc00u
#define HCA_PUSH_HALF_SIZE 0x100u
#define HCA_PUSH_HALVES    4

struct hca_push {
    /* One word per half: a bit for each eight bytes stored since the last
     * complete row. Bit 0 is not set if these were a doorbell. */
    uint32_t words[HCA_PUSH_HALVES];
    uint64_t data[HCA_PUSH_HALVES][HCA_PUSH_HALF_SIZE / 8];
};

static inline bool hca_push_is_register(uintptr_t offset)
{
    return (offset >= HCA_PUSH_START) && (offset < HCA_PUSH_END);
}

/* Returns the half that an offset in the page is in. */
static inline unsigned hca_push_half(uintptr_t offset)
{
    return (offset - HCA_PUSH_START) / HCA_PUSH_HALF_SIZE;
}

/* Forget the stores to a half, and take no more until the next row begins. */
static inline void hca_push_end(struct hca_push *push, unsigned half)
{
    push->words[half]   = 0;
    push->data[half][0] = 0;
}

/**
 * Note a store that does not complete a row. Uses general registers only.
 *
 * @param offset  of the store from the beginning of the page
 * @param size    of the store in bytes
 *
 * @return The place for its value, or NULL if the device has to be called:
 *         nothing is noted then.
 */
void *hca_push_part(struct hca_push *push, uintptr_t offset, unsigned size);

/**
 * Record a store for which hca_push_part() returned NULL.
 *
 * @return true if the row is complete: its bits in words are set.
 */
bool hca_push_last(struct hca_push *push, uintptr_t offset, const void *value,
                   unsigned size);

/* hca_push_part() for a trampoline: finds the page that holds @addr, if that
 * has registers. Uses general registers only; call it from any context. */
void *hca_push_store(uintptr_t addr, unsigned size);

#endif
