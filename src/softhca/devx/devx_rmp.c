/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * CREATE_RMP, MODIFY_RMP: a receive memory pool, which is what a shared receive
 * queue of verbs is to the device (the kernel's hw/mlx5/srq_cmd.c makes its
 * own so), its number that of an SRQ. Its WQEs are a linked list, or a ring
 * (wq_type cyclic); in both they begin with the segment that has the index of
 * the next (rmpc basic_cyclic_rcv_wqe would leave it out).
 */
#define _GNU_SOURCE
#include "devx.h"
#include "softhca/uverbs/uverbs_pd.h"

/* create_rmp_in */
#define RMP_CTX     0x20u /* rmpc */
#define RMP_WQ      0x50u /* its wq */
#define RMP_WQ_SIZE 0xc0u
#define RMP_IN_SIZE (RMP_WQ + RMP_WQ_SIZE)

/* rmpc */
#define RMPC_STATE DEVX_BITS(0x00, 23, 20)

enum { RMPC_STATE_RST = 0, RMPC_STATE_RDY = 1 };

/* wq */
#define WQ_TYPE       DEVX_BITS(0x00, 31, 28)
#define WQ_LWM        DEVX_BITS(0x04, 15, 0)
#define WQ_PD         DEVX_BITS(0x08, 23, 0)
#define WQ_DBR_ADDR   DEVX_QWORD(0x10)
#define WQ_LOG_STRIDE DEVX_BITS(0x20, 19, 16)
#define WQ_LOG_SIZE   DEVX_BITS(0x20, 4, 0)
#define WQ_DBR_UMEM   DEVX_WORD(0x28)
#define WQ_UMEM       DEVX_WORD(0x2c)

enum { WQ_TYPE_LIST = 0, WQ_TYPE_CYCLIC = 1 };

static const struct devx_field devx_rmp_fields[] = {
    DEVX_HEADER_FIELDS,
    {NULL, 0, 0}
};

static const struct devx_field devx_rmpc_fields[] = {
    {"rmpc state", RMPC_STATE, RMPC_STATE_RDY},
    {NULL, 0, 0}
};

/* The kernel sets the bits that say that umems are meant. No striding, no
 * signature; padding of packets' ends means nothing without a bus. */
static const struct devx_field devx_wq_fields[] = {
    {"wq_type", WQ_TYPE, WQ_TYPE_CYCLIC},
    {"end_padding_mode", DEVX_BITS(0x00, 26, 25), 1},
    {"lwm", WQ_LWM, DEVX_ANY},
    {"pd", WQ_PD, DEVX_ANY},
    {"uar_page", DEVX_BITS(0x0c, 23, 0), DEVX_ANY},
    {"dbr_addr", WQ_DBR_ADDR, DEVX_ANY},
    {"log_wq_stride", WQ_LOG_STRIDE, 9}, /* UVERBS_MAX_RQ_DESC */
    {"log_wq_pg_sz", DEVX_BITS(0x20, 12, 8), DEVX_ANY},
    {"log_wq_sz", WQ_LOG_SIZE, 15},      /* UVERBS_MAX_WR */
    {"dbr_umem_valid", DEVX_BITS(0x24, 31, 31), 1},
    {"wq_umem_valid", DEVX_BITS(0x24, 30, 30), 1},
    {"dbr_umem_id", WQ_DBR_UMEM, DEVX_ANY},
    {"wq_umem_id", WQ_UMEM, DEVX_ANY},
    {NULL, 0, 0}
};

static enum devx_status devx_rmp_check(struct devx_call *call)
{
    enum devx_status status;

    status = devx_check(call, 0, RMP_CTX, devx_rmp_fields);
    if (status == DEVX_OK) {
        status = devx_check(call, RMP_CTX, RMP_WQ - RMP_CTX,
                            devx_rmpc_fields);
    }
    if (status == DEVX_OK) {
        status = devx_check(call, RMP_WQ, RMP_WQ_SIZE, devx_wq_fields);
    }
    return status;
}

/* Where its ring and its doorbell record are. */
static enum devx_status devx_rmp_memory(struct devx_call *call,
                                        struct hca_srq *hw)
{
    const uint8_t *wq = call->in + RMP_WQ;
    struct devx_umem_use ring = {
        .id    = devx_get(wq, WQ_UMEM),
        .size  = (size_t)1 << (devx_get(wq, WQ_LOG_SIZE) +
                               devx_get(wq, WQ_LOG_STRIDE)),
        .align = 64,
        .field = RMP_WQ + 0x2c,
    };
    struct devx_umem_use dbr = {
        .id     = devx_get(wq, WQ_DBR_UMEM),
        .offset = devx_get(wq, WQ_DBR_ADDR),
        .size   = 8,
        .align  = 8,
        .field  = RMP_WQ + 0x28,
    };
    enum devx_status status;

