/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * A rule of faults. Its text is WHAT[:KEY=VALUE]...; hca_rule_parse.c has the
 * tables of both. A rule counts the events that it is for, and selects some of
 * them: by its time (`after`, `for`) and, otherwise, by the rule and the number
 * of the event only. hca_rules.h keeps the rules.
 */
#ifndef HCA_RULE_H
#define HCA_RULE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HCA_MAX_RULES      8u
#define HCA_RULE_TEXT      128u /* bytes of the text of a rule, with its end */
#define HCA_RULE_WHY       160u /* bytes of a reason */
#define HCA_RULE_NAME      32u
#define HCA_RULE_ANY_OP    0xffu /* any message, and no WQE without one */
#define HCA_RULE_OP_UMR    0x80u /* WQEs that send no message */
#define HCA_RULE_OP_TAG    0x81u
#define HCA_RULE_CERTAINLY (1ull << 32)

enum hca_fault_what {
    HCA_FAULT_NONE,
    HCA_FAULT_DROP,
    HCA_FAULT_DROP_ACK,
    HCA_FAULT_CORRUPT,
    HCA_FAULT_CORRUPT_PAYLOAD,
    HCA_FAULT_DUPLICATE,
    HCA_FAULT_DELAY,
    HCA_FAULT_RNR,
    HCA_FAULT_NAK_INVAL,
    HCA_FAULT_NAK_ACCESS,
    HCA_FAULT_NAK_OP,
    HCA_FAULT_QP_FATAL,
    HCA_FAULT_CQ_OVERRUN,
    HCA_FAULT_SRQ_ERROR,
    HCA_FAULT_PORT_DOWN,
    HCA_FAULT_DEVICE_FATAL,
    HCA_FAULT_UMR_REFUSED,
    HCA_FAULT_INVAL_RACED,
    HCA_FAULT_INVAL_EARLY,
    HCA_FAULT_FAIL_VERB,
    HCA_FAULT_FAIL_DEVX,
    HCA_FAULT_FAIL_ALLOC,
    HCA_NUM_FAULTS
};

/* The kind of event that a rule counts */
enum hca_rule_point {
    HCA_RULE_REQUEST, /* a message that is sent */
    HCA_RULE_ANSWER,  /* its acknowledgement or response */
    HCA_RULE_UMR,     /* a WQE of this opcode */
    HCA_RULE_VERB,    /* a command by ioctl that destroys nothing */
    HCA_RULE_DEVX,    /* a command of the firmware in one of them */
    HCA_RULE_ALLOC,   /* an allocation of the device: an object, memory */
    HCA_NUM_RULE_POINTS
};

struct hca_rule_event {
    uint8_t point; /* enum hca_rule_point */
    uint8_t op;    /* of a message: enum hca_msg_op; HCA_RULE_OP_* */
    int peer;      /* process id of its target, 0: unknown */
    uint64_t length;
    const char *name; /* of a command, or of what is allocated; or NULL */
    uint32_t passed;  /* out: bits 1 << enum hca_fault_what of rules that
                       * counted it, but did not select it */
};

struct hca_rule {
    _Atomic(uint8_t) what; /* enum hca_fault_what; NONE: no rule */
    uint8_t op;            /* as in an event, or HCA_RULE_ANY_OP */
    uint64_t seed;
    uint64_t nth, count, every;
    uint64_t chance; /* of HCA_RULE_CERTAINLY */
    uint64_t min, max, peer, pid;
    uint64_t after_ns; /* from start_ns on */
    uint64_t for_ns;   /* from the end of after_ns on; 0: for ever */
    uint64_t time_ns, jitter_ns, rate;
    uint64_t start_ns;        /* hca_time_ns() */
    uint64_t error;           /* errno */
    char name[HCA_RULE_NAME]; /* "": any */
    _Atomic(uint64_t) seen, hits;
    char text[HCA_RULE_TEXT];
};

/* Parses one rule. One that needs a seed and has none gets a random one.
 * @return false with a reason in @why. */
bool hca_rule_parse(struct hca_rule *rule, const char *text,
                    char why[HCA_RULE_WHY]);

/* Returns the point of a fault, and its name. */
enum hca_rule_point hca_rule_point(enum hca_fault_what what);
const char *hca_rule_name(enum hca_fault_what what);

/* Returns true if the rule is for events of this kind. Any rule may be passed,
 * also one that another process is writing. */
bool hca_rule_matches(const struct hca_rule *rule,
                      const struct hca_rule_event *event);

/* Counts an event that the rule matches, unless its time is over. @return true
 * if the rule selects it; the number of the event in *n, from 1. */
bool hca_rule_count(struct hca_rule *rule, uint64_t *n);

/* Returns true if the rule selects no further event. */
bool hca_rule_is_over(const struct hca_rule *rule);

/* Returns random bits of event @n, for the effect of the fault: sequence 1 or
 * 2. Sequence 0 selects the events. */
uint64_t hca_rule_random(const struct hca_rule *rule, uint64_t n,
                         unsigned sequence);

#endif
