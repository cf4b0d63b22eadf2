/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The text of a rule: WHAT[:KEY[=VALUE]]... Two tables have the faults and the
 * keys. A key is of one kind of value, and of some faults.
 */
#include "hca_rule.h"
#include "hca_timer.h"
#include "softhca/base/hca_log.h"
#include "softhca/base/hca_random.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- faults -------------------------------------------------------------- */

static const struct {
    const char *name;
    enum hca_rule_point point;
} hca_rule_whats[HCA_NUM_FAULTS] = {
    [HCA_FAULT_DROP]            = {"drop", HCA_RULE_REQUEST},
    [HCA_FAULT_DROP_ACK]        = {"drop_ack", HCA_RULE_ANSWER},
    [HCA_FAULT_CORRUPT]         = {"corrupt", HCA_RULE_REQUEST},
    [HCA_FAULT_CORRUPT_PAYLOAD] = {"corrupt_payload", HCA_RULE_REQUEST},
    [HCA_FAULT_DUPLICATE]       = {"duplicate", HCA_RULE_REQUEST},
    [HCA_FAULT_DELAY]           = {"delay", HCA_RULE_REQUEST},
    [HCA_FAULT_RNR]             = {"rnr", HCA_RULE_REQUEST},
    [HCA_FAULT_NAK_INVAL]       = {"nak_inval", HCA_RULE_REQUEST},
    [HCA_FAULT_NAK_ACCESS]      = {"nak_access", HCA_RULE_REQUEST},
    [HCA_FAULT_NAK_OP]          = {"nak_op", HCA_RULE_REQUEST},
    [HCA_FAULT_QP_FATAL]        = {"qp_fatal", HCA_RULE_REQUEST},
    [HCA_FAULT_CQ_OVERRUN]      = {"cq_overrun", HCA_RULE_REQUEST},
    [HCA_FAULT_SRQ_ERROR]       = {"srq_error", HCA_RULE_REQUEST},
    [HCA_FAULT_PORT_DOWN]       = {"port_down", HCA_RULE_REQUEST},
    [HCA_FAULT_DEVICE_FATAL]    = {"device_fatal", HCA_RULE_REQUEST},
    [HCA_FAULT_UMR_REFUSED]     = {"umr_refused", HCA_RULE_UMR},
    [HCA_FAULT_INVAL_RACED]     = {"inval_raced", HCA_RULE_UMR},
    [HCA_FAULT_INVAL_EARLY]     = {"inval_early", HCA_RULE_UMR},
    [HCA_FAULT_FAIL_VERB]       = {"fail_verb", HCA_RULE_VERB},
    [HCA_FAULT_FAIL_DEVX]       = {"fail_devx", HCA_RULE_DEVX},
    [HCA_FAULT_FAIL_ALLOC]      = {"fail_alloc", HCA_RULE_ALLOC},
};

enum hca_rule_point hca_rule_point(enum hca_fault_what what)
{
    return hca_rule_whats[what].point;
}

const char *hca_rule_name(enum hca_fault_what what)
{
    return hca_rule_whats[what].name;
}

/* @return HCA_FAULT_NONE if there is no such fault. */
static enum hca_fault_what hca_rule_parse_what(const char *name)
{
    unsigned what = HCA_FAULT_NONE + 1;

    while ((what < HCA_NUM_FAULTS) && strcmp(name, hca_rule_whats[what].name)) {
        what++;
    }
    return (what < HCA_NUM_FAULTS) ? what : HCA_FAULT_NONE;
}

/* --- values -------------------------------------------------------------- */

static bool hca_rule_parse_number(void *field, const char *value)
{
    char *end;

    *(uint64_t *)field = strtoull(value, &end, 10);
    return (*value >= '0') && (*value <= '9') && (*end == '\0');
}

static bool hca_rule_parse_positive(void *field, const char *value)
{
    return hca_rule_parse_number(field, value) && (*(uint64_t *)field > 0);
}

