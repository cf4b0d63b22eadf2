/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Protection domains, XRC domains and device memory: see hca_domain.h.
 *
 * Processes that open an XRC domain through the same inode share it: each has
 * an object of its own, and all have the same domain number, that of the first,
 * in obj.user_handle. So a domain outlives its first opener. One process at a
 * time opens a domain (hca_fabric.xrcd_lock).
 */
#include "hca_domain.h"
#include "softhca/base/hca_mutex.h"
#include "softhca/fabric/hca_proc.h"

#include <errno.h>
#include <fcntl.h>

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
    const struct hca_xrcd_spec *spec;
    uint32_t xrcdn; /* 0: none found */
};

static void hca_xrcd_match(void *obj, void *arg)
{
    const struct hca_xrcd *xrcd      = obj;
    struct hca_xrcd_search *search   = arg;
    const struct hca_xrcd_spec *spec = search->spec;

    if ((xrcd->obj.num != 0) && (xrcd->obj.dev == spec->dev) &&
        (xrcd->st_dev == spec->st_dev) && (xrcd->st_ino == spec->st_ino) &&
        hca_proc_is_attached(xrcd->obj.proc)) {
        search->xrcdn = xrcd->obj.user_handle;
    }
}

static uint32_t hca_xrcd_find(const struct hca_xrcd_spec *spec)
{
    struct hca_xrcd_search search = {.spec = spec};

    if (spec->st_ino != 0) {
        hca_obj_foreach(HCA_KIND_XRCD, HCA_ANY_PROC, hca_xrcd_match, &search);
    }
    return search.xrcdn;
}

static int hca_xrcd_create(const struct hca_xrcd_spec *spec, uint32_t xrcdn,
                           struct hca_xrcd **xrcd_p)
{
    struct hca_xrcd *xrcd = hca_obj_alloc(HCA_KIND_XRCD, spec->dev);

    if (xrcd == NULL) {
        return -ENOMEM;
    }
    xrcd->st_dev          = spec->st_dev;
    xrcd->st_ino          = spec->st_ino;
    xrcd->obj.user_handle = (xrcdn != 0) ? xrcdn :
                                           hca_obj_number(HCA_KIND_XRCD, xrcd);
    hca_obj_publish(HCA_KIND_XRCD, xrcd);
    *xrcd_p = xrcd;
    return 0;
}

int hca_xrcd_open(const struct hca_xrcd_spec *spec, struct hca_xrcd **xrcd_p)
{
    uint32_t xrcdn;
    int ret;

    hca_mutex_lock(&hca_fabric->xrcd_lock); /* guards no data: no repair */
    xrcdn = hca_xrcd_find(spec);
    if ((xrcdn == 0) && (spec->st_ino != 0) && !(spec->oflags & O_CREAT)) {
        ret = -EAGAIN;
    } else if ((xrcdn != 0) && (spec->oflags & O_EXCL)) {
        ret = -EINVAL;
    } else {
        ret = hca_xrcd_create(spec, xrcdn, xrcd_p);
    }
    hca_mutex_unlock(&hca_fabric->xrcd_lock);
    return ret;
}
