/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The WQEs that give a key its layout, and that invalidate it, as libmlx5
 * writes them (rdma-core, providers/mlx5/qp.c: mlx5_send_wr_mkey_configure()
 * and its setters, set_bind_wr() for IBV_WR_LOCAL_INV). Both are UMRs, opcode
 * MLX5_OPCODE_UMR, with the key in the immediate of the ctrl segment.
 *
 *   ctrl | UMR ctrl | mkey context | translations, or a data segment that
 *   16   | 48       | 64           | points to them
 *
 * Knows only bytes, as dcx_wqe.h does. Formats: mlx5dv.h, struct
 * mlx5_wqe_umr_*.
 */
#ifndef UCT_DCX_UMR_WQE_H
#define UCT_DCX_UMR_WQE_H

#include "dcx_sgl.h"
#include "uct/dcx/dev/dcx_wqe.h"

enum {
    /* A WQE has 63 segments at most (PRM_CTRL_DS): after the first 8 there is
     * room for this number of translations, a multiple of four. */
    UCT_DCX_UMR_MAX_INLINE = 52,

    /* WQEBBs of the longest layout, and of an invalidation */
    UCT_DCX_UMR_LAYOUT_BB     = 15,
    UCT_DCX_UMR_INVALIDATE_BB = 2
};

/* Replaces the first entry's key if a block is repeated (libmlx5,
 * umr_strided_seg_create()) */
#define UCT_DCX_UMR_OP_REPEAT 0x400u

/* Any QP may use the key; the low byte is the variant. */
#define UCT_DCX_UMR_ANY_QP 0xffffff00u

/* No atomics: the key never has them, and a device may refuse a UMR that sets
 * them (umr_modify_atomic_disabled; umr.c of Linux' mlx5_ib). */
#define UCT_DCX_UMR_MASK_ACCESS \
    (MLX5_WQE_UMR_CTRL_MKEY_MASK_ACCESS_LOCAL_WRITE | \
     MLX5_WQE_UMR_CTRL_MKEY_MASK_ACCESS_REMOTE_READ | \
     MLX5_WQE_UMR_CTRL_MKEY_MASK_ACCESS_REMOTE_WRITE)

#define UCT_DCX_UMR_MASK_LAYOUT \
    (MLX5_WQE_UMR_CTRL_MKEY_MASK_FREE | MLX5_WQE_UMR_CTRL_MKEY_MASK_MKEY | \
     MLX5_WQE_UMR_CTRL_MKEY_MASK_LEN | UCT_DCX_UMR_MASK_ACCESS)

/* Also valid for a key whose layout is a list of translations (Linux, mlx5_ib
 * wr.c: get_umr_reg_mr_mask(), for MLX5_MKC_ACCESS_MODE_KLMS, too) */
#define UCT_DCX_UMR_MASK_START MLX5_WQE_UMR_CTRL_MKEY_MASK_START_ADDR

#define UCT_DCX_UMR_MASK_INVALIDATE \
    (MLX5_WQE_UMR_CTRL_MKEY_MASK_FREE | MLX5_WQE_UMR_CTRL_MKEY_MASK_MKEY | \
     MLX5_WQE_UMR_CTRL_MKEY_MASK_QPN)


/* A translation: one octoword */
typedef union uct_dcx_umr_klm {
    struct mlx5_wqe_umr_klm_seg klm;
    struct mlx5_wqe_umr_repeat_block_seg repeat;
    struct mlx5_wqe_umr_repeat_ent_seg block;
} uct_dcx_umr_klm_t;

static_assert(sizeof(uct_dcx_umr_klm_t) == UCT_DCX_WQE_SEG, "one octoword");
static_assert(sizeof(struct mlx5_wqe_umr_ctrl_seg) == 3 * UCT_DCX_WQE_SEG,
              "with the ctrl segment one WQEBB");
static_assert(sizeof(struct mlx5_wqe_mkey_context_seg) == MLX5_SEND_WQE_BB,
              "one WQEBB");


static inline uint8_t uct_dcx_umr_access(uint32_t access)
{
    return ((access & IBV_ACCESS_LOCAL_WRITE) ?
                MLX5_WQE_MKEY_CONTEXT_ACCESS_FLAGS_LOCAL_WRITE :
                0) |
           ((access & IBV_ACCESS_REMOTE_READ) ?
                MLX5_WQE_MKEY_CONTEXT_ACCESS_FLAGS_REMOTE_READ :
                0) |
           ((access & IBV_ACCESS_REMOTE_WRITE) ?
                MLX5_WQE_MKEY_CONTEXT_ACCESS_FLAGS_REMOTE_WRITE :
                0);
}


/* Returns the place of the next translation: in the WQE, or in memory. */
UCT_DCX_WQE_F uct_dcx_umr_klm_t *uct_dcx_umr_next(uct_dcx_wqe_t *wqe,
                                                  uct_dcx_umr_klm_t **list_p)
{
    return (wqe != NULL) ? (uct_dcx_umr_klm_t *)uct_dcx_wqe_seg(wqe) :
                           (*list_p)++;
}


/* Writes the header of a repeated block. */
static inline void uct_dcx_umr_repeat(const uct_dcx_sgl_t *layout,
                                      uct_dcx_umr_klm_t *to)
{
    memset(to, 0, sizeof(*to));
    to->repeat.byte_count   = htobe32(layout->length / layout->repeat);
    to->repeat.op           = htobe32(UCT_DCX_UMR_OP_REPEAT);
    to->repeat.repeat_count = htobe32(layout->repeat);
    to->repeat.num_ent      = htobe16(layout->num);
}


