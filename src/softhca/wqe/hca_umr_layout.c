/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * UMR of indirect mkeys. The WQE has a list (KLM), or a repeat block with its
 * entries, as libmlx5's qp.c writes them (umr_sg_list_create(),
 * umr_strided_seg_create()); or no translations: then the existing ones stay,
 * and only the context changes (invalidation, rights).
 *
 * The mkeys of entries are not checked here but at each access, as with
 * CREATE_MKEY: mlx5_ib has mkeys with entries whose regions come and go (its
 * odp.c). A layout replaces the previous one even if the mkey is not free,
 * unless CHECK_FREE is set, which libmlx5 does not set for layouts.
 */
#include "hca_umr_layout.h"
#include "softhca/fabric/hca_caps.h"
#include "softhca/obj/hca_layout.h"
#include "softhca/obj/hca_sgl.h"

#include <endian.h>
#include <string.h>

#define HCA_UMR_MASK_LAYOUT \
    (MLX5_WQE_UMR_CTRL_MKEY_MASK_FREE | MLX5_WQE_UMR_CTRL_MKEY_MASK_MKEY | \
     MLX5_WQE_UMR_CTRL_MKEY_MASK_LEN | MLX5_WQE_UMR_CTRL_MKEY_MASK_QPN | \
     MLX5_WQE_UMR_CTRL_MKEY_MASK_START_ADDR | HCA_UMR_MASK_ACCESS)

/* op of a repeat block, at the place of the mkey in the entry of a list */
#define HCA_UMR_OP_REPEAT 0x400u

/* Octowords read at once */
#define HCA_UMR_CHUNK 32u

/* Translations as they are in the WQE or in memory */
union hca_umr_octoword {
    struct mlx5_wqe_umr_klm_seg klm;
    struct mlx5_wqe_umr_repeat_block_seg head;
    struct mlx5_wqe_umr_repeat_ent_seg block;
};

_Static_assert(sizeof(union hca_umr_octoword) == HCA_UMR_OCTOWORD, "mlx5dv.h");

/* The layout in host order, without its entries. */
struct hca_umr_form {
    unsigned first;     /* octoword of the first entry */
    uint32_t num;       /* entries */
    uint32_t repeat;    /* 0: a list */
    uint32_t row_bytes; /* of the repeat block */
};

/* --- reading -------------------------------------------------------------- */

static enum hca_check hca_umr_fetch(const struct hca_umr *umr, uint64_t offset,
                                    void *to, size_t length)
{
    struct hca_key_use use = {
        .pdn    = umr->qp->pdn,
        .qpn    = umr->qp->obj.num,
        .dev    = umr->qp->obj.dev,
        .length = length,
    };
    struct mlx5_wqe_data_seg seg;
    struct hca_sgl dst, src;
    enum hca_key_fault fault;

    memcpy(&seg, umr->wqe->raw + umr->at * HCA_UMR_OCTOWORD, sizeof(seg));
    use.key  = be32toh(seg.lkey);
    use.addr = be64toh(seg.addr) + offset;
    hca_sgl_init(&dst, hca_owner(hca_self));
    hca_sgl_add(&dst, to, length);
    hca_sgl_init(&src, hca_owner(hca_self));
    fault = hca_sgl_add_key(&src, &use);
    if ((fault == HCA_KEY_OK) && (hca_sgl_copy(&dst, &src) != 0)) {
        fault = HCA_KEY_FAULT;
    }
    hca_sgl_put(&src);
    return (fault == HCA_KEY_OK) ?
               HCA_OK :
               hca_umr_bad(umr, HCA_CHECK_LKEY + fault - 1,
                           (fault == HCA_KEY_BOUNDS) ? use.addr : use.key);
}

static enum hca_check hca_umr_read(const struct hca_umr *umr, unsigned first,
                                   union hca_umr_octoword *to, unsigned count)
{
    if (!(umr->flags & MLX5_WQE_UMR_CTRL_FLAG_INLINE)) {
        return hca_umr_fetch(umr, (uint64_t)first * HCA_UMR_OCTOWORD, to,
                             count * sizeof(*to));
    }
    memcpy(to, umr->wqe->raw + (umr->at + first) * HCA_UMR_OCTOWORD,
           count * sizeof(*to));
    return HCA_OK;
}

