/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * What collect.h describes, by callgrind's requests.
 */
#include "collect.h"

#include <stdio.h>
#include <string.h>
#include <valgrind/callgrind.h>

void bench_collect(int on)
{
    if (on) {
        CALLGRIND_TOGGLE_COLLECT;
    }
}

unsigned bench_drain(uct_iface_h iface, int on)
{
    unsigned found;

    do {
        bench_collect(on);
        found = uct_iface_progress(iface);
        bench_collect(on);
    } while (found > 0);
    return on ? 1 : 0;
}

void bench_dump(const char *op, const char *how, const char *part,
                unsigned messages, unsigned empty)
{
    char label[128];

    snprintf(label, sizeof(label), "%s %s %s %u %u", op, how, part, messages,
             empty);
    puts(label);
    CALLGRIND_DUMP_STATS_AT(label);
}

int bench_wanted(const char *name, char **names)
{
    int none = (*names == NULL);

    for (; *names != NULL; names++) {
        if (!strcmp(*names, name)) {
            return 1;
        }
    }
    return none;
}
