/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Device memory.
 */
#ifndef UVERBS_DM_H
#define UVERBS_DM_H

#include "uverbs.h"

struct uverbs_dm {
    struct uverbs_obj obj;
    void             *mem;    /* in the arena */
    size_t            length; /* what was asked for */
};

/* In a forked child: nobody holds the lock. */
void uverbs_dm_forked(void);

#endif
