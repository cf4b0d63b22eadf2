/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * A DCI with streams: several conversations share one send queue. Each is in
 * order, and none waits for another's peer; completions keep the order of the
 * queue. This replaces the loop of hca_requester.c, also for queues without
 * streams on a device that is late or out of order (hca_stream.h).
 *
 * Behaviour of streams: mlx5dv_create_qp(3), mlx5dv_wr_post(3) and
 * mlx5dv_dci_stream_id_reset(3). In detail:
 *
 * WQEs are fetched in the order of the ring. One whose stream waits (RNR, no
 * answer) stays behind with it; others go on, as long as the streams that wait
 * are fewer than 2^log_streams. A stream is any number of 16 bits: rdma-core's
 * own tests (test_mlx5_dc.py) and UCX use more than there are at once.
 *
 * Out of order (hca_order.h), a WQE may wait for the next one of its stream,
 * which is executed before it; an error of that one is reported in its turn.
 */
#include "hca_stream.h"
#include "hca_late.h"
#include "hca_order.h"
#include "hca_request.h"
#include "softhca/resp/hca_qp.h"

#include <string.h>

/* Time between two looks if a queue that waits is in error */
#define HCA_STREAM_LOOK_NS 20000000ull

static struct hca_stream *hca_stream_waiting(const struct hca_streams *streams,
                                             uint16_t id)
{
    for (unsigned i = 0; i < streams->num_waiting; i++) {
        if (streams->waiting[i].id == id) {
            return &streams->waiting[i];
        }
    }
    return NULL;
}

/* Returns the basic blocks rung from @idx on; with streams, of that WQE. */
static uint16_t hca_stream_posted(const struct hca_qp *qp, uint16_t idx)
{
    return qp->has_streams ?
               hca_stream_wqe(qp, idx)->blocks :
               hca_qp_sq_posted(qp) - (uint16_t)(idx - qp->req.ci);
}

/* Executes a fetched WQE. @return HCA_OK, HCA_WAIT, or its error. */
static enum hca_check hca_stream_try(struct hca_request *rq, uint16_t idx)
{
    struct hca_stream_wqe *entry = hca_stream_wqe(rq->qp, idx);
    enum hca_check check;

    check = hca_request_execute(rq, idx, hca_stream_posted(rq->qp, idx));
    if (check != HCA_OK) {
        return check;
    }
    entry->signaled = hca_wqe_is_signaled(&rq->wqe);
    entry->fenced   = hca_wqe_is_fenced(&rq->wqe);
    entry->to_cqe   = rq->to_cqe;
    entry->length   = rq->wqe.length;
    entry->result   = rq->result;
    if (entry->signaled && (hca_late_ns == 0)) {
        rq->qp->req.reads = 0;
    }
    if ((hca_late_ns == 0) || (rq->result == NULL)) {
        hca_stream_finish(entry, HCA_OK, HCA_OK);
    }
    /* no result of it is to come (hca_late.c) */
    if ((hca_late_ns != 0) && (rq->result == NULL) &&
        (rq->wqe.op->flags & HCA_OP_DATA_IN)) {
        rq->qp->req.reads -= (rq->qp->req.reads > 0);
    }
    return HCA_OK;
}

/* Executes a fetched WQE, and records its error.
 * @return nanoseconds to wait before the next try; 0: there is none. */
static uint64_t hca_stream_execute(struct hca_qp *qp, uint16_t idx,
                                   struct hca_tries *tries)
{
    struct hca_request rq;
    enum hca_check check;

    rq.qp    = qp;
    rq.tries = tries;
    check    = hca_stream_try(&rq, idx);
    if (check == HCA_WAIT) {
        return rq.wait_ns;
    }
    if (check != HCA_OK) {
        hca_stream_finish(hca_stream_wqe(qp, idx), check,
                          (rq.ack.check != HCA_OK) ? rq.ack.check : check);
        hca_stream_fail(qp, idx, check);
    }
    return 0;
}

/* Executes a WQE whose stream does not wait. Afterwards it may wait. */
static void hca_stream_begin(struct hca_qp *qp, uint16_t idx)
{
    struct hca_streams *streams  = hca_stream_of(qp);
    struct hca_stream *stream    = &streams->waiting[streams->num_waiting];
    struct hca_stream_wqe *entry = hca_stream_wqe(qp, idx);
    uint64_t wait_ns             = HCA_ORDER_HOLD_NS;

    *stream      = (struct hca_stream){.id = entry->stream, .idx = idx};
    stream->held = (hca_order != HCA_ORDER_IBTA) &&
                   hca_order_holds(qp, idx, entry->blocks,
                                   streams->num_waiting);
    if (!stream->held) {
        wait_ns = hca_stream_execute(qp, idx, &stream->tries);
    }
    if (wait_ns != 0) {
        stream->due = hca_time_ns() + wait_ns;
        streams->num_waiting++;
    }
}

/* Executes again the WQE that a stream waits for, then those behind it, or
 * flushes these if it failed. @return true if it waits again. */
static bool hca_stream_retry(struct hca_qp *qp, struct hca_stream *stream)
{
    struct hca_stream_wqe *entry = hca_stream_wqe(qp, stream->idx);
    uint64_t wait_ns;

    if ((entry->stream != stream->id) || entry->done ||
        (entry->result != NULL)) {
        return false;
    }
    if ((entry->check != HCA_OK) ||
        (hca_stream_errored(hca_stream_of(qp), stream->id) != NULL)) {
        hca_stream_finish(entry, HCA_CHECK_FLUSH, HCA_CHECK_FLUSH);
        return false;
    }
    wait_ns     = hca_stream_execute(qp, stream->idx, &stream->tries);
    stream->due = hca_time_ns() + wait_ns;
    return wait_ns != 0;
}

