/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Delivery. The responder runs in the requester's thread, with the target's
 * lock; an unreachable target (no such QP, another device than the path leads
 * to, a process that has died) does not answer, as on a real wire.
 */
#include "hca_wire.h"
#include "hca_fault.h"
#include "softhca/base/hca_log.h"
#include "softhca/fabric/hca_count.h"
#include "softhca/fabric/hca_proc.h"
#include "softhca/obj/hca_path.h"
#include "softhca/obj/hca_traffic.h"
#include "softhca/resp/hca_qp.h"
#include "softhca/resp/hca_responder.h"

_Static_assert((HCA_IN_WRITES == HCA_IN_SENDS + HCA_MSG_WRITE) &&
                   (HCA_IN_READS == HCA_IN_SENDS + HCA_MSG_READ) &&
                   (HCA_IN_ATOMICS == HCA_IN_SENDS + HCA_MSG_ATOMIC),
               "a count for each kind of message");

#define HCA_IBTA_TIMEOUT_NS 4096ull
/* Timeout 0 means to wait for ever: tries again at this interval. */
#define HCA_TIMEOUT_FOREVER_NS 500000000ull

struct hca_service {
    const char *name;
    uint8_t peer; /* enum hca_qp_type that takes the message */
    bool acked;
};

#define HCA_NUM_SERVICES 8u

static const struct hca_service hca_services[HCA_NUM_SERVICES] = {
    [HCA_QP_RC]       = {"rc", HCA_QP_RC, true},
    [HCA_QP_UC]       = {"uc", HCA_QP_UC, false},
    [HCA_QP_UD]       = {"ud", HCA_QP_UD, false},
    [HCA_QP_XRC_SEND] = {"xrc", HCA_QP_XRC_RECV, true},
    [HCA_QP_DCI]      = {"dc", HCA_QP_DCT, true},
};

/* Returns the service of a QP. Any process may have written its type. */
static const struct hca_service *hca_service_of(const struct hca_qp *qp)
{
    return &hca_services[qp->type % HCA_NUM_SERVICES];
}

static const char *const hca_msg_names[] = {
    [HCA_MSG_SEND]   = "send",
    [HCA_MSG_WRITE]  = "write",
    [HCA_MSG_READ]   = "read",
    [HCA_MSG_ATOMIC] = "atomic",
};

/* IBTA 9.7.5.2.8, table 46, in units of 10 us. */
static const uint32_t hca_rnr_time[32] = {
    65536, 1,    2,    3,    4,    6,     8,     12,    16,    24,    32,
    48,    64,   96,   128,  192,  256,   384,   512,   768,   1024,  1536,
    2048,  3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
};

uint64_t hca_wire_rnr_ns(uint8_t timer)
{
    return hca_rnr_time[timer & 31] * 10000ull;
}

uint64_t hca_wire_timeout_ns(uint8_t timeout)
{
    return (timeout == 0) ? HCA_TIMEOUT_FOREVER_NS :
                            HCA_IBTA_TIMEOUT_NS << (timeout & 31);
}

/* IBTA 10.9.3: same partition, and not two limited members of it. Messages that
 * do not match are dropped. */
static bool hca_wire_pkey_fits(const struct hca_qp *qp,
                               const struct hca_qp *target)
{
    uint16_t pkey = qp->pkey, other = target->pkey;

    if (__builtin_expect((pkey == other) && (pkey & HCA_PKEY_FULL) &&
                             (pkey != HCA_PKEY_FULL),
                         1)) {
        return true;
    }
    if ((((pkey ^ other) & ~HCA_PKEY_FULL) == 0) &&
        ((pkey & ~HCA_PKEY_FULL) != 0) && ((pkey | other) & HCA_PKEY_FULL)) {
        return true;
    }
    hca_fabric->bad_pkeys[target->obj.dev]++;
    hca_info("qp 0x%x: p_key of qp 0x%x is 0x%x, expected 0x%x",
             target->obj.num, qp->obj.num, pkey, other);
    return false;
}

