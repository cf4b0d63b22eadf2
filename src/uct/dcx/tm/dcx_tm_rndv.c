/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Outstanding rendezvous; see dcx_tm_rndv.h. Only their ids limit their number,
 * as a user whose rendezvous is refused cannot wait until another ends.
 */
#include "dcx_tm_rndv.h"

#include <endian.h>
#include <ucs/debug/log.h>
#include <ucs/debug/memtrack_int.h>


enum {
    UCT_DCX_TM_RNDV_LENGTH = 64 /* initial length; a power of two */
};


ucs_status_t uct_dcx_tm_rndv_init(uct_dcx_tm_rndv_t *rndv)
{
    rndv->mask  = UCT_DCX_TM_RNDV_LENGTH - 1;
    rndv->count = 0;
    rndv->last  = 0;
    rndv->ops   = ucs_calloc(UCT_DCX_TM_RNDV_LENGTH, sizeof(*rndv->ops),
                             "uct_dcx_tm_rndv");
    return (rndv->ops != NULL) ? UCS_OK : UCS_ERR_NO_MEMORY;
}


void uct_dcx_tm_rndv_cleanup(uct_dcx_tm_rndv_t *rndv)
{
    ucs_assert(rndv->count == 0);
    ucs_free(rndv->ops);
}


static UCS_F_ALWAYS_INLINE uct_dcx_op_t **
uct_dcx_tm_rndv_place(const uct_dcx_tm_rndv_t *rndv, uint32_t id)
{
    return &rndv->ops[id & rndv->mask];
}


/* Doubles the table. Ids with different low bits still differ with one more
 * bit. */
static int uct_dcx_tm_rndv_grow(uct_dcx_tm_rndv_t *rndv)
{
    size_t length             = (size_t)rndv->mask + 1;
    uct_dcx_tm_rndv_t greater = *rndv;
    size_t i;

    greater.mask = (2 * length) - 1;
    greater.ops  = ucs_calloc(2 * length, sizeof(*greater.ops),
                              "uct_dcx_tm_rndv");
    if (greater.ops == NULL) {
        return 0;
    }

    for (i = 0; i < length; ++i) {
        if (rndv->ops[i] != NULL) {
            *uct_dcx_tm_rndv_place(&greater, rndv->ops[i]->id) = rndv->ops[i];
        }
    }
    ucs_free(rndv->ops);
    *rndv = greater;
    return 1;
}


static void uct_dcx_tm_rndv_end(uct_dcx_op_t *op)
{
    uct_dcx_tm_rndv_t *rndv = op->owner;

    *uct_dcx_tm_rndv_place(rndv, op->id) = NULL;
    rndv->count--;
}


uct_dcx_op_t *uct_dcx_tm_rndv_begin(uct_dcx_tm_rndv_t *rndv, uct_dcx_ep_t *ep,
                                    uct_completion_t *comp)
{
    uct_dcx_op_t *op;

    if (ucs_unlikely(rndv->count > (rndv->mask / 2)) &&
        !uct_dcx_tm_rndv_grow(rndv)) {
        return NULL;
    }

    op = uct_dcx_op_new(&uct_dcx_ep_dci_set(ep)->ops, ep, comp,
                        uct_dcx_tm_rndv_end);
    if (op == NULL) {
        return NULL;
    }

    /* Half of the places are free. */
    while (*uct_dcx_tm_rndv_place(rndv, ++rndv->last) != NULL) {
    }

    *uct_dcx_tm_rndv_place(rndv, rndv->last) = op;
    rndv->count++;
    op->owner = rndv;
    op->id    = rndv->last;
    uct_dcx_op_wait_events(op, 1);
    return op;
}


void uct_dcx_tm_rndv_fin(uct_dcx_tm_rndv_t *rndv, __be32 app_ctx)
{
    uint32_t id          = be32toh(app_ctx);
    uct_dcx_op_t **place = uct_dcx_tm_rndv_place(rndv, id);
    uct_dcx_op_t *op     = *place;

    if (ucs_unlikely((op == NULL) || (op->id != id))) {
        ucs_debug("rendezvous 0x%x has already ended", id);
        return;
    }

    /* the only event that it waits for */
    ucs_assert((op->events == 1) && ucs_list_is_empty(&op->wqe));
    *place = NULL;
    rndv->count--;
    uct_dcx_op_complete(op);
}


void uct_dcx_tm_rndv_cancel(uct_dcx_op_t *op)
{
    uct_dcx_tm_rndv_end(op);
    uct_dcx_op_cancel(op);
}
