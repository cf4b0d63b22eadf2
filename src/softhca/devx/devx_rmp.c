/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * CREATE_RMP, MODIFY_RMP: a receive memory pool is what the kernel makes for an
 * SRQ of verbs (hw/mlx5/srq_cmd.c); both share one number space. rmpc
 * basic_cyclic_rcv_wqe (WQEs without their first segment) is not supported, and
 * strides only with tag matching (hca_resp_strides.c).
 */
#define _GNU_SOURCE
#include "devx.h"
#include "devx_wq.h"
#include "softhca/uverbs/uverbs_pd.h"

/* create_rmp_in */
#define RMP_CTX     0x20u /* rmpc */
#define RMP_WQ      0x50u /* its wq */
#define RMP_IN_SIZE (RMP_WQ + DEVX_WQ_SIZE)

/* rmpc */
#define RMPC_STATE DEVX_BITS(0x00, 23, 20)

enum { RMPC_STATE_RST = 0, RMPC_STATE_RDY = 1 };

static const struct devx_field devx_rmp_fields[] = {
    DEVX_HEADER_FIELDS,
    {NULL, 0, 0},
};

static const struct devx_field devx_rmpc_fields[] = {
    {"rmpc state", RMPC_STATE, RMPC_STATE_RDY},
    {NULL, 0, 0},
};

static enum devx_status devx_rmp_check(struct devx_call *call)
{
    uint64_t type = devx_get(call->in + RMP_WQ, WQ_TYPE);
    enum devx_status status;

    status = devx_check(call, 0, RMP_CTX, devx_rmp_fields);
    if (status == DEVX_OK) {
        status = devx_check(call, RMP_CTX, RMP_WQ - RMP_CTX, devx_rmpc_fields);
    }
    if (status == DEVX_OK) {
        status = devx_wq_check(call, RMP_WQ);
    }
    if ((status == DEVX_OK) && (type > WQ_TYPE_CYCLIC)) {
        return devx_refuse(call, DEVX_BAD_PARAM, RMP_WQ,
                           "wq_type, without tag matching,", type);
    }
    return status;
}

static enum devx_status devx_rmp_make(struct devx_call *call,
                                      struct uverbs_pd *pd)
{
    struct hca_srq_spec spec = {.dev = call->ctx->dev, .pdn = pd->pdn};
    enum devx_status status  = devx_wq_fill(call, RMP_WQ, &spec);

    if (status != DEVX_OK) {
        return status;
    }
    devx_obj_use(call, &pd->obj);
    return devx_srq_make(call, &spec);
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
    pd = devx_find_pd(call, devx_get(wq, WQ_PD));
    return (pd != NULL) ? devx_rmp_make(call, pd) :
                          devx_refuse(call, DEVX_BAD_RES, RMP_WQ + 0x08,
                                      "wq pd", devx_get(wq, WQ_PD));
}

/* modify_rmp_in: the state, which must be RDY, and the low-water mark, which
 * arms one event like the limit of an SRQ. */
#define MODIFY_RMP_STATE DEVX_BITS(0x08, 31, 28)
#define MODIFY_RMP_RMPN  DEVX_BITS(0x08, 23, 0)
#define MODIFY_RMP_MASK  DEVX_QWORD(0x10)
#define MODIFY_RMP_LWM   1u /* bit of the mask */

static const struct devx_field devx_modify_rmp_fields[] = {
    DEVX_HEADER_FIELDS,
    {"rmp_state", MODIFY_RMP_STATE, RMPC_STATE_RDY},
    {"rmpn", MODIFY_RMP_RMPN, DEVX_ANY},
    {"bitmask", MODIFY_RMP_MASK, MODIFY_RMP_LWM},
    {NULL, 0, 0},
};

static enum devx_status devx_modify_rmp(struct devx_call *call)
{
    uint16_t lwm = devx_get(call->in + RMP_WQ, WQ_LWM);
    enum devx_status status;

    status = devx_check(call, 0, RMP_CTX, devx_modify_rmp_fields);
    if (status != DEVX_OK) {
        return status;
    }
    if (devx_get(call->in, MODIFY_RMP_STATE) != RMPC_STATE_RDY) {
        return devx_refuse(call, DEVX_BAD_RES_STATE, 0x08, "rmp_state",
                           RMPC_STATE_RST);
    }
    if (devx_get(call->in, MODIFY_RMP_MASK) & MODIFY_RMP_LWM) {
        hca_srq_modify(call->number, lwm);
    }
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
