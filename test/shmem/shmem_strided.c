/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Strided put and get: every function, strides of both signs on both sides, few
 * elements and many, small strides and large, to a peer and to the PE itself.
 * Compares each byte, including those between the elements.
 */
#include "test/shmem/check.h"

enum { LEN = 1 << 20, HOLE = 0xee, USED = 0x11 };

typedef void (*strided_t)(void *dest, const void *source, ptrdiff_t dst,
                          ptrdiff_t sst, size_t nelems, int pe);
typedef void (*ctx_strided_t)(shmem_ctx_t ctx, void *dest, const void *source,
                              ptrdiff_t dst, ptrdiff_t sst, size_t nelems,
                              int pe);

static const struct kind {
    const char *name;
    size_t size;
    strided_t put, get;
    ctx_strided_t ctx_put, ctx_get;
} kinds[] = {
/* clang-format off */
#define KIND(_put, _get, _size) \
    {#_put, _size, (strided_t)shmem_##_put, (strided_t)shmem_##_get, \
     (ctx_strided_t)shmem_ctx_##_put, (ctx_strided_t)shmem_ctx_##_get}
#define KIND_TYPE(_name, _type) \
    KIND(_name##_iput, _name##_iget, sizeof(_type))
    KIND(iput8, iget8, 1), KIND(iput16, iget16, 2), KIND(iput32, iget32, 4),
    KIND(iput64, iget64, 8), KIND(iput128, iget128, 16),
    KIND_TYPE(char, char), KIND_TYPE(short, short), KIND_TYPE(int, int),
    KIND_TYPE(long, long), KIND_TYPE(longlong, long long),
    KIND_TYPE(schar, signed char), KIND_TYPE(uchar, unsigned char),
    KIND_TYPE(ushort, unsigned short), KIND_TYPE(uint, unsigned int),
    KIND_TYPE(ulong, unsigned long), KIND_TYPE(ulonglong, unsigned long long),
    KIND_TYPE(float, float), KIND_TYPE(double, double),
    KIND_TYPE(longdouble, long double), KIND_TYPE(int8, int8_t),
    KIND_TYPE(int16, int16_t), KIND_TYPE(int32, int32_t),
    KIND_TYPE(int64, int64_t), KIND_TYPE(uint8, uint8_t),
    KIND_TYPE(uint16, uint16_t), KIND_TYPE(uint32, uint32_t),
    KIND_TYPE(uint64, uint64_t), KIND_TYPE(size, size_t),
    KIND_TYPE(ptrdiff, ptrdiff_t)
};
/* clang-format on */

enum { NUM_SIZED = 5, NUM_KINDS = sizeof(kinds) / sizeof(kinds[0]) };

/* One call */
struct strided {
    const struct kind *kind;
    const shmem_ctx_t *ctx; /* NULL: call without a context */
    ptrdiff_t dst, sst;
    size_t nelems;
    int peer;
};

static uint8_t *there; /* symmetric */
static uint8_t *here;
static uint8_t *expected;

static void alloc_buffers(void)
{
    there    = need_symmetric(LEN);
    here     = malloc(LEN);
    expected = malloc(LEN);
}

static void free_buffers(void)
{
    free(expected);
    free(here);
    shmem_barrier_all();
    shmem_free(there);
}

/* Returns the place of an element: at least one byte behind the start of the
 * buffer, further if the stride is negative. */
static size_t place(const struct strided *call, ptrdiff_t stride, size_t i)
{
    size_t step = (size_t)labs(stride) * call->kind->size;

    return 1 + ((stride < 0) ? (call->nelems - 1 - i) : i) * step;
}

static size_t first(const struct strided *call, ptrdiff_t stride)
{
    return (call->nelems == 0) ? 1 : place(call, stride, 0);
}

/* Returns the number of bytes of a buffer that a call may access, and some
 * more. */
static size_t extent(const struct strided *call)
{
    size_t dst = labs(call->dst), sst = labs(call->sst);

    return 64 +
           (call->nelems + 1) * ((dst > sst) ? dst : sst) * call->kind->size;
}

static int compare(const char *what, const struct strided *call, int from,
                   const uint8_t *found)
{
    size_t len = extent(call);

    memset(expected, HOLE, len);
    for (size_t i = 0; i < call->nelems; i++) {
        for (size_t byte = 0; byte < call->kind->size; byte++) {
            expected[place(call, call->dst, i) + byte] =
                check_byte(from, place(call, call->sst, i) + byte);
        }
    }
    if (memcmp(expected, found, len) == 0) {
        return 0;
    }
    fprintf(stderr, "%s %s%s: %zu elements with strides %td, %td: wrong\n",
            call->kind->name, what, call->ctx ? " by a context" : "",
            call->nelems, call->dst, call->sst);
    return 1;
}

static void do_put(const struct strided *call)
{
    uint8_t *dest   = there + first(call, call->dst);
    uint8_t *source = here + first(call, call->sst);

    if (call->ctx != NULL) {
        call->kind->ctx_put(*call->ctx, dest, source, call->dst, call->sst,
                            call->nelems, call->peer);
    } else {
        call->kind->put(dest, source, call->dst, call->sst, call->nelems,
                        call->peer);
    }
}

static void do_get(const struct strided *call)
{
    uint8_t *dest   = here + first(call, call->dst);
    uint8_t *source = there + first(call, call->sst);

    if (call->ctx != NULL) {
        call->kind->ctx_get(*call->ctx, dest, source, call->dst, call->sst,
                            call->nelems, call->peer);
    } else {
        call->kind->get(dest, source, call->dst, call->sst, call->nelems,
                        call->peer);
    }
}

/* The source may change as soon as the call returns. */
static int put_once(const struct strided *call)
{
    int errors;

    memset(there, HOLE, extent(call));
    check_fill(here, extent(call), pe);
    shmem_barrier_all();
    do_put(call);
    memset(here, USED, extent(call));
    if (call->ctx != NULL) {
        shmem_ctx_quiet(*call->ctx);
    }
    shmem_barrier_all();
    errors = compare("from a PE", call, (call->peer == pe) ? pe : prev_pe(),
                     there);
    shmem_barrier_all();
    return errors;
}

/* The peer has the data of its number. It must be here when the call
 * returns. */
static int get_once(const struct strided *call)
{
    memset(here, HOLE, extent(call));
    do_get(call);
    return compare("to a PE", call, call->peer, here);
}

typedef int (*once_t)(const struct strided *call);

/* Makes the call to the neighbour, and to the PE itself. */
static int both_peers(struct strided *call, once_t once)
{
    int errors;

    call->peer = next_pe();
    errors     = once(call);
    call->peer = pe;
    return errors + once(call);
}

static int all_kinds(once_t once)
{
    static const ptrdiff_t strides[][2] = {{1, 1}, {1, 3}, {2, 1}, {3, 2}};
    shmem_ctx_t ctx                     = SHMEM_CTX_DEFAULT;
    int errors                          = 0;

    for (int i = 0; i < NUM_KINDS * 8; i++) {
        struct strided call = {&kinds[i / 8],
                               (i & 4) ? &ctx : NULL,
                               strides[i % 4][0],
                               strides[i % 4][1],
                               37,
                               0};

        errors += both_peers(&call, once);
    }
    return errors;
}

static int all_strides(once_t once)
{
    static const ptrdiff_t strides[] = {1, 2, 7, 32, 33, 300, -1, -5, -600};
    enum { NUM = sizeof(strides) / sizeof(strides[0]) };
    int errors = 0;

    for (int i = 0; i < NUM_SIZED * NUM * NUM; i++) {
        struct strided call = {
            &kinds[i / (NUM * NUM)], NULL,   strides[i / NUM % NUM],
            strides[i % NUM],        i % 23, 0};

        errors += both_peers(&call, once);
    }
    return errors;
}

/* More elements than any method transfers at once */
static int many_elements(once_t once)
{
    static const struct {
        ptrdiff_t dst, sst;
        size_t nelems;
    } shapes[] = {
        {1, 3, 60000}, {1, -2, 70000},  {2, -5, 30000}, {3, 1, 2000},
        {1, 70, 1500}, {-2, -400, 600}, {1, 1, 131071},
    };
    int errors = 0;

    for (unsigned i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        for (int kind = 1; kind < NUM_SIZED; kind++) {
            struct strided call = {&kinds[kind],     NULL,
                                   shapes[i].dst,    shapes[i].sst,
                                   shapes[i].nelems, 0};

            call.nelems = call.nelems * 2 / kinds[kind].size;
            errors += both_peers(&call, once);
        }
    }
    return errors;
}

static int run_all(int (*calls)(once_t once))
{
    int errors;

    alloc_buffers();
    errors = calls(put_once);
    check_fill(there, LEN, pe);
    shmem_barrier_all();
    errors += calls(get_once);
    free_buffers();
    return errors;
}

static int strided_kinds(void)
{
    return run_all(all_kinds);
}

static int strided_strides(void)
{
    return run_all(all_strides);
}

static int strided_many(void)
{
    return run_all(many_elements);
}

/* Contexts of all kinds: at the same time, each puts a column of the
 * neighbour's table and gets one of another table. */
static int strided_contexts(void)
{
    static const long options[] = {0, SHMEM_CTX_PRIVATE, SHMEM_CTX_SERIALIZED,
                                   SHMEM_CTX_NOSTORE};
    enum { NUM = 4, N = 700 };
    long *from = need_symmetric(NUM * N * sizeof(*from));
    long *to   = need_symmetric(NUM * N * sizeof(*to));
    shmem_ctx_t ctx[NUM];
    long column[N];
    int errors = 0;

    for (int i = 0; i < NUM * N; i++) {
        from[i] = pe * 10000 + i;
    }
    shmem_barrier_all();
    for (int c = 0; c < NUM; c++) {
        errors += check_value("context", shmem_ctx_create(options[c], &ctx[c]),
                              0);
        shmem_ctx_long_iput(ctx[c], to + c, from + c, NUM, NUM, N, next_pe());
    }
    for (int c = 0; c < NUM; c++) {
        shmem_ctx_long_iget(ctx[c], column, from + c, 1, NUM, N, prev_pe());
        for (int i = 0; i < N; i++) {
            errors += check_value("got by context", column[i],
                                  prev_pe() * 10000 + i * NUM + c);
        }
        shmem_ctx_quiet(ctx[c]);
        shmem_ctx_destroy(ctx[c]);
    }
    shmem_barrier_all();
    for (int i = 0; i < NUM * N; i++) {
        errors += check_value("put by context", to[i], prev_pe() * 10000 + i);
    }
    shmem_barrier_all();
    shmem_free(to);
    shmem_free(from);
    return errors;
}

/* A flag behind a fence arrives after the elements before it, contiguous or
 * not. */
static int strided_fence(void)
{
    enum { ROUNDS = 100, N = 3000 };
    int *target = need_symmetric(2 * N * sizeof(*target));
    long *flag  = need_symmetric(2 * sizeof(*flag));
    int source[3 * N];
    int errors = 0;

    for (int round = 1; round <= ROUNDS; round++) {
        int n      = 1 + round * 997 % N;
        int stride = 1 + (n < 100);

        for (int i = 0; i < 3 * n; i++) {
            source[i] = pe * 1000 + round + i;
        }
        shmem_int_iput(target, source, stride, 3, n, next_pe());
        shmem_fence();
        shmem_long_p(&flag[0], round, next_pe());
        shmem_long_wait_until(&flag[0], SHMEM_CMP_EQ, round);
        for (int i = 0; i < n; i++) {
            errors += check_value("behind a fence", target[i * stride],
                                  prev_pe() * 1000 + round + i * 3);
        }
        shmem_long_p(&flag[1], round, prev_pe());
        shmem_long_wait_until(&flag[1], SHMEM_CMP_GE, round);
    }
    shmem_barrier_all();
    shmem_free(flag);
    shmem_free(target);
    return errors;
}

const struct check shmem_strided_checks[] = {
    {"strided_kinds", strided_kinds}, {"strided_strides", strided_strides},
    {"strided_many", strided_many},   {"strided_contexts", strided_contexts},
    {"strided_fence", strided_fence}, {NULL, NULL},
};
