/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * One message with the contents of its headers, and one answer: requester and
 * responder share nothing else.
 */
#ifndef HCA_MSG_H
#define HCA_MSG_H

#include "softhca/obj/hca_check.h"
#include "softhca/obj/hca_sgl.h"
#include "softhca/wqe/hca_wqe.h"

#define HCA_PSN_MASK 0xffffffu

/* Request of a message (BTH opcode, less the transport) */
enum hca_msg_op { HCA_MSG_SEND, HCA_MSG_WRITE, HCA_MSG_READ, HCA_MSG_ATOMIC };

/* Returns the capability for memory on demand (hca_odp_caps()). */
static inline uint32_t hca_msg_odp(uint8_t op)
{
    static const uint32_t caps[] = {
        [HCA_MSG_SEND]   = IBV_ODP_SUPPORT_SEND,
        [HCA_MSG_WRITE]  = IBV_ODP_SUPPORT_WRITE,
        [HCA_MSG_READ]   = IBV_ODP_SUPPORT_READ,
        [HCA_MSG_ATOMIC] = IBV_ODP_SUPPORT_ATOMIC,
    };

    return caps[op];
}

struct hca_msg {
    uint8_t op; /* enum hca_msg_op */
    bool has_imm;
    bool has_inval;
    bool solicited;
    bool is_fin;    /* FIN of a rendezvous */
    bool is_spared; /* no rule of faults selects it */
    bool is_paged;  /* a page fault at the responder has ended */
    uint8_t mtu;    /* enum ibv_mtu, of the path */
    bool executed;  /* before; the answer was lost:
                    * of DC, or for a rendezvous */
    uint8_t reads;  /* READs and atomics under way before it */
    uint16_t src_dev;
    uint32_t src_qpn, dest_qpn;
    uint32_t psn;    /* counts messages, not packets */
    uint32_t srqn;   /* XRC */
    uint32_t qkey;   /* UD */
    uint64_t dc_key; /* DC */
    uint32_t imm;    /* or key to invalidate, as sent */
    uint64_t raddr;
    uint32_t rkey;
    const struct hca_path *path;
    const struct hca_wqe_atomic *atomic;
    union {
        uint64_t atomic_before; /* with executed */
        uint64_t arrived;       /* else, of a SEND: bytes of it that
                                 * strides held before an RNR */
    };
    const struct hca_sgl *data; /* to send, or a read's destination */
    struct hca_posted *posted;  /* WRITE: list that may keep it, or NULL */
};

struct hca_ack {
    enum hca_ack_code code;
    enum hca_check check; /* reason of a refusal */
    uint8_t rnr_timer;    /* code of the responder's RNR timer */
    bool lost;            /* executed, but the answer was lost */
    bool is_fault;        /* RNR because of a page fault */
    union {
        uint64_t atomic;  /* previous value */
        uint64_t arrived; /* of a SEND to strides: bytes in them */
        uint64_t wait_ns; /* of HCA_ACK_LATE */
    };
};

#endif
