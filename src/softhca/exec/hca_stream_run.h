/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * A DCI with streams: several conversations share one send queue. Each is in
 * order, and none waits for another's peer; completions keep the order of the
 * queue. It stands in for the loop of hca_requester.c, also for queues without
 * streams on a device that is late or out of order (hca_stream.h).
 */
#ifndef HCA_STREAM_RUN_H
#define HCA_STREAM_RUN_H

struct hca_qp;

/* Executes what is posted, and what waited and is due. sq_lock is held. */
void hca_stream_run(struct hca_qp *qp);

#endif
