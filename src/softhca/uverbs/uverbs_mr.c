/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Memory regions. The memory stays in its owner's process; the mkey limits the
 * addresses that a peer may access, and how. Checks are those of ib_uverbs and
 * mlx5_ib (ib_check_mr_access(), ib_umem_get()).
 */
#define _GNU_SOURCE
#include "uverbs_mr.h"
#include "softhca/base/hca_maps.h"
#include "softhca/base/hca_sys.h"
#include "softhca/fabric/hca_share.h"
#include "softhca/obj/hca_domain.h"
#include "softhca/obj/hca_mkey.h"
#include "softhca/obj/hca_objs.h"
#include "uverbs.h"
#include "uverbs_mw.h"
#include "uverbs_pin.h"

#include <errno.h>
#include <sys/mman.h>

#define UVERBS_ACCESS_SUPPORTED \
    (((IB_UVERBS_ACCESS_HUGETLB << 1) - 1) | IB_UVERBS_ACCESS_OPTIONAL_RANGE)
#define UVERBS_REREG_SUPPORTED \
    (IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_PD | \
     IBV_REREG_MR_CHANGE_ACCESS)

/* Bytes up to which faulting in all pages costs less than reading mappings */
#define UVERBS_POPULATE_MAX 262144ul

int uverbs_check_access(uint32_t access)
{
    if ((access & (IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_REMOTE_WRITE)) &&
        !(access & IBV_ACCESS_LOCAL_WRITE)) {
        return -EINVAL;
    }
    return (access & ~UVERBS_ACCESS_SUPPORTED) ? -EINVAL : 0;
}

/* Returns true if the kernel has MADV_POPULATE_* (Linux 5.14). */
static bool uverbs_can_populate(void)
{
    static _Atomic int known; /* 0: not tried, 1: yes, -1: no */
    static uint8_t probe[8192] __attribute__((aligned(4096)));

    if (known == 0) {
        known = hca_sys()->madvise(probe, 4096, MADV_POPULATE_WRITE) == 0 ? 1 :
                                                                            -1;
    }
    return known > 0;
}

/* Faults pages in, as pinning would. @return 0; -EFAULT: a page is not mapped,
 * or not readable or writable. */
static int uverbs_populate(uintptr_t start, uintptr_t end, bool writes)
{
    int advice = writes ? MADV_POPULATE_WRITE : MADV_POPULATE_READ;

    return ((hca_sys()->madvise((void *)start, end - start, advice) == 0) ||
            (errno == EAGAIN)) ?
               0 :
               -EFAULT;
}

/* Does the check of uverbs_populate() by the mappings; faults in only the first
 * and the last page. */
static int uverbs_check_range(const struct hca_range *range, bool writes)
{
    int prot = writes ? PROT_READ | PROT_WRITE : PROT_READ;
    int ret;

    if (!range->is_whole || ((range->prot & prot) != prot)) {
        return -EFAULT;
    }
    if (!uverbs_can_populate()) {
        return 0;
    }
    ret = uverbs_populate(range->start, range->start + 4096, writes);
    return (ret == 0) ? uverbs_populate(range->end - 4096, range->end, writes) :
                        ret;
}

/* Checks as the kernel's pin_user_pages() would. Nothing is pinned: an access
 * detects a later unmapping. All pages are faulted in if they are few, or if
 * /proc/self/maps cannot be opened: the kernel needs no descriptor. */
int uverbs_check_mapped(uint64_t start, uint64_t length, bool writes)
{
    struct hca_range range = {
        .start = start & ~4095ull,
        .end   = (start + length + 4095) & ~4095ull,
    };
    int ret;

    if (range.end <= range.start) {
        return -EFAULT; /* the last page of addresses, never mapped */
    }
    if (uverbs_can_populate() &&
        (range.end - range.start <= UVERBS_POPULATE_MAX)) {
        return uverbs_populate(range.start, range.end, writes);
    }
    ret = hca_maps_query(&range);
    if (ret == 0) {
        return uverbs_check_range(&range, writes);
    }
    return uverbs_can_populate() ?
               uverbs_populate(range.start, range.end, writes) :
               ret;
}

int uverbs_prefetch(uint64_t start, uint64_t length, bool writes)
{
    uint64_t end = (start + length + 4095) & ~4095ull;

    return ((end > start) && uverbs_can_populate()) ?
               uverbs_populate(start & ~4095ull, end, writes) :
               uverbs_check_mapped(start, length, writes);
}

/* Shares the pages, so that peers can map them, before the check faults any of
 * them in. */
