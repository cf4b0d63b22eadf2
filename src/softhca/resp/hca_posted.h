/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * RDMA WRITEs that are acknowledged and not in the target's memory yet, with
 * SOFTHCA_ORDER=relaxed (hca_order.h). A write on PCIe is posted: its arrival
 * is not reported. Later ones with the relaxed ordering attribute may pass it;
 * a read, or a write without the attribute, pushes it (PCI Express Base
 * Specification, 2.4.1: A2, B2). A completion at the requester does not.
 *
 * Half of the WRITEs to regions registered with relaxed ordering are kept in
 * the process of the requester, at most HCA_POSTED_MAX of a queue pair. They
 * are written to memory, the last one first,
 *
 *   - before the next WQE of the queue pair to the same target, except another
 *     such WRITE of at most HCA_POSTED_LENGTH bytes that there is room for;
 *     before a UMR and a LOCAL_INV
 *   - HCA_POSTED_NS after the first of them was kept
 *   - when the queue pair leaves RTS by command, and when the process calls
 *     exit(); the data of one that is killed are lost
 *
 * The mkey is checked again then: data for an mkey that is gone, or leads
 * elsewhere by now, is dropped. Callers hold the sq_lock of the queue pair, in
 * its owner's process.
 */
#ifndef HCA_POSTED_H
#define HCA_POSTED_H

#include "hca_msg.h"
#include "softhca/fabric/hca_timer.h"

#define HCA_POSTED_MAX    32u
#define HCA_POSTED_LENGTH 65536u
#define HCA_POSTED_NS     2000000ull

struct hca_posted_write;

/* Kept by a send queue. */
struct hca_posted {
    struct hca_timer timer; /* first: hca_posted_timer() */
    struct hca_qp *qp;
    struct hca_posted_write *last; /* kept: newest first */
    unsigned count;
    bool keeps; /* chosen for the next WRITE, if it may be kept */
};

/* Initializes the list of a queue pair that is not published yet. */
void hca_posted_init(struct hca_posted *posted, struct hca_qp *qp);

/* Keeps a copy of a WRITE to @memory that the responder has checked, or writes
 * the kept data that it pushes.
 * @return true if it is kept; else execute it now. */
bool hca_posted_keep(const struct hca_msg *msg, const struct hca_sgl *memory);

/* Writes the kept data that @wqe, which is next, pushes. Ignores RDMA WRITEs
 * without immediate: hca_posted_keep() knows their mkey. */
void hca_posted_before(struct hca_posted *posted, const struct hca_wqe *wqe);

/* Writes all kept data. */
void hca_posted_flush(struct hca_posted *posted);

#endif
