/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * A probe of dcx_selftest: tests one assumption of dcx about the device. It
 * runs in a process of its own (selftest_run.c), which it ends if it does not
 * pass. The parent process reads its standard output, and the logs of UCX and
 * dcx.
 */
#ifndef DCX_SELFTEST_H
#define DCX_SELFTEST_H

#include "selftest_loop.h"

/* The result of a probe: the exit status of its process */
enum selftest_result {
    SELFTEST_PASS    = 0,
    SELFTEST_FAIL    = 1,
    SELFTEST_REFUSED = 3, /* the device, or its driver, does not have it */
    SELFTEST_NOT_RUN = 4, /* the host or the peer prevented it: no result */
    SELFTEST_NUM     = 5
};

enum { SELFTEST_OPTIONS = 2 };

struct selftest_probe {
    const char *name;    /* key of its line in the profile */
    const char *proves;  /* for the report */
    const char *without; /* consequence for dcx if it fails */
    void (*run)(struct selftest_loop *loop);
    unsigned claims; /* bits 1 << UCT_DCX_PROFILE_*: features that pass in its
                      * profile, while all others fail; 0: no profile */
    const char *options[SELFTEST_OPTIONS]; /* "NAME=VALUE", or NULL */
    bool needs_peer;
};

/* Ends the process with SELFTEST_REFUSED if @status is an error. @what: the
 * feature that is missing */
void selftest_need(ucs_status_t status, const char *what);

/* Ends the process with SELFTEST_REFUSED, and prints a line. */
void selftest_refused(const char *format, ...)
    __attribute__((noreturn, format(printf, 1, 2)));

/* Ends the process with SELFTEST_NOT_RUN if @status is not UCS_OK: an error of
 * the host's memory gives no result. */
void selftest_need_memory(ucs_status_t status, const char *what);

/* Writes a line of the profile, such as ("umr_us_4", "%.2f", ...). It replaces
 * a line of the same key, and all lines behind that. */
void selftest_value(const char *key, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Writes a remark to the report. */
void selftest_note(const char *format, ...)
    __attribute__((format(printf, 1, 2)));

/* Calls that the target serves (selftest_peer.h), each a selftest_serve_t */
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

/* Probes in selftest_keys.c */
void selftest_open(struct selftest_loop *loop);
void selftest_ksm_boundary(struct selftest_loop *loop);
void selftest_ksm_large(struct selftest_loop *loop);
void selftest_ksm_read_only(struct selftest_loop *loop);
void selftest_invalidation(struct selftest_loop *loop);

/* Probes in selftest_fence.c */
void selftest_messages(struct selftest_loop *loop);
void selftest_fence(struct selftest_loop *loop);

/* Probes in selftest_post.c */
void selftest_order(struct selftest_loop *loop);
void selftest_post_sizes(struct selftest_loop *loop);
void selftest_recovery(struct selftest_loop *loop);
void selftest_bandwidth(struct selftest_loop *loop);

/* Probes in selftest_layouts.c */
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

/* Probes in selftest_tags.c */
void selftest_tm_eager(struct selftest_loop *loop);
void selftest_tm_rndv(struct selftest_loop *loop);
void selftest_tm_own_keys(struct selftest_loop *loop);
void selftest_tm_keys(struct selftest_loop *loop);
void selftest_tm_appends(struct selftest_loop *loop);

#endif