static int uverbs_check_pages(struct uverbs_region *region)
{
    bool writes = (region->access &
                   (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND)) != 0;
    int ret;

    region->share = hca_share_begin(region->start, region->length, writes);
    ret           = uverbs_check_mapped(region->start, region->length, writes);
    if (ret != 0) {
        hca_share_end(region->share);
    }
    return ret;
}

static bool uverbs_is_implicit(const struct uverbs_region *region)
{
    return (region->access & IBV_ACCESS_ON_DEMAND) && (region->start == 0) &&
           (region->length == UINT64_MAX);
}

/* Checks a region, and shares its pages. After success the caller owns
 * region->share. */
static int uverbs_check_region(struct uverbs_region *region)
{
    int ret = uverbs_check_access(region->access);

    if (ret != 0) {
        return ret;
    }
    if ((region->start & 4095) != (region->iova & 4095)) {
        return -EINVAL;
    }
    if (uverbs_is_implicit(region) ?
            (region->iova != 0) :
            (region->length == 0) ||
                (region->start + region->length < region->start) ||
                (region->start + region->length > UINT64_MAX - 4095) ||
                (region->iova + region->length < region->iova)) {
        return -EINVAL;
    }
    if (region->access & IBV_ACCESS_ON_DEMAND) {
        if (hca_lacks(HCA_LACK_ODP)) {
            return -EOPNOTSUPP;
        }
        region->share = hca_share_begin_odp();
        return 0;
    }
    return uverbs_check_pages(region);
}

static struct hca_mkey_spec uverbs_mr_spec(const struct uverbs_mr *mr,
                                           const struct uverbs_region *region,
                                           const struct uverbs_pd *pd)
{
    return (struct hca_mkey_spec){
        .dev          = mr->obj.ctx->dev,
        .type         = HCA_MKEY_MR,
        .implicit_odp = uverbs_is_implicit(region),
        .access       = region->access,
        .pdn          = pd->pdn,
        .qpn          = HCA_ANY_QPN,
        .iova         = region->iova,
        .va           = region->start,
        .length       = region->length,
    };
}

int uverbs_mr_new(struct uverbs_ctx *ctx, struct uverbs_pd *pd,
                  const struct uverbs_region *region, struct uverbs_mr **mrp)
{
    struct hca_mkey_spec spec;
    struct uverbs_mr *mr;
    int ret;

    ret = uverbs_obj_new(ctx, UVERBS_OBJECT_MR, sizeof(*mr), &mr);
    if (ret != 0) {
        return ret;
    }
    mr->pd = pd;
    spec   = uverbs_mr_spec(mr, region, pd);
    ret    = hca_mkey_create(&spec, &mr->mkey);
    if (ret != 0) {
        uverbs_obj_delete(&mr->obj);
        return ret;
    }
    uverbs_hold(pd);
    *mrp = mr;
    return 0;
}

static int uverbs_mr_release(struct uverbs_obj *obj,
                             struct uverbs_events *events)
{
    struct uverbs_mr *mr = (struct uverbs_mr *)obj;

    (void)events;
    if (!hca_mkey_destroy(mr->mkey)) {
        return -ETIMEDOUT;
    }
    uverbs_unpin(mr->pinned);
    uverbs_drop(mr->pd);
    hca_share_end(mr->share);
    if (mr->map.size > 0) {
        munmap(mr->map.addr, mr->map.size);
    }
    uverbs_drop(mr->dm);
    return 0;
}

const struct uverbs_type uverbs_mr_type = {
    UVERBS_OBJECT_MR,
    "memory regions",
    .release = uverbs_mr_release,
};

/* Pages of on-demand regions are not pinned. If locked memory counts, all pages
 * of another region are faulted in: it takes as long as pinning. */
static int uverbs_region_pin(const struct uverbs_region *region,
                             uint64_t *pages)
{
    int ret;

    *pages = 0;
    if (region->access & IBV_ACCESS_ON_DEMAND) {
        return 0;
    }
    ret = uverbs_pin(region->start, region->length, pages);
    if ((ret != 0) || (*pages == 0)) {
        return ret;
    }
    ret = uverbs_prefetch(region->start, region->length,
                          region->access & IBV_ACCESS_LOCAL_WRITE);
    if (ret != 0) {
        uverbs_unpin(*pages);
    }
    return ret;
}

