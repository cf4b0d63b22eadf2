/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Entries of completion queues, written under the queue's lock. Layout: struct
 * mlx5_cqe64 and struct mlx5_err_cqe (mlx5dv.h), CQE version 1.
 */
#ifndef HCA_CQE_H
#define HCA_CQE_H

#include "hca_objs.h"

#include <infiniband/mlx5dv.h>

struct hca_minis;

/* One completion, in host order. */
struct hca_cqe {
    uint8_t opcode; /* MLX5_CQE_* */
    bool solicited;
    bool both;             /* up to 32 inline bytes: to both halves of 128 */
    uint8_t syndrome;      /* of MLX5_CQE_*_ERR */
    uint8_t vendor;        /* of an error: enum hca_check */
    uint8_t sl, dlid_path; /* of the message received */
    uint8_t l3;            /* 1: the buffer begins with a GRH */
    uint16_t slid;
    uint16_t wqe_counter;
    uint32_t sop_qpn; /* 31..24 opcode of the send WQE; QPN */
    uint32_t uidx;
    uint32_t src_qpn;
    uint32_t imm; /* as on the wire */
    uint32_t byte_cnt;
    const void *data;    /* NULL, or up to 64 bytes, stored inline */
    uint8_t data_len;    /* bytes; as hca_cq_inline_room() allows */
    bool wide;           /* data: always to the first half of 128 */
    uint8_t app, app_op; /* tag matching, or 0; PRM_CQE_TM_* */
    bool has_app_info;   /* the next three are valid */
    uint16_t app_info;   /* app: index in the tag list */
    uint16_t stride;     /* app: first stride in the receive WQE */
    const void *front;   /* app: NULL, or the first 16 bytes of the CQE */
};

static inline bool hca_cqe_is_error(const struct hca_cqe *cqe)
{
    return (cqe->opcode == MLX5_CQE_REQ_ERR) ||
           (cqe->opcode == MLX5_CQE_RESP_ERR);
}

/* Writes @cqe at the producer index, which the caller advances.
 * @param format  further bits of op_own: 0, or PRM_CQE_FORMAT_COMPRESSED */
void hca_cqe_put(struct hca_cq *cq, const struct hca_cqe *cqe, uint8_t format);

/* Writes the held completions, two or more, as one title with mini CQEs behind
 * it. The caller advances the producer index by minis->num. */
void hca_cqe_put_minis(struct hca_cq *cq, const struct hca_minis *minis);

/* @return true if the entry at the producer index is valid. */
bool hca_cqe_is_put(const struct hca_cq *cq);

#endif
