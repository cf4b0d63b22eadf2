/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Decodes the segments after the control segment. Layouts: mlx5dv.h (struct
 * mlx5_wqe_*_seg), prm.h. hca_wqe.c lists the ignored fields.
 */
#include "hca_wqe_seg.h"
#include "softhca/fabric/hca_dev.h"

#include <common/prm.h>
#include <endian.h>
#include <string.h>

static enum hca_check hca_wqe_parse_xrc(struct hca_wqe_cursor *cursor)
{
    const __be32 *seg = hca_wqe_take(cursor, 1);

    if (seg == NULL) {
        return hca_wqe_bad(cursor->wqe, HCA_CHECK_DS_SHORT, cursor->wqe->ds);
    }
    cursor->wqe->xrc_srqn = be32toh(*seg);
    return (cursor->wqe->xrc_srqn >> 24) ?
               hca_wqe_bad(cursor->wqe, HCA_CHECK_XRC_SRQN, be32toh(*seg)) :
               HCA_OK;
}

/* Parses the second part of the AV, present if bit 31 of dqp_dct is set. On
 * InfiniBand its fields count if the GRH bit (30 of grh_gid_fl) is set; on RoCE
 * this bit is reserved, and there always is a GRH. */
static enum hca_check hca_wqe_parse_grh(struct hca_wqe_cursor *cursor,
                                        const struct mlx5_wqe_av *av)
{
    struct hca_wqe *wqe   = cursor->wqe;
    struct hca_path *path = &wqe->path;
    uint32_t word         = be32toh(av->grh_gid_fl);
    bool is_roce          = hca_dev_is_roce(cursor->qp->obj.dev);
    uint8_t sgid[16];
    uint32_t rsvd;

    path->grh        = is_roce || (word & (1u << 30));
    path->sgid_index = (word >> 20) & 0xff;
    path->flow_label = word & 0xfffff;
    path->hop_limit  = av->hop_limit;
    path->tclass     = av->tclass;
    memcpy(path->dmac, av->rmac, sizeof(path->dmac));
    memcpy(path->dgid, av->rgid, sizeof(path->dgid));

    memcpy(&rsvd, av->reserved0, sizeof(rsvd));
    if (hca_strict && (rsvd != 0)) {
        return hca_wqe_bad(wqe, HCA_CHECK_AV_RSVD, be32toh(rsvd));
    }
    if ((word >> 31) || (is_roce && (word >> 30))) {
        return hca_wqe_bad(wqe, HCA_CHECK_AV_GRH_RSVD, word);
    }
    if (path->grh && (hca_dev_gid(cursor->qp->obj.dev, path->sgid_index,
                                  sgid) == HCA_GID_NONE)) {
        return hca_wqe_bad(wqe, HCA_CHECK_AV_SGID, path->sgid_index);
    }
    return HCA_OK;
}

/* Returns the bits of dqp_dct that must be 0. Of a DCI, bits 27..24 are the SL
 * of the target's answers, which UCX 1.18 sets
 * (uct_dc_mlx5_set_dgram_seg()). */
static uint32_t hca_wqe_dqpn_reserved(const struct hca_qp *qp)
{
    return (qp->type == HCA_QP_DCI) ? 0x70000000 : 0x7f000000;
}

static enum hca_check hca_wqe_parse_base_av(struct hca_wqe_cursor *cursor,
                                            const struct mlx5_wqe_av *av)
{
    struct hca_wqe *wqe   = cursor->wqe;
    struct hca_path *path = &wqe->path;
    uint32_t word         = be32toh(av->dqp_dct);

    wqe->dqpn           = word & 0xffffff;
    wqe->dc_key         = be64toh(av->key.dc_key);
    wqe->qkey           = be32toh(av->key.qkey.qkey);
    path->dlid          = be16toh(av->rlid);
    path->src_path_bits = av->fl_mlid & 0x7f;
    path->sl            = av->stat_rate_sl & 0xf;
    path->reverse_sl = (cursor->qp->type == HCA_QP_DCI) ? (word >> 24) & 0xf :
                                                          path->sl;
    path->grh        = false;
    if (hca_dev_is_roce(cursor->qp->obj.dev)) {
        path->sl >>= 1; /* the field is twice the priority (mlx5_create_ah()) */
    }
    if (word & hca_wqe_dqpn_reserved(cursor->qp)) {
        return hca_wqe_bad(wqe, HCA_CHECK_AV_DQPN_RSVD, word);
    }
    if (hca_strict && (cursor->qp->type == HCA_QP_UD) &&
        (av->key.qkey.reserved != 0)) {
        return hca_wqe_bad(wqe, HCA_CHECK_AV_RSVD,
                           be32toh(av->key.qkey.reserved));
    }
    return HCA_OK;
}