    status = devx_find_umem(call, &ring);
    if (status == DEVX_OK) {
        status = devx_find_umem(call, &dbr);
    }
    hw->ring.buf        = ring.off;
    hw->ring.log_cnt    = devx_get(wq, WQ_LOG_SIZE);
    hw->ring.log_stride = devx_get(wq, WQ_LOG_STRIDE);
    hw->dbrec           = dbr.off;
    return status;
}

static void devx_rmp_release(struct devx_obj *obj)
{
    hca_obj_free(HCA_KIND_SRQ, obj->hw);
}

static enum devx_status devx_rmp_make(struct devx_call *call,
                                      struct uverbs_pd *pd)
{
    const uint8_t *wq  = call->in + RMP_WQ;
    struct hca_srq *hw = hca_obj_alloc(HCA_KIND_SRQ, call->ctx->dev);
    enum devx_status status;

    if (hw == NULL) {
        return DEVX_NO_RES;
    }
    status = devx_rmp_memory(call, hw);
    if (status != DEVX_OK) {
        hca_obj_free(HCA_KIND_SRQ, hw);
        return status;
    }
    hw->pdn       = pd->pdn;
    hw->limit     = devx_get(wq, WQ_LWM);
    hw->is_cyclic = devx_get(wq, WQ_TYPE) == WQ_TYPE_CYCLIC;
    devx_obj_use(call, &pd->obj);
    call->obj->hw      = hw;
    call->obj->number  = hca_obj_publish(HCA_KIND_SRQ, hw);
    call->obj->release = devx_rmp_release;
    return DEVX_OK;
}

static enum devx_status devx_create_rmp(struct devx_call *call)
{
    const uint8_t *wq = call->in + RMP_WQ;
    enum devx_status status;
    struct uverbs_pd *pd;

    status = devx_rmp_check(call);
    if (status != DEVX_OK) {
        return status;
    }
    if (devx_get(call->in + RMP_CTX, RMPC_STATE) != RMPC_STATE_RDY) {
        return devx_refuse(call, DEVX_BAD_PARAM, RMP_CTX, "rmpc state",
                           RMPC_STATE_RST);
    }
    if (devx_get(wq, WQ_LOG_STRIDE) < 5) { /* a segment behind the next's */
        return devx_refuse(call, DEVX_BAD_PARAM, RMP_WQ + 0x20,
                           "wq log_wq_stride", devx_get(wq, WQ_LOG_STRIDE));
    }
    pd = devx_find_pd(call, devx_get(wq, WQ_PD));
    return (pd != NULL) ? devx_rmp_make(call, pd) :
           devx_refuse(call, DEVX_BAD_RES, RMP_WQ + 0x08, "wq pd",
                       devx_get(wq, WQ_PD));
}

/* modify_rmp_in: besides the state, which is RDY for ever, the low-water mark,
 * which arms one event as that of an SRQ does. */
#define MODIFY_RMP_STATE DEVX_BITS(0x08, 31, 28)
#define MODIFY_RMP_RMPN  DEVX_BITS(0x08, 23, 0)
#define MODIFY_RMP_MASK  DEVX_QWORD(0x10)
#define MODIFY_RMP_LWM   1u /* of the mask */

static const struct devx_field devx_modify_rmp_fields[] = {
    DEVX_HEADER_FIELDS,
    {"rmp_state", MODIFY_RMP_STATE, RMPC_STATE_RDY},
    {"rmpn", MODIFY_RMP_RMPN, DEVX_ANY},
    {"bitmask", MODIFY_RMP_MASK, MODIFY_RMP_LWM},
    {NULL, 0, 0}
};

static enum devx_status devx_modify_rmp(struct devx_call *call)
{
    uint16_t lwm = devx_get(call->in + RMP_WQ, WQ_LWM);
    struct hca_srq *srq;
    enum devx_status status;

    status = devx_check(call, 0, RMP_CTX, devx_modify_rmp_fields);
    if (status != DEVX_OK) {
        return status;
    }
    if (devx_get(call->in, MODIFY_RMP_STATE) != RMPC_STATE_RDY) {
        return devx_refuse(call, DEVX_BAD_RES_STATE, 0x08, "rmp_state",
                           RMPC_STATE_RST);
    }
    srq = hca_obj_lock(HCA_KIND_SRQ, call->number);
    if (devx_get(call->in, MODIFY_RMP_MASK) & MODIFY_RMP_LWM) {
        srq->limit = lwm;
    }
    hca_obj_unlock(srq);
    return DEVX_OK;
}

const struct devx_cmd devx_rmp_cmds[] = {
    {.opcode   = DEVX_OP_CREATE_RMP,
     .class    = DEVX_CREATE,
     .name     = "create_rmp",
     .in_size  = RMP_IN_SIZE,
     .out_size = 16,
     .run      = devx_create_rmp},
    {.opcode   = 0x90d,
     .class    = DEVX_MODIFY,
     .name     = "modify_rmp",
     .in_size  = RMP_IN_SIZE,
     .out_size = 16,
     .creator  = DEVX_OP_CREATE_RMP,
     .number   = MODIFY_RMP_RMPN,
     .run      = devx_modify_rmp},
    {.name = NULL},
};
