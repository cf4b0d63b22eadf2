/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * CREATE_MKEY: indirect mkeys. Their entries are ranges of other mkeys; the
 * command carries them, or a UMR WQE fills them in later. An entry is a klm
 * (mlx5_ifc.h; create_mkey_in and mkc, too); KSM ignores its length, as all
 * entries have the size log_entity_size. The mkey of an entry is looked up at
 * each access: it need not exist yet, and may be destroyed first.
 */
#define _GNU_SOURCE
#include "devx.h"
#include "softhca/obj/hca_mkey.h"
#include "softhca/uverbs/uverbs_pd.h"

#include <string.h>

/* create_mkey_in */
#define MKEY_CTX      offsetof(struct prm_create_mkey_in, mkc)
#define MKEY_CTX_SIZE sizeof(struct prm_mkc)
#define MKEY_ACTUAL_AT \
    offsetof(struct prm_create_mkey_in, translations_octword_actual_size)
#define MKEY_ACTUAL  DEVX_WORD(MKEY_ACTUAL_AT)
#define MKEY_IN_SIZE sizeof(struct prm_create_mkey_in) /* entries follow */

/* mkc. common/prm_cmd.h has only the bits that the transport uses. */
#define MKC_RIGHTS(_mask) DEVX_FIELD(prm_mkc, rights, _mask)
#define MKC_FREE          MKC_RIGHTS(1u << 30)
#define MKC_MODE_4_2      MKC_RIGHTS(7u << 26)
#define MKC_RELAXED_W     MKC_RIGHTS(1u << 18)
#define MKC_SMALL_FENCE   MKC_RIGHTS(1u << 16)
#define MKC_UMR_EN        MKC_RIGHTS(1u << 15)
#define MKC_ATOMIC        MKC_RIGHTS(PRM_MKC_ATOMIC)
#define MKC_RW            MKC_RIGHTS(PRM_MKC_REMOTE_WRITE)
#define MKC_RR            MKC_RIGHTS(PRM_MKC_REMOTE_READ)
#define MKC_LW            MKC_RIGHTS(PRM_MKC_LOCAL_WRITE)
#define MKC_LR            MKC_RIGHTS(PRM_MKC_LOCAL_READ)
#define MKC_MODE          MKC_RIGHTS(PRM_MKC_ACCESS_MODE)
#define MKC_QPN           DEVX_FIELD(prm_mkc, qpn_mkey_7_0, PRM_MKC_ANY_QP)
#define MKC_VARIANT       DEVX_FIELD(prm_mkc, qpn_mkey_7_0, PRM_MKC_VARIANT)
#define MKC_LENGTH64      DEVX_FIELD(prm_mkc, flags_pd, 1u << 31)
#define MKC_EN_RINVAL     DEVX_FIELD(prm_mkc, flags_pd, 1u << 24)
#define MKC_PD            DEVX_FIELD(prm_mkc, flags_pd, 0xffffffu)
#define MKC_START         DEVX_FIELD64(prm_mkc, start_addr)
#define MKC_LEN           DEVX_FIELD64(prm_mkc, len)
#define MKC_OCTWORDS      DEVX_FIELD32(prm_mkc, translations_octword_size)
#define MKC_RELAXED_R     DEVX_FIELD(prm_mkc, log_entity_size, 1u << 6)
#define MKC_ENTITY        DEVX_FIELD(prm_mkc, log_entity_size, 0x1fu)

/* Offset in the mailbox, for refusals */
#define MKC_AT(_member) (MKEY_CTX + offsetof(struct prm_mkc, _member))

/* klm */
#define KLM_SIZE sizeof(struct prm_klm)
#define KLM_KEY  DEVX_FIELD32(prm_klm, mkey)

enum { MKC_MODE_KLM = 2, MKC_MODE_KSM = 3 };

static const struct devx_field devx_create_mkey_fields[] = {
    DEVX_HEADER_FIELDS,
    {NULL, 0, 0},
};

/* Fields between the mkc and the entries */
static const struct devx_field devx_mkey_tail_fields[] = {
    {"translations_octword_actual_size",
     MKEY_ACTUAL - DEVX_BITS(MKEY_CTX + MKEY_CTX_SIZE, 0, 0), DEVX_ANY},
    {NULL, 0, 0},
};

/* There are no signatures and no encryption. relaxed_ordering_* are ignored:
 * only those of the regions below count (hca_order.h). */
