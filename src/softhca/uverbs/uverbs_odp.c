/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * ADVISE_MR: the checks of mlx5_ib. With FLUSH the range is checked, too, and
 * its pages are faulted in, so that they are not missing (obj/hca_odp.h); with
 * NO_FAULT only those that the process has. Without FLUSH nothing is
 * prefetched.
 */
#define _GNU_SOURCE
#include "softhca/fabric/hca_fabric.h"
#include "softhca/obj/hca_odp.h"
#include "uverbs.h"
#include "uverbs_mr.h"
#include "uverbs_pd.h"

#include <errno.h>

static const struct uverbs_attr_spec uverbs_advise_mr_attrs[] = {
    {UVERBS_ATTR_ADVISE_MR_PD_HANDLE, UVERBS_IDR, UVERBS_MANDATORY, 0, 0,
     UVERBS_OBJECT_PD},
    {UVERBS_ATTR_ADVISE_MR_ADVICE, UVERBS_IN, UVERBS_MANDATORY, 8, 8, 0},
    {UVERBS_ATTR_ADVISE_MR_FLAGS, UVERBS_IN, UVERBS_MANDATORY, 4, 8, 0},
    {UVERBS_ATTR_ADVISE_MR_SGE_LIST, UVERBS_IN, UVERBS_MANDATORY,
     sizeof(struct ib_uverbs_sge), UINT16_MAX, 0},
};

/* Checks an SGE as mlx5_ib's get_prefetchable_mr() does. */
static int uverbs_advise_sge(const struct uverbs_pd *pd,
                             const struct ib_uverbs_sge *sge, uint64_t advice)
{
    const struct hca_mkey *mkey = hca_obj_peek(HCA_KIND_MKEY, sge->lkey >> 8);

    if ((mkey == NULL) || (hca_key(mkey) != sge->lkey) ||
        (mkey->obj.proc != hca_self)) {
        return -ENOENT;
    }
    if (mkey->pdn != pd->pdn) {
        return -EPERM;
    }
    if ((advice == IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_WRITE) &&
        !(mkey->access & IBV_ACCESS_LOCAL_WRITE)) {
        return -EPERM;
    }
    return (mkey->access & IBV_ACCESS_ON_DEMAND) ? 0 : -EINVAL;
}

/* Checks, as mlx5_ib's pagefault_mr() does, that the range is within the
 * region, and that its pages can be faulted in. With NO_FAULT the process gets
 * none, so that those that it does not have stay missing. */
static int uverbs_advise_flush(const struct ib_uverbs_sge *sge, uint64_t advice)
{
    const struct hca_mkey *mkey = hca_obj_peek(HCA_KIND_MKEY, sge->lkey >> 8);
    uint64_t offset             = sge->addr - mkey->iova;
    int ret;

    if ((sge->addr < mkey->iova) || (offset >= mkey->length) ||
        (sge->length > mkey->length - offset)) {
        return -EFAULT;
    }
    if (sge->length == 0) {
        return 0;
    }
    if (advice == IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT) {
        hca_odp_mark_present(mkey, mkey->va + offset, sge->length);
        return 0;
    }
    ret = uverbs_prefetch(mkey->va + offset, sge->length,
                          advice == IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_WRITE);
    if (ret == 0) {
        hca_odp_mark(mkey, mkey->va + offset, sge->length);
    }
    return ret;
}

static int uverbs_advise_mr(struct uverbs_req *req)
{
    const struct uverbs_pd *pd =
        uverbs_get_obj(req, UVERBS_ATTR_ADVISE_MR_PD_HANDLE);
    uint64_t advice = uverbs_get_const(req, UVERBS_ATTR_ADVISE_MR_ADVICE);
    uint64_t list   = uverbs_get_const(req, UVERBS_ATTR_ADVISE_MR_SGE_LIST);
    size_t len      = uverbs_len(req, UVERBS_ATTR_ADVISE_MR_SGE_LIST);
    uint64_t flags  = uverbs_get_const(req, UVERBS_ATTR_ADVISE_MR_FLAGS);
    struct ib_uverbs_sge sge;
    int ret = 0;

    if (advice > IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT) {
        return -EOPNOTSUPP;
    }
    if (((len % sizeof(sge)) != 0) ||
        (flags & ~(uint64_t)IB_UVERBS_ADVISE_MR_FLAG_FLUSH)) {
        return -EINVAL;
    }
    for (size_t off = 0; (ret == 0) && (off < len); off += sizeof(sge)) {
        ret = uverbs_copy_in(&sge, list + off, sizeof(sge));
        if (ret == 0) {
            ret = uverbs_advise_sge(pd, &sge, advice);
        }
        if ((ret == 0) && (flags & IB_UVERBS_ADVISE_MR_FLAG_FLUSH)) {
            ret = uverbs_advise_flush(&sge, advice);
        }
    }
    return ret;
}

const struct uverbs_method uverbs_odp_methods[] = {
    {.object  = UVERBS_OBJECT_MR,
     .id      = UVERBS_METHOD_ADVISE_MR,
     .name    = "advise_mr",
     .handler = uverbs_advise_mr,
     UVERBS_ATTRS(uverbs_advise_mr_attrs)},
    {.handler = NULL},
};
