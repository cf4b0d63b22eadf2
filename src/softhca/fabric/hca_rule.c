/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The choice of events: see hca_rule.h. The counters are atomic, as each thread
 * that sends uses them.
 */
#include "hca_rule.h"
#include "hca_timer.h"
#include "softhca/base/hca_random.h"

#include <string.h>
#include <unistd.h>

static bool hca_rule_has_begun(const struct hca_rule *rule)
{
    return (rule->after_ns == 0) ||
           (hca_time_ns() - rule->start_ns >= rule->after_ns);
}

static bool hca_rule_has_ended(const struct hca_rule *rule)
{
    return (rule->for_ns != 0) &&
           (hca_time_ns() - rule->start_ns >= rule->after_ns + rule->for_ns);
}

static bool hca_rule_has_op(const struct hca_rule *rule,
                            const struct hca_rule_event *event)
{
    return (rule->op == event->op) ||
           ((rule->op == HCA_RULE_ANY_OP) && (event->op < HCA_RULE_OP_UMR));
}

static bool hca_rule_has_name(const struct hca_rule *rule,
                              const struct hca_rule_event *event)
{
    return (rule->name[0] == '\0') ||
           ((event->name != NULL) &&
            !strncmp(rule->name, event->name, HCA_RULE_NAME));
}

bool hca_rule_matches(const struct hca_rule *rule,
                      const struct hca_rule_event *event)
{
    unsigned what = atomic_load_explicit(&rule->what, memory_order_acquire);

    return (what != HCA_FAULT_NONE) && (what < HCA_NUM_FAULTS) &&
           (hca_rule_point(what) == event->point) && (rule->every != 0) &&
           hca_rule_has_op(rule, event) && (event->length >= rule->min) &&
           (event->length <= rule->max) &&
           ((rule->peer == 0) || (rule->peer == (uint64_t)event->peer)) &&
           ((rule->pid == 0) || (rule->pid == (uint64_t)getpid())) &&
           hca_rule_has_name(rule, event) && hca_rule_has_begun(rule);
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

bool hca_rule_count(struct hca_rule *rule, uint64_t *n)
{
    if (hca_rule_has_ended(rule)) {
        return false;
    }
    *n = atomic_fetch_add(&rule->seen, 1) + 1;
    return hca_rule_selects(rule, *n);
}

bool hca_rule_is_over(const struct hca_rule *rule)
{
    uint64_t seen = atomic_load(&rule->seen);

    return hca_rule_has_ended(rule) ||
           ((seen >= rule->nth) && !hca_rule_has_room(rule, seen));
}

uint64_t hca_rule_random(const struct hca_rule *rule, uint64_t n,
                         unsigned sequence)
{
    return hca_random(rule->seed, n * 3 + sequence);
}
