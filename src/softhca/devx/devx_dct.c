/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * CREATE_DCT, DRAIN_DCT, QUERY_DCT (mlx5_ifc.h: dctc). CREATE_DCT makes a
 * target that is active at once; verbs need a creation and two changes of state
 * for this. A drained target takes no more messages; the kernel drains a target
 * before it destroys it.
 */
#define _GNU_SOURCE
#include "devx.h"
#include "devx_qp.h"
#include "softhca/fabric/hca_dev.h"
#include "softhca/uverbs/uverbs_cq.h"
#include "softhca/uverbs/uverbs_pd.h"

#include <errno.h>

#define DCT_CTX      0x10u
#define DCT_CTX_SIZE 0x70u
#define DCT_IN_SIZE  (DCT_CTX + DCT_CTX_SIZE)
#define DCT_DCTN     DEVX_BITS(0x08, 23, 0) /* drain, query */

/* dctc */
#define DCTC_STATE       DEVX_BITS(0x00, 27, 24)
#define DCTC_OFFLOAD     DEVX_BITS(0x00, 7, 4)   /* as for a queue pair */
#define DCTC_DP_FORCE    DEVX_BITS(0x04, 24, 24) /* dp_ordering_force */
#define DCTC_USER_INDEX  DEVX_BITS(0x04, 23, 0)
#define DCTC_CQN         DEVX_BITS(0x08, 23, 0)
#define DCTC_ATOMIC_MODE DEVX_BITS(0x0c, 23, 20)
#define DCTC_RRE         DEVX_BITS(0x0c, 19, 19)
#define DCTC_RWE         DEVX_BITS(0x0c, 18, 18)
#define DCTC_RAE         DEVX_BITS(0x0c, 17, 17)
#define DCTC_HANDSHAKE   DEVX_BITS(0x0c, 13, 13) /* force_full_handshake */
#define DCTC_DP_0        DEVX_BITS(0x0c, 12, 12) /* dp_ordering_0 */
#define DCTC_DP_1        DEVX_BITS(0x0c, 11, 11) /* dp_ordering_1 */
#define DCTC_CS_RES      DEVX_BITS(0x10, 23, 16)
#define DCTC_MIN_RNR     DEVX_BITS(0x10, 12, 8)
#define DCTC_SRQN        DEVX_BITS(0x14, 23, 0)
#define DCTC_PD          DEVX_BITS(0x18, 23, 0)
#define DCTC_TCLASS      DEVX_BITS(0x1c, 31, 24)
#define DCTC_FLOW_LABEL  DEVX_BITS(0x1c, 19, 0)
#define DCTC_KEY         DEVX_QWORD(0x20)
#define DCTC_MTU         DEVX_BITS(0x28, 26, 24)
#define DCTC_PORT        DEVX_BITS(0x28, 23, 16)
#define DCTC_PKEY_INDEX  DEVX_BITS(0x28, 15, 0)
#define DCTC_GID_INDEX   DEVX_BITS(0x2c, 23, 16)
#define DCTC_HOP_LIMIT   DEVX_BITS(0x2c, 7, 0)

enum { DCTC_STATE_ACTIVE = 0, DCTC_STATE_DRAINED = 2 };

static const struct devx_field devx_dct_fields[] = {
    DEVX_HEADER_FIELDS,
    {NULL, 0, 0},
};

/* counter_set_id, latency_sensitive, eth_prio, ecn and dscp are ignored. So is
 * cs_res 1: mlx5_ib has only 2, up to 64 bytes. */
