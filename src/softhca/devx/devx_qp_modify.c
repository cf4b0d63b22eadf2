/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Commands that change the state of a queue pair. Each is a step between two
 * states with the attributes that it needs (exec/hca_qp_cmd_step.c). On RoCE
 * the program gives the MAC of the peer, which verbs resolve themselves.
 * Optional attributes count if opt_param_mask selects them (the kernel's
 * linux/mlx5/qp.h, MLX5_QP_OPTPAR_*).
 */
#define _GNU_SOURCE
#include "softhca/fabric/hca_dev.h"
#include "devx.h"
#include "devx_qp.h"
#include "softhca/wqe/hca_wqe.h"
#include "softhca/uverbs/uverbs_mmap.h"

#include <string.h>

enum {
    OPTPAR_RRE         = 1 << 1,
    OPTPAR_RAE         = 1 << 2,
    OPTPAR_RWE         = 1 << 3,
    OPTPAR_PKEY_INDEX  = 1 << 4,
    OPTPAR_Q_KEY       = 1 << 5,
    OPTPAR_RNR_TIMEOUT = 1 << 6,
    OPTPAR_PM_STATE    = 1 << 10,
    OPTPAR_LAG_TX_AFF  = 1 << 15,

    OPTPAR_ACCESS = OPTPAR_RRE | OPTPAR_RAE | OPTPAR_RWE,
    OPTPAR_ALL    = OPTPAR_ACCESS | OPTPAR_PKEY_INDEX | OPTPAR_Q_KEY |
                 OPTPAR_RNR_TIMEOUT | OPTPAR_PM_STATE | OPTPAR_LAG_TX_AFF
};

struct devx_step {
    uint16_t opcode;
    bool any;         /* from every state */
    uint8_t from, to; /* enum ibv_qp_state */
    uint8_t fields;   /* enum devx_step_fields; 0: no context */
};

/* Bits: steps that may set a field of the context */
enum devx_step_fields {
    STEP_INIT = 1, /* RESET to INIT */
    STEP_RTR  = 2,
    STEP_RTS  = 4, /* RTR to RTS */
    STEP_STAY = 8  /* INIT to INIT, RTS or SQE to RTS */
};

static const struct devx_step devx_steps[] = {
    {.opcode = 0x502,
     .from   = IBV_QPS_RESET,
     .to     = IBV_QPS_INIT,
     .fields = STEP_INIT},
    {.opcode = 0x503,
     .from   = IBV_QPS_INIT,
     .to     = IBV_QPS_RTR,
     .fields = STEP_RTR},
    {.opcode = 0x504,
     .from   = IBV_QPS_RTR,
     .to     = IBV_QPS_RTS,
     .fields = STEP_RTS},
    {.opcode = 0x505,
     .from   = IBV_QPS_RTS,
     .to     = IBV_QPS_RTS,
     .fields = STEP_STAY},
    {.opcode = 0x506,
     .from   = IBV_QPS_SQE,
     .to     = IBV_QPS_RTS,
     .fields = STEP_STAY},
    {.opcode = 0x507, .any = true, .to = IBV_QPS_ERR},
    {.opcode = 0x50a, .any = true, .to = IBV_QPS_RESET},
    {.opcode = 0x50e,
     .from   = IBV_QPS_INIT,
     .to     = IBV_QPS_INIT,
     .fields = STEP_STAY},
};

static const struct devx_field devx_modify_qp_fields[] = {
    DEVX_HEADER_FIELDS,
    {"qpn", DEVX_QP_QPN, DEVX_ANY},
    {"opt_param_mask", DEVX_QP_OPTPAR, OPTPAR_ALL},
    {NULL, 0, 0},
};

/* 2ERR_QP and 2RST_QP have no context. */
static const struct devx_field devx_modify_short_fields[] = {
    DEVX_HEADER_FIELDS,
    {"qpn", DEVX_QP_QPN, DEVX_ANY},
    {NULL, 0, 0},
};

#define STEP_ALL (STEP_INIT | STEP_RTR | STEP_RTS | STEP_STAY)

