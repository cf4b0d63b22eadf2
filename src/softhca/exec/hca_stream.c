/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/* Completions and errors of fetched WQEs: see hca_stream.h. */
#include "hca_stream.h"
#include "softhca/base/hca_log.h"
#include "softhca/base/hca_mutex.h"
#include "softhca/resp/hca_completer.h"
#include "softhca/resp/hca_qp.h"

#include <errno.h>
#include <stdlib.h>

struct hca_streams *hca_stream_new(const struct hca_qp *qp)
{
    /* any process may write the QP: bounds shifts, and reads each once */
    size_t num_wqes    = (size_t)1 << (qp->sq.log_cnt & 15);
    size_t num_waiting = (size_t)1 << (qp->log_streams & 15);
    size_t num_errored = (size_t)1 << (qp->log_errored & 15);
    size_t num_inlined = (qp->cs_req == 0) ? 1 : num_wqes;
    size_t wqes        = num_wqes * sizeof(struct hca_stream_wqe);
    size_t waiting     = num_waiting * sizeof(struct hca_stream);
    size_t errored     = num_errored * sizeof(uint16_t);
    struct hca_streams *streams;

    streams = calloc(1, sizeof(*streams) + waiting + wqes + errored +
                            num_inlined * sizeof(*streams->inlined));
    if (streams != NULL) {
        streams->max_waiting  = num_waiting;
        streams->max_errored  = num_errored;
        streams->mask         = num_wqes - 1;
        streams->inlined_mask = num_inlined - 1;

        streams->waiting = (void *)(streams + 1);
        streams->wqes    = (void *)((char *)streams->waiting + waiting);
        streams->errored = (void *)((char *)streams->wqes + wqes);
        streams->inlined = (void *)((char *)streams->errored + errored);
    }
    return streams;
}

/* Removes the first fetched WQE. */
static void hca_stream_remove(struct hca_qp *qp)
{
    struct hca_stream_wqe *entry = hca_stream_wqe(qp, qp->req.ci);

    free(entry->result);
    entry->result = NULL;
    qp->req.ci += entry->blocks;
    qp->req.fetched -= entry->blocks;
}

void hca_stream_clear(struct hca_qp *qp)
{
    struct hca_streams *streams = hca_stream_of(qp);

    while (qp->req.fetched > 0) {
        hca_stream_remove(qp);
    }
    streams->num_waiting = 0;
    streams->num_errored = 0;
}

uint16_t *hca_stream_errored(const struct hca_streams *streams, uint16_t id)
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
               (hca_completer_send(qp, &wqe,
                                   entry->to_cqe ? hca_stream_inlined(qp, idx) :
                                                   NULL) != HCA_OK) &&
               (hca_qp_state(qp) == IBV_QPS_RTS)) {
        hca_qp_fail_fatal(qp);
    }
}

/* Reports each NOP that is only behind late results. */
static void hca_stream_retire_nops(struct hca_qp *qp)
{
    uint16_t idx = qp->req.ci, end = idx + qp->req.fetched;

    while (idx != end) {
        struct hca_stream_wqe *entry = hca_stream_wqe(qp, idx);

        if (!entry->done && (entry->result == NULL)) {
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

void hca_stream_retire(struct hca_qp *qp)
{
    if (hca_qp_state(qp) == IBV_QPS_RESET) {
        return; /* the device has failed */
    }
    while (qp->req.fetched > 0) {
        const struct hca_stream_wqe *entry = hca_stream_wqe(qp, qp->req.ci);

        if (!entry->done) {
            break;
        }
        hca_stream_complete(qp, qp->req.ci, entry);
        hca_stream_remove(qp);
    }
    hca_stream_retire_nops(qp);
}

void hca_stream_finish(struct hca_stream_wqe *entry, enum hca_check check,
                       enum hca_check vendor)
{
    entry->done = true;
    if (entry->check == HCA_OK) {
        entry->check  = check;
        entry->vendor = vendor;
    }
}

void hca_stream_flush(struct hca_qp *qp)
{
    uint16_t idx = qp->req.ci, end = idx + qp->req.fetched;

    while (idx != end) {
        struct hca_stream_wqe *entry = hca_stream_wqe(qp, idx);

        if (!entry->done) {
            hca_stream_finish(entry, HCA_CHECK_FLUSH, HCA_CHECK_FLUSH);
        }
        idx += entry->blocks;
    }
    hca_stream_retire(qp);
    hca_stream_of(qp)->num_waiting = 0;
}

/* --- errors --------------------------------------------------------------- */

/* Flushes each WQE behind @idx in its stream, also executed ones. With streams,
 * one that has failed keeps its own error. */
static void hca_stream_flush_behind(struct hca_qp *qp, uint16_t idx)
{
    uint16_t end    = qp->req.ci + qp->req.fetched;
    uint16_t stream = hca_stream_wqe(qp, idx)->stream;

    while ((idx += hca_stream_wqe(qp, idx)->blocks) != end) {
        struct hca_stream_wqe *entry = hca_stream_wqe(qp, idx);

        if ((entry->stream == stream) &&
            (!qp->has_streams || (entry->check == HCA_OK))) {
            entry->check = entry->vendor = HCA_CHECK_FLUSH;
        }
    }
}

void hca_stream_fail(struct hca_qp *qp, uint16_t idx, enum hca_check check)
{
    struct hca_streams *streams  = hca_stream_of(qp);
    struct hca_stream_wqe *entry = hca_stream_wqe(qp, idx);

    hca_stream_flush_behind(qp, idx);
    if (hca_qp_state(qp) != IBV_QPS_RTS) {
        return; /* the QP is in error: streams do not count any more */
    }
    /* if a WQE's format is wrong, its stream cannot be trusted either */
    if ((check >= HCA_CHECK_LKEY) &&
        (hca_stream_errored(streams, entry->stream) == NULL)) {
        hca_info("qp 0x%x: stream 0x%x: in error", atomic_load(&qp->obj.num),
                 entry->stream);
        streams->errored[streams->num_errored++] = entry->stream;
    }
    if ((check < HCA_CHECK_LKEY) ||
        (streams->num_errored == streams->max_errored)) {
        streams->num_errored = 0; /* the whole queue fails */
        hca_qp_fail_requester(qp);
    }
}

void hca_stream_executed(struct hca_qp *qp, uint16_t idx, enum hca_check check)
{
    struct hca_stream_wqe *entry = hca_stream_wqe(qp, idx);

    hca_stream_finish(entry, check, check);
    if ((check != HCA_OK) && (entry->check == check)) {
        hca_stream_fail(qp, idx, check);
    }
    hca_stream_retire(qp);
}

int hca_stream_reset(struct hca_qp *qp, uint16_t stream)
{
    uint16_t *errored = NULL;

    hca_mutex_lock(&qp->sq_lock);
    if ((hca_sq_of(qp) != NULL) && qp->has_streams &&
        (hca_qp_state(qp) == IBV_QPS_RTS)) {
        errored = hca_stream_errored(hca_stream_of(qp), stream);
    }
    if (errored != NULL) {
        struct hca_streams *streams = hca_stream_of(qp);

        *errored = streams->errored[--streams->num_errored];
    }
    hca_mutex_unlock(&qp->sq_lock);
    return (errored != NULL) ? 0 : -EINVAL;
}
