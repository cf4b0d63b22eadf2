/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * See dcx_tag_driver.h.
 */
#include "dcx_tag_driver.h"

#include "uct/dcx/iface/dcx_caps.h"
#include "uct/dcx/mem/dcx_mem.h"
#include "uct/dcx/tm/dcx_tm.h"


static uct_dcx_tm_t dcx_tag_tm;

void dcx_tag_open(uct_iface_h iface, size_t max_request,
                  struct dcx_tag_limits *limits)
{
    uct_dcx_queues_t *queues = ucs_derived_of(iface, uct_dcx_queues_t);

    ucs_assert_always(uct_dcx_tm_rndv_init(&dcx_tag_tm.rndv) == UCS_OK);
    queues->tm              = &dcx_tag_tm;
    queues->limits.num_tags = 1000;
    uct_dcx_caps_init_tag(&queues->limits, max_request);
    limits->max_short = queues->limits.tag.max_short;
    limits->bcopy     = queues->limits.tag.bcopy;
    limits->iov       = queues->limits.tag.iov;
    limits->rndv_hdr  = queues->limits.tag.rndv_hdr;
}


void dcx_tag_close(uct_iface_h iface)
{
    ucs_derived_of(iface, uct_dcx_queues_t)->tm = NULL;
    uct_dcx_tm_rndv_cleanup(&dcx_tag_tm.rndv);
}


uint64_t dcx_tag_dc_key(uct_iface_h iface)
{
    return ucs_derived_of(iface, uct_dcx_queues_t)->rx.dc_key;
}


void dcx_tag_matches(uct_ep_h ep)
{
    ucs_derived_of(ep, uct_dcx_ep_t)->flags &= ~UCT_DCX_EP_FLAG_NO_TM;
}


void *dcx_tag_rndv_begin(uct_ep_h ep, uct_completion_t *comp)
{
    return uct_dcx_tm_rndv_begin(&dcx_tag_tm.rndv,
                                 ucs_derived_of(ep, uct_dcx_ep_t), comp);
}


uint32_t dcx_tag_rndv_id(void *op)
{
    return be32toh(((uct_dcx_op_t *)op)->id);
}


void dcx_tag_rndv_fin(uct_iface_h iface, uint32_t id)
{
    uct_dcx_tm_rndv_fin(&ucs_derived_of(iface, uct_dcx_queues_t)->tm->rndv,
                        htobe32(id));
}


unsigned dcx_tag_rndv_count(uct_iface_h iface)
{
    return ucs_derived_of(iface, uct_dcx_queues_t)->tm->rndv.count;
}


void dcx_tag_rndv_set_next(uct_iface_h iface, uint32_t id)
{
    uct_dcx_tm_rndv_t *rndv =
        &ucs_derived_of(iface, uct_dcx_queues_t)->tm->rndv;

    ucs_assert_always(rndv->num_ids < UCT_DCX_TM_RNDV_IDS);
    rndv->ids[rndv->num_ids++] = htobe32(id);
}


void dcx_tag_pack_rkey(uint32_t rkey, void *buffer)
{
    uct_dcx_mem_pack_rkey(rkey, buffer);
}
