/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Collectives over all PEs and over some of them, compared with values that
 * each PE computes itself. The work arrays that OpenSHMEM needs are in this
 * file; a barrier separates two uses of one.
 */
#include "test/shmem/check.h"

enum { MAX_COUNT = 20000 };

static const int coll_counts[] = {1, 3, 64, 1000, MAX_COUNT};

#define COLL_NUM_COUNTS (int)(sizeof(coll_counts) / sizeof(coll_counts[0]))

static long p_sync[SHMEM_ALLTOALLS_SYNC_SIZE + SHMEM_REDUCE_SYNC_SIZE +
                   SHMEM_BCAST_SYNC_SIZE + SHMEM_COLLECT_SYNC_SIZE];
static long p_work[MAX_COUNT / 2 + 1 + SHMEM_REDUCE_MIN_WRKDATA_SIZE];

static long *out; /* symmetric: MAX_COUNT for each PE */
static long *in;

static void coll_begin(void)
{
    for (size_t i = 0; i < sizeof(p_sync) / sizeof(p_sync[0]); i++) {
        p_sync[i] = SHMEM_SYNC_VALUE;
    }
    out = need_symmetric(pes * MAX_COUNT * sizeof(*out));
    in  = need_symmetric(pes * MAX_COUNT * sizeof(*in));
}

static void coll_end(void)
{
    shmem_barrier_all();
    shmem_free(in);
    shmem_free(out);
}

static long value(int from, int i)
{
    return from * 1000003L + i * 7;
}

static int check_from(const char *name, const long *buf, int from, int count)
{
    for (int i = 0; i < count; i++) {
        if (check_value(name, buf[i], value(from, i))) {
            return 1;
        }
    }
    return 0;
}

/* No PE leaves before the last one has entered: it has set its flag by then. */
static int coll_barrier(void)
{
    int *flags = need_symmetric(pes * sizeof(*flags));
    int errors = 0;

    for (int i = 1; i <= 100; i++) {
        for (int to = 0; to < pes; to++) {
            shmem_int_p(&flags[pe], i, to);
        }
        shmem_barrier_all();
        for (int from = 0; from < pes; from++) {
            errors += check_value("barrier", flags[from], i);
        }
        shmem_sync_all();
    }
    shmem_free(flags);
    return errors;
}

/* The root's own target must not change. */
static int coll_broadcast(void)
{
    int errors = 0;

    coll_begin();
    for (int i = 0; i < COLL_NUM_COUNTS; i++) {
        for (int root = 0; root < pes; root++) {
            int count = coll_counts[i];

            for (int j = 0; j < count; j++) {
                out[j] = value(pe, j);
                in[j]  = value(pes, j);
            }
            shmem_barrier_all();
            shmem_broadcast64(in, out, count, root, 0, 0, pes, p_sync);
            errors += check_from("broadcast", in, (pe == root) ? pes : root,
                                 count);
            shmem_barrier_all();
        }
    }
    coll_end();
    return errors;
}

/* fcollect: equal counts; collect: each PE adds one more than the PE before
 * it */
static int coll_collect(void)
{
    int errors = 0;

    coll_begin();
    for (int i = 0; i < COLL_NUM_COUNTS; i++) {
        int count = coll_counts[i] / 2 + 1, at = 0;

        for (int j = 0; j < count + pe; j++) {
            out[j] = value(pe, j);
        }
        shmem_barrier_all();
        shmem_fcollect64(in, out, count, 0, 0, pes, p_sync);
        for (int from = 0; from < pes; from++) {
            errors += check_from("fcollect", in + from * count, from, count);
        }
        shmem_barrier_all();
        shmem_collect64(in, out, count + pe, 0, 0, pes, p_sync);
        for (int from = 0; from < pes; from++) {
            errors += check_from("collect", in + at, from, count + from);
            at += count + from;
        }
        shmem_barrier_all();
    }
    coll_end();
    return errors;
}