/* Calls @fn for each entry of the layout, in order. */
static enum hca_check
hca_umr_foreach(const struct hca_umr *umr, const struct hca_umr_form *form,
                enum hca_check (*fn)(const struct hca_umr *umr,
                                     const union hca_umr_octoword *entry,
                                     uint32_t index, void *arg),
                void *arg)
{
    union hca_umr_octoword chunk[HCA_UMR_CHUNK];
    enum hca_check check = HCA_OK;

    for (uint32_t i = 0; (i < form->num) && (check == HCA_OK); i++) {
        uint32_t at = i % HCA_UMR_CHUNK, left = form->num - i;

        if (at == 0) {
            check = hca_umr_read(umr, form->first + i, chunk,
                                 (left < HCA_UMR_CHUNK) ? left : HCA_UMR_CHUNK);
        }
        if (check == HCA_OK) {
            check = fn(umr, &chunk[at], i, arg);
        }
    }
    return check;
}

/* --- checking ------------------------------------------------------------- */

static enum hca_check hca_umr_check_block(const struct hca_umr *umr,
                                          const union hca_umr_octoword *entry,
                                          uint32_t index, void *arg)
{
    uint16_t bytes  = be16toh(entry->block.byte_count);
    uint16_t stride = be16toh(entry->block.stride);

    (void)index;
    if (bytes == 0) {
        return hca_umr_bad(umr, HCA_CHECK_UMR_BLOCK, bytes);
    }
    if (stride < bytes) {
        return hca_umr_bad(umr, HCA_CHECK_UMR_STRIDE, stride);
    }
    *(uint64_t *)arg += bytes;
    return HCA_OK;
}

static enum hca_check hca_umr_check_rows(const struct hca_umr *umr,
                                         const struct hca_umr_form *form)
{
    uint64_t row_bytes   = 0;
    enum hca_check check = hca_umr_foreach(umr, form, hca_umr_check_block,
                                           &row_bytes);

    if ((check == HCA_OK) && (row_bytes != form->row_bytes)) {
        return hca_umr_bad(umr, HCA_CHECK_UMR_ROW, form->row_bytes);
    }
    return check;
}

static enum hca_check
hca_umr_check_repeat(const struct hca_umr *umr,
                     const struct mlx5_wqe_umr_repeat_block_seg *head,
                     struct hca_umr_form *form)
{
    if (hca_lacks(HCA_LACK_REPEAT)) {
        return hca_umr_bad(umr, HCA_CHECK_UMR_NO_REPEAT, HCA_UMR_OP_REPEAT);
    }
    form->first     = 1;
    form->num       = be16toh(head->num_ent);
    form->repeat    = be32toh(head->repeat_count);
    form->row_bytes = be32toh(head->byte_count);
    if (form->repeat == 0) {
        return hca_umr_bad(umr, HCA_CHECK_UMR_REPEAT, 0);
    }
    if ((form->num == 0) || (form->num >= umr->klms)) {
        return hca_umr_bad(umr, HCA_CHECK_UMR_NUM_ENT, form->num);
    }
    if (hca_strict && (head->reserved != 0)) {
        return hca_umr_bad(umr, HCA_CHECK_UMR_BLOCK_RSVD,
                           be16toh(head->reserved));
    }
    return hca_umr_check_rows(umr, form);
}

/* Finds out if the translations are a repeat block or a list. Those of a KSM
 * are always a list. */
static enum hca_check hca_umr_check_form(const struct hca_umr *umr,
                                         const struct hca_mkey *key,
                                         struct hca_umr_form *form)
{
    union hca_umr_octoword head;
    enum hca_check check;

    *form = (struct hca_umr_form){.num = umr->klms};
    if (umr->klms == 0) {
        return HCA_OK;
    }
    check = hca_umr_read(umr, 0, &head, 1);
    if ((check == HCA_OK) && (key->klm_shift == 0) &&
        (be32toh(head.head.op) == HCA_UMR_OP_REPEAT)) {
        check = hca_umr_check_repeat(umr, &head.head, form);
    }
    return check;
}

static enum hca_check hca_umr_check_list(const struct hca_umr *umr)
{
    struct mlx5_wqe_data_seg seg;

