/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/* Random choices that are the same in each run with the same seed. */
#ifndef HCA_RANDOM_H
#define HCA_RANDOM_H

#include <stdint.h>

/* Returns 64 random bits for @number of the sequence of @seed: one step of
 * splitmix64. */
static inline uint64_t hca_random(uint32_t seed, uint64_t number)
{
    uint64_t z = ((uint64_t)seed << 32) + number;

    z = (z + 1) * 0x9e3779b97f4a7c15ull;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z;
}

#endif
