/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * A DCI with streams: several conversations share one send queue. Each is in
 * order, and none waits for another's peer; completions keep the order of the
 * queue. Everything here is under the QP's sq_lock, in the owner's process.
 */
#ifndef HCA_STREAM_H
#define HCA_STREAM_H

#include "softhca/obj/hca_check.h"
#include "softhca/obj/hca_objs.h"

struct hca_streams;

/* NULL if there is no memory. Given back by free(). */
struct hca_streams *hca_stream_new(const struct hca_qp *qp);

/* Of a QP that goes to RESET: nothing is fetched, waits or is in error. */
void hca_stream_clear(struct hca_streams *streams);

/* Makes a stream of a DCI in RTS usable again that is in error.
 * @return 0, or -EINVAL if it is not. */
int hca_stream_reset(struct hca_qp *qp, uint16_t stream);

/* Executes what is posted, and what waited and is due. */
void hca_stream_run(struct hca_qp *qp);

/* A WQE that was late (hca_late.h) is done, or failed. */
void hca_stream_executed(struct hca_qp *qp, uint16_t idx,
                         enum hca_check check);

/* Completes what is fetched, in error where it is not done.
 * @return basic blocks that were taken off the queue. */
uint16_t hca_stream_flush(struct hca_qp *qp);

#endif
