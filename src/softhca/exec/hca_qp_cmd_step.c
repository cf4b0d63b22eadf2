/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Steps between the states of a QP, with the attributes that each needs and
 * allows: the rows of the kernel's qp_state_table (core/verbs.c) that mlx5
 * supports (hw/mlx5/qp.c, optab: SQD is not reachable), and its own rules for a
 * DCI (modify_dci_qp_is_ok()). The device's own attributes are allowed in all
 * steps.
 */
#include "hca_qp_cmd.h"
#include "softhca/fabric/hca_caps.h"

#include <stddef.h>

#define HCA_STEP_RC_RTR \
    (IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | \
     IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)
#define HCA_STEP_UC_RTR \
    (IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN)
#define HCA_STEP_RC_RTS \
    (IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | \
     IBV_QP_MAX_QP_RD_ATOMIC)
#define HCA_STEP_CONN_INIT \
    (IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS)
#define HCA_STEP_CONN_RTR_OPT \
    (IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX)
#define HCA_STEP_CONN_RTS_OPT \
    (IBV_QP_CUR_STATE | IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | \
     IBV_QP_PATH_MIG_STATE)

struct hca_qp_step {
    uint8_t type, cur, next;
    uint32_t required, optional; /* besides IBV_QP_STATE */
};

static const struct hca_qp_step hca_qp_steps[] = {
    {HCA_QP_RC, IBV_QPS_RESET, IBV_QPS_INIT, HCA_STEP_CONN_INIT, 0},
    {HCA_QP_RC, IBV_QPS_INIT, IBV_QPS_INIT, 0, HCA_STEP_CONN_INIT},
    {HCA_QP_RC, IBV_QPS_INIT, IBV_QPS_RTR, HCA_STEP_RC_RTR,
     HCA_STEP_CONN_RTR_OPT},
    {HCA_QP_RC, IBV_QPS_RTR, IBV_QPS_RTS, HCA_STEP_RC_RTS,
     HCA_STEP_CONN_RTS_OPT | IBV_QP_MIN_RNR_TIMER},
    {HCA_QP_RC, IBV_QPS_RTS, IBV_QPS_RTS, 0,
     HCA_STEP_CONN_RTS_OPT | IBV_QP_MIN_RNR_TIMER},

    {HCA_QP_UC, IBV_QPS_RESET, IBV_QPS_INIT, HCA_STEP_CONN_INIT, 0},
    {HCA_QP_UC, IBV_QPS_INIT, IBV_QPS_INIT, 0, HCA_STEP_CONN_INIT},
    {HCA_QP_UC, IBV_QPS_INIT, IBV_QPS_RTR, HCA_STEP_UC_RTR,
     HCA_STEP_CONN_RTR_OPT},
    {HCA_QP_UC, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_SQ_PSN, HCA_STEP_CONN_RTS_OPT},
    {HCA_QP_UC, IBV_QPS_RTS, IBV_QPS_RTS, 0, HCA_STEP_CONN_RTS_OPT},
    {HCA_QP_UC, IBV_QPS_SQE, IBV_QPS_RTS, 0,
     IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS},

    {HCA_QP_UD, IBV_QPS_RESET, IBV_QPS_INIT,
     IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY, 0},
    {HCA_QP_UD, IBV_QPS_INIT, IBV_QPS_INIT, 0,
     IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY},
    {HCA_QP_UD, IBV_QPS_INIT, IBV_QPS_RTR, 0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY},
    {HCA_QP_UD, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_SQ_PSN,
     IBV_QP_CUR_STATE | IBV_QP_QKEY},
    {HCA_QP_UD, IBV_QPS_RTS, IBV_QPS_RTS, 0, IBV_QP_CUR_STATE | IBV_QP_QKEY},
    {HCA_QP_UD, IBV_QPS_SQE, IBV_QPS_RTS, 0, IBV_QP_CUR_STATE | IBV_QP_QKEY},

    {HCA_QP_XRC_SEND, IBV_QPS_RESET, IBV_QPS_INIT, HCA_STEP_CONN_INIT, 0},
    {HCA_QP_XRC_SEND, IBV_QPS_INIT, IBV_QPS_INIT, 0, HCA_STEP_CONN_INIT},
    {HCA_QP_XRC_SEND, IBV_QPS_INIT, IBV_QPS_RTR, HCA_STEP_UC_RTR,
     HCA_STEP_CONN_RTR_OPT},
    {HCA_QP_XRC_SEND, IBV_QPS_RTR, IBV_QPS_RTS, HCA_STEP_RC_RTS,
     HCA_STEP_CONN_RTS_OPT},
    {HCA_QP_XRC_SEND, IBV_QPS_RTS, IBV_QPS_RTS, 0, HCA_STEP_CONN_RTS_OPT},

    {HCA_QP_XRC_RECV, IBV_QPS_RESET, IBV_QPS_INIT, HCA_STEP_CONN_INIT, 0},
    {HCA_QP_XRC_RECV, IBV_QPS_INIT, IBV_QPS_INIT, 0, HCA_STEP_CONN_INIT},
    {HCA_QP_XRC_RECV, IBV_QPS_INIT, IBV_QPS_RTR, HCA_STEP_RC_RTR,
     HCA_STEP_CONN_RTR_OPT},
    {HCA_QP_XRC_RECV, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_TIMEOUT | IBV_QP_SQ_PSN,
     HCA_STEP_CONN_RTS_OPT | IBV_QP_MIN_RNR_TIMER},
    {HCA_QP_XRC_RECV, IBV_QPS_RTS, IBV_QPS_RTS, 0,
     HCA_STEP_CONN_RTS_OPT | IBV_QP_MIN_RNR_TIMER},

    {HCA_QP_DCI, IBV_QPS_RESET, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT,
     0},
    {HCA_QP_DCI, IBV_QPS_INIT, IBV_QPS_INIT, 0,
     IBV_QP_PKEY_INDEX | IBV_QP_PORT},
    {HCA_QP_DCI, IBV_QPS_INIT, IBV_QPS_RTR, IBV_QP_PATH_MTU,
     IBV_QP_PKEY_INDEX | IBV_QP_AV},
    {HCA_QP_DCI, IBV_QPS_RTR, IBV_QPS_RTS, HCA_STEP_RC_RTS,
     IBV_QP_MIN_RNR_TIMER},
    {HCA_QP_DCI, IBV_QPS_RTS, IBV_QPS_RTS, 0, IBV_QP_MIN_RNR_TIMER},
};

