/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * A doorbell register (BlueFlame). Eight bytes to it ring the doorbell: the
 * device then reads the WQE. If it is write-combining, a whole WQE can be
 * pushed instead, and the device executes it from there. It has two halves,
 * which are used alternately, so that no WQE is overwritten while the device
 * reads it; queues of one owner share it. (PRM, "posting a work request";
 * mlx5dv_init_obj(3), struct mlx5dv_qp; post_send_db() of rdma-core,
 * providers/mlx5/qp.c.) Owned by the thread that posts; others may take turns
 * with it.
 */
#ifndef UCT_DCX_BF_H
#define UCT_DCX_BF_H

#include "dcx_barrier.h"

#include <infiniband/mlx5dv.h>
#include <stdint.h>

#if defined(__SSE2__)
#include <emmintrin.h>
#elif defined(__ARM_NEON)
#include <arm_neon.h>
#endif


typedef struct uct_dcx_bf {
    uintptr_t half;   /* takes the next doorbell or WQE */
    uintptr_t flip;   /* bit by which the halves alternate; 0: one half */
    unsigned push_bb; /* maximum WQEBBs of a pushed WQE; 0: none is pushed */
    int flush;        /* flush each pushed WQE: the next one may be pushed by
                       * another core, and would not be ordered after it */
} uct_dcx_bf_t;


/* Initialises @bf; @size is that of each half in bytes, 0: doorbells only. */
static inline void uct_dcx_bf_init(uct_dcx_bf_t *bf, void *reg, unsigned size)
{
    bf->half    = (uintptr_t)reg;
    bf->flip    = size;
    bf->push_bb = size >> MLX5_SEND_WQE_SHIFT;
    bf->flush   = 0;
}


/* Limits pushing to WQEs of @max_push_bb WQEBBs; 0 disables it. @flush: see
 * uct_dcx_bf_t. */
static inline void uct_dcx_bf_set_mode(uct_dcx_bf_t *bf, unsigned max_push_bb,
                                       int flush)
{
    if (bf->push_bb > max_push_bb) {
        bf->push_bb = max_push_bb;
    }
    bf->flush = flush;
}


/* Rings the doorbell. The WQE and the doorbell record are in memory already. */
static UCS_F_ALWAYS_INLINE void uct_dcx_bf_ring(uct_dcx_bf_t *bf,
                                                uint64_t doorbell)
{
    *(volatile uint64_t *)bf->half = doorbell;

    /* The register may be write-combining: push the store out, and keep it
     * before the next doorbell of any queue. */
    uct_dcx_wc_flush();
    bf->half ^= bf->flip;
}


/* Copies a WQEBB to the register in wide stores right behind each other, which
 * the compiler neither splits nor reorders: a line that is stored as a whole
 * goes out at once, and in one piece. */
static UCS_F_ALWAYS_INLINE void uct_dcx_bf_copy(uintptr_t to, const void *block)
{
#if defined(__SSE2__)
    volatile __m128i *dst = (volatile __m128i *)to;
    const __m128i *src    = (const __m128i *)block;
    __m128i a = src[0], b = src[1], c = src[2], d = src[3];

    /* All loads come before the first store. */
    __asm__("" : "+x"(a), "+x"(b), "+x"(c), "+x"(d));
    dst[0] = a;
    dst[1] = b;
    dst[2] = c;
    dst[3] = d;
#elif defined(__ARM_NEON)
    volatile uint64x2_t *dst = (volatile uint64x2_t *)to;
    const uint64x2_t *src    = (const uint64x2_t *)block;

    dst[0] = src[0];
    dst[1] = src[1];
    dst[2] = src[2];
    dst[3] = src[3];
#endif
}


/* Ends the push of a WQE. */
static UCS_F_ALWAYS_INLINE void uct_dcx_bf_pushed(uct_dcx_bf_t *bf)
{
    if (bf->flush) {
        uct_dcx_wc_flush();
    } else {
        uct_dcx_wc_full();
    }
    bf->half ^= bf->flip;
}

#endif
