/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * CREATE_QP and QUERY_QP: RC, UC, UD and DC initiators. The umem of a queue
 * pair holds the receive queue, if it has its own, and then the send queue, as
 * in libmlx5.
 */
#define _GNU_SOURCE
#include "devx_qp.h"
#include "devx.h"
#include "softhca/exec/hca_qp_cmd.h"
#include "softhca/fabric/hca_caps.h"
#include "softhca/wqe/hca_wqe.h"
#include "softhca/uverbs/uverbs_cq.h"
#include "softhca/uverbs/uverbs_mmap.h"
#include "softhca/uverbs/uverbs_pd.h"
#include "softhca/uverbs/uverbs_uar.h"

#include <errno.h>
#include <string.h>

/* create_qp_in, after the context */
#define QP_WQ_UMEM       DEVX_WORD(0x108)
#define QP_WQ_UMEM_VALID DEVX_BITS(0x10c, 31, 31)

enum { RQ_TYPE_OWN = 0, RQ_TYPE_SRQ = 1, RQ_TYPE_NONE = 3 };

static const struct devx_field devx_create_qp_fields[] = {
    DEVX_HEADER_FIELDS,
    {NULL, 0, 0},
};

/* 0: free-running clock, 1: the device's default (MLX5_QPC_TIMESTAMP_FORMAT_*
 * of mlx5_ifc.h) */
#define QPC_TS_FORMAT DEVX_BITS(0x08, 7, 6)

/* Fields at creation; all others must be 0 and are set when the state changes.
 * pm_state, latency_sensitive, counter_set_id and the like are ignored. */
static const struct devx_field devx_create_qpc_fields[] = {
    {"qpc st", QPC_ST, QPC_ST_DCI},
    {"qpc pm_state", QPC_PM_STATE, DEVX_ANY},
    {"qpc offload_type", QPC_OFFLOAD, QPC_OFFLOAD_RNDV},
    {"qpc end_padding_mode", DEVX_BITS(0x00, 3, 2), DEVX_ANY},
    {"qpc block_lb_mc", DEVX_BITS(0x04, 30, 30), 1},
    {"qpc latency_sensitive", DEVX_BITS(0x04, 28, 28), 1},
    {"qpc pd", QPC_PD, DEVX_ANY},
    {"qpc log_msg_max", QPC_LOG_MSG_MAX, HCA_LOG_MSG_MAX},
    {"qpc log_rq_size", QPC_LOG_RQ_SIZE, 15},
    {"qpc log_rq_stride", QPC_LOG_STRIDE, 5}, /* UVERBS_MAX_RQ_DESC */
    {"qpc no_sq", QPC_NO_SQ, 1},
    {"qpc log_sq_size", QPC_LOG_SQ_SIZE, 15}, /* UVERBS_MAX_WR */
    {"qpc ts_format", QPC_TS_FORMAT, 1},      /* 2: real time */
    {"qpc rlky", DEVX_BITS(0x08, 4, 4), 1},
    {"qpc counter_set_id", DEVX_BITS(0x0c, 31, 24), DEVX_ANY},
    {"qpc uar_page", QPC_UAR, DEVX_ANY},
    {"qpc full_handshake", DEVX_BITS(0x10, 28, 28), 1},
    {"qpc cnak_reverse_sl", DEVX_BITS(0x10, 27, 24), DEVX_ANY},
    {"qpc user_index", QPC_USER_INDEX, DEVX_ANY},
    {"qpc log_page_size", DEVX_BITS(0x14, 28, 24), DEVX_ANY},
    {"qpc cqn_snd", QPC_CQN_SND, DEVX_ANY},
    {"qpc cqn_rcv", QPC_CQN_RCV, DEVX_ANY},
    {"qpc dbr_addr", QPC_DBR_ADDR, DEVX_ANY},
    {"qpc rq_type", QPC_RQ_TYPE, RQ_TYPE_NONE},
    {"qpc srqn_rmpn_xrqn", QPC_SRQN, DEVX_ANY},
    {"qpc cs_req", QPC_CS_REQ, 0x22},
    {"qpc cs_res", QPC_CS_RES, 2},
    {"qpc dbr_umem_valid", DEVX_BITS(0xd0, 28, 28), 1},
    {"qpc dbr_umem_id", QPC_DBR_UMEM, DEVX_ANY},
    {NULL, 0, 0},
};

