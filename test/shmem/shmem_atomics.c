/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Atomics of 32 and 64 bits: each operation alone, compared with its expected
 * result, then all PEs on one word at once, and locks.
 */
#include "test/shmem/check.h"

typedef uint64_t (*amo_run_t)(void *addr, uint64_t value, int to);
typedef uint64_t (*amo_apply_t)(uint64_t old, uint64_t value);

/* Initial value and operand of the tests of one operation */
static const uint64_t amo_start = 0xf0f0123456789abcull;
static const uint64_t amo_value = 0x00ff8765fedcba98ull;

static uint64_t apply_add(uint64_t old, uint64_t value)
{
    return old + value;
}
static uint64_t apply_inc(uint64_t old, uint64_t value)
{
    (void)value;
    return old + 1;
}
static uint64_t apply_and(uint64_t old, uint64_t value)
{
    return old & value;
}
static uint64_t apply_or(uint64_t old, uint64_t value)
{
    return old | value;
}
static uint64_t apply_xor(uint64_t old, uint64_t value)
{
    return old ^ value;
}
static uint64_t apply_set(uint64_t old, uint64_t value)
{
    (void)old;
    return value;
}
static uint64_t apply_keep(uint64_t old, uint64_t value)
{
    (void)value;
    return old;
}

/* The operations in one form; those without a fetch return the initial value */
static uint64_t add32(void *addr, uint64_t value, int to)
{
    shmem_int_atomic_add(addr, value, to);
    return amo_start;
}
static uint64_t add64(void *addr, uint64_t value, int to)
{
    shmem_long_atomic_add(addr, value, to);
    return amo_start;
}
static uint64_t inc32(void *addr, uint64_t value, int to)
{
    (void)value;
    shmem_int_atomic_inc(addr, to);
    return amo_start;
}
static uint64_t inc64(void *addr, uint64_t value, int to)
{
    (void)value;
    shmem_long_atomic_inc(addr, to);
    return amo_start;
}
static uint64_t and32(void *addr, uint64_t value, int to)
{
    shmem_uint32_atomic_and(addr, value, to);
    return amo_start;
}
static uint64_t and64(void *addr, uint64_t value, int to)
{
    shmem_uint64_atomic_and(addr, value, to);
    return amo_start;
}
static uint64_t or32(void *addr, uint64_t value, int to)
{
    shmem_uint32_atomic_or(addr, value, to);
    return amo_start;
}
static uint64_t or64(void *addr, uint64_t value, int to)
{
    shmem_uint64_atomic_or(addr, value, to);
    return amo_start;
}
static uint64_t xor32(void *addr, uint64_t value, int to)
{
    shmem_uint32_atomic_xor(addr, value, to);
    return amo_start;
}
static uint64_t xor64(void *addr, uint64_t value, int to)
{
    shmem_uint64_atomic_xor(addr, value, to);
    return amo_start;
}
static uint64_t set32(void *addr, uint64_t value, int to)
{
    shmem_int_atomic_set(addr, value, to);
    return amo_start;
}
static uint64_t set64(void *addr, uint64_t value, int to)
{
    shmem_long_atomic_set(addr, value, to);
    return amo_start;
}
static uint64_t fetch_add32(void *addr, uint64_t value, int to)
{
    return shmem_int_atomic_fetch_add(addr, value, to);
}
static uint64_t fetch_add64(void *addr, uint64_t value, int to)
{
    return shmem_long_atomic_fetch_add(addr, value, to);
}
static uint64_t fetch_inc32(void *addr, uint64_t value, int to)
{
    (void)value;
    return shmem_int_atomic_fetch_inc(addr, to);
}
static uint64_t fetch_inc64(void *addr, uint64_t value, int to)
{
    (void)value;
    return shmem_long_atomic_fetch_inc(addr, to);
}
static uint64_t fetch_and32(void *addr, uint64_t value, int to)
{
    return shmem_uint32_atomic_fetch_and(addr, value, to);
}
static uint64_t fetch_and64(void *addr, uint64_t value, int to)
{
    return shmem_uint64_atomic_fetch_and(addr, value, to);
}
static uint64_t fetch_or32(void *addr, uint64_t value, int to)
{
    return shmem_uint32_atomic_fetch_or(addr, value, to);
}
static uint64_t fetch_or64(void *addr, uint64_t value, int to)
{
    return shmem_uint64_atomic_fetch_or(addr, value, to);
}
static uint64_t fetch_xor32(void *addr, uint64_t value, int to)
{
    return shmem_uint32_atomic_fetch_xor(addr, value, to);
}
static uint64_t fetch_xor64(void *addr, uint64_t value, int to)
{
    return shmem_uint64_atomic_fetch_xor(addr, value, to);
}
static uint64_t fetch32(void *addr, uint64_t value, int to)
{
    (void)value;
    return shmem_int_atomic_fetch(addr, to);
}
static uint64_t fetch64(void *addr, uint64_t value, int to)
{
    (void)value;
    return shmem_long_atomic_fetch(addr, to);
}
static uint64_t swap32(void *addr, uint64_t value, int to)
{
    return shmem_int_atomic_swap(addr, value, to);
}
static uint64_t swap64(void *addr, uint64_t value, int to)
{
    return shmem_long_atomic_swap(addr, value, to);
}
static uint64_t cswap64(void *addr, uint64_t value, int to)
{
    return shmem_long_atomic_compare_swap(addr, amo_start, value, to);
}
static uint64_t cswap_miss64(void *addr, uint64_t value, int to)
{
    return shmem_long_atomic_compare_swap(addr, amo_start + 1, value, to);
}

