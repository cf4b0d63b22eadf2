/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Operations that are more than one WQE. What ends with its WQE has a slot
 * beside it in the ring (dcx_txq.h) and needs no more. An operation of this
 * kind is an object: it waits for a WQE, or for events (a message on the
 * receive side, the completion of another queue), or for both, and it ends when
 * all of that has come. A flush is one; it waits for the last WQE of its
 * endpoint, and for no events: those of a rendezvous come when the peer's user
 * has posted a receive, which may be behind our flush. Owned by the thread that
 * progresses the interface.
 *
 * Cancel, destroy and failure go by uct_dcx_op_purge(), which ends those of an
 * endpoint: an error ends an operation as soon as the device is done with its
 * WQE, whatever else it was to wait for.
 */
#ifndef UCT_DCX_OP_H
#define UCT_DCX_OP_H

#include <stdint.h>
#include <ucs/datastruct/list.h>
#include <ucs/datastruct/mpool.inl>
#include <uct/base/uct_iface.h>

typedef struct uct_dcx_ep     uct_dcx_ep_t;
typedef struct uct_dcx_op     uct_dcx_op_t;
typedef struct uct_dcx_op_set uct_dcx_op_set_t;


/* All that the operation waited for has come, or it has failed: frees what it
 * held. The user's completion is called after that. */
typedef void (*uct_dcx_op_end_t)(uct_dcx_op_t *op);

struct uct_dcx_op {
    uct_dcx_op_set_t *set;
    ucs_list_link_t  list;      /* of those that wait for events, or linked to
                                 * itself */
    ucs_list_link_t  wqe;       /* in the queue of the WQE that it waits for, in
                                 * the order of indexes; or linked to itself */
    uct_dcx_ep_t     *ep;       /* to compare with only: once it is destroyed,
                                 * the operation waits for its WQE alone */
    uct_completion_t *comp;     /* may be NULL */
    uct_dcx_op_end_t end;       /* may be NULL */
    void             *owner;    /* for 'end', as is what follows */
    uint32_t         id;
    uint16_t         index;     /* first WQEBB of that WQE */
    uint16_t         events;    /* that have still to come */
    ucs_status_t     status;    /* its first error */
};


/* The operations of an interface. */
struct uct_dcx_op_set {
    ucs_mpool_t     mp;
    ucs_list_link_t open;  /* those that wait for events, the oldest first */
};


ucs_status_t uct_dcx_op_set_init(uct_dcx_op_set_t *set);

/* Ends all that are open with UCS_ERR_CANCELED. No queue has any left. */
void uct_dcx_op_set_cleanup(uct_dcx_op_set_t *set);

/* An operation of 'ep' that waits for nothing yet. NULL: memory is short. */
uct_dcx_op_t *uct_dcx_op_new(uct_dcx_op_set_t *set, uct_dcx_ep_t *ep,
                             uct_completion_t *comp, uct_dcx_op_end_t end);

/* It waits for 'events' more. */
void uct_dcx_op_wait_events(uct_dcx_op_t *op, unsigned events);

/* It waits for the WQE at 'index', which is outstanding; 'wqes' is the list of
 * its queue. */
void uct_dcx_op_wait_wqe(uct_dcx_op_t *op, ucs_list_link_t *wqes,
                         uint16_t index);

/* One event has come, with an error or UCS_OK. */
void uct_dcx_op_event(uct_dcx_op_t *op, ucs_status_t status);

/* The WQE has completed. */
void uct_dcx_op_wqe_done(uct_dcx_op_t *op, ucs_status_t status);

/* Takes it out, whatever it waits for: neither 'end' nor the user's completion
 * is called. */
void uct_dcx_op_cancel(uct_dcx_op_t *op);

/* An operation that waits for the WQE at 'index' of a queue, and no more.
 * Returns UCS_INPROGRESS, or UCS_ERR_NO_MEMORY. Without 'comp' none is
 * created. */
ucs_status_t uct_dcx_op_flush(uct_dcx_op_set_t *set, uct_dcx_ep_t *ep,
                              ucs_list_link_t *wqes, uint16_t index,
                              uct_completion_t *comp);

/* Has the operations of the endpoint wait for events no longer: they end with
 * @status, now or with their WQE. */
void uct_dcx_op_purge(uct_dcx_op_set_t *set, const uct_dcx_ep_t *ep,
                      ucs_status_t status);


/* It waits for nothing any more, and what it held is freed: the user is told. */
static UCS_F_ALWAYS_INLINE void uct_dcx_op_complete(uct_dcx_op_t *op)
{
    uct_completion_t *comp = op->comp;
    ucs_status_t status    = op->status;

    ucs_list_del(&op->list);
    ucs_mpool_put_inline(op);
    if (comp != NULL) {
        uct_invoke_completion(comp, status);
    }
}

#endif
