/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Ring and doorbell record of a queue that verbs create. libmlx5 allocates both
 * in the arena. A parent domain may have the program's own allocator: then the
 * pages become shared (hca_umem.h).
 */
#ifndef UVERBS_RINGS_H
#define UVERBS_RINGS_H

#include "softhca/fabric/hca_umem.h"

struct uverbs_rings {
    struct hca_umem ring, dbrec; /* mem is NULL: there is none */
};

/* Both as a command describes them; addresses are the program's. */
struct uverbs_place {
    const char *what;     /* kind of queue, for the log */
    const char *variable; /* environment variable of libmlx5's allocator */
    uint64_t ring, dbrec;
    size_t ring_size;
    unsigned dbrec_size; /* bytes, and alignment */
};

/* Makes both reachable by peers. @return 0; or -errno, logged, with @rings
 * unchanged: -EINVAL (alignment), -ENOMEM (no huge pages), those of
 * hca_umem_share(). */
int uverbs_rings_share(struct uverbs_rings *rings,
                       const struct uverbs_place *place);

/* Undoes uverbs_rings_share(), once the device no longer uses the memory. Does
 * nothing for empty @rings. */
void uverbs_rings_unshare(struct uverbs_rings *rings);

#endif
