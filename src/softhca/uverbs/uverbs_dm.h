/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Device memory (MEMIC).
 */
#ifndef UVERBS_DM_H
#define UVERBS_DM_H

#include "uverbs.h"
#include "softhca/fabric/hca_caps.h"

struct uverbs_dm {
    struct uverbs_obj obj;
    struct hca_dm *hw;
    void *mem;     /* address in the arena */
    size_t length; /* requested bytes */
};

/* Returns the bytes of one piece at most, and of all pieces of a device. */
static inline uint32_t uverbs_max_dm(void)
{
    return hca_lacks(HCA_LACK_DM) ? 0 :
                                    hca_limit(HCA_LIMIT_DM, UVERBS_MAX_DM_SIZE);
}

#endif
