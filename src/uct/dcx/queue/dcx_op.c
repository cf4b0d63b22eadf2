/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Operations that are more than one WQE; see dcx_op.h. Whatever is called of
 * the user may end other operations: lists are read from their beginning after
 * each call.
 */
#include "dcx_op.h"
#include "uct/dcx/ucx/dcx_ucx.h"

#include <ucs/arch/cpu.h>
#include <ucs/sys/math.h>


static ucs_mpool_ops_t uct_dcx_op_mpool_ops = {
    .chunk_alloc   = ucs_mpool_chunk_malloc,
    .chunk_release = ucs_mpool_chunk_free
};


static inline int uct_dcx_op_is_done(uct_dcx_op_t *op)
{
    return !op->is_ending && ucs_list_is_empty(&op->wqe) &&
           ((op->events == 0) || (op->status != UCS_OK));
}


static void uct_dcx_op_unlink(ucs_list_link_t *link)
{
    ucs_list_del(link);
    ucs_list_head_init(link);
}


/* The flushes that wait for an operation have one less to wait for. */
static void uct_dcx_op_leave(uct_dcx_op_t *op)
{
    ucs_list_link_t *link = op->list.next;
    uct_dcx_op_t *flush;

    if (ucs_list_is_empty(&op->list)) {
        return;
    }

    for (; link != &op->set->open; link = link->next) {
        flush = ucs_container_of(link, uct_dcx_op_t, list);
        if (flush->is_flush && (flush->ep == op->ep) && !op->is_flush &&
            (flush->status == UCS_OK)) {
            flush->events--;
        }
    }
    uct_dcx_op_unlink(&op->list);
}


static void uct_dcx_op_finish(uct_dcx_op_t *op)
{
    uct_completion_t *comp = op->comp;
    ucs_status_t status;

    op->events = 0;
    if (op->end != NULL) {
        op->is_ending = 1; /* it may be purged meanwhile */
        op->end(op, op->status);
        op->is_ending = 0;
        if (!uct_dcx_op_is_done(op)) {
            return; /* it goes on, and flushes wait on */
        }
    }

    status = op->status;
    uct_dcx_op_leave(op);
    ucs_mpool_put(op);
    if (comp != NULL) {
        uct_invoke_completion(comp, status);
    }
}


static uct_dcx_op_t *uct_dcx_op_next_done(const uct_dcx_op_set_t *set)
{
    uct_dcx_op_t *op;

    ucs_list_for_each(op, &set->open, list) {
        if (uct_dcx_op_is_done(op)) {
            return op;
        }
    }
    return NULL;
}


static void uct_dcx_op_finish_done(const uct_dcx_op_set_t *set)
{
    uct_dcx_op_t *op;

    while ((op = uct_dcx_op_next_done(set)) != NULL) {
        uct_dcx_op_finish(op);
    }
}


/* An operation has changed, with an error or UCS_OK: it may be done, and with it
 * flushes behind it. */
static void uct_dcx_op_update(uct_dcx_op_t *op, ucs_status_t status)
{
    uct_dcx_op_set_t *set = op->set;

    op->status = (op->status == UCS_OK) ? status : op->status;
    if (uct_dcx_op_is_done(op)) {
        uct_dcx_op_finish(op);
        uct_dcx_op_finish_done(set);
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
    op->set       = set;
    op->ep        = ep;
    op->comp      = comp;
    op->end       = end;
    op->index     = 0;
    op->events    = 0;
    op->is_flush  = 0;
    op->is_ending = 0;
    op->status    = UCS_OK;
    return op;
}


/* From now on a flush waits for it. */
static void uct_dcx_op_enter(uct_dcx_op_t *op)
{
    if (ucs_list_is_empty(&op->list)) {
        ucs_list_add_tail(&op->set->open, &op->list);
    }
}


void uct_dcx_op_wait_events(uct_dcx_op_t *op, unsigned events)
{
    uct_dcx_op_enter(op);
    op->events += events;
}


void uct_dcx_op_wait_wqe(uct_dcx_op_t *op, ucs_list_link_t *wqes,
                         uint16_t index)
{
    ucs_list_link_t *pos = wqes->prev;

    if (!op->is_flush) {
        uct_dcx_op_enter(op);
    }

    /* mostly it is the last one: a flush is for what was just posted */
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


/* How many operations of the endpoint are open, flushes not counted */
static unsigned
uct_dcx_op_num_open(const uct_dcx_op_set_t *set, const uct_dcx_ep_t *ep)
{
    unsigned count = 0;
    uct_dcx_op_t *op;

    ucs_list_for_each(op, &set->open, list) {
        count += (op->ep == ep) && !op->is_flush;
    }
    return count;
}


ucs_status_t uct_dcx_op_flush(uct_dcx_op_set_t *set, uct_dcx_ep_t *ep,
                              ucs_list_link_t *wqes, uint16_t index,
                              uct_completion_t *comp)
{
    unsigned events = uct_dcx_op_num_open(set, ep);
    uct_dcx_op_t *op;

    if ((wqes == NULL) && (events == 0)) {
        return UCS_OK;
    }

    if (comp == NULL) {
        return UCS_INPROGRESS;
    }

    op = uct_dcx_op_new(set, ep, comp, NULL);
    if (op == NULL) {
        return UCS_ERR_NO_MEMORY;
    }

    op->is_flush = 1;
    if (events > 0) {
        uct_dcx_op_wait_events(op, events);
    }
    if (wqes != NULL) {
        uct_dcx_op_wait_wqe(op, wqes, index);
    }
    return UCS_INPROGRESS;
}


/* It waits for no events any more. If something else is to come it goes out of
 * the list: its endpoint may be destroyed, and another be created there. */
static void uct_dcx_op_fail(uct_dcx_op_t *op, ucs_status_t status)
{
    op->events = 0;
    op->status = (op->status == UCS_OK) ? status : op->status;
    if (!uct_dcx_op_is_done(op)) {
        uct_dcx_op_unlink(&op->list);
    }
}


/* All of them fail before one ends: what is begun in a callback does not. */
void uct_dcx_op_purge(uct_dcx_op_set_t *set, const uct_dcx_ep_t *ep,
                      ucs_status_t status)
{
    uct_dcx_op_t *op, *next;

    ucs_list_for_each_safe(op, next, &set->open, list) {
        if ((op->ep == ep) || (ep == NULL)) {
            uct_dcx_op_fail(op, status);
        }
    }
    uct_dcx_op_finish_done(set);
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
