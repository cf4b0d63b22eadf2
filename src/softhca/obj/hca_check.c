/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The table of errors: see hca_check.h. Syndromes are those of struct
 * mlx5_err_cqe (mlx5dv.h); the InfiniBand specification, volume 1, 10.10.2 and
 * 9.9, assigns them to faults.
 */
#include "hca_check.h"
#include "softhca/base/hca_log.h"

#include <infiniband/mlx5dv.h>
#include <stdlib.h>
#include <string.h>

/* clang-format off */
#define OP(_what, _expected) \
    {_what, _expected, MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR, HCA_ACK_NONE, -1}
#define LEN(_what, _expected) \
    {_what, _expected, MLX5_CQE_SYNDROME_LOCAL_LENGTH_ERR, HCA_ACK_NONE, -1}
#define PROT(_what, _expected) \
    {_what, _expected, MLX5_CQE_SYNDROME_LOCAL_PROT_ERR, HCA_ACK_NONE, -1}
#define BIND(_what, _expected) \
    {_what, _expected, MLX5_CQE_SYNDROME_MW_BIND_ERR, HCA_ACK_NONE, -1}
#define WIRE(_what, _expected, _syndrome) \
    {_what, _expected, MLX5_CQE_SYNDROME_##_syndrome, HCA_ACK_NONE, -1}
/* responder: syndrome of the consumed receive, answer to the peer, event */
#define RESP(_what, _expected, _syndrome, _ack, _event) \
    {_what, _expected, MLX5_CQE_SYNDROME_##_syndrome, HCA_ACK_##_ack, \
     IBV_EVENT_##_event}
/* clang-format on */
#define ACCESS(_what, _expected) \
    RESP(_what, _expected, LOCAL_ACCESS_ERR, ACCESS, QP_ACCESS_ERR)
/* The responder's QP reports an access error; the peer is told that its request
 * was invalid. */
#define LIMIT(_what, _expected) \
    RESP(_what, _expected, LOCAL_QP_OP_ERR, INVAL, QP_ACCESS_ERR)
#define INVAL(_what, _expected) \
    RESP(_what, _expected, LOCAL_QP_OP_ERR, INVAL, QP_REQ_ERR)
#define RECV(_what, _expected) \
    RESP(_what, _expected, LOCAL_PROT_ERR, OP, QP_FATAL)

static const struct hca_check_desc hca_checks[HCA_NUM_CHECKS] = {
    [HCA_CHECK_SQ_OVERRUN] = OP("doorbell record: new basic blocks",
                                "at most those of the ring"),
    [HCA_CHECK_CTRL_IDX] = OP("ctrl wqe index", "that of the next basic block"),
    [HCA_CHECK_CTRL_QPN] = OP("ctrl qpn", "this qp"),
    [HCA_CHECK_CTRL_DS]  = OP("ctrl ds", "1 to 63"),
    [HCA_CHECK_CTRL_DS_RSVD]   = OP("ctrl byte of ds, upper bits", "0"),
    [HCA_CHECK_CTRL_BEYOND]    = OP("ctrl ds", "at most the posted blocks"),
    [HCA_CHECK_CTRL_FM]        = OP("ctrl fence mode", "0 to 4"),
    [HCA_CHECK_CTRL_FM_RSVD]   = OP("ctrl fm_ce_se, reserved bits", "0"),
    [HCA_CHECK_CTRL_SIGNATURE] = OP("ctrl signature",
                                    "that of the wqe (0 if off)"),
    [HCA_CHECK_CTRL_RSVD] = OP("ctrl stream id", "0, as the qp has no streams"),
    [HCA_CHECK_OPCODE]    = OP("ctrl opcode", "one of this device"),
    [HCA_CHECK_OPMOD]     = OP("ctrl opmod", "that of the opcode"),
    [HCA_CHECK_SERVICE]   = OP("ctrl opcode",
                               "one of the qp's transport service"),
    [HCA_CHECK_DS_SHORT]  = OP("ctrl ds", "all segments of the opcode"),
    [HCA_CHECK_XRC_SRQN]  = OP("xrc srqn, upper byte", "0"),
    [HCA_CHECK_AV_DQPN_RSVD] = OP("av dqp_dct, reserved bits", "0"),
    [HCA_CHECK_AV_RSVD]      = OP("av reserved field", "0"),
    [HCA_CHECK_AV_GRH]       = OP("av grh", "1, as roce needs a gid"),
    [HCA_CHECK_AV_GRH_RSVD]  = OP("av grh_gid_fl, bit 31", "0"),
    [HCA_CHECK_AV_SGID]      = OP("av sgid index", "an entry of the gid table"),
    [HCA_CHECK_RADDR_RSVD]   = OP("raddr reserved field", "0"),
    [HCA_CHECK_ATOMIC_RSVD]  = OP("masked fetch-add reserved field", "0"),
    [HCA_CHECK_INLINE_RSVD]  = OP("inline byte_count, bits 30..10", "0"),
    [HCA_CHECK_INLINE_LEN]   = LEN("inline byte_count",
                                   "at most the bytes of ds"),
    [HCA_CHECK_INLINE_OP]    = OP("inline segment", "none for this opcode"),
    [HCA_CHECK_ATOMIC_SGL]   = LEN("bytes of data segments",
                                   "the operand's size"),
    [HCA_CHECK_NO_DATA]      = OP("data segments", "none for this opcode"),
    [HCA_CHECK_MSG_LEN]      = LEN("message length",
                                   "at most 2^log_msg_max (30 or less)"),
    [HCA_CHECK_UD_LEN]       = LEN("message length", "at most the mtu"),
    [HCA_CHECK_READ_DS]      = OP("ctrl ds", "at most 32 for a read"),
    [HCA_CHECK_BF_COPY]      = OP("blueflame copy, first byte that differs",
                                  "none, compared with the ring"),
    [HCA_CHECK_BF_SHORT]     = LEN("blueflame copy cut short, wqe bytes",
                                   "all of them"),

    [HCA_CHECK_LKEY]        = PROT("lkey", "a key of the device"),
    [HCA_CHECK_LKEY_FREE]   = PROT("lkey", "a key that is not free"),
    [HCA_CHECK_LKEY_PD]     = PROT("lkey", "a key of the qp's pd"),
    [HCA_CHECK_LKEY_ACCESS] = PROT("lkey", "a key with this access right"),
    [HCA_CHECK_LKEY_BOUNDS] = PROT("data segment address",
                                   "a range within the key"),
    [HCA_CHECK_LKEY_QP]     = PROT("lkey", "a key of this qp"),
    [HCA_CHECK_LKEY_FAULT]  = PROT("data segment address",
                                   "memory that is still mapped"),
    [HCA_CHECK_LKEY_PIECES] = PROT("lkey, its translation",
                                   "at most 4 levels and 128 pieces"),

    [HCA_CHECK_UMR_FLAGS] = BIND("umr flags", "those of a bind or a layout"),
    [HCA_CHECK_UMR_MASK]  = BIND("umr mkey_mask", "that of a bind or a layout"),
    [HCA_CHECK_UMR_SIZE]  = BIND("umr klm_octowords",
                                 "those of ds, a multiple of 4 (4 to "
                                  "bind, 0 to unbind)"),
    [HCA_CHECK_UMR_RSVD]  = BIND("umr reserved field", "0"),
    [HCA_CHECK_UMR_KEY]   = BIND("umr key (ctrl imm)", "a key of the device"),
    [HCA_CHECK_UMR_TYPE]  = BIND("umr key (ctrl imm)",
                                 "a memory window, or a key with umr_en"),
    [HCA_CHECK_UMR_PD]    = BIND("umr key's pd", "that of the qp"),
    [HCA_CHECK_UMR_NOT_FREE] = BIND("umr key", "free (CHECK_FREE)"),
    [HCA_CHECK_UMR_QPN]      = BIND("umr mkey qpn", "this qp"),
    [HCA_CHECK_UMR_ACCESS]   = BIND("umr access", "rights of the region"),
    [HCA_CHECK_UMR_LEN] = BIND("umr klm byte_count", "the length of the key"),
    [HCA_CHECK_UMR_REGION] = BIND("umr klm mkey", "a memory region of this pd"),
    [HCA_CHECK_UMR_BIND] = BIND("umr klm address", "a range within the region"),
    [HCA_CHECK_INVAL_KEY] = PROT("key to invalidate (ctrl imm)",
                                 "a key of this qp that is in use, with "
                                 "the right to be freed"),

    [HCA_CHECK_RETRY_EXC]     = WIRE("retries", "an answer by then",
                                     TRANSPORT_RETRY_EXC_ERR),
    [HCA_CHECK_RNR_EXC]       = WIRE("rnr retries", "a receive wqe by then",
                                     RNR_RETRY_EXC_ERR),
    [HCA_CHECK_REMOTE_INVAL]  = WIRE("nak", "none", REMOTE_INVAL_REQ_ERR),
    [HCA_CHECK_REMOTE_ACCESS] = WIRE("nak", "none", REMOTE_ACCESS_ERR),
    [HCA_CHECK_REMOTE_OP]     = WIRE("nak", "none", REMOTE_OP_ERR),
    [HCA_CHECK_FLUSH]         = WIRE("qp state", "rts", WR_FLUSH_ERR),
    [HCA_CHECK_CQ] = RESP("completion queue", "one with room", LOCAL_QP_OP_ERR,
                          OP, QP_FATAL),

    [HCA_CHECK_NO_RECV] = RESP("receive wqe", "a posted one", LOCAL_QP_OP_ERR,
                               RNR, QP_REQ_ERR),
    [HCA_CHECK_RQ_OVERRUN]  = RECV("doorbell record: receives",
                                   "at most those of the ring"),
    [HCA_CHECK_SRQ]         = RECV("srq", "one that is not in error"),
    [HCA_CHECK_SRQ_OVERRUN] = RECV("srq doorbell record: receives",
                                   "at most those of the srq"),
    [HCA_CHECK_SRQ_NEXT]    = RECV("srq next_wqe_index", "an index of the srq"),
    [HCA_CHECK_RECV_LEN]    = RESP("message length",
                                   "at most that of the receive buffer",
                                   LOCAL_LENGTH_ERR, INVAL, QP_REQ_ERR),
    [HCA_CHECK_QP_WRITE]    = INVAL("rdma write", "a qp that allows it"),
    [HCA_CHECK_QP_READ]     = INVAL("rdma read", "a qp that allows it"),
    [HCA_CHECK_QP_ATOMIC]   = INVAL("atomic", "a qp that allows it"),
    [HCA_CHECK_DC_KEY]      = ACCESS("dc access key", "that of the dct"),
    [HCA_CHECK_XRC_DOMAIN] = INVAL("xrc srqn", "an xrc srq of the qp's domain"),
    [HCA_CHECK_ATOMIC_ALIGN] = LIMIT("atomic address",
                                     "a multiple of the operand's size"),

    [HCA_CHECK_RKEY_INVAL] = RESP("key to invalidate",
                                  "a bound window of the qp", LOCAL_ACCESS_ERR,
                                  OP, QP_ACCESS_ERR),
    [HCA_CHECK_PATH_MTU]   = INVAL("path mtu of the sender", "that of the qp"),
    [HCA_CHECK_RD_ATOMIC]  = LIMIT("reads and atomics under way",
                                   "at most max_dest_rd_atomic"),

    [HCA_CHECK_STRIDES] = RESP("receive buffer, bytes",
                               "the bytes of its strides", LOCAL_LENGTH_ERR,
                               INVAL, QP_REQ_ERR),

    [HCA_CHECK_RKEY]        = ACCESS("rkey", "a key of the device"),
    [HCA_CHECK_RKEY_FREE]   = ACCESS("rkey", "a key that is not free"),
    [HCA_CHECK_RKEY_PD]     = ACCESS("rkey", "a key of the qp's pd"),
    [HCA_CHECK_RKEY_ACCESS] = ACCESS("rkey", "a key with this access right"),
    [HCA_CHECK_RKEY_BOUNDS] = ACCESS("remote address",
                                     "a range within the key"),
    [HCA_CHECK_RKEY_QP]     = ACCESS("rkey", "a window of this qp"),
    [HCA_CHECK_RKEY_FAULT]  = RESP("remote address",
                                   "memory that is still mapped",
                                   LOCAL_ACCESS_ERR, OP, QP_ACCESS_ERR),
    [HCA_CHECK_RKEY_PIECES] = RESP("rkey, its translation",
                                   "at most 4 levels and 128 pieces",
                                   LOCAL_ACCESS_ERR, OP, QP_ACCESS_ERR),

    [HCA_CHECK_RECV_LKEY]      = RECV("receive lkey", "a key of the device"),
    [HCA_CHECK_RECV_LKEY_FREE] = RECV("receive lkey", "a key that is not free"),
    [HCA_CHECK_RECV_LKEY_PD] = RECV("receive lkey", "a key of the queue's pd"),
    [HCA_CHECK_RECV_LKEY_ACCESS] = RECV("receive lkey",
                                        "a key with local write"),
    [HCA_CHECK_RECV_LKEY_BOUNDS] = RECV("receive address",
                                        "a range within the key"),
    [HCA_CHECK_RECV_LKEY_QP]     = RECV("receive lkey", "a key of this qp"),
    [HCA_CHECK_RECV_LKEY_FAULT]  = RECV("receive address",
                                        "memory that is still mapped"),
    [HCA_CHECK_RECV_LKEY_PIECES] = RECV("receive lkey, its translation",
                                        "at most 4 levels and 128 pieces"),

    [HCA_CHECK_TM_SRQ]    = OP("srq of the qp", "one with tag matching"),
    [HCA_CHECK_TM_OPCODE] = OP("tm opcode",
                               "0x00 (nop), 0x10 (append), 0x20 (remove)"),
    [HCA_CHECK_TM_FLAGS]  = OP("tm flags", "sw_cnt, cqe_req"),
    [HCA_CHECK_TM_RSVD]   = OP("tm reserved field", "0"),
    [HCA_CHECK_TM_SIZE]  = OP("ctrl ds", "4 to append, 3 for other operations"),
    [HCA_CHECK_TM_INDEX] = OP("tm index", "one of the list"),
    [HCA_CHECK_TM_FULL]  = OP("tm index", "an entry that is free"),
    [HCA_CHECK_TMH_OPCODE] = INVAL("tmh opcode", "that of a message of tag "
                                                 "matching"),
    [HCA_CHECK_TMH_LEN]    = INVAL("message length", "at least its tmh"),
    [HCA_CHECK_TM_LEN]     = INVAL("data of the message",
                                   "at most the tagged buffer"),
    [HCA_CHECK_TMH_RNDV]   = INVAL("rendezvous message length",
                                   "32 (over dc, 48) to 64"),

    [HCA_CHECK_UMR_ROOM]     = BIND("umr klm_octowords",
                                    "at most the room of the key"),
    [HCA_CHECK_UMR_DATA]     = BIND("umr data segment byte_count",
                                    "16 for each of klm_octowords"),
    [HCA_CHECK_UMR_MKC_RSVD] = BIND("umr mkey context, reserved field", "0"),
    [HCA_CHECK_UMR_REPEAT] = BIND("umr repeat block repeat_count", "1 or more"),
    [HCA_CHECK_UMR_NUM_ENT]    = BIND("umr repeat block num_ent",
                                      "1 or more, in klm_octowords"),
    [HCA_CHECK_UMR_BLOCK_RSVD] = BIND("umr repeat block reserved field", "0"),
    [HCA_CHECK_UMR_ROW]        = BIND("umr repeat block byte_count",
                                      "the sum of its entries"),
    [HCA_CHECK_UMR_BLOCK]  = BIND("umr repeat entry byte_count", "1 or more"),
    [HCA_CHECK_UMR_STRIDE] = BIND("umr repeat entry stride",
                                  "at least its byte_count"),

    [HCA_CHECK_UMR_NO_REPEAT] = BIND("umr repeat block op",
                                     "none, as the device lacks them"),
    [HCA_CHECK_UMR_FENCE]     = OP("ctrl fence mode behind a umr",
                                   "3, strong ordering (umr_fence is 0)"),
    [HCA_CHECK_TM_KEY]        = PROT("tm data segment lkey", "a direct key"),
    [HCA_CHECK_TMH_DC_KEY]    = INVAL("ravh dc_access_key", "that of the xrq"),
    [HCA_CHECK_LKEY_ODP]      = PROT("operation on memory on demand",
                                     "one of the service's odp_caps"),
    [HCA_CHECK_RKEY_ODP]      = ACCESS("operation on memory on demand",
                                       "one of the service's odp_caps"),
    [HCA_CHECK_RECV_LKEY_ODP] = RECV("receive into memory on demand",
                                     "one of the service's odp_caps"),
    [HCA_CHECK_CQE_KEY]       = RECV("receive lkey of data in the cqe",
                                     "a direct key"),
};

bool hca_strict;

void hca_strict_init(void)
{
    const char *value = getenv("SOFTHCA_STRICT");

    if ((value == NULL) || !strcmp(value, "0")) {
        return;
    }
    if (strcmp(value, "1")) {
        hca_error("SOFTHCA_STRICT=%s: use 0 or 1", value);
        return;
    }
    hca_strict = true;
}

const struct hca_check_desc *hca_check_desc(enum hca_check check)
{
    return &hca_checks[(check < HCA_NUM_CHECKS) ? check : HCA_OK];
}

enum hca_check hca_check_wqe(enum hca_check check, uint32_t qpn, uint16_t idx,
                             uint64_t got)
{
    const struct hca_check_desc *desc = hca_check_desc(check);

    hca_warn("qp 0x%x: wqe %u: %s is 0x%llx, expected %s", qpn, idx, desc->what,
             (unsigned long long)got, desc->expected);
    return check;
}

enum hca_check hca_check_recv(enum hca_check check, uint32_t qpn, uint64_t got)
{
    const struct hca_check_desc *desc = hca_check_desc(check);

    hca_warn("qp 0x%x: responder: %s is 0x%llx, expected %s", qpn, desc->what,
             (unsigned long long)got, desc->expected);
    return check;
}
