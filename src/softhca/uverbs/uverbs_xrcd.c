/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * XRC domains. Processes that open one through the same inode share it: each
 * has an object of its own, and all say the same domain number, that of the
 * first, in obj.user_handle. So a domain outlives whoever made it.
 *
 * Two that open at the same moment might both find none; each then looks
 * again, and the one with the higher number takes that of the lower.
 */
#define _GNU_SOURCE
#include "uverbs_xrcd.h"
#include "softhca/base/hca_sys.h"
#include "softhca/fabric/hca_fabric.h"
#include "softhca/obj/hca_objs.h"
#include "uverbs.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

struct uverbs_xrcd_search {
    const struct hca_xrcd *own;  /* not this one */
    unsigned               dev;
    uint64_t               st_dev, st_ino;
    uint32_t               xrcdn; /* the lowest found, 0 none */
};

static void uverbs_xrcd_match(void *obj, void *arg)
{
    const struct hca_xrcd *xrcd       = obj;
    struct uverbs_xrcd_search *search = arg;
    uint32_t xrcdn                    = xrcd->obj.user_handle;

    if ((xrcd == search->own) || (xrcd->obj.num == 0) || (xrcd->st_ino == 0) ||
        (xrcd->obj.dev != search->dev) || (xrcd->st_dev != search->st_dev) ||
        (xrcd->st_ino != search->st_ino)) {
        return;
    }
    if ((search->xrcdn == 0) || (xrcdn < search->xrcdn)) {
        search->xrcdn = xrcdn;
    }
}

static void uverbs_xrcd_find(struct uverbs_xrcd_search *search)
{
    search->xrcdn = 0;
    for (unsigned proc = 0; proc < HCA_MAX_PROCS; proc++) {
        if (hca_fabric->procs[proc].state == HCA_PROC_ALIVE) {
            hca_obj_foreach(HCA_KIND_XRCD, proc, uverbs_xrcd_match, search);
        }
    }
}

static void uverbs_xrcd_release(struct uverbs_obj *obj,
                                struct uverbs_events *events)
{
    (void)events;
    hca_obj_free(HCA_KIND_XRCD, ((struct uverbs_xrcd*)obj)->xrcd);
}

const struct uverbs_type uverbs_xrcd_type = {
    UVERBS_OBJECT_XRCD, "XRC domains", uverbs_xrcd_release
};

/* @param search  whose inode it is, and the domain if there is one */
static int uverbs_xrcd_new(struct uverbs_ctx *ctx,
                           struct uverbs_xrcd_search *search,
                           struct uverbs_xrcd **xrcdp)
{
    struct uverbs_xrcd *xrcd;
    struct hca_xrcd *hw;
    int ret;

    ret = uverbs_obj_new(ctx, UVERBS_OBJECT_XRCD, sizeof(*xrcd), &xrcd);
    if (ret != 0) {
        return ret;
    }
    hw = hca_obj_alloc(HCA_KIND_XRCD, ctx->dev);
    if (hw == NULL) {
        uverbs_obj_delete(&xrcd->obj);
        return -ENOMEM;
    }

    hw->st_dev          = search->st_dev;
    hw->st_ino          = search->st_ino;
    xrcd->xrcd          = hw;
    xrcd->xrcdn         = hca_obj_number(HCA_KIND_XRCD, hw);
    hw->obj.user_handle = (search->xrcdn != 0) ? search->xrcdn : xrcd->xrcdn;
    hca_obj_publish(HCA_KIND_XRCD, hw);

    if ((search->xrcdn == 0) && (search->st_ino != 0)) {
        search->own = hw;
        uverbs_xrcd_find(search);
        if ((search->xrcdn != 0) && (search->xrcdn < xrcd->xrcdn)) {
            hw->obj.user_handle = search->xrcdn;
        }
    }
    xrcd->xrcdn = hw->obj.user_handle;
    *xrcdp      = xrcd;
    return 0;
}

/* As ib_uverbs_open_xrcd(): the flags are those of open(2). */
static int uverbs_xrcd_inode(const struct ib_uverbs_open_xrcd *cmd,
                             struct uverbs_xrcd_search *search)
{
    struct stat st;

    if ((int32_t)cmd->fd == -1) {
        return 0; /* private */
    }
    if (hca_sys()->fstat((int32_t)cmd->fd, &st) != 0) {
        return -EBADF;
    }
    search->st_dev = st.st_dev;
    search->st_ino = st.st_ino;
    uverbs_xrcd_find(search);
    if ((search->xrcdn == 0) && !(cmd->oflags & O_CREAT)) {
        return -EAGAIN;
    }
    return ((search->xrcdn != 0) && (cmd->oflags & O_EXCL)) ? -EINVAL : 0;
}

static int uverbs_open_xrcd(struct uverbs_req *req)
{
    struct uverbs_xrcd_search search      = {.dev = req->ctx->dev};
    struct ib_uverbs_open_xrcd_resp resp  = {0};
    struct ib_uverbs_open_xrcd cmd;
    struct uverbs_xrcd *xrcd;
    int ret;

    ret = uverbs_core_in(req, &cmd);
    if (ret == 0) {
        ret = uverbs_xrcd_inode(&cmd, &search);
    }
    if (ret != 0) {
        return ret;
    }

    ret = uverbs_xrcd_new(req->ctx, &search, &xrcd);
    if (ret != 0) {
        return ret;
    }
    resp.xrcd_handle = xrcd->obj.handle;
    ret              = uverbs_core_out(req, &resp);
    if (ret != 0) {
        uverbs_obj_destroy(&xrcd->obj, NULL);
    }
    return ret;
}

static const struct uverbs_attr_spec uverbs_close_xrcd_attrs[] = {
    {UVERBS_ATTR_DESTROY_XRCD_HANDLE, UVERBS_IDR, UVERBS_MANDATORY, 0, 0,
     UVERBS_OBJECT_XRCD},
};

const struct uverbs_method uverbs_xrcd_methods[] = {
    {.object  = UVERBS_OBJECT_XRCD,
     .id      = UVERBS_METHOD_XRCD_DESTROY,
     .name    = "close_xrcd",
     .handler = uverbs_destroy,
     UVERBS_ATTRS(uverbs_close_xrcd_attrs)},
    {.handler = NULL},
};

const struct uverbs_write uverbs_xrcd_writes[] = {
    {IB_USER_VERBS_CMD_OPEN_XRCD, "open_xrcd",
     sizeof(struct ib_uverbs_open_xrcd),
     sizeof(struct ib_uverbs_open_xrcd_resp), uverbs_open_xrcd},
    {.handler = NULL},
};
