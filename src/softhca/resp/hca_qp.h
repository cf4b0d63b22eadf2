/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * States of a QP, and its step into the error state.
 */
#ifndef HCA_QP_H
#define HCA_QP_H

#include "softhca/obj/hca_check.h"
#include "softhca/obj/hca_objs.h"

#include <endian.h>

static inline enum ibv_qp_state hca_qp_state(const struct hca_qp *qp)
{
    return atomic_load_explicit(&qp->state, memory_order_acquire);
}

/* Returns the limit of reads and atomics under way at once: the kernel gives
 * the device the logarithm, rounded up (__mlx5_ib_modify_qp(): log_sra_max,
 * log_rra_max). */
static inline unsigned hca_qp_rd_limit(uint8_t max_rd_atomic)
{
    return (max_rd_atomic <= 1) ?
               1 :
               1u << (32 - __builtin_clz(max_rd_atomic - 1u));
}

/* Returns the basic blocks from req.ci to the doorbell record; more than the
 * ring has if the record is wrong. */
static inline uint16_t hca_qp_sq_posted(const struct hca_qp *qp)
{
    const uint32_t *dbrec = (const uint32_t *)hca_at(qp->dbrec);

    /* pairs with the program's barrier between WQEs and the record */
    return (uint16_t)be32toh(__atomic_load_n(&dbrec[1], __ATOMIC_ACQUIRE)) -
           qp->req.ci;
}

/* Puts a QP in error, unless it is, and flushes its receives, not its SQ;
 * obj.lock is held. */
void hca_qp_enter_error(struct hca_qp *qp);

/* Puts a QP in error for a fault that its responder found; obj.lock is held.
 * Flushes receives at once, and the SQ when this thread leaves the device. */
void hca_qp_fail(struct hca_qp *qp);

/* Puts a QP in error after a send WQE completed in error, under sq_lock and
 * with obj.lock free; a UC or UD QP in RTS only goes to SQE (IBTA 10.3.1). The
 * caller flushes the SQ. */
void hca_qp_fail_requester(struct hca_qp *qp);

/* Puts a QP of any type in error, with the event QP_FATAL, for a fault that no
 * completion can report. Locks as for hca_qp_fail_requester(). */
void hca_qp_fail_fatal(struct hca_qp *qp);

/* Flushes the own RQ of a QP in error, unless its doorbell record is wrong;
 * obj.lock is held. */
void hca_qp_flush_rq(struct hca_qp *qp);

/* Puts the QPs of a CQ that has overrun in error, with the event QP_FATAL,
 * except DC targets and QPs in RESET. The caller holds no lock. */
void hca_qp_fail_cq(uint32_t cqn);

/* Completes the work of a holder of obj.lock that died; the lock is held again
 * (hca_kind_ops.repair). */
void hca_qp_repair(void *obj);

#endif
