/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * A send queue: a ring of WQEBBs (building blocks of 64 bytes) in memory that
 * the caller provides, two 16-bit counters that run freely, and the doorbell.
 * Used by one thread at a time. Doorbell protocol: PRM, "posting a work
 * request"; the register is described in mlx5dv_init_obj(3), struct mlx5dv_qp.
 */
#ifndef UCT_DCX_SQ_H
#define UCT_DCX_SQ_H

#include "dcx_barrier.h"
#include "dcx_bf.h"
#include "dcx_wqe.h"

#include <ucs/sys/compiler_def.h>


/* WQEBBs that operations never fill: two NOPs can always be posted. */
#define UCT_DCX_SQ_SPARE 2


typedef struct uct_dcx_sq {
    uint8_t *start;
    const uint8_t *end;
    volatile __be32 *dbrec;
    uct_dcx_bf_t *bf; /* register for its doorbells */
    uint64_t sender;  /* uct_dcx_wqe_sender() */
    uint32_t qpn;
    uint32_t mask;     /* number of WQEBBs - 1 */
    uint64_t carry;    /* uct_dcx_wqe_flags() that the next WQE adds to
                        * those of its operation: a fence, its stream,
                        * and the request of a completion */
    uint16_t pi;       /* next WQEBB to write */
    uint16_t stop;     /* a WQE that begins before it needs no other
                        * check */
    uint16_t last;     /* beginning of the WQE posted last */
    uint16_t ci;       /* all WQEBBs before it have completed */
    uint16_t window;   /* maximum WQEBBs from @pi to @stop; 0: each WQE
                        * is checked */
    uint16_t signaled; /* beginning of the last WQE that requests a
                        * completion, or will */
    uint16_t capacity; /* maximum WQEBBs in use when a WQE begins */
    uint16_t limit;    /* reduced @capacity if others wait for the
                        * queue */
} uct_dcx_sq_t;


/* Parameters of a queue; fields that are 0 may be omitted. */
typedef struct uct_dcx_sq_params {
    void *start;
    volatile __be32 *dbrec;
    uct_dcx_bf_t *bf;
    uint32_t qpn;
    unsigned num_bb;   /* WQEBBs, a power of two */
    unsigned capacity; /* see uct_dcx_sq_t */
    uint16_t window;
} uct_dcx_sq_params_t;


/* Marks the queue as idle: nothing is outstanding, so no fence is needed. The
 * next WQE requests a completion. */
static UCS_F_ALWAYS_INLINE void uct_dcx_sq_idle(uct_dcx_sq_t *sq)
{
    sq->carry    = uct_dcx_wqe_flags(MLX5_WQE_CTRL_CQ_UPDATE);
    sq->signaled = sq->pi;
    sq->stop     = sq->pi + sq->window;
}


/* Makes uct_dcx_sq_is_clear() return 0 for the next WQE, so that everything is
 * checked before it. */
static inline void uct_dcx_sq_stop(uct_dcx_sq_t *sq)
{
    sq->stop = sq->pi;
}


/* Resets the counters, as when the QP was created or brought to RESET. */
static inline void uct_dcx_sq_reset(uct_dcx_sq_t *sq)
{
    sq->pi   = 0;
    sq->ci   = 0;
    sq->last = UINT16_MAX;
    uct_dcx_sq_idle(sq);
}


static inline void uct_dcx_sq_init(uct_dcx_sq_t *sq,
                                   const uct_dcx_sq_params_t *params)
{
    sq->start    = (uint8_t *)params->start;
    sq->end      = sq->start + ((size_t)params->num_bb << MLX5_SEND_WQE_SHIFT);
    sq->dbrec    = params->dbrec;
    sq->bf       = params->bf;
    sq->sender   = uct_dcx_wqe_sender(params->qpn);
    sq->qpn      = params->qpn;
    sq->mask     = params->num_bb - 1;
    sq->capacity = params->capacity;
    sq->limit    = params->capacity;
    sq->window   = params->window;
    uct_dcx_sq_reset(sq);
}


static UCS_F_ALWAYS_INLINE uint16_t uct_dcx_sq_used(const uct_dcx_sq_t *sq)
{
    return sq->pi - sq->ci;
}


