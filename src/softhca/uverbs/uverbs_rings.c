/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Rings and doorbell records: see uverbs_rings.h.
 */
#define _GNU_SOURCE
#include "uverbs_rings.h"
#include "softhca/base/hca_log.h"

#include <errno.h>

#define UVERBS_RING_ALIGN 64u /* a basic block, a CQE */

static int uverbs_ring_share(const char *what, const char *part, uint64_t addr,
                             size_t size, unsigned align,
                             struct hca_umem *umem)
{
    int ret;

    if (addr % align != 0) {
        hca_error("%s %s 0x%lx: not aligned to %u bytes", what, part,
                  (unsigned long)addr, align);
        return -EINVAL;
    }
    ret = hca_umem_share(umem, addr, size, true);
    if (ret != 0) {
        hca_warn("%s %s 0x%lx, %zu bytes: %s", what, part,
                 (unsigned long)addr, size, hca_umem_error(-ret));
    }
    return ret;
}

int uverbs_rings_share(struct uverbs_rings *rings,
                       const struct uverbs_place *place)
{
    struct uverbs_rings shared;
    int ret;

    ret = uverbs_ring_share(place->what, "buffer", place->ring,
                            place->ring_size, UVERBS_RING_ALIGN,
                            &shared.ring);
    if (ret != 0) {
        return ret;
    }
    ret = uverbs_ring_share(place->what, "doorbell record", place->dbrec,
                            place->dbrec_size, place->dbrec_size,
                            &shared.dbrec);
    if (ret != 0) {
        hca_umem_unshare(&shared.ring);
        return ret;
    }
    *rings = shared;
    return 0;
}

void uverbs_rings_unshare(struct uverbs_rings *rings)
{
    hca_umem_unshare(&rings->ring);
    hca_umem_unshare(&rings->dbrec);
}
