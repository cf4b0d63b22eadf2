/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Writing an entry of a completion queue: hca_cqe_put() of hca_cqe.h, inline
 * for the completion of each message.
 */
#ifndef HCA_CQE_PUT_H
#define HCA_CQE_PUT_H

#include "hca_cq.h"
#include "hca_cqe.h"
#include "hca_pcie.h"

#include <assert.h>
#include <endian.h>
#include <string.h>

#define HCA_CQE_F static inline __attribute__((always_inline))

#define HCA_CQE_SE    0x02 /* op_own (mlx5dv_get_cqe_se()) */
#define HCA_CQE_FRONT 16   /* struct ibv_tmh, struct mlx5_tm_cqe */
#define HCA_CQE_LAST  60   /* the word with the owner bit */

static_assert(sizeof(struct mlx5_cqe64) == 64, "64-byte entry");
static_assert(sizeof(struct mlx5_err_cqe) == 64, "64-byte entry");
static_assert((offsetof(struct mlx5_cqe64, wqe_counter) == HCA_CQE_LAST) &&
                  (offsetof(struct mlx5_err_cqe, wqe_counter) == HCA_CQE_LAST),
              "both end with wqe_counter, signature, op_own");
static_assert(offsetof(struct mlx5_err_cqe, srqn) ==
                  offsetof(struct mlx5_cqe64, srqn_uidx),
              "both carry uidx");

static inline void hca_cqe_fill_app_info(struct mlx5_cqe64 *to,
                                         const struct hca_cqe *cqe)
{
    uint16_t stride = htobe16(cqe->stride);

    to->app_info = htobe16(cqe->app_info);
    memcpy(&to->rsvd20[2], &stride, sizeof(stride));
    if (cqe->front != NULL) {
        memcpy(to, cqe->front, HCA_CQE_FRONT);
    }
}

HCA_CQE_F void hca_cqe_fill_good(struct mlx5_cqe64 *to,
                                 const struct hca_cqe *cqe)
{
    to->ml_path        = cqe->dlid_path;
    to->slid           = htobe16(cqe->slid);
    to->flags_rqpn     = htobe32(((uint32_t)cqe->l3 << 28) |
                                 ((uint32_t)cqe->sl << 24) | cqe->src_qpn);
    to->srqn_uidx      = htobe32(cqe->uidx);
    to->imm_inval_pkey = cqe->imm;
    to->byte_cnt       = htobe32(cqe->byte_cnt);
    to->sop_drop_qpn   = htobe32(cqe->sop_qpn);
    if (cqe->app != 0) {
        to->app    = cqe->app;
        to->app_op = cqe->app_op;
        if (cqe->has_app_info) {
            hca_cqe_fill_app_info(to, cqe);
        }
    }
}

static inline void hca_cqe_fill_error(struct mlx5_err_cqe *to,
                                      const struct hca_cqe *cqe)
{
    to->srqn             = htobe32(cqe->uidx);
    to->vendor_err_synd  = cqe->vendor;
    to->syndrome         = cqe->syndrome;
    to->s_wqe_opcode_qpn = htobe32(cqe->sop_qpn);
}

/* Copies up to 32 bytes; 16 or more by two moves that may overlap, as the
 * compiler has a loop for any length. */
HCA_CQE_F void hca_cqe_copy(uint8_t *to, const uint8_t *from, size_t length)
{
    if (__builtin_expect(length >= 16, 1)) { /* a short message of UCX */
        memcpy(to, from, 16);
        memcpy(to + length - 16, from + length - 16, 16);
    } else {
        memcpy(to, from, length);
    }
}

/* Inline data: up to 32 bytes take the start of the 64-byte entry; up to 64
 * the first half of a 128-byte one. libmlx5 looks for the 32 bytes of a
 * requester in the first half of a 128-byte entry, UCX in the second: such
 * data is written to both. @return the bits of op_own. */
