/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Completion queues: writing CQEs, overrun, arming, events, moderation and
 * the change to another ring. Entry layout: struct mlx5_cqe64 and struct
 * mlx5_err_cqe (mlx5dv.h), CQE version 1.
 */
#ifndef HCA_CQ_H
#define HCA_CQ_H

#include "hca_objs.h"

/* One completion, in host order. */
struct hca_cqe {
    uint8_t     opcode;    /* MLX5_CQE_* */
    bool        solicited;
    bool        both;      /* 32 inline bytes in both halves of 128 */
    uint8_t     syndrome;  /* of MLX5_CQE_*_ERR */
    uint8_t     vendor;    /* ... enum hca_check */
    uint8_t     sl, dlid_path; /* of the message received */
    uint8_t     l3;        /* 1: its GRH is in the buffer */
    uint16_t    slid;
    uint16_t    wqe_counter;
    uint32_t    sop_qpn;   /* 31..24 opcode of the send WQE; QPN */
    uint32_t    uidx;
    uint32_t    src_qpn;
    uint32_t    imm;       /* as on the wire */
    uint32_t    byte_cnt;
    const void *data;      /* NULL, or up to 64 bytes to go inline ... */
    uint8_t     data_len;  /* ... as hca_cq_inline_room() allows */
    bool        wide;      /* ... to the first half of 128, however few */
    uint8_t     app, app_op; /* tag matching: PRM_CQE_TM_* ... */
    uint16_t    app_info;    /* ... of this entry of the list ... */
    uint16_t    stride;      /* ... or from this stride of the receive on ... */
    const void *front;       /* ... NULL, or 16 bytes to begin with */
};

/* Bytes of a message that may go into a CQE of this queue, for a QP that
 * allows `scatter`: 64 takes an entry of 128. 0: none. */
unsigned hca_cq_inline_room(uint32_t cqn, unsigned scatter);

/* Like hca_obj_lock(). A process that is stopped in the middle of it may write to
 * it at any time: it is in error then, as one that overran. */
struct hca_cq *hca_cq_lock(uint32_t cqn);

/* Adds a completion. No CQ lock may be held.
 * @return 0, -ENOENT (no such queue, or it cannot be had), -EOVERFLOW (overrun,
 *         now or before: the QP has to go to the error state). */
int hca_cq_post(uint32_t cqn, const struct hca_cqe *cqe);

/* Has completions compressed, with mini CQEs of any format, from the first one
 * on: the queue is not published yet. @return 0, -ENOMEM. */
int hca_cq_compress(struct hca_cq *cq);

/* Writes what is held of a queue, if it is there. No CQ lock may be held. */
void hca_cq_close(uint32_t cqn);

/* Gives a queue back that nobody can name any more, or could ever.
 * @return false if its ring has to stay: a process that is stopped may yet write
 * to it. */
bool hca_cq_free(struct hca_cq *cq);

/* Goes on in another ring: RESIZE_CQ. The old one is not touched afterwards.
 * @return 0, -ETIMEDOUT (it cannot be had), -EINVAL (more is waiting than the
 * new one holds). */
int hca_cq_resize(uint32_t cqn, const struct hca_ring *ring);

/* The last who held obj.lock died inside, and it is held again now: finishes
 * what was begun (hca_kind_ops.repair). */
void hca_cq_repair(void *obj);

/* The index up to which the program has consumed, by its doorbell record. */
uint32_t hca_cq_consumer(const struct hca_cq *cq);

/* An index, cut to the bits it has. */
uint32_t hca_cq_index(uint32_t pi);

/* The device's clock, of which completions carry the time: nanoseconds. */
uint64_t hca_cq_timestamp(void);

#endif
