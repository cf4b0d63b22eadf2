/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Runs the method of an ioctl: checks the header, finds the method in the
 * tables of uverbs/ and devx/, parses the attributes, and calls the handler
 * under the lock of the context.
 */
#define _GNU_SOURCE
#include "dispatch_method.h"
#include "softhca/base/hca_log.h"
#include "softhca/devx/devx.h"
#include "softhca/exec/hca_fatal.h"
#include "softhca/exec/hca_thread.h"
#include "softhca/fabric/hca_rules.h"

#include <errno.h>
#include <string.h>

static const struct uverbs_method *const dispatch_methods[] = {
    uverbs_context_methods, uverbs_port_methods, uverbs_pd_methods,
    uverbs_mr_methods,      uverbs_mw_methods,   uverbs_dm_methods,
    uverbs_dmabuf_methods,  uverbs_cq_methods,   uverbs_srq_methods,
    uverbs_xrcd_methods,    uverbs_ah_methods,   uverbs_qp_methods,
    uverbs_event_methods,   uverbs_uar_methods,  uverbs_odp_methods,
    devx_methods,           devx_umem_methods,   devx_event_methods,
};

static const struct uverbs_method *dispatch_method(uint16_t object, uint16_t id)
{
    unsigned num = sizeof(dispatch_methods) / sizeof(dispatch_methods[0]);

    for (unsigned i = 0; i < num; i++) {
        const struct uverbs_method *method = dispatch_methods[i];

        for (; method->handler != NULL; method++) {
            if ((method->object == object) && (method->id == id)) {
                return method;
            }
        }
    }
    return NULL;
}

/* Flags the driver's answer (UHW_OUT) as written even if the handler wrote
 * nothing, as the kernel does (ib_uverbs_run_method()). */
static int dispatch_finish(struct uverbs_req *req)
{
    struct uverbs_slot *slot = &req->slots[UVERBS_MAX_SPECS - 1];

    if (!req->method->uhw || (slot->attr == NULL) ||
        (slot->attr->flags & UVERBS_ATTR_F_VALID_OUTPUT)) {
        return 0;
    }
    return uverbs_put(req, UVERBS_ATTR_UHW_OUT, NULL, 0);
}

static const char *dispatch_name(const struct uverbs_req *req)
{
    return (req->method->handler == uverbs_write) ? uverbs_write_name(req) :
                                                    req->method->name;
}

static int dispatch_call(struct uverbs_req *req,
                         const struct ib_uverbs_ioctl_hdr *hdr)
{
    bool opens = (req->method->object == UVERBS_OBJECT_DEVICE) &&
                 ((req->method->id == UVERBS_METHOD_GET_CONTEXT) ||
                  (req->method->id == UVERBS_METHOD_INVOKE_WRITE));
    int ret;

    ret = uverbs_req_parse(req, hdr);
    if ((ret == 0) && !req->ctx->ready && !opens) {
        ret = -EINVAL; /* as the kernel without a ucontext */
    }
    if ((ret == 0) && !req->method->is_end && !req->method->may_end &&
        hca_fatal_is(hca_self, req->ctx->dev)) {
        ret = -EIO;
    }
    if ((ret == 0) && hca_rules_are_set() && !req->method->is_end) {
        ret = hca_rules_fail(HCA_RULE_VERB, dispatch_name(req));
    }
    if (ret == 0) {
        ret = req->method->handler(req);
    }
    return (ret == 0) ? dispatch_finish(req) : ret;
}

static int dispatch_handle(struct uverbs_req *req,
                           const struct ib_uverbs_ioctl_hdr *hdr)
{
    struct uverbs_ctx *ctx = req->ctx;
    int ret;

    hca_thread_enter();
    pthread_mutex_lock(&ctx->lock);
    ret = dispatch_call(req, hdr);
    hca_debug("uverbs: %s: %s", dispatch_name(req),
              (ret == 0) ? "ok" : strerror(-ret));
    pthread_mutex_unlock(&ctx->lock);
    hca_thread_leave();
    return ret;
}

int dispatch_method_run(struct uverbs_ctx *ctx,
                        struct ib_uverbs_ioctl_hdr *user)
{
    struct ib_uverbs_ioctl_hdr hdr;
    struct uverbs_req req;

    if (uverbs_copy_in(&hdr, (uintptr_t)user, sizeof(hdr)) != 0) {
        return -EFAULT;
    }
    if ((hdr.num_attrs > UVERBS_MAX_ATTRS) ||
        (hdr.length != sizeof(hdr) + hdr.num_attrs * sizeof(user->attrs[0]))) {
        return -EINVAL;
    }
    if ((hdr.reserved1 != 0) || (hdr.reserved2 != 0)) {
        return -EPROTONOSUPPORT;
    }
    if (hdr.driver_id != RDMA_DRIVER_MLX5) {
        return -EINVAL;
    }

    req.ctx        = ctx;
    req.user_attrs = user->attrs;
    req.method     = dispatch_method(hdr.object_id, hdr.method_id);
    if (req.method == NULL) {
        hca_debug("uverbs: method 0x%x/0x%x: not supported", hdr.object_id,
                  hdr.method_id);
        return -EPROTONOSUPPORT;
    }
    return dispatch_handle(&req, &hdr);
}
