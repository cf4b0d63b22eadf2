/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Layouts: UMR WQEs for keys that lead to a region and to each other, in most
 * cases valid but for a few bytes, then accesses through the keys. All accesses
 * must hit the region.
 */
#define _GNU_SOURCE
#include "fuzz_req.h"
#include "softhca/obj/hca_sgl.h"
#include "softhca/wqe/hca_umr.h"

#include <endian.h>
#include <infiniband/mlx5dv.h>
#include <stdlib.h>
#include <string.h>

#define FUZZ_UMR_PDN  1u
#define FUZZ_UMR_KEYS 3u
#define FUZZ_UMR_MAX  16u /* entries of a key */
#define FUZZ_UMR_MOST 20u /* octowords of a UMR */

/* Page of the ring memory that holds the keys' entries */
#define FUZZ_UMR_PAGE 64u

struct fuzz_umr {
    struct hca_mkey *region; /* over fuzz_buf */
    struct hca_mkey *keys[FUZZ_UMR_KEYS];
    struct hca_qp *qp;
};

static struct hca_mkey *fuzz_umr_key(enum hca_mkey_type type)
{
    struct hca_mkey *key = hca_obj_alloc(HCA_KIND_MKEY, 0);

    key->type   = type;
    key->pdn    = FUZZ_UMR_PDN;
    key->qpn    = 0xffffff;
    key->access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ |
                  IBV_ACCESS_REMOTE_WRITE;
    return key;
}

static void fuzz_umr_create(struct fuzz_umr *umr)
{
    umr->region         = fuzz_umr_key(HCA_MKEY_MR);
    umr->region->iova   = (uintptr_t)fuzz_buf;
    umr->region->va     = (uintptr_t)fuzz_buf;
    umr->region->length = FUZZ_BUF_SIZE;
    hca_obj_publish(HCA_KIND_MKEY, umr->region);

    for (unsigned i = 0; i < FUZZ_UMR_KEYS; i++) {
        struct hca_mkey *key = fuzz_umr_key(HCA_MKEY_INDIRECT);

        key->is_free   = true;
        key->has_umr   = true;
        key->klm_shift = (fuzz_below(8) == 0) ? 12 : 0;
        key->max_klms  = FUZZ_UMR_MAX;
        key->klms      = hca_off(fuzz_ring + (FUZZ_UMR_PAGE + i) * 4096);
        hca_obj_publish(HCA_KIND_MKEY, key);
        umr->keys[i] = key;
    }
    umr->qp       = hca_obj_alloc(HCA_KIND_QP, 0);
    umr->qp->type = HCA_QP_RC;
    umr->qp->pdn  = FUZZ_UMR_PDN;
    hca_obj_publish(HCA_KIND_QP, umr->qp);
}

static void fuzz_umr_destroy(struct fuzz_umr *umr)
{
    hca_obj_free(HCA_KIND_QP, umr->qp);
    for (unsigned i = 0; i < FUZZ_UMR_KEYS; i++) {
        hca_obj_free(HCA_KIND_MKEY, umr->keys[i]);
    }
    hca_obj_free(HCA_KIND_MKEY, umr->region);
}

static uint32_t fuzz_umr_number(const struct hca_mkey *key)
{
    return (key->obj.num << 8) | key->variant;
}

/* Returns an entry in the region, or sometimes in one of the keys. */
static struct mlx5_wqe_umr_klm_seg fuzz_umr_entry(const struct fuzz_umr *umr,
                                                  uint32_t size)
{
    bool is_nested       = fuzz_below(4) == 0;
    uintptr_t base       = is_nested ? 0 : (uintptr_t)fuzz_buf;
    struct hca_mkey *key = is_nested ? umr->keys[fuzz_below(FUZZ_UMR_KEYS)] :
                                       umr->region;

    return (struct mlx5_wqe_umr_klm_seg){
        .byte_count = htobe32(size),
        .mkey       = htobe32(fuzz_umr_number(key)),
        .address    = htobe64(base + fuzz_int(1)),
    };
}

/* @return octowords */
static unsigned fuzz_umr_translations(const struct fuzz_umr *umr,
                                      struct mlx5_wqe_umr_klm_seg *to)
{
    bool is_rows     = fuzz_below(2);
    unsigned entries = fuzz_below(FUZZ_UMR_MOST - is_rows + 1);
    uint32_t bytes   = 0;

    memset(to, 0, FUZZ_UMR_MOST * sizeof(*to));
    for (unsigned i = 0; i < entries; i++) {
        uint32_t size   = is_rows ? 1 + fuzz_below(32) : fuzz_below(256);
        uint32_t stride = is_rows ? size + fuzz_below(64) : 0;

        to[i + is_rows] = fuzz_umr_entry(umr, (stride << 16) | size);
        bytes += size;
    }
    if (is_rows) {
        to[0] = (struct mlx5_wqe_umr_klm_seg){
            .byte_count = htobe32(bytes),
            .mkey       = htobe32(0x400),
            .address    = htobe64(((uint64_t)fuzz_below(32) << 32) | entries),
        };
    }
    return (entries + is_rows + 3) / 4 * 4;
}