/* Returns true if the process of the SRQ lives that an XRC message names, or if
 * there is no such SRQ: the responder then says so. */
static bool hca_wire_srq_alive(const struct hca_msg *msg)
{
    const struct hca_obj *srq = hca_obj_peek(HCA_KIND_SRQ, msg->srqn);

    return (srq == NULL) || hca_proc_alive(srq->proc);
}

/* Returns the target, locked; NULL if none could answer. Checks before taking
 * the lock that the processes of the target and of its SRQ live: that call may
 * take back all objects of a dead process, this lock included. */
static struct hca_qp *hca_wire_lock_target(const struct hca_msg *msg)
{
    struct hca_qp *target = hca_obj_peek(HCA_KIND_QP, msg->dest_qpn);

    if ((target != NULL) &&
        ((target->obj.proc == hca_self) || hca_proc_alive(target->obj.proc)) &&
        ((target->type != HCA_QP_XRC_RECV) || hca_wire_srq_alive(msg)) &&
        hca_obj_lock_found(HCA_KIND_QP, target, msg->dest_qpn)) {
        return target;
    }
    hca_debug("qp 0x%x: qp 0x%x does not exist, or its process is dead",
              msg->src_qpn, msg->dest_qpn);
    return NULL;
}

/* Packets of MTU size; datagrams are never split. */
static uint64_t hca_wire_packets(const struct hca_qp *qp, uint64_t length)
{
    unsigned shift = (qp->type == HCA_QP_UD) ? 12 : 7 + qp->attr.mtu;

    return (length == 0) ? 1 : ((length - 1) >> shift) + 1;
}

static uint64_t hca_wire_padded(uint64_t length)
{
    return (length + 3) & ~3ull;
}

/* READs and atomics have a request without data. */
static __attribute__((noinline)) void
hca_wire_count_long(struct hca_qp *qp, struct hca_qp *target,
                    const struct hca_msg *msg, const struct hca_ack *ack)
{
    uint64_t packets = hca_wire_packets(qp, msg->data->length);
    uint64_t bytes   = hca_wire_padded(msg->data->length);

    if (msg->op < HCA_MSG_READ) {
        hca_traffic_move(&qp->asked, &target->answered, packets, bytes);
        return;
    }
    hca_traffic_move(&qp->asked, &target->answered, 1, 0);
    if (ack->code == HCA_ACK) {
        hca_traffic_move(&target->answered, &qp->asked, packets, bytes);
    }
}

/* Counts a message that has arrived; for one that fits any MTU, in a few
 * instructions. */
static void hca_wire_count(struct hca_qp *qp, struct hca_qp *target,
                           const struct hca_msg *msg, const struct hca_ack *ack)
{
    target->answered.counts[HCA_IN_SENDS + msg->op]++;
    if ((msg->op < HCA_MSG_READ) && (msg->data->length <= 256)) {
        hca_traffic_move(&qp->asked, &target->answered, 1,
                         hca_wire_padded(msg->data->length));
    } else {
        hca_wire_count_long(qp, target, msg, ack);
    }
}

/* Counts the connection of an initiator with another target than that of its
 * last message. Streams are not told apart. Returns false if routers would drop
 * the answers of a DC target: it sends them by the path of its context. */
static __attribute__((noinline)) bool
hca_wire_connect(struct hca_qp *qp, const struct hca_qp *target,
                 const struct hca_path *path)
{
    if ((target->type == HCA_QP_DCT) &&
        !hca_path_passes_routers(&target->attr.path, target->obj.dev,
                                 qp->obj.dev)) {
        hca_debug("qp 0x%x: routers drop answers of qp 0x%x, gid %u, hops %u",
                  qp->obj.num, target->obj.num, target->attr.path.sgid_index,
                  target->attr.path.hop_limit);
        return false;
    }
    qp->req.target = target->obj.num;
    hca_debug("qp 0x%x: connects to qp 0x%x of device %u: %s 0x%x, path bits "
              "%u, sl %u, answers %u, gid %d, class %u, hops %u%s",
              qp->obj.num, target->obj.num, target->obj.dev,
              hca_dev_is_roce(qp->obj.dev) ? "udp" : "lid", path->dlid,
              path->src_path_bits, path->sl, path->reverse_sl,
              path->grh ? path->sgid_index : -1, path->grh ? path->tclass : 0,
              path->grh ? path->hop_limit : 0,
              target->attr.full_handshake ? ", full handshake" : "");
    if (target->type == HCA_QP_DCT) {
        hca_count(target->obj.dev, HCA_COUNT_RX_DCT_CONNECT);
    }
    return true;
}