static const struct {
    struct devx_field field;
    uint8_t steps;
} devx_modify_qpc_fields[] = {
    {{"qpc lag_tx_port_affinity", QPC_LAG_PORT, DEVX_LAG_PORTS},
     STEP_INIT | STEP_RTR},
    {{"qpc pm_state", QPC_PM_STATE, DEVX_ANY}, STEP_ALL},
    {{"qpc dp_ordering_0", QPC_DP_0, DEVX_IF_OOO}, STEP_RTR},
    {{"qpc dp_ordering_1", QPC_DP_1, DEVX_IF_OOO}, STEP_RTR},
    {{"qpc dp_ordering_force", QPC_DP_FORCE, DEVX_IF_OOO}, STEP_RTR},
    {{"qpc mtu", QPC_MTU, IBV_MTU_4096}, STEP_RTR},
    {{"qpc log_msg_max", QPC_LOG_MSG_MAX, HCA_LOG_MSG_MAX}, STEP_RTR},
    {{"qpc counter_set_id", DEVX_BITS(0x0c, 31, 24), DEVX_ANY}, STEP_ALL},
    {{"qpc remote_qpn", QPC_REMOTE_QPN, DEVX_ANY}, STEP_RTR},
    {{"qpc log_ack_req_freq", DEVX_BITS(0x70, 31, 28), DEVX_ANY}, STEP_RTS},
    {{"qpc log_sra_max", QPC_LOG_SRA_MAX, 4}, STEP_RTS},
    {{"qpc retry_count", QPC_RETRY_COUNT, DEVX_ANY}, STEP_RTS},
    {{"qpc rnr_retry", QPC_RNR_RETRY, DEVX_ANY}, STEP_RTS},
    {{"qpc next_send_psn", QPC_SEND_PSN, DEVX_ANY}, STEP_RTS},
    {{"qpc log_rra_max", QPC_LOG_RRA_MAX, 4}, STEP_RTR},
    {{"qpc atomic_mode", QPC_ATOMIC_MODE, DEVX_ANY},
     STEP_INIT | STEP_RTR | STEP_STAY},
    {{"qpc rre", QPC_RRE, 1}, STEP_ALL},
    {{"qpc rwe", QPC_RWE, 1}, STEP_ALL},
    {{"qpc rae", QPC_RAE, 1}, STEP_ALL},
    {{"qpc min_rnr_nak", QPC_MIN_RNR, DEVX_ANY},
     STEP_RTR | STEP_RTS | STEP_STAY},
    {{"qpc next_rcv_psn", QPC_RCV_PSN, DEVX_ANY}, STEP_RTR},
    {{"qpc q_key", QPC_Q_KEY, DEVX_ANY}, STEP_ALL},
    {{"ads pkey_index", ADS_PKEY_INDEX, HCA_PKEY_TABLE_LEN - 1},
     STEP_INIT | STEP_RTR | STEP_STAY},
    {{"ads grh", ADS_GRH, 1}, STEP_RTR},
    {{"ads mlid", ADS_MLID, DEVX_ANY}, STEP_RTR},
    {{"ads rlid", ADS_RLID, DEVX_ANY}, STEP_RTR},
    {{"ads ack_timeout", ADS_ACK_TIMEOUT, DEVX_ANY}, STEP_RTR | STEP_RTS},
    {{"ads src_addr_index", ADS_GID_INDEX, DEVX_ANY}, STEP_RTR},
    {{"ads log_rtm", QPC_ADS(0x08, 15, 12), DEVX_ANY}, STEP_RTS},
    {{"ads stat_rate", ADS_STAT_RATE, DEVX_ANY}, STEP_RTR},
    {{"ads hop_limit", ADS_HOP_LIMIT, DEVX_ANY}, STEP_RTR},
    {{"ads tclass", ADS_TCLASS, DEVX_ANY}, STEP_RTR},
    {{"ads flow_label", ADS_FLOW_LABEL, DEVX_ANY}, STEP_RTR},
    {{"ads rgid", DEVX_QWORD(ADS_RGID), DEVX_ANY}, STEP_RTR},
    {{"ads rgid", DEVX_QWORD(ADS_RGID + 8), DEVX_ANY}, STEP_RTR},
    {{"ads dscp", ADS_DSCP, DEVX_ANY}, STEP_RTR},
    {{"ads udp_sport", QPC_ADS(0x20, 15, 0), DEVX_ANY}, STEP_RTR | STEP_STAY},
    {{"ads eth_prio", ADS_ETH_PRIO, DEVX_ANY}, STEP_RTR},
    {{"ads sl", ADS_SL, DEVX_ANY}, STEP_RTR},
    {{"ads vhca_port_num", ADS_PORT, 1}, STEP_INIT | STEP_RTR | STEP_RTS},
    {{"ads rmac_47_32", ADS_RMAC_HIGH, DEVX_ANY}, STEP_RTR},
    {{"ads rmac_31_0", ADS_RMAC_LOW, DEVX_ANY}, STEP_RTR},
};

