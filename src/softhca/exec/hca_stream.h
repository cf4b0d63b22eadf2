/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The WQEs that a queue has fetched and not completed: of a DCI with streams,
 * or on a device that is late (hca_late.h) or out of order (hca_order.h), where
 * a queue without streams is one stream, and its first error that of the queue.
 * Here are their completions, in the order of the ring, and the streams that
 * are in error. hca_stream_run.c executes them. Everything here is under the
 * QP's sq_lock, in the owner's process.
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

/* Result of a READ or an atomic, till it comes to memory or into the CQE */
struct hca_result {
    struct hca_wqe wqe;
    bool           to_cqe;
    bool           is_old; /* for hca_late.c: from before the last tick */
    uint8_t        data[];
};

/* A WQE that is fetched and has not completed. */
struct hca_stream_wqe {
    uint16_t           stream;
    uint16_t           blocks;
    uint8_t            opcode;
    bool               done;
    bool               signaled;
    bool               fenced;
    bool               reported; /* before its turn */
    uint8_t            check, vendor; /* why it fails, or HCA_OK */
    uint32_t           length;
    struct hca_result *result; /* or NULL */
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

/* Of one queue: req.fetched basic blocks from req.ci on. */
struct hca_streams {
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

/* Tells if it is executed, and its result kept. */
static inline bool hca_stream_is_late(const struct hca_stream_wqe *entry)
{
    return (entry->result != NULL) && !entry->done;
}

/* NULL if there is no memory. Given back by free() once it is cleared. */
struct hca_streams *hca_stream_new(const struct hca_qp *qp);

/* Forgets all that is fetched, waits or is in error, without completions. */
void hca_stream_clear(struct hca_qp *qp);

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

/* The WQE at @idx, which was late, is done, or failed. */
void hca_stream_executed(struct hca_qp *qp, uint16_t idx,
                         enum hca_check check);

/* Reports what is done, up to the first that is not. */
void hca_stream_retire(struct hca_qp *qp);

/* Completes what is fetched, in error where it is not done. */
void hca_stream_flush(struct hca_qp *qp);

/* Executes what is posted, and what waited and is due (hca_stream_run.c). */
void hca_stream_run(struct hca_qp *qp);

#endif
