/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Receive queues. A QP's own is a ring of WQEs, each a list of data segments
 * (struct mlx5_wqe_data_seg), behind a signature segment (not checked) if the
 * QP has signatures. An SRQ is a linked list: each WQE begins with the index of
 * the next (struct mlx5_wqe_srq_next_seg), which a cyclic SRQ ignores. A
 * segment with lkey 0x100 ends a list that is shorter than its stride.
 *
 * A WQE of an SRQ with strides is for many packets, each of which begins with
 * the WQE's next stride. The strides lie one behind the other in the memory of
 * its segments; one stride may be in two segments.
 */
#include "hca_rq.h"
#include "hca_srq_take.h"
#include "softhca/base/hca_log.h"
#include "softhca/doorbell/hca_trap.h"

#include <common/prm.h>
#include <endian.h>
#include <string.h>

unsigned hca_rq_posted(const struct hca_qp *qp)
{
    return (qp->rq.buf == 0) ?
               0 :
               (uint16_t)(hca_rq_counter(qp->dbrec) - qp->resp.ci);
}

enum hca_check hca_rq_take(struct hca_qp *qp, struct hca_recv *recv)
{
    size_t stride   = (size_t)1 << qp->rq.log_stride;
    size_t sig_size = qp->wq_sig ? 16 : 0;
    unsigned posted = hca_rq_posted(qp);
    const uint8_t *wqe;
    unsigned slot;

    if (hca_pcie_is_on()) {
        hca_pcie_look(&qp->pcie, qp->resp.ci, qp->resp.ci + posted);
    }
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
    slot        = recv->index & ((1u << qp->rq.log_cnt) - 1);
    wqe         = hca_at(qp->rq.buf + slot * stride);
    hca_recv_parse(recv, wqe + sig_size, stride - sig_size);
    recv->in_ring = true;
    return HCA_OK;
}

static void hca_rq_count(struct hca_qp *qp, uint16_t index)
{
    unsigned slot = index & ((1u << qp->rq.log_cnt) - 1);

    hca_pcie_take(&qp->pcie, (size_t)slot << qp->rq.log_stride,
                  (size_t)1 << qp->rq.log_stride);
}

void hca_rq_consume(struct hca_qp *qp, struct hca_recv *recv)
{
    recv->in_ring = false;
    qp->resp.ci++;
    if (hca_pcie_is_on()) {
        hca_rq_count(qp, recv->index);
    }
}

/* Checks the SRQ and sets the fields of @recv that do not depend on the WQE. An
 * SRQ for XRC, which must be of the QP's domain, has a CQ of its own, as one
 * with tag matching has. No SRQ is both: the context of an XRQ (xrqc in
 * mlx5_ifc.h) has no XRC domain. */
HCA_SRQ_F enum hca_check hca_srq_prepare(const struct hca_qp *qp,
                                         const struct hca_srq *srq,
                                         struct hca_recv *recv)
{
    bool is_xrc = (qp->type == HCA_QP_XRC_RECV);
    bool own_cq = is_xrc || (srq->tm != 0);

    if (is_xrc && (!srq->is_xrc || (srq->xrcdn != qp->xrcdn))) {
        return hca_check_recv(HCA_CHECK_XRC_DOMAIN, qp->obj.num, srq->obj.num);
    }
    if (srq->in_error) {
        return hca_check_recv(HCA_CHECK_SRQ, qp->obj.num, srq->obj.num);
    }
    recv->owner = hca_owner(srq->obj.proc); /* XRC: need not be the QP's */
    recv->pdn   = srq->pdn;
    recv->cqn   = own_cq ? srq->cqn : qp->rcqn;
    recv->uidx  = own_cq ? srq->uidx : qp->uidx;
    return HCA_OK;
}

/* Takes a WQE that was put back. It stays counted as consumed: it is in the
 * list no longer. A process killed in between loses one receive. */
static __attribute__((noinline)) enum hca_check
hca_srq_take_returned(struct hca_srq *srq, struct hca_recv *recv)
{
    size_t stride = (size_t)1 << srq->ring.log_stride;
    unsigned last = (srq->num_returned - 1u) % HCA_SRQ_RETURNED;
    const struct mlx5_wqe_srq_next_seg *wqe;

    recv->index       = srq->returned[last] & ((1u << srq->ring.log_cnt) - 1);
    srq->num_returned = last;
    wqe               = hca_at(srq->ring.buf + recv->index * stride);
    hca_recv_parse(recv, wqe + 1, stride - sizeof(*wqe));
    return HCA_OK;
}

enum hca_check hca_srq_put_back(const struct hca_qp *qp, uint32_t srqn,
                                struct hca_recv *recv)
{
    struct hca_srq *srq = hca_obj_lock(HCA_KIND_SRQ, srqn);
    bool is_full;

    if (srq == NULL) {
        return hca_check_recv(HCA_CHECK_SRQ, qp->obj.num, srqn);
    }
    is_full = (srq->num_returned >= HCA_SRQ_RETURNED);
    if (!is_full) {
        srq->returned[srq->num_returned] = recv->index;
        atomic_signal_fence(memory_order_seq_cst);
        srq->num_returned++;
        recv->taken = false;
    }
    hca_obj_unlock(srq);
    return is_full ? HCA_OK : HCA_PAGE_FAULT;
}

enum hca_check hca_srq_take(struct hca_qp *qp, uint32_t srqn,
                            struct hca_recv *recv)
{
    struct hca_srq *srq = hca_obj_lock(HCA_KIND_SRQ, srqn);
    enum hca_check check;

