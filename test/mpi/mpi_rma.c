/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * One-sided MPI: put, get and the atomic operations with each kind of
 * synchronisation (fence, post/start, lock, lock_all), on windows of each kind.
 */
#include "test/mpi/check.h"

enum { WORDS = 1 << 17 }; /* words of a window: 1 MiB */

struct win {
    MPI_Win win;
    int64_t *mem;
};

static void win_create(struct win *win)
{
    MPI_Win_allocate(WORDS * sizeof(int64_t), sizeof(int64_t), MPI_INFO_NULL,
                     MPI_COMM_WORLD, &win->mem, &win->win);
    memset(win->mem, 0, WORDS * sizeof(int64_t));
    MPI_Barrier(MPI_COMM_WORLD);
}

static void win_free(struct win *win)
{
    MPI_Win_free(&win->win);
}

/* Sizes of put and get in words, up to the whole window */
static const int rma_words[] = {1,   2,    7,    8,    9,     31,    32,   100,
                                512, 1024, 1025, 4096, 20000, 65536, WORDS};

#define RMA_NUM_WORDS (int)(sizeof(rma_words) / sizeof(rma_words[0]))

static int rma_fence(void)
{
    int64_t *out = need(WORDS * sizeof(int64_t));
    int64_t *in  = need(WORDS * sizeof(int64_t));
    int errors   = 0;
    struct win win;

    win_create(&win);
    for (int i = 0; i < RMA_NUM_WORDS; i++) {
        size_t len = rma_words[i] * sizeof(int64_t);

        check_fill(out, len, rank + i);
        memset(in, 0, len);
        MPI_Win_fence(0, win.win);
        MPI_Put(out, len, MPI_BYTE, next_rank(), 0, len, MPI_BYTE, win.win);
        MPI_Win_fence(0, win.win);
        errors += check_data("put", win.mem, len, prev_rank() + i);
        MPI_Get(in, len, MPI_BYTE, prev_rank(), 0, len, MPI_BYTE, win.win);
        MPI_Win_fence(0, win.win);
        errors += check_data("get", in, len,
                             (prev_rank() + ranks - 1) % ranks + i);
    }
    win_free(&win);
    free(in);
    free(out);
    return errors;
}

/* A window over memory of the program, with odd sizes and odd displacements */
static int rma_created(void)
{
    enum { LEN = 5000 };
    char *mem = need(LEN + 100), *out = need(LEN);
    int errors = 0;
    MPI_Win win;

    MPI_Win_create(mem, LEN + 100, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    for (int len = 1; len <= LEN; len = len * 3 + 1) {
        memset(mem, 0xee, LEN + 100);
        check_fill(out, len, rank);
        MPI_Win_fence(0, win);
        MPI_Put(out, len, MPI_BYTE, next_rank(), 13, len, MPI_BYTE, win);
        MPI_Win_fence(0, win);
        errors += check_data("put at 13", mem + 13, len, prev_rank());
        errors += check_value("before", (uint8_t)mem[12], 0xee);
        errors += check_value("behind", (uint8_t)mem[13 + len], 0xee);
    }
    MPI_Win_free(&win);
    free(out);
    free(mem);
    return errors;
}

/* Each rank exposes its window to the left neighbour, and accesses the right
 * one's. */
static int rma_pscw(void)
{
    enum { ROUNDS = 50, LEN = 1000 };
    int next = next_rank(), prev = prev_rank(), errors = 0;
    MPI_Group world, left, right;
    int64_t out[LEN];
    struct win win;

    win_create(&win);
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, 1, &prev, &left);
    MPI_Group_incl(world, 1, &next, &right);
    for (int i = 0; i < ROUNDS; i++) {
        check_fill(out, sizeof(out), rank + i);
        MPI_Win_post(left, 0, win.win);
        MPI_Win_start(right, 0, win.win);
        MPI_Put(out, LEN, MPI_INT64_T, next, 5, LEN, MPI_INT64_T, win.win);
        MPI_Win_complete(win.win);
        MPI_Win_wait(win.win);
        errors += check_data("pscw", win.mem + 5, sizeof(out), prev + i);
    }
    MPI_Group_free(&right);
    MPI_Group_free(&left);
    MPI_Group_free(&world);
    win_free(&win);
    return errors;
}

/* Reads, adds one and writes back under an exclusive lock: no addition is
 * lost. */
