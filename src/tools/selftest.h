/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * A probe of dcx_selftest: one thing that dcx assumes of the device. It runs in
 * a process of its own (selftest_run.c), which it ends if it does not pass. The
 * process that started it reads its standard output, and what UCX and dcx log.
 */
#ifndef DCX_SELFTEST_H
#define DCX_SELFTEST_H

#include "selftest_loop.h"

/* How a probe ends; of a process the exit status */
enum selftest_result {
    SELFTEST_PASS    = 0,
    SELFTEST_FAIL    = 1,
    SELFTEST_REFUSED = 3, /* the device, or its driver, has it not */
    SELFTEST_NOT_RUN = 4, /* the host did not let it: no result */
    SELFTEST_NUM     = 5
};

enum { SELFTEST_OPTIONS = 2 };

struct selftest_probe {
    const char *name;    /* of the line in the profile */
    const char *proves;
    const char *without; /* dcx without it */
    void      (*run)(struct selftest_loop *loop);
    unsigned    claims;  /* bits of features that dcx is told to have passed */
    const char *options[SELFTEST_OPTIONS]; /* "NAME=VALUE", or NULL */
    bool        needs_peer;
};

/* Ends the process if @status is an error: what was asked for is not there. */
void selftest_need(ucs_status_t status, const char *what);

/* The same, without a status of UCS */
void selftest_refused(const char *format, ...)
        __attribute__((noreturn, format(printf, 1, 2)));

/* Ends the process if @status is an error of the host's memory: the probe has no
 * result. */
void selftest_need_memory(ucs_status_t status, const char *what);

/* A line of the profile, such as ("umr_us_4", "%.2f", ...); replaces one of the
 * same key, and those behind it. */
void selftest_value(const char *key, const char *format, ...)
        __attribute__((format(printf, 2, 3)));

/* A remark in the report */
void selftest_note(const char *format, ...)
        __attribute__((format(printf, 1, 2)));

/* At the target of a peer's calls (selftest_peer.h), each selftest_serve_t */
void selftest_serve_take(struct selftest_loop *loop, struct selftest_call *call,
                         uint8_t *data);
void selftest_serve_take_back(struct selftest_loop *loop,
                              struct selftest_call *call, uint8_t *data);
void selftest_serve_layout(struct selftest_loop *loop,
                           struct selftest_call *call, uint8_t *data);
void selftest_serve_fences(struct selftest_loop *loop,
                           struct selftest_call *call, uint8_t *data);
void selftest_serve_recv(struct selftest_loop *loop, struct selftest_call *call,
                         uint8_t *data);
void selftest_serve_recv_test(struct selftest_loop *loop,
                              struct selftest_call *call, uint8_t *data);

/* Of selftest_keys.c */
void selftest_open(struct selftest_loop *loop);
void selftest_ksm_boundary(struct selftest_loop *loop);
void selftest_ksm_large(struct selftest_loop *loop);
void selftest_ksm_read_only(struct selftest_loop *loop);
void selftest_invalidation(struct selftest_loop *loop);

/* Of selftest_fence.c */
void selftest_messages(struct selftest_loop *loop);
void selftest_fence(struct selftest_loop *loop);

/* Of selftest_post.c */
void selftest_order(struct selftest_loop *loop);
void selftest_post_sizes(struct selftest_loop *loop);
void selftest_recovery(struct selftest_loop *loop);
void selftest_bandwidth(struct selftest_loop *loop);

/* Of selftest_layouts.c */
void selftest_list4(struct selftest_loop *loop);
void selftest_list20(struct selftest_loop *loop);
void selftest_lists(struct selftest_loop *loop);
void selftest_list53(struct selftest_loop *loop);
void selftest_list1024(struct selftest_loop *loop);
void selftest_inline52(struct selftest_loop *loop);
void selftest_strided(struct selftest_loop *loop);
void selftest_list_over(struct selftest_loop *loop);
void selftest_nests(struct selftest_loop *loop);
void selftest_depth(struct selftest_loop *loop);
void selftest_changes(struct selftest_loop *loop);
void selftest_local_inv(struct selftest_loop *loop);
void selftest_umr_cost(struct selftest_loop *loop);

/* Of selftest_tags.c */
void selftest_tm_eager(struct selftest_loop *loop);
void selftest_tm_rndv(struct selftest_loop *loop);
void selftest_tm_own_keys(struct selftest_loop *loop);
void selftest_tm_keys(struct selftest_loop *loop);
void selftest_tm_appends(struct selftest_loop *loop);

#endif
