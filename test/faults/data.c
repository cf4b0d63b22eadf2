/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Payloads as in data.h: the id, then words of a multiplicative sequence whose
 * seed is the id.
 */
#include "data.h"

#include <stdio.h>
#include <string.h>

static uint64_t data_seed(struct data_id id)
{
    uint64_t seed;

    _Static_assert(sizeof(id) == sizeof(seed), "an id is one word");
    memcpy(&seed, &id, sizeof(seed));
    return seed;
}

/* Returns word @i of the payload. */
static uint64_t data_word(uint64_t seed, size_t i)
{
    uint64_t word = (seed + i + 1) * 0x9e3779b97f4a7c15;

    return (i == 0) ? seed : word ^ (word >> 29);
}

static size_t data_part(size_t length, size_t i)
{
    size_t rest = length - (i * sizeof(uint64_t));

    return (rest < sizeof(uint64_t)) ? rest : sizeof(uint64_t);
}

void data_fill(void *buffer, size_t length, struct data_id id)
{
    uint64_t seed = data_seed(id), word;

    for (size_t i = 0; i * sizeof(word) < length; i++) {
        word = data_word(seed, i);
        memcpy((char *)buffer + (i * sizeof(word)), &word,
               data_part(length, i));
    }
}

void data_spoil(void *buffer, size_t length)
{
    memset(buffer, 0xee, length);
}

int data_check(const char *what, const void *buffer, size_t length,
               struct data_id id)
{
    uint64_t seed = data_seed(id), word;
    struct data_id got;

    for (size_t i = 0; i * sizeof(word) < length; i++) {
        word = data_word(seed, i);
        if (memcmp((const char *)buffer + (i * sizeof(word)), &word,
                   data_part(length, i))) {
            memcpy(&got, buffer, sizeof(got));
            printf("WRONG: %s %u from %u to %u: wrong after byte %zu of %zu; "
                   "its id is %u from %u to %u\n",
                   what, id.sequence, id.from, id.to, i * sizeof(word), length,
                   got.sequence, got.from, got.to);
            return -1;
        }
    }
    return 0;
}
