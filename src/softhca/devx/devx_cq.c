/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * CREATE_CQ and QUERY_CQ: completion queues in umems. Layouts: mlx5_ifc.h
 * (create_cq_in, cqc). The fields cq_umem_offset and cq_umem_id are those of
 * DPDK's mlx5_prm.h; Linux has reserved bits there.
 */
#define _GNU_SOURCE
#include "devx.h"
#include "softhca/obj/hca_cq.h"
#include "softhca/uverbs/uverbs_mmap.h"
#include "softhca/uverbs/uverbs_uar.h"

/* create_cq_in, query_cq_out */
#define CQ_CTX        0x10u
#define CQC_SIZE      0x40u
#define CQ_TAIL       (CQ_CTX + CQC_SIZE)
#define CQ_OFFSET     DEVX_QWORD(0x50)
#define CQ_UMEM       DEVX_WORD(0x58)
#define CQ_UMEM_VALID DEVX_BITS(0x5c, 31, 31)
#define CQ_IN_SIZE    0x110u

/* cqc */
#define CQC_STATUS    DEVX_BITS(0x00, 31, 28)
#define CQC_CQE_SZ    DEVX_BITS(0x00, 23, 21)
#define CQC_OI        DEVX_BITS(0x00, 17, 17)
#define CQC_COMP_EN   DEVX_BITS(0x00, 14, 14)
#define CQC_MINI      DEVX_BITS(0x00, 13, 12)
#define CQC_ST        DEVX_BITS(0x00, 11, 8)
#define CQC_DBR_UMEM  DEVX_WORD(0x04)
#define CQC_LOG_SIZE  DEVX_BITS(0x0c, 28, 24)
#define CQC_UAR       DEVX_BITS(0x0c, 23, 0)
#define CQC_PERIOD    DEVX_BITS(0x10, 27, 16)
#define CQC_MAX_COUNT DEVX_BITS(0x10, 15, 0)
#define CQC_EQN       DEVX_WORD(0x14)
#define CQC_CONSUMER  DEVX_BITS(0x28, 23, 0)
#define CQC_PRODUCER  DEVX_BITS(0x2c, 23, 0)
#define CQC_DBR_ADDR  DEVX_QWORD(0x38)

/* The kernel's linux/mlx5/cq.h (CQE_STRIDE_*), mlx5_ifc.h (MLX5_CQC_STATUS_*,
 * MLX5_CQC_ST_*) */
enum { CQE_SZ_64 = 0, CQE_SZ_128 = 1, CQE_SZ_128_PAD = 2 };
enum { CQC_MINI_HASH = 0, CQC_MINI_CSUM = 1 };
enum { CQC_STATUS_OVERFLOW = 0x9 };
enum { CQC_ST_SOLICITED_ARMED = 0x6, CQC_ST_ARMED = 0x9, CQC_ST_FIRED = 0xa };

static const struct devx_field devx_create_cq_fields[] = {
    DEVX_HEADER_FIELDS,
    {NULL, 0, 0},
};

/* The *_umem_valid bits are ignored, as the kernel sets them. cq_period_mode
 * (the period begins with the event or with the completion) makes no difference
 * here. cc (collapsed: each CQE in the first entry) is not supported. */
