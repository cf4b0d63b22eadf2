/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * softhca-fault add RULE... | list | clear [NUMBER]...: rules of faults of a
 * running fabric (hca_rules.h). It holds the lock of the run-time folder until
 * it ends, so that one command at a time changes them.
 */
#include "hca_fabric.h"
#include "hca_rules.h"
#include "softhca/base/hca_log.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int fault_add(int num, char **texts)
{
    struct hca_rule rules[HCA_MAX_RULES];
    char why[HCA_RULE_WHY];

    for (int i = 0; i < num; i++) {
        if (!hca_rule_parse(&rules[i], texts[i], why)) {
            fprintf(stderr, "softhca-fault: %s: %s\n", texts[i], why);
            return 1;
        }
    }
    if (!hca_rules_add(rules, num)) {
        fprintf(stderr, "softhca-fault: use up to %u rules\n", HCA_MAX_RULES);
        return 1;
    }
    return 0;
}

static int fault_list(int num, char **args)
{
    (void)num;
    (void)args;
    for (unsigned i = 0; i < HCA_MAX_RULES; i++) {
        const struct hca_rule *rule = &hca_fabric->rules[i];

        if (rule->what != HCA_FAULT_NONE) {
            printf("%u %.*s: seen %llu, hit %llu\n", i, (int)HCA_RULE_TEXT,
                   rule->text, (unsigned long long)atomic_load(&rule->seen),
                   (unsigned long long)atomic_load(&rule->hits));
        }
    }
    return 0;
}

static int fault_clear(int num, char **args)
{
    unsigned indexes = (num == 0) ? UINT_MAX : 0; /* bits */

    for (int i = 0; i < num; i++) {
        char *end;
        unsigned long index = strtoul(args[i], &end, 10);

        if ((*end != '\0') || (end == args[i]) || (index >= HCA_MAX_RULES) ||
            (hca_fabric->rules[index].what == HCA_FAULT_NONE)) {
            fprintf(stderr, "softhca-fault: there is no rule %s\n", args[i]);
            return 1;
        }
        indexes |= 1u << index;
    }
    hca_rules_remove(indexes);
    return 0;
}

static const struct {
    const char *name;
    int min, max; /* arguments */
    int (*run)(int num, char **args);
} fault_commands[] = {
    {"add", 1, HCA_MAX_RULES, fault_add},
    {"list", 0, 0, fault_list},
    {"clear", 0, HCA_MAX_RULES, fault_clear},
};

static int fault_run(unsigned command, int num, char **args)
{
    int ret = hca_fabric_visit();

    if (ret == -ENOENT) {
        fprintf(stderr, "softhca-fault: no program runs on softhca here; start "
                        "one first, or set SOFTHCA_DIR and SOFTHCA_FABRIC as "
                        "it has them\n");
    }
    return (ret != 0) ? 1 : fault_commands[command].run(num, args);
}

int main(int argc, char **argv)
{
    hca_log_init();
    for (unsigned i = 0; i < sizeof(fault_commands) / sizeof(fault_commands[0]);
         i++) {
        if ((argc >= 2) && !strcmp(argv[1], fault_commands[i].name) &&
            (argc - 2 >= fault_commands[i].min) &&
            (argc - 2 <= fault_commands[i].max)) {
            return fault_run(i, argc - 2, argv + 2);
        }
    }
    fprintf(stderr, "Usage: softhca-fault add RULE...\n"
                    "       softhca-fault list\n"
                    "       softhca-fault clear [NUMBER]...\n");
    return 2;
}
