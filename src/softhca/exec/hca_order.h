/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * SOFTHCA_ORDER: a fabric, or a host, that keeps only the order that programs
 * ask for. Without the variable the device places the data of a queue pair in
 * the order of its queue. With "ooo" (adaptive routing, direct data placement)
 * an RDMA WRITE or READ may be executed after the WQE behind it; with "relaxed"
 * (PCIe) a WRITE may, if both write to regions registered with relaxed
 * ordering.
 *
 *   passes  RDMA WRITE, READ or atomic, to the same target
 *   never   SEND, WRITE with immediate: their completion covers all data before
 *           them (UCX, pull request 11673), unless both queue pairs have
 *           HCA_DP_OOO_ALL
 *           fence mode 3, strong order; behind a READ, modes 2 and 4
 *           a WQE behind one that has completed, except data that "relaxed"
 *           keeps back (hca_posted.h)
 *
 * The manual page of mlx5dv_create_qp() promises more for direct data placement
 * (reads and atomics are executed in order); UCX orders them nevertheless, so
 * the device follows the weaker rule. Both WQEs of a DCI with streams are of
 * one stream; streams are in no order anyway.
 *
 * The choice depends only on the seed and the number of the message.
 * Everything here is under the QP's sq_lock, in the owner's process.
 */
#ifndef HCA_ORDER_H
#define HCA_ORDER_H

#include "softhca/wqe/hca_wqe.h"

enum hca_order { HCA_ORDER_IBTA, HCA_ORDER_OOO, HCA_ORDER_RELAXED };

/* With HCA_ORDER_IBTA, the default, only hca_order_init() is called. */
extern enum hca_order hca_order __attribute__((visibility("hidden")));

/* The order that a queue pair gives up: none; that of reads, writes and
 * atomics; or that of messages, too. These are dp_ordering_1 and dp_ordering_0
 * of qpc and dctc (mlx5_ifc.h). Without dp_ordering_force it also gives up the
 * order that the device itself does not keep. */
enum hca_dp_ordering {
    HCA_DP_IBTA,
    HCA_DP_OOO_RW,
    HCA_DP_OOO_ALL,
    HCA_DP_LAST = HCA_DP_OOO_ALL
};

/* Service levels that use adaptive routes with HCA_ORDER_OOO
 * (hca_vport_context.ooo_sl_mask); all others keep the order. */
#define HCA_ORDER_OOO_SLS 0x00ffu

/* Longest wait of a WQE that may be passed for the WQE behind it */
#define HCA_ORDER_HOLD_NS 20000ull

/* Reads SOFTHCA_ORDER: ooo or relaxed, or one of them with a seed (ooo:7). A
 * wrong value logs an error and has no effect. */
void hca_order_init(void);

/* Choose the order, for hca_stream_run.c, which keeps the WQEs that wait.
 * @blocks: basic blocks of the WQE at @idx.
 * hca_order_holds() returns true if the WQE at @idx waits to be passed by the
 * next one of its stream; @num_waiting streams wait already.
 * hca_order_passes() returns true if the WQE at @idx, of the same stream, is
 * executed before the one at @first, which was held. */
bool hca_order_holds(const struct hca_qp *qp, uint16_t idx, uint16_t blocks,
                     unsigned num_waiting);
bool hca_order_passes(const struct hca_qp *qp, uint16_t first,
                      uint16_t first_blocks, uint16_t idx, uint16_t blocks);

/* Returns true if a WRITE of this PSN is acknowledged before its data is in
 * memory, where that is allowed (hca_posted.h). */
bool hca_order_keeps(uint32_t psn);

#endif
