/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Memory regions.
 */
#ifndef UVERBS_MR_H
#define UVERBS_MR_H

#include "uverbs_dm.h"
#include "uverbs_pd.h"

/* Memory that a region has mapped for itself; size 0 for most. */
struct uverbs_mr_map {
    void *addr;
    size_t size;
};

struct uverbs_mr {
    struct uverbs_obj obj;
    struct hca_mkey *mkey;
    struct uverbs_pd *pd;
    struct uverbs_dm *dm;
    uint64_t pinned;          /* pages */
    struct uverbs_mr_map map; /* of a dma-buf */
};

/* A translation, as REG_MR and REREG_MR describe it. */
struct uverbs_region {
    uint64_t start, length, iova;
    uint32_t access;
};

/* Checks rights that a region may give. @return 0, -EINVAL. */
int uverbs_check_access(uint32_t access);

/* Checks that all of [start, start + length) is mapped for reading, and with
 * @writes also for writing. @return 0, -EFAULT; as hca_maps_query() if that
 * cannot be found out. */
int uverbs_check_mapped(uint64_t start, uint64_t length, bool writes);

/* Makes a region with a new key; the translation is already checked.
 * @return 0, -ENOMEM. */
int uverbs_mr_new(struct uverbs_ctx *ctx, struct uverbs_pd *pd,
                  const struct uverbs_region *region, struct uverbs_mr **mrp);

#endif