/* Returns non-zero if a WQE of the maximum size may begin. */
static UCS_F_ALWAYS_INLINE int uct_dcx_sq_is_available(const uct_dcx_sq_t *sq)
{
    return uct_dcx_sq_used(sq) <= sq->limit;
}


/* Returns non-zero if the next WQE, of any size, may begin without any other
 * check: if it has to request a completion, @carry does so. */
static UCS_F_ALWAYS_INLINE int uct_dcx_sq_is_clear(const uct_dcx_sq_t *sq)
{
    return (int16_t)(sq->pi - sq->stop) < 0;
}


/* Has the next WQE request a completion. The queue has room for that WQE. */
static inline void uct_dcx_sq_signal(uct_dcx_sq_t *sq)
{
    uint16_t available = sq->limit + 1 - uct_dcx_sq_used(sq);

    sq->carry |= uct_dcx_wqe_flags(MLX5_WQE_CTRL_CQ_UPDATE);
    sq->signaled = sq->pi;
    sq->stop     = sq->pi + ((available < sq->window) ? available : sq->window);
}


/* Returns the end of the WQE that begins at @index. It is exact for the WQE
 * that was posted last; else it is the end of its first WQEBB, and the others
 * follow with the next WQE. */
static UCS_F_ALWAYS_INLINE uint16_t uct_dcx_sq_end(const uct_dcx_sq_t *sq,
                                                   uint16_t index)
{
    return (index == sq->last) ? sq->pi : (uint16_t)(index + 1);
}


static UCS_F_ALWAYS_INLINE void *uct_dcx_sq_block(const uct_dcx_sq_t *sq,
                                                  uint16_t index)
{
    return sq->start + ((size_t)(index & sq->mask) << MLX5_SEND_WQE_SHIFT);
}


/* Announces everything up to @num_bb WQEBBs past @pi, where the last WQE
 * begins. The caller rings the doorbell next. */
static UCS_F_ALWAYS_INLINE void
uct_dcx_sq_announce(uct_dcx_sq_t *sq, uint16_t pi, unsigned num_bb)
{
    sq->last = pi;
    pi += num_bb;
    sq->pi = pi;

    /* The WQE is in memory before the record that announces it. */
    uct_dcx_to_device_barrier();
    *sq->dbrec = htobe32(pi);

    /* The record is in memory before the doorbell rings. */
    uct_dcx_wc_start();
}


/* Hands everything up to @num_bb WQEBBs past @pi, where the last WQE begins, to
 * the device. @doorbell is the result of uct_dcx_wqe_finish(). */
static UCS_F_ALWAYS_INLINE void uct_dcx_sq_ring(uct_dcx_sq_t *sq, uint16_t pi,
                                                unsigned num_bb,
                                                uint64_t doorbell)
{
    uct_dcx_sq_announce(sq, pi, num_bb);
    uct_dcx_bf_ring(sq->bf, doorbell);
}


/* Hands a single new WQE to the device: pushes it through the register if that
 * is possible, which saves the device a DMA read; otherwise rings the
 * doorbell. */
static UCS_F_ALWAYS_INLINE void uct_dcx_sq_push(uct_dcx_sq_t *sq, uint16_t pi,
                                                unsigned num_bb,
                                                uint64_t doorbell)
{
    uct_dcx_bf_t *bf = sq->bf;
    const uint8_t *from;
    uintptr_t to;

    uct_dcx_sq_announce(sq, pi, num_bb);
    if (ucs_unlikely(num_bb > bf->push_bb)) {
        uct_dcx_bf_ring(bf, doorbell);
        return;
    }

    to   = bf->half;
    from = (const uint8_t *)uct_dcx_sq_block(sq, pi);
    uct_dcx_bf_copy(to, from);
    while (--num_bb > 0) {
        to += MLX5_SEND_WQE_BB;
        from += MLX5_SEND_WQE_BB;
        if (ucs_unlikely(from == sq->end)) {
            from = sq->start;
        }
        __asm__("" : "+r"(to)); /* one base register for all stores */
        uct_dcx_bf_copy(to, from);
    }
    uct_dcx_bf_pushed(bf);
}

#endif