/* Writes the translations of a layout to @wqe, or to @list if @wqe is NULL.
 * Translations behind the last entry are 0. */
UCT_DCX_WQE_F void uct_dcx_umr_translate(const uct_dcx_sgl_t *layout,
                                         uct_dcx_wqe_t *wqe,
                                         uct_dcx_umr_klm_t *list)
{
    const uct_dcx_sgl_entry_t *entry = layout->entries;
    const uct_dcx_sgl_entry_t *end   = entry + layout->num;
    unsigned left = uct_dcx_sgl_num_klm(layout) - layout->num;
    uct_dcx_umr_klm_t *to;

    if (layout->kind == UCT_DCX_SGL_INTERLEAVED) {
        --left;
        uct_dcx_umr_repeat(layout, uct_dcx_umr_next(wqe, &list));
        for (; entry < end; ++entry) {
            to                   = uct_dcx_umr_next(wqe, &list);
            to->block.stride     = htobe16(entry->stride);
            to->block.byte_count = htobe16(entry->bytes);
            to->block.memkey     = htobe32(entry->lkey);
            to->block.va         = htobe64(entry->addr);
        }
    }

    for (; entry < end; ++entry) {
        to                 = uct_dcx_umr_next(wqe, &list);
        to->klm.byte_count = htobe32(entry->bytes);
        to->klm.mkey       = htobe32(entry->lkey);
        to->klm.address    = htobe64(entry->addr);
    }

    for (; left > 0; --left) {
        memset(uct_dcx_umr_next(wqe, &list), 0, sizeof(*to));
    }
}


/* Takes @size bytes of segments, which lie in one WQEBB, and zeroes them. */
static inline void *uct_dcx_umr_zero(uct_dcx_wqe_t *wqe, size_t size)
{
    unsigned more = (size / UCT_DCX_WQE_SEG) - 1;
    void *seg     = uct_dcx_wqe_seg(wqe);

    memset(seg, 0, size);
    wqe->pos += more * UCT_DCX_WQE_SEG;
    wqe->ds += more;
    wqe->inside -= more;
    return seg;
}


/* Begins either WQE: takes its UMR ctrl segment and its mkey context, all zero.
 * Each ends at the end of a WQEBB, so it is in one. */
static inline struct mlx5_wqe_umr_ctrl_seg *
uct_dcx_umr_begin(uct_dcx_wqe_t *wqe, struct mlx5_wqe_mkey_context_seg **mkey_p)
{
    struct mlx5_wqe_umr_ctrl_seg *ctrl =
        (struct mlx5_wqe_umr_ctrl_seg *)uct_dcx_umr_zero(wqe, sizeof(*ctrl));

    *mkey_p = (struct mlx5_wqe_mkey_context_seg *)uct_dcx_umr_zero(
        wqe, sizeof(**mkey_p));
    return ctrl;
}


/* Writes the segments that give a key a layout. The upper bits of @number are
 * the key's index; its variant is the new one. The translations are in @list,
 * in memory of key @list_lkey; NULL: in the WQE. */
static inline void uct_dcx_umr_write_layout(uct_dcx_wqe_t *wqe, uint32_t number,
                                            const uct_dcx_sgl_t *layout,
                                            const void *list,
                                            uint32_t list_lkey)
{
    unsigned num_klm    = uct_dcx_sgl_num_klm(layout);
    uint64_t mask_start = layout->is_based ? UCT_DCX_UMR_MASK_START : 0;
    struct mlx5_wqe_mkey_context_seg *mkey;
    struct mlx5_wqe_umr_ctrl_seg *ctrl;

    ctrl                = uct_dcx_umr_begin(wqe, &mkey);
    ctrl->klm_octowords = htobe16(num_klm);
    ctrl->mkey_mask     = htobe64(UCT_DCX_UMR_MASK_LAYOUT | mask_start);
    mkey->access_flags  = uct_dcx_umr_access(layout->access);
    mkey->qpn_mkey      = htobe32(UCT_DCX_UMR_ANY_QP | (number & 0xff));
    mkey->start_addr    = htobe64(layout->start);
    mkey->len           = htobe64(layout->length);

    if (list == NULL) {
        ctrl->flags = MLX5_WQE_UMR_CTRL_FLAG_INLINE;
        uct_dcx_umr_translate(layout, wqe, NULL);
    } else {
        /* One data segment for all of them (Linux, mlx5_ib: umr.h, struct
         * mlx5r_umr_wqe). */
        uct_dcx_wqe_data(wqe, list, num_klm * UCT_DCX_WQE_SEG, list_lkey);
    }
}


/* Writes the segments that invalidate the layout of a key: the key gives no
 * access any longer. Its variant is 0 from then on. */
static inline void uct_dcx_umr_write_invalidate(uct_dcx_wqe_t *wqe)
{
    struct mlx5_wqe_mkey_context_seg *mkey;
    struct mlx5_wqe_umr_ctrl_seg *ctrl;

    ctrl        = uct_dcx_umr_begin(wqe, &mkey);
    ctrl->flags = MLX5_WQE_UMR_CTRL_FLAG_TRNSLATION_OFFSET |
                  MLX5_WQE_UMR_CTRL_FLAG_INLINE |
                  MLX5_WQE_UMR_CTRL_FLAG_CHECK_QPN;
    ctrl->mkey_mask = htobe64(UCT_DCX_UMR_MASK_INVALIDATE);
    mkey->free      = MLX5_WQE_MKEY_CONTEXT_FREE;
    mkey->qpn_mkey  = htobe32(UCT_DCX_UMR_ANY_QP);
}

#endif
