/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/* Entries of completion queues: see hca_cqe.h. */
#define _GNU_SOURCE
#include "hca_cqe_put.h"
#include "hca_cq_mini.h"

void hca_cqe_put(struct hca_cq *cq, const struct hca_cqe *cqe, uint8_t format)
{
    uint64_t time = (cq->timestamp && !hca_cqe_is_error(cqe)) ?
                        hca_cq_timestamp() :
                        0;

    if (cq->is_padded && (cqe->data_len == 0)) {
        memset(hca_cqe_at(cq, cq->pi), 0, 64);
    }
    hca_cqe_put_inline(cq, cqe, format, time);
}

void hca_cqe_put_minis(struct hca_cq *cq, const struct hca_minis *minis)
{
    struct hca_cqe title = hca_minis_title(minis);
    unsigned num         = hca_minis_num(minis);

    for (unsigned i = 0; i < num; i += PRM_MINI_CQES) {
        memcpy(hca_cqe_at(cq, cq->pi + ((i == 0) ? 1 : i)), &minis->minis[i],
               PRM_MINI_CQES * sizeof(minis->minis[0]));
        if (hca_pcie_is_on()) {
            hca_cqe_count(cq, title.opcode,
                          PRM_MINI_CQES * sizeof(minis->minis[0]));
        }
    }
    title.byte_cnt = num;
    hca_cqe_put(cq, &title, PRM_CQE_FORMAT_COMPRESSED);
}

bool hca_cqe_is_put(const struct hca_cq *cq)
{
    uint8_t op_own = hca_cqe_at(cq, cq->pi)[hca_cqe_second(cq) + 63];

    return ((op_own >> 4) != MLX5_CQE_INVALID) &&
           ((op_own & 1) == ((cq->pi >> cq->ring.log_cnt) & 1));
}