static int uverbs_reg_mr(struct uverbs_req *req)
{
    struct ib_uverbs_reg_mr_resp resp = {0};
    struct ib_uverbs_reg_mr cmd;
    struct uverbs_region region;
    struct uverbs_pd *pd;
    struct uverbs_mr *mr;
    uint64_t pinned;
    int ret;

    ret = uverbs_core_in(req, &cmd);
    if (ret != 0) {
        return ret;
    }
    region = (struct uverbs_region){
        .start  = cmd.start,
        .length = cmd.length,
        .iova   = cmd.hca_va,
        .access = cmd.access_flags,
    };
    ret = uverbs_check_region(&region);
    if (ret != 0) {
        return ret;
    }
    pd = uverbs_obj_find(req->ctx, UVERBS_OBJECT_PD, cmd.pd_handle, &ret);
    if (pd == NULL) {
        ret = -EINVAL;
        goto err_end_share;
    }

    ret = uverbs_region_pin(&region, &pinned);
    if (ret != 0) {
        goto err_end_share;
    }
    ret = uverbs_mr_new(req->ctx, pd, &region, &mr);
    if (ret != 0) {
        goto err_unpin;
    }
    mr->pinned     = pinned;
    mr->share      = region.share;
    resp.mr_handle = mr->obj.handle;
    resp.lkey      = hca_key(mr->mkey);
    resp.rkey      = resp.lkey;
    ret            = uverbs_core_out(req, &resp);
    if (ret != 0) {
        uverbs_obj_destroy(&mr->obj, NULL);
    }
    return ret;

err_unpin:
    uverbs_unpin(pinned);
err_end_share:
    hca_share_end(region.share);
    return ret;
}

/* Changes a region in place: its key stays. Pins first, as a failure must leave
 * the region unchanged. Takes region->share; ends it after an error.
 * @param pins  pin the pages of @region instead of the previous ones
 * @return 0, -ETIMEDOUT (a stopped process uses it), or as uverbs_pin() */
static int uverbs_mr_change(struct uverbs_mr *mr,
                            const struct uverbs_region *region,
                            struct uverbs_pd *pd, bool pins)
{
    struct hca_mkey_spec spec = uverbs_mr_spec(mr, region, pd);
    uint64_t pinned           = 0;
    int ret                   = pins ? uverbs_region_pin(region, &pinned) : 0;

    if ((ret == 0) && !hca_mkey_modify(mr->mkey, &spec)) {
        uverbs_unpin(pinned);
        ret = -ETIMEDOUT;
    }
    if (ret != 0) {
        hca_share_end(region->share);
        return ret;
    }
    uverbs_hold(pd);
    uverbs_drop(mr->pd);
    mr->pd = pd;
    if (pins) {
        uverbs_unpin(mr->pinned);
        mr->pinned = pinned;
    }
    hca_share_end(mr->share);
    mr->share = region->share;
    return 0;
}

/* Fills in and checks the region as it will be after the change. */
static int uverbs_rereg_region(const struct uverbs_mr *mr,
                               const struct ib_uverbs_rereg_mr *cmd,
                               struct uverbs_region *region)
{
    *region = (struct uverbs_region){
        .start  = mr->mkey->va,
        .length = mr->mkey->length,
        .iova   = mr->mkey->iova,
        .access = mr->mkey->access,
    };
    if (cmd->flags & IBV_REREG_MR_CHANGE_ACCESS) {
        region->access = cmd->access_flags;
    }
    if (cmd->flags & IBV_REREG_MR_CHANGE_TRANSLATION) {
        region->start  = cmd->start;
        region->length = cmd->length;
        region->iova   = cmd->hca_va;
    }
    return uverbs_check_region(region);
}

static int uverbs_rereg_mr(struct uverbs_req *req)
{
    struct ib_uverbs_rereg_mr_resp resp = {0};
    struct ib_uverbs_rereg_mr cmd;
    struct uverbs_region region;
    struct uverbs_pd *pd;
    struct uverbs_mr *mr;
    bool pins;
    int ret;

    ret = uverbs_core_in(req, &cmd);
    if (ret != 0) {
        return ret;
    }
    if (cmd.flags == 0) {
        return -EINVAL;
    }
    if (cmd.flags & ~UVERBS_REREG_SUPPORTED) {
        return -EOPNOTSUPP;
    }
    mr = uverbs_obj_find(req->ctx, UVERBS_OBJECT_MR, cmd.mr_handle, &ret);
    if (mr == NULL) {
        return ret;
    }
    /* number 0: an earlier deregistration ended with ETIMEDOUT */
    if ((mr->dm != NULL) || (mr->map.size > 0) ||
        (atomic_load(&mr->mkey->obj.num) == 0)) {
        return -EINVAL;
    }
    pd = mr->pd;
    if (cmd.flags & IBV_REREG_MR_CHANGE_PD) {
        pd = uverbs_obj_find(req->ctx, UVERBS_OBJECT_PD, cmd.pd_handle, &ret);
        if (pd == NULL) {
            return -EINVAL;
        }
    }
    ret = uverbs_rereg_region(mr, &cmd, &region);
    if (ret == 0) {
        pins = (cmd.flags & IBV_REREG_MR_CHANGE_TRANSLATION) ||
               ((mr->mkey->access ^ region.access) & IBV_ACCESS_ON_DEMAND);
        ret = uverbs_mr_change(mr, &region, pd, pins);
    }
    if (ret != 0) {
        return ret;
    }
    resp.lkey = hca_key(mr->mkey);
    resp.rkey = resp.lkey;
    return uverbs_core_out(req, &resp);
}