static const struct devx_field devx_cqc_fields[] = {
    {"cqc dbr_umem_valid", DEVX_BITS(0x00, 25, 25), 1},
    {"cqc cqe_sz", CQC_CQE_SZ, CQE_SZ_128_PAD},
    {"cqc oi", CQC_OI, 1},
    {"cqc cq_period_mode", DEVX_BITS(0x00, 16, 15), 1},
    {"cqc cqe_comp_en", CQC_COMP_EN, 1},
    {"cqc mini_cqe_res_format", CQC_MINI, CQC_MINI_CSUM},
    {"cqc dbr_umem_id", CQC_DBR_UMEM, DEVX_ANY},
    {"cqc cq_timestamp_format", DEVX_BITS(0x08, 1, 0), 1}, /* 2: real time */
    {"cqc log_cq_size", CQC_LOG_SIZE, 22},                 /* UVERBS_MAX_CQE */
    {"cqc uar_page", CQC_UAR, DEVX_ANY},
    {"cqc cq_period", CQC_PERIOD, DEVX_ANY},
    {"cqc cq_max_count", CQC_MAX_COUNT, DEVX_ANY},
    {"cqc c_eqn", CQC_EQN, UVERBS_NUM_VECTORS - 1},
    {"cqc log_page_size", DEVX_BITS(0x18, 28, 24), DEVX_ANY},
    {"cqc dbr_addr", CQC_DBR_ADDR, DEVX_ANY},
    {NULL, 0, 0},
};

#define CQ_AT_TAIL(_bits) ((_bits)-DEVX_BITS(CQ_TAIL, 0, 0))
static const struct devx_field devx_cq_tail_fields[] = {
    {"cq_umem_offset", CQ_AT_TAIL(CQ_OFFSET), DEVX_ANY},
    {"cq_umem_id", CQ_AT_TAIL(CQ_UMEM), DEVX_ANY},
    {"cq_umem_valid", CQ_AT_TAIL(CQ_UMEM_VALID), 1},
    {NULL, 0, 0},
};

static enum devx_status devx_cq_check(struct devx_call *call)
{
    uint64_t uar = devx_get(call->in + CQ_CTX, CQC_UAR);
    enum devx_status status;

    status = devx_check(call, 0, CQ_CTX, devx_create_cq_fields);
    if (status == DEVX_OK) {
        status = devx_check(call, CQ_CTX, CQC_SIZE, devx_cqc_fields);
    }
    if (status == DEVX_OK) {
        status = devx_check(call, CQ_TAIL, CQ_IN_SIZE - CQ_TAIL,
                            devx_cq_tail_fields);
    }
    if ((status == DEVX_OK) && devx_get(call->in + CQ_CTX, CQC_COMP_EN) &&
        (devx_get(call->in + CQ_CTX, CQC_CQE_SZ) != CQE_SZ_64)) {
        return devx_refuse(call, DEVX_BAD_PARAM, CQ_CTX,
                           "cqc cqe_comp_en, with entries of 128 bytes,", 1);
    }
    if ((status == DEVX_OK) && !uverbs_uar_valid(call->ctx, uar)) {
        return devx_refuse(call, DEVX_BAD_RES, CQ_CTX + 0x0c, "cqc uar_page",
                           uar);
    }
    return status;
}

static enum devx_status devx_cq_memory(struct devx_call *call,
                                       struct hca_cq_spec *spec)
{
    const uint8_t *ctx        = call->in + CQ_CTX;
    struct devx_umem_use ring = {
        .id     = devx_get(call->in, CQ_UMEM),
        .offset = devx_get(call->in, CQ_OFFSET),
        .size   = (size_t)1 << (spec->ring.log_cnt + spec->ring.log_stride),
        .field  = 0x58,
    };
    struct devx_umem_use dbr = {
        .id     = devx_get(ctx, CQC_DBR_UMEM),
        .offset = devx_get(ctx, CQC_DBR_ADDR),
        .field  = CQ_CTX + 0x04,
    };
    enum devx_status status = devx_find_ring(call, &ring, &dbr);

    spec->ring.buf = ring.off;
    spec->dbrec    = dbr.off;
    return status;
}

static int devx_cq_release(struct devx_obj *obj)
{
    struct hca_cq_events events;

    return hca_cq_destroy(obj->hw, &events);
}

