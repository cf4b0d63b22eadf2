/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The table of MACs; see dcx_neigh.h. Called when an endpoint is created, or
 * destroyed after it failed.
 */
#include "dcx_neigh.h"


void uct_dcx_neigh_init(uct_dcx_neigh_t *neigh,
                        uct_dcx_neigh_resolve_t resolve, void *arg)
{
    kh_init_inplace(uct_dcx_neigh, &neigh->macs);
    neigh->resolve = resolve;
    neigh->arg     = arg;
}


void uct_dcx_neigh_cleanup(uct_dcx_neigh_t *neigh)
{
    kh_destroy_inplace(uct_dcx_neigh, &neigh->macs);
}


ucs_status_t
uct_dcx_neigh_get(uct_dcx_neigh_t *neigh, const union ibv_gid *gid,
                  uct_dcx_mac_t *mac)
{
    khiter_t iter = kh_get(uct_dcx_neigh, &neigh->macs, *gid);
    ucs_status_t status;
    int ret;

    if (iter != kh_end(&neigh->macs)) {
        *mac = kh_value(&neigh->macs, iter);
        return UCS_OK;
    }

    status = neigh->resolve(neigh->arg, gid, mac);
    if (status != UCS_OK) {
        return status;
    }

    /* without memory for it, it is asked for again the next time */
    iter = kh_put(uct_dcx_neigh, &neigh->macs, *gid, &ret);
    if (ret >= 0) {
        kh_value(&neigh->macs, iter) = *mac;
    }
    return UCS_OK;
}


void uct_dcx_neigh_forget(uct_dcx_neigh_t *neigh, const union ibv_gid *gid)
{
    khiter_t iter = kh_get(uct_dcx_neigh, &neigh->macs, *gid);

    if (iter != kh_end(&neigh->macs)) {
        kh_del(uct_dcx_neigh, &neigh->macs, iter);
    }
}
