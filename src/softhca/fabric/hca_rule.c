/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The rules of this process, and the choice of events: see hca_rule.h. The
 * counters are atomic, as each thread that sends uses them.
 */
#include "hca_rule.h"
#include "hca_timer.h"
#include "softhca/base/hca_log.h"
#include "softhca/base/hca_random.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool hca_rule_is_on;

static struct hca_rule hca_rules[HCA_MAX_RULES];

/* --- the rules ----------------------------------------------------------- */

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

void hca_rule_init(void)
{
    const char *value = getenv("SOFTHCA_FAULT");
    char *text        = (value == NULL) ? NULL : strdup(value);
    char why[HCA_RULE_WHY];

    if (text == NULL) {
        return;
    }
    if (!hca_rules_parse(text, why)) {
        hca_error("SOFTHCA_FAULT=%s: %s", value, why);
        memset(hca_rules, 0, sizeof(hca_rules));
    }
    free(text);
    hca_rule_is_on = (hca_rules[0].what != HCA_FAULT_NONE);
}

void hca_rule_exit(void)
{
    for (const struct hca_rule *rule = hca_rules;
         (rule < hca_rules + HCA_MAX_RULES) && (rule->what != HCA_FAULT_NONE);
         rule++) {
        hca_info("fault: %s: seen %llu, hit %llu", rule->text,
                 (unsigned long long)atomic_load(&rule->seen),
                 (unsigned long long)atomic_load(&rule->hits));
    }
}

/* --- the choice ---------------------------------------------------------- */

static bool hca_rule_is_now(const struct hca_rule *rule)
{
    uint64_t ns;

    if ((rule->after_ns == 0) && (rule->for_ns == 0)) {
        return true;
    }
    ns = hca_time_ns() - rule->start_ns;
    return (ns >= rule->after_ns) &&
           ((rule->for_ns == 0) || (ns < rule->after_ns + rule->for_ns));
}

static bool hca_rule_matches(const struct hca_rule *rule,
                             const struct hca_rule_event *event)
{
    return (rule->what != HCA_FAULT_NONE) &&
           (hca_rule_point(rule->what) == event->point) &&
           ((rule->op == HCA_RULE_ANY_OP) || (rule->op == event->op)) &&
           (event->length >= rule->min) && (event->length <= rule->max) &&
           ((rule->peer == 0) || (rule->peer == (uint64_t)event->peer)) &&
           ((rule->name[0] == '\0') || !strcmp(rule->name, event->name)) &&
           hca_rule_is_now(rule);
}

/* With a chance, the hits are counted. Without, the number of an event says
 * alone if it is one, also if threads overtake each other. */
static bool hca_rule_has_room(const struct hca_rule *rule, uint64_t n)
{
    if (rule->count == 0) {
        return true;
    }
    return (rule->chance == HCA_RULE_CERTAINLY) ?
               (n - rule->nth) / rule->every < rule->count :
               atomic_load(&rule->hits) < rule->count;
}

static bool hca_rule_selects(struct hca_rule *rule, uint64_t n)
{
    if ((n < rule->nth) || ((n - rule->nth) % rule->every != 0) ||
        !hca_rule_has_room(rule, n) ||
        (hca_rule_random(rule, n, 0) >> 32 >= rule->chance)) {
        return false;
    }
    atomic_fetch_add(&rule->hits, 1);
    return true;
}

bool hca_rule_is_over(const struct hca_rule *rule)
{
    uint64_t seen = atomic_load(&rule->seen);

    return (seen >= rule->nth) && !hca_rule_has_room(rule, seen);
}

const struct hca_rule *hca_rule_find(struct hca_rule_event *event, uint64_t *n)
{
    for (unsigned i = 0; i < HCA_MAX_RULES; i++) {
        struct hca_rule *rule = &hca_rules[i];

        if (hca_rule_matches(rule, event)) {
            *n = atomic_fetch_add(&rule->seen, 1) + 1;
            if (hca_rule_selects(rule, *n)) {
                return rule;
            }
            event->passed |= 1u << rule->what;
        }
    }
    return NULL;
}

int hca_rule_fail(enum hca_rule_point point, const char *name)
{
    struct hca_rule_event event = {.point = point, .name = name};
    const struct hca_rule *rule;
    uint64_t n;

    rule = hca_rule_find(&event, &n);
    if (rule == NULL) {
        return 0;
    }
    hca_info("fault: %s %llu: %s", hca_rule_name(rule->what),
             (unsigned long long)n, name);
    return -(int)rule->error;
}

uint64_t hca_rule_random(const struct hca_rule *rule, uint64_t n,
                         unsigned sequence)
{
    return hca_random(rule->seed, n * 3 + sequence);
}
