/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * All errors of execution, one row of a table each. A row names the field, the
 * value expected of it, and the report: the syndrome of the completion in error
 * on this side, the answer to the peer, the async event. The number of the row
 * is the vendor syndrome of the completion (ibv_wc.vendor_err), by which a test
 * distinguishes them.
 */
#ifndef HCA_CHECK_H
#define HCA_CHECK_H

#include <stdbool.h>
#include <stdint.h>

enum hca_check {
    HCA_OK,

    /* fields of the WQE in the ring */
    HCA_CHECK_SQ_OVERRUN = 0x01,
    HCA_CHECK_CTRL_IDX,
    HCA_CHECK_CTRL_QPN,
    HCA_CHECK_CTRL_DS,
    HCA_CHECK_CTRL_DS_RSVD,
    HCA_CHECK_CTRL_BEYOND,
    HCA_CHECK_CTRL_FM,
    HCA_CHECK_CTRL_FM_RSVD,
    HCA_CHECK_CTRL_SIGNATURE,
    HCA_CHECK_CTRL_RSVD,
    HCA_CHECK_OPCODE,
    HCA_CHECK_OPMOD,
    HCA_CHECK_SERVICE,
    HCA_CHECK_DS_SHORT,
    HCA_CHECK_XRC_SRQN,
    HCA_CHECK_AV_DQPN_RSVD,
    HCA_CHECK_AV_RSVD,
    HCA_CHECK_AV_GRH,
    HCA_CHECK_AV_GRH_RSVD,
    HCA_CHECK_AV_SGID,
    HCA_CHECK_RADDR_RSVD,
    HCA_CHECK_ATOMIC_RSVD,
    HCA_CHECK_INLINE_RSVD,
    HCA_CHECK_INLINE_LEN,
    HCA_CHECK_INLINE_OP,
    HCA_CHECK_ATOMIC_SGL,
    HCA_CHECK_NO_DATA,
    HCA_CHECK_MSG_LEN,
    HCA_CHECK_UD_LEN,
    HCA_CHECK_READ_DS,
    HCA_CHECK_BF_COPY,
    HCA_CHECK_BF_SHORT,

    /* local mkeys; the order is that of enum hca_key_fault */
    HCA_CHECK_LKEY = 0x28,
    HCA_CHECK_LKEY_FREE,
    HCA_CHECK_LKEY_PD,
    HCA_CHECK_LKEY_ACCESS,
    HCA_CHECK_LKEY_BOUNDS,
    HCA_CHECK_LKEY_QP,
    HCA_CHECK_LKEY_FAULT,
    HCA_CHECK_LKEY_PIECES,

    /* UMR: memory windows, layouts of mkeys; invalidation */
    HCA_CHECK_UMR_FLAGS = 0x30,
    HCA_CHECK_UMR_MASK,
    HCA_CHECK_UMR_SIZE,
    HCA_CHECK_UMR_RSVD,
    HCA_CHECK_UMR_KEY,
    HCA_CHECK_UMR_TYPE,
    HCA_CHECK_UMR_PD,
    HCA_CHECK_UMR_NOT_FREE,
    HCA_CHECK_UMR_QPN,
    HCA_CHECK_UMR_ACCESS,
    HCA_CHECK_UMR_LEN,
    HCA_CHECK_UMR_REGION,
    HCA_CHECK_UMR_BIND,
    HCA_CHECK_INVAL_KEY,

    /* the requester: answers of the peer, flush, completion */
    HCA_CHECK_RETRY_EXC = 0x40,
    HCA_CHECK_RNR_EXC,
    HCA_CHECK_REMOTE_INVAL,
    HCA_CHECK_REMOTE_ACCESS,
    HCA_CHECK_REMOTE_OP,
    HCA_CHECK_FLUSH,
    HCA_CHECK_CQ,

    /* refusals of the responder */
    HCA_CHECK_NO_RECV = 0x50,
    HCA_CHECK_RQ_OVERRUN,
    HCA_CHECK_SRQ,
    HCA_CHECK_SRQ_OVERRUN,
    HCA_CHECK_SRQ_NEXT,
    HCA_CHECK_RECV_LEN,
    HCA_CHECK_QP_WRITE,
    HCA_CHECK_QP_READ,
    HCA_CHECK_QP_ATOMIC,
    HCA_CHECK_DC_KEY,
    HCA_CHECK_XRC_DOMAIN,
    HCA_CHECK_ATOMIC_ALIGN,
    HCA_CHECK_RKEY_INVAL,
    HCA_CHECK_PATH_MTU,
    HCA_CHECK_RD_ATOMIC,
    HCA_CHECK_STRIDES,