static const struct devx_field devx_create_qp_tail_fields[] = {
    {"wq_umem_id", QP_WQ_UMEM - DEVX_BITS(0x100, 0, 0), DEVX_ANY},
    {"wq_umem_valid", QP_WQ_UMEM_VALID - DEVX_BITS(0x100, 0, 0), 1},
    {NULL, 0, 0},
};

static enum devx_status devx_qp_check(struct devx_call *call)
{
    enum devx_status status;

    status = devx_check(call, 0, DEVX_QP_CTX, devx_create_qp_fields);
    if (status == DEVX_OK) {
        status = devx_check(call, DEVX_QP_CTX, DEVX_QPC_SIZE,
                            devx_create_qpc_fields);
    }
    if ((status == DEVX_OK) && hca_lacks(HCA_LACK_FREE_CLOCK) &&
        (devx_get(call->in + DEVX_QP_CTX, QPC_TS_FORMAT) == 0)) {
        return devx_refuse(call, DEVX_BAD_PARAM, DEVX_QP_CTX + 0x08,
                           "qpc ts_format, with real time alone,", 0);
    }
    if (status == DEVX_OK) {
        status = devx_check(call, DEVX_QP_CTX + DEVX_QPC_SIZE,
                            DEVX_QP_IN_SIZE - DEVX_QP_CTX - DEVX_QPC_SIZE,
                            devx_create_qp_tail_fields);
    }
    return status;
}

static enum devx_status devx_qp_bad(struct devx_call *call,
                                    enum devx_status status, uint32_t bits,
                                    const char *what)
{
    return devx_refuse(call, status, DEVX_QP_CTX + (bits >> 16), what,
                       devx_get(call->in + DEVX_QP_CTX, bits));
}

static enum devx_status devx_qp_type(struct devx_call *call,
                                     struct hca_qp_spec *spec)
{
    static const uint8_t types[] = {
        [QPC_ST_RC]  = HCA_QP_RC,
        [QPC_ST_UC]  = HCA_QP_UC,
        [QPC_ST_UD]  = HCA_QP_UD,
        [QPC_ST_DCI] = HCA_QP_DCI,
    };
    unsigned st = devx_get(call->in + DEVX_QP_CTX, QPC_ST);

    spec->type = types[st];
    return ((spec->type != HCA_QP_RC) || (st == QPC_ST_RC)) ?
               DEVX_OK :
               devx_qp_bad(call, DEVX_BAD_PARAM, QPC_ST, "qpc st");
}

/* Finds the receive queue. A DC initiator has none, with any rq_type. */
static enum devx_status devx_qp_receives(struct devx_call *call,
                                         struct hca_qp_spec *spec)
{
    const uint8_t *ctx = call->in + DEVX_QP_CTX;
    struct uverbs_obj *srq;

    if (spec->type == HCA_QP_DCI) {
        return DEVX_OK;
    }
    switch (devx_get(ctx, QPC_RQ_TYPE)) {
    case RQ_TYPE_OWN:
        spec->rq.log_cnt    = devx_get(ctx, QPC_LOG_RQ_SIZE);
        spec->rq.log_stride = devx_get(ctx, QPC_LOG_STRIDE) + 4;
        return DEVX_OK;
    case RQ_TYPE_NONE:
        return DEVX_OK;
    case RQ_TYPE_SRQ:
        spec->srqn = devx_get(ctx, QPC_SRQN);
        srq        = devx_find_srq(call, spec->srqn);
        if (srq == NULL) {
            return devx_qp_bad(call, DEVX_BAD_RES, QPC_SRQN,
                               "qpc srqn_rmpn_xrqn");
        }
        devx_obj_use(call, srq);
        return DEVX_OK;
    default:
        return devx_qp_bad(call, DEVX_BAD_PARAM, QPC_RQ_TYPE, "qpc rq_type");
    }
}