static int rma_lock(void)
{
    enum { ROUNDS = 100 };
    int errors = 0;
    int64_t value;
    struct win win;

    win_create(&win);
    for (int i = 0; i < ROUNDS; i++) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win.win);
        MPI_Get(&value, 1, MPI_INT64_T, 0, 3, 1, MPI_INT64_T, win.win);
        MPI_Win_flush(0, win.win);
        value++;
        MPI_Put(&value, 1, MPI_INT64_T, 0, 3, 1, MPI_INT64_T, win.win);
        MPI_Win_unlock(0, win.win);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win.win);
    MPI_Get(&value, 1, MPI_INT64_T, 0, 3, 1, MPI_INT64_T, win.win);
    MPI_Win_unlock(0, win.win);
    errors += check_value("count under lock", value, ROUNDS * ranks);
    win_free(&win);
    return errors;
}

/* lock_all with flush and flush_local; request-based put and get */
static int rma_lock_all(void)
{
    enum { LEN = 40000 };
    int64_t *out = need(LEN * sizeof(*out)), *in = need(LEN * sizeof(*in));
    size_t bytes = LEN * sizeof(int64_t);
    MPI_Request req;
    struct win win;
    int errors = 0;

    win_create(&win);
    check_fill(out, bytes, rank);
    MPI_Win_lock_all(0, win.win);
    MPI_Rput(out, LEN, MPI_INT64_T, next_rank(), 1, LEN, MPI_INT64_T, win.win,
             &req);
    MPI_Wait(&req, MPI_STATUS_IGNORE);
    MPI_Win_flush(next_rank(), win.win);
    memset(in, 0, bytes);
    MPI_Rget(in, LEN, MPI_INT64_T, next_rank(), 1, LEN, MPI_INT64_T, win.win,
             &req);
    MPI_Wait(&req, MPI_STATUS_IGNORE);
    errors += check_data("rget", in, bytes, rank);
    MPI_Put(out, 1, MPI_INT64_T, next_rank(), 0, 1, MPI_INT64_T, win.win);
    MPI_Win_flush_local_all(win.win);
    out[0] = 0; /* the buffer may be reused */
    MPI_Win_unlock_all(win.win);
    MPI_Barrier(MPI_COMM_WORLD);
    errors += check_data("put", win.mem, sizeof(int64_t), prev_rank());
    win_free(&win);
    free(in);
    free(out);
    return errors;
}

/* All ranks draw numbers from one counter: each number is drawn once. */
static int rma_fetch_and_op(void)
{
    enum { ROUNDS = 500 };
    int64_t one = 1, got, last = -1, sum = 0, total, count;
    int errors = 0;
    struct win win;

    win_create(&win);
    count = (int64_t)ROUNDS * ranks;
    MPI_Win_lock_all(0, win.win);
    for (int i = 0; i < ROUNDS; i++) {
        MPI_Fetch_and_op(&one, &got, MPI_INT64_T, 0, 0, MPI_SUM, win.win);
        MPI_Win_flush(0, win.win);
        errors += check_value("rises", got > last, 1);
        last = got;
        sum += got;
    }
    MPI_Win_unlock_all(win.win);
    MPI_Allreduce(&sum, &total, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    errors += check_value("sum of tickets", total, count * (count - 1) / 2);
    if (rank == 0) {
        errors += check_value("counter", win.mem[0], count);
    }
    win_free(&win);
    return errors;
}

/* Counts by compare-and-swap alone, in both word sizes. */
static int cas_counter(MPI_Datatype type, size_t size, int at)
{
    enum { ROUNDS = 100 };
    int errors = 0;
    struct win win;

    win_create(&win);
    MPI_Win_lock_all(0, win.win);
    for (int i = 0; i < ROUNDS; i++) {
        int64_t seen, want, got = 0;

        do {
            seen = got;
            want = 0;
            memcpy(&want, &(int64_t){seen + 1}, size);
            MPI_Compare_and_swap(&want, &seen, &got, type, 0, at, win.win);
            MPI_Win_flush(0, win.win);
        } while (got != seen);
    }
    MPI_Win_unlock_all(win.win);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        errors += check_value("cas counter", win.mem[at], ROUNDS * ranks);
    }
    win_free(&win);
    return errors;
}

static int rma_compare_and_swap(void)
{
    return cas_counter(MPI_INT64_T, 8, 2) + cas_counter(MPI_INT32_T, 4, 9);
}

struct rma_op {
    const char *name;
    MPI_Op op;
    int64_t start, mine, want; /* the rank adds to 'mine' */
};

