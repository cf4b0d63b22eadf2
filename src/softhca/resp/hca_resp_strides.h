/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Messages to a shared receive queue with strides ("multi-packet"): each packet
 * has strides of its own and a completion of its own, the next in the same WQE
 * or in another. The last packet's has what a message's has otherwise: the
 * immediate data, the event. Only an SRQ with tag matching has strides (the
 * kernel of MLNX_OFED, "MP WR is supported over TM SRQ type only").
 *
 *   strides   0  1  2  3  4  5  6  7     each as long as the MTU, or longer
 *   WQE a     m0 m1 m2 n0 o0 o1 o2 o3    message m: FIRST, -, LAST; n: both
 *   WQE b     o4 ...
 *
 * A packet longer than a stride takes several, which lie in one WQE; those at
 * the end of a WQE that are too few for it have a completion of nothing, the
 * filler.
 */
#ifndef HCA_RESP_STRIDES_H
#define HCA_RESP_STRIDES_H

#include "hca_resp_recv.h"

/* The message, from what had arrived of it before, to strides of an SRQ whose
 * lock is held. resp->ack->arrived says how much is there now, also without
 * success. @param tm_op  PRM_CQE_TM_* of its completions
 * @return HCA_OK, HCA_CHECK_NO_RECV, HCA_DROP, or what is wrong. */
enum hca_check hca_resp_strides_send(struct hca_responder *resp,
                                     struct hca_srq *srq, uint8_t tm_op);

#endif