    if ((umr->flags & MLX5_WQE_UMR_CTRL_FLAG_INLINE) || (umr->klms == 0)) {
        return HCA_OK;
    }
    memcpy(&seg, umr->wqe->raw + umr->at * HCA_UMR_OCTOWORD, sizeof(seg));
    return (be32toh(seg.byte_count) == umr->klms * HCA_UMR_OCTOWORD) ?
               HCA_OK :
               hca_umr_bad(umr, HCA_CHECK_UMR_DATA, be32toh(seg.byte_count));
}

static enum hca_check hca_umr_check_qpn(const struct hca_umr *umr,
                                        const struct hca_mkey *key)
{
    if ((umr->flags & MLX5_WQE_UMR_CTRL_FLAG_CHECK_QPN) &&
        (key->qpn != HCA_UMR_ANY_QPN) && (key->qpn != umr->qp->obj.num)) {
        return hca_umr_bad(umr, HCA_CHECK_UMR_QPN, key->qpn);
    }
    if ((umr->mask & MLX5_WQE_UMR_CTRL_MKEY_MASK_QPN) &&
        (umr->qpn != HCA_UMR_ANY_QPN) && (umr->qpn != umr->qp->obj.num)) {
        return hca_umr_bad(umr, HCA_CHECK_UMR_QPN, umr->qpn);
    }
    return HCA_OK;
}

/* Checks reserved fields of the mkey context, with SOFTHCA_STRICT. Not of an
 * invalidation, where libmlx5 does not clear them. */
static enum hca_check hca_umr_check_rsvd(const struct hca_umr *umr)
{
    struct mlx5_wqe_mkey_context_seg seg;

    if (!hca_strict || (umr->klms == 0)) {
        return HCA_OK;
    }
    memcpy(&seg, umr->wqe->raw + (umr->at - HCA_UMR_MKEY) * HCA_UMR_OCTOWORD,
           sizeof(seg));
    return ((seg.reserved1 == 0) && (seg.sf == 0) && (seg.reserved2 == 0) &&
            hca_umr_is_zero(seg.reserved3, sizeof(seg.reserved3)) &&
            hca_umr_is_zero(seg.reserved4, sizeof(seg.reserved4)) &&
            (seg.reserved == 0)) ?
               HCA_OK :
               hca_umr_bad(umr, HCA_CHECK_UMR_MKC_RSVD, be32toh(seg.reserved2));
}

static enum hca_check hca_umr_check_layout(const struct hca_umr *umr,
                                           const struct hca_mkey *key)
{
    enum hca_check check;

    uint64_t refused = ~(uint64_t)HCA_UMR_MASK_LAYOUT |
                       (hca_lacks(HCA_LACK_UMR_ATOMIC) ?
                            MLX5_WQE_UMR_CTRL_MKEY_MASK_ACCESS_ATOMIC :
                            0);

    if (umr->mask & refused) {
        return hca_umr_bad(umr, HCA_CHECK_UMR_MASK, umr->mask);
    }
    if (umr->klms > key->max_klms) {
        return hca_umr_bad(umr, HCA_CHECK_UMR_ROOM, umr->klms);
    }
    if ((umr->flags & MLX5_WQE_UMR_CTRL_FLAG_CHECK_FREE) && !key->is_free) {
        return hca_umr_bad(umr, HCA_CHECK_UMR_NOT_FREE, be32toh(umr->wqe->imm));
    }
    check = hca_umr_check_qpn(umr, key);
    if (check == HCA_OK) {
        check = hca_umr_check_rsvd(umr);
    }
    return (check == HCA_OK) ? hca_umr_check_list(umr) : check;
}

/* --- changing ------------------------------------------------------------- */

static enum hca_check hca_umr_put_klm(const struct hca_umr *umr,
                                      const union hca_umr_octoword *entry,
                                      uint32_t index, void *arg)
{
    struct hca_klm *klm = (struct hca_klm *)arg + index;

    (void)umr;
    klm->start  = (index == 0) ? 0 : klm[-1].start + klm[-1].length;
    klm->length = be32toh(entry->klm.byte_count);
    klm->key    = be32toh(entry->klm.mkey);
    klm->addr   = be64toh(entry->klm.address);
    return HCA_OK;
}