static int coll_alltoall(void)
{
    int errors = 0;

    coll_begin();
    for (int i = 0; i < COLL_NUM_COUNTS; i++) {
        int count = coll_counts[i];

        for (int j = 0; j < pes * count; j++) {
            out[j] = value(pe * pes + j / count, j % count);
        }
        shmem_barrier_all();
        shmem_alltoall64(in, out, count, 0, 0, pes, p_sync);
        for (int from = 0; from < pes; from++) {
            errors += check_from("alltoall", in + from * count, from * pes + pe,
                                 count);
        }
        shmem_barrier_all();
    }
    coll_end();
    return errors;
}

/* Strided: every second word of the source to every third of the target */
static int coll_alltoalls(void)
{
    enum { COUNT = 500 };
    int errors = 0;

    coll_begin();
    for (int i = 0; i < pes * COUNT * 2; i++) {
        out[i] = value(pe * pes + i / (COUNT * 2), i % (COUNT * 2));
    }
    shmem_barrier_all();
    shmem_alltoalls64(in, out, 3, 2, COUNT, 0, 0, pes, p_sync);
    for (int i = 0; i < pes * COUNT * 3; i++) {
        int from = i / (COUNT * 3), at = i % (COUNT * 3);
        long want = (at % 3) ? 0 : value(from * pes + pe, at / 3 * 2);

        errors += check_value("alltoalls", in[i], want);
    }
    coll_end();
    return errors;
}

static int check_reduced(const char *name, int count, long (*want)(int i))
{
    for (int i = 0; i < count; i++) {
        if (check_value(name, in[i], want(i))) {
            return 1;
        }
    }
    return 0;
}

static long want_sum(int i)
{
    long sum = 0;

    for (int from = 0; from < pes; from++) {
        sum += value(from, i);
    }
    return sum;
}

static long want_max(int i)
{
    return value(pes - 1, i);
}
static long want_min(int i)
{
    return value(0, i);
}

static long want_xor(int i)
{
    long bits = 0;

    for (int from = 0; from < pes; from++) {
        bits ^= value(from, i);
    }
    return bits;
}

static const struct {
    const char *name;
    void (*run)(long *target, const long *source, int count, int start,
                int log_stride, int size, long *work, long *sync);
    long (*want)(int i);
} reductions[] = {
    {"sum", shmem_long_sum_to_all, want_sum},
    {"max", shmem_long_max_to_all, want_max},
    {"min", shmem_long_min_to_all, want_min},
    {"xor", shmem_long_xor_to_all, want_xor},
};

static int coll_reduce(void)
{
    int errors = 0;

    coll_begin();
    for (int i = 0; i < COLL_NUM_COUNTS; i++) {
        int count = coll_counts[i];

        for (int j = 0; j < count; j++) {
            out[j] = value(pe, j);
        }
        for (int j = 0; j < 4; j++) {
            memset(in, 0, count * sizeof(*in));
            shmem_barrier_all();
            reductions[j].run(in, out, count, 0, 0, pes, p_work, p_sync);
            errors += check_reduced(reductions[j].name, count,
                                    reductions[j].want);
            shmem_barrier_all();
        }
    }
    coll_end();
    return errors;
}

/* The even PEs alone: an active set with a stride of two */
static int coll_active_set(void)
{
    int evens = (pes + 1) / 2, errors = 0;

    coll_begin();
    for (int i = 0; i < 100; i++) {
        out[i] = value(pe, i);
        in[i]  = -1;
    }
    shmem_barrier_all();
    if (pe % 2 == 0) {
        shmem_fcollect64(in, out, 100, 0, 1, evens, p_sync);
        for (int from = 0; from < evens; from++) {
            errors += check_from("active set", in + from * 100, from * 2, 100);
        }
    } else {
        errors += check_value("not in the set", in[0], -1);
    }
    coll_end();
    return errors;
}

const struct check shmem_coll_checks[] = {
    {"coll_barrier", coll_barrier},       {"coll_broadcast", coll_broadcast},
    {"coll_collect", coll_collect},       {"coll_alltoall", coll_alltoall},
    {"coll_alltoalls", coll_alltoalls},   {"coll_reduce", coll_reduce},
    {"coll_active_set", coll_active_set}, {NULL, NULL},
};
