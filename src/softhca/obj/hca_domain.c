/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Protection domains, XRC domains and device memory: see hca_domain.h.
 *
 * Processes that open an XRC domain through the same inode share it: each has
 * an object of its own, and all have the same domain number, that of the first,
 * in obj.user_handle. So a domain outlives its first opener. Two that open at
 * the same moment may both find none; each then looks again, and the one with
 * the higher number takes that of the lower.
 */
#include "hca_domain.h"

#include <errno.h>

int hca_pd_create(unsigned dev, uint32_t handle, struct hca_pd **pd_p)
{
    struct hca_pd *pd = hca_obj_alloc(HCA_KIND_PD, dev);

    if (pd == NULL) {
        return -ENOMEM;
    }
    pd->obj.user_handle = handle;
    hca_obj_publish(HCA_KIND_PD, pd);
    *pd_p = pd;
    return 0;
}

int hca_dm_create(unsigned dev, struct hca_dm **dm_p)
{
    struct hca_dm *dm = hca_obj_alloc(HCA_KIND_DM, dev);

    if (dm == NULL) {
        return -ENOMEM;
    }
    hca_obj_publish(HCA_KIND_DM, dm);
    *dm_p = dm;
    return 0;
}

struct hca_xrcd_search {
    const struct hca_xrcd *own; /* not this one */
    const struct hca_xrcd_spec *spec;
    uint32_t xrcdn; /* the lowest found, 0 none */
};

static void hca_xrcd_match(void *obj, void *arg)
{
    const struct hca_xrcd *xrcd      = obj;
    struct hca_xrcd_search *search   = arg;
    const struct hca_xrcd_spec *spec = search->spec;
    uint32_t xrcdn                   = xrcd->obj.user_handle;

    if ((xrcd == search->own) || (xrcd->obj.num == 0) || (xrcd->st_ino == 0) ||
        (xrcd->obj.dev != spec->dev) || (xrcd->st_dev != spec->st_dev) ||
        (xrcd->st_ino != spec->st_ino)) {
        return;
    }
    if ((search->xrcdn == 0) || (xrcdn < search->xrcdn)) {
        search->xrcdn = xrcdn;
    }
}

static uint32_t hca_xrcd_find_other(const struct hca_xrcd_spec *spec,
                                    const struct hca_xrcd *own)
{
    struct hca_xrcd_search search = {.own = own, .spec = spec};

    for (unsigned proc = 0; proc < HCA_MAX_PROCS; proc++) {
        if (hca_fabric->procs[proc].state == HCA_PROC_ALIVE) {
            hca_obj_foreach(HCA_KIND_XRCD, proc, hca_xrcd_match, &search);
        }
    }
    return search.xrcdn;
}

uint32_t hca_xrcd_find(const struct hca_xrcd_spec *spec)
{
    return hca_xrcd_find_other(spec, NULL);
}

int hca_xrcd_create(const struct hca_xrcd_spec *spec, uint32_t xrcdn,
                    struct hca_xrcd **xrcd_p)
{
    struct hca_xrcd *xrcd = hca_obj_alloc(HCA_KIND_XRCD, spec->dev);
    uint32_t own, other;

    if (xrcd == NULL) {
        return -ENOMEM;
    }
    own                   = hca_obj_number(HCA_KIND_XRCD, xrcd);
    xrcd->st_dev          = spec->st_dev;
    xrcd->st_ino          = spec->st_ino;
    xrcd->obj.user_handle = (xrcdn != 0) ? xrcdn : own;
    hca_obj_publish(HCA_KIND_XRCD, xrcd);
    if ((xrcdn == 0) && (spec->st_ino != 0)) {
        other = hca_xrcd_find_other(spec, xrcd);
        if ((other != 0) && (other < own)) {
            xrcd->obj.user_handle = other;
        }
    }
    *xrcd_p = xrcd;
    return 0;
}
