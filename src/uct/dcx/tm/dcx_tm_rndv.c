/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Outstanding rendezvous; see dcx_tm_rndv.h. Only their ids limit their number,
 * as a user whose rendezvous is refused cannot wait until another ends.
 */
#include "dcx_tm_rndv.h"

#include <endian.h>
#include <sys/random.h>
#include <ucs/debug/log.h>
#include <ucs/debug/memtrack_int.h>


enum {
    UCT_DCX_TM_RNDV_LENGTH = 64 /* initial length; a power of two */
};


ucs_status_t uct_dcx_tm_rndv_init(uct_dcx_tm_rndv_t *rndv)
{
    rndv->mask    = UCT_DCX_TM_RNDV_LENGTH - 1;
    rndv->count   = 0;
    rndv->num_ids = 0;
    rndv->ops     = ucs_calloc(UCT_DCX_TM_RNDV_LENGTH, sizeof(*rndv->ops),
                               "uct_dcx_tm_rndv");
    return (rndv->ops != NULL) ? UCS_OK : UCS_ERR_NO_MEMORY;
}


void uct_dcx_tm_rndv_cleanup(uct_dcx_tm_rndv_t *rndv)
{
    ucs_assert(rndv->count == 0);
    ucs_free(rndv->ops);
}


static UCS_F_ALWAYS_INLINE uct_dcx_op_t **
uct_dcx_tm_rndv_place(const uct_dcx_tm_rndv_t *rndv, __be32 id)
{
    return &rndv->ops[id & rndv->mask];
}


/* Doubles the table. Ids with different places still differ with one more
 * bit. */
static UCS_F_NOINLINE int uct_dcx_tm_rndv_grow(uct_dcx_tm_rndv_t *rndv)
{
    size_t length      = (size_t)rndv->mask + 1;
    uct_dcx_op_t **old = rndv->ops;
    uct_dcx_op_t **ops = ucs_calloc(2 * length, sizeof(*ops),
                                    "uct_dcx_tm_rndv");
    size_t i;

    if (ops == NULL) {
        ucs_error("out of memory for %zu rendezvous", length);
        return 0;
    }

    rndv->mask = (2 * length) - 1;
    rndv->ops  = ops;
    for (i = 0; i < length; ++i) {
        if (old[i] != NULL) {
            *uct_dcx_tm_rndv_place(rndv, old[i]->id) = old[i];
        }
    }
    ucs_free(old);
    return 1;
}


/* Takes more random numbers. Returns 0 if the kernel has none. */
static UCS_F_NOINLINE int uct_dcx_tm_rndv_more_ids(uct_dcx_tm_rndv_t *rndv)
{
    if (getrandom(rndv->ids, sizeof(rndv->ids), 0) != sizeof(rndv->ids)) {
        return 0;
    }

    rndv->num_ids = UCT_DCX_TM_RNDV_IDS;
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
    uct_dcx_op_t *op, **place;
    __be32 id;

    if (ucs_unlikely(rndv->count > (rndv->mask / 2)) &&
        !uct_dcx_tm_rndv_grow(rndv)) {
        return NULL;
    }

    /* Half of the places are free. */
    do {
        if (ucs_unlikely(rndv->num_ids == 0) &&
            !uct_dcx_tm_rndv_more_ids(rndv)) {
            return NULL;
        }
        id    = rndv->ids[--rndv->num_ids];
        place = uct_dcx_tm_rndv_place(rndv, id);
    } while (*place != NULL);

    op = uct_dcx_op_new(&uct_dcx_ep_dci_set(ep)->ops, ep, comp,
                        uct_dcx_tm_rndv_end);
    if (op == NULL) {
        return NULL;
    }

    *place = op;
    rndv->count++;
    op->owner = rndv;
    op->id    = id;
    op->ticks = 0;
    uct_dcx_ep_dci_set(ep)->todo |= UCT_DCX_TODO_RNDV;
    uct_dcx_op_wait_events(op, 1);
    return op;
}


/* Removes a rendezvous from the table. Returns NULL if it has ended. */
static UCS_F_ALWAYS_INLINE uct_dcx_op_t *
uct_dcx_tm_rndv_take(uct_dcx_tm_rndv_t *rndv, __be32 id)
{
    uct_dcx_op_t **place = uct_dcx_tm_rndv_place(rndv, id);
    uct_dcx_op_t *op     = *place;

    if (ucs_unlikely((op == NULL) || (op->id != id))) {
        ucs_debug("rendezvous 0x%x has already ended", be32toh(id));
        return NULL;
    }

    *place = NULL;
    if (--rndv->count == 0) {
        uct_dcx_ep_dci_set(op->ep)->todo &= ~UCT_DCX_TODO_RNDV;
    }
    return op;
}


void uct_dcx_tm_rndv_fin(uct_dcx_tm_rndv_t *rndv, __be32 id)
{
    uct_dcx_op_t *op = uct_dcx_tm_rndv_take(rndv, id);

    if (ucs_likely(op != NULL)) {
        uct_dcx_op_complete(op);
    }
}


void uct_dcx_tm_rndv_failed(uct_dcx_tm_rndv_t *rndv, __be32 id)
{
    uct_dcx_op_t *op = uct_dcx_tm_rndv_take(rndv, id);

    if (op != NULL) {
        op->status = UCS_ERR_CONNECTION_RESET;
        uct_dcx_op_complete(op);
    }
}


void uct_dcx_tm_rndv_cancel(uct_dcx_op_t *op)
{
    uct_dcx_tm_rndv_end(op);
    uct_dcx_op_cancel(op);
}
