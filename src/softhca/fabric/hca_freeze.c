/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Pages that nothing stores to: see hca_freeze.h. One thread at a time has such
 * pages: hca_trap_freeze() takes a lock, hca_trap_thaw() releases it.
 */
#include "hca_freeze.h"
#include "hca_segment.h"
#include "softhca/doorbell/hca_trap.h"

int hca_freeze_begin(void *pages, size_t size)
{
    int ret = hca_trap_install();

    if (ret == 0) {
        hca_trap_freeze(pages, size);
        atomic_fetch_add(&hca_fabric->procs[hca_self].freezes, 1);
    }
    return ret;
}

void hca_freeze_end(void)
{
    atomic_fetch_add(&hca_fabric->procs[hca_self].freezes, 1);
    hca_trap_thaw();
}
