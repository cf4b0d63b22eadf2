/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Operations that are objects. An operation that ends with its own WQE has only
 * a slot beside the ring (dcx_txq.h). An object waits for a WQE, or for events
 * (a message on the receive side, the completion of another queue), or for
 * both, and it ends when all of these have arrived. A flush waits for the last
 * WQE of its endpoint, and for no events: those of a rendezvous arrive when the
 * peer's user has posted a receive, which may be after our flush. Owned by the
 * thread that progresses the interface.
 *
 * Cancel, destroy and failure call uct_dcx_op_purge(), which ends the
 * operations of an endpoint: after an error an operation ends as soon as the
 * device has completed its WQE, without its events.
 */
#ifndef UCT_DCX_OP_H
#define UCT_DCX_OP_H

#include <stdint.h>
#include <ucs/datastruct/list.h>
#include <ucs/datastruct/mpool.inl>
#include <uct/base/uct_iface.h>

typedef struct uct_dcx_ep uct_dcx_ep_t;
typedef struct uct_dcx_op uct_dcx_op_t;
typedef struct uct_dcx_op_set uct_dcx_op_set_t;


/* Frees the resources of an operation that has ended or failed. The user's
 * completion is called after that. */
typedef void (*uct_dcx_op_end_t)(uct_dcx_op_t *op);

struct uct_dcx_op {
    uct_dcx_op_set_t *set;
    ucs_list_link_t list;   /* entry of the list of operations that wait for
                             * events, or linked to itself */
    ucs_list_link_t wqe;    /* entry of the queue of the WQE that it waits
                             * for, in the order of indexes; or linked to
                             * itself */
    uct_dcx_ep_t *ep;       /* only for comparison: once it is destroyed,
                             * the operation waits for its WQE alone */
    uct_completion_t *comp; /* may be NULL */
    uct_dcx_op_end_t end;   /* may be NULL */
    void *owner;            /* for @end, like @id */
    __be32 id;
    uint16_t index;      /* first WQEBB of the WQE it waits for */
    uint16_t events;     /* number of events it waits for */
    uint16_t ticks;      /* for the room that sets @owner */
    ucs_status_t status; /* its first error */
};


/* The operations of an interface */
struct uct_dcx_op_set {
    ucs_mpool_t mp;
    ucs_list_link_t open; /* operations that wait for events, the oldest
                           * first */
};


ucs_status_t uct_dcx_op_set_init(uct_dcx_op_set_t *set);

/* Ends all open operations with UCS_ERR_CANCELED. None waits for a WQE. */
void uct_dcx_op_set_cleanup(uct_dcx_op_set_t *set);

/* Returns an operation of @ep that waits for nothing yet; NULL if memory is
 * short. */
uct_dcx_op_t *uct_dcx_op_new(uct_dcx_op_set_t *set, uct_dcx_ep_t *ep,
                             uct_completion_t *comp, uct_dcx_op_end_t end);

/* Makes the operation wait for @events more events. */
void uct_dcx_op_wait_events(uct_dcx_op_t *op, unsigned events);

/* Makes the operation wait for the WQE at @index, which is outstanding; @wqes
 * is the list of its queue. */
void uct_dcx_op_wait_wqe(uct_dcx_op_t *op, ucs_list_link_t *wqes,
                         uint16_t index);

/* Handles one event, with an error or UCS_OK. */
void uct_dcx_op_event(uct_dcx_op_t *op, ucs_status_t status);

/* Handles the completion of the WQE. */
void uct_dcx_op_wqe_done(uct_dcx_op_t *op, ucs_status_t status);

/* Frees the operation in any state; calls neither @end nor the user's
 * completion. */
void uct_dcx_op_cancel(uct_dcx_op_t *op);

/* Creates an operation that waits only for the WQE at @index of the queue with
 * list @wqes; none if @comp is NULL. Returns UCS_INPROGRESS, or
 * UCS_ERR_NO_MEMORY. */
ucs_status_t uct_dcx_op_flush(uct_dcx_op_set_t *set, uct_dcx_ep_t *ep,
                              ucs_list_link_t *wqes, uint16_t index,
                              uct_completion_t *comp);

/* Stops the operations of @ep (NULL: of all endpoints) from waiting for events:
 * they end with @status, or their earlier error, now or with their WQE. */
void uct_dcx_op_purge(uct_dcx_op_set_t *set, const uct_dcx_ep_t *ep,
                      ucs_status_t status);


/* Frees the operation, which waits for nothing any longer, and calls the user's
 * completion, but not @end. */
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
