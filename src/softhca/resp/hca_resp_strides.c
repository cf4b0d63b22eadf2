/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Messages to a shared receive queue with strides ("multi-packet"). Each packet
 * has strides and a completion of its own; packets of a message may be in
 * several WQEs. Only the completion of the last packet has the immediate data
 * and the solicited event. Only an SRQ with tag matching has strides (the
 * kernel of MLNX_OFED, "MP WR is supported over TM SRQ type only").
 *
 *   strides   0  1  2  3  4  5  6  7     here of the MTU, or longer
 *   WQE a     m0 m1 m2 n0 o0 o1 o2 o3    message m: FIRST, -, LAST; n: both
 *   WQE b     o4 ...
 *
 * A packet longer than a stride takes several, all in one WQE. If those at the
 * end of a WQE are too few, they get an empty completion, the filler.
 *
 * If there are not enough strides for a message, its first packets stay in
 * them. The requester gets RNR with their number of bytes, and continues there;
 * on the wire that follows from the PSNs of packets.
 */
#include "hca_resp.h"
#include "softhca/obj/hca_tm.h"

#include <common/prm.h>

struct hca_packet {
    struct hca_responder *resp; /* resp->msg is @msg while it is delivered */
    struct hca_srq *srq;
    uint8_t tm_op;
    struct hca_msg msg;
    struct hca_sgl data;
};

/* Takes strides for a packet. If those at the end of a WQE are too few,
 * completes these as a filler and takes others. */
static enum hca_check hca_packet_take(struct hca_packet *packet)
{
    struct hca_recv *recv = &packet->resp->recv;
    enum hca_check check;

    do {
        check       = hca_srq_take_strides(packet->resp->qp, packet->srq,
                                           packet->data.length, recv);
        recv->tm_op = packet->tm_op;
        if ((check != HCA_OK) || !(recv->mp_flags & PRM_CQE_MP_FILLER)) {
            return check;
        }
        check = hca_resp_complete(packet->resp, NULL);
    } while (check == HCA_OK);
    return check;
}

static enum hca_check hca_packet_deliver(struct hca_packet *packet,
                                         uint32_t mp_flags)
{
    struct hca_responder *resp = packet->resp;
    enum hca_check check       = hca_packet_take(packet);

    if (check != HCA_OK) {
        return check;
    }
    hca_srq_tm(packet->srq)->num_strides += resp->recv.num_strides;
    resp->recv.mp_flags = mp_flags;
    check               = hca_resp_deliver(resp);
    hca_sgl_put(&resp->memory);
    hca_sgl_init(&resp->memory, resp->recv.owner);
    return check;
}

/* Sets @packet to the packet that begins at byte @arrived of the message.
 * @return its PRM_CQE_MP_* */
static uint32_t hca_packet_cut(struct hca_packet *packet,
                               const struct hca_msg *msg, uint64_t arrived)
{
    uint64_t mtu      = 128u << msg->mtu;
    uint64_t left     = msg->data->length - arrived;
    bool is_last      = (left <= mtu);
    uint32_t is_first = (arrived == 0) ? PRM_CQE_MP_FIRST : 0;

    packet->msg.has_imm   = is_last && msg->has_imm;
    packet->msg.has_inval = is_last && msg->has_inval;
    packet->msg.solicited = is_last && msg->solicited;
    hca_sgl_part(&packet->data, msg->data, arrived, is_last ? left : mtu);
    return is_first | (is_last ? PRM_CQE_MP_LAST : 0);
}

enum hca_check hca_resp_strides_send(struct hca_responder *resp,
                                     struct hca_srq *srq, uint8_t tm_op)
{
    const struct hca_msg *msg = resp->msg;
    uint64_t arrived          = msg->arrived;
    struct hca_packet packet  = {
         .resp  = resp,
         .srq   = srq,
         .tm_op = tm_op,
         .msg   = *msg,
    };
    enum hca_check check;

    packet.msg.data = &packet.data;
    resp->msg       = &packet.msg;
    do {
        uint32_t mp_flags = hca_packet_cut(&packet, msg, arrived);

        check = hca_packet_deliver(&packet, mp_flags);
        if (check != HCA_OK) {
            break;
        }
        arrived += packet.data.length;
        resp->ack->arrived = arrived;
    } while (arrived < msg->data->length);
    resp->msg = msg;
    return check;
}
