/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Device memory.
 */
#ifndef UVERBS_DM_H
#define UVERBS_DM_H

#include "uverbs.h"

struct uverbs_dm {
    struct uverbs_obj obj;
    struct hca_dm    *hw;
    void             *mem;    /* in the arena, as this process has it */
    size_t            length; /* what was asked for */
};

#endif
