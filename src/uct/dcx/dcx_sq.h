/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The send queue of a DCI as its owner sees it: a ring of 64-byte building
 * blocks in memory that libmlx5 allocated, two 16-bit counters that run freely
 * and the doorbell. Owned by the thread that progresses the interface.
 * Doorbell protocol: PRM, "posting a work request"; the register is described
 * in mlx5dv_init_obj(3), struct mlx5dv_qp.
 */
#ifndef UCT_DCX_SQ_H
#define UCT_DCX_SQ_H

#include "dcx_wqe.h"

#include <ucs/arch/cpu.h>
#include <ucs/sys/compiler_def.h>


/* Blocks that are never filled by operations: two NOPs always find room. */
#define UCT_DCX_SQ_SPARE  2


typedef struct uct_dcx_sq {
    uint8_t         *start;
    volatile __be32 *dbrec;
    uintptr_t       bf;      /* register that takes the next doorbell */
    uintptr_t       bf_flip; /* bit by which the halves of it alternate */
    uint32_t        qpn;
    uint32_t        mask;    /* number of blocks - 1 */
    uint16_t        pi;      /* next block to write */
    uint16_t        ci;      /* all blocks before it have completed */
    uint16_t        last;    /* where the WQE posted last begins */
    int16_t         limit;   /* may post while no more than this is in use: the
                                room, or -1 while somebody is in line for it */
    int16_t         room;    /* what others leave: less than the ring has while
                                they wait for an initiator (dcx_pending.c) */
    int16_t         ring;    /* the room that the ring itself has */
    uint32_t        carry;   /* what the next WQE carries: a fence, its stream
                                (uct_dcx_wqe_ctrl_t) */
} uct_dcx_sq_t;


/* As it is when the QP was created or brought to RESET. */
static inline void uct_dcx_sq_reset(uct_dcx_sq_t *sq)
{
    sq->pi    = 0;
    sq->ci    = 0;
    sq->last  = UINT16_MAX;
    sq->carry = 0;
}


static UCS_F_ALWAYS_INLINE uint16_t uct_dcx_sq_used(const uct_dcx_sq_t *sq)
{
    return sq->pi - sq->ci;
}


/* Whether a WQE of the greatest size fits, and whether others let it. */
static UCS_F_ALWAYS_INLINE int uct_dcx_sq_has_room(const uct_dcx_sq_t *sq)
{
    return uct_dcx_sq_used(sq) <= sq->limit;
}


/* Those in line, if there are any, stay the only ones who may post. */
static inline void uct_dcx_sq_set_room(uct_dcx_sq_t *sq, int16_t room)
{
    sq->room = room;
    if (sq->limit >= 0) {
        sq->limit = room;
    }
}


/* What ends with the WQE that begins at 'index': exactly, if it was posted
 * last; else its first block, the others follow with the next one. */
static UCS_F_ALWAYS_INLINE uint16_t
uct_dcx_sq_end(const uct_dcx_sq_t *sq, uint16_t index)
{
    return (index == sq->last) ? sq->pi : (uint16_t)(index + 1);
}


static UCS_F_ALWAYS_INLINE void *
uct_dcx_sq_block(const uct_dcx_sq_t *sq, uint16_t index)
{
    return sq->start + ((size_t)(index & sq->mask) << MLX5_SEND_WQE_SHIFT);
}


/* Hands everything up to 'num_bb' blocks past pi to the device. 'doorbell' is
 * what uct_dcx_wqe_finish() returned. */
static UCS_F_ALWAYS_INLINE void
uct_dcx_sq_ring(uct_dcx_sq_t *sq, unsigned num_bb, uint64_t doorbell)
{
    uint16_t pi = sq->pi;

    sq->last = pi;
    pi      += num_bb;
    sq->pi   = pi;

    /* the WQE is in memory before the record that announces it */
    ucs_memory_cpu_store_fence();
    *sq->dbrec = htobe32(pi);

    /* the record is in memory before the device is told to look at it */
    ucs_memory_bus_store_fence();
    *(volatile uint64_t*)sq->bf = doorbell;

    /* the register may be write-combining: push the store out, and keep it
     * before the next doorbell, whichever queue that one is for */
    ucs_memory_bus_store_fence();
    sq->bf ^= sq->bf_flip;
}

#endif