static enum devx_status devx_qp_objects(struct devx_call *call,
                                        struct hca_qp_spec *spec)
{
    const uint8_t *ctx     = call->in + DEVX_QP_CTX;
    struct uverbs_pd *pd   = devx_find_pd(call, devx_get(ctx, QPC_PD));
    struct uverbs_obj *scq = devx_find_cq(call, devx_get(ctx, QPC_CQN_SND));
    struct uverbs_obj *rcq = devx_find_cq(call, devx_get(ctx, QPC_CQN_RCV));

    if (pd == NULL) {
        return devx_qp_bad(call, DEVX_BAD_RES, QPC_PD, "qpc pd");
    }
    if (scq == NULL) {
        return devx_qp_bad(call, DEVX_BAD_RES, QPC_CQN_SND, "qpc cqn_snd");
    }
    if (rcq == NULL) {
        return devx_qp_bad(call, DEVX_BAD_RES, QPC_CQN_RCV, "qpc cqn_rcv");
    }
    if (!uverbs_uar_valid(call->ctx, devx_get(ctx, QPC_UAR))) {
        return devx_qp_bad(call, DEVX_BAD_RES, QPC_UAR, "qpc uar_page");
    }
    devx_obj_use(call, &pd->obj);
    devx_obj_use(call, scq);
    devx_obj_use(call, rcq);
    spec->pdn  = pd->pdn;
    spec->scqn = devx_get(ctx, QPC_CQN_SND);
    spec->rcqn = devx_get(ctx, QPC_CQN_RCV);
    return devx_qp_receives(call, spec);
}

static enum devx_status devx_qp_memory(struct devx_call *call,
                                       struct hca_qp_spec *spec)
{
    const uint8_t *ctx = call->in + DEVX_QP_CTX;
    bool has_sq        = !devx_get(ctx, QPC_NO_SQ);
    unsigned log_rq    = spec->rq.log_cnt + spec->rq.log_stride;
    size_t rq          = (spec->rq.log_stride == 0) ? 0 : (size_t)1 << log_rq;
    size_t sq          = has_sq ? 64ul << devx_get(ctx, QPC_LOG_SQ_SIZE) : 0;
    struct devx_umem_use ring = {
        .id    = devx_get(call->in, QP_WQ_UMEM),
        .size  = rq + sq,
        .field = 0x108,
    };
    struct devx_umem_use dbr = {
        .id     = devx_get(ctx, QPC_DBR_UMEM),
        .offset = devx_get(ctx, QPC_DBR_ADDR),
        .field  = DEVX_QP_CTX + 0xe4,
    };
    enum devx_status status = devx_find_ring(call, &ring, &dbr);

    spec->rq.buf = (rq != 0) ? ring.off : 0;
    if (has_sq) {
        spec->sq.buf        = ring.off + rq;
        spec->sq.log_cnt    = devx_get(ctx, QPC_LOG_SQ_SIZE);
        spec->sq.log_stride = 6;
    }
    spec->dbrec = dbr.off;
    return status;
}

static int devx_qp_release(struct devx_obj *obj)
{
    uint32_t events;

    return hca_qp_destroy(obj->hw, &events);
}

void devx_qp_made(struct devx_call *call, struct hca_qp *hw)
{
    call->obj->hw      = hw;
    call->obj->number  = hw->obj.num;
    call->obj->release = devx_qp_release;
}

/* Checks the command and fills in @spec. Scatter to CQE of 32 or 64 bytes is
 * cs_req 0x11 or 0x22, and cs_res 1 or 2. */
static enum devx_status devx_qp_spec(struct devx_call *call,
                                     struct hca_qp_spec *spec)
{
    const uint8_t *ctx = call->in + DEVX_QP_CTX;
    enum devx_status status;

