/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Device memory (MEMIC).
 */
#ifndef UVERBS_DM_H
#define UVERBS_DM_H

#include "uverbs.h"

struct uverbs_dm {
    struct uverbs_obj obj;
    struct hca_dm *hw;
    void *mem;     /* address in the arena */
    size_t length; /* requested bytes */
};

#endif
