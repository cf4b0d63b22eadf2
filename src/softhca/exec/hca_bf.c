/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * BlueFlame: see hca_bf.h. A WQE pushed to a register (collected by
 * doorbell/hca_push.c) is compared with the ring before it rings: one that
 * differs is not executed. If its first eight bytes rang, as a doorbell does,
 * it has been executed by then.
 */
#include "hca_bf.h"
#include "hca_requester.h"
#include "hca_sq.h"
#include "softhca/base/hca_mutex.h"
#include "softhca/obj/hca_pcie.h"
#include "softhca/resp/hca_qp.h"
#include "softhca/wqe/hca_wqe.h"

#include <common/prm.h>
#include <endian.h>

__thread struct hca_bf_wqe hca_bf_running;

struct hca_bf_wqe hca_bf_wqe(const uint64_t *data)
{
    uint64_t head = be64toh(__atomic_load_n(data, __ATOMIC_RELAXED));

    return (struct hca_bf_wqe){
        .qpn  = (uint32_t)head >> 8,
        .idx  = ((uint32_t)(head >> 32) & PRM_CTRL_IDX) >> 8,
        .size = (head & PRM_CTRL_DS) * 16,
    };
}

/* Puts the queue in error, with an event: no completion can report it, as the
 * WQE may have been executed and have one. */
static void hca_bf_fail(struct hca_qp *qp, const struct hca_bf_wqe *wqe,
                        enum hca_check check, unsigned pos)
{
    hca_mutex_lock(&qp->sq_lock);
    if ((atomic_load(&qp->obj.num) == wqe->qpn) && (hca_sq_of(qp) != NULL)) {
        hca_check_wqe(check, wqe->qpn, wqe->idx, pos);
        hca_qp_fail_fatal(qp);
        hca_requester_run_locked(qp);
    }
    hca_mutex_unlock(&qp->sq_lock);
}

/* Returns the offset of the first octoword that differs from the ring's; the
 * size if none does. Bytes behind the WQE, up to whole blocks, are ignored. The
 * program may change both meanwhile. */
static unsigned hca_bf_compare(const struct hca_qp *qp, const uint64_t *data,
                               const struct hca_bf_wqe *wqe)
{
    const uint64_t *ring = hca_at(qp->sq.buf);
    size_t mask = ((size_t)HCA_BB_SIZE << qp->sq.log_cnt) / sizeof(*ring) - 1;
    size_t at   = (size_t)wqe->idx * HCA_BB_SIZE / sizeof(*ring);
    unsigned pos;

    for (pos = 0; pos < wqe->size; pos += 16, at += 2, data += 2) {
        if ((ring[at & mask] != data[0]) ||
            (ring[(at + 1) & mask] != data[1])) {
            break;
        }
    }
    return pos;
}

/* Executes a WQE that was compared: @pos is the offset of the first octoword
 * that differs, or the size. */
static void hca_bf_run(struct hca_qp *qp, const struct hca_bf_wqe *wqe,
                       unsigned pos, bool has_rung)
{
    if (pos < wqe->size) {
        hca_bf_fail(qp, wqe, HCA_CHECK_BF_COPY, pos);
        return;
    }
    if (hca_pcie_is_on()) {
        hca_pcie_push(&qp->pcie, wqe->size, has_rung);
    }
    if (has_rung) {
        return;
    }
    hca_bf_running      = *wqe;
    hca_bf_running.size = (wqe->size + HCA_BB_SIZE - 1) & ~(HCA_BB_SIZE - 1);
    hca_requester_run(qp, wqe->qpn);
    hca_bf_running.qpn = 0;
}

void hca_bf_push(struct hca_qp *qp, struct hca_push *push, unsigned half,
                 const struct hca_bf_wqe *wqe)
{
    bool has_rung = !(push->words[half] & 1);
    unsigned pos  = hca_bf_compare(qp, push->data[half], wqe);

    hca_push_end(push, half);
    hca_bf_run(qp, wqe, pos, has_rung);
}

void hca_bf_push_block(struct hca_qp *qp, const uint64_t *block,
                       const struct hca_bf_wqe *wqe)
{
    hca_bf_run(qp, wqe, hca_bf_compare(qp, block, wqe), false);
}

void hca_bf_fail_short(uint32_t uar, struct hca_push *push, unsigned half)
{
    struct hca_bf_wqe wqe = hca_bf_wqe(push->data[half]);
    struct hca_qp *qp     = hca_obj_peek(HCA_KIND_QP, wqe.qpn);

    if (push->words[half] == 0) {
        return;
    }
    hca_push_end(push, half);
    if ((qp != NULL) && (qp->obj.proc == hca_self) && (qp->uar == uar)) {
        hca_bf_fail(qp, &wqe, HCA_CHECK_BF_SHORT, wqe.size);
    }
}