static const struct devx_field devx_mkc_fields[] = {
    {"free", MKC_FREE, 1},
    {"access_mode_4_2", MKC_MODE_4_2, 0},
    {"relaxed_ordering_write", MKC_RELAXED_W, 1},
    {"small_fence_on_rdma_read_response", MKC_SMALL_FENCE, 1},
    {"umr_en", MKC_UMR_EN, 1},
    {"a", MKC_ATOMIC, 1},
    {"rw", MKC_RW, 1},
    {"rr", MKC_RR, 1},
    {"lw", MKC_LW, 1},
    {"lr", MKC_LR, 1},
    {"access_mode_1_0", MKC_MODE, MKC_MODE_KSM},
    {"qpn", MKC_QPN, DEVX_ANY},
    {"mkey_7_0", MKC_VARIANT, DEVX_ANY},
    {"length64", MKC_LENGTH64, 1},
    {"en_rinval", MKC_EN_RINVAL, 1},
    {"pd", MKC_PD, DEVX_ANY},
    {"start_addr", MKC_START, DEVX_ANY},
    {"len", MKC_LEN, DEVX_ANY},
    {"translations_octword_size", MKC_OCTWORDS, DEVX_ANY},
    {"relaxed_ordering_read", MKC_RELAXED_R, 1},
    {"log_entity_size", MKC_ENTITY, DEVX_ANY},
    {NULL, 0, 0},
};

/* The requested mkey, in host order. */
struct devx_mkey {
    uint32_t num, max; /* entries in the command, and that fit in the mkey */
    uint64_t start, length;
    uint8_t shift; /* KSM */
    bool free, has_umr;
    struct uverbs_pd *pd;
};

/* Returns true if the entries cover the range of the mkey (KSM). Entries begin
 * at multiples of their size: if the mkey starts inside the first one, this
 * covers less ("CREATE_MKEY range check issue" of UCX's ib_mlx5dv_md.c). */
static bool devx_mkey_spans(const struct devx_mkey *mkey)
{
    uint64_t before = mkey->start & ((1ull << mkey->shift) - 1);
    uint64_t last   = before + mkey->length - 1;

    return (mkey->length != 0) && (last >= before) &&
           (last >> mkey->shift < mkey->num);
}

/* Checks the number of entries. If they do not cover the mkey, the command
 * fails for KSM; for KLM, accesses beyond the last entry do. */
static enum devx_status devx_mkey_check_list(struct devx_call *call,
                                             const struct devx_mkey *mkey)
{
    size_t room = (call->in_len - MKEY_IN_SIZE) / KLM_SIZE;

    if (mkey->max > 1u << DEVX_LOG_MAX_KLMS) {
        return devx_refuse(call, DEVX_BAD_PARAM,
                           MKC_AT(translations_octword_size),
                           "mkc translations_octword_size", mkey->max);
    }
    if (mkey->num > room) {
        return devx_refuse(call, DEVX_BAD_INP_LEN, MKEY_ACTUAL_AT,
                           "translations_octword_actual_size", mkey->num);
    }
    if (mkey->num > mkey->max) {
        return devx_refuse(call, DEVX_BAD_PARAM, MKEY_ACTUAL_AT,
                           "translations_octword_actual_size", mkey->num);
    }
    if (mkey->free) {
        return DEVX_OK;
    }
    if ((mkey->shift != 0) && !devx_mkey_spans(mkey)) {
        return devx_refuse(call, DEVX_BAD_PARAM, MKC_AT(len), "mkc len",
                           mkey->length);
    }
    return DEVX_OK;
}

static bool devx_mkey_has_no_atomic(uint32_t key)
{
    const struct hca_mkey *mkey = hca_mkey_peek(key);

    return (mkey != NULL) && (mkey->type != HCA_MKEY_NULL) &&
           !(mkey->access & IBV_ACCESS_REMOTE_ATOMIC);
}

/* An indirect mkey may allow atomics only if the mkeys of its entries do;
 * firmware checks this at creation (issue 8218 of UCX). Devices whose UMR may
 * not give this right refuse it here, too (INDIRECT_ATOMICS of UCX's
 * ib_mlx5dv_md.c). Entries whose mkey does not exist yet are not checked. */
static enum devx_status devx_mkey_check_atomic(struct devx_call *call,
                                               const struct devx_mkey *mkey)
{
    const uint8_t *entry = call->in + MKEY_IN_SIZE;

    if (!devx_get(call->in + MKEY_CTX, MKC_ATOMIC)) {
        return DEVX_OK;
    }
    if (hca_lacks(HCA_LACK_UMR_ATOMIC)) {
        return devx_refuse(call, DEVX_BAD_PARAM, MKEY_CTX,
                           "mkc a, without umr_atomic,", 1);
    }
    for (unsigned i = 0; i < mkey->num; i++, entry += KLM_SIZE) {
        if (devx_mkey_has_no_atomic(devx_get(entry, KLM_KEY))) {
            return devx_refuse(call, DEVX_BAD_PARAM, MKEY_CTX,
                               "mkc a, over a key without,", 1);
        }
    }
    return DEVX_OK;
}

static enum devx_status devx_mkey_read(struct devx_call *call,
                                       struct devx_mkey *mkey)
{
    const uint8_t *mkc = call->in + MKEY_CTX;
    unsigned mode      = devx_get(mkc, MKC_MODE);

