/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * CQE compression: which completions go together, and the contents of mini
 * CQEs. See hca_cq_mini.h.
 */
#include "hca_cq_mini.h"

#include <endian.h>
#include <infiniband/mlx5dv.h>

#define HCA_QPN_MASK 0xffffffu

static bool hca_cqe_is_send(const struct hca_cqe *cqe)
{
    return cqe->opcode == MLX5_CQE_REQ;
}

bool hca_mini_is_plain(const struct hca_cqe *cqe)
{
    switch (cqe->opcode) {
    case MLX5_CQE_REQ:
    case MLX5_CQE_RESP_WR_IMM:
    case MLX5_CQE_RESP_SEND:
    case MLX5_CQE_RESP_SEND_IMM:
    case MLX5_CQE_RESP_SEND_INV:
        return !cqe->solicited && (cqe->data_len == 0) && (cqe->app == 0);
    default:
        return false;
    }
}

/* Compares QP and index. A send's mini CQE has its own index and opcode; the
 * indices of receives are consecutive. */
static bool hca_minis_follows(const struct hca_minis *minis,
                              const struct hca_cqe *cqe)
{
    const struct hca_cqe *first = &minis->first;

    return hca_cqe_is_send(cqe) ?
               (((cqe->sop_qpn ^ first->sop_qpn) & HCA_QPN_MASK) == 0) :
               ((cqe->sop_qpn == first->sop_qpn) &&
                (cqe->wqe_counter ==
                 (uint16_t)(first->wqe_counter + minis->num)));
}

bool hca_minis_take(const struct hca_minis *minis, const struct hca_cqe *cqe)
{
    const struct hca_cqe *first = &minis->first;

    return (minis->num < HCA_MINIS_MAX) && (cqe->opcode == first->opcode) &&
           (cqe->uidx == first->uidx) && (cqe->imm == first->imm) &&
           (cqe->src_qpn == first->src_qpn) && (cqe->slid == first->slid) &&
           (cqe->sl == first->sl) && (cqe->l3 == first->l3) &&
           (cqe->dlid_path == first->dlid_path) &&
           hca_minis_follows(minis, cqe);
}

/* The RSS hash and the checksum of a mini CQE are of Ethernet: 0 here. */
void hca_minis_add(struct hca_minis *minis, const struct hca_cqe *cqe)
{
    unsigned num              = hca_minis_num(minis) % HCA_MINIS_MAX;
    struct prm_mini_cqe *mini = &minis->minis[num];

    if (num == 0) {
        minis->first = *cqe;
    }
    *mini = (struct prm_mini_cqe){.byte_cnt = htobe32(cqe->byte_cnt)};
    if (hca_cqe_is_send(cqe)) {
        mini->send.wqe_counter = htobe16(cqe->wqe_counter);
        mini->send.opcode      = cqe->sop_qpn >> 24;
    }
    minis->num = num + 1;
}
