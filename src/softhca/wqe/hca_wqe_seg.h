/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Interface between hca_wqe.c, which reads the control segment, hca_wqe_seg.c,
 * which reads the others, and hca_wqe_short.c; for these only.
 */
#ifndef HCA_WQE_SEG_H
#define HCA_WQE_SEG_H

#include "hca_wqe.h"

/* 512 bytes (Linux, include/linux/mlx5/device.h: MLX5_MAX_SGE_RD) */
#define HCA_READ_DS_MAX 32u

/* Position in hca_wqe.raw, in octowords */
struct hca_wqe_cursor {
    struct hca_wqe *wqe;
    const struct hca_qp *qp;
    unsigned at;
};

/* Logs a check that failed. @return @check. */
static inline enum hca_check hca_wqe_bad(const struct hca_wqe *wqe,
                                         enum hca_check check, uint64_t got)
{
    return hca_check_wqe(check, wqe->qpn, wqe->idx, got);
}

/* Takes the next @count octowords. @return NULL if ds is too small for them. */
static inline const void *hca_wqe_take(struct hca_wqe_cursor *cursor,
                                       unsigned count)
{
    const void *seg = cursor->wqe->raw + cursor->at * 16;

    if (cursor->at + count > cursor->wqe->ds) {
        return NULL;
    }
    cursor->at += count;
    return seg;
}

/* Parses the destination: address vector, XRC segment.
 * @return HCA_OK or the check that failed, logged. */
enum hca_check hca_wqe_parse_transport(struct hca_wqe_cursor *cursor);

/* Parses the operands of an atomic, whose size is known.
 * @return HCA_OK or the check that failed, logged. */
enum hca_check hca_wqe_parse_atomic(struct hca_wqe_cursor *cursor);

/* Parses the operands of the opcode: remote address, atomic operands, data. Of
 * UMR and TM, only finds body_at.
 * @return HCA_OK or the check that failed, logged. */
enum hca_check hca_wqe_parse_body(struct hca_wqe_cursor *cursor);

#endif
