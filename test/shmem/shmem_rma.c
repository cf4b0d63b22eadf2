/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Put and get: each size class, unaligned, strided, non-blocking, single
 * elements, static variables, contexts, wait_until, and the order that fence
 * and quiet guarantee.
 */
#include "test/shmem/check.h"

enum { MAX_LEN = 4 << 20 };

static char *target; /* symmetric */
static char *source; /* symmetric too, so that a get can read it */

static void alloc_buffers(void)
{
    target = need_symmetric(MAX_LEN + 64);
    source = need_symmetric(MAX_LEN + 64);
}

static void free_buffers(void)
{
    shmem_free(source);
    shmem_free(target);
}

/* One size: puts to the right neighbour, then gets the left one's source. */
static int put_get_len(size_t len, unsigned seed)
{
    char *local = malloc(len + 1);
    int errors  = 0;

    check_fill(source, len, pe + seed);
    memset(target, 0xee, len + 8);
    shmem_barrier_all();
    shmem_putmem(target, source, len, next_pe());
    shmem_barrier_all();
    errors += check_data("put", target, len, prev_pe() + seed);
    errors += check_value("byte after the put", (uint8_t)target[len], 0xee);
    local[len] = 0x5a;
    shmem_getmem(local, source, len, prev_pe());
    errors += check_data("get", local, len, prev_pe() + seed);
    errors += check_value("byte after the get", local[len], 0x5a);
    shmem_barrier_all();
    free(local);
    return errors;
}

static int rma_put_get(void)
{
    int errors = 0;

    alloc_buffers();
    for (unsigned i = 0; i < CHECK_NUM_SIZES; i++) {
        if ((check_sizes[i] > 0) && (check_sizes[i] <= MAX_LEN)) {
            errors += put_get_len(check_sizes[i], i);
        }
    }
    free_buffers();
    return errors;
}

/* Local memory is not symmetric, and both sides are misaligned by 1 to 7
 * bytes. */
static int rma_unaligned(void)
{
    enum { LEN = 3001 };
    char *local = malloc(LEN + 16);
    int errors  = 0;

    alloc_buffers();
    for (int shift = 1; shift < 8; shift++) {
        check_fill(local + shift, LEN, pe + shift);
        shmem_putmem(target + 8 - shift, local + shift, LEN, next_pe());
        shmem_barrier_all();
        errors += check_data("misaligned put", target + 8 - shift, LEN,
                             prev_pe() + shift);
        shmem_getmem(local + shift, target + 8 - shift, LEN, next_pe());
        errors += check_data("misaligned get", local + shift, LEN, pe + shift);
        shmem_barrier_all();
    }
    free_buffers();
    free(local);
    return errors;
}

/* Global and static variables are symmetric, too. */
static int static_word;
static long static_array[1000];

static int rma_static(void)
{
    long local[1000];
    int errors = 0;

    for (int i = 0; i < 1000; i++) {
        local[i] = pe * 1000 + i;
    }
    shmem_int_p(&static_word, 100 + pe, next_pe());
    shmem_long_put(static_array, local, 1000, next_pe());
    shmem_barrier_all();
    errors += check_value("static word", static_word, 100 + prev_pe());
    for (int i = 0; i < 1000; i++) {
        errors += check_value("static array", static_array[i],
                              prev_pe() * 1000 + i);
    }
    errors += check_value("g of static word",
                          shmem_int_g(&static_word, next_pe()), 100 + pe);
    shmem_barrier_all();
    return errors;
}

/* Every second element of the target, every third of the source */
static int rma_strided_put(void)
{
    enum { N = 500 };
    long *words   = need_symmetric(2 * N * sizeof(*words));
    short *shorts = need_symmetric(2 * N * sizeof(*shorts));
    long from[3 * N];
    short small[3 * N];
    int errors = 0;

    for (int i = 0; i < 3 * N; i++) {
        from[i]  = pe * 10000 + i;
        small[i] = pe * 2000 + i;
    }
    shmem_long_iput(words, from, 2, 3, N, next_pe());
    shmem_short_iput(shorts, small, 2, 3, N, next_pe());
    shmem_barrier_all();
    for (int i = 0; i < 2 * N; i++) {
        int there = i % 2 == 0;

        errors += check_value("iput of longs", words[i],
                              there ? prev_pe() * 10000 + i / 2 * 3 : 0);
        errors += check_value("iput of shorts", shorts[i],
                              there ? prev_pe() * 2000 + i / 2 * 3 : 0);
    }
    shmem_barrier_all();
    shmem_free(shorts);
    shmem_free(words);
    return errors;
}