/* Executes the WQE that passes its stream's current one. An error is reported
 * in its own turn. @return true if it waits. */
static bool hca_stream_pass(struct hca_qp *qp, struct hca_stream *stream)
{
    struct hca_request rq;

    rq.qp    = qp;
    rq.tries = &stream->tries;
    if ((hca_qp_state(qp) == IBV_QPS_RTS) &&
        (hca_stream_errored(hca_stream_of(qp), stream->id) == NULL) &&
        (hca_stream_try(&rq, stream->passing_idx) == HCA_WAIT)) {
        stream->due = hca_time_ns() + rq.wait_ns;
        return true;
    }
    memset(&stream->tries, 0, sizeof(stream->tries));
    return false;
}

/* Continues a stream that is due. @return true if it waits again. */
static bool hca_stream_resume(struct hca_qp *qp, struct hca_stream *stream)
{
    uint16_t end = qp->req.ci + qp->req.fetched;

    stream->held    = false;
    stream->passing = stream->passing && hca_stream_pass(qp, stream);
    if (stream->passing) {
        return true;
    }
    while ((stream->idx != end) && (hca_qp_state(qp) == IBV_QPS_RTS)) {
        if (hca_stream_retry(qp, stream)) {
            return true;
        }
        memset(&stream->tries, 0, sizeof(stream->tries));
        stream->idx += hca_stream_wqe(qp, stream->idx)->blocks;
    }
    return false;
}

/* Continues each stream that is due.
 * @return the time when another is due, 0: none is. */
static uint64_t hca_stream_resume_due(struct hca_qp *qp)
{
    struct hca_streams *streams = hca_stream_of(qp);
    uint64_t next               = 0;
    unsigned i                  = 0;

    while (i < streams->num_waiting) {
        struct hca_stream *stream = &streams->waiting[i];

        if ((stream->due <= hca_time_ns()) && !hca_stream_resume(qp, stream)) {
            *stream = streams->waiting[--streams->num_waiting];
            continue;
        }
        next = ((next == 0) || (stream->due < next)) ? stream->due : next;
        i++;
    }
    return next;
}

/* Executes a held WQE and the one at @idx behind it, in the order chosen. */
static void hca_stream_meet(struct hca_qp *qp, struct hca_stream *stream,
                            uint16_t idx)
{
    uint16_t held_blocks = hca_stream_wqe(qp, stream->idx)->blocks;
    uint16_t blocks      = hca_stream_wqe(qp, idx)->blocks;

    stream->passing     = hca_order_passes(qp, stream->idx, held_blocks, idx,
                                           blocks);
    stream->passing_idx = idx;
    stream->due         = 0;
    hca_stream_resume_due(qp);
}

/* Fetches the next WQE of the ring. If one cannot be read, its stream and its
 * end are unknown: all that was rung is taken for one WQE. Nothing is fetched
 * if the doorbell record is wrong, as that would overwrite an entry in use; the
 * next run reports it (hca_requester.c).
 * @return false if there is none, or too many streams wait. */
static bool hca_stream_fetch(struct hca_qp *qp)
{
    struct hca_streams *streams  = hca_stream_of(qp);
    uint16_t idx                 = qp->req.ci + qp->req.fetched;
    uint16_t rung                = hca_qp_sq_posted(qp);
    uint16_t posted              = rung - qp->req.fetched;
    struct hca_stream_wqe *entry = hca_stream_wqe(qp, idx);
    struct hca_stream *waiting;
    bool is_read, is_errored;
    struct hca_wqe wqe;

    if ((rung <= qp->req.fetched) || (rung > streams->mask + 1u)) {
        return false;
    }
    hca_wqe_peek(&wqe, qp, idx, posted);
    is_read    = wqe.blocks > 0;
    is_errored = is_read && (hca_stream_errored(streams, wqe.stream) != NULL);
    waiting    = is_read ? hca_stream_waiting(streams, wqe.stream) : NULL;
    if (!is_errored && (waiting == NULL) &&
        (streams->num_waiting == streams->max_waiting)) {
        return false;
    }
    *entry = (struct hca_stream_wqe){
        .stream = wqe.stream,
        .opcode = wqe.opcode,
        .blocks = is_read ? wqe.blocks : posted,
    };
    qp->req.fetched += entry->blocks;
    if (is_errored) {
        hca_stream_finish(entry, HCA_CHECK_FLUSH, HCA_CHECK_FLUSH);
    } else if (waiting == NULL) {
        hca_stream_begin(qp, idx);
    } else if (waiting->held) {
        hca_stream_meet(qp, waiting, idx);
    }
    return true;
}

/* Arms the timer for the next try. It also looks if another process has put
 * this queue in error, which cannot flush fetched WQEs (hca_requester.c). That
 * does not happen to a queue with streams: an initiator receives nothing. */
static void hca_stream_arm(struct hca_qp *qp, uint64_t due)
{
    uint64_t look = hca_time_ns() + HCA_STREAM_LOOK_NS;

    hca_timer_arm(&hca_sq_of(qp)->timer,
                  (!qp->has_streams && (look < due)) ? look : due);
}

/* Fetches again after a stream has stopped waiting, as it makes room for
 * another. */
void hca_stream_run(struct hca_qp *qp)
{
    struct hca_streams *streams = hca_stream_of(qp);
    unsigned num_waiting;
    uint64_t due;

    do {
        while ((hca_qp_state(qp) == IBV_QPS_RTS) && hca_stream_fetch(qp)) {
            hca_stream_retire(qp);
        }
        num_waiting = streams->num_waiting;
        due         = hca_stream_resume_due(qp);
        hca_stream_retire(qp);
    } while (streams->num_waiting < num_waiting);
    if (due != 0) {
        hca_stream_arm(qp, due);
    }
}
