/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Faults of messages: see hca_fault.h. A fault is a row of a table.
 */
#include "hca_fault.h"
#include "hca_fatal.h"
#include "hca_sq.h"
#include "softhca/base/hca_log.h"
#include "softhca/fabric/hca_count.h"
#include "softhca/fabric/hca_port.h"
#include "softhca/fabric/hca_proc.h"
#include "softhca/obj/hca_cq.h"
#include "softhca/obj/hca_path.h"
#include "softhca/obj/hca_srq.h"
#include "softhca/resp/hca_qp.h"

/* A message that a rule has selected */
struct hca_fault {
    const struct hca_rule *rule;
    uint64_t n;
    struct hca_qp *qp;
    const struct hca_msg *msg;
    struct hca_ack *ack;
    struct hca_qp *target; /* not locked; NULL if there is none */
};

/* The packet gets as far as the target's port. */
static void hca_fault_corrupt(const struct hca_fault *fault)
{
    unsigned dev;

    if (fault->target == NULL) {
        return;
    }
    dev = fault->target->obj.dev;
    if (hca_path_leads(fault->msg->path, fault->msg->src_dev, dev,
                       &fault->qp->req.way)) {
        hca_count(dev, HCA_COUNT_RX_ICRC_ENCAPSULATED);
    }
}

static void hca_fault_delay(const struct hca_fault *fault)
{
    const struct hca_rule *rule = fault->rule;
    uint64_t ns                 = rule->time_ns;

    if (rule->jitter_ns != 0) {
        ns += hca_rule_random(rule, fault->n, 1) % rule->jitter_ns;
    }
    if (rule->rate != 0) { /* bytes per us */
        ns += fault->msg->data->length * 1000 / rule->rate;
    }
    fault->ack->wait_ns = (ns == 0) ? 1 : ns;
}

static void hca_fault_rnr(const struct hca_fault *fault)
{
    if (fault->target != NULL) {
        fault->ack->rnr_timer = fault->target->attr.min_rnr_timer;
    }
}

/* A rendezvous over DC has no queue pair of its own. */
static void hca_fault_qp_fatal(const struct hca_fault *fault)
{
    if (hca_sq_of(fault->qp) != NULL) {
        hca_qp_fail_fatal(fault->qp);
    }
}

static void hca_fault_cq_overrun(const struct hca_fault *fault)
{
    hca_cq_fail(fault->qp->scqn);
}

static void hca_fault_srq_error(const struct hca_fault *fault)
{
    if ((fault->target != NULL) && hca_proc_alive(fault->target->obj.proc)) {
        hca_srq_fail_by_fault((fault->target->type == HCA_QP_XRC_RECV) ?
                                  fault->msg->srqn :
                                  fault->target->srqn);
    }
}

/* Another thread's message may have ended the rule before the port is down. */
static void hca_fault_port_down(const struct hca_fault *fault)
{
    hca_port_down(fault->msg->src_dev);
    if (hca_rule_is_over(fault->rule)) {
        hca_port_up(fault->msg->src_dev);
    }
}

static void hca_fault_device_fatal(const struct hca_fault *fault)
{
    hca_fatal_device(fault->msg->src_dev, fault->qp);
}

static const struct {
    enum hca_fault_way way;
    enum hca_ack_code code;
    void (*act)(const struct hca_fault *fault);
} hca_faults[HCA_NUM_FAULTS] = {
    /* clang-format off */
    [HCA_FAULT_DROP]            = {HCA_FAULT_LOST, HCA_ACK_NONE, NULL},
    [HCA_FAULT_CORRUPT]         = {HCA_FAULT_LOST, HCA_ACK_NONE,
                                   hca_fault_corrupt},
    [HCA_FAULT_CORRUPT_PAYLOAD] = {HCA_FAULT_FLIPPED, HCA_ACK_NONE, NULL},
    [HCA_FAULT_DUPLICATE]       = {HCA_FAULT_TWICE, HCA_ACK_NONE, NULL},
    [HCA_FAULT_DELAY]           = {HCA_FAULT_LOST, HCA_ACK_LATE,
                                   hca_fault_delay},
    [HCA_FAULT_RNR]             = {HCA_FAULT_LOST, HCA_ACK_RNR, hca_fault_rnr},
    [HCA_FAULT_NAK_INVAL]       = {HCA_FAULT_LOST, HCA_ACK_INVAL, NULL},
    [HCA_FAULT_NAK_ACCESS]      = {HCA_FAULT_LOST, HCA_ACK_ACCESS, NULL},
    [HCA_FAULT_NAK_OP]          = {HCA_FAULT_LOST, HCA_ACK_OP, NULL},
    [HCA_FAULT_QP_FATAL]        = {HCA_FAULT_LOST, HCA_ACK_NONE,
                                   hca_fault_qp_fatal},
    [HCA_FAULT_CQ_OVERRUN]      = {HCA_FAULT_ARRIVES, HCA_ACK_NONE,
                                   hca_fault_cq_overrun},
    [HCA_FAULT_SRQ_ERROR]       = {HCA_FAULT_ARRIVES, HCA_ACK_NONE,
                                   hca_fault_srq_error},
    [HCA_FAULT_PORT_DOWN]       = {HCA_FAULT_LOST, HCA_ACK_NONE,
                                   hca_fault_port_down},
    [HCA_FAULT_DEVICE_FATAL]    = {HCA_FAULT_LOST, HCA_ACK_NONE,
                                   hca_fault_device_fatal},
    /* clang-format on */
};