static void hca_wire_deliver(struct hca_qp *qp, const struct hca_msg *msg,
                             struct hca_ack *ack)
{
    struct hca_qp *target = hca_wire_lock_target(msg);

    if (target == NULL) {
        return;
    }
    if ((target->type != hca_service_of(qp)->peer) ||
        !hca_path_leads(msg->path, msg->src_dev, target->obj.dev,
                        &qp->req.way) ||
        !hca_wire_pkey_fits(qp, target)) {
        hca_debug("qp 0x%x: qp 0x%x is not where the address leads",
                  msg->src_qpn, msg->dest_qpn);
    } else if (__builtin_expect(qp->req.target == msg->dest_qpn, 1) ||
               hca_wire_connect(qp, target, msg->path)) {
        hca_responder_receive(target, msg, ack);
        hca_wire_count(qp, target, msg, ack);
    }
    hca_obj_unlock(target);
}

/* --- faults --------------------------------------------------------------- */

/* A DC target recognizes the second one as hca_request_lost() says. */
static void hca_wire_send_again(struct hca_qp *qp, struct hca_msg *msg,
                                const struct hca_ack *first)
{
    struct hca_ack second;

    if (qp->type == HCA_QP_DCI) {
        msg->executed      = true;
        msg->atomic_before = first->atomic;
    }
    hca_wire_send(qp, msg, &second);
}

/* Sends a message that a rule may select, as one that no rule does. */
static __attribute__((noinline)) void
hca_wire_send_faulty(struct hca_qp *qp, const struct hca_msg *msg,
                     struct hca_ack *ack)
{
    bool is_acked         = hca_service_of(qp)->acked;
    struct hca_msg spared = *msg;
    enum hca_fault_way way;
    struct hca_sgl data;
    uint64_t random;
    uint8_t byte;

    way = hca_fault_request(qp, msg, ack, &random);
    if (way == HCA_FAULT_LOST) {
        if (!is_acked && (ack->code != HCA_ACK_LATE) &&
            (hca_qp_state(qp) == IBV_QPS_RTS)) {
            ack->code = HCA_ACK;
        }
        return;
    }
    spared.is_spared = true;
    if (way == HCA_FAULT_FLIPPED) {
        hca_fault_flip(&spared, random, &data, &byte);
    }
    hca_wire_send(qp, &spared, ack);
    if ((way == HCA_FAULT_TWICE) && (ack->code == HCA_ACK)) {
        hca_wire_send_again(qp, &spared, ack);
    } else if ((way == HCA_FAULT_FLIPPED) && (ack->code == HCA_ACK)) {
        hca_fault_flip_result(msg, ack, random);
    }
    if (is_acked) {
        hca_fault_answer(msg, ack);
    }
}

void hca_wire_send(struct hca_qp *qp, const struct hca_msg *msg,
                   struct hca_ack *ack)
{
    const struct hca_service *service = hca_service_of(qp);

    *ack = (struct hca_ack){.code = HCA_ACK_NONE};
    if (hca_rules_are_set() && !msg->is_spared) {
        hca_wire_send_faulty(qp, msg, ack);
        return;
    }
    hca_wire_deliver(qp, msg, ack);
    hca_trace("%s 0x%x -> 0x%x: %s psn %u, %llu bytes, answer %u",
              service->name, msg->src_qpn, msg->dest_qpn,
              hca_msg_names[msg->op], msg->psn,
              (unsigned long long)msg->data->length, ack->code);
    if (!service->acked) {
        ack->code = HCA_ACK;
    }
}
