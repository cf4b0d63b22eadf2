/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The rules of faults (hca_rule.h): those of this process, by SOFTHCA_FAULT,
 * separated by commas, and those of the fabric, in the segment, which the
 * command softhca-fault (fault.c) changes while programs run. The counters of
 * the latter count the events of all processes.
 *
 * The callers of hca_rules_find() and hca_rules_fail() do what a rule says:
 * exec/hca_fault.h for messages, and each place that can fail.
 */
#ifndef HCA_RULES_H
#define HCA_RULES_H

#include "hca_segment.h"

/* Returns false as long as no process of the fabric has had rules. */
static inline bool hca_rules_are_set(void)
{
    return __builtin_expect(
        atomic_load_explicit(&hca_fabric->has_rules, memory_order_relaxed), 0);
}

/* Reads SOFTHCA_FAULT; a wrong value logs an error and sets no rule. */
void hca_rules_init(void);

/* Announces the rules of this process to the fabric that it has attached to. */
void hca_rules_attached(void);

/* Logs the count of each rule of this process at its end. */
void hca_rules_exit(void);

/* Counts the event in each rule that it matches, those of this process first,
 * up to the first rule that selects it.
 * @return the selecting rule, or NULL; the number of the event in *n. */
const struct hca_rule *hca_rules_find(struct hca_rule_event *event,
                                      uint64_t *n);

/* Finds the rule that makes a command or an allocation fail.
 * @return its -errno, logged; 0 if there is none. */
int hca_rules_fail(enum hca_rule_point point, const char *name);

/* --- for softhca-fault, with the folder locked (hca_rundir.h) ------------- */

/* Adds all @num rules to the fabric. @return false if there is no room for
 * them: none is added. */
bool hca_rules_add(const struct hca_rule *rules, unsigned num);

/* Removes the rules from the fabric whose indexes are bits of @indexes. */
void hca_rules_remove(unsigned indexes);

#endif
