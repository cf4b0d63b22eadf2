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
 *
 * An error of a WQE's memory, or of its peer, is that of its stream, whose
 * later WQEs are flushed till it is reset. When 2^log_errored streams are in
 * error the DCI is; and so it is after a WQE that makes no sense.
 */
#include "hca_stream.h"
#include "hca_completer.h"
#include "hca_late.h"
#include "softhca/base/hca_log.h"
#include "softhca/base/hca_mutex.h"
#include "hca_qp.h"
#include "hca_request.h"
#include "hca_thread.h"
#include "hca_uar.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A WQE that is fetched and has not completed. */
struct hca_stream_wqe {
    uint16_t stream;
    uint16_t blocks;
    uint8_t  opcode;
    bool     done;
    bool     signaled;
    uint8_t  check, vendor; /* why it failed, or HCA_OK */
    uint32_t length;
};

/* A stream that waits. */
struct hca_stream {
    uint16_t         id;
    uint16_t         idx; /* basic block of the WQE it is at */
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
}

static void hca_stream_finish_wqe(struct hca_stream_wqe *entry,
                                  enum hca_check check, enum hca_check vendor)
{
    entry->done   = true;
    entry->check  = check;
    entry->vendor = vendor;
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

static void hca_stream_fail(struct hca_qp *qp, struct hca_stream_wqe *entry,
                            enum hca_check check)
{
    struct hca_streams *streams = hca_stream_of(qp);

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

/* @return nanoseconds to wait; 0: it is done. */
static uint64_t hca_stream_execute(struct hca_qp *qp, uint16_t idx,
                                   struct hca_tries *tries)
{
    struct hca_stream_wqe *entry = hca_stream_wqe(qp, idx);
    struct hca_request rq;
    enum hca_check check;

    rq.qp    = qp;
    rq.tries = tries;
    check    = hca_request_execute(&rq, idx, entry->blocks);
    if (check == HCA_WAIT) {
        return rq.wait_ns;
    }
    if (check == HCA_OK) {
        entry->signaled = hca_wqe_is_signaled(&rq.wqe);
        entry->length   = rq.wqe.length;
    }
    if ((hca_late_ns == 0) || (check != HCA_OK) ||
        !hca_late_add(qp, &rq.wqe, rq.late)) {
        hca_stream_finish_wqe(entry, check, (rq.ack.check != HCA_OK) ?
                                            rq.ack.check : check);
    }
    if (check != HCA_OK) {
        hca_stream_fail(qp, entry, check);
    }
    return 0;
}

void hca_stream_executed(struct hca_qp *qp, uint16_t idx,
                         enum hca_check check)
{
    struct hca_stream_wqe *entry = hca_stream_wqe(qp, idx);

    hca_stream_finish_wqe(entry, check, check);
    if (check != HCA_OK) {
        hca_stream_fail(qp, entry, check);
    }
    hca_stream_retire(qp);
}

/* The same, for a WQE whose stream does not wait: it may have to. */
static void hca_stream_begin(struct hca_qp *qp, uint16_t idx)
{
    struct hca_streams *streams = hca_stream_of(qp);
    struct hca_stream *stream   = &streams->waiting[streams->num_waiting];
    struct hca_tries tries      = {0};
    uint64_t wait_ns            = hca_stream_execute(qp, idx, &tries);

    if (wait_ns != 0) {
        stream->id    = hca_stream_wqe(qp, idx)->stream;
        stream->idx   = idx;
        stream->tries = tries;
        stream->due   = hca_time_ns() + wait_ns;
        streams->num_waiting++;
    }
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
    struct hca_wqe wqe;
    bool is_read;

    if (posted == 0) {
        return false;
    }
    hca_wqe_peek(&wqe, qp, idx, posted);
    is_read = wqe.blocks > 0;
    *entry  = (struct hca_stream_wqe){
        .stream = wqe.stream,
        .opcode = wqe.opcode,
        .blocks = is_read ? wqe.blocks : posted,
    };
    if (is_read && (hca_stream_errored(streams, wqe.stream) != NULL)) {
        hca_stream_finish_wqe(entry, HCA_CHECK_FLUSH, HCA_CHECK_FLUSH);
    } else if (!is_read ||
               (hca_stream_waiting(streams, wqe.stream) == NULL)) {
        if (streams->num_waiting == 1u << qp->log_streams) {
            return false;
        }
        hca_stream_begin(qp, idx);
    }
    streams->fetched += entry->blocks;
    return true;
}

/* The WQE that a stream waits for, once more. @return whether it waits again.
 * What was left behind with it is executed, or flushed if it failed. */
static bool hca_stream_retry(struct hca_qp *qp, struct hca_stream *stream)
{
    struct hca_stream_wqe *entry = hca_stream_wqe(qp, stream->idx);
    uint64_t wait_ns;

    if ((entry->stream != stream->id) || entry->done) {
        return false;
    }
    if (hca_stream_errored(hca_stream_of(qp), stream->id) != NULL) {
        hca_stream_finish_wqe(entry, HCA_CHECK_FLUSH, HCA_CHECK_FLUSH);
        return false;
    }
    wait_ns     = hca_stream_execute(qp, stream->idx, &stream->tries);
    stream->due = hca_time_ns() + wait_ns;
    return wait_ns != 0;
}

/* Goes on with a stream that is due. @return whether it waits again. */
static bool hca_stream_resume(struct hca_qp *qp, struct hca_stream *stream)
{
    uint16_t end = qp->req.ci + hca_stream_of(qp)->fetched;

    while ((stream->idx != end) && (hca_qp_state(qp) == IBV_QPS_RTS)) {
        if (hca_stream_retry(qp, stream)) {
            return true;
        }
        memset(&stream->tries, 0, sizeof(stream->tries));
        stream->idx += hca_stream_wqe(qp, stream->idx)->blocks;
    }
    return false;
}

/* Goes on with all that are due. @return when the next one is, 0: none is. */
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