/* Does what the fault does beside its answer. Some do nothing. */
static void hca_fault_act(const struct hca_fault *fault)
{
    enum hca_fault_what what = fault->rule->what;

    if (hca_faults[what].act != NULL) {
        hca_faults[what].act(fault);
    }
}

/* Fills in the message's event. A port that a rule keeps down comes up with the
 * next event that the rule does not select.
 * @return the rule that selects it, or NULL. */
static const struct hca_rule *hca_fault_find(struct hca_fault *fault,
                                             enum hca_rule_point point)
{
    const struct hca_msg *msg   = fault->msg;
    struct hca_rule_event event = {
        .point  = point,
        .op     = msg->op,
        .length = msg->data->length,
    };

    fault->target = hca_obj_peek(HCA_KIND_QP, msg->dest_qpn);
    if (fault->target != NULL) {
        event.peer = hca_fabric->procs[fault->target->obj.proc].pid;
    }
    fault->rule = hca_rules_find(&event, &fault->n);
    if ((event.passed & (1u << HCA_FAULT_PORT_DOWN)) &&
        ((fault->rule == NULL) || (fault->rule->what != HCA_FAULT_PORT_DOWN))) {
        hca_port_up_all();
    }
    if (fault->rule != NULL) {
        hca_info("qp 0x%x: fault: %s of psn %u", msg->src_qpn,
                 hca_rule_name(fault->rule->what), msg->psn);
    }
    return fault->rule;
}

enum hca_fault_way hca_fault_request(struct hca_qp *qp,
                                     const struct hca_msg *msg,
                                     struct hca_ack *ack, uint64_t *random)
{
    struct hca_fault fault      = {.qp = qp, .msg = msg, .ack = ack};
    const struct hca_rule *rule = hca_fault_find(&fault, HCA_RULE_REQUEST);

    if (rule == NULL) {
        return HCA_FAULT_ARRIVES;
    }
    *random   = hca_rule_random(rule, fault.n, 2);
    ack->code = hca_faults[rule->what].code;
    hca_fault_act(&fault);
    return hca_faults[rule->what].way;
}

void hca_fault_local(struct hca_qp *qp, uint8_t op)
{
    struct hca_rule_event event = {.point = HCA_RULE_REQUEST, .op = op};
    struct hca_fault fault      = {.qp = qp};

    fault.rule = hca_rules_find(&event, &fault.n);
    if (fault.rule != NULL) {
        hca_info("qp 0x%x: fault: %s of a WQE", atomic_load(&qp->obj.num),
                 hca_rule_name(fault.rule->what));
        hca_fault_act(&fault);
    }
}

void hca_fault_answer(const struct hca_msg *msg, struct hca_ack *ack)
{
    struct hca_fault fault = {.msg = msg};

    if (hca_fault_find(&fault, HCA_RULE_ANSWER) != NULL) {
        ack->lost = (ack->code == HCA_ACK);
        ack->code = HCA_ACK_NONE;
    }
}

/* --- changed bits --------------------------------------------------------- */

/* Copies a byte of a list to or from @byte. */
static int hca_fault_copy_byte(const struct hca_sgl *list, size_t offset,
                               uint8_t *byte, bool is_write)
{
    struct hca_sgl part, own;

    hca_sgl_part(&part, list, offset, 1);
    hca_sgl_init(&own, hca_owner(hca_self));
    hca_sgl_add(&own, byte, 1);
    return is_write ? hca_sgl_copy(&part, &own) : hca_sgl_copy(&own, &part);
}

void hca_fault_flip(struct hca_msg *msg, uint64_t random, struct hca_sgl *data,
                    uint8_t *byte)
{
    const struct hca_sgl *list = msg->data;
    size_t offset = (list->length == 0) ? 0 : random / 8 % list->length;

    if ((msg->op >= HCA_MSG_READ) || (list->length == 0) ||
        (list->count > HCA_SGL_MAX - 2) ||
        (hca_fault_copy_byte(list, offset, byte, false) != 0)) {
        return;
    }
    *byte ^= 1u << random % 8;
    hca_sgl_part(data, list, 0, offset);
    if (data->has_via) {
        data->via[data->count] = NULL;
    }
    hca_sgl_add(data, byte, 1);
    hca_sgl_append(data, list, offset + 1, list->length - offset - 1);
    msg->data = data;
}

void hca_fault_flip_result(const struct hca_msg *msg, struct hca_ack *ack,
                           uint64_t random)
{
    const struct hca_sgl *list = msg->data;
    size_t offset = (list->length == 0) ? 0 : random / 8 % list->length;
    uint8_t byte;

    if (msg->op == HCA_MSG_ATOMIC) {
        ack->atomic ^= 1ull << random % (8 * msg->atomic->size);
    } else if ((msg->op == HCA_MSG_READ) && (list->length > 0) &&
               (hca_fault_copy_byte(list, offset, &byte, false) == 0)) {
        byte ^= 1u << random % 8;
        hca_fault_copy_byte(list, offset, &byte, true);
    }
}
