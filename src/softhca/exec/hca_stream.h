/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The WQEs that a queue has fetched and not completed: of a DCI with streams,
 * or of each queue with a delay (hca_late.h) or a relaxed order (hca_order.h).
 * A queue without streams is one stream then, whose first error fails the QP.
 * hca_stream.c has their completions, in the order of the ring, and the streams
 * that are in error; hca_stream_run.c executes them. All functions are called
 * in the owner's process, under the QP's sq_lock, except hca_stream_new() and
 * hca_stream_reset().
 *
 * Completions come in the order of the ring, across streams: libmlx5 (wq.tail)
 * and UCX (uct_rc_txqp_completion_desc()) let one complete all before it. A NOP
 * without a fence does not wait for late results (hca_late.h).
 *
 * An error of a WQE's memory or of its peer puts the stream in error: its later
 * WQEs are flushed until it is reset. The QP goes to the error state when
 * 2^log_errored streams are in error, or at a malformed WQE.
 */
#ifndef HCA_STREAM_H
#define HCA_STREAM_H

#include "hca_sq.h"
#include "softhca/obj/hca_check.h"

/* Late result of a READ or an atomic; without data if that goes into the CQE */
struct hca_result {
    struct hca_wqe wqe;
    bool is_old; /* hca_late.c: from before the last tick */
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
    bool reported;         /* its completion was, before its turn (NOP) */
    uint8_t check, vendor; /* its error, or HCA_OK */
    bool to_cqe;
    uint32_t length;
    struct hca_result *result; /* malloc(), or NULL */
};

/* A stream that waits. */
struct hca_stream {
    uint16_t id;
    uint16_t idx;         /* basic block of its current WQE */
    uint16_t passing_idx; /* basic block of the WQE that passes it */
    bool held;            /* it waits to be passed */
    bool passing;         /* passing_idx is valid: it is executed first */
    struct hca_tries tries;
    uint64_t due; /* hca_time_ns() */
};

/* The fetched WQEs of one queue: req.fetched basic blocks from req.ci on.
 * Sizes are not read from the QP, as any process may write there. */
struct hca_streams {
    unsigned num_waiting, num_errored;
    unsigned max_waiting, max_errored;
    unsigned mask, inlined_mask; /* of an index of `wqes`, of `inlined` */
    struct hca_stream *waiting;
    uint16_t *errored;
    struct hca_stream_wqe *wqes; /* index: its first basic block */
    uint8_t (*inlined)[64];      /* data for its CQE; one without cs_req */
};

/* The QP has a send queue. */
static inline struct hca_streams *hca_stream_of(const struct hca_qp *qp)
{
    return hca_sq_of(qp)->streams;
}

/* Returns the WQE that begins at basic block @idx. */
static inline struct hca_stream_wqe *hca_stream_wqe(const struct hca_qp *qp,
                                                    uint16_t idx)
{
    struct hca_streams *streams = hca_stream_of(qp);

    return &streams->wqes[idx & streams->mask];
}

/* Returns the buffer for CQE data of the WQE at @idx, if the QP has cs_req. It
 * exists beforehand, as a doorbell may ring in a signal handler, where nothing
 * may be allocated. */
static inline uint8_t *hca_stream_inlined(const struct hca_qp *qp, uint16_t idx)
{
    struct hca_streams *streams = hca_stream_of(qp);

    return streams->inlined[idx & streams->inlined_mask];
}

/* Returns true if the WQE was executed and its result is not written yet. */
static inline bool hca_stream_is_late(const struct hca_stream_wqe *entry)
{
    return (entry->result != NULL) && !entry->done;
}

/* Allocates the list of a QP. @return NULL if there is no memory. Call
 * hca_stream_clear() before free(). */
struct hca_streams *hca_stream_new(const struct hca_qp *qp);

/* Drops all that is fetched, waits or is in error, without completions. */
void hca_stream_clear(struct hca_qp *qp);

/* Resets a stream that is in error, of a DCI in RTS. Takes sq_lock.
 * @return 0, or -EINVAL if the stream or the DCI is in another state. */
int hca_stream_reset(struct hca_qp *qp, uint16_t stream);

/* Returns the entry of a stream in `errored`; NULL if it is not in error. */
uint16_t *hca_stream_errored(const struct hca_streams *streams, uint16_t id);

/* Marks a WQE as done, with an error unless @check is HCA_OK. An error that it
 * has already stays. hca_stream_retire() reports it in its turn. */
void hca_stream_finish(struct hca_stream_wqe *entry, enum hca_check check,
                       enum hca_check vendor);

/* Puts the stream of the WQE at @idx in error, or the QP, and flushes the
 * fetched WQEs behind it in its stream. */
void hca_stream_fail(struct hca_qp *qp, uint16_t idx, enum hca_check check);

/* Completes the WQE at @idx, whose late result was written, or failed with
 * @check. */
void hca_stream_executed(struct hca_qp *qp, uint16_t idx, enum hca_check check);

/* Reports completions up to the first WQE that is not done, and those of NOPs
 * that only late results precede. */
void hca_stream_retire(struct hca_qp *qp);

/* Completes all fetched WQEs; one that is not done is flushed. */
void hca_stream_flush(struct hca_qp *qp);

/* Executes posted WQEs, and streams that wait and are due; arms the timer for
 * the others (hca_stream_run.c). */
void hca_stream_run(struct hca_qp *qp);

#endif
