/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Rules of SOFTHCA_FAULT (hca_fault.h). Parsed once; the counters are atomic,
 * as every thread that sends uses them.
 */
#include "hca_fault.h"
#include "hca_fatal.h"
#include "softhca/base/hca_log.h"
#include "softhca/fabric/hca_port.h"

#include <stdlib.h>
#include <string.h>

#define HCA_FAULT_RULES 8u

enum hca_fault_kind {
    HCA_FAULT_DROP,
    HCA_FAULT_DROP_ACK,
    HCA_FAULT_RNR,
    HCA_FAULT_NAK_INVAL,
    HCA_FAULT_NAK_ACCESS,
    HCA_FAULT_NAK_OP,
    HCA_FAULT_PORT_DOWN,
    HCA_FAULT_DEVICE_FATAL,
    HCA_NUM_FAULTS
};

struct hca_fault_rule {
    enum hca_fault_kind kind;
    int op; /* enum hca_msg_op, -1 any */
    unsigned long nth, count;
    _Atomic unsigned long seen;
};

static const struct {
    const char *name;
    enum hca_ack_code code;
} hca_fault_kinds[HCA_NUM_FAULTS] = {
    [HCA_FAULT_DROP]         = {"drop", HCA_ACK_NONE},
    [HCA_FAULT_DROP_ACK]     = {"drop_ack", HCA_ACK_NONE},
    [HCA_FAULT_RNR]          = {"rnr", HCA_ACK_RNR},
    [HCA_FAULT_NAK_INVAL]    = {"nak_inval", HCA_ACK_INVAL},
    [HCA_FAULT_NAK_ACCESS]   = {"nak_access", HCA_ACK_ACCESS},
    [HCA_FAULT_NAK_OP]       = {"nak_op", HCA_ACK_OP},
    [HCA_FAULT_PORT_DOWN]    = {"port_down", HCA_ACK_NONE},
    [HCA_FAULT_DEVICE_FATAL] = {"device_fatal", HCA_ACK_NONE},
};

static const char *const hca_fault_ops[] = {
    [HCA_MSG_SEND]   = "send",
    [HCA_MSG_WRITE]  = "write",
    [HCA_MSG_READ]   = "read",
    [HCA_MSG_ATOMIC] = "atomic",
};

bool hca_fault_active;

static struct hca_fault_rule hca_fault_rules[HCA_FAULT_RULES];
static unsigned hca_fault_num_rules;

static bool hca_fault_parse_op(struct hca_fault_rule *rule, const char *value)
{
    for (unsigned i = 0; i < 4; i++) {
        if (!strcmp(value, hca_fault_ops[i])) {
            rule->op = i;
            return true;
        }
    }
    return false;
}

static bool hca_fault_parse_number(unsigned long *number, const char *value)
{
    char *end;

    *number = strtoul(value, &end, 10);
    return (*value >= '0') && (*value <= '9') && (*end == '\0');
}

static bool hca_fault_parse_key(struct hca_fault_rule *rule, char *item)
{
    char *value = strchr(item, '=');

    if (value == NULL) {
        return false;
    }
    *value++ = '\0';
    if (!strcmp(item, "op")) {
        return hca_fault_parse_op(rule, value);
    }
    if (!strcmp(item, "nth")) {
        return hca_fault_parse_number(&rule->nth, value) && (rule->nth > 0);
    }
    return !strcmp(item, "count") &&
           hca_fault_parse_number(&rule->count, value);
}

static bool hca_fault_parse_rule(struct hca_fault_rule *rule, char *text)
{
    char *save, *item = strtok_r(text, ":", &save);
    unsigned kind = 0;

    while ((item != NULL) && (kind < HCA_NUM_FAULTS) &&
           strcmp(item, hca_fault_kinds[kind].name)) {
        kind++;
    }
    if ((item == NULL) || (kind == HCA_NUM_FAULTS)) {
        return false;
    }
    rule->kind  = kind;
    rule->op    = -1;
    rule->nth   = 1;
    rule->count = 1;
    while ((item = strtok_r(NULL, ":", &save)) != NULL) {
        if (!hca_fault_parse_key(rule, item)) {
            return false;
        }
    }
    return true;
}

