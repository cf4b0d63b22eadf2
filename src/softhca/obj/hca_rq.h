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

/* Peculiar to the responder: the message vanishes, nobody answers. */
#define HCA_DROP ((enum hca_check)HCA_NUM_CHECKS)

/* A receive WQE, copied out of its ring. */
struct hca_recv {
    bool     taken;
    bool     in_ring;  /* the QP's own still counts it as posted */
    uint16_t index;    /* as its CQE names it */
    struct hca_owner owner; /* whose memory it names */
    uint32_t pdn;
    uint32_t cqn;      /* where it completes ... */
    uint32_t uidx;     /* ... and for whom */
    uint8_t  tm_op;    /* PRM_CQE_TM_* of that, 0: no tag matching */
    uint16_t tm_index; /* of the tagged buffer that it is */
    uint32_t tm_bytes; /* that came to it */
    const struct ibv_tmh *tmh; /* goes with that, or NULL */
    uint32_t stride;      /* the first that it is ... */
    uint32_t num_strides; /* ... of these, 0: no strides */
    uint32_t mp_flags;    /* ... for PRM_CQE_MP_* */
    unsigned count;
    uint64_t length;
    struct {
        uint64_t addr;
        uint32_t length;
        uint32_t lkey;
    } segs[HCA_RECV_SEGS];
};

/* Reads the next WQE of the QP's own queue, which stays the next one until
 * hca_rq_consume(). obj.lock is held till then, or is given back without it.
 * @return HCA_OK, HCA_CHECK_NO_RECV (not logged), or what is wrong. */
enum hca_check hca_rq_take(struct hca_qp *qp, struct hca_recv *recv);

/* The receive is about to complete: it leaves the QP's own queue, if it is of
 * that one. */
void hca_rq_consume(struct hca_qp *qp, struct hca_recv *recv);

/* Receives that are posted and not consumed. */
unsigned hca_rq_posted(const struct hca_qp *qp);

/* Takes the next WQE of a shared queue for qp. The lock of the SRQ is taken
 * and released inside; recv->cqn, uidx are qp's, or the SRQ's if it is one of
 * XRC or with tag matching. */
enum hca_check hca_srq_take(struct hca_qp *qp, uint32_t srqn,
                            struct hca_recv *recv);

/* The same of one whose lock is held. */
enum hca_check hca_srq_take_locked(struct hca_qp *qp, struct hca_srq *srq,
                                   struct hca_recv *recv);

/* The lock of an SRQ was not to be had. @return HCA_DROP if a process that is
 * stopped has it, HCA_OK if there is no such queue (any more). */
enum hca_check hca_srq_held_up(uint32_t srqn);

/* Takes the strides for a packet from one with strides, whose lock is held.
 * Strides at the end of a WQE that are too few for it are passed over: recv is
 * these then, with PRM_CQE_MP_FILLER, to complete in front of the next try. */
enum hca_check hca_srq_take_strides(struct hca_qp *qp, struct hca_srq *srq,
                                    uint64_t length, struct hca_recv *recv);

/* Fills in recv with a tagged buffer of the queue, whose lock is held. It is no
 * receive of the queue: not `taken`. */
void hca_srq_take_tagged(const struct hca_srq *srq,
                         const struct mlx5_wqe_data_seg *seg,
                         struct hca_recv *recv);

/* SOFTHCA_STRICT: data that scatter to CQE leaves in the completion is the
 * program's to move to the address of the buffer, which is none of memory if
 * the key is indirect. Hardware does not look, nor does libmlx5
 * (providers/mlx5/qp.c: mlx5_copy_to_recv_wqe()).
 * @return HCA_OK or what is wrong, logged. */
enum hca_check hca_recv_check_cqe(const struct hca_qp *qp,
                                  const struct hca_recv *recv);

/* Appends the first `length` bytes of the buffer to sgl.
 * @return HCA_OK or a row of HCA_CHECK_RECV_*, which is logged. */
enum hca_check hca_recv_map(const struct hca_qp *qp,
                            const struct hca_recv *recv, uint64_t length,
                            struct hca_sgl *sgl);

#endif
