/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Operations that are more than one WQE; see dcx_op.h. Each callback of the
 * user may end other operations: lists are read from their beginning after each
 * call.
 */
#include "dcx_op.h"
#include "uct/dcx/ucx/dcx_ucx.h"

#include <ucs/arch/cpu.h>
#include <ucs/sys/math.h>


static ucs_mpool_ops_t uct_dcx_op_mpool_ops = {
    .chunk_alloc   = ucs_mpool_chunk_malloc,
    .chunk_release = ucs_mpool_chunk_free,
};


static inline int uct_dcx_op_is_done(uct_dcx_op_t *op)
{
    return ucs_list_is_empty(&op->wqe) &&
           ((op->events == 0) || (op->status != UCS_OK));
}


static void uct_dcx_op_unlink(ucs_list_link_t *link)
{
    ucs_list_del(link);
    ucs_list_head_init(link);
}


static void uct_dcx_op_finish(uct_dcx_op_t *op)
{
    if (op->end != NULL) {
        op->end(op);
    }
    uct_dcx_op_complete(op);
}


/* Records an event, with an error or UCS_OK; ends the operation if it is
 * done. */
static void uct_dcx_op_update(uct_dcx_op_t *op, ucs_status_t status)
{
    op->status = (op->status == UCS_OK) ? status : op->status;
    if (uct_dcx_op_is_done(op)) {
        uct_dcx_op_finish(op);
    }
}


uct_dcx_op_t *uct_dcx_op_new(uct_dcx_op_set_t *set, uct_dcx_ep_t *ep,
                             uct_completion_t *comp, uct_dcx_op_end_t end)
{
    uct_dcx_op_t *op = ucs_mpool_get(&set->mp);

    if (op == NULL) {
        return NULL;
    }

    ucs_list_head_init(&op->list);
    ucs_list_head_init(&op->wqe);
    op->set    = set;
    op->ep     = ep;
    op->comp   = comp;
    op->end    = end;
    op->events = 0;
    op->status = UCS_OK;
    return op;
}


void uct_dcx_op_wait_events(uct_dcx_op_t *op, unsigned events)
{
    if (ucs_list_is_empty(&op->list)) {
        ucs_list_add_tail(&op->set->open, &op->list);
    }
    op->events += events;
}


void uct_dcx_op_wait_wqe(uct_dcx_op_t *op, ucs_list_link_t *wqes,
                         uint16_t index)
{
    ucs_list_link_t *pos = wqes->prev;

    /* It is mostly the last one: a flush waits for the WQE that was just
     * posted. */
    while ((pos != wqes) &&
           UCS_CIRCULAR_COMPARE16(
               ucs_container_of(pos, uct_dcx_op_t, wqe)->index, >, index)) {
        pos = pos->prev;
    }

    op->index = index;
    ucs_list_insert_after(pos, &op->wqe);
}


void uct_dcx_op_event(uct_dcx_op_t *op, ucs_status_t status)
{
    ucs_assert(op->events > 0);
    op->events--;
    uct_dcx_op_update(op, status);
}


void uct_dcx_op_wqe_done(uct_dcx_op_t *op, ucs_status_t status)
{
    uct_dcx_op_unlink(&op->wqe);
    uct_dcx_op_update(op, status);
}


void uct_dcx_op_cancel(uct_dcx_op_t *op)
{
    op->comp = NULL;
    ucs_list_del(&op->wqe);
    uct_dcx_op_complete(op);
}


ucs_status_t uct_dcx_op_flush(uct_dcx_op_set_t *set, uct_dcx_ep_t *ep,
                              ucs_list_link_t *wqes, uint16_t index,
                              uct_completion_t *comp)
{
    uct_dcx_op_t *op;

    if (comp == NULL) {
        return UCS_INPROGRESS;
    }

    op = uct_dcx_op_new(set, ep, comp, NULL);
    if (op == NULL) {
        return UCS_ERR_NO_MEMORY;
    }

    uct_dcx_op_wait_wqe(op, wqes, index);
    return UCS_INPROGRESS;
}


/* Stops an operation from waiting for events. If it still waits for its WQE,
 * removes it from the list: its endpoint may be destroyed, and another be
 * created at the same address. */
static void uct_dcx_op_fail(uct_dcx_op_t *op, ucs_status_t status)
{
    op->events = 0;
    op->status = (op->status == UCS_OK) ? status : op->status;
    if (!uct_dcx_op_is_done(op)) {
        uct_dcx_op_unlink(&op->list);
    }
}


static uct_dcx_op_t *uct_dcx_op_next_done(const uct_dcx_op_set_t *set)
{
    uct_dcx_op_t *op;

    ucs_list_for_each (op, &set->open, list) {
        if (uct_dcx_op_is_done(op)) {
            return op;
        }
    }
    return NULL;
}


/* All of them fail before one ends: operations that a callback begins do not
 * fail. */
void uct_dcx_op_purge(uct_dcx_op_set_t *set, const uct_dcx_ep_t *ep,
                      ucs_status_t status)
{
    uct_dcx_op_t *op, *next;

    ucs_list_for_each_safe (op, next, &set->open, list) {
        if ((op->ep == ep) || (ep == NULL)) {
            uct_dcx_op_fail(op, status);
        }
    }

    while ((op = uct_dcx_op_next_done(set)) != NULL) {
        uct_dcx_op_finish(op);
    }
}


ucs_status_t uct_dcx_op_set_init(uct_dcx_op_set_t *set)
{
    ucs_list_head_init(&set->open);
    return uct_dcx_ucx_mpool_init(&set->mp, sizeof(uct_dcx_op_t), 64, UINT_MAX,
                                  &uct_dcx_op_mpool_ops, "uct_dcx_ops");
}


void uct_dcx_op_set_cleanup(uct_dcx_op_set_t *set)
{
    uct_dcx_op_purge(set, NULL, UCS_ERR_CANCELED);
    ucs_mpool_cleanup(&set->mp, 1);
}
