/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/* Implements collect.h by callgrind's requests. */
#include "collect.h"

#include <dlfcn.h>
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

/* Counters of the software device: src/softhca/obj/hca_pcie.h */
static const char *traffic_kinds[] = {
    "mmio_write",  "wqe_read",      "wqe_wait",       "list_read",
    "gather_read", "result_write",  "recv_wqe_read",  "recv_dbrec_read",
    "remote_read", "payload_write", "send_cqe_write", "recv_cqe_write"};

enum { NUM_KINDS = sizeof(traffic_kinds) / sizeof(*traffic_kinds) };

typedef int (*traffic_fn)(const char *kind, uint64_t *times, uint64_t *bytes,
                          uint64_t *lines);

static struct traffic {
    uint64_t times, bytes, lines;
} traffic_begin[NUM_KINDS];

/* Reads the counters. Returns 0 if there are none. */
static int traffic_get(struct traffic *traffic)
{
    traffic_fn get = (traffic_fn)dlsym(RTLD_DEFAULT, "softhca_pcie");
    int i;

    for (i = 0; (get != NULL) && (i < NUM_KINDS); i++) {
        if (get(traffic_kinds[i], &traffic[i].times, &traffic[i].bytes,
                &traffic[i].lines) != 0) {
            return 0;
        }
    }
    return get != NULL;
}

void bench_traffic_begin(void)
{
    traffic_get(traffic_begin);
}

void bench_traffic_print(const char *op, const char *how, unsigned messages)
{
    const double number = messages;
    struct traffic now[NUM_KINDS];
    int i;

    for (i = 0; traffic_get(now) && (i < NUM_KINDS); i++) {
        printf("pcie %s/%s %s %.3f %.1f %.3f\n", op, how, traffic_kinds[i],
               (now[i].times - traffic_begin[i].times) / number,
               (now[i].bytes - traffic_begin[i].bytes) / number,
               (now[i].lines - traffic_begin[i].lines) / number);
    }
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
