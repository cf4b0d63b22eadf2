/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Receive queues. A QP's own is a ring of WQEs, each a list of data segments
 * (struct mlx5_wqe_data_seg), behind a signature segment (not checked) if the
 * QP has signatures. An SRQ is a linked list: each WQE begins with the index of
 * the next (struct mlx5_wqe_srq_next_seg), which a cyclic one does not look at.
 * A segment with lkey 0x100 ends a
 * list that is shorter than its stride.
 */
#include "hca_rq.h"
#include "hca_async.h"
#include "softhca/base/hca_log.h"

#include <endian.h>
#include <string.h>

#define HCA_INVALID_LKEY 0x100u /* MLX5_INVALID_LKEY */

/* pairs with the program's barrier between WQEs and their counter */
static uint16_t hca_rq_counter(hca_off_t dbrec)
{
    const uint32_t *word = hca_ptr(dbrec);

    return be32toh(__atomic_load_n(word, __ATOMIC_ACQUIRE));
}

static void hca_recv_parse(struct hca_recv *recv, const void *wqe,
                           size_t length)
{
    const struct mlx5_wqe_data_seg *seg = wqe;
    unsigned max = length / sizeof(*seg);

    recv->taken   = true;
    recv->in_ring = false;
    recv->tm_op   = 0;
    recv->count   = 0;
    recv->length  = 0;
    for (unsigned i = 0; (i < max) && (i < HCA_RECV_SEGS); i++, seg++) {
        struct mlx5_wqe_data_seg copy = *seg;
        uint32_t bytes = be32toh(copy.byte_count) & 0x7fffffff;

        if (be32toh(copy.lkey) == HCA_INVALID_LKEY) {
            break;
        }
        bytes = (bytes == 0) ? 1u << 31 : bytes; /* PRM: 0 is 2 GiB */
        recv->segs[i].addr   = be64toh(copy.addr);
        recv->segs[i].lkey   = be32toh(copy.lkey);
        recv->segs[i].length = bytes;
        recv->length        += bytes;
        recv->count++;
    }
}

unsigned hca_rq_posted(const struct hca_qp *qp)
{
    return (qp->rq.buf == 0) ? 0 :
           (uint16_t)(hca_rq_counter(qp->dbrec) - qp->resp.ci);
}

enum hca_check hca_rq_take(struct hca_qp *qp, struct hca_recv *recv)
{
    size_t stride   = (size_t)1 << qp->rq.log_stride;
    size_t sig_size = qp->wq_sig ? 16 : 0;
    unsigned posted = hca_rq_posted(qp);
    const uint8_t *wqe;

    if (posted == 0) {
        return HCA_CHECK_NO_RECV;
    }
    if (posted > (1u << qp->rq.log_cnt)) {
        return hca_check_recv(HCA_CHECK_RQ_OVERRUN, qp->obj.num, posted);
    }

    recv->index = qp->resp.ci;
    recv->owner = hca_owner(qp->obj.proc);
    recv->pdn   = qp->pdn;
    recv->cqn   = qp->rcqn;
    recv->uidx  = qp->uidx;
    wqe         = (const uint8_t*)hca_ptr(qp->rq.buf) +
                  ((recv->index & ((1u << qp->rq.log_cnt) - 1)) *
                   stride);
    hca_recv_parse(recv, wqe + sig_size, stride - sig_size);
    recv->in_ring = true;
    return HCA_OK;
}

void hca_rq_consume(struct hca_qp *qp, struct hca_recv *recv)
{
    if (recv->in_ring) {
        recv->in_ring = false;
        qp->resp.ci++;
    }
}

static enum hca_check hca_srq_fail(struct hca_srq *srq, enum hca_check check,
                                   uint32_t qpn, uint64_t got)
{
    srq->in_error = true;
    hca_async_event(&srq->obj, IBV_EVENT_SRQ_ERR);
    return hca_check_recv(check, qpn, got);
}

static void hca_srq_check_limit(struct hca_srq *srq, unsigned posted)
{
    if ((srq->limit != 0) && (posted < srq->limit)) {
        srq->limit = 0;
        hca_async_event(&srq->obj, IBV_EVENT_SRQ_LIMIT_REACHED);
    }
}

/* The index that its completion has is that of a list's WQE, or counts those of
 * a ring, as of any other ring (UCX, uct_rc_mlx5_iface_release_srq_seg()). */
static enum hca_check hca_srq_pop(struct hca_srq *srq, uint32_t qpn,
                                  struct hca_recv *recv)
{
    size_t stride   = (size_t)1 << srq->ring.log_stride;
    uint16_t posted = hca_rq_counter(srq->dbrec) - srq->consumed;
    struct mlx5_wqe_srq_next_seg next;
    const uint8_t *wqe;
    unsigned next_index;

