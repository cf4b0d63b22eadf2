/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Methods to transfer the bytes of a case from one process to the other. The
 * near process runs them. A run ends when the near process knows that the bytes
 * are in their place.
 */
#ifndef DCX_PERF_METHOD_H
#define DCX_PERF_METHOD_H

#include "perf_call.h"
#include "perf_clock.h"

struct perf_bench {
    struct perf_uct *uct;
    struct perf_case what;
    struct perf_mem mem;      /* near */
    struct perf_shape far;    /* the shape of the other side */
    struct perf_keys keys;    /* the far side's addresses and packed keys */
    uct_rkey_bundle_t buffer; /* of the far side, as the next two */
    uct_rkey_bundle_t staging;
    uct_rkey_bundle_t layout;
    uct_iov_t *iov; /* the near buffer as strides, for PERF_IOV */
    size_t num_iov;
    uct_completion_t comp; /* counts outstanding operations, plus one */
    bool is_refused;       /* dcx refused an operation */
    unsigned window;       /* transfers of a run */
    struct perf_cpu cpu;
    int64_t far_cpu_ns; /* of copies by the far process, added up */
};

/* Returns true if the method exists for the case. */
bool perf_method_is_there(const struct perf_bench *bench,
                          enum perf_method method);

/* Makes a window of transfers by a method. @return false if dcx refused one. */
bool perf_method_run(struct perf_bench *bench, enum perf_method method);

/* Sets iov and num_iov to the near buffer as strides; the caller frees iov. */
void perf_method_strides(struct perf_bench *bench);

#endif
