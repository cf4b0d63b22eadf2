/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Execution of a DCI with streams, in place of the loop of hca_requester.c.
 * What streams do: mlx5dv_create_qp(3), mlx5dv_wr_post(3) and
 * mlx5dv_dci_stream_id_reset(3). In detail:
 *
 * WQEs are fetched in the order of the ring. One whose stream waits (RNR, no
 * answer) stays behind with it; others go on, as long as the streams that wait
 * are fewer than 2^log_streams. A stream is any number of 16 bits: rdma-core's
 * own tests (test_mlx5_dc.py) and UCX use more than there are at once.
 *
 * Completions come in the order of the ring, across streams: libmlx5 (wq.tail)
 * and UCX (uct_rc_txqp_completion_desc()) take one to speak for all before it.
 * A NOP without a fence does not wait for results that are late (hca_late.h).
 *
 * Out of order (hca_order.h), a WQE may wait for the next one of its stream,
 * which is executed before it.
 *
 * An error of a WQE's memory, or of its peer, is that of its stream, whose
 * later WQEs are flushed till it is reset. When 2^log_errored streams are in
 * error the DCI is; and so it is after a WQE that makes no sense.
 */
#include "hca_stream.h"
#include "hca_completer.h"
#include "hca_late.h"
#include "hca_order.h"
#include "hca_qp.h"
#include "hca_request.h"
#include "hca_thread.h"
#include "hca_uar.h"
#include "softhca/base/hca_log.h"
#include "softhca/base/hca_mutex.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A WQE that is fetched and has not completed. */
struct hca_stream_wqe {
    uint16_t stream;
    uint16_t blocks;
    uint8_t  opcode;
    bool     done;
    bool     late;   /* executed; its result is kept (hca_late.h) */
    bool     signaled;
    bool     fenced;
    bool     reported; /* before its turn */
    uint8_t  check, vendor; /* why it fails, or HCA_OK */
    uint32_t length;
};

/* A stream that waits. */
struct hca_stream {
    uint16_t         id;
    uint16_t         idx; /* basic block of the WQE it is at */
    uint16_t         passing_idx; /* basic block of the WQE that passes it */
    bool             held;        /* it waits to be passed */
    bool             passing;
    struct hca_tries tries;
    uint64_t         due;
};

struct hca_streams {
    uint16_t               fetched; /* basic blocks, from req.ci on */
    unsigned               num_waiting, num_errored;
    struct hca_stream     *waiting; /* 2^log_streams */
    uint16_t              *errored; /* 2^log_errored */
    struct hca_stream_wqe *wqes;    /* at the basic block each begins at */
};

struct hca_streams *hca_stream_new(const struct hca_qp *qp)
{
    size_t wqes    = sizeof(struct hca_stream_wqe) << qp->sq.log_cnt;
    size_t waiting = sizeof(struct hca_stream) << qp->log_streams;
    size_t errored = sizeof(uint16_t) << qp->log_errored;
    struct hca_streams *streams;

    streams = calloc(1, sizeof(*streams) + waiting + wqes + errored);
    if (streams != NULL) {
        streams->waiting = (void*)(streams + 1);
        streams->wqes    = (void*)((char*)streams->waiting + waiting);
        streams->errored = (void*)((char*)streams->wqes + wqes);
    }
    return streams;
}

void hca_stream_clear(struct hca_streams *streams)
{
    streams->fetched     = 0;
    streams->num_waiting = 0;
    streams->num_errored = 0;
}

static struct hca_streams *hca_stream_of(const struct hca_qp *qp)
{
    return qp->req.sq->streams;
}

static struct hca_stream_wqe *hca_stream_wqe(const struct hca_qp *qp,
                                             uint16_t idx)
{
    return &hca_stream_of(qp)->wqes[idx & ((1u << qp->sq.log_cnt) - 1)];
}

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

static uint16_t *hca_stream_errored(const struct hca_streams *streams,
                                    uint16_t id)
{
    for (unsigned i = 0; i < streams->num_errored; i++) {
        if (streams->errored[i] == id) {
            return &streams->errored[i];
        }
    }
    return NULL;
}