    if (posted == 0) {
        return HCA_CHECK_NO_RECV;
    }
    if (posted > (1u << srq->ring.log_cnt)) {
        return hca_srq_fail(srq, HCA_CHECK_SRQ_OVERRUN, qpn, posted);
    }

    wqe = (const uint8_t*)hca_ptr(srq->ring.buf) + srq->head * stride;
    memcpy(&next, wqe, sizeof(next));
    next_index = srq->is_cyclic ?
                 (srq->head + 1u) & ((1u << srq->ring.log_cnt) - 1) :
                 be16toh(next.next_wqe_index);
    if (next_index >= (1u << srq->ring.log_cnt)) {
        return hca_srq_fail(srq, HCA_CHECK_SRQ_NEXT, qpn, next_index);
    }
    recv->index = srq->is_cyclic ? srq->consumed : srq->head;
    hca_recv_parse(recv, wqe + sizeof(next), stride - sizeof(next));
    /* counted first: who is killed in between leaves a receive that nobody
     * gets, not one that was not posted */
    srq->consumed++;
    atomic_signal_fence(memory_order_seq_cst);
    srq->head = next_index;
    hca_srq_check_limit(srq, posted - 1);
    return HCA_OK;
}

/* An XRC message names the SRQ, which has to be of the QP's domain and brings
 * its own completion queue, as one with tag matching does. No SRQ is both: an
 * XRQ has no XRC domain (xrqc, and create_xrq_cmd() of mlx5_ib sets none). */
enum hca_check hca_srq_take_locked(struct hca_qp *qp, struct hca_srq *srq,
                                   struct hca_recv *recv)
{
    bool is_xrc = (qp->type == HCA_QP_XRC_RECV);
    bool own_cq = is_xrc || (srq->tm != 0);

    if (is_xrc && (!srq->is_xrc || (srq->xrcdn != qp->xrcdn))) {
        return hca_check_recv(HCA_CHECK_XRC_DOMAIN, qp->obj.num,
                              srq->obj.num);
    }
    if (srq->in_error) {
        return hca_check_recv(HCA_CHECK_SRQ, qp->obj.num, srq->obj.num);
    }
    recv->owner = hca_owner(srq->obj.proc); /* XRC: need not be the QP's */
    recv->pdn   = srq->pdn;
    recv->cqn   = own_cq ? srq->cqn : qp->rcqn;
    recv->uidx  = own_cq ? srq->uidx : qp->uidx;
    return hca_srq_pop(srq, qp->obj.num, recv);
}

enum hca_check hca_srq_take(struct hca_qp *qp, uint32_t srqn,
                            struct hca_recv *recv)
{
    struct hca_srq *srq = hca_obj_lock(HCA_KIND_SRQ, srqn);
    enum hca_check check;

    if (srq == NULL) {
        return hca_check_recv((qp->type == HCA_QP_XRC_RECV) ?
                              HCA_CHECK_XRC_DOMAIN : HCA_CHECK_SRQ,
                              qp->obj.num, srqn);
    }
    check = hca_srq_take_locked(qp, srq, recv);
    hca_obj_unlock(srq);
    return check;
}

void hca_srq_take_tagged(const struct hca_srq *srq,
                         const struct mlx5_wqe_data_seg *seg,
                         struct hca_recv *recv)
{
    hca_recv_parse(recv, seg, sizeof(*seg));
    recv->taken = false;
    recv->index = 0;
    recv->owner = hca_owner(srq->obj.proc);
    recv->pdn   = srq->pdn;
    recv->cqn   = srq->cqn;
    recv->uidx  = srq->uidx;
}

enum hca_check hca_recv_map(const struct hca_qp *qp,
                            const struct hca_recv *recv, uint64_t length,
                            struct hca_sgl *sgl)
{
    struct hca_key_use use = {
        .pdn    = recv->pdn,
        .qpn    = qp->obj.num,
        .access = IBV_ACCESS_LOCAL_WRITE,
        .dev    = qp->obj.dev,
    };
    enum hca_key_fault fault;

    if (length > recv->length) {
        return hca_check_recv(HCA_CHECK_RECV_LEN, qp->obj.num, length);
    }
    for (unsigned i = 0; length > 0; i++) {
        use.key    = recv->segs[i].lkey;
        use.addr   = recv->segs[i].addr;
        use.length = (recv->segs[i].length < length) ? recv->segs[i].length :
                                                       length;
        fault = hca_sgl_add_key(sgl, &use);
        if (fault != HCA_KEY_OK) {
            return hca_check_recv(HCA_CHECK_RECV_LKEY + fault - 1, qp->obj.num,
                                  (fault == HCA_KEY_BOUNDS) ? use.addr :
                                                              use.key);
        }
        length -= use.length;
    }
    return HCA_OK;
}