/*
 * Leaves out the 32-bit compare_swap of Open MPI before 4.1.5: it writes 8
 * bytes into a variable of 4 on its stack, which ends the process (its issue
 * 11257). MPI_Compare_and_swap and ucx_perftest use the same operation.
 */
static const struct amo {
    const char *name;
    amo_run_t run[2]; /* 32 and 64 bits, or NULL */
    amo_apply_t apply;
} amos[] = {
    {"add", {add32, add64}, apply_add},
    {"inc", {inc32, inc64}, apply_inc},
    {"and", {and32, and64}, apply_and},
    {"or", {or32, or64}, apply_or},
    {"xor", {xor32, xor64}, apply_xor},
    {"set", {set32, set64}, apply_set},
    {"fetch_add", {fetch_add32, fetch_add64}, apply_add},
    {"fetch_inc", {fetch_inc32, fetch_inc64}, apply_inc},
    {"fetch_and", {fetch_and32, fetch_and64}, apply_and},
    {"fetch_or", {fetch_or32, fetch_or64}, apply_or},
    {"fetch_xor", {fetch_xor32, fetch_xor64}, apply_xor},
    {"fetch", {fetch32, fetch64}, apply_keep},
    {"swap", {swap32, swap64}, apply_set},
    {"cswap", {NULL, cswap64}, apply_set},
    {"cswap that misses", {NULL, cswap_miss64}, apply_keep},
};

/* Applies the operation to words[1]; the 4 or 8 bytes around it must not
 * change. */
static int amo_alone(const struct amo *amo, int wide, char *words)
{
    size_t size   = wide ? 8 : 4;
    uint64_t mask = wide ? ~0ull : 0xffffffffull;
    uint64_t now = 0, want, old, guard = ~0ull;
    int errors = 0;

    memset(words, 0xff, 3 * size);
    memcpy(words + size, &amo_start, size);
    shmem_barrier_all();
    old = amo->run[wide](words + size, amo_value, next_pe());
    shmem_barrier_all();
    memcpy(&now, words + size, size);
    want = amo->apply(amo_start, amo_value) & mask;
    errors += check_value(amo->name, now, want);
    errors += check_value(amo->name, old & mask, amo_start & mask);
    errors += memcmp(words, &guard, size) != 0;
    errors += memcmp(words + 2 * size, &guard, size) != 0;
    shmem_barrier_all();
    return errors;
}

static int atomic_each(void)
{
    char *words = need_symmetric(64);
    int errors  = 0;

    for (unsigned i = 0; i < sizeof(amos) / sizeof(amos[0]); i++) {
        if (amos[i].run[0] != NULL) {
            errors += amo_alone(&amos[i], 0, words);
        }
        errors += amo_alone(&amos[i], 1, words);
    }
    shmem_free(words);
    return errors;
}

/* Checks set, fetch and swap of floating point. */
static int atomic_floating(void)
{
    double *wide = need_symmetric(sizeof(*wide));
    float *small = need_symmetric(sizeof(*small));
    int errors   = 0;

    shmem_double_atomic_set(wide, pe + 0.5, next_pe());
    shmem_float_atomic_set(small, pe + 0.25f, next_pe());
    shmem_barrier_all();
    errors += shmem_double_atomic_fetch(wide, next_pe()) != pe + 0.5;
    errors += shmem_float_atomic_fetch(small, next_pe()) != pe + 0.25f;
    shmem_barrier_all();
    errors += shmem_double_atomic_swap(wide, 7.5, next_pe()) != pe + 0.5;
    errors += shmem_float_atomic_swap(small, 8.5f, next_pe()) != pe + 0.25f;
    shmem_barrier_all();
    errors += (*wide != 7.5) + (*small != 8.5f);
    shmem_barrier_all();
    shmem_free(small);
    shmem_free(wide);
    return errors;
}