    /* remote mkeys; the order is that of enum hca_key_fault */
    HCA_CHECK_RKEY = 0x60,
    HCA_CHECK_RKEY_FREE,
    HCA_CHECK_RKEY_PD,
    HCA_CHECK_RKEY_ACCESS,
    HCA_CHECK_RKEY_BOUNDS,
    HCA_CHECK_RKEY_QP,
    HCA_CHECK_RKEY_FAULT,
    HCA_CHECK_RKEY_PIECES,

    /* mkeys of a receive buffer; the order is that of enum hca_key_fault */
    HCA_CHECK_RECV_LKEY = 0x68,
    HCA_CHECK_RECV_LKEY_FREE,
    HCA_CHECK_RECV_LKEY_PD,
    HCA_CHECK_RECV_LKEY_ACCESS,
    HCA_CHECK_RECV_LKEY_BOUNDS,
    HCA_CHECK_RECV_LKEY_QP,
    HCA_CHECK_RECV_LKEY_FAULT,
    HCA_CHECK_RECV_LKEY_PIECES,

    /* tag matching: operations on the list, headers of messages */
    HCA_CHECK_TM_SRQ = 0x70,
    HCA_CHECK_TM_OPCODE,
    HCA_CHECK_TM_FLAGS,
    HCA_CHECK_TM_RSVD,
    HCA_CHECK_TM_SIZE,
    HCA_CHECK_TM_INDEX,
    HCA_CHECK_TM_FULL,
    HCA_CHECK_TMH_OPCODE,
    HCA_CHECK_TMH_LEN,
    HCA_CHECK_TM_LEN,
    HCA_CHECK_TMH_RNDV,

    /* layouts by UMR */
    HCA_CHECK_UMR_ROOM = 0x80,
    HCA_CHECK_UMR_DATA,
    HCA_CHECK_UMR_MKC_RSVD,
    HCA_CHECK_UMR_REPEAT,
    HCA_CHECK_UMR_NUM_ENT,
    HCA_CHECK_UMR_BLOCK_RSVD,
    HCA_CHECK_UMR_ROW,
    HCA_CHECK_UMR_BLOCK,
    HCA_CHECK_UMR_STRIDE,

    /* requests that this device does not support */
    HCA_CHECK_CQE_KEY,
    HCA_CHECK_UMR_NO_REPEAT,
    HCA_CHECK_UMR_FENCE,
    HCA_CHECK_TM_KEY,
    HCA_CHECK_TMH_DC_KEY,
    HCA_CHECK_LKEY_ODP,
    HCA_CHECK_RKEY_ODP,
    HCA_CHECK_RECV_LKEY_ODP,
    HCA_NUM_CHECKS
};

/* Answer of the responder to one message. */
enum hca_ack_code {
    HCA_ACK,
    HCA_ACK_RNR,    /* no receive WQE */
    HCA_ACK_SEQ,    /* PSN out of sequence */
    HCA_ACK_INVAL,  /* invalid request */
    HCA_ACK_ACCESS, /* remote access error */
    HCA_ACK_OP,     /* remote operational error */
    HCA_ACK_NONE,   /* no answer is sent */
    HCA_ACK_LATE    /* a fault holds the message up: send it again later */
};

struct hca_check_desc {
    const char *what;     /* the field */
    const char *expected; /* correct values */
    uint8_t syndrome;     /* MLX5_CQE_SYNDROME_*, of the completion here */
    uint8_t ack;          /* enum hca_ack_code, to the peer */
    int event;            /* enum ibv_event_type, -1: none */
};

/* Returns the row of a check; that of HCA_OK, all zero, if it has none. */
const struct hca_check_desc *hca_check_desc(enum hca_check check);

/* Logs an error of the WQE at basic block @idx of a send queue, whose field has
 * the value @got. @return check. */
__attribute__((cold)) enum hca_check
hca_check_wqe(enum hca_check check, uint32_t qpn, uint16_t idx, uint64_t got);

/* Logs an error of a message or a receive queue of the QP, whose field has the
 * value @got. @return check. */
enum hca_check hca_check_recv(enum hca_check check, uint32_t qpn, uint64_t got);

/* SOFTHCA_STRICT=1: fields that hardware ignores must be zero, too. Off by
 * default: UCX's own mlx5 transports leave old contents of the ring there. */
extern bool hca_strict __attribute__((visibility("hidden")));

/* Reads SOFTHCA_STRICT; called once, by hca_nic_init(). */
void hca_strict_init(void);

#endif