static bool hca_rule_parse_seed(void *field, const char *value)
{
    return hca_rule_parse_number(field, value) &&
           (*(uint64_t *)field <= UINT32_MAX);
}

static bool hca_rule_parse_chance(void *field, const char *value)
{
    char *end;
    double chance = strtod(value, &end);

    *(uint64_t *)field = chance * HCA_RULE_CERTAINLY;
    return (*value >= '0') && (*value <= '9') && (*end == '\0') &&
           (chance <= 1);
}

static bool hca_rule_parse_time(void *field, const char *value)
{
    static const struct {
        const char *unit;
        uint64_t ns;
    } units[] = {{"us", 1000}, {"ms", 1000000}, {"s", 1000000000}};
    char *end;
    uint64_t time = strtoull(value, &end, 10);

    for (unsigned i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (!strcmp(end, units[i].unit)) {
            *(uint64_t *)field = time * units[i].ns;
            return (*value >= '0') && (*value <= '9') && (time <= 1000000);
        }
    }
    return false;
}

static bool hca_rule_parse_op(void *field, const char *value)
{
    static const char *const ops[] = {"send", "write", "read", "atomic"};

    for (unsigned i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
        if (!strcmp(value, ops[i])) {
            *(uint8_t *)field = i; /* enum hca_msg_op */
            return true;
        }
    }
    return false;
}

/* Parses the op of a fault of queues, which WQEs without a message have, too */
static bool hca_rule_parse_wqe_op(void *field, const char *value)
{
    bool is_umr = !strcmp(value, "umr");

    if (!is_umr && strcmp(value, "tag")) {
        return hca_rule_parse_op(field, value);
    }
    *(uint8_t *)field = is_umr ? HCA_RULE_OP_UMR : HCA_RULE_OP_TAG;
    return true;
}

static bool hca_rule_parse_name(void *field, const char *value)
{
    if ((*value == '\0') || (strlen(value) >= HCA_RULE_NAME)) {
        return false;
    }
    strcpy(field, value);
    return true;
}

static bool hca_rule_parse_error(void *field, const char *value)
{
    static const struct {
        const char *name;
        int error;
    } errors[] = {
        {"EPERM", EPERM},   {"EIO", EIO},       {"EAGAIN", EAGAIN},
        {"ENOMEM", ENOMEM}, {"EBUSY", EBUSY},   {"EINVAL", EINVAL},
        {"EMFILE", EMFILE}, {"ENOSPC", ENOSPC}, {"EOPNOTSUPP", EOPNOTSUPP},
    };

    for (unsigned i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
        if (!strcmp(value, errors[i].name)) {
            *(uint64_t *)field = errors[i].error;
            return true;
        }
    }
    return false;
}

/* --- keys ---------------------------------------------------------------- */

#define HCA_RULE_POINTS_OF_MESSAGES \
    ((1u << HCA_RULE_REQUEST) | (1u << HCA_RULE_ANSWER))
#define HCA_RULE_POINTS_WITH_NAMES \
    ((1u << HCA_RULE_VERB) | (1u << HCA_RULE_DEVX) | (1u << HCA_RULE_ALLOC))
#define HCA_RULE_ANY_POINT ((1u << HCA_NUM_RULE_POINTS) - 1)

#define HCA_RULE_FIELD(_field) offsetof(struct hca_rule, _field)