/* Accumulates from all ranks to all ranks; each operation has its own start
 * value. */
static int rma_accumulate(void)
{
    enum { LEN = 300 };
    int n = ranks, errors = 0;
    struct rma_op ops[] = {
        {"sum", MPI_SUM, 5, rank + 1, 5 + n * (n + 1) / 2},
        {"max", MPI_MAX, 0, rank + 1, n},
        {"min", MPI_MIN, 99, rank + 1, 1},
        {"band", MPI_BAND, 0xff, ~(int64_t)(1 << rank), 0xff & ~((1 << n) - 1)},
        {"bor", MPI_BOR, 0, (int64_t)1 << rank, (1 << n) - 1},
        {"bxor", MPI_BXOR, 0xff, (int64_t)1 << rank, 0xff ^ ((1 << n) - 1)},
        {"replace", MPI_REPLACE, 1, 42, 42},
    };
    int64_t out[LEN];
    struct win win;

    win_create(&win);
    for (unsigned i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
        for (int j = 0; j < LEN; j++) {
            win.mem[j] = ops[i].start;
            out[j]     = ops[i].mine;
        }
        MPI_Win_fence(0, win.win);
        for (int to = 0; to < n; to++) {
            MPI_Accumulate(out, LEN, MPI_INT64_T, to, 0, LEN, MPI_INT64_T,
                           ops[i].op, win.win);
        }
        MPI_Win_fence(0, win.win);
        for (int j = 0; j < LEN; j++) {
            errors += check_value(ops[i].name, win.mem[j], ops[i].want);
        }
    }
    win_free(&win);
    return errors;
}

/* Sums of doubles that are exact, and the previous values that get_accumulate
 * returns */
static int rma_get_accumulate(void)
{
    double one = 1, got = -1, *mem;
    int errors = 0, none;
    struct win win;

    win_create(&win);
    mem = (void *)win.mem;
    MPI_Win_lock_all(0, win.win);
    MPI_Get_accumulate(&one, 1, MPI_DOUBLE, &got, 1, MPI_DOUBLE, 0, 0, 1,
                       MPI_DOUBLE, MPI_SUM, win.win);
    MPI_Win_flush(0, win.win);
    errors += check_value("in range", (got >= 0) && (got < ranks), 1);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Get_accumulate(&none, 0, MPI_INT, &got, 1, MPI_DOUBLE, 0, 0, 1,
                       MPI_DOUBLE, MPI_NO_OP, win.win);
    MPI_Win_flush(0, win.win);
    errors += check_value("get_accumulate", got, ranks);
    MPI_Win_unlock_all(win.win);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        errors += check_value("sum of doubles", mem[0], ranks);
    }
    win_free(&win);
    return errors;
}

/* A row of the origin becomes a column of the target. */
static int rma_strided(void)
{
    enum { N = 200 };
    int64_t out[N], in[N];
    MPI_Datatype column;
    int errors = 0;
    struct win win;

    win_create(&win);
    MPI_Type_vector(N, 1, N, MPI_INT64_T, &column);
    MPI_Type_commit(&column);
    for (int i = 0; i < N; i++) {
        out[i] = rank * N + i;
    }
    MPI_Win_fence(0, win.win);
    MPI_Put(out, N, MPI_INT64_T, next_rank(), 3, 1, column, win.win);
    MPI_Win_fence(0, win.win);
    for (int i = 0; i < N * N; i++) {
        errors += check_value("strided put", win.mem[i],
                              (i % N == 3) ? prev_rank() * N + i / N : 0);
    }
    MPI_Get(in, N, MPI_INT64_T, next_rank(), 3, 1, column, win.win);
    MPI_Win_fence(0, win.win);
    for (int i = 0; i < N; i++) {
        errors += check_value("strided get", in[i], out[i]);
    }
    MPI_Type_free(&column);
    win_free(&win);
    return errors;
}

const struct check mpi_rma_checks[] = {
    {"rma_fence", rma_fence},
    {"rma_created", rma_created},
    {"rma_pscw", rma_pscw},
    {"rma_lock", rma_lock},
    {"rma_lock_all", rma_lock_all},
    {"rma_fetch_and_op", rma_fetch_and_op},
    {"rma_compare_and_swap", rma_compare_and_swap},
    {"rma_accumulate", rma_accumulate},
    {"rma_get_accumulate", rma_get_accumulate},
    {"rma_strided", rma_strided},
    {NULL, NULL},
};
