/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * CREATE_XRQ, QUERY_XRQ, ARM_XRQ, SET_XRQ_DC_PARAMS_ENTRY: a shared receive
 * queue with tag matching, an SRQ of type TM in verbs. Layouts: mlx5_ifc.h of
 * the kernel (xrqc) and of UCX (set_xrq_dc_params_entry).
 *
 * Not supported: XRQs without tag matching (for NVMe), and MODIFY_XRQ (0x72a).
 * No public source has the mailbox of the latter: mlx5_ifc.h has the opcode,
 * mlx5_ib's devx.c the place of xrqn.
 *
 * A NIC has no counter of matches (mlx5_ib's counters.c); hw_phase_cnt of xrqc
 * counts unexpected messages. QUERY_XRQ logs both.
 */
#define _GNU_SOURCE
#include "devx.h"
#include "devx_wq.h"
#include "softhca/fabric/hca_dev.h"
#include "softhca/fabric/hca_caps.h"
#include "softhca/obj/hca_tm.h"
#include "softhca/uverbs/uverbs_cq.h"
#include "softhca/uverbs/uverbs_pd.h"
#include "softhca/uverbs/uverbs_srq.h"

#include <errno.h>

/* create_xrq_in; query_xrq_out has xrqc at the same place */
#define XRQ_CTX     0x10u
#define XRQ_WQ      0x90u
#define XRQ_IN_SIZE (XRQ_WQ + DEVX_WQ_SIZE)

/* query_xrq_in, arm_xrq_in, set_xrq_dc_params_entry_in */
#define XRQ_XRQN DEVX_BITS(0x08, 23, 0)

/* xrqc */
#define XRQC_STATE      DEVX_BITS(0x00, 31, 28)
#define XRQC_TOPOLOGY   DEVX_BITS(0x00, 11, 8)
#define XRQC_OFFLOAD    DEVX_BITS(0x00, 3, 0)
#define XRQC_USER_INDEX DEVX_BITS(0x04, 23, 0)
#define XRQC_CQN        DEVX_BITS(0x08, 23, 0)
#define XRQC_DC         DEVX_BITS(0x0c, 0, 0)
/* tag_matching_topology_context of xrqc */
#define XRQC_LOG_LIST    DEVX_BITS(0x20, 31, 28)
#define XRQC_APPEND_NEXT DEVX_BITS(0x20, 15, 0)
#define XRQC_SW_PHASE    DEVX_BITS(0x24, 31, 16)
#define XRQC_HW_PHASE    DEVX_BITS(0x24, 15, 0)

enum { XRQC_STATE_GOOD = 0, XRQC_STATE_ERROR = 1 };
enum { XRQC_TOPOLOGY_TAG_MATCHING = 1 };
enum { XRQC_OFFLOAD_RNDV = 1 };

static const struct devx_field devx_xrq_fields[] = {
    DEVX_HEADER_FIELDS,
    {NULL, 0, 0},
};

static const struct devx_field devx_xrqc_fields[] = {
    {"xrqc topology", XRQC_TOPOLOGY, XRQC_TOPOLOGY_TAG_MATCHING},
    {"xrqc offload", XRQC_OFFLOAD, XRQC_OFFLOAD_RNDV},
    {"xrqc user_index", XRQC_USER_INDEX, UVERBS_UIDX_MASK},
    {"xrqc cqn", XRQC_CQN, DEVX_ANY},
    {"xrqc dc", XRQC_DC, 1},
    {"xrqc log_matching_list_sz", XRQC_LOG_LIST, HCA_TM_LOG_MAX},
    {NULL, 0, 0},
};

static enum devx_status devx_xrq_check(struct devx_call *call)
{
    const uint8_t *ctx = call->in + XRQ_CTX;
    uint64_t log_list  = devx_get(ctx, XRQC_LOG_LIST);
    enum devx_status status;

    if (hca_lacks(HCA_LACK_TM)) {
        return devx_refuse(call, DEVX_BAD_OP, 0,
                           "opcode, without tag matching,", call->cmd->opcode);
    }
    status = devx_check(call, 0, XRQ_CTX, devx_xrq_fields);
    if (status == DEVX_OK) {
        status = devx_check(call, XRQ_CTX, XRQ_WQ - XRQ_CTX, devx_xrqc_fields);
    }
    if (status == DEVX_OK) {
        status = devx_wq_check(call, XRQ_WQ);
    }
    if (status != DEVX_OK) {
        return status;
    }
    if (devx_get(ctx, XRQC_TOPOLOGY) != XRQC_TOPOLOGY_TAG_MATCHING) {
        return devx_refuse(call, DEVX_BAD_PARAM, XRQ_CTX, "xrqc topology",
                           devx_get(ctx, XRQC_TOPOLOGY));
    }
    if (devx_get(ctx, XRQC_DC) && !hca_has_dc_rndv()) {
        return devx_refuse(call, DEVX_BAD_PARAM, XRQ_CTX + 0x0c,
                           "xrqc dc, without rendezvous by DC,", 1);
    }
    return ((1u << log_list) <= uverbs_max_tags() + 1) ?
               DEVX_OK :
               devx_refuse(call, DEVX_BAD_PARAM, XRQ_CTX + 0x20,
                           "xrqc log_matching_list_sz", log_list);
}

/* Objects that an XRQ uses */
struct devx_xrq {
    struct uverbs_pd *pd;
    struct uverbs_obj *cq;
};

static enum devx_status devx_xrq_make(struct devx_call *call,
                                      const struct devx_xrq *xrq)
{
    const uint8_t *ctx       = call->in + XRQ_CTX;
    struct hca_srq_spec spec = {
        .dev         = call->ctx->dev,
        .pdn         = xrq->pd->pdn,
        .cqn         = devx_get(ctx, XRQC_CQN),
        .uidx        = devx_get(ctx, XRQC_USER_INDEX),
        .has_tm      = true,
        .log_tags    = devx_get(ctx, XRQC_LOG_LIST),
        .has_rndv    = devx_get(ctx, XRQC_OFFLOAD) == XRQC_OFFLOAD_RNDV,
        .has_dc_rndv = devx_get(ctx, XRQC_DC),
    };
    enum devx_status status = devx_wq_fill(call, XRQ_WQ, &spec);

    if (status != DEVX_OK) {
        return status;
    }
    devx_obj_use(call, &xrq->pd->obj);
    devx_obj_use(call, xrq->cq);
    return devx_srq_make(call, &spec);
}

static enum devx_status devx_create_xrq(struct devx_call *call)
{
    const uint8_t *ctx      = call->in + XRQ_CTX;
    const uint8_t *wq       = call->in + XRQ_WQ;
    enum devx_status status = devx_xrq_check(call);
    struct devx_xrq xrq;

    if (status != DEVX_OK) {
        return status;
    }
    xrq.pd = devx_find_pd(call, devx_get(wq, WQ_PD));
    xrq.cq = devx_find_cq(call, devx_get(ctx, XRQC_CQN));
    if (xrq.pd == NULL) {
        return devx_refuse(call, DEVX_BAD_RES, XRQ_WQ + 0x08, "wq pd",
                           devx_get(wq, WQ_PD));
    }
    if (xrq.cq == NULL) {
        return devx_refuse(call, DEVX_BAD_RES, XRQ_CTX + 0x08, "xrqc cqn",
                           devx_get(ctx, XRQC_CQN));
    }
    return devx_xrq_make(call, &xrq);
}

/* --- QUERY_XRQ ----------------------------------------------------------- */

static const struct devx_field devx_query_xrq_fields[] = {
    DEVX_HEADER_FIELDS,
    {"xrqn", XRQ_XRQN, DEVX_ANY},
    {NULL, 0, 0},
};

static void devx_put_xrqc(uint8_t *ctx, const struct hca_srq *hw)
{
    const struct hca_tm *tm = hca_srq_tm(hw);

    devx_set(ctx, XRQC_STATE,
             hw->in_error ? XRQC_STATE_ERROR : XRQC_STATE_GOOD);
    devx_set(ctx, XRQC_TOPOLOGY, XRQC_TOPOLOGY_TAG_MATCHING);
    devx_set(ctx, XRQC_OFFLOAD, hw->has_rndv ? XRQC_OFFLOAD_RNDV : 0);
    devx_set(ctx, XRQC_USER_INDEX, hw->uidx);
    devx_set(ctx, XRQC_CQN, hw->cqn);
    devx_set(ctx, XRQC_DC, hw->dc.is_on);
    devx_set(ctx, XRQC_LOG_LIST, __builtin_ctz(tm->size));
    devx_set(ctx, XRQC_APPEND_NEXT, tm->append_next);
    devx_set(ctx, XRQC_SW_PHASE, tm->sw_phase_cnt);
    devx_set(ctx, XRQC_HW_PHASE, tm->hw_phase_cnt);
    devx_wq_put(ctx + XRQ_WQ - XRQ_CTX, hw);
}

static enum devx_status devx_query_xrq(struct devx_call *call)
{
    struct hca_srq *hw;
    enum devx_status status;

    status = devx_check(call, 0, call->cmd->in_size, devx_query_xrq_fields);
    if (status != DEVX_OK) {
        return status;
    }
    hw = hca_obj_lock(HCA_KIND_SRQ, call->number);
    devx_put_xrqc(call->out + XRQ_CTX, hw);
    hca_tm_log_counts(hw->obj.num, hca_srq_tm(hw));
    hca_obj_unlock(hw);
    return DEVX_OK;
}

/* --- ARM_XRQ ------------------------------------------------------------- */

#define ARM_XRQ_LWM DEVX_BITS(0x0c, 15, 0)

static const struct devx_field devx_arm_xrq_fields[] = {
    DEVX_HEADER_FIELDS,
    {"xrqn", XRQ_XRQN, DEVX_ANY},
    {"lwm", ARM_XRQ_LWM, DEVX_ANY},
    {NULL, 0, 0},
};

/* Arms one event, like the limit of an SRQ. */
static enum devx_status devx_arm_xrq(struct devx_call *call)
{
    enum devx_status status = devx_check(call, 0, call->cmd->in_size,
                                         devx_arm_xrq_fields);

    if (status == DEVX_OK) {
        hca_srq_modify(call->number, devx_get(call->in, ARM_XRQ_LWM));
    }
    return status;
}

/* --- SET_XRQ_DC_PARAMS_ENTRY --------------------------------------------- */

#define DC_PARAMS_ACK_TIMEOUT DEVX_BITS(0x10, 28, 24)
#define DC_PARAMS_MTU         DEVX_BITS(0x10, 18, 16)
#define DC_PARAMS_KEY         DEVX_QWORD(0x18)
#define DC_PARAMS_PKEY_INDEX  DEVX_BITS(0x10, 15, 0)
#define DC_PARAMS_SL          DEVX_BITS(0x14, 3, 0)
#define DC_PARAMS_REVERSE_SL  DEVX_BITS(0x14, 11, 8)

static const struct devx_field devx_dc_params_fields[] = {
    DEVX_HEADER_FIELDS,
    {"xrqn", XRQ_XRQN, DEVX_ANY},
    {"ack_timeout", DC_PARAMS_ACK_TIMEOUT, DEVX_ANY},
    {"multi_path", DEVX_BITS(0x10, 19, 19), 1},
    {"mtu", DC_PARAMS_MTU, IBV_MTU_4096},
    {"pkey_table_index", DC_PARAMS_PKEY_INDEX, HCA_PKEY_TABLE_LEN - 1},
    {"cnak_reverse_sl", DEVX_BITS(0x14, 19, 16), DEVX_ANY},
    {"reverse_sl", DC_PARAMS_REVERSE_SL, DEVX_ANY},
    {"sl", DC_PARAMS_SL, DEVX_ANY},
    {"dc_access_key", DC_PARAMS_KEY, DEVX_ANY},
    {NULL, 0, 0},
};

/* Sets the parameters of the rendezvous reads from DC initiators. On a device
 * that lacks TM_OWN_KEY, their requests must have the same key
 * (hca_resp_tm.c). */
static enum devx_status devx_set_dc_params(struct devx_call *call)
{
    struct hca_srq_dc dc = {
        .is_on       = true,
        .is_set      = true,
        .mtu         = devx_get(call->in, DC_PARAMS_MTU),
        .sl          = devx_get(call->in, DC_PARAMS_SL),
        .reverse_sl  = devx_get(call->in, DC_PARAMS_REVERSE_SL),
        .ack_timeout = devx_get(call->in, DC_PARAMS_ACK_TIMEOUT),
        .key         = devx_get(call->in, DC_PARAMS_KEY),
    };
    enum devx_status status;

    status = devx_check(call, 0, call->cmd->in_size, devx_dc_params_fields);
    if (status != DEVX_OK) {
        return status;
    }
    if (dc.mtu == 0) {
        return devx_refuse(call, DEVX_BAD_PARAM, 0x10, "mtu", 0);
    }
    dc.pkey = hca_dev_pkey(call->ctx->dev,
                           devx_get(call->in, DC_PARAMS_PKEY_INDEX));
    return (hca_srq_set_dc(call->number, &dc) == 0) ?
               DEVX_OK :
               devx_refuse(call, DEVX_BAD_RES_STATE, 0x08,
                           "xrqn, of an xrq without dc,", call->number);
}

const struct devx_cmd devx_xrq_cmds[] = {
    {.opcode   = DEVX_OP_CREATE_XRQ,
     .class    = DEVX_CREATE,
     .name     = "create_xrq",
     .in_size  = XRQ_IN_SIZE,
     .out_size = 16,
     .run      = devx_create_xrq},
    {.opcode   = 0x719,
     .class    = DEVX_QUERY,
     .name     = "query_xrq",
     .in_size  = 16,
     .out_size = XRQ_IN_SIZE,
     .creator  = DEVX_OP_CREATE_XRQ,
     .number   = XRQ_XRQN,
     .run      = devx_query_xrq},
    {.opcode   = 0x71a,
     .class    = DEVX_MODIFY,
     .name     = "arm_xrq",
     .in_size  = 16,
     .out_size = 16,
     .creator  = DEVX_OP_CREATE_XRQ,
     .number   = XRQ_XRQN,
     .run      = devx_arm_xrq},
    {.opcode   = 0x726,
     .class    = DEVX_MODIFY,
     .name     = "set_xrq_dc_params_entry",
     .in_size  = 0x30,
     .out_size = 16,
     .creator  = DEVX_OP_CREATE_XRQ,
     .number   = XRQ_XRQN,
     .run      = devx_set_dc_params},
    {.name = NULL},
};