static enum hca_check hca_wqe_parse_av(struct hca_wqe_cursor *cursor)
{
    const struct mlx5_wqe_av *av = hca_wqe_take(cursor, 1);
    enum hca_check check;

    if (av == NULL) {
        return hca_wqe_bad(cursor->wqe, HCA_CHECK_DS_SHORT, cursor->wqe->ds);
    }
    check = hca_wqe_parse_base_av(cursor, av);
    if (check != HCA_OK) {
        return check;
    }
    if (!(be32toh(av->dqp_dct) >> 31)) {
        return hca_dev_is_roce(cursor->qp->obj.dev) ?
                   hca_wqe_bad(cursor->wqe, HCA_CHECK_AV_GRH, 0) :
                   HCA_OK;
    }
    if (hca_wqe_take(cursor, 2) == NULL) {
        return hca_wqe_bad(cursor->wqe, HCA_CHECK_DS_SHORT, cursor->wqe->ds);
    }
    return hca_wqe_parse_grh(cursor, av);
}

static enum hca_check hca_wqe_parse_raddr(struct hca_wqe_cursor *cursor)
{
    const struct mlx5_wqe_raddr_seg *seg = hca_wqe_take(cursor, 1);

    if (seg == NULL) {
        return hca_wqe_bad(cursor->wqe, HCA_CHECK_DS_SHORT, cursor->wqe->ds);
    }
    cursor->wqe->raddr = be64toh(seg->raddr);
    cursor->wqe->rkey  = be32toh(seg->rkey);
    if (hca_strict && (seg->reserved != 0)) {
        return hca_wqe_bad(cursor->wqe, HCA_CHECK_RADDR_RSVD,
                           be32toh(seg->reserved));
    }
    return HCA_OK;
}

static void hca_wqe_masked32(struct hca_wqe_atomic *atomic, const void *ptr,
                             bool is_cs)
{
    const struct prm_masked_cswap32_seg *seg = ptr;

    atomic->swap_add     = be32toh(seg->swap_data);
    atomic->compare      = be32toh(seg->compare_data);
    atomic->swap_mask    = is_cs ? be32toh(seg->swap_mask) : 0;
    atomic->compare_mask = is_cs ? be32toh(seg->compare_mask) : 0;
}

static void hca_wqe_masked64(struct hca_wqe_atomic *atomic, const void *ptr,
                             bool is_cs)
{
    const struct prm_masked_cswap64_seg *seg = ptr;

    atomic->swap_add     = be64toh(seg[0].swap);
    atomic->compare      = be64toh(seg[0].compare);
    atomic->swap_mask    = is_cs ? be64toh(seg[1].swap) : 0;
    atomic->compare_mask = is_cs ? be64toh(seg[1].compare) : 0;
}

/* Converts plain operands to masked ones: compare and swap all bits; a
 * fetch-add without a boundary for the carry. */
static void hca_wqe_plain(struct hca_wqe_atomic *atomic, const void *ptr,
                          bool is_cs)
{
    const struct mlx5_wqe_atomic_seg *seg = ptr;

    atomic->swap_add     = be64toh(seg->swap_add);
    atomic->compare      = is_cs ? be64toh(seg->compare) : 0;
    atomic->swap_mask    = ~0ull;
    atomic->compare_mask = ~0ull;
}

enum hca_check hca_wqe_parse_atomic(struct hca_wqe_cursor *cursor)
{
    struct hca_wqe *wqe = cursor->wqe;
    bool is_ext         = (wqe->op->flags & HCA_OP_EXT) != 0;
    bool is_cs          = (wqe->opcode == MLX5_OPCODE_ATOMIC_CS) ||
                 (wqe->opcode == MLX5_OPCODE_ATOMIC_MASKED_CS);
    const void *seg = hca_wqe_take(
        cursor, (is_ext && is_cs && (wqe->atomic.size == 8)) ? 2 : 1);

    if (seg == NULL) {
        return hca_wqe_bad(wqe, HCA_CHECK_DS_SHORT, wqe->ds);
    }
    wqe->atomic.is_cs = is_cs;
    if (!is_ext) {
        hca_wqe_plain(&wqe->atomic, seg, is_cs);
    } else if (wqe->atomic.size == 8) {
        hca_wqe_masked64(&wqe->atomic, seg, is_cs);
    } else {
        const struct prm_masked_fadd32_seg *fadd = seg;

        hca_wqe_masked32(&wqe->atomic, seg, is_cs);
        if (hca_strict && !is_cs && (fadd->reserved != 0)) {
            return hca_wqe_bad(wqe, HCA_CHECK_ATOMIC_RSVD,
                               be64toh(fadd->reserved));
        }
    }
    return HCA_OK;
}