static const struct uverbs_attr_spec uverbs_dereg_mr_attrs[] = {
    {UVERBS_ATTR_DESTROY_MR_HANDLE, UVERBS_IDR, UVERBS_MANDATORY, 0, 0,
     UVERBS_OBJECT_MR},
};

/* Fails while a window is bound, as ibv_dereg_mr(3) says. */
static int uverbs_dereg_mr(struct uverbs_req *req)
{
    const struct uverbs_mr *mr = uverbs_get_obj(req,
                                                UVERBS_ATTR_DESTROY_MR_HANDLE);

    return uverbs_mw_has(req->ctx, hca_key(mr->mkey)) ? -EBUSY :
                                                        uverbs_destroy(req);
}

static const struct uverbs_attr_spec uverbs_query_mr_attrs[] = {
    {UVERBS_ATTR_QUERY_MR_HANDLE, UVERBS_IDR, UVERBS_MANDATORY, 0, 0,
     UVERBS_OBJECT_MR},
    {UVERBS_ATTR_QUERY_MR_RESP_LKEY, UVERBS_OUT, UVERBS_MANDATORY, 4, 4, 0},
    {UVERBS_ATTR_QUERY_MR_RESP_RKEY, UVERBS_OUT, UVERBS_MANDATORY, 4, 4, 0},
    {UVERBS_ATTR_QUERY_MR_RESP_LENGTH, UVERBS_OUT, UVERBS_MANDATORY, 8, 8, 0},
    {UVERBS_ATTR_QUERY_MR_RESP_IOVA, UVERBS_OUT, 0, 8, 8, 0},
};

static int uverbs_query_mr(struct uverbs_req *req)
{
    const struct uverbs_mr *mr = uverbs_get_obj(req,
                                                UVERBS_ATTR_QUERY_MR_HANDLE);
    uint32_t key               = hca_key(mr->mkey);
    int ret;

    ret = uverbs_put(req, UVERBS_ATTR_QUERY_MR_RESP_LKEY, &key, 4);
    if (ret == 0) {
        ret = uverbs_put(req, UVERBS_ATTR_QUERY_MR_RESP_RKEY, &key, 4);
    }
    if (ret == 0) {
        ret = uverbs_put(req, UVERBS_ATTR_QUERY_MR_RESP_LENGTH,
                         &mr->mkey->length, 8);
    }
    if (ret == 0) {
        ret = uverbs_put(req, UVERBS_ATTR_QUERY_MR_RESP_IOVA, &mr->mkey->iova,
                         8);
    }
    return ret;
}

const struct uverbs_method uverbs_mr_methods[] = {
    {.object  = UVERBS_OBJECT_MR,
     .id      = UVERBS_METHOD_MR_DESTROY,
     .name    = "dereg_mr",
     .is_end  = true,
     .handler = uverbs_dereg_mr,
     UVERBS_ATTRS(uverbs_dereg_mr_attrs)},
    {.object  = UVERBS_OBJECT_MR,
     .id      = UVERBS_METHOD_QUERY_MR,
     .name    = "query_mr",
     .handler = uverbs_query_mr,
     UVERBS_ATTRS(uverbs_query_mr_attrs)},
    {.handler = NULL},
};

const struct uverbs_write uverbs_mr_writes[] = {
    {IB_USER_VERBS_CMD_REG_MR, "reg_mr", sizeof(struct ib_uverbs_reg_mr),
     sizeof(struct ib_uverbs_reg_mr_resp), uverbs_reg_mr},
    {IB_USER_VERBS_CMD_REREG_MR, "rereg_mr", sizeof(struct ib_uverbs_rereg_mr),
     sizeof(struct ib_uverbs_rereg_mr_resp), uverbs_rereg_mr},
    {.handler = NULL},
};
