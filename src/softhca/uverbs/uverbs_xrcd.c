/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * XRC domains. Processes share one by opening the same file: its inode names
 * the domain (hca_domain.h).
 */
#define _GNU_SOURCE
#include "uverbs_xrcd.h"
#include "softhca/base/hca_sys.h"
#include "softhca/obj/hca_domain.h"
#include "uverbs.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

static int uverbs_xrcd_release(struct uverbs_obj *obj,
                               struct uverbs_events *events)
{
    (void)events;
    hca_obj_free(HCA_KIND_XRCD, ((struct uverbs_xrcd *)obj)->xrcd);
    return 0;
}

const struct uverbs_type uverbs_xrcd_type = {
    UVERBS_OBJECT_XRCD,
    "XRC domains",
    .release = uverbs_xrcd_release,
};

static int uverbs_xrcd_new(struct uverbs_ctx *ctx,
                           const struct hca_xrcd_spec *spec,
                           struct uverbs_xrcd **xrcdp)
{
    struct uverbs_xrcd *xrcd;
    int ret;

    ret = uverbs_obj_new(ctx, UVERBS_OBJECT_XRCD, sizeof(*xrcd), &xrcd);
    if (ret != 0) {
        return ret;
    }
    ret = hca_xrcd_open(spec, &xrcd->xrcd);
    if (ret != 0) {
        uverbs_obj_delete(&xrcd->obj);
        return ret;
    }
    xrcd->xrcdn = xrcd->xrcd->obj.user_handle;
    *xrcdp      = xrcd;
    return 0;
}

static int uverbs_xrcd_inode(const struct ib_uverbs_open_xrcd *cmd,
                             struct hca_xrcd_spec *spec)
{
    struct stat st;

    if ((int32_t)cmd->fd == -1) {
        return 0; /* private */
    }
    if (hca_sys()->fstat((int32_t)cmd->fd, &st) != 0) {
        return -EBADF;
    }
    spec->st_dev = st.st_dev;
    spec->st_ino = st.st_ino;
    spec->oflags = cmd->oflags; /* as ib_uverbs_open_xrcd() */
    return 0;
}

static int uverbs_open_xrcd(struct uverbs_req *req)
{
    struct hca_xrcd_spec spec            = {.dev = req->ctx->dev};
    struct ib_uverbs_open_xrcd_resp resp = {0};
    struct ib_uverbs_open_xrcd cmd;
    struct uverbs_xrcd *xrcd;
    int ret;

    ret = uverbs_core_in(req, &cmd);
    if (ret == 0) {
        ret = uverbs_xrcd_inode(&cmd, &spec);
    }
    if (ret != 0) {
        return ret;
    }

    ret = uverbs_xrcd_new(req->ctx, &spec, &xrcd);
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
     .is_end  = true,
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
