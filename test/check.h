/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Checks of the job programs in test/mpi and test/shmem. A check is a named
 * function that returns the number of wrong values. Data is a pattern of a seed
 * and the position, so that misplaced data is seen.
 */
#ifndef DCX_TEST_CHECK_H
#define DCX_TEST_CHECK_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct check {
    const char *name;
    int (*run)(void); /* collective; returns the number of errors found on this
                       * rank */
};

/* Sizes at which transports change their protocol, and around them */
static const size_t check_sizes[] = {
    0,      1,      2,      3,      4,       7,       8,       9,       15,
    16,     17,     31,     32,     63,      64,      65,      100,     127,
    128,    200,    255,    256,    257,     511,     512,     1000,    1023,
    1024,   2047,   2048,   2049,   4095,    4096,    4097,    8000,    8191,
    8192,   8193,   8256,   16384,  20000,   32768,   65535,   65536,   65537,
    131072, 262144, 500000, 524288, 1048576, 1048577, 2097152, 4194304, 8388608,
};

#define CHECK_NUM_SIZES (sizeof(check_sizes) / sizeof(check_sizes[0]))
#define CHECK_MAX_SIZE  8388608u

static inline uint8_t check_byte(unsigned seed, size_t i)
{
    return (uint8_t)((seed * 37u) + (i * 7u) + ((i >> 8) * 13u) + (i >> 16));
}

static inline void check_fill(void *buf, size_t len, unsigned seed)
{
    uint8_t *bytes = buf;

    for (size_t i = 0; i < len; i++) {
        bytes[i] = check_byte(seed, i);
    }
}

/* Returns 1 and prints the first difference if buf is not what check_fill()
 * wrote. */
static inline int check_data(const char *what, const void *buf, size_t len,
                             unsigned seed)
{
    const uint8_t *bytes = buf;

    for (size_t i = 0; i < len; i++) {
        if (bytes[i] != check_byte(seed, i)) {
            fprintf(stderr, "%s: byte %zu of %zu is 0x%02x instead of 0x%02x\n",
                    what, i, len, bytes[i], check_byte(seed, i));
            return 1;
        }
    }
    return 0;
}

/* Prints both values and returns 1 if they differ. */
static inline int check_value(const char *what, long long got, long long want)
{
    if (got != want) {
        fprintf(stderr, "%s: is %lld instead of %lld\n", what, got, want);
    }
    return got != want;
}

#endif
