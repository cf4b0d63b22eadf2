/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/* Paths: LIDs; on RoCE, or with a GRH, GIDs and MACs. See hca_path.h. */
#include "hca_path.h"

#include <string.h>

/* Returns true if the destination GID is one of @to, of the same type as the
 * source GID: RoCE v1 and v2 are different protocols. */
static bool hca_path_gid_leads(const struct hca_path *path, unsigned from,
                               unsigned to)
{
    uint8_t gid[16];
    enum hca_gid_type type = hca_dev_gid(from, path->sgid_index, gid);

    for (unsigned i = 0; (type != HCA_GID_NONE) && (i < HCA_GID_TABLE_LEN);
         i++) {
        if ((hca_dev_gid(to, i, gid) == type) &&
            !memcmp(gid, path->dgid, sizeof(gid))) {
            return true;
        }
    }
    return false;
}

bool hca_path_passes_routers(const struct hca_path *path, unsigned from,
                             unsigned to)
{
    uint8_t gid[16];

    return hca_dev_are_near(from, to) ||
           ((path->hop_limit > 1) &&
            (hca_dev_gid(from, path->sgid_index, gid) == HCA_GID_IB) &&
            ((gid[4] | gid[5]) != 0));
}

/* Returns true if the LID is one of the port; or in another subnet its FLID, by
 * which routers forward a packet with a route header. */
static bool hca_path_lid_leads(const struct hca_path *path, unsigned from,
                               unsigned to)
{
    return hca_dev_are_near(from, to) ?
               (path->dlid & ~hca_dev_path_mask(to)) == hca_dev_lid(to) :
               (path->dlid != 0) && (path->dlid == hca_dev_flid(to)) &&
                   path->grh && hca_path_passes_routers(path, from, to);
}

static bool hca_path_fits(const struct hca_path *path, unsigned from,
                          unsigned to)
{
    uint8_t mac[6];

    if (hca_dev_is_roce(from) != hca_dev_is_roce(to)) {
        return false;
    }
    if (hca_dev_is_roce(from)) {
        hca_dev_mac(to, mac);
        return !memcmp(mac, path->dmac, sizeof(mac)) &&
               hca_path_gid_leads(path, from, to);
    }
    return hca_path_lid_leads(path, from, to) && hca_dev_carries(path->sl) &&
           hca_dev_carries(path->reverse_sl) &&
           (!path->grh || hca_path_gid_leads(path, from, to));
}

bool hca_path_find(const struct hca_path *path, unsigned from, unsigned to,
                   struct hca_way *way)
{
    if (hca_dev_is_down(from) || hca_dev_is_down(to) ||
        !hca_path_fits(path, from, to)) {
        return false;
    }
    *way = (struct hca_way){
        .path    = *path,
        .to      = to,
        .is_set  = true,
        .has_gid = path->grh || hca_dev_is_roce(to),
    };
    return true;
}