static const struct hca_rule_key {
    const char *name, *use;
    bool (*parse)(void *field, const char *value);
    size_t field;
    unsigned points;          /* bits 1 << enum hca_rule_point */
    enum hca_fault_what what; /* NONE: any of these points */
} hca_rule_keys[] = {
    /* clang-format off */
    {"nth", "a number from 1 on", hca_rule_parse_positive,
     HCA_RULE_FIELD(nth), HCA_RULE_ANY_POINT, HCA_FAULT_NONE},
    {"count", "a number, 0 for no limit", hca_rule_parse_number,
     HCA_RULE_FIELD(count), HCA_RULE_ANY_POINT, HCA_FAULT_NONE},
    {"every", "a number from 1 on", hca_rule_parse_positive,
     HCA_RULE_FIELD(every), HCA_RULE_ANY_POINT, HCA_FAULT_NONE},
    {"p", "a probability from 0 to 1", hca_rule_parse_chance,
     HCA_RULE_FIELD(chance), HCA_RULE_ANY_POINT, HCA_FAULT_NONE},
    {"seed", "a number below 2^32", hca_rule_parse_seed,
     HCA_RULE_FIELD(seed), HCA_RULE_ANY_POINT, HCA_FAULT_NONE},
    {"after", "a time: 10us, 10ms, 10s", hca_rule_parse_time,
     HCA_RULE_FIELD(after_ns), HCA_RULE_ANY_POINT, HCA_FAULT_NONE},
    {"for", "a time: 10us, 10ms, 10s", hca_rule_parse_time,
     HCA_RULE_FIELD(for_ns), HCA_RULE_ANY_POINT, HCA_FAULT_NONE},
    {"op", "send, write, read, atomic, umr or tag", hca_rule_parse_wqe_op,
     HCA_RULE_FIELD(op), HCA_RULE_POINTS_OF_MESSAGES, HCA_FAULT_QP_FATAL},
    {"op", "send, write, read, atomic, umr or tag", hca_rule_parse_wqe_op,
     HCA_RULE_FIELD(op), HCA_RULE_POINTS_OF_MESSAGES, HCA_FAULT_CQ_OVERRUN},
    {"op", "send, write, read or atomic", hca_rule_parse_op,
     HCA_RULE_FIELD(op), HCA_RULE_POINTS_OF_MESSAGES, HCA_FAULT_NONE},
    {"min", "a number of bytes", hca_rule_parse_number,
     HCA_RULE_FIELD(min), HCA_RULE_POINTS_OF_MESSAGES, HCA_FAULT_NONE},
    {"max", "a number of bytes", hca_rule_parse_number,
     HCA_RULE_FIELD(max), HCA_RULE_POINTS_OF_MESSAGES, HCA_FAULT_NONE},
    {"peer", "a process id", hca_rule_parse_positive,
     HCA_RULE_FIELD(peer), HCA_RULE_POINTS_OF_MESSAGES, HCA_FAULT_NONE},
    {"pid", "a process id", hca_rule_parse_positive,
     HCA_RULE_FIELD(pid), HCA_RULE_ANY_POINT, HCA_FAULT_NONE},
    {"time", "a time: 10us, 10ms, 10s", hca_rule_parse_time,
     HCA_RULE_FIELD(time_ns), HCA_RULE_POINTS_OF_MESSAGES, HCA_FAULT_DELAY},
    {"jitter", "a time: 10us, 10ms, 10s", hca_rule_parse_time,
     HCA_RULE_FIELD(jitter_ns), HCA_RULE_POINTS_OF_MESSAGES, HCA_FAULT_DELAY},
    {"rate", "megabytes a second, from 1 on", hca_rule_parse_positive,
     HCA_RULE_FIELD(rate), HCA_RULE_POINTS_OF_MESSAGES, HCA_FAULT_DELAY},
    {"name", "the name of a command, or of an object", hca_rule_parse_name,
     HCA_RULE_FIELD(name), HCA_RULE_POINTS_WITH_NAMES, HCA_FAULT_NONE},
    {"errno", "EPERM, EIO, EAGAIN, ENOMEM, EBUSY, EINVAL, EMFILE, ENOSPC or "
     "EOPNOTSUPP", hca_rule_parse_error,
     HCA_RULE_FIELD(error), 1u << HCA_RULE_VERB, HCA_FAULT_NONE},
    /* clang-format on */
};

#define HCA_RULE_NUM_KEYS (sizeof(hca_rule_keys) / sizeof(hca_rule_keys[0]))