void hca_fault_init(void)
{
    const char *value = getenv("SOFTHCA_FAULT");
    char *text        = (value == NULL) ? NULL : strdup(value);
    char *save, *item;

    if (text == NULL) {
        return;
    }
    for (item = strtok_r(text, ",", &save); item != NULL;
         item = strtok_r(NULL, ",", &save)) {
        if ((hca_fault_num_rules == HCA_FAULT_RULES) ||
            !hca_fault_parse_rule(&hca_fault_rules[hca_fault_num_rules],
                                  item)) {
            hca_error("SOFTHCA_FAULT=%s: use up to %u rules "
                      "what[:op=send|write|read|atomic][:nth=N][:count=N], "
                      "what: drop, drop_ack, rnr, nak_inval, nak_access, "
                      "nak_op, port_down, device_fatal",
                      value, HCA_FAULT_RULES);
            hca_fault_num_rules = 0;
            break;
        }
        hca_fault_num_rules++;
    }
    free(text);
    hca_fault_active = (hca_fault_num_rules > 0);
}

/* Returns true if message @n comes after the last one that the rule is for. */
static bool hca_fault_is_past(const struct hca_fault_rule *rule,
                              unsigned long n)
{
    return (rule->count != 0) && (n >= rule->nth + rule->count);
}

static bool hca_fault_hits(struct hca_fault_rule *rule,
                           const struct hca_msg *msg)
{
    unsigned long n;

    if ((rule->op >= 0) && (rule->op != msg->op)) {
        return false;
    }
    n = atomic_fetch_add(&rule->seen, 1) + 1;
    if ((rule->kind == HCA_FAULT_PORT_DOWN) && (n == rule->nth + rule->count) &&
        (rule->count != 0)) {
        hca_port_up_all();
    }
    return (n >= rule->nth) && !hca_fault_is_past(rule, n);
}

/* Another thread's message may have ended the rule before the port is down. */
static void hca_fault_port_down(const struct hca_fault_rule *rule,
                                const struct hca_msg *msg)
{
    hca_port_down(msg->src_dev);
    if (hca_fault_is_past(rule, atomic_load(&rule->seen))) {
        hca_port_up(msg->src_dev);
    }
}

bool hca_fault_request(const struct hca_msg *msg, struct hca_ack *ack)
{
    for (unsigned i = 0; i < hca_fault_num_rules; i++) {
        struct hca_fault_rule *rule = &hca_fault_rules[i];

        if ((rule->kind != HCA_FAULT_DROP_ACK) && hca_fault_hits(rule, msg)) {
            if (rule->kind == HCA_FAULT_PORT_DOWN) {
                hca_fault_port_down(rule, msg);
            } else if (rule->kind == HCA_FAULT_DEVICE_FATAL) {
                hca_fatal_device(msg->src_dev);
            }
            ack->code = hca_fault_kinds[rule->kind].code;
            hca_info("qp 0x%x: fault: %s of psn %u", msg->src_qpn,
                     hca_fault_kinds[rule->kind].name, msg->psn);
            return true;
        }
    }
    return false;
}

void hca_fault_response(const struct hca_msg *msg, struct hca_ack *ack)
{
    for (unsigned i = 0; i < hca_fault_num_rules; i++) {
        struct hca_fault_rule *rule = &hca_fault_rules[i];

        if ((rule->kind == HCA_FAULT_DROP_ACK) && hca_fault_hits(rule, msg)) {
            ack->lost = (ack->code == HCA_ACK);
            ack->code = HCA_ACK_NONE;
            hca_info("qp 0x%x: fault: answer to psn %u lost", msg->src_qpn,
                     msg->psn);
        }
    }
}