#define NUM_QPC_FIELDS \
    (sizeof(devx_modify_qpc_fields) / sizeof(devx_modify_qpc_fields[0]))

static const struct devx_step *devx_step(uint16_t opcode)
{
    const struct devx_step *step = devx_steps;

    while (step->opcode != opcode) {
        step++;
    }
    return step;
}

static enum devx_status devx_step_check(struct devx_call *call,
                                        const struct devx_step *step)
{
    struct devx_field fields[NUM_QPC_FIELDS + 1];
    enum devx_status status;
    unsigned num = 0;

    if (step->any) {
        return devx_check(call, 0, call->cmd->in_size,
                          devx_modify_short_fields);
    }
    for (unsigned i = 0; i < NUM_QPC_FIELDS; i++) {
        if (devx_modify_qpc_fields[i].steps & step->fields) {
            fields[num++] = devx_modify_qpc_fields[i].field;
        }
    }
    fields[num].name = NULL;
    status           = devx_check(call, 0, DEVX_QP_CTX, devx_modify_qp_fields);
    if (status == DEVX_OK) {
        status = devx_check(call, DEVX_QP_CTX, call->cmd->in_size - DEVX_QP_CTX,
                            fields);
    }
    return (status != DEVX_OK) ? status :
                                 devx_check_rest(call, call->cmd->in_size);
}

/* Reads a path. On InfiniBand it has a LID, and a GID if the GRH bit is set; on
 * RoCE it has a GID and the MAC that belongs to it. */
static void devx_qpc_path(const uint8_t *ctx, bool roce, struct hca_path *path)
{
    uint16_t high = devx_get(ctx, ADS_RMAC_HIGH);
    uint32_t low  = devx_get(ctx, ADS_RMAC_LOW);

    *path = (struct hca_path){
        .dlid          = devx_get(ctx, ADS_RLID),
        .sl            = devx_get(ctx, roce ? ADS_ETH_PRIO : ADS_SL),
        .reverse_sl    = devx_get(ctx, roce ? ADS_ETH_PRIO : ADS_SL),
        .grh           = roce || devx_get(ctx, ADS_GRH),
        .dmac          = {high >> 8, high, low >> 24, low >> 16, low >> 8, low},
        .sgid_index    = devx_get(ctx, ADS_GID_INDEX),
        .hop_limit     = devx_get(ctx, ADS_HOP_LIMIT),
        .tclass        = roce ? devx_get(ctx, ADS_DSCP) << 2 :
                                devx_get(ctx, ADS_TCLASS),
        .stat_rate     = devx_get(ctx, ADS_STAT_RATE),
        .src_path_bits = devx_get(ctx, ADS_MLID),
        .flow_label    = devx_get(ctx, ADS_FLOW_LABEL),
    };
    memcpy(path->dgid, ctx + ADS_RGID, sizeof(path->dgid));
}

static void devx_qpc_attr(const uint8_t *ctx, bool roce,
                          struct hca_qp_attr *attr)
{
    *attr = (struct hca_qp_attr){
        .dest_qpn           = devx_get(ctx, QPC_REMOTE_QPN),
        .qkey               = devx_get(ctx, QPC_Q_KEY),
        .sq_psn             = devx_get(ctx, QPC_SEND_PSN),
        .rq_psn             = devx_get(ctx, QPC_RCV_PSN),
        .pkey_index         = devx_get(ctx, ADS_PKEY_INDEX),
        .mtu                = devx_get(ctx, QPC_MTU),
        .timeout            = devx_get(ctx, ADS_ACK_TIMEOUT),
        .retry_cnt          = devx_get(ctx, QPC_RETRY_COUNT),
        .rnr_retry          = devx_get(ctx, QPC_RNR_RETRY),
        .min_rnr_timer      = devx_get(ctx, QPC_MIN_RNR),
        .max_rd_atomic      = 1 << devx_get(ctx, QPC_LOG_SRA_MAX),
        .max_dest_rd_atomic = 1 << devx_get(ctx, QPC_LOG_RRA_MAX),
        .log_msg_max        = devx_get(ctx, QPC_LOG_MSG_MAX),
        .no_atomics         = devx_get(ctx, QPC_ATOMIC_MODE) == 0,
        .dp_ordering        = devx_dp_ordering(ctx, QPC_DP_1, QPC_DP_0),
        .dp_force           = devx_get(ctx, QPC_DP_FORCE),
    };
    devx_qpc_path(ctx, roce, &attr->path);
}