static const struct hca_qp_step *hca_qp_step(enum hca_qp_type type,
                                             enum ibv_qp_state cur,
                                             enum ibv_qp_state next)
{
    const struct hca_qp_step *row;

    for (unsigned i = 0; i < sizeof(hca_qp_steps) / sizeof(hca_qp_steps[0]);
         i++) {
        row = &hca_qp_steps[i];
        if ((row->type == type) && (row->cur == cur) && (row->next == next)) {
            return row;
        }
    }
    return NULL;
}

uint32_t hca_qp_step_needs(enum hca_qp_type type, enum ibv_qp_state cur,
                           enum ibv_qp_state next)
{
    const struct hca_qp_step *row = hca_qp_step(type, cur, next);

    return (row != NULL) ? row->required : 0;
}

bool hca_qp_step_ok(enum hca_qp_type type, enum ibv_qp_state cur,
                    enum ibv_qp_state next, uint32_t mask)
{
    const struct hca_qp_step *row = hca_qp_step(type, cur, next);

    mask &= ~(uint32_t)(IBV_QP_STATE | HCA_QP_OWN_ATTRS);
    if ((next == IBV_QPS_RESET) && (cur == IBV_QPS_RTS) &&
        hca_lacks(HCA_LACK_RTS2RST)) {
        return false;
    }
    if ((next == IBV_QPS_RESET) ||
        ((next == IBV_QPS_ERR) && (cur != IBV_QPS_RESET))) {
        return mask == 0;
    }
    return (row != NULL) && ((mask & row->required) == row->required) &&
           !(mask & ~(row->required | row->optional));
}
