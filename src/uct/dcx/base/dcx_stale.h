/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The numbers of keys that were given up last, and must not come back: why, in
 * dcx_mkey.h. Knows nothing of a device; tests drive it as it is.
 */
#ifndef UCT_DCX_STALE_H
#define UCT_DCX_STALE_H

#include <stdint.h>

enum {
    UCT_DCX_STALE_NUMBERS = 4096
};


/* All zero is an empty one: no key has number 0. */
typedef struct uct_dcx_stale {
    uint32_t numbers[UCT_DCX_STALE_NUMBERS];
    unsigned next;
} uct_dcx_stale_t;


static inline void uct_dcx_stale_add(uct_dcx_stale_t *stale, uint32_t number)
{
    stale->numbers[stale->next] = number;
    stale->next                 = (stale->next + 1) % UCT_DCX_STALE_NUMBERS;
}


/* Looks at all of them: a microsecond, beside a command to the device */
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