static enum hca_check hca_wqe_parse_inline(struct hca_wqe_cursor *cursor,
                                           uint32_t byte_count)
{
    struct hca_wqe *wqe     = cursor->wqe;
    uint32_t length         = byte_count & 0x3ff;
    unsigned at             = cursor->at;
    struct hca_wqe_seg *seg = &wqe->segs[wqe->num_segs];

    if (byte_count & ~(HCA_SEG_INLINE | 0x3ff)) {
        return hca_wqe_bad(wqe, HCA_CHECK_INLINE_RSVD, byte_count);
    }
    if (wqe->op->flags & HCA_OP_DATA_IN) {
        return hca_wqe_bad(wqe, HCA_CHECK_INLINE_OP, byte_count);
    }
    if (hca_wqe_take(cursor, (sizeof(__be32) + length + 15) / 16) == NULL) {
        return hca_wqe_bad(wqe, HCA_CHECK_INLINE_LEN, length);
    }
    seg->addr      = at * 16 + sizeof(__be32);
    seg->length    = length;
    seg->is_inline = true;
    wqe->length += length;
    wqe->num_segs++;
    return HCA_OK;
}

static void hca_wqe_parse_data(struct hca_wqe_cursor *cursor)
{
    const struct mlx5_wqe_data_seg *data = hca_wqe_take(cursor, 1);
    struct hca_wqe *wqe                  = cursor->wqe;
    struct hca_wqe_seg *seg              = &wqe->segs[wqe->num_segs++];

    seg->addr      = be64toh(data->addr);
    seg->lkey      = be32toh(data->lkey);
    seg->length    = be32toh(data->byte_count);
    seg->is_inline = false;
    if (seg->length == 0) {
        seg->length = 1u << 31; /* PRM: 0 stands for 2 GiB */
    }
    wqe->length += seg->length;
}

static enum hca_check hca_wqe_parse_segs(struct hca_wqe_cursor *cursor)
{
    struct hca_wqe *wqe = cursor->wqe;
    enum hca_check check;

    while (cursor->at < wqe->ds) {
        uint32_t byte_count = be32toh(*(__be32 *)(wqe->raw + cursor->at * 16));

        if (!(wqe->op->flags & (HCA_OP_DATA_IN | HCA_OP_DATA_OUT))) {
            return hca_wqe_bad(wqe, HCA_CHECK_NO_DATA, wqe->ds);
        }
        if (byte_count & HCA_SEG_INLINE) {
            check = hca_wqe_parse_inline(cursor, byte_count);
            if (check != HCA_OK) {
                return check;
            }
        } else {
            hca_wqe_parse_data(cursor);
        }
    }
    if (wqe->length > HCA_MSG_MAX) {
        return hca_wqe_bad(wqe, HCA_CHECK_MSG_LEN, wqe->length);
    }
    if ((wqe->op->flags & HCA_OP_ATOMIC) && (wqe->length != wqe->atomic.size)) {
        return hca_wqe_bad(wqe, HCA_CHECK_ATOMIC_SGL, wqe->length);
    }
    return HCA_OK;
}

enum hca_check hca_wqe_parse_transport(struct hca_wqe_cursor *cursor)
{
    if (cursor->wqe->op->flags & HCA_OP_LOCAL) {
        return HCA_OK;
    }
    switch (cursor->qp->type) {
    case HCA_QP_XRC_SEND:
        return hca_wqe_parse_xrc(cursor);
    case HCA_QP_UD:
    case HCA_QP_DCI:
        return hca_wqe_parse_av(cursor);
    default:
        return HCA_OK;
    }
}

enum hca_check hca_wqe_parse_body(struct hca_wqe_cursor *cursor)
{
    unsigned flags       = cursor->wqe->op->flags;
    enum hca_check check = HCA_OK;

    if (flags & HCA_OP_IGNORE) {
        return HCA_OK;
    }
    if (flags & (HCA_OP_UMR | HCA_OP_TM)) {
        cursor->wqe->body_at = cursor->at;
        return HCA_OK;
    }
    if ((cursor->wqe->opcode == MLX5_OPCODE_RDMA_READ) &&
        (cursor->wqe->ds > HCA_READ_DS_MAX)) {
        return hca_wqe_bad(cursor->wqe, HCA_CHECK_READ_DS, cursor->wqe->ds);
    }
    if (flags & HCA_OP_RADDR) {
        check = hca_wqe_parse_raddr(cursor);
    }
    if ((check == HCA_OK) && (flags & HCA_OP_ATOMIC)) {
        check = hca_wqe_parse_atomic(cursor);
    }
    return (check == HCA_OK) ? hca_wqe_parse_segs(cursor) : check;
}