static int rma_strided_get(void)
{
    enum { N = 300 };
    double *there = need_symmetric(4 * N * sizeof(*there));
    double here[2 * N];
    int errors = 0;

    for (int i = 0; i < 4 * N; i++) {
        there[i] = pe * 5000 + i;
    }
    for (int i = 0; i < 2 * N; i++) {
        here[i] = -1;
    }
    shmem_barrier_all();
    shmem_double_iget(here, there, 2, 4, N, next_pe());
    for (int i = 0; i < 2 * N; i++) {
        errors += check_value("iget of doubles", here[i],
                              (i % 2) ? -1 : next_pe() * 5000 + i / 2 * 4);
    }
    shmem_barrier_all();
    shmem_free(there);
    return errors;
}

/* Many non-blocking puts and gets at once; quiet completes the gets. */
static int rma_nonblocking(void)
{
    enum { COUNT = 300, LEN = 5000 };
    char *local = malloc(COUNT * LEN);
    int errors  = 0;

    alloc_buffers();
    check_fill(source, COUNT * LEN, pe);
    shmem_barrier_all();
    for (int i = 0; i < COUNT; i++) {
        shmem_putmem_nbi(target + i * LEN, source + i * LEN, LEN, next_pe());
        shmem_getmem_nbi(local + i * LEN, source + i * LEN, LEN, prev_pe());
    }
    shmem_quiet();
    errors += check_data("get_nbi", local, COUNT * LEN, prev_pe());
    shmem_barrier_all();
    errors += check_data("put_nbi", target, COUNT * LEN, prev_pe());
    free_buffers();
    free(local);
    return errors;
}

/* A flag put behind a fence arrives after the data before it. */
static int rma_fence(void)
{
    enum { ROUNDS = 200, LEN = 20000 };
    long *flag = need_symmetric(2 * sizeof(*flag));
    int errors = 0;

    alloc_buffers();
    for (int i = 1; i <= ROUNDS; i++) {
        int len = 1 + (i * 997) % LEN;

        check_fill(source, len, pe + i);
        shmem_putmem(target, source, len, next_pe());
        shmem_fence();
        shmem_long_p(&flag[0], i, next_pe());
        shmem_long_wait_until(&flag[0], SHMEM_CMP_EQ, i);
        errors += check_data("behind a fence", target, len, prev_pe() + i);
        /* the sender may continue when its receiver has checked */
        shmem_long_p(&flag[1], i, prev_pe());
        shmem_long_wait_until(&flag[1], SHMEM_CMP_GE, i);
    }
    free_buffers();
    shmem_barrier_all();
    shmem_free(flag);
    return errors;
}

/* Each comparison: test() returns 0 before it holds, and wait_until() returns
 * after the put of another PE. */
static int rma_wait_until(void)
{
    static const struct {
        int cmp, before, ref, after;
    } cases[] = {
        {SHMEM_CMP_EQ, 0, 5, 5}, {SHMEM_CMP_NE, 3, 3, 4},
        {SHMEM_CMP_GT, 0, 7, 8}, {SHMEM_CMP_GE, 0, 7, 7},
        {SHMEM_CMP_LT, 9, 9, 8}, {SHMEM_CMP_LE, 9, 8, 8},
    };
    int *word  = need_symmetric(sizeof(*word));
    int errors = 0;

    for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        *word = cases[i].before;
        errors += check_value("test too early",
                              shmem_int_test(word, cases[i].cmp, cases[i].ref),
                              0);
        shmem_barrier_all();
        shmem_int_p(word, cases[i].after, next_pe());
        shmem_int_wait_until(word, cases[i].cmp, cases[i].ref);
        errors += check_value("waited for", *word, cases[i].after);
        shmem_barrier_all();
    }
    shmem_free(word);
    return errors;
}

/* Puts on four contexts, each completed by its own quiet */
static int rma_contexts(void)
{
    enum { CTXS = 4 };
    long *words = need_symmetric(CTXS * sizeof(*words));
    shmem_ctx_t ctx[CTXS];
    int errors = 0, made = 0;

    while ((made < CTXS) && !shmem_ctx_create(0, &ctx[made])) {
        made++;
    }
    errors += check_value("contexts", made, CTXS);
    for (int i = 0; i < made; i++) {
        shmem_ctx_long_p(ctx[i], &words[i], pe * 100 + i, next_pe());
    }
    for (int i = 0; i < made; i++) {
        shmem_ctx_quiet(ctx[i]);
        shmem_ctx_destroy(ctx[i]);
    }
    shmem_barrier_all();
    for (int i = 0; i < made; i++) {
        errors += check_value("by context", words[i], prev_pe() * 100 + i);
    }
    shmem_barrier_all();
    shmem_free(words);
    return errors;
}

const struct check shmem_rma_checks[] = {
    {"rma_put_get", rma_put_get},
    {"rma_unaligned", rma_unaligned},
    {"rma_static", rma_static},
    {"rma_strided_put", rma_strided_put},
    {"rma_strided_get", rma_strided_get},
    {"rma_nonblocking", rma_nonblocking},
    {"rma_fence", rma_fence},
    {"rma_wait_until", rma_wait_until},
    {"rma_contexts", rma_contexts},
    {NULL, NULL},
};
