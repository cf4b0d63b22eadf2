/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Both lists of rules: see hca_rules.h. A slot of the fabric's list is free
 * while its `what` is NONE, which is written first and last; a process that
 * reads it meanwhile may take some of the old rule for one event.
 */
#include "hca_rules.h"
#include "softhca/base/hca_log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct hca_rule hca_rules[HCA_MAX_RULES];

/* --- of this process ------------------------------------------------------ */

/* @return false with a reason in @why. */
static bool hca_rules_parse(char *text, char why[HCA_RULE_WHY])
{
    unsigned num = 0;
    char *save, *item;

    for (item = strtok_r(text, ",", &save); item != NULL;
         item = strtok_r(NULL, ",", &save)) {
        if (num == HCA_MAX_RULES) {
            snprintf(why, HCA_RULE_WHY, "use up to %u rules", HCA_MAX_RULES);
            return false;
        }
        if (!hca_rule_parse(&hca_rules[num++], item, why)) {
            return false;
        }
    }
    return true;
}

void hca_rules_init(void)
{
    const char *value = getenv("SOFTHCA_FAULT");
    char *text        = (value == NULL) ? NULL : strdup(value);
    char why[HCA_RULE_WHY];

    memset(hca_rules, 0, sizeof(hca_rules));
    if (text == NULL) {
        return;
    }
    if (!hca_rules_parse(text, why)) {
        hca_error("SOFTHCA_FAULT=%s: %s", value, why);
        memset(hca_rules, 0, sizeof(hca_rules));
    }
    free(text);
    if (hca_fabric != NULL) {
        hca_rules_attached();
    }
}

void hca_rules_attached(void)
{
    if (hca_rules[0].what != HCA_FAULT_NONE) {
        atomic_store(&hca_fabric->has_rules, true);
    }
}

void hca_rules_exit(void)
{
    for (const struct hca_rule *rule = hca_rules;
         (rule < hca_rules + HCA_MAX_RULES) && (rule->what != HCA_FAULT_NONE);
         rule++) {
        hca_info("fault: %s: seen %llu, hit %llu", rule->text,
                 (unsigned long long)atomic_load(&rule->seen),
                 (unsigned long long)atomic_load(&rule->hits));
    }
}

/* --- of both -------------------------------------------------------------- */

static const struct hca_rule *hca_rules_find_in(struct hca_rule *rules,
                                                struct hca_rule_event *event,
                                                uint64_t *n)
{
    for (unsigned i = 0; i < HCA_MAX_RULES; i++) {
        struct hca_rule *rule = &rules[i];

        if (hca_rule_matches(rule, event)) {
            if (hca_rule_count(rule, n)) {
                return rule;
            }
            event->passed |= 1u << (rule->what % HCA_NUM_FAULTS);
        }
    }
    return NULL;
}

const struct hca_rule *hca_rules_find(struct hca_rule_event *event, uint64_t *n)
{
    const struct hca_rule *rule = hca_rules_find_in(hca_rules, event, n);

    return ((rule == NULL) && (hca_fabric != NULL)) ?
               hca_rules_find_in(hca_fabric->rules, event, n) :
               rule;
}

int hca_rules_fail(enum hca_rule_point point, const char *name)
{
    struct hca_rule_event event = {.point = point, .name = name};
    const struct hca_rule *rule;
    uint64_t n;

    rule = hca_rules_find(&event, &n);
    if (rule == NULL) {
        return 0;
    }
    hca_info("fault: %s %llu: %s", hca_rule_name(rule->what),
             (unsigned long long)n, name);
    return -(int)rule->error;
}

/* --- of the fabric -------------------------------------------------------- */

/* Fills a free slot. No word of a slot in use is 0 that a reader divides by. */
static void hca_rules_set(struct hca_rule *slot, const struct hca_rule *rule)
{
    memcpy((char *)slot + offsetof(struct hca_rule, op),
           (const char *)rule + offsetof(struct hca_rule, op),
           sizeof(*rule) - offsetof(struct hca_rule, op));
    atomic_store(&slot->what, rule->what);
    atomic_store(&hca_fabric->has_rules, true);
}

bool hca_rules_add(const struct hca_rule *rules, unsigned num)
{
    struct hca_rule *slots[HCA_MAX_RULES];
    unsigned num_free = 0;

    for (unsigned i = 0; i < HCA_MAX_RULES; i++) {
        if (hca_fabric->rules[i].what == HCA_FAULT_NONE) {
            slots[num_free++] = &hca_fabric->rules[i];
        }
    }
    if (num > num_free) {
        return false;
    }
    for (unsigned i = 0; i < num; i++) {
        hca_rules_set(slots[i], &rules[i]);
    }
    return true;
}

void hca_rules_remove(unsigned indexes)
{
    for (unsigned i = 0; i < HCA_MAX_RULES; i++) {
        if (indexes & (1u << i)) {
            atomic_store(&hca_fabric->rules[i].what, HCA_FAULT_NONE);
        }
    }
}
