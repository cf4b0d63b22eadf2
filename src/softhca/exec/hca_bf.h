/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * BlueFlame: a WQE that is pushed to a register instead of its first eight
 * bytes, which a NIC executes without reading the ring. This device compares
 * what was pushed with the ring, and executes what the ring holds. Called by
 * the doorbell; no lock is held.
 */
#ifndef HCA_BF_H
#define HCA_BF_H

#include "softhca/doorbell/hca_push.h"

struct hca_qp;

/* What a half of a register holds the beginning of. */
struct hca_bf_wqe {
    uint32_t qpn;
    uint16_t idx;
    uint16_t size; /* bytes, less than a whole block */
};

/* The one that this thread runs by a push, in whole blocks; qpn 0: none. In the
 * static TLS block, as hca_todo is. */
extern __thread struct hca_bf_wqe hca_bf_running
        __attribute__((tls_model("initial-exec")));

/* As it is now: a second writer, which a register must not have, may change it
 * at any time. */
struct hca_bf_wqe hca_bf_wqe(const struct hca_push *push, unsigned half);

/* Eight bytes were stored to the beginning of a half, as a doorbell. */
static inline void
hca_bf_ring(struct hca_push *push, unsigned half, uint64_t head)
{
    push->words[half]   = 0;
    push->data[half][0] = head;
}

/* A WQE of the queue, not longer than a half, is there as a whole. The queue is
 * rung, unless the first eight bytes did that; in error if the ring holds something
 * else. While it runs, hca_bf_pushed() tells what the register has. */
void hca_bf_push(struct hca_qp *qp, struct hca_push *push, unsigned half,
                 const struct hca_bf_wqe *wqe);

/* Bytes of the WQE that the register has, of whole blocks, for whoever executes
 * it: 0 if the ring has to be read. (Those pushed in eight bytes at a time ring
 * before they are known: hca_bf_push() then.) */
static inline unsigned hca_bf_pushed(uint32_t qpn, uint16_t idx)
{
    return ((hca_bf_running.qpn == qpn) && (hca_bf_running.idx == idx)) ?
           hca_bf_running.size : 0;
}

/* Whether a row of stores to the register of a half stopped before its WQE was
 * complete, which one that begins now would have to be. */
static inline bool hca_bf_is_short(const struct hca_push *push, unsigned half)
{
    return (push->words[half] | push->words[half ^ 1]) != 0;
}

/* Ends the row of one half, if there is one: the queue of its WQE is in error,
 * if it is of this page. */
void hca_bf_fail_short(uint32_t uar, struct hca_push *push, unsigned half);

#endif
