/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Pieces that only process_vm_readv() and _writev() reach, collected and moved
 * together. The kernel takes for a remote piece about the time of copying 4 KiB
 * (it looks for its pages anew: mm/process_vm_access.c,
 * process_vm_rw_single_vec()), for a local one a tenth of that. So neighbours
 * are joined, a peer's pieces are read together with the small gaps between
 * them, and many small pieces of this process are copied through a buffer by
 * loads and stores.
 */
#ifndef HCA_FAR_H
#define HCA_FAR_H

#include "softhca/doorbell/hca_trap.h"
#include "softhca/fabric/hca_mem.h"

#include <sys/uio.h>

/* Pieces of a side */
#define HCA_FAR_MAX 264u

/* Longest gap between two pieces of a peer that is read and dropped. As it is
 * less than a page, only pages that contain a piece are touched. */
#define HCA_FAR_GAP 2048u

/* Lies on the stack of the thread that rang a doorbell. */
struct hca_far {
    struct hca_owner owner; /* of the remote pieces */
    bool writes;
    unsigned nlocal, nremote;
    size_t total;
    struct iovec local[HCA_FAR_MAX], remote[HCA_FAR_MAX];
    char gap[HCA_FAR_GAP];
};

void hca_far_init(struct hca_far *far, struct hca_owner owner, bool writes);

/* Returns true if all must be moved before hca_far_add() for this piece. */
bool hca_far_is_full(const struct hca_far *far, const void *remote,
                     size_t length);
void hca_far_add(struct hca_far *far, void *local, void *remote, size_t length);

/* Moves all that was added. @return as hca_mem_*() */
int hca_far_move(struct hca_far *far);

/* Returns how many of these rows hca_far_move_rows() can move: 0 if it is
 * faster to add them. */
size_t hca_far_count_rows(const struct hca_far *far,
                          const struct hca_trap_rows *rows);

/* Moves rows at once. @return as hca_mem_*(), or -EAGAIN: add them. */
int hca_far_move_rows(const struct hca_far *far, struct hca_trap_rows rows);

#endif