    if (srq == NULL) {
        return hca_check_recv((qp->type == HCA_QP_XRC_RECV) ?
                                  HCA_CHECK_XRC_DOMAIN :
                                  HCA_CHECK_SRQ,
                              qp->obj.num, srqn);
    }
    check = hca_srq_prepare(qp, srq, recv);
    if (check == HCA_OK) {
        check = __builtin_expect(srq->num_returned > 0, 0) ?
                    hca_srq_take_returned(srq, recv) :
                    hca_srq_pull(srq, qp->obj.num, recv);
    }
    hca_obj_unlock(srq);
    return check;
}

/* A message without data accesses no mkey. */
void hca_srq_prefetch(uint32_t srqn, struct hca_owner owner, uint64_t length)
{
    const struct hca_srq *srq = hca_obj_peek(HCA_KIND_SRQ, srqn);
    struct mlx5_wqe_data_seg seg;
    const char *wqe;

    if ((srq == NULL) || (length == 0) || (owner.proc == hca_self)) {
        return;
    }
    wqe = hca_at(srq->ring.buf + ((size_t)srq->head << srq->ring.log_stride));
    if (hca_trap_guard_memcpy(&seg, wqe + sizeof(struct mlx5_wqe_srq_next_seg),
                              sizeof(seg)) == 0) {
        hca_mem_prefetch(owner, (const void *)be64toh(seg.addr), length);
    }
}

/* --- strides -------------------------------------------------------------- */

/* Reduces @recv to its @length bytes from @offset on, which it has. */
static void hca_recv_cut(struct hca_recv *recv, uint64_t offset,
                         uint64_t length)
{
    unsigned i = 0;

    while (offset >= recv->segs[i].length) {
        offset -= recv->segs[i++].length;
    }
    recv->count -= i;
    memmove(recv->segs, recv->segs + i, recv->count * sizeof(recv->segs[0]));
    recv->segs[0].addr += offset;
    recv->segs[0].length -= offset;
    recv->length = length;
}

/* Finds the WQE with the next stride. A WQE without strides left, whose process
 * died after taking the last, is skipped. */
static enum hca_check hca_srq_look_strides(struct hca_srq *srq, uint32_t qpn,
                                           struct hca_recv *recv,
                                           struct hca_srq_wqe *at)
{
    enum hca_check check = hca_srq_look(srq, qpn, recv, at);

    if ((check == HCA_OK) && (srq->strides.next >= srq->strides.number)) {
        hca_srq_pop(srq, at);
        srq->strides.next = 0;
        check             = hca_srq_look(srq, qpn, recv, at);
    }
    return check;
}

/* Takes strides. A WQE without further ones is popped before its count is
 * reset: see hca_srq_pop(). */
static void hca_srq_count_strides(struct hca_srq *srq,
                                  const struct hca_srq_wqe *at, uint32_t count)
{
    srq->strides.next += count;
    if (srq->strides.next == srq->strides.number) {
        hca_srq_pop(srq, at);
        atomic_signal_fence(memory_order_seq_cst);
        srq->strides.next = 0;
    }
}

/* Returns the strides of a packet. One without data takes a stride, too. */
static uint64_t hca_num_strides(unsigned log_size, uint64_t length)
{
    return (length == 0) ? 1 : ((length - 1) >> log_size) + 1;
}

enum hca_check hca_srq_take_strides(struct hca_qp *qp, struct hca_srq *srq,
                                    uint64_t length, struct hca_recv *recv)
{
    uint32_t number       = srq->strides.number;
    unsigned log_size     = srq->strides.log_size % 32;
    uint64_t need         = hca_num_strides(log_size, length);
    struct hca_srq_wqe at = {};
    enum hca_check check;
    uint32_t left;

    recv->taken = false;
    check       = hca_srq_prepare(qp, srq, recv);
    if (check == HCA_OK) {
        check = hca_srq_look_strides(srq, qp->obj.num, recv, &at);
    }
    if (check != HCA_OK) {
        return check;
    }
    left              = number - srq->strides.next;
    recv->stride      = srq->strides.next;
    recv->num_strides = (need <= left) ? need : left;
    recv->mp_flags    = (need <= left) ? 0 : PRM_CQE_MP_FILLER;
    hca_srq_count_strides(srq, &at, recv->num_strides);
    if (recv->length < (uint64_t)number << log_size) {
        return hca_check_recv(HCA_CHECK_STRIDES, qp->obj.num, recv->length);
    }
    if (need > number) {
        return hca_check_recv(HCA_CHECK_RECV_LEN, qp->obj.num, length);
    }
    hca_recv_cut(recv, (uint64_t)recv->stride << log_size,
                 (uint64_t)recv->num_strides << log_size);
    return HCA_OK;
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
        fault      = hca_sgl_add_key(sgl, &use);
        if (fault != HCA_KEY_OK) {
            return hca_check_recv(HCA_CHECK_RECV_LKEY + fault - 1, qp->obj.num,
                                  (fault == HCA_KEY_BOUNDS) ? use.addr :
                                                              use.key);
        }
        length -= use.length;
    }
    return (__builtin_expect(sgl->on_demand, 0) && qp->has_tm) ?
               hca_check_recv(HCA_CHECK_RECV_LKEY_ODP, qp->obj.num,
                              IBV_ODP_SUPPORT_SRQ_RECV) :
               HCA_OK;
}

enum hca_check hca_recv_check_cqe(const struct hca_qp *qp,
                                  const struct hca_recv *recv)
{
    for (unsigned i = 0; i < recv->count; i++) {
        const struct hca_mkey *key = hca_obj_peek(HCA_KIND_MKEY,
                                                  recv->segs[i].lkey >> 8);

        if ((key != NULL) && (key->type == HCA_MKEY_INDIRECT)) {
            return hca_check_recv(HCA_CHECK_CQE_KEY, qp->obj.num,
                                  recv->segs[i].lkey);
        }
    }
    return HCA_OK;
}
