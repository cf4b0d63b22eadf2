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
    uintptr_t       bf;       /* register that takes the next doorbell */
    uintptr_t       bf_flip;  /* bit by which the halves of it alternate */
    uint64_t        sender;   /* uct_dcx_wqe_sender() */
    uint32_t        qpn;
    uint32_t        mask;     /* number of blocks - 1 */
    uint32_t        carry;    /* what the next WQE carries: a fence, its stream,
                               * the wish for a completion
                               * (uct_dcx_wqe_ctrl_t) */
    uint32_t        again;    /* ... and those behind it */
    uint16_t        pi;       /* next block to write */
    uint16_t        stop;     /* up to it, no WQE that begins before this block
                               * has to look at anything */
    uint16_t        last;     /* where the WQE posted last begins */
    uint16_t        ci;       /* all blocks before it have completed */
    uint16_t        window;   /* greatest distance to 'stop', 0: none is */
    uint16_t        signaled; /* where the last one begins, or will, that asks
                               * for a completion; see 'again' */
    int16_t         limit;    /* may post while no more than this is in use: the
                               * room, or -1 while somebody is in line for it */
    int16_t         room;     /* what others leave: less than the ring has while
                               * they wait for an initiator (dcx_pending.c) */
    int16_t         ring;     /* the room that the ring itself has */
    uint8_t         odd;      /* not all is as usual when it becomes idle */
} uct_dcx_sq_t;


/* Nothing is outstanding, nothing there is that a fence would wait for. */
static UCS_F_ALWAYS_INLINE void uct_dcx_sq_idle(uct_dcx_sq_t *sq)
{
    sq->carry    = MLX5_WQE_CTRL_CQ_UPDATE;
    sq->signaled = sq->pi;
    sq->stop     = sq->pi + sq->window;
}


/* The next WQE takes the way that looks at everything. */
static inline void uct_dcx_sq_look(uct_dcx_sq_t *sq)
{
    sq->stop = sq->pi;
}


/* Asks for a completion every 'blocks'. 0: each WQE asks for one, and looks at
 * everything; so has to do an initiator that several endpoints share. */
static inline void uct_dcx_sq_moderate(uct_dcx_sq_t *sq, uint16_t blocks)
{
    sq->again  = (blocks > 1) ? 0 : MLX5_WQE_CTRL_CQ_UPDATE;
    sq->window = (blocks == 1) ? sq->ring + 1 : blocks;
}


/* As it is when the QP was created or brought to RESET. */
static inline void uct_dcx_sq_reset(uct_dcx_sq_t *sq)
{
    sq->pi   = 0;
    sq->ci   = 0;
    sq->last = UINT16_MAX;
    sq->odd  = 1;
    uct_dcx_sq_idle(sq);
    if (sq->limit < sq->ring) {
        uct_dcx_sq_look(sq);
    }
}


static inline void uct_dcx_sq_set_limit(uct_dcx_sq_t *sq, int16_t limit)
{
    sq->limit = limit;
    sq->odd   = 1;
    uct_dcx_sq_look(sq);
}


static UCS_F_ALWAYS_INLINE uint16_t uct_dcx_sq_used(const uct_dcx_sq_t *sq)
{
    return sq->pi - sq->ci;
}


/* Whether a WQE of the greatest size fits, for those in line. */
static inline int uct_dcx_sq_fits(const uct_dcx_sq_t *sq)
{
    return uct_dcx_sq_used(sq) <= sq->room;
}


/* Whether it does, and those in line let it. */
static UCS_F_ALWAYS_INLINE int uct_dcx_sq_has_room(const uct_dcx_sq_t *sq)
{
    return uct_dcx_sq_used(sq) <= sq->limit;
}


/* Those in line, if there are any, stay the only ones who may post. */
static inline void uct_dcx_sq_set_room(uct_dcx_sq_t *sq, int16_t room)
{
    sq->room = room;
    uct_dcx_sq_set_limit(sq, (sq->limit >= 0) ? room : sq->limit);
}


/* Whether that is known of the next WQE, and it asks for a completion if it
 * has to. */
static UCS_F_ALWAYS_INLINE int uct_dcx_sq_is_clear(const uct_dcx_sq_t *sq)
{
    return (int16_t)(sq->stop - sq->pi) > 0;
}


/* Has the next WQE ask for a completion. There is room for it. */
static inline void uct_dcx_sq_signal(uct_dcx_sq_t *sq)
{
    uint16_t room = sq->limit + 1 - uct_dcx_sq_used(sq);

    sq->carry   |= MLX5_WQE_CTRL_CQ_UPDATE;
    sq->signaled = sq->pi;
    sq->stop     = sq->pi + ((room < sq->window) ? room : sq->window);
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


/* Hands everything up to 'num_bb' blocks past 'pi', where the last WQE begins,
 * to the device. 'doorbell' is what uct_dcx_wqe_finish() returned. */
static UCS_F_ALWAYS_INLINE void
uct_dcx_sq_ring(uct_dcx_sq_t *sq, uint16_t pi, unsigned num_bb,
                uint64_t doorbell)
{
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