    *spec = (struct hca_qp_spec){
        .dev      = call->ctx->dev,
        .uar      = devx_get(ctx, QPC_UAR),
        .uidx     = devx_get(ctx, QPC_USER_INDEX),
        .cs_req   = (devx_get(ctx, QPC_CS_REQ) & 3) * 32,
        .cs_res   = devx_get(ctx, QPC_CS_RES) * 32,
        .has_rndv = devx_get(ctx, QPC_OFFLOAD) == QPC_OFFLOAD_RNDV,
        .attr     = {.log_msg_max = devx_get(ctx, QPC_LOG_MSG_MAX)},
    };
    status = devx_qp_check(call);
    if (status == DEVX_OK) {
        status = devx_qp_type(call, spec);
    }
    if (status == DEVX_OK) {
        status = devx_qp_objects(call, spec);
    }
    if (status == DEVX_OK) {
        uverbs_map_resolve(call->ctx);
        status = devx_qp_memory(call, spec);
    }
    return status;
}

static enum devx_status devx_create_qp(struct devx_call *call)
{
    struct hca_qp_spec spec;
    struct hca_qp *hw;
    enum devx_status status;

    status = devx_qp_spec(call, &spec);
    if (status != DEVX_OK) {
        return status;
    }
    switch (hca_qp_create(&spec, &hw)) {
    case 0:
        devx_qp_made(call, hw);
        return DEVX_OK;
    case -EPROTONOSUPPORT:
        return devx_qp_bad(call, DEVX_BAD_PARAM, QPC_SRQN,
                           "qpc srqn_rmpn_xrqn, with tag matching,");
    case -EOPNOTSUPP:
        return devx_qp_bad(call, DEVX_BAD_PARAM, QPC_OFFLOAD,
                           "qpc offload_type, with a send queue or without tag "
                           "matching,");
    default:
        return DEVX_NO_RES;
    }
}

/* --- QUERY_QP ------------------------------------------------------------- */

static const struct devx_field devx_query_qp_fields[] = {
    DEVX_HEADER_FIELDS,
    {"qpn", DEVX_QP_QPN, DEVX_ANY},
    {NULL, 0, 0},
};

static void devx_put_path(uint8_t *ctx, const struct hca_qp_attr *attr)
{
    const struct hca_path *path = &attr->path;
    const uint8_t *mac          = path->dmac;

    devx_set(ctx, ADS_PKEY_INDEX, attr->pkey_index);
    devx_set(ctx, ADS_GRH, path->grh);
    devx_set(ctx, ADS_MLID, path->src_path_bits);
    devx_set(ctx, ADS_RLID, path->dlid);
    devx_set(ctx, ADS_ACK_TIMEOUT, attr->timeout);
    devx_set(ctx, ADS_GID_INDEX, path->sgid_index);
    devx_set(ctx, ADS_STAT_RATE, path->stat_rate);
    devx_set(ctx, ADS_HOP_LIMIT, path->hop_limit);
    devx_set(ctx, ADS_TCLASS, path->tclass);
    devx_set(ctx, ADS_FLOW_LABEL, path->flow_label);
    memcpy(ctx + ADS_RGID, path->dgid, sizeof(path->dgid));
    devx_set(ctx, ADS_SL, path->sl);
    devx_set(ctx, ADS_PORT, 1);
    devx_set(ctx, ADS_RMAC_HIGH, mac[0] << 8 | mac[1]);
    devx_set(ctx, ADS_RMAC_LOW,
             (uint32_t)mac[2] << 24 | mac[3] << 16 | mac[4] << 8 | mac[5]);
}

static unsigned devx_qpc_state(enum ibv_qp_state state)
{
    return (state == IBV_QPS_SQD) ? QPC_STATE_SQD :
           (state == IBV_QPS_SQE) ? QPC_STATE_SQER :
                                    state;
}

static unsigned devx_qpc_st(const struct hca_qp *hw)
{
    return (hw->type == HCA_QP_DCI) ? QPC_ST_DCI :
           (hw->type == HCA_QP_UD)  ? QPC_ST_UD :
           (hw->type == HCA_QP_UC)  ? QPC_ST_UC :
                                      QPC_ST_RC;
}

static unsigned devx_log(unsigned value)
{
    return (value <= 1) ? 0 : 31 - __builtin_clz(value);
}

