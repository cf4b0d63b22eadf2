/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Taking the next WQE of a shared receive queue, inline for each message: with
 * the queue's lock for the whole message if the queue matches tags
 * (resp/hca_resp_tm.c), else with it for the WQE only (hca_rq.c).
 */
#ifndef HCA_SRQ_TAKE_H
#define HCA_SRQ_TAKE_H

#include "hca_async.h"
#include "hca_pcie.h"
#include "hca_rq.h"
#include "hca_srq.h"

#include <common/prm.h>
#include <endian.h>

#define HCA_INVALID_LKEY 0x100u /* MLX5_INVALID_LKEY */

/* Functions that receives with and without strides share: inlined, so that
 * those without pay nothing for it */
#define HCA_SRQ_F static inline __attribute__((always_inline))

/* Returns the number of WQEs posted so far, modulo 2^16. Pairs with the
 * program's barrier between WQEs and this counter. */
static inline uint16_t hca_rq_counter(hca_off_t dbrec)
{
    const uint32_t *word = hca_at(dbrec);

    return be32toh(__atomic_load_n(word, __ATOMIC_ACQUIRE));
}

HCA_SRQ_F void hca_recv_parse(struct hca_recv *recv, const void *wqe,
                              size_t length)
{
    const struct mlx5_wqe_data_seg *seg = wqe;
    unsigned max                        = length / sizeof(*seg);

    recv->taken       = true;
    recv->in_ring     = false;
    recv->tm_op       = 0;
    recv->num_strides = 0;
    recv->count       = 0;
    recv->length      = 0;
    for (unsigned i = 0; (i < max) && (i < HCA_RECV_SEGS); i++, seg++) {
        struct mlx5_wqe_data_seg copy = *seg;
        uint32_t bytes                = be32toh(copy.byte_count) & 0x7fffffff;

        if (be32toh(copy.lkey) == HCA_INVALID_LKEY) {
            break;
        }
        bytes = (bytes == 0) ? 1u << 31 : bytes; /* PRM: 0 is 2 GiB */
        recv->segs[i].addr   = be64toh(copy.addr);
        recv->segs[i].lkey   = be32toh(copy.lkey);
        recv->segs[i].length = bytes;
        recv->length += bytes;
        recv->count++;
    }
}

HCA_SRQ_F void hca_srq_check_limit(struct hca_srq *srq, unsigned posted)
{
    if ((srq->limit != 0) && (posted < srq->limit)) {
        srq->limit = 0;
        hca_async_event(&srq->obj, IBV_EVENT_SRQ_LIMIT_REACHED);
    }
}

/* The next WQE to take; its contents are in struct hca_recv. */
struct hca_srq_wqe {
    uint16_t posted; /* number of posted WQEs */
    uint16_t next;   /* index of the WQE behind it */
};

/* Reads the next WQE of an SRQ, but does not take it. recv->index is its index
 * in a linked list; in a cyclic SRQ the number of WQEs consumed before it, as
 * in any other ring (UCX, uct_rc_mlx5_iface_release_srq_seg()). */
HCA_SRQ_F enum hca_check hca_srq_look(struct hca_srq *srq, uint32_t qpn,
                                      struct hca_recv *recv,
                                      struct hca_srq_wqe *at)
{
    size_t stride   = (size_t)1 << srq->ring.log_stride;
    unsigned size   = 1u << srq->ring.log_cnt;
    uint16_t posted = hca_rq_counter(srq->dbrec) - srq->consumed;
    const struct mlx5_wqe_srq_next_seg *wqe;
    unsigned next;

    if (hca_pcie_is_on()) {
        hca_pcie_look(&srq->pcie, srq->consumed, srq->consumed + posted);
    }
    if (posted == 0) {
        return HCA_CHECK_NO_RECV;
    }
    if (posted > size) {
        return hca_srq_fail(srq, HCA_CHECK_SRQ_OVERRUN, qpn, posted);
    }

    wqe  = hca_at(srq->ring.buf + srq->head * stride);
    next = srq->is_cyclic ? ((srq->head + 1u) & (size - 1)) :
                            be16toh(wqe->next_wqe_index);
    if (next >= size) {
        return hca_srq_fail(srq, HCA_CHECK_SRQ_NEXT, qpn, next);
    }
    recv->index = srq->is_cyclic ? srq->consumed : srq->head;
    hca_recv_parse(recv, wqe + 1, stride - sizeof(*wqe));
    at->posted = posted;
    at->next   = next;
    return HCA_OK;
}

/* Takes the WQE. Counts first: a process killed in between loses one receive,
 * but does not consume one that was not posted. */
HCA_SRQ_F void hca_srq_pop(struct hca_srq *srq, const struct hca_srq_wqe *at)
{
    if (hca_pcie_is_on()) {
        hca_pcie_take(&srq->pcie, (size_t)srq->head << srq->ring.log_stride,
                      (size_t)1 << srq->ring.log_stride);
    }
    srq->consumed++;
    atomic_signal_fence(memory_order_seq_cst);
    srq->head = at->next;
    hca_srq_check_limit(srq, at->posted - 1);
}

/* Removes the next WQE of an SRQ whose lock is held. */
HCA_SRQ_F enum hca_check hca_srq_pull(struct hca_srq *srq, uint32_t qpn,
                                      struct hca_recv *recv)
{
    struct hca_srq_wqe at = {};
    enum hca_check check  = hca_srq_look(srq, qpn, recv, &at);

    if (check == HCA_OK) {
        hca_srq_pop(srq, &at);
    }
    return check;
}

/* hca_srq_take() from an SRQ with tag matching, whose lock is held. It has a CQ
 * of its own. Nothing was put back into it: it has no memory on demand. */
HCA_SRQ_F enum hca_check hca_srq_take_locked(const struct hca_qp *qp,
                                             struct hca_srq *srq,
                                             struct hca_recv *recv)
{
    if (srq->in_error) {
        return hca_check_recv(HCA_CHECK_SRQ, qp->obj.num, srq->obj.num);
    }
    recv->owner = hca_owner(srq->obj.proc);
    recv->pdn   = srq->pdn;
    recv->cqn   = srq->cqn;
    recv->uidx  = srq->uidx;
    return hca_srq_pull(srq, qp->obj.num, recv);
}

#endif
