/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Rings and doorbell records: see uverbs_rings.h.
 */
#define _GNU_SOURCE
#include "uverbs_rings.h"
#include "softhca/base/hca_log.h"
#include "softhca/fabric/hca_arena.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/shm.h>

#define UVERBS_RING_ALIGN 64u /* a basic block, a CQE */

static int uverbs_ring_share(const char *what, const char *part, uint64_t addr,
                             size_t size, unsigned align, struct hca_umem *umem)
{
    int ret;

    if (addr % align != 0) {
        hca_error("%s %s 0x%lx: not aligned to %u bytes", what, part,
                  (unsigned long)addr, align);
        return -EINVAL;
    }
    ret = hca_umem_share(umem, addr, size, true);
    if (ret != 0) {
        hca_warn("%s %s 0x%lx, %zu bytes: %s", what, part, (unsigned long)addr,
                 size, hca_umem_error(-ret));
    }
    return ret;
}

/* Fails as libmlx5's alloc_huge_mem() does if place->variable is HUGE and there
 * are no huge pages. With our allocator, libmlx5 ignores the variable
 * (mlx5_get_alloc_type(), v44), which the program may set after it opens the
 * device. */
static int uverbs_ring_check_huge(const struct uverbs_place *place)
{
    const char *type = getenv(place->variable);
    int id;

    if ((type == NULL) || strcasecmp(type, "HUGE") ||
        !hca_arena_contains((void *)(uintptr_t)place->ring, 1)) {
        return 0;
    }
    id = shmget(IPC_PRIVATE, place->ring_size, SHM_HUGETLB | IPC_CREAT | 0600);
    if (id < 0) {
        hca_warn("%s of %zu bytes: %s=HUGE, but no huge pages: %s; set "
                 "vm.nr_hugepages",
                 place->what, place->ring_size, place->variable,
                 strerror(errno));
        return -ENOMEM;
    }
    shmctl(id, IPC_RMID, NULL);
    return 0;
}

int uverbs_rings_share(struct uverbs_rings *rings,
                       const struct uverbs_place *place)
{
    struct uverbs_rings shared;
    int ret;

    ret = uverbs_ring_check_huge(place);
    if (ret != 0) {
        return ret;
    }
    ret = uverbs_ring_share(place->what, "buffer", place->ring,
                            place->ring_size, UVERBS_RING_ALIGN, &shared.ring);
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