static void fuzz_umr_spoil(void *ptr, size_t size)
{
    if (fuzz_below(4) == 0) {
        fuzz_bytes((uint8_t *)ptr + fuzz_below(size), 1);
    }
}

static void fuzz_umr_execute(struct fuzz_umr *umr)
{
    static struct hca_wqe wqe;
    struct mlx5_wqe_umr_klm_seg list[FUZZ_UMR_MOST];
    struct hca_mkey *key              = umr->keys[fuzz_below(FUZZ_UMR_KEYS)];
    unsigned octowords                = fuzz_umr_translations(umr, list);
    bool is_inline                    = fuzz_below(4) != 0;
    struct mlx5_wqe_umr_ctrl_seg ctrl = {
        .flags         = is_inline ? MLX5_WQE_UMR_CTRL_FLAG_INLINE : 0,
        .klm_octowords = htobe16(octowords),
        .mkey_mask     = htobe64(MLX5_WQE_UMR_CTRL_MKEY_MASK_FREE |
                                 MLX5_WQE_UMR_CTRL_MKEY_MASK_LEN),
    };
    struct mlx5_wqe_mkey_context_seg mkey = {
        .qpn_mkey = htobe32(0xffffff00 | key->variant),
        .len      = htobe64(fuzz_int(2)),
    };
    struct mlx5_wqe_data_seg data = {
        .byte_count = htobe32(octowords * 16),
        .lkey       = htobe32(fuzz_umr_number(umr->region)),
        .addr       = htobe64((uintptr_t)fuzz_buf),
    };

    fuzz_umr_spoil(&ctrl, sizeof(ctrl));
    fuzz_umr_spoil(&mkey, sizeof(mkey));
    fuzz_umr_spoil(&data, sizeof(data));
    fuzz_umr_spoil(list, sizeof(list));
    wqe.qpn     = umr->qp->obj.num;
    wqe.imm     = htobe32(fuzz_umr_number(key));
    wqe.body_at = 1;
    wqe.ds      = 8 + (is_inline ? octowords : (octowords > 0));
    wqe.ds      = (fuzz_below(16) == 0) ? fuzz_below(64) : wqe.ds;
    memcpy(wqe.raw + 16, &ctrl, sizeof(ctrl));
    memcpy(wqe.raw + 64, &mkey, sizeof(mkey));
    memcpy(wqe.raw + 128, &data, sizeof(data));
    memcpy(is_inline ? wqe.raw + 128 : fuzz_buf, list, sizeof(list));
    hca_umr_execute(umr->qp, &wqe);
}

static void fuzz_umr_check(const struct fuzz_umr *umr)
{
    for (unsigned i = 0; i < FUZZ_UMR_KEYS; i++) {
        const struct hca_mkey *key = umr->keys[i];

        if ((key->num_klms > FUZZ_UMR_MAX) ||
            ((key->repeat != 0) && (key->row_bytes == 0))) {
            abort();
        }
    }
}

/* Writes the bytes that are there already: the memory of the next input stays
 * the same, and ASan sees accesses outside the region. */
static void fuzz_umr_use(const struct fuzz_umr *umr)
{
    static uint8_t data[UINT16_MAX + 1];
    const struct hca_key_use use = {
        .key    = fuzz_umr_number(umr->keys[fuzz_below(FUZZ_UMR_KEYS)]),
        .pdn    = FUZZ_UMR_PDN,
        .access = fuzz_below(2) ? IBV_ACCESS_LOCAL_WRITE : 0,
        .addr   = fuzz_int(1),
        .length = 1 + fuzz_int(2),
    };
    struct hca_sgl local, remote;

    hca_sgl_init(&local, hca_owner(hca_self));
    hca_sgl_init(&remote, hca_owner(hca_self));
    hca_sgl_add(&local, data, use.length);
    if (hca_sgl_add_key(&remote, &use) == HCA_KEY_OK) {
        if (remote.length != use.length) {
            abort();
        }
        if ((hca_sgl_copy(&local, &remote) != 0) ||
            ((use.access != 0) && (hca_sgl_copy(&remote, &local) != 0))) {
            abort();
        }
    }
    hca_sgl_put(&remote);
}

void fuzz_umr(int fd, uint32_t uar)
{
    struct fuzz_umr umr;

    (void)fd;
    (void)uar;
    fuzz_umr_create(&umr);
    for (unsigned i = fuzz_below(64); (i > 0) && (fuzz_left > 0); i--) {
        fuzz_umr_execute(&umr);
        fuzz_umr_check(&umr);
        fuzz_umr_use(&umr);
    }
    fuzz_umr_destroy(&umr);
}