static const struct devx_field devx_dctc_fields[] = {
    {"dctc dp_ordering_0", DCTC_DP_0, DEVX_IF_OOO},
    {"dctc dp_ordering_1", DCTC_DP_1, DEVX_IF_OOO},
    {"dctc dp_ordering_force", DCTC_DP_FORCE, DEVX_IF_OOO},
    {"dctc state", DCTC_STATE, DCTC_STATE_ACTIVE},
    {"dctc offload_type", DCTC_OFFLOAD, QPC_OFFLOAD_RNDV},
    {"dctc user_index", DCTC_USER_INDEX, UVERBS_UIDX_MASK},
    {"dctc cqn", DCTC_CQN, DEVX_ANY},
    {"dctc counter_set_id", DEVX_BITS(0x0c, 31, 24), DEVX_ANY},
    {"dctc atomic_mode", DCTC_ATOMIC_MODE, DEVX_ANY},
    {"dctc rre", DCTC_RRE, 1},
    {"dctc rwe", DCTC_RWE, 1},
    {"dctc rae", DCTC_RAE, 1},
    {"dctc latency_sensitive", DEVX_BITS(0x0c, 15, 15), 1},
    {"dctc force_full_handshake", DCTC_HANDSHAKE, 1},
    {"dctc cs_res", DCTC_CS_RES, 2},
    {"dctc min_rnr_nak", DCTC_MIN_RNR, DEVX_ANY},
    {"dctc srqn_xrqn", DCTC_SRQN, DEVX_ANY},
    {"dctc pd", DCTC_PD, DEVX_ANY},
    {"dctc tclass", DCTC_TCLASS, DEVX_ANY},
    {"dctc flow_label", DCTC_FLOW_LABEL, DEVX_ANY},
    {"dctc dc_access_key", DCTC_KEY, DEVX_ANY},
    {"dctc mtu", DCTC_MTU, IBV_MTU_4096},
    {"dctc port", DCTC_PORT, 1},
    {"dctc pkey_index", DCTC_PKEY_INDEX, HCA_PKEY_TABLE_LEN - 1},
    {"dctc my_addr_index", DCTC_GID_INDEX, DEVX_ANY},
    {"dctc hop_limit", DCTC_HOP_LIMIT, DEVX_ANY},
    {"dctc eth_prio", DEVX_BITS(0x34, 10, 8), DEVX_ANY},
    {"dctc ecn", DEVX_BITS(0x34, 7, 6), DEVX_ANY},
    {"dctc dscp", DEVX_BITS(0x34, 5, 0), DEVX_ANY},
    {NULL, 0, 0},
};

static enum devx_status devx_dct_bad(struct devx_call *call,
                                     enum devx_status status, uint32_t bits,
                                     const char *what)
{
    return devx_refuse(call, status, DCT_CTX + (bits >> 16), what,
                       devx_get(call->in + DCT_CTX, bits));
}

static enum devx_status devx_dct_check(struct devx_call *call)
{
    const uint8_t *ctx = call->in + DCT_CTX;
    uint8_t gid[16];
    enum devx_status status;

    if (hca_lacks(HCA_LACK_DC)) {
        return devx_refuse(call, DEVX_BAD_OP, 0, "opcode, without DC,",
                           call->cmd->opcode);
    }
    status = devx_check(call, 0, DCT_CTX, devx_dct_fields);
    if (status == DEVX_OK) {
        status = devx_check(call, DCT_CTX, DCT_CTX_SIZE, devx_dctc_fields);
    }
    if (status != DEVX_OK) {
        return status;
    }
    if (devx_is_bond(call) && hca_lacks(HCA_LACK_LAG_DCT)) {
        return devx_refuse(call, DEVX_BAD_OP, 0,
                           "opcode, on a bond without lag_dct,",
                           call->cmd->opcode);
    }
    if (devx_get(ctx, DCTC_RAE) && hca_lacks(HCA_LACK_ATOMICS)) {
        return devx_dct_bad(call, DEVX_BAD_PARAM, DCTC_RAE,
                            "dctc rae, without atomics,");
    }
    if (devx_get(ctx, DCTC_PORT) == 0) {
        return devx_dct_bad(call, DEVX_BAD_PARAM, DCTC_PORT, "dctc port");
    }
    if (hca_dev_is_roce(call->ctx->dev) &&
        (hca_dev_gid(call->ctx->dev, devx_get(ctx, DCTC_GID_INDEX), gid) ==
         HCA_GID_NONE)) {
        return devx_dct_bad(call, DEVX_BAD_PARAM, DCTC_GID_INDEX,
                            "dctc my_addr_index");
    }
    return DEVX_OK;
}

static uint32_t devx_dctc_access(const uint8_t *ctx)
{
    return (devx_get(ctx, DCTC_RRE) ? IBV_ACCESS_REMOTE_READ : 0) |
           (devx_get(ctx, DCTC_RWE) ? IBV_ACCESS_REMOTE_WRITE : 0) |
           (devx_get(ctx, DCTC_RAE) ? IBV_ACCESS_REMOTE_ATOMIC : 0);
}

static void devx_dct_spec(const struct devx_call *call,
                          struct hca_qp_spec *spec)
{
    const uint8_t *ctx = call->in + DCT_CTX;