HCA_CQE_F uint8_t hca_cqe_fill_data(struct mlx5_cqe64 *to, uint8_t *first_half,
                                    const struct hca_cqe *cqe)
{
    if ((cqe->data_len > 32) || cqe->wide) {
        memcpy(first_half, cqe->data, cqe->data_len);
        return MLX5_INLINE_SCATTER_64;
    }
    hca_cqe_copy((uint8_t *)to, cqe->data, cqe->data_len);
    if (cqe->both && (first_half != NULL)) {
        memcpy(first_half, cqe->data, cqe->data_len);
    }
    return MLX5_INLINE_SCATTER_32;
}

HCA_CQE_F uint8_t *hca_cqe_at(const struct hca_cq *cq, uint32_t index)
{
    uint32_t slot = index & ((1u << cq->ring.log_cnt) - 1);

    return (uint8_t *)hca_at(cq->ring.buf +
                             ((size_t)slot << cq->ring.log_stride));
}

/* Returns the offset of the last 64 bytes of an entry, of which there are 64 or
 * 128: 0 or 64, as any process may have written to the queue. */
HCA_CQE_F size_t hca_cqe_second(const struct hca_cq *cq)
{
    return (cq->ring.log_stride & 1) * 64;
}

static inline void hca_cqe_count(struct hca_cq *cq, uint8_t opcode,
                                 uint64_t length)
{
    bool is_send = (opcode == MLX5_CQE_REQ) || (opcode == MLX5_CQE_REQ_ERR);

    hca_pcie_add(&cq->pcie, is_send ? HCA_PCIE_SEND_CQE : HCA_PCIE_RECV_CQE, 0,
                 length);
}

/* Entries of 128 bytes have their first half written for data, or padded. */
static inline unsigned hca_cqe_length(const struct hca_cq *cq,
                                      const struct hca_cqe *cqe)
{
    bool has_data = (cq->ring.log_stride == 7) && (cqe->data_len > 0) &&
                    ((cqe->data_len > 32) || cqe->wide || cqe->both);

    return (has_data || cq->is_padded) ? 128 : 64;
}

/* Fills in all of an entry but its last word.
 * @param target  its last 64 bytes
 * @return the bits of op_own */
HCA_CQE_F uint8_t hca_cqe_fill(const struct hca_cqe *cqe, uint64_t time,
                               uint8_t *entry, void *target)
{
    struct mlx5_cqe64 *to = target;
    uint8_t bits          = 0;

    memset(target, 0, HCA_CQE_LAST);
    if (hca_cqe_is_error(cqe)) {
        hca_cqe_fill_error(target, cqe);
        return 0;
    }
    hca_cqe_fill_good(to, cqe);
    if (cqe->data_len > 0) {
        bits = hca_cqe_fill_data(to, (target == entry) ? NULL : entry, cqe);
    }
    to->timestamp = htobe64(time);
    return bits;
}

/* hca_cqe_put() without padding.
 * @param time  of the completion; 0: none
 *
 * The owner bit makes the entry valid: its word goes last, after all earlier
 * writes of this message. Pairs with the poller's barrier. */
HCA_CQE_F void hca_cqe_put_inline(struct hca_cq *cq, const struct hca_cqe *cqe,
                                  uint8_t format, uint64_t time)
{
    uint8_t *entry  = hca_cqe_at(cq, cq->pi);
    uint8_t *target = entry + hca_cqe_second(cq);
    uint32_t op_own = (cqe->opcode << 4) | format |
                      ((cq->pi >> cq->ring.log_cnt) & 1) |
                      (cqe->solicited ? HCA_CQE_SE : 0);

    op_own |= hca_cqe_fill(cqe, time, entry, target);
    __atomic_store_n((uint32_t *)(target + HCA_CQE_LAST),
                     htole32(htobe16(cqe->wqe_counter) | (op_own << 24)),
                     __ATOMIC_RELEASE);
    if (hca_pcie_is_on()) {
        hca_cqe_count(cq, cqe->opcode, hca_cqe_length(cq, cqe));
    }
}

#endif
