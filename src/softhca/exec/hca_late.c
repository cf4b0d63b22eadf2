/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * See hca_late.h. The list of a send queue is in the order of execution. Of a
 * DCI with streams it has only what brings a result: the others are kept in
 * order by hca_stream.c.
 */
#include "hca_late.h"
#include "hca_completer.h"
#include "hca_qp.h"
#include "hca_sq.h"
#include "hca_stream.h"
#include "softhca/base/hca_log.h"
#include "softhca/wqe/hca_wqe_mem.h"

#include <stdlib.h>

#define HCA_LATE_MAX_US 100000

uint64_t hca_late_ns;

void hca_late_init(void)
{
    const char *value = getenv("SOFTHCA_DELAY");
    unsigned long us;
    char *end;

    if (value == NULL) {
        return;
    }
    us = strtoul(value, &end, 10);
    if ((*value < '0') || (*value > '9') || (*end != '\0') ||
        (us > HCA_LATE_MAX_US)) {
        hca_error("SOFTHCA_DELAY=%s: use 0 to %u (microseconds)", value,
                  HCA_LATE_MAX_US);
        return;
    }
    hca_late_ns = us * 1000;
}

static void hca_late_arm(struct hca_qp *qp)
{
    qp->req.ticking = true;
    hca_timer_arm(&qp->req.sq->timer, hca_time_ns() + hca_late_ns);
}

bool hca_late_is_due(struct hca_qp *qp)
{
    if (qp->req.due || (hca_qp_state(qp) != IBV_QPS_RTS)) {
        return true;
    }
    if (!qp->req.waiting && !qp->req.ticking && (hca_qp_sq_posted(qp) > 0)) {
        hca_late_arm(qp);
    }
    return false;
}

struct hca_late *hca_late_new(const struct hca_wqe *wqe)
{
    struct hca_late *late = malloc(sizeof(*late) + wqe->length);

    if (late != NULL) {
        late->wqe        = *wqe;
        late->next       = NULL;
        late->has_result = true;
        late->to_cqe     = false;
        late->is_old     = false;
        late->flushed    = false;
    }
    return late;
}

/* Waits for the results before it, as a WQE does that has none of its own. A NOP
 * waits with a fence alone (UCX posts its own with one). */
static struct hca_late *hca_late_behind(const struct hca_wqe *wqe)
{
    struct hca_wqe empty  = {.length = 0};
    struct hca_late *late = hca_late_new(&empty);

    if (late != NULL) {
        late->wqe        = *wqe;
        late->has_result = false;
    }
    return late;
}

bool hca_late_add(struct hca_qp *qp, const struct hca_wqe *wqe,
                  struct hca_late *late)
{
    struct hca_late **link = &qp->req.sq->late;

    if ((late == NULL) && !qp->has_streams && (*link != NULL) &&
        (wqe->opcode != MLX5_OPCODE_NOP)) {
        late = hca_late_behind(wqe);
        if (late == NULL) {
            hca_late_finish(qp);
        }
    }
    if (late == NULL) {
        return false;
    }
    while (*link != NULL) {
        link = &(*link)->next;
    }
    *link = late;
    qp->req.num_late++;
    return true;
}

/* --- completion ----------------------------------------------------------- */

static enum hca_check hca_late_scatter(struct hca_qp *qp,
                                       struct hca_late *late)
{
    if (!late->has_result) {
        return HCA_OK;
    }
    qp->req.reads -= (qp->req.reads > 0);
    return late->to_cqe ? HCA_OK :
           hca_wqe_mem_scatter(qp, &late->wqe, late->result);
}

/* What was executed after it is flushed. */
static void hca_late_fail(struct hca_qp *qp, const struct hca_late *late,
                          enum hca_check check)
{
    hca_completer_send_error(qp, &late->wqe, check, check);
    for (struct hca_late *next = qp->req.sq->late; next != NULL;
         next = next->next) {
        next->flushed = true;
    }
    hca_qp_fail_requester(qp);
}

static void hca_late_complete(struct hca_qp *qp, struct hca_late *late)
{
    enum hca_check check = late->flushed ? HCA_CHECK_FLUSH :
                                           hca_late_scatter(qp, late);

    if (qp->has_streams) {
        hca_stream_executed(qp, late->wqe.idx, check);
    } else if (check != HCA_OK) {
        hca_late_fail(qp, late, check);
    } else if (hca_wqe_is_signaled(&late->wqe) &&
               (hca_completer_send(qp, &late->wqe,
                                   late->to_cqe ? late->result : NULL) !=
                HCA_OK)) {
        hca_qp_fail_fatal(qp);
    }
}

/* Those that `which` is true for, in their order */
static void hca_late_run(struct hca_qp *qp,
                         bool (*which)(const struct hca_late *late,
                                       const struct hca_wqe *wqe),
                         const struct hca_wqe *wqe)
{
    struct hca_late **link = &qp->req.sq->late, *late;

    while ((late = *link) != NULL) {
        if (which(late, wqe)) {
            *link = late->next;
            qp->req.num_late--;
            hca_late_complete(qp, late);
            free(late);
        } else {
            link = &late->next;
        }
    }
}

static bool hca_late_is_any(const struct hca_late *late,
                            const struct hca_wqe *wqe)
{
    (void)late;
    (void)wqe;
    return true;
}

static bool hca_late_is_old(const struct hca_late *late,
                            const struct hca_wqe *wqe)
{
    (void)wqe;
    return late->is_old;
}

/* A fence holds within its stream. */
static bool hca_late_is_of_stream(const struct hca_late *late,
                                  const struct hca_wqe *wqe)
{
    return late->wqe.stream == wqe->stream;
}

void hca_late_finish(struct hca_qp *qp)
{
    hca_late_run(qp, hca_late_is_any, NULL);
    qp->req.reads = 0;
}

void hca_late_before(struct hca_qp *qp, const struct hca_wqe *wqe)
{
    if ((wqe->op->flags & HCA_OP_DATA_IN) &&
        (qp->req.reads >= hca_qp_rd_limit(qp->attr.max_rd_atomic))) {
        hca_late_finish(qp);
    } else if (hca_wqe_is_fenced(wqe)) {
        qp->has_streams ? hca_late_run(qp, hca_late_is_of_stream, wqe) :
                          hca_late_finish(qp);
    }
}

/* A queue that waits for its peer does not wait for its own results. */
void hca_late_tick(struct hca_qp *qp)
{
    hca_late_run(qp, qp->req.waiting ? hca_late_is_any : hca_late_is_old,
                 NULL);
    for (struct hca_late *late = qp->req.sq->late; late != NULL;
         late = late->next) {
        late->is_old = true;
    }
    if ((hca_qp_state(qp) == IBV_QPS_RTS) && !qp->req.waiting &&
        ((qp->req.sq->late != NULL) || (hca_qp_sq_posted(qp) > 0))) {
        hca_late_arm(qp);
    }
}

void hca_late_drop(struct hca_qp *qp)
{
    struct hca_late *late;

    while ((late = qp->req.sq->late) != NULL) {
        qp->req.sq->late = late->next;
        free(late);
    }
    qp->req.num_late = 0;
}