    *spec = (struct hca_qp_spec){
        .dev      = call->ctx->dev,
        .type     = HCA_QP_DCT,
        .pdn      = devx_get(ctx, DCTC_PD),
        .scqn     = devx_get(ctx, DCTC_CQN),
        .rcqn     = devx_get(ctx, DCTC_CQN),
        .srqn     = devx_get(ctx, DCTC_SRQN),
        .uidx     = devx_get(ctx, DCTC_USER_INDEX),
        .cs_res   = (devx_get(ctx, DCTC_CS_RES) == 2) ? 64 : 0,
        .has_rndv = devx_get(ctx, DCTC_OFFLOAD),
        .dc_key   = devx_get(ctx, DCTC_KEY),
        .attr =
            {
                .path =
                    {
                        .grh        = hca_dev_is_roce(call->ctx->dev),
                        .sgid_index = devx_get(ctx, DCTC_GID_INDEX),
                        .hop_limit  = devx_get(ctx, DCTC_HOP_LIMIT),
                        .tclass     = devx_get(ctx, DCTC_TCLASS),
                        .flow_label = devx_get(ctx, DCTC_FLOW_LABEL),
                    },
                .access         = devx_dctc_access(ctx),
                .pkey_index     = devx_get(ctx, DCTC_PKEY_INDEX),
                .mtu            = devx_get(ctx, DCTC_MTU),
                .min_rnr_timer  = devx_get(ctx, DCTC_MIN_RNR),
                .no_atomics     = devx_get(ctx, DCTC_ATOMIC_MODE) == 0,
                .dp_ordering    = devx_dp_ordering(ctx, DCTC_DP_1, DCTC_DP_0),
                .dp_force       = devx_get(ctx, DCTC_DP_FORCE),
                .full_handshake = devx_get(ctx, DCTC_HANDSHAKE),
            },
    };
}

/* Finds and references the PD, the CQ and the SRQ of a target. */
static enum devx_status devx_dct_objects(struct devx_call *call)
{
    const uint8_t *ctx     = call->in + DCT_CTX;
    struct uverbs_pd *pd   = devx_find_pd(call, devx_get(ctx, DCTC_PD));
    struct uverbs_obj *cq  = devx_find_cq(call, devx_get(ctx, DCTC_CQN));
    struct uverbs_obj *srq = devx_find_srq(call, devx_get(ctx, DCTC_SRQN));

    if (pd == NULL) {
        return devx_dct_bad(call, DEVX_BAD_RES, DCTC_PD, "dctc pd");
    }
    if (cq == NULL) {
        return devx_dct_bad(call, DEVX_BAD_RES, DCTC_CQN, "dctc cqn");
    }
    if (srq == NULL) {
        return devx_dct_bad(call, DEVX_BAD_RES, DCTC_SRQN, "dctc srqn_xrqn");
    }
    devx_obj_use(call, &pd->obj);
    devx_obj_use(call, cq);
    devx_obj_use(call, srq);
    return DEVX_OK;
}

static enum devx_status devx_create_dct(struct devx_call *call)
{
    struct hca_qp_spec spec;
    struct hca_qp *hw;
    enum devx_status status;
    uint32_t bad;

    status = devx_dct_check(call);
    if (status == DEVX_OK) {
        status = devx_dct_objects(call);
    }
    if (status != DEVX_OK) {
        return status;
    }
    devx_dct_spec(call, &spec);
    switch (hca_dct_create(&spec, &bad, &hw)) {
    case 0:
        devx_qp_made(call, hw);
        return DEVX_OK;
    case -EPROTONOSUPPORT:
        return devx_dct_bad(call, DEVX_BAD_PARAM, DCTC_SRQN,
                            "dctc srqn_xrqn, of an xrq with dc 0,");
    case -EOPNOTSUPP:
        return devx_dct_bad(call, DEVX_BAD_PARAM, DCTC_OFFLOAD,
                            "dctc offload_type, without tag matching,");
    case -EINVAL:
        return (bad == IBV_QP_PATH_MTU) ?
                   devx_dct_bad(call, DEVX_BAD_PARAM, DCTC_MTU, "dctc mtu") :
               (bad == IBV_QP_PKEY_INDEX) ?
                   devx_dct_bad(call, DEVX_BAD_PARAM, DCTC_PKEY_INDEX,
                                "dctc pkey_index") :
                   devx_dct_bad(call, DEVX_BAD_PARAM, DCTC_DP_1,
                                "dctc dp_ordering");
    default:
        return DEVX_NO_RES;
    }
}

static const struct devx_field devx_dctn_fields[] = {
    DEVX_HEADER_FIELDS,
    {"dctn", DCT_DCTN, DEVX_ANY},
    {NULL, 0, 0},
};

