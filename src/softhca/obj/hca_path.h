/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Paths between devices. Each half of a QP remembers the last one that was
 * found to lead to its end (struct hca_way).
 */
#ifndef HCA_PATH_H
#define HCA_PATH_H

#include "hca_objs.h"
#include "softhca/fabric/hca_dev.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

/* Looks a path up, and stores it in @way if it leads to device @to. */
bool hca_path_find(const struct hca_path *path, unsigned from, unsigned to,
                   struct hca_way *way);

/* Returns true if routers forward packets of this path between the subnets of
 * both devices: they have a hop left, and a source GID with an FLID, which is
 * the way back. Always true within a subnet. */
bool hca_path_passes_routers(const struct hca_path *path, unsigned from,
                             unsigned to);

/* Bytes at the start of struct hca_path: LID and service levels */
#define HCA_PATH_HEAD 4

static_assert(offsetof(struct hca_path, grh) == HCA_PATH_HEAD,
              "dlid, sl, reverse_sl");

/* Compares what hca_path_find() depends on. */
static inline bool hca_way_is(const struct hca_way *way,
                              const struct hca_path *path, unsigned to)
{
    const struct hca_path *own = &way->path;

    return way->is_set && (way->to == to) &&
           !memcmp(own, path, HCA_PATH_HEAD) && (own->grh == path->grh) &&
           (!way->has_gid ||
            ((own->sgid_index == path->sgid_index) &&
             (own->hop_limit == path->hop_limit) &&
             !memcmp(own->dgid, path->dgid, sizeof(own->dgid)) &&
             !memcmp(own->dmac, path->dmac, sizeof(own->dmac))));
}

static inline bool hca_path_is_down(unsigned from, unsigned to)
{
    const struct hca_fabric *fabric = hca_fabric;

    return (atomic_load_explicit(&fabric->port_down[from],
                                 memory_order_relaxed) |
            atomic_load_explicit(&fabric->port_down[to],
                                 memory_order_relaxed)) != 0;
}

/* Returns true if a path that starts at device @from ends at device @to, and
 * the ports of both are up. Links and addresses of devices do not change while
 * the fabric exists.
 * @param way  of a QP of device @from; all zero at first */
static inline bool hca_path_leads(const struct hca_path *path, unsigned from,
                                  unsigned to, struct hca_way *way)
{
    return (hca_way_is(way, path, to) || hca_path_find(path, from, to, way)) &&
           !hca_path_is_down(from, to);
}

#endif