    if (mode < MKC_MODE_KLM) {
        return devx_refuse(call, DEVX_BAD_PARAM, MKEY_CTX,
                           "mkc access_mode_1_0", mode);
    }
    *mkey = (struct devx_mkey){
        .num     = devx_get(call->in, MKEY_ACTUAL),
        .max     = devx_get(mkc, MKC_OCTWORDS),
        .start   = devx_get(mkc, MKC_START),
        .length  = devx_get(mkc, MKC_LENGTH64) ? UINT64_MAX :
                                                 devx_get(mkc, MKC_LEN),
        .shift   = devx_get(mkc, MKC_ENTITY),
        .free    = devx_get(mkc, MKC_FREE),
        .has_umr = devx_get(mkc, MKC_UMR_EN),
        .pd      = devx_find_pd(call, devx_get(mkc, MKC_PD)),
    };
    if (mkey->pd == NULL) {
        return devx_refuse(call, DEVX_BAD_RES, MKC_AT(flags_pd), "mkc pd",
                           devx_get(mkc, MKC_PD));
    }
    /* an entry of a KSM has a page at least */
    if ((mode == MKC_MODE_KSM) ? (mkey->shift < 12) : (mkey->shift != 0)) {
        return devx_refuse(call, DEVX_BAD_PARAM, MKC_AT(log_entity_size),
                           "mkc log_entity_size", mkey->shift);
    }
    return devx_mkey_check_list(call, mkey);
}

static enum devx_status devx_mkey_check(struct devx_call *call)
{
    const size_t tail = MKEY_CTX + MKEY_CTX_SIZE;
    enum devx_status status;

    status = devx_check(call, 0, MKEY_CTX, devx_create_mkey_fields);
    if (status == DEVX_OK) {
        status = devx_check(call, MKEY_CTX, MKEY_CTX_SIZE, devx_mkc_fields);
    }
    if (status == DEVX_OK) {
        status = devx_check(call, tail, MKEY_IN_SIZE - tail,
                            devx_mkey_tail_fields);
    }
    return status;
}

static uint32_t devx_mkc_access(const uint8_t *mkc)
{
    return (devx_get(mkc, MKC_LW) ? IBV_ACCESS_LOCAL_WRITE : 0) |
           (devx_get(mkc, MKC_RR) ? IBV_ACCESS_REMOTE_READ : 0) |
           (devx_get(mkc, MKC_RW) ? IBV_ACCESS_REMOTE_WRITE : 0) |
           (devx_get(mkc, MKC_ATOMIC) ? IBV_ACCESS_REMOTE_ATOMIC : 0);
}

/* Waits for accesses that have begun; later ones find no mkey. If one does not
 * end, the mkey leaks until the process ends. */
static int devx_mkey_release(struct devx_obj *obj)
{
    hca_mkey_destroy(obj->hw);
    return 0;
}

static enum devx_status devx_mkey_make(struct devx_call *call,
                                       const struct devx_mkey *mkey)
{
    const uint8_t *mkc        = call->in + MKEY_CTX;
    bool has_rinval           = devx_get(mkc, MKC_EN_RINVAL);
    struct hca_mkey_spec spec = {
        .dev           = call->ctx->dev,
        .type          = HCA_MKEY_INDIRECT,
        .has_variant   = true,
        .variant       = devx_get(mkc, MKC_VARIANT),
        .is_free       = mkey->free,
        .has_umr       = mkey->has_umr,
        .local_inv_ok  = mkey->has_umr || has_rinval,
        .remote_inv_ok = has_rinval,
        .no_local_read = !devx_get(mkc, MKC_LR),
        .access        = devx_mkc_access(mkc),
        .pdn           = mkey->pd->pdn,
        .qpn           = devx_get(mkc, MKC_QPN),
        .iova          = mkey->start,
        .length        = mkey->length,
        .klm_shift     = mkey->shift,
        .num_klms      = mkey->num,
        .max_klms      = mkey->max,
        .klms          = (const struct prm_klm *)(call->in + MKEY_IN_SIZE),
    };
    struct hca_mkey *hw;

    if (hca_mkey_create(&spec, &hw) != 0) {
        return DEVX_NO_RES;
    }
    devx_obj_use(call, &mkey->pd->obj);
    call->obj->hw      = hw;
    call->obj->number  = hw->obj.num;
    call->obj->release = devx_mkey_release;
    return DEVX_OK;
}

static enum devx_status devx_create_mkey(struct devx_call *call)
{
    struct devx_mkey mkey = {0};
    enum devx_status status;

    status = devx_mkey_check(call);
    if (status == DEVX_OK) {
        status = devx_mkey_read(call, &mkey);
    }
    if (status == DEVX_OK) {
        status = devx_mkey_check_atomic(call, &mkey);
    }
    return (status != DEVX_OK) ? status : devx_mkey_make(call, &mkey);
}

const struct devx_cmd devx_mkey_cmds[] = {
    {.opcode   = PRM_CMD_CREATE_MKEY,
     .class    = DEVX_CREATE,
     .name     = "create_mkey",
     .in_size  = MKEY_IN_SIZE,
     .out_size = sizeof(struct prm_create_mkey_out),
     .has_list = true,
     .run      = devx_create_mkey},
    {.name = NULL},
};