/* Sets the rights whose OPTPAR_* bits are in @given as the context has them;
 * keeps the others of @access. @return the new rights. */
static unsigned devx_qpc_access(const uint8_t *ctx, uint32_t given,
                                unsigned access)
{
    static const struct {
        uint32_t optpar, bits;
        unsigned access;
    } rights[] = {
        {OPTPAR_RRE, QPC_RRE, IBV_ACCESS_REMOTE_READ},
        {OPTPAR_RWE, QPC_RWE, IBV_ACCESS_REMOTE_WRITE},
        {OPTPAR_RAE, QPC_RAE, IBV_ACCESS_REMOTE_ATOMIC},
    };

    for (unsigned i = 0; i < 3; i++) {
        if (given & rights[i].optpar) {
            access = devx_get(ctx, rights[i].bits) ? access | rights[i].access :
                                                     access & ~rights[i].access;
        }
    }
    return access;
}

/* Returns the attributes that opt_param_mask selects. Only RC and UC have
 * rights of remote access; for others these are ignored. */
static uint32_t devx_optional(enum hca_qp_type type, uint32_t optpar)
{
    return (((optpar & OPTPAR_ACCESS) && (type <= HCA_QP_UC)) ?
                IBV_QP_ACCESS_FLAGS :
                0) |
           ((optpar & OPTPAR_PKEY_INDEX) ? IBV_QP_PKEY_INDEX : 0) |
           ((optpar & OPTPAR_Q_KEY) ? IBV_QP_QKEY : 0) |
           ((optpar & OPTPAR_RNR_TIMEOUT) ? IBV_QP_MIN_RNR_TIMER : 0) |
           ((optpar & OPTPAR_RAE) ? HCA_QP_ATOMIC_MODE : 0);
}

/* Returns the attributes of a step. atomic_mode counts where rae may be set; 0
 * means no atomics. The path of a DC initiator has only its source. */
static uint32_t devx_step_mask(const struct devx_step *step,
                               enum hca_qp_type type, uint32_t optpar)
{
    uint32_t mask = IBV_QP_STATE | HCA_QP_FROM | devx_optional(type, optpar) |
                    hca_qp_step_needs(type, step->from, step->to);

    return mask | ((step->fields == STEP_INIT) ?
                       HCA_QP_ATOMIC_MODE :
                   (step->fields != STEP_RTR) ?
                       0 :
                       HCA_QP_LOG_MSG_MAX | HCA_QP_DP_ORDERING |
                           ((type == HCA_QP_DCI) ? IBV_QP_AV : 0));
}

static enum devx_status devx_step_change(struct devx_call *call,
                                         const struct devx_step *step,
                                         const struct hca_qp *hw,
                                         struct hca_qp_change *change)
{
    const uint8_t *ctx = call->in + DEVX_QP_CTX;
    uint32_t optpar    = devx_get(call->in, DEVX_QP_OPTPAR);

    if ((devx_get(ctx, QPC_LAG_PORT) != 0) && !devx_is_bond(call)) {
        return devx_refuse(call, DEVX_BAD_PARAM, DEVX_QP_CTX,
                           "qpc lag_tx_port_affinity",
                           devx_get(ctx, QPC_LAG_PORT));
    }
    change->mask = devx_step_mask(step, hw->type, optpar);
    change->cur  = step->from;
    change->port = devx_get(ctx, ADS_PORT);
    devx_qpc_attr(ctx, hca_dev_is_roce(call->ctx->dev), &change->attr);
    change->attr.access = devx_qpc_access(
        ctx, (step->fields == STEP_INIT) ? OPTPAR_ACCESS : optpar,
        hw->attr.access);
    return DEVX_OK;
}