static enum devx_status devx_drain_dct(struct devx_call *call)
{
    struct hca_qp *hw = hca_obj_peek(HCA_KIND_QP, call->number);
    enum devx_status status;

    status = devx_check(call, 0, call->cmd->in_size, devx_dctn_fields);
    if (status != DEVX_OK) {
        return status;
    }
    return (hca_dct_drain(hw) == 0) ?
               DEVX_OK :
               devx_refuse(call, DEVX_BAD_RES_STATE, 0x08,
                           "dctn, of a target that is not active,",
                           call->number);
}

/* Returns the values in effect: cs_res is 0 if the entries of the CQ have no
 * room for 64 bytes. atomic_mode stays 0, as its value is not kept. */
static enum devx_status devx_query_dct(struct devx_call *call)
{
    struct hca_qp *hw = hca_obj_peek(HCA_KIND_QP, call->number);
    uint8_t *ctx      = call->out + DCT_CTX;
    struct hca_qp_info info;
    enum devx_status status;

    status = devx_check(call, 0, call->cmd->in_size, devx_dctn_fields);
    if (status != DEVX_OK) {
        return status;
    }
    hca_qp_query(hw, &info);
    devx_set(ctx, DCTC_STATE,
             (info.state == IBV_QPS_RTR) ? DCTC_STATE_ACTIVE :
                                           DCTC_STATE_DRAINED);
    devx_set(ctx, DCTC_OFFLOAD, hw->has_rndv ? QPC_OFFLOAD_RNDV : 0);
    devx_set(ctx, DCTC_USER_INDEX, hw->uidx);
    devx_set(ctx, DCTC_CQN, hw->rcqn);
    devx_set(ctx, DCTC_RRE, (info.attr.access & IBV_ACCESS_REMOTE_READ) != 0);
    devx_set(ctx, DCTC_RWE, (info.attr.access & IBV_ACCESS_REMOTE_WRITE) != 0);
    devx_set(ctx, DCTC_RAE, (info.attr.access & IBV_ACCESS_REMOTE_ATOMIC) != 0);
    devx_set(ctx, DCTC_DP_0, info.attr.dp_ordering);
    devx_set(ctx, DCTC_DP_1, info.attr.dp_ordering >> 1);
    devx_set(ctx, DCTC_DP_FORCE, info.attr.dp_force);
    devx_set(ctx, DCTC_HANDSHAKE, info.attr.full_handshake);
    devx_set(ctx, DCTC_CS_RES, (hw->cs_res == 64) ? 2 : 0);
    devx_set(ctx, DCTC_MIN_RNR, info.attr.min_rnr_timer);
    devx_set(ctx, DCTC_SRQN, hw->srqn);
    devx_set(ctx, DCTC_PD, hw->pdn);
    devx_set(ctx, DCTC_TCLASS, info.attr.path.tclass);
    devx_set(ctx, DCTC_FLOW_LABEL, info.attr.path.flow_label);
    devx_set(ctx, DCTC_KEY, hw->dc_key);
    devx_set(ctx, DCTC_MTU, info.attr.mtu);
    devx_set(ctx, DCTC_PORT, 1);
    devx_set(ctx, DCTC_PKEY_INDEX, info.attr.pkey_index);
    devx_set(ctx, DCTC_GID_INDEX, info.attr.path.sgid_index);
    devx_set(ctx, DCTC_HOP_LIMIT, info.attr.path.hop_limit);
    return DEVX_OK;
}

const struct devx_cmd devx_dct_cmds[] = {
    {.opcode   = DEVX_OP_CREATE_DCT,
     .class    = DEVX_CREATE,
     .name     = "create_dct",
     .in_size  = DCT_IN_SIZE,
     .out_size = 16,
     .run      = devx_create_dct},
    {.opcode   = 0x712,
     .class    = DEVX_MODIFY,
     .name     = "drain_dct",
     .in_size  = 16,
     .out_size = 16,
     .creator  = DEVX_OP_CREATE_DCT,
     .number   = DCT_DCTN,
     .run      = devx_drain_dct},
    {.opcode   = 0x713,
     .class    = DEVX_QUERY,
     .name     = "query_dct",
     .in_size  = 16,
     .out_size = DCT_CTX + DCT_CTX_SIZE,
     .creator  = DEVX_OP_CREATE_DCT,
     .number   = DCT_DCTN,
     .run      = devx_query_dct},
    {.name = NULL},
};
