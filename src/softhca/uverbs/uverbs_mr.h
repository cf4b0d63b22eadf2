/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Memory regions.
 */
#ifndef UVERBS_MR_H
#define UVERBS_MR_H

#include "uverbs_dm.h"
#include "uverbs_pd.h"

/* What a region has mapped for itself, of no size for most. */
struct uverbs_mr_map {
    void  *addr;
    size_t size;
};

struct uverbs_mr {
    struct uverbs_obj obj;
    struct hca_mkey  *mkey;
    struct uverbs_pd *pd;
    struct uverbs_dm *dm;
    uint64_t          pinned; /* pages */
    struct uverbs_mr_map map; /* of a dma-buf */
};

/* A translation, as REG_MR and REREG_MR describe it. */
struct uverbs_region {
    uint64_t start, length, iova;
    uint32_t access;
};

/* Rights that a region may give. @return 0, -EINVAL. */
int uverbs_check_access(uint32_t access);

/* Whether all of [start, start + length) is mapped, to be read or written too.
 * @return 0, -EFAULT; what hca_maps_query() returns if nothing can be known. */
int uverbs_check_mapped(uint64_t start, uint64_t length, bool writes);

/* A region with a fresh key; the translation is already checked.
 * @return 0, -ENOMEM. */
int uverbs_mr_new(struct uverbs_ctx *ctx, struct uverbs_pd *pd,
                  const struct uverbs_region *region, struct uverbs_mr **mrp);

#endif
