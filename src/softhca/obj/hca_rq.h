/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Receive queues, of a QP or shared: taking the next receive WQE, and turning
 * it into addresses for a message.
 */
#ifndef HCA_RQ_H
#define HCA_RQ_H

#include "hca_check.h"
#include "hca_sgl.h"

#include <infiniband/mlx5dv.h>

#define HCA_RECV_SEGS 64u

/* The message is dropped unanswered: a result of the responder, no row. */
#define HCA_DROP ((enum hca_check)HCA_NUM_CHECKS)

/* A page is missing: the sender has to try again. A result, no row. */
#define HCA_PAGE_FAULT ((enum hca_check)(HCA_NUM_CHECKS + 1))

/* A receive WQE, copied out of its ring. */
struct hca_recv {
    bool taken;             /* completes in error if the message fails */
    bool in_ring;           /* still counted as posted in the QP's own queue */
    uint16_t index;         /* as its CQE names it */
    struct hca_owner owner; /* of the memory that it names */
    uint32_t pdn;
    uint32_t cqn;              /* CQ of its completion */
    uint32_t uidx;             /* user index in its completion */
    uint8_t tm_op;             /* PRM_CQE_TM_*, 0: no tag matching */
    uint16_t tm_index;         /* of a tagged buffer, in the tag list */
    uint32_t tm_bytes;         /* received into the tagged buffer */
    const struct ibv_tmh *tmh; /* header to put into the CQE, or NULL */
    uint32_t stride;           /* index of its first stride */
    uint32_t num_strides;      /* 0: no strides */
    uint32_t mp_flags;         /* PRM_CQE_MP_* of its strides */
    unsigned count;            /* of segs[] */
    uint64_t length;           /* of all, in bytes */
    struct {
        uint64_t addr;
        uint32_t length;
        uint32_t lkey;
    } segs[HCA_RECV_SEGS];
};

/* Reads the next WQE of the QP's own queue, which stays the next one until
 * hca_rq_consume(). The caller holds obj.lock from here to that call, or
 * releases it without consuming.
 * @return HCA_OK, HCA_CHECK_NO_RECV (not logged), or an error, logged. */
enum hca_check hca_rq_take(struct hca_qp *qp, struct hca_recv *recv);

/* Removes a receive that is about to complete from the QP's own queue
 * (recv->in_ring). */
void hca_rq_consume(struct hca_qp *qp, struct hca_recv *recv);

/* Returns the number of receives in the QP's own queue that are posted and not
 * consumed; more than the ring has if the doorbell record is wrong. */
unsigned hca_rq_posted(const struct hca_qp *qp);

/* Removes the next WQE of a shared queue for @qp, and locks the SRQ meanwhile.
 * recv->cqn, uidx are @qp's, or the SRQ's with XRC or tag matching.
 * @return HCA_OK, HCA_CHECK_NO_RECV, or an error, logged. */
enum hca_check hca_srq_take(struct hca_qp *qp, uint32_t srqn,
                            struct hca_recv *recv);

/* Puts a WQE that was taken back into a shared queue, which is linked: its page
 * is missing. It is taken again before others. At most HCA_SRQ_RETURNED.
 * @return HCA_PAGE_FAULT; HCA_OK if too many were put back, so that this one
 *         must be used; or HCA_CHECK_SRQ, logged. */
enum hca_check hca_srq_put_back(const struct hca_qp *qp, uint32_t srqn,
                                struct hca_recv *recv);

/* Removes strides for a packet of @length bytes from an SRQ with strides, whose
 * lock is held. If too few are left in the WQE, @recv is these, with
 * PRM_CQE_MP_FILLER in mp_flags: complete it, then try again.
 * @return HCA_OK, HCA_CHECK_NO_RECV, or an error, logged. */
enum hca_check hca_srq_take_strides(struct hca_qp *qp, struct hca_srq *srq,
                                    uint64_t length, struct hca_recv *recv);

/* Fills in @recv with a tagged buffer of the SRQ, whose lock is held. It is no
 * WQE of the SRQ: recv->taken is false. */
void hca_srq_take_tagged(const struct hca_srq *srq,
                         const struct mlx5_wqe_data_seg *seg,
                         struct hca_recv *recv);

/* Takes the cache lines of the next receive's buffer from the CPU of @owner,
 * another process: the next message is most likely as long as this one, @length
 * bytes, and from this thread. Without the SRQ's lock, as a wrong guess does no
 * harm. Call it within an access to the owner's mkeys. */
void hca_srq_prefetch(uint32_t srqn, struct hca_owner owner, uint64_t length);

/* SOFTHCA_STRICT: data that scatter to CQE leaves in the completion must be
 * moved by the program to the buffer's address, which is not a memory address
 * if the mkey is indirect. Hardware does not check, nor does libmlx5
 * (providers/mlx5/qp.c: mlx5_copy_to_recv_wqe()).
 * @return HCA_OK or an error, logged. */
enum hca_check hca_recv_check_cqe(const struct hca_qp *qp,
                                  const struct hca_recv *recv);

/* Appends the first @length bytes of the buffer to @sgl, which the caller puts,
 * also after an error. @return HCA_OK or a row of HCA_CHECK_RECV_*, logged. */
enum hca_check hca_recv_map(const struct hca_qp *qp,
                            const struct hca_recv *recv, uint64_t length,
                            struct hca_sgl *sgl);

#endif
