/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The WQEs that a DCI with streams has fetched: their completions, in the order
 * of the ring, and the streams that are in error. hca_stream_run.c executes
 * them. Everything here is under the QP's sq_lock, in the owner's process.
 *
 * Completions come in the order of the ring, across streams: libmlx5 (wq.tail)
 * and UCX (uct_rc_txqp_completion_desc()) take one to speak for all before it.
 * A NOP without a fence does not wait for results that are late (hca_late.h).
 *
 * An error of a WQE's memory, or of its peer, is that of its stream, whose
 * later WQEs are flushed till it is reset. When 2^log_errored streams are in
 * error the DCI is; and so it is after a WQE that makes no sense.
 */
#ifndef HCA_STREAM_H
#define HCA_STREAM_H

#include "hca_sq.h"
#include "softhca/obj/hca_check.h"

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

/* Of one DCI. */
struct hca_streams {
    uint16_t               fetched; /* basic blocks, from req.ci on */
    unsigned               num_waiting, num_errored;
    struct hca_stream     *waiting; /* 2^log_streams */
    uint16_t              *errored; /* 2^log_errored */
    struct hca_stream_wqe *wqes;    /* at the basic block each begins at */
};

static inline struct hca_streams *hca_stream_of(const struct hca_qp *qp)
{
    return qp->req.sq->streams;
}

/* The one that begins at that basic block. */
static inline struct hca_stream_wqe *
hca_stream_wqe(const struct hca_qp *qp, uint16_t idx)
{
    return &hca_stream_of(qp)->wqes[idx & ((1u << qp->sq.log_cnt) - 1)];
}

/* NULL if there is no memory. Given back by free(). */
struct hca_streams *hca_stream_new(const struct hca_qp *qp);

/* Of a QP that goes to RESET: nothing is fetched, waits or is in error. */
void hca_stream_clear(struct hca_streams *streams);

/* Makes a stream of a DCI in RTS usable again that is in error.
 * @return 0, or -EINVAL if it is not. */
int hca_stream_reset(struct hca_qp *qp, uint16_t stream);

/* @return the place of a stream among those in error, NULL if it is not. */
uint16_t *hca_stream_errored(const struct hca_streams *streams, uint16_t id);

/* The WQE is done, and completes in its turn, with an error unless @check is
 * HCA_OK. One that was flushed while its result was late stays so. */
void hca_stream_finish(struct hca_stream_wqe *entry, enum hca_check check,
                       enum hca_check vendor);

/* Puts the stream of the WQE at @idx in error, or the QP. */
void hca_stream_fail(struct hca_qp *qp, uint16_t idx, enum hca_check check);

/* A WQE that was late (hca_late.h) is done, or failed. */
void hca_stream_executed(struct hca_qp *qp, uint16_t idx,
                         enum hca_check check);

/* Reports what is done, up to the first that is not. */
void hca_stream_retire(struct hca_qp *qp);

/* Completes what is fetched, in error where it is not done.
 * @return basic blocks that were taken off the queue. */
uint16_t hca_stream_flush(struct hca_qp *qp);

#endif