static enum devx_status devx_create_cq(struct devx_call *call)
{
    const uint8_t *ctx      = call->in + CQ_CTX;
    uint64_t cqe_sz         = devx_get(ctx, CQC_CQE_SZ);
    struct hca_cq_spec spec = {
        .dev             = call->ctx->dev,
        .ring.log_cnt    = devx_get(ctx, CQC_LOG_SIZE),
        .ring.log_stride = (cqe_sz == CQE_SZ_64) ? 6 : 7,
        .uar             = devx_get(ctx, CQC_UAR),
        .mod_count       = devx_get(ctx, CQC_MAX_COUNT),
        .mod_period_us   = devx_get(ctx, CQC_PERIOD),
        .ignore_overrun  = devx_get(ctx, CQC_OI),
        .timestamp       = true,
        .is_padded       = (cqe_sz == CQE_SZ_128_PAD),
        .is_compressed   = devx_get(ctx, CQC_COMP_EN),
    };
    enum devx_status status = devx_cq_check(call);
    struct hca_cq *hw;

    if (status != DEVX_OK) {
        return status;
    }
    uverbs_map_resolve(call->ctx);
    status = devx_cq_memory(call, &spec);
    if (status != DEVX_OK) {
        return status;
    }
    if (hca_cq_create(&spec, &hw) != 0) {
        return DEVX_NO_RES;
    }
    call->obj->hw      = hw;
    call->obj->number  = hw->obj.num;
    call->obj->release = devx_cq_release;
    return DEVX_OK;
}

/* --- QUERY_CQ ------------------------------------------------------------- */

#define QUERY_CQ_CQN DEVX_BITS(0x08, 23, 0)

static const struct devx_field devx_query_cq_fields[] = {
    DEVX_HEADER_FIELDS,
    {"cqn", QUERY_CQ_CQN, DEVX_ANY},
    {NULL, 0, 0},
};

static void devx_put_cqc(uint8_t *ctx, const struct hca_cq *hw)
{
    devx_set(ctx, CQC_STATUS, hw->overrun ? CQC_STATUS_OVERFLOW : 0);
    devx_set(ctx, CQC_CQE_SZ,
             hw->is_padded              ? CQE_SZ_128_PAD :
             (hw->ring.log_stride == 7) ? CQE_SZ_128 :
                                          CQE_SZ_64);
    devx_set(ctx, CQC_OI, hw->ignore_overrun);
    devx_set(ctx, CQC_COMP_EN, hw->minis != 0);
    devx_set(ctx, CQC_ST,
             !hw->armed   ? CQC_ST_FIRED :
             hw->armed_se ? CQC_ST_SOLICITED_ARMED :
                            CQC_ST_ARMED);
    devx_set(ctx, CQC_LOG_SIZE, hw->ring.log_cnt);
    devx_set(ctx, CQC_UAR, hw->uar);
    devx_set(ctx, CQC_PERIOD, hw->mod_period_us);
    devx_set(ctx, CQC_MAX_COUNT, hw->mod_count);
    devx_set(ctx, CQC_CONSUMER, hca_cq_consumer(hw));
    devx_set(ctx, CQC_PRODUCER, hca_cq_index(hw->pi));
}

static enum devx_status devx_query_cq(struct devx_call *call)
{
    struct hca_cq *hw;
    enum devx_status status;

    status = devx_check(call, 0, call->cmd->in_size, devx_query_cq_fields);
    if (status != DEVX_OK) {
        return status;
    }
    hw = hca_obj_lock(HCA_KIND_CQ, call->number);
    devx_put_cqc(call->out + CQ_CTX, hw);
    hca_obj_unlock(hw);
    return DEVX_OK;
}

const struct devx_cmd devx_cq_cmds[] = {
    {.opcode   = DEVX_OP_CREATE_CQ,
     .class    = DEVX_CREATE,
     .name     = "create_cq",
     .in_size  = CQ_IN_SIZE,
     .out_size = 16,
     .run      = devx_create_cq},
    {.opcode   = 0x402,
     .class    = DEVX_QUERY,
     .name     = "query_cq",
     .in_size  = 16,
     .out_size = CQ_TAIL,
     .creator  = DEVX_OP_CREATE_CQ,
     .number   = QUERY_CQ_CQN,
     .run      = devx_query_cq},
    {.name = NULL},
};