/* --- completions --------------------------------------------------------- */

static void hca_stream_complete(struct hca_qp *qp, uint16_t idx,
                                const struct hca_stream_wqe *entry)
{
    struct hca_wqe wqe;

    if (entry->reported) {
        return;
    }
    wqe.idx    = idx;
    wqe.opcode = entry->opcode;
    wqe.length = entry->length;
    if (entry->check != HCA_OK) {
        hca_completer_send_error(qp, &wqe, entry->check, entry->vendor);
    } else if (entry->signaled &&
               (hca_completer_send(qp, &wqe, NULL) != HCA_OK) &&
               (hca_qp_state(qp) == IBV_QPS_RTS)) {
        hca_qp_fail_fatal(qp);
    }
}

/* Reports each NOP that only late results are in front of. */
static void hca_stream_retire_nops(struct hca_qp *qp)
{
    uint16_t idx = qp->req.ci, end = idx + hca_stream_of(qp)->fetched;

    while (idx != end) {
        struct hca_stream_wqe *entry = hca_stream_wqe(qp, idx);

        if (!entry->done && !entry->late) {
            break;
        }
        if ((entry->opcode == MLX5_OPCODE_NOP) && entry->done &&
            !entry->fenced && (entry->check == HCA_OK)) {
            hca_stream_complete(qp, idx, entry);
            entry->reported = true;
        }
        idx += entry->blocks;
    }
}

/* Reports what is done, up to the first that is not. */
static void hca_stream_retire(struct hca_qp *qp)
{
    struct hca_streams *streams = hca_stream_of(qp);

    while (streams->fetched > 0) {
        struct hca_stream_wqe *entry = hca_stream_wqe(qp, qp->req.ci);

        if (!entry->done) {
            break;
        }
        hca_stream_complete(qp, qp->req.ci, entry);
        qp->req.ci       += entry->blocks;
        streams->fetched -= entry->blocks;
    }
    if (hca_late_ns != 0) {
        hca_stream_retire_nops(qp);
    }
}

/* One that was flushed while its result was late stays so. */
static void hca_stream_finish_wqe(struct hca_stream_wqe *entry,
                                  enum hca_check check, enum hca_check vendor)
{
    entry->done = true;
    if (entry->check == HCA_OK) {
        entry->check  = check;
        entry->vendor = vendor;
    }
}

uint16_t hca_stream_flush(struct hca_qp *qp)
{
    struct hca_streams *streams = hca_stream_of(qp);
    uint16_t fetched            = streams->fetched, idx = qp->req.ci;

    while (idx != (uint16_t)(qp->req.ci + fetched)) {
        struct hca_stream_wqe *entry = hca_stream_wqe(qp, idx);

        if (!entry->done) {
            hca_stream_finish_wqe(entry, HCA_CHECK_FLUSH, HCA_CHECK_FLUSH);
        }
        idx += entry->blocks;
    }
    hca_stream_retire(qp);
    streams->num_waiting = 0;
    return fetched;
}

/* --- execution ----------------------------------------------------------- */

/* Flushes each WQE behind it in its stream, also one that has been executed. */
static void hca_stream_flush_behind(struct hca_qp *qp, uint16_t idx)
{
    uint16_t end    = qp->req.ci + hca_stream_of(qp)->fetched;
    uint16_t stream = hca_stream_wqe(qp, idx)->stream;

    while ((idx += hca_stream_wqe(qp, idx)->blocks) != end) {
        struct hca_stream_wqe *entry = hca_stream_wqe(qp, idx);

        if ((entry->stream == stream) && (entry->check == HCA_OK)) {
            entry->check = entry->vendor = HCA_CHECK_FLUSH;
        }
    }
}

static void hca_stream_fail(struct hca_qp *qp, uint16_t idx,
                            enum hca_check check)
{
    struct hca_streams *streams  = hca_stream_of(qp);
    struct hca_stream_wqe *entry = hca_stream_wqe(qp, idx);

