/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The WQEs that a queue has fetched and not completed: of a DCI with streams,
 * or on a device that is late (hca_late.h) or out of order (hca_order.h), where
 * a queue without streams is one stream, and its first error that of the queue.
 * This file has their completions, in the order of the ring, and the streams
 * that are in error. hca_stream_run.c executes them. Everything here is under
 * the QP's sq_lock, in the owner's process.
 *
 * Completions come in the order of the ring, across streams: libmlx5 (wq.tail)
 * and UCX (uct_rc_txqp_completion_desc()) let one complete all before it. A NOP
 * without a fence does not wait for late results (hca_late.h).
 *
 * An error of a WQE's memory, or of its peer, is that of its stream, whose
 * later WQEs are flushed until it is reset. When 2^log_errored streams are in
 * error the DCI is; and so it is after a malformed WQE.
 */
#ifndef HCA_STREAM_H
#define HCA_STREAM_H

#include "hca_sq.h"
#include "softhca/obj/hca_check.h"

/* Late result of a READ or an atomic; without data if they go into the CQE */
struct hca_result {
    struct hca_wqe wqe;
    bool is_old; /* for hca_late.c: from before the last tick */
    uint8_t data[];
};

/* A WQE that is fetched and has not completed. */
struct hca_stream_wqe {
    uint16_t stream;
    uint16_t blocks;
    uint8_t opcode;
    bool done;
    bool signaled;
    bool fenced;
    bool reported;         /* before its turn */
    uint8_t check, vendor; /* why it fails, or HCA_OK */
    bool to_cqe;
    uint32_t length;
    struct hca_result *result; /* or NULL */
};

/* A stream that waits. */
struct hca_stream {
    uint16_t id;
    uint16_t idx;         /* basic block of its current WQE */
    uint16_t passing_idx; /* basic block of the WQE that passes it */
    bool held;            /* it waits to be passed */
    bool passing;
    struct hca_tries tries;
    uint64_t due;
};

/* The fetched WQEs of one queue: req.fetched basic blocks from req.ci on. */
struct hca_streams {
    unsigned num_waiting, num_errored;
    struct hca_stream *waiting;  /* 2^log_streams */
    uint16_t *errored;           /* 2^log_errored */
    struct hca_stream_wqe *wqes; /* at the basic block each begins at */
    uint8_t (*inlined)[64];      /* data of each for its CQE, if the
                                  * QP has cs_req */
};

static inline struct hca_streams *hca_stream_of(const struct hca_qp *qp)
{
    return qp->req.sq->streams;
}

/* Returns the WQE that begins at basic block @idx. */
static inline struct hca_stream_wqe *hca_stream_wqe(const struct hca_qp *qp,
                                                    uint16_t idx)
{
    return &hca_stream_of(qp)->wqes[idx & ((1u << qp->sq.log_cnt) - 1)];
}

/* Data for its CQE. Nothing takes memory for them in a doorbell, which may ring
 * in a signal handler. */
static inline uint8_t *hca_stream_inlined(const struct hca_qp *qp, uint16_t idx)
{
    return hca_stream_of(qp)->inlined[idx & ((1u << qp->sq.log_cnt) - 1)];
}

/* Tells if it is executed, and its result kept. */
static inline bool hca_stream_is_late(const struct hca_stream_wqe *entry)
{
    return (entry->result != NULL) && !entry->done;
}

/* @return NULL if there is no memory. Clear it before free(). */
struct hca_streams *hca_stream_new(const struct hca_qp *qp);

/* Drops all that is fetched, waits or is in error, without completions. */
void hca_stream_clear(struct hca_qp *qp);

/* Resets a stream of a DCI in RTS that is in error.
 * @return 0, or -EINVAL if it is not. */
int hca_stream_reset(struct hca_qp *qp, uint16_t stream);

/* @return the entry of a stream in the list of errors, NULL if it has none. */
uint16_t *hca_stream_errored(const struct hca_streams *streams, uint16_t id);

/* Ends the WQE, which completes in its turn, with an error unless @check is
 * HCA_OK. One that was flushed while its result was late stays flushed. */
void hca_stream_finish(struct hca_stream_wqe *entry, enum hca_check check,
                       enum hca_check vendor);

/* Puts the stream of the WQE at @idx in error, or the QP. */
void hca_stream_fail(struct hca_qp *qp, uint16_t idx, enum hca_check check);

/* Ends the WQE at @idx, which was late, with @check. */
void hca_stream_executed(struct hca_qp *qp, uint16_t idx, enum hca_check check);

/* Reports completions, up to the first WQE that is not done. */
void hca_stream_retire(struct hca_qp *qp);

/* Completes all fetched WQEs, in error if they are not done. */
void hca_stream_flush(struct hca_qp *qp);

/* Executes posted WQEs, and waiting ones that are due (hca_stream_run.c). */
void hca_stream_run(struct hca_qp *qp);

#endif