static void devx_put_qpc(uint8_t *ctx, const struct hca_qp *hw,
                         const struct hca_qp_info *info)
{
    const struct hca_qp_attr *attr = &info->attr;

    devx_set(ctx, QPC_STATE, devx_qpc_state(info->state));
    devx_set(ctx, QPC_ST, devx_qpc_st(hw));
    devx_set(ctx, QPC_PM_STATE, 3); /* migrated */
    devx_set(ctx, QPC_DP_0, attr->dp_ordering);
    devx_set(ctx, QPC_DP_1, attr->dp_ordering >> 1);
    devx_set(ctx, QPC_DP_FORCE, attr->dp_force);
    devx_set(ctx, QPC_PD, hw->pdn);
    devx_set(ctx, QPC_MTU, attr->mtu);
    devx_set(ctx, QPC_LOG_MSG_MAX, attr->log_msg_max);
    devx_set(ctx, QPC_LOG_RQ_SIZE, hw->rq.log_cnt);
    devx_set(ctx, QPC_NO_SQ, hw->sq.buf == 0);
    devx_set(ctx, QPC_LOG_SQ_SIZE, hw->sq.log_cnt);
    devx_set(ctx, QPC_UAR, hw->uar);
    devx_set(ctx, QPC_USER_INDEX, hw->uidx);
    devx_set(ctx, QPC_REMOTE_QPN, attr->dest_qpn);
    devx_set(ctx, QPC_LOG_SRA_MAX, devx_log(attr->max_rd_atomic));
    devx_set(ctx, QPC_RETRY_COUNT, attr->retry_cnt);
    devx_set(ctx, QPC_RNR_RETRY, attr->rnr_retry);
    devx_set(ctx, QPC_SEND_PSN, attr->sq_psn);
    devx_set(ctx, QPC_CQN_SND, hw->scqn);
    devx_set(ctx, QPC_LOG_RRA_MAX, devx_log(attr->max_dest_rd_atomic));
    devx_set(ctx, QPC_RRE, (attr->access & IBV_ACCESS_REMOTE_READ) != 0);
    devx_set(ctx, QPC_RWE, (attr->access & IBV_ACCESS_REMOTE_WRITE) != 0);
    devx_set(ctx, QPC_RAE, (attr->access & IBV_ACCESS_REMOTE_ATOMIC) != 0);
    devx_set(ctx, QPC_MIN_RNR, attr->min_rnr_timer);
    devx_set(ctx, QPC_RCV_PSN, attr->rq_psn);
    devx_set(ctx, QPC_CQN_RCV, hw->rcqn);
    devx_set(ctx, QPC_Q_KEY, attr->qkey);
    devx_set(ctx, QPC_RQ_TYPE,
             (hw->srqn != 0)   ? RQ_TYPE_SRQ :
             (hw->rq.buf != 0) ? RQ_TYPE_OWN :
                                 RQ_TYPE_NONE);
    devx_set(ctx, QPC_SRQN, hw->srqn);
    devx_set(ctx, QPC_HW_SQ, info->sq_ci);
    devx_put_path(ctx, attr);
}

static enum devx_status devx_query_qp(struct devx_call *call)
{
    struct hca_qp *hw = hca_obj_peek(HCA_KIND_QP, call->number);
    struct hca_qp_info info;
    enum devx_status status;

    status = devx_check(call, 0, call->cmd->in_size, devx_query_qp_fields);
    if (status != DEVX_OK) {
        return status;
    }
    hca_qp_query(hw, &info);
    devx_put_qpc(call->out + DEVX_QP_CTX, hw, &info);
    return DEVX_OK;
}

const struct devx_cmd devx_qp_cmds[] = {
    {.opcode   = DEVX_OP_CREATE_QP,
     .class    = DEVX_CREATE,
     .name     = "create_qp",
     .in_size  = DEVX_QP_IN_SIZE,
     .out_size = 16,
     .run      = devx_create_qp},
    {.opcode   = 0x50b,
     .class    = DEVX_QUERY,
     .name     = "query_qp",
     .in_size  = 16,
     .out_size = DEVX_QP_CTX + DEVX_QPC_SIZE,
     .creator  = DEVX_OP_CREATE_QP,
     .number   = DEVX_QP_QPN,
     .run      = devx_query_qp},
    {.name = NULL},
};
