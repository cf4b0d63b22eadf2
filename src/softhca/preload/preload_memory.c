/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Advice about memory. Private memory that the program discards reads as zeros
 * from then on, which allocators rely on; so must memory that was private until
 * the device replaced it (hca_share.h), although the kernel keeps shared pages
 * then. Called like preload.c.
 */
#define _GNU_SOURCE
#include "preload.h"
#include "softhca/fabric/hca_share.h"

PRELOAD_EXPORT int madvise(void *addr, size_t length, int advice)
{
    int ret;

    if (!hca_share_discards(addr, length, advice)) {
        return hca_sys()->madvise(addr, length, advice);
    }
    ret = hca_sys()->madvise(addr, length, MADV_DONTNEED);
    if (ret == 0) {
        hca_share_discard(addr, length);
    }
    return ret;
}