static const struct hca_rule_key *hca_rule_key(enum hca_fault_what what,
                                               const char *name)
{
    for (unsigned i = 0; i < HCA_RULE_NUM_KEYS; i++) {
        const struct hca_rule_key *key = &hca_rule_keys[i];

        if (!strcmp(key->name, name) &&
            (key->points & (1u << hca_rule_point(what))) &&
            ((key->what == HCA_FAULT_NONE) || (key->what == what))) {
            return key;
        }
    }
    return NULL;
}

static bool hca_rule_parse_key(struct hca_rule *rule, char *item,
                               char why[HCA_RULE_WHY])
{
    char *value = strchr(item, '=');
    const struct hca_rule_key *key;

    if (value != NULL) {
        *value++ = '\0';
    }
    key = hca_rule_key(rule->what, item);
    if (key == NULL) {
        snprintf(why, HCA_RULE_WHY, "%s has no key \"%s\"",
                 hca_rule_name(rule->what), item);
        return false;
    }
    if ((value == NULL) || !key->parse((char *)rule + key->field, value)) {
        snprintf(why, HCA_RULE_WHY, "%s: use %s", key->name, key->use);
        return false;
    }
    return true;
}

/* --- rules --------------------------------------------------------------- */

#define HCA_RULE_NOT_GIVEN UINT64_MAX

static bool hca_rule_is_random(const struct hca_rule *rule)
{
    return (rule->chance != HCA_RULE_CERTAINLY) || (rule->jitter_ns != 0);
}

/* A fault is for one event, unless its rule says how many there are. */
static void hca_rule_set_count(struct hca_rule *rule)
{
    bool has_chance = rule->chance != HCA_RULE_NOT_GIVEN;

    if (rule->count == HCA_RULE_NOT_GIVEN) {
        rule->count = (rule->every == 0) && (rule->for_ns == 0) && !has_chance;
    }
    rule->every += (rule->every == 0);
    rule->chance = has_chance ? rule->chance : HCA_RULE_CERTAINLY;
}

/* The log has the rule with its random seed, for the next run. */
static void hca_rule_set_seed(struct hca_rule *rule)
{
    size_t length = strlen(rule->text);

    if (rule->seed != HCA_RULE_NOT_GIVEN) {
        return;
    }
    rule->seed = 1;
    if (hca_rule_is_random(rule)) {
        rule->seed = (uint32_t)hca_random(getpid(), hca_time_ns());
        snprintf(rule->text + length, HCA_RULE_TEXT - length, ":seed=%u",
                 (unsigned)rule->seed);
        hca_warn("fault: random seed: %s", rule->text);
    }
}

bool hca_rule_parse(struct hca_rule *rule, const char *text,
                    char why[HCA_RULE_WHY])
{
    char copy[HCA_RULE_TEXT], *save, *item;

    if (strlen(text) >= HCA_RULE_TEXT - sizeof(":seed=4294967295")) {
        snprintf(why, HCA_RULE_WHY, "a rule is too long");
        return false;
    }
    strcpy(copy, text);
    item = strtok_r(copy, ":", &save);
    memset(rule, 0, sizeof(*rule));
    rule->what = (item == NULL) ? HCA_FAULT_NONE : hca_rule_parse_what(item);
    if (rule->what == HCA_FAULT_NONE) {
        snprintf(why, HCA_RULE_WHY, "there is no fault \"%s\"", copy);
        return false;
    }
    rule->op       = HCA_RULE_ANY_OP;
    rule->nth      = 1;
    rule->chance   = HCA_RULE_NOT_GIVEN;
    rule->count    = HCA_RULE_NOT_GIVEN;
    rule->max      = UINT64_MAX;
    rule->seed     = HCA_RULE_NOT_GIVEN;
    rule->start_ns = hca_time_ns();
    rule->error    = ENOMEM;
    while ((item = strtok_r(NULL, ":", &save)) != NULL) {
        if (!hca_rule_parse_key(rule, item, why)) {
            return false;
        }
    }
    strcpy(rule->text, text);
    hca_rule_set_count(rule);
    hca_rule_set_seed(rule);
    return true;
}
