/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Functions of objects that depend on their slot in a table, and of paths; see
 * hca_objs.h.
 */
#include "hca_objs.h"
#include "softhca/fabric/hca_arena.h"
#include "softhca/fabric/hca_dev.h"

#include <string.h>

/* The first block is not used: it would have the numbers 0 and 1. */
uint32_t hca_qpns_first(const struct hca_qpns *qpns)
{
    return (hca_obj_index(HCA_KIND_QPNS, qpns) + 1) << HCA_QPNS_LOG_COUNT;
}

uint32_t hca_dm_index(const struct hca_dm *dm)
{
    return hca_obj_index(HCA_KIND_DM, dm);
}

/* --- paths: LIDs; on RoCE, or with a GRH, GIDs and MACs ------------------- */

/* The GID must be one of @to, of the same type as the source GID: RoCE v1 and
 * v2 are different protocols. */
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

bool hca_path_leads(const struct hca_path *path, unsigned from, unsigned to)
{
    uint8_t mac[6];

    if ((hca_dev_is_roce(from) != hca_dev_is_roce(to)) ||
        hca_dev_is_down(from) || hca_dev_is_down(to)) {
        return false;
    }
    if (hca_dev_is_roce(from)) {
        hca_dev_mac(to, mac);
        return !memcmp(mac, path->dmac, sizeof(mac)) &&
               hca_path_gid_leads(path, from, to);
    }
    return ((path->dlid & ~hca_dev_path_mask(to)) == hca_dev_lid(to)) &&
           (!path->grh || hca_path_gid_leads(path, from, to));
}
