/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Memory regions.
 */
#ifndef UVERBS_MR_H
#define UVERBS_MR_H

#include "uverbs_dm.h"
#include "uverbs_pd.h"

/* A mapping that the region unmaps at its end; size 0: none. */
struct uverbs_mr_map {
    void *addr;
    size_t size;
};

struct uverbs_mr {
    struct uverbs_obj obj;
    struct hca_mkey *mkey;
    struct uverbs_pd *pd;
    struct uverbs_dm *dm;     /* NULL: other memory */
    uint64_t pinned;          /* pages that uverbs_pin() counted */
    uint64_t share;           /* hca_share_begin(); 0: none */
    struct uverbs_mr_map map; /* of a dma-buf */
};

/* Range of the process, address in WQEs, and enum ibv_access_flags. */
struct uverbs_region {
    uint64_t start, length, iova;
    uint32_t access;
    uint64_t share; /* hca_share_begin(), by uverbs_check_region(); 0: none */
};

/* Checks the access flags of a region. @return 0, -EINVAL. */
int uverbs_check_access(uint32_t access);

/* Checks that all of [start, start + length) is mapped for reading, and with
 * @writes also for writing; may fault pages in. @return 0, -EFAULT, or another
 * -errno if the mappings cannot be read. */
int uverbs_check_mapped(uint64_t start, uint64_t length, bool writes);

/* Does the same check, and faults all pages in if the kernel can (Linux
 * 5.14). */
int uverbs_prefetch(uint64_t start, uint64_t length, bool writes);

/* Makes a region with a new key; the caller has checked @region. Members dm,
 * pinned, share and map are left to the caller. @return 0, -ENOMEM. */
int uverbs_mr_new(struct uverbs_ctx *ctx, struct uverbs_pd *pd,
                  const struct uverbs_region *region, struct uverbs_mr **mrp);

#endif
