/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/* A device that executes late: see hca_late.h. */
#include "hca_late.h"
#include "hca_stream.h"
#include "softhca/fabric/hca_caps.h"
#include "softhca/resp/hca_qp.h"
#include "softhca/wqe/hca_wqe_mem.h"

#define HCA_LATE_ANY (-1) /* any stream */

uint64_t hca_late_ns;

void hca_late_init(void)
{
    hca_caps_us("SOFTHCA_DELAY", &hca_late_ns);
}

static void hca_late_arm(struct hca_qp *qp)
{
    qp->req.ticking = true;
    hca_timer_arm(&hca_sq_of(qp)->timer, hca_time_ns() + hca_late_ns);
}

bool hca_late_is_due(struct hca_qp *qp)
{
    if (qp->req.due || (hca_qp_state(qp) != IBV_QPS_RTS)) {
        return true;
    }
    if (!qp->req.ticking && (hca_qp_sq_posted(qp) > 0)) {
        hca_late_arm(qp);
    }
    return false;
}

/* Writes a late result to memory, unless it goes into the CQE, and completes
 * its WQE. */
static void hca_late_complete(struct hca_qp *qp, uint16_t idx,
                              const struct hca_stream_wqe *entry)
{
    const struct hca_result *result = entry->result;
    enum hca_check check            = HCA_OK;

    qp->req.reads -= (qp->req.reads > 0);
    if ((entry->check == HCA_OK) && !entry->to_cqe) {
        check = hca_wqe_mem_scatter(qp, &result->wqe, result->data);
    }
    hca_stream_executed(qp, idx, check);
}

/* Completes late WQEs, in the order of the ring.
 * @param stream  only those of this one, or HCA_LATE_ANY */
static void hca_late_run(struct hca_qp *qp, int stream, bool only_old)
{
    uint16_t idx = qp->req.ci, end = idx + qp->req.fetched, next;

    if (hca_qp_state(qp) == IBV_QPS_RESET) {
        return; /* the device has failed */
    }
    for (; idx != end; idx = next) {
        struct hca_stream_wqe *entry = hca_stream_wqe(qp, idx);

        next = idx + entry->blocks;
        if (hca_stream_is_late(entry) && (!only_old || entry->result->is_old) &&
            ((stream == HCA_LATE_ANY) || (stream == entry->stream))) {
            hca_late_complete(qp, idx, entry);
        }
    }
}

void hca_late_finish(struct hca_qp *qp)
{
    hca_late_run(qp, HCA_LATE_ANY, false);
    qp->req.reads = 0;
}

/* Completes late results that the WQE must wait for: all if it reads and as
 * many reads as may be are under way, else those of its stream if it is
 * fenced. */
void hca_late_before(struct hca_qp *qp, const struct hca_wqe *wqe)
{
    if ((wqe->op->flags & HCA_OP_DATA_IN) &&
        (qp->req.reads >= hca_qp_rd_limit(qp->attr.max_rd_atomic))) {
        hca_late_finish(qp);
    } else if (hca_wqe_is_fenced(wqe)) {
        hca_late_run(qp, hca_stream_wqe(qp, wqe->idx)->stream, false);
    }
}

/* Marks all late results as old. @return true if there is any. */
static bool hca_late_age(struct hca_qp *qp)
{
    uint16_t idx = qp->req.ci, end = idx + qp->req.fetched;
    bool is_any = false;

    while (idx != end) {
        struct hca_stream_wqe *entry = hca_stream_wqe(qp, idx);

        if (hca_stream_is_late(entry)) {
            entry->result->is_old = is_any = true;
        }
        idx += entry->blocks;
    }
    return is_any;
}

void hca_late_tick(struct hca_qp *qp)
{
    hca_late_run(qp, HCA_LATE_ANY, true);
    if (hca_late_age(qp) && (hca_qp_state(qp) == IBV_QPS_RTS)) {
        hca_late_arm(qp);
    }
}