/* Takes tickets from one counter: each PE sees them rise, and none twice. */
static int atomic_tickets(void)
{
    enum { ROUNDS = 1000 };
    long *sums = need_symmetric(2 * sizeof(*sums));
    int *small = need_symmetric(sizeof(*small));
    long last = -1, count = (long)ROUNDS * pes;
    int errors = 0;

    for (int i = 0; i < ROUNDS; i++) {
        long ticket = shmem_long_atomic_fetch_inc(&sums[0], 0);

        errors += ticket <= last;
        last = ticket;
        shmem_long_atomic_add(&sums[1], ticket, 0);
        shmem_int_atomic_inc(small, 0);
    }
    shmem_barrier_all();
    if (pe == 0) {
        errors += check_value("counter", sums[0], count);
        errors += check_value("tickets", sums[1], count * (count - 1) / 2);
        errors += check_value("small counter", *small, count);
    }
    shmem_barrier_all();
    shmem_free(small);
    shmem_free(sums);
    return errors;
}

/* Each PE owns one bit of a word that all PEs change. */
static int atomic_bits(void)
{
    enum { ROUNDS = 301 };
    uint64_t *word  = need_symmetric(sizeof(*word));
    uint32_t *small = need_symmetric(sizeof(*small));
    uint64_t bit    = 1ull << (pe + 31); /* on both sides of the middle */
    uint32_t mine   = 1u << pe;
    int errors      = 0;

    for (int i = 0; i < ROUNDS; i++) {
        uint64_t old = shmem_uint64_atomic_fetch_xor(word, bit, 0);

        errors += !!(old & bit) != i % 2;
        shmem_uint32_atomic_or(small, mine, 0);
        shmem_fence(); /* otherwise the fetch may overtake it */
        errors += !(shmem_uint32_atomic_fetch_and(small, ~mine, 0) & mine);
    }
    shmem_barrier_all();
    if (pe == 0) {
        errors += check_value("bits", *word, ((1ull << pes) - 1) << 31);
        errors += check_value("small bits", *small, 0);
    }
    shmem_barrier_all();
    shmem_free(small);
    shmem_free(word);
    return errors;
}

/* Counts with compare-and-swap alone. */
static int atomic_cswap_loop(void)
{
    enum { ROUNDS = 200 };
    long *word = need_symmetric(sizeof(*word));
    int errors = 0;

    for (int i = 0; i < ROUNDS; i++) {
        long seen = 0, got = 0;

        do {
            seen = got;
            got  = shmem_long_atomic_compare_swap(word, seen, seen + 1, 0);
        } while (got != seen);
    }
    shmem_barrier_all();
    if (pe == 0) {
        errors += check_value("cswap counter", *word, (long)ROUNDS * pes);
    }
    shmem_barrier_all();
    shmem_free(word);
    return errors;
}

/* Each PE increments a counter under a lock: it reads, then writes. */
static int atomic_locks(void)
{
    enum { ROUNDS = 50 };
    long *lock  = need_symmetric(sizeof(*lock));
    long *count = need_symmetric(sizeof(*count));
    int errors  = 0;

    for (int i = 0; i < ROUNDS; i++) {
        if (i % 2) {
            shmem_set_lock(lock);
        } else {
            while (shmem_test_lock(lock)) {
            }
        }
        shmem_long_p(count, shmem_long_g(count, 0) + 1, 0);
        shmem_quiet();
        shmem_clear_lock(lock);
    }
    shmem_barrier_all();
    errors += check_value("count under lock", shmem_long_g(count, 0),
                          (long)ROUNDS * pes);
    shmem_barrier_all();
    shmem_free(count);
    shmem_free(lock);
    return errors;
}

const struct check shmem_atomics_checks[] = {
    {"atomic_each", atomic_each},
    {"atomic_floating", atomic_floating},
    {"atomic_tickets", atomic_tickets},
    {"atomic_bits", atomic_bits},
    {"atomic_cswap_loop", atomic_cswap_loop},
    {"atomic_locks", atomic_locks},
    {NULL, NULL},
};
