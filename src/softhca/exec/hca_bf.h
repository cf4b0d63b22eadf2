/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * BlueFlame: a WQE is pushed whole to a register instead of its first eight
 * bytes only; a NIC executes it without reading the ring. This device compares
 * the pushed bytes with the ring, and executes the ring's WQE. Called by the
 * doorbell; no lock is held.
 */
#ifndef HCA_BF_H
#define HCA_BF_H

#include "softhca/doorbell/hca_push.h"

struct hca_qp;

/* The WQE whose beginning is in a half of a register. */
struct hca_bf_wqe {
    uint32_t qpn;
    uint16_t idx;
    uint16_t size; /* bytes, less than a whole block */
};

/* The pushed WQE that this thread executes, size in whole blocks; qpn 0: none.
 * In the static TLS block, as hca_todo is. */
extern __thread struct hca_bf_wqe hca_bf_running
    __attribute__((tls_model("initial-exec")));

/* Reads it as it is now: a second writer, which a register must not have, may
 * change it at any time. */
struct hca_bf_wqe hca_bf_wqe(const struct hca_push *push, unsigned half);

/* Notes a store of eight bytes to the beginning of a half, as a doorbell. */
static inline void hca_bf_ring(struct hca_push *push, unsigned half,
                               uint64_t head)
{
    push->words[half]   = 0;
    push->data[half][0] = head;
}

/* Executes a WQE of the queue, not longer than a half, that was pushed whole.
 * The queue is rung, unless the first eight bytes did that; it is put in error
 * if the ring holds another WQE. While it runs, hca_bf_pushed() returns the
 * bytes in the register. */
void hca_bf_push(struct hca_qp *qp, struct hca_push *push, unsigned half,
                 const struct hca_bf_wqe *wqe);

/* Returns the bytes of the WQE that the register has, in whole blocks: 0 if the
 * ring must be read. (A WQE pushed in eight bytes at a time rings before it is
 * complete: hca_bf_push() is called after that.) */
static inline unsigned hca_bf_pushed(uint32_t qpn, uint16_t idx)
{
    return ((hca_bf_running.qpn == qpn) && (hca_bf_running.idx == idx)) ?
               hca_bf_running.size :
               0;
}

/* Returns true if a row of stores to the register of a half stopped before its
 * WQE was complete; a new row must not begin before that. */
static inline bool hca_bf_is_short(const struct hca_push *push, unsigned half)
{
    return (push->words[half] | push->words[half ^ 1]) != 0;
}

/* Ends the row of one half, if there is one, and puts the queue of its WQE in
 * error, if that is of this page. */
void hca_bf_fail_short(uint32_t uar, struct hca_push *push, unsigned half);

#endif
