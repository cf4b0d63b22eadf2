/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Context of a queue pair and its path in mailboxes (mlx5_ifc.h: qpc, ads).
 * devx_qp.c creates and queries, devx_qp_modify.c changes the state,
 * devx_qp_stream.c resets a stream.
 */
#ifndef DEVX_QP_H
#define DEVX_QP_H

#include "devx.h"
#include "softhca/exec/hca_qp_cmd.h"

/* Fields with the same place in create_qp_in, query_qp_out and the mailboxes
 * that modify */
#define DEVX_QP_EXT     DEVX_BITS(0x08, 31, 31) /* modify: qpc_ext follows */
#define DEVX_QP_QPN     DEVX_BITS(0x08, 23, 0)
#define DEVX_QP_OPTPAR  DEVX_WORD(0x10)
#define DEVX_QP_CTX     0x18u
#define DEVX_QPC_SIZE   0xe8u
#define DEVX_QP_IN_SIZE 0x110u

/* Fields of the context, from its beginning */
#define QPC_STATE       DEVX_BITS(0x00, 31, 28)
#define QPC_LAG_PORT    DEVX_BITS(0x00, 27, 24)
#define QPC_ST          DEVX_BITS(0x00, 23, 16)
#define QPC_PM_STATE    DEVX_BITS(0x00, 12, 11)
#define QPC_OFFLOAD     DEVX_BITS(0x00, 7, 4)
#define QPC_DP_0        DEVX_BITS(0x04, 25, 25) /* dp_ordering_0 */
#define QPC_DP_FORCE    DEVX_BITS(0x04, 24, 24) /* dp_ordering_force */
#define QPC_PD          DEVX_BITS(0x04, 23, 0)
#define QPC_MTU         DEVX_BITS(0x08, 31, 29)
#define QPC_LOG_MSG_MAX DEVX_BITS(0x08, 28, 24)
#define QPC_LOG_RQ_SIZE DEVX_BITS(0x08, 22, 19)
#define QPC_LOG_STRIDE  DEVX_BITS(0x08, 18, 16) /* in units of 16 bytes */
#define QPC_NO_SQ       DEVX_BITS(0x08, 15, 15)
#define QPC_LOG_SQ_SIZE DEVX_BITS(0x08, 14, 11)
#define QPC_UAR         DEVX_BITS(0x0c, 23, 0)
#define QPC_USER_INDEX  DEVX_BITS(0x10, 23, 0)
#define QPC_REMOTE_QPN  DEVX_BITS(0x14, 23, 0)
#define QPC_PATH        0x18u /* ads */
#define QPC_LOG_SRA_MAX DEVX_BITS(0x70, 23, 21)
#define QPC_RETRY_COUNT DEVX_BITS(0x70, 18, 16)
#define QPC_RNR_RETRY   DEVX_BITS(0x70, 15, 13)
#define QPC_SEND_PSN    DEVX_BITS(0x78, 23, 0)
#define QPC_CQN_SND     DEVX_BITS(0x7c, 23, 0)
#define QPC_LOG_RRA_MAX DEVX_BITS(0x90, 23, 21)
#define QPC_ATOMIC_MODE DEVX_BITS(0x90, 19, 16)
#define QPC_RRE         DEVX_BITS(0x90, 15, 15)
#define QPC_RWE         DEVX_BITS(0x90, 14, 14)
#define QPC_RAE         DEVX_BITS(0x90, 13, 13)
#define QPC_DP_1        DEVX_BITS(0x90, 3, 3) /* dp_ordering_1 */
#define QPC_MIN_RNR     DEVX_BITS(0x94, 28, 24)
#define QPC_RCV_PSN     DEVX_BITS(0x94, 23, 0)
#define QPC_CQN_RCV     DEVX_BITS(0x9c, 23, 0)
#define QPC_DBR_ADDR    DEVX_QWORD(0xa0)
#define QPC_Q_KEY       DEVX_WORD(0xa8)
#define QPC_RQ_TYPE     DEVX_BITS(0xac, 26, 24)
#define QPC_SRQN        DEVX_BITS(0xac, 23, 0)
#define QPC_HW_SQ       DEVX_BITS(0xb4, 31, 16)
#define QPC_CS_REQ      DEVX_BITS(0xc4, 15, 8)
#define QPC_CS_RES      DEVX_BITS(0xc4, 7, 0)
#define QPC_DBR_UMEM    DEVX_WORD(0xe4)

/* Fields of the path, from the beginning of the context */
#define QPC_ADS(_offset, _high, _low) \
    DEVX_BITS(QPC_PATH + (_offset), _high, _low)
#define ADS_PKEY_INDEX  QPC_ADS(0x00, 15, 0)
#define ADS_GRH         QPC_ADS(0x04, 23, 23)
#define ADS_MLID        QPC_ADS(0x04, 22, 16)
#define ADS_RLID        QPC_ADS(0x04, 15, 0)
#define ADS_ACK_TIMEOUT QPC_ADS(0x08, 31, 27)
#define ADS_GID_INDEX   QPC_ADS(0x08, 23, 16)
#define ADS_STAT_RATE   QPC_ADS(0x08, 11, 8)
#define ADS_HOP_LIMIT   QPC_ADS(0x08, 7, 0)
#define ADS_TCLASS      QPC_ADS(0x0c, 27, 20)
#define ADS_FLOW_LABEL  QPC_ADS(0x0c, 19, 0)
#define ADS_RGID        (QPC_PATH + 0x10)
#define ADS_DSCP        QPC_ADS(0x20, 21, 16)
#define ADS_ETH_PRIO    QPC_ADS(0x24, 30, 28)
#define ADS_SL          QPC_ADS(0x24, 27, 24)
#define ADS_PORT        QPC_ADS(0x24, 23, 16)
#define ADS_RMAC_HIGH   QPC_ADS(0x24, 15, 0)
#define ADS_RMAC_LOW    QPC_ADS(0x28, 31, 0)

enum devx_qpc_st {
    QPC_ST_RC  = 0,
    QPC_ST_UC  = 1,
    QPC_ST_UD  = 2,
    QPC_ST_DCI = 5
};

/* offload_type: rendezvous of tag matching */
enum { QPC_OFFLOAD_RNDV = 1 };

/* States of qpc; all others have the values of enum ibv_qp_state. */
enum { QPC_STATE_SQER = 4, QPC_STATE_ERR = 6, QPC_STATE_SQD = 7 };

extern const struct devx_cmd devx_qp_cmds[], devx_qp_modify_cmds[];

/* Returns the enum hca_dp_ordering, whose bits are the fields @high and @low of
 * @ctx. */
static inline unsigned devx_dp_ordering(const uint8_t *ctx, uint32_t high,
                                        uint32_t low)
{
    return (devx_get(ctx, high) << 1) | devx_get(ctx, low);
}

/* Makes call->obj the handle of a QP or DCT, and its owner. */
void devx_qp_made(struct devx_call *call, struct hca_qp *hw);

/* Runs RTS2RTS_QP with DEVX_QP_EXT set: resets a stream of a DC initiator.
 * @return DEVX_OK, DEVX_BAD_INP_LEN or DEVX_BAD_PARAM, logged. */
enum devx_status devx_qp_reset_stream(struct devx_call *call,
                                      struct hca_qp *hw);

#endif
