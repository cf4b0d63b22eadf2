/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * BlueFlame registers of a page of doorbells, and the WQEs being pushed to
 * them. A push is a row of stores to a half of a register. Together they are a
 * WQE in whole blocks of 64 bytes, beginning with its ctrl segment. Earlier
 * stores are collected here; only the last one of a row calls the device. So a
 * push costs little more than a doorbell, which is a store of eight bytes to
 * the beginning of a half.
 *
 * A register has one writer at a time, as write combining requires: nothing
 * here is locked. Trampolines and exec/ collect; exec/ reads the data.
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
    /* One word per half: bit n is set if the bytes from 8 * n on were stored
     * since the last complete row. A doorbell leaves bit 0 clear. */
    uint32_t words[HCA_PUSH_HALVES];
    uint64_t data[HCA_PUSH_HALVES][HCA_PUSH_HALF_SIZE / 8];
};

static inline bool hca_push_is_register(uintptr_t offset)
{
    return (offset >= HCA_PUSH_START) && (offset < HCA_PUSH_END);
}

/* Returns the half of a register that has @offset of the page. */
static inline unsigned hca_push_half(uintptr_t offset)
{
    return (offset - HCA_PUSH_START) / HCA_PUSH_HALF_SIZE;
}

/* Forgets the stores to a half, and takes no more until the next row begins. */
static inline void hca_push_end(struct hca_push *push, unsigned half)
{
    push->words[half]   = 0;
    push->data[half][0] = 0;
}

/**
 * Records a store that does not complete a row. Uses general registers only.
 *
 * @param offset  of the store from the beginning of the page
 * @param size    of the store in bytes
 * @param ctrl    first eight bytes of the value, used only if it has 64
 *
 * @return The place for its value, which the caller writes. NULL if the device
 *         must be called: nothing is recorded then.
 */
void *hca_push_part(struct hca_push *push, uintptr_t offset, unsigned size,
                    uint64_t ctrl);

/**
 * Records a store to a register for which hca_push_part() returned NULL.
 *
 * @return true if the row is complete. All of its bits in words are set, except
 *         bit 0 if the first eight bytes were a doorbell.
 */
bool hca_push_last(struct hca_push *push, uintptr_t offset, const void *value,
                   unsigned size);

/* Calls hca_push_part() for the page that holds @addr. @return NULL also if no
 * page with registers does. For trampolines: uses general registers only. */
void *hca_push_store(uintptr_t addr, unsigned size, uint64_t ctrl);

#endif
