/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The table of MACs; see dcx_neigh.h. Called when an endpoint is created, or
 * destroyed after a failure, and for the answer to a peer that requests
 * credits.
 */
#include "dcx_neigh.h"

#include <ucs/sys/math.h>
#include <ucs/time/time.h>


void uct_dcx_neigh_init(uct_dcx_neigh_t *neigh, uct_dcx_neigh_resolve_t resolve,
                        void *arg)
{
    kh_init_inplace(uct_dcx_neigh, &neigh->known);
    neigh->resolve = resolve;
    neigh->arg     = arg;
}


void uct_dcx_neigh_cleanup(uct_dcx_neigh_t *neigh)
{
    kh_destroy_inplace(uct_dcx_neigh, &neigh->known);
}


static ucs_status_t uct_dcx_neigh_ask(uct_dcx_neigh_t *neigh,
                                      const union ibv_gid *gid,
                                      uct_dcx_mac_t *mac)
{
    uct_dcx_neighbour_t found = {};
    ucs_status_t status       = neigh->resolve(neigh->arg, gid, &found.mac);
    khiter_t iter;
    int ret;

    if (status == UCS_OK) {
        *mac = found.mac;
    } else {
        found.failed = ucs_max(ucs_get_time(), 1);
    }

    /* A neighbour that cannot be cached is queried again the next time. */
    iter = kh_put(uct_dcx_neigh, &neigh->known, *gid, &ret);
    if (ret >= 0) {
        kh_value(&neigh->known, iter) = found;
    }
    return status;
}


ucs_status_t uct_dcx_neigh_get(uct_dcx_neigh_t *neigh, const union ibv_gid *gid,
                               ucs_time_t patience, uct_dcx_mac_t *mac)
{
    khiter_t iter = kh_get(uct_dcx_neigh, &neigh->known, *gid);
    const uct_dcx_neighbour_t *known;

    if (iter != kh_end(&neigh->known)) {
        known = &kh_value(&neigh->known, iter);
        if (known->failed == 0) {
            *mac = known->mac;
            return UCS_OK;
        }

        if (ucs_get_time() - known->failed < patience) {
            return UCS_ERR_UNREACHABLE;
        }
    }
    return uct_dcx_neigh_ask(neigh, gid, mac);
}


void uct_dcx_neigh_forget(uct_dcx_neigh_t *neigh, const union ibv_gid *gid)
{
    khiter_t iter = kh_get(uct_dcx_neigh, &neigh->known, *gid);

    if (iter != kh_end(&neigh->known)) {
        kh_del(uct_dcx_neigh, &neigh->known, iter);
    }
}
