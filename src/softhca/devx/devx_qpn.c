/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * CREATE_GENERAL_OBJECT of type RESERVED_QPN, the only one supported: a block
 * of QP numbers that the device gives to no queue pair while the object lives
 * (mlx5dv_reserved_qpn_alloc()). Layouts: mlx5_ifc.h (create_reserved_qpn_in,
 * general_obj_in_cmd_hdr, MLX5_OBJ_TYPE_RESERVED_QPN).
 */
#include "devx.h"

#define GENERAL_TYPE      DEVX_BITS(0x04, 15, 0)
#define GENERAL_LOG_RANGE DEVX_BITS(0x0c, 28, 24)

static const struct devx_field devx_reserve_qpn_fields[] = {
    DEVX_HEADER_FIELDS,
    {"obj_type", GENERAL_TYPE, DEVX_ANY},
    {"log_obj_range", GENERAL_LOG_RANGE, DEVX_ANY},
    {NULL, 0, 0},
};

static int devx_qpns_release(struct devx_obj *obj)
{
    hca_obj_free(HCA_KIND_QPNS, obj->hw);
    return 0;
}

static enum devx_status devx_reserve_qpns(struct devx_call *call)
{
    struct hca_qpns *qpns = hca_obj_alloc(HCA_KIND_QPNS, call->ctx->dev);

    if (qpns == NULL) {
        return DEVX_NO_RES;
    }
    hca_obj_publish(HCA_KIND_QPNS, qpns);
    call->obj->hw      = qpns;
    call->obj->number  = hca_qpns_first(qpns);
    call->obj->release = devx_qpns_release;
    return DEVX_OK;
}

/* The block must have the size that the capability log_reserved_qpn_granularity
 * announces. */
static enum devx_status devx_create_general(struct devx_call *call)
{
    uint64_t type  = devx_get(call->in, GENERAL_TYPE);
    uint64_t range = devx_get(call->in, GENERAL_LOG_RANGE);
    enum devx_status status;

    if (type != DEVX_GENERAL_RESERVED_QPN) {
        return devx_refuse(call, DEVX_BAD_PARAM, 0x04, "obj_type", type);
    }
    status = devx_check(call, 0, call->cmd->in_size, devx_reserve_qpn_fields);
    if (status != DEVX_OK) {
        return status;
    }
    return (range == HCA_QPNS_LOG_COUNT) ?
               devx_reserve_qpns(call) :
               devx_refuse(call, DEVX_BAD_PARAM, 0x0c, "log_obj_range", range);
}

const struct devx_cmd devx_qpn_cmds[] = {
    {.opcode   = 0xa00,
     .class    = DEVX_CREATE,
     .name     = "create_general_object",
     .in_size  = 0x20,
     .out_size = 16,
     .run      = devx_create_general},
    {.name = NULL},
};