static enum hca_check hca_umr_put_block(const struct hca_umr *umr,
                                        const union hca_umr_octoword *entry,
                                        uint32_t index, void *arg)
{
    struct hca_klm *klm = (struct hca_klm *)arg + index;

    (void)umr;
    klm->start  = (index == 0) ? 0 : klm[-1].start + klm[-1].bytes;
    klm->bytes  = be16toh(entry->block.byte_count);
    klm->stride = be16toh(entry->block.stride);
    klm->key    = be32toh(entry->block.memkey);
    klm->addr   = be64toh(entry->block.va);
    return HCA_OK;
}

static enum hca_check hca_umr_put(const struct hca_umr *umr,
                                  const struct hca_umr_form *form,
                                  struct hca_mkey *key)
{
    key->num_klms  = form->num;
    key->repeat    = form->repeat;
    key->row_bytes = form->row_bytes;
    return hca_umr_foreach(
        umr, form, (form->repeat != 0) ? hca_umr_put_block : hca_umr_put_klm,
        hca_at(key->klms));
}

static void hca_umr_put_access(const struct hca_umr *umr, struct hca_mkey *key)
{
    static const struct {
        uint64_t mask;
        uint32_t access;
    } rights[] = {
        {MLX5_WQE_UMR_CTRL_MKEY_MASK_ACCESS_LOCAL_WRITE,
         IBV_ACCESS_LOCAL_WRITE},
        {MLX5_WQE_UMR_CTRL_MKEY_MASK_ACCESS_REMOTE_READ,
         IBV_ACCESS_REMOTE_READ},
        {MLX5_WQE_UMR_CTRL_MKEY_MASK_ACCESS_REMOTE_WRITE,
         IBV_ACCESS_REMOTE_WRITE},
        {MLX5_WQE_UMR_CTRL_MKEY_MASK_ACCESS_ATOMIC, IBV_ACCESS_REMOTE_ATOMIC},
    };

    for (unsigned i = 0; i < sizeof(rights) / sizeof(rights[0]); i++) {
        if (umr->mask & rights[i].mask) {
            key->access &= ~rights[i].access;
            key->access |= umr->access & rights[i].access;
        }
    }
}

static void hca_umr_put_context(const struct hca_umr *umr, struct hca_mkey *key)
{
    hca_umr_put_access(umr, key);
    if (umr->mask & MLX5_WQE_UMR_CTRL_MKEY_MASK_LEN) {
        key->length = umr->length;
    }
    if (umr->mask & MLX5_WQE_UMR_CTRL_MKEY_MASK_START_ADDR) {
        key->iova = umr->start;
    }
    if (umr->mask & MLX5_WQE_UMR_CTRL_MKEY_MASK_QPN) {
        key->qpn = umr->qpn;
    }
    if (umr->mask & MLX5_WQE_UMR_CTRL_MKEY_MASK_MKEY) {
        key->variant = umr->variant;
    }
}

/* Changes the mkey, which is free after an error. */
static enum hca_check hca_umr_apply_layout(const struct hca_umr *umr,
                                           const struct hca_umr_form *form,
                                           struct hca_mkey *key)
{
    bool sets_free       = umr->mask & MLX5_WQE_UMR_CTRL_MKEY_MASK_FREE;
    bool is_free         = sets_free ? umr->is_free : key->is_free;
    uint32_t change      = hca_umr_begin_change(key);
    enum hca_check check = HCA_OK;

    if (umr->klms != 0) {
        check = hca_umr_put(umr, form, key);
        hca_layout_measure(key);
    }
    if (check == HCA_OK) {
        hca_umr_put_context(umr, key);
    }
    hca_umr_end_change(key, change, (check != HCA_OK) || is_free);
    return check;
}

enum hca_check hca_umr_layout(const struct hca_umr *umr, struct hca_mkey *key)
{
    struct hca_umr_form form;
    enum hca_check check = hca_umr_check_layout(umr, key);

    if (check == HCA_OK) {
        check = hca_umr_check_form(umr, key, &form);
    }
    return (check == HCA_OK) ? hca_umr_apply_layout(umr, &form, key) : check;
}