/* Refuses the attribute @bad, or the step if @bad is none of the table's. */
static enum devx_status devx_step_refuse(struct devx_call *call,
                                         const struct hca_qp *hw, uint32_t bad)
{
    static const struct {
        uint32_t bit, field;
        const char *name;
    } fields[] = {
        {IBV_QP_PATH_MTU, QPC_MTU, "qpc mtu"},
        {IBV_QP_PKEY_INDEX, ADS_PKEY_INDEX, "ads pkey_index"},
        {IBV_QP_AV, ADS_GID_INDEX, "ads src_addr_index"},
        {IBV_QP_PORT, ADS_PORT, "ads vhca_port_num"},
        {IBV_QP_MAX_QP_RD_ATOMIC, QPC_LOG_SRA_MAX, "qpc log_sra_max"},
        {HCA_QP_DP_ORDERING, QPC_DP_1, "qpc dp_ordering"},
    };
    uint32_t optpar = call->cmd->in_size < DEVX_QP_CTX ?
                          0 :
                          devx_get(call->in, DEVX_QP_OPTPAR);

    for (unsigned i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
        if (bad == fields[i].bit) {
            return devx_refuse(
                call, DEVX_BAD_PARAM, DEVX_QP_CTX + (fields[i].field >> 16),
                fields[i].name,
                devx_get(call->in + DEVX_QP_CTX, fields[i].field));
        }
    }
    return devx_refuse(call, DEVX_BAD_QP_STATE, (optpar != 0) ? 0x10 : 0x08,
                       (optpar != 0) ? "opt_param_mask in this state" :
                                       "state of the qp",
                       (optpar != 0) ? optpar : atomic_load(&hw->state));
}

static enum devx_status devx_modify_qp(struct devx_call *call)
{
    const struct devx_step *step = devx_step(call->cmd->opcode);
    struct hca_qp *hw            = hca_obj_peek(HCA_KIND_QP, call->number);
    struct hca_qp_change change  = {.mask = IBV_QP_STATE, .next = step->to};
    enum devx_status status;
    uint32_t bad;

    if (call->cmd->has_list && devx_get(call->in, DEVX_QP_EXT)) {
        return devx_qp_reset_stream(call, hw);
    }
    status = devx_step_check(call, step);
    if ((status == DEVX_OK) && !step->any) {
        status = devx_step_change(call, step, hw, &change);
    }
    if (status != DEVX_OK) {
        return status;
    }
    uverbs_map_resolve(call->ctx);
    return (hca_qp_modify(hw, &change, &bad) == 0) ?
               DEVX_OK :
               devx_step_refuse(call, hw, bad);
}

/* clang-format off */
#define MODIFY_QP(_opcode, _name, _size, _has_list, _is_end) \
    {.opcode   = _opcode, \
     .class    = DEVX_MODIFY, \
     .name     = _name, \
     .in_size  = _size, \
     .out_size = 16, \
     .has_list = _has_list, \
     .is_end   = _is_end, \
     .creator  = DEVX_OP_CREATE_QP, \
     .number   = DEVX_QP_QPN, \
     .run      = devx_modify_qp}
/* clang-format on */

const struct devx_cmd devx_qp_modify_cmds[] = {
    MODIFY_QP(0x502, "rst2init_qp", DEVX_QP_IN_SIZE, false, false),
    MODIFY_QP(0x503, "init2rtr_qp", DEVX_QP_IN_SIZE, false, false),
    MODIFY_QP(0x504, "rtr2rts_qp", DEVX_QP_IN_SIZE, false, false),
    MODIFY_QP(0x505, "rts2rts_qp", DEVX_QP_IN_SIZE, true, false),
    MODIFY_QP(0x506, "sqerr2rts_qp", DEVX_QP_IN_SIZE, false, false),
    MODIFY_QP(0x507, "2err_qp", 16, false, true),
    MODIFY_QP(0x50a, "2rst_qp", 16, false, true),
    MODIFY_QP(0x50e, "init2init_qp", DEVX_QP_IN_SIZE, false, false),
    {.name = NULL},
};
