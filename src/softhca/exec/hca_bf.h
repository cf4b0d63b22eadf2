/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * BlueFlame: a program pushes a whole WQE to a register, instead of its first
 * eight bytes; a NIC executes it without reading the ring. This device compares
 * the pushed bytes with the ring, and executes the ring's WQE. Called by
 * hca_uar.c; no lock is held.
 */
#ifndef HCA_BF_H
#define HCA_BF_H

#include "softhca/doorbell/hca_push.h"

struct hca_qp;

/* A WQE whose beginning is in a half of a register */
struct hca_bf_wqe {
    uint32_t qpn;
    uint16_t idx;
    uint16_t size; /* bytes, not rounded up to blocks */
};

/* The pushed WQE that this thread executes, with its size rounded up to blocks;
 * qpn 0: none. In the static TLS block, as hca_todo is. */
extern __thread struct hca_bf_wqe hca_bf_running
    __attribute__((tls_model("initial-exec")));

/* Decodes the first eight bytes of a WQE. If they are in a half of a register,
 * a second writer, which it must not have, may change them at any time: check
 * the size. */
struct hca_bf_wqe hca_bf_wqe(const uint64_t *data);

/* Records @head, stored to the beginning of a half, as a doorbell. */
static inline void hca_bf_ring(struct hca_push *push, unsigned half,
                               uint64_t head)
{
    push->words[half]   = 0;
    push->data[half][0] = head;
}

/* Rings the queue for a WQE, not longer than a half, that was pushed whole,
 * unless its first eight bytes rang. Puts the queue in error if the ring holds
 * another WQE. While the queue runs, hca_bf_pushed() returns the bytes in the
 * register. */
void hca_bf_push(struct hca_qp *qp, struct hca_push *push, unsigned half,
                 const struct hca_bf_wqe *wqe);

/* hca_bf_push() for a WQE that one store of a block of 64 bytes has pushed:
 * nothing of it was recorded. */
void hca_bf_push_block(struct hca_qp *qp, const uint64_t *block,
                       const struct hca_bf_wqe *wqe);

/* Returns the bytes of the WQE that the register has, rounded up to blocks; 0
 * if the ring must be read. (A WQE pushed eight bytes at a time rings with the
 * first, before hca_bf_push().) */
static inline unsigned hca_bf_pushed(uint32_t qpn, uint16_t idx)
{
    return ((hca_bf_running.qpn == qpn) && (hca_bf_running.idx == idx)) ?
               hca_bf_running.size :
               0;
}

/* Returns true if either half of the register of @half has a WQE that is not
 * complete yet; no other may begin then. */
static inline bool hca_bf_is_short(const struct hca_push *push, unsigned half)
{
    return (push->words[half] | push->words[half ^ 1]) != 0;
}

/* Ends the row of one half, if there is one, and puts the queue of its WQE in
 * error, if that is this process's and uses the UAR page @uar. */
void hca_bf_fail_short(uint32_t uar, struct hca_push *push, unsigned half);

#endif
