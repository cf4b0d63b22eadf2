/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Ring and doorbell record of a queue that verbs create. libmlx5 allocates them
 * in the arena, or the program's own allocator does elsewhere (a parent domain
 * with one): then they are shared like umems.
 */
#ifndef UVERBS_RINGS_H
#define UVERBS_RINGS_H

#include "softhca/fabric/hca_umem.h"

struct uverbs_rings {
    struct hca_umem ring, dbrec; /* a missing one has no mem */
};

/* Addresses of both in a command. */
struct uverbs_place {
    const char *what;     /* kind of queue, for the log */
    const char *variable; /* selects libmlx5's allocator of the ring */
    uint64_t ring, dbrec;
    size_t ring_size;
    unsigned dbrec_size; /* and alignment */
};

/* @return 0 or -errno after a line with the reason: -EINVAL (alignment),
 * -ENOMEM (no huge pages), those of hca_umem_share(). */
int uverbs_rings_share(struct uverbs_rings *rings,
                       const struct uverbs_place *place);

/* Undoes that, when nothing of the device uses them any more. */
void uverbs_rings_unshare(struct uverbs_rings *rings);

#endif