    hca_stream_flush_behind(qp, idx);
    /* without a frame, or a format, its stream cannot be trusted either */
    if (check >= HCA_CHECK_LKEY) {
        hca_info("qp 0x%x: stream 0x%x: in error",
                 atomic_load(&qp->obj.num), entry->stream);
        streams->errored[streams->num_errored++] = entry->stream;
    }
    if ((check < HCA_CHECK_LKEY) ||
        (streams->num_errored == 1u << qp->log_errored)) {
        hca_qp_fail_requester(qp);
    }
}

/* @return HCA_OK if it is executed, HCA_WAIT, or why it cannot be. */
static enum hca_check hca_stream_try(struct hca_request *rq, uint16_t idx)
{
    struct hca_stream_wqe *entry = hca_stream_wqe(rq->qp, idx);
    enum hca_check check = hca_request_execute(rq, idx, entry->blocks);

    if (check != HCA_OK) {
        return check;
    }
    entry->signaled = hca_wqe_is_signaled(&rq->wqe);
    entry->fenced   = hca_wqe_is_fenced(&rq->wqe);
    entry->length   = rq->wqe.length;
    entry->late     = (hca_late_ns != 0) &&
                      hca_late_add(rq->qp, &rq->wqe, rq->late);
    if (!entry->late) {
        hca_stream_finish_wqe(entry, HCA_OK, HCA_OK);
    }
    return HCA_OK;
}

/* @return nanoseconds to wait; 0: it is done. */
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
        hca_stream_finish_wqe(hca_stream_wqe(qp, idx), check,
                              (rq.ack.check != HCA_OK) ? rq.ack.check : check);
        hca_stream_fail(qp, idx, check);
    }
    return 0;
}

void hca_stream_executed(struct hca_qp *qp, uint16_t idx,
                         enum hca_check check)
{
    struct hca_stream_wqe *entry = hca_stream_wqe(qp, idx);

    hca_stream_finish_wqe(entry, check, check);
    if ((check != HCA_OK) && (entry->check == check)) {
        hca_stream_fail(qp, idx, check);
    }
    hca_stream_retire(qp);
}

/* Begins a WQE whose stream does not wait: it may have to. */
static void hca_stream_begin(struct hca_qp *qp, uint16_t idx)
{
    struct hca_streams *streams  = hca_stream_of(qp);
    struct hca_stream *stream    = &streams->waiting[streams->num_waiting];
    struct hca_stream_wqe *entry = hca_stream_wqe(qp, idx);
    uint64_t wait_ns             = HCA_ORDER_HOLD_NS;

    *stream      = (struct hca_stream){.id = entry->stream, .idx = idx};
    stream->held = (hca_order != HCA_ORDER_IBTA) &&
                   hca_order_holds_stream(qp, idx, entry->blocks,
                                          streams->num_waiting);
    if (!stream->held) {
        wait_ns = hca_stream_execute(qp, idx, &stream->tries);
    }
    if (wait_ns != 0) {
        stream->due = hca_time_ns() + wait_ns;
        streams->num_waiting++;
    }
}

/* The WQE that a stream waits for, once more. @return whether it waits again.
 * What was left behind with it is executed, or flushed if it failed. */
static bool hca_stream_retry(struct hca_qp *qp, struct hca_stream *stream)
{
    struct hca_stream_wqe *entry = hca_stream_wqe(qp, stream->idx);
    uint64_t wait_ns;

    if ((entry->stream != stream->id) || entry->done || entry->late) {
        return false;
    }
    if ((entry->check != HCA_OK) ||
        (hca_stream_errored(hca_stream_of(qp), stream->id) != NULL)) {
        hca_stream_finish_wqe(entry, HCA_CHECK_FLUSH, HCA_CHECK_FLUSH);
        return false;
    }
    wait_ns     = hca_stream_execute(qp, stream->idx, &stream->tries);
    stream->due = hca_time_ns() + wait_ns;
    return wait_ns != 0;
}

