/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Counters of a device's errors and other anomalies, for all processes of the
 * fabric: those of mlx5 that cost nothing on the path of a message that
 * succeeds, or little, as one for each new target of a DCI
 * (drivers/infiniband/hw/mlx5/counters.c: basic_q_cnts, out_of_seq_q_cnts,
 * retrans_q_cnts, extended_err_cnts, ext_ppcnt_cnts).
 * obj/hca_traffic.h has the others of basic_q_cnts. preload/hca_sysfs_count.c
 * reads them.
 */
#ifndef HCA_COUNT_H
#define HCA_COUNT_H

#include "hca_segment.h"

enum hca_count {
    HCA_COUNT_OUT_OF_BUFFER,
    HCA_COUNT_OUT_OF_SEQUENCE,
    HCA_COUNT_DUPLICATE_REQUEST,
    HCA_COUNT_RNR_NAK_RETRY_ERR,
    HCA_COUNT_LOCAL_ACK_TIMEOUT_ERR,
    HCA_COUNT_RESP_LOCAL_LENGTH_ERROR,
    HCA_COUNT_RESP_CQE_ERROR,
    HCA_COUNT_RESP_CQE_FLUSH_ERROR,
    HCA_COUNT_RESP_REMOTE_ACCESS_ERRORS,
    HCA_COUNT_REQ_CQE_ERROR,
    HCA_COUNT_REQ_CQE_FLUSH_ERROR,
    HCA_COUNT_REQ_REMOTE_INVALID_REQUEST,
    HCA_COUNT_REQ_REMOTE_ACCESS_ERRORS,
    HCA_COUNT_REQ_TRANSPORT_RETRIES_EXCEEDED,
    HCA_COUNT_REQ_RNR_RETRIES_EXCEEDED,
    HCA_COUNT_RX_ICRC_ENCAPSULATED, /* packets with a wrong ICRC */
    HCA_COUNT_PACKET_SEQ_ERR,       /* NAKs of a wrong PSN, at the requester */
    HCA_COUNT_IMPLIED_NAK_SEQ_ERR,  /* always 0: answers come in order */
    HCA_COUNT_RX_DCT_CONNECT,       /* initiators that chose a target */
    HCA_NUM_COUNTS
};

_Static_assert(HCA_NUM_COUNTS <= HCA_MAX_COUNTS, "room in the segment");

static inline void hca_count(unsigned dev, enum hca_count count)
{
    atomic_fetch_add_explicit(&hca_fabric->counts[dev][count], 1,
                              memory_order_relaxed);
}

#endif
