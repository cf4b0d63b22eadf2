/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Remembers the mkeys that were released last: a new mkey must not get one of
 * their numbers while a peer may still use it (mem/dcx_mkey.h). Used by mem/
 * and strided/, each with a ring and a lock of its own. Has no device, so that
 * tests need none.
 */
#ifndef UCT_DCX_STALE_H
#define UCT_DCX_STALE_H

#include <stdint.h>

enum { UCT_DCX_STALE_NUMBERS = 4096 };


/* A ring of numbers; all zero means empty, as no key has number 0. */
typedef struct uct_dcx_stale {
    uint32_t numbers[UCT_DCX_STALE_NUMBERS];
    unsigned next;
} uct_dcx_stale_t;


static inline void uct_dcx_stale_add(uct_dcx_stale_t *stale, uint32_t number)
{
    stale->numbers[stale->next] = number;
    stale->next                 = (stale->next + 1) % UCT_DCX_STALE_NUMBERS;
}


/* Returns non-zero if @number is among the last UCT_DCX_STALE_NUMBERS added.
 * Compares all of them: about 1 us, less than a command to the device. */
static inline int uct_dcx_stale_has(const uct_dcx_stale_t *stale,
                                    uint32_t number)
{
    int found = 0;
    unsigned i;

    for (i = 0; i < UCT_DCX_STALE_NUMBERS; ++i) {
        found |= (stale->numbers[i] == number);
    }
    return found;
}

#endif