/* Executes the WQE that passes the one its stream is at. An error is left for
 * its own turn. @return whether it waits. */
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

/* Goes on with a stream that is due. @return whether it waits again. */
static bool hca_stream_resume(struct hca_qp *qp, struct hca_stream *stream)
{
    uint16_t end = qp->req.ci + hca_stream_of(qp)->fetched;

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

/* Goes on with each stream that is due. @return when another is, 0: none is. */
static uint64_t hca_stream_resume_due(struct hca_qp *qp)
{
    struct hca_streams *streams = hca_stream_of(qp);
    uint64_t next               = 0;
    unsigned i                  = 0;

    while (i < streams->num_waiting) {
        struct hca_stream *stream = &streams->waiting[i];

        if ((stream->due <= hca_time_ns()) &&
            !hca_stream_resume(qp, stream)) {
            *stream = streams->waiting[--streams->num_waiting];
            continue;
        }
        next = ((next == 0) || (stream->due < next)) ? stream->due : next;
        i++;
    }
    return next;
}

/* The WQE at @idx is behind one that is held: neither waits any longer. */
static void hca_stream_meet(struct hca_qp *qp, struct hca_stream *stream,
                            uint16_t idx)
{
    stream->passing     = hca_order_passes_stream(
            qp, stream->idx, hca_stream_wqe(qp, stream->idx)->blocks, idx,
            hca_stream_wqe(qp, idx)->blocks);
    stream->passing_idx = idx;
    stream->due         = 0;
    hca_stream_resume_due(qp);
}

/* Takes up the next WQE of the ring. One that cannot be read is of no stream,
 * and where it ends is unknown: it goes with all that was rung.
 * @return false if there is none, or there are too many that wait. */
static bool hca_stream_fetch(struct hca_qp *qp)
{
    struct hca_streams *streams  = hca_stream_of(qp);
    uint16_t idx                 = qp->req.ci + streams->fetched;
    uint16_t posted              = hca_qp_sq_posted(qp) - streams->fetched;
    struct hca_stream_wqe *entry = hca_stream_wqe(qp, idx);
    struct hca_stream *waiting;
    bool is_read, is_errored;
    struct hca_wqe wqe;

    if (posted == 0) {
        return false;
    }
    hca_wqe_peek(&wqe, qp, idx, posted);
    is_read    = wqe.blocks > 0;
    is_errored = is_read && (hca_stream_errored(streams, wqe.stream) != NULL);
    waiting    = is_read ? hca_stream_waiting(streams, wqe.stream) : NULL;
    if (!is_errored && (waiting == NULL) &&
        (streams->num_waiting == 1u << qp->log_streams)) {
        return false;
    }
    *entry = (struct hca_stream_wqe){
        .stream = wqe.stream,
        .opcode = wqe.opcode,
        .blocks = is_read ? wqe.blocks : posted,
    };
    streams->fetched += entry->blocks;
    if (is_errored) {
        hca_stream_finish_wqe(entry, HCA_CHECK_FLUSH, HCA_CHECK_FLUSH);
    } else if (waiting == NULL) {
        hca_stream_begin(qp, idx);
    } else if (waiting->held) {
        hca_stream_meet(qp, waiting, idx);
    }
    return true;
}

/* A stream that waits no longer makes room for another. */
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
        hca_timer_arm(&qp->req.sq->timer, due);
    }
}

int hca_stream_reset(struct hca_qp *qp, uint16_t stream)
{
    uint16_t *errored = NULL;

    hca_thread_enter();
    hca_mutex_lock(&qp->sq_lock);
    if (qp->req.attached && qp->has_streams &&
        (hca_qp_state(qp) == IBV_QPS_RTS)) {
        errored = hca_stream_errored(hca_stream_of(qp), stream);
    }
    if (errored != NULL) {
        struct hca_streams *streams = hca_stream_of(qp);

        *errored = streams->errored[--streams->num_errored];
    }
    hca_mutex_unlock(&qp->sq_lock);
    hca_thread_leave();
    return (errored != NULL) ? 0 : -EINVAL;
}
