/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * What failures cost: the operations that end with an error, and the endpoints
 * whose users hear of it. Lives from when an initiator was stopped until the
 * last of them was told. Owned by the thread that progresses the interface.
 */
#ifndef UCT_DCX_DCI_LOST_H
#define UCT_DCX_DCI_LOST_H

#include "dcx_failure.h"


typedef struct uct_dcx_lost_op {
    uct_dcx_op_t op;       /* without done: it has ended */
    uct_dcx_ep_t *ep;
    ucs_status_t status;
} uct_dcx_lost_op_t;


typedef struct uct_dcx_lost_ep {
    uct_dcx_ep_t            *ep;      /* NULL: not to be told of */
    const uct_dcx_failure_t *failure;
} uct_dcx_lost_ep_t;


/* The lists have room for all that is outstanding on the initiator. */
struct uct_dcx_lost {
    uct_dcx_lost_op_t *ops;
    unsigned          num_ops;
    ucs_list_link_t   flushes;
    uct_dcx_lost_ep_t *eps;
    unsigned          num_eps;
};


/* Nothing is lost yet. */
void uct_dcx_lost_init(uct_dcx_lost_t *lost, const uct_dcx_dci_t *dci);

void uct_dcx_lost_cleanup(uct_dcx_lost_t *lost);

/* Memory for 'count' items, which is there. */
void *uct_dcx_lost_alloc(size_t count, size_t size);

void uct_dcx_lost_add_op(uct_dcx_lost_t *lost, const uct_dcx_op_t *op,
                         uct_dcx_ep_t *ep, ucs_status_t status);

void uct_dcx_lost_add_ep(uct_dcx_lost_t *lost, uct_dcx_ep_t *ep,
                         const uct_dcx_failure_t *failure);

/* Off the list that it is in */
void uct_dcx_lost_add_flush(uct_dcx_lost_t *lost, uct_dcx_flush_t *flush,
                            ucs_status_t status);

/* Takes all off an exclusive initiator that is in RESET. Without a failure, it
 * ends with UCS_ERR_CANCELED. */
void uct_dcx_lost_take_all(uct_dcx_lost_t *lost, uct_dcx_dci_t *dci,
                           const uct_dcx_failure_t *failure);

/* Takes what failures cost off a shared initiator that is in RESET. There is
 * one for each stream, the first that it met. What is innocent is left in its
 * send queue, from block 0 on, to be posted again. */
void uct_dcx_lost_sort(uct_dcx_lost_t *lost, uct_dcx_dci_t *dci,
                       uct_dcx_failure_t *failures);

/* Ends the operations and flushes, in order. */
void uct_dcx_lost_end(uct_dcx_lost_t *lost, uct_dcx_dci_t *dci);

/* Whether operations of the endpoint have still to end. */
int uct_dcx_lost_has(const uct_dcx_lost_t *lost, const uct_dcx_ep_t *ep);

/* The endpoint is being destroyed: what is left of it ends as cancelled, and
 * nobody hears of its failure any more. */
void uct_dcx_lost_forget(uct_dcx_lost_t *lost, const uct_dcx_ep_t *ep);

/* The rest, when 'lost' was taken off 'dci', and its end: endpoints fail, the
 * initiator works again, users are told. */
void uct_dcx_dci_recover(uct_dcx_iface_t *iface, uct_dcx_dci_t *dci,
                         uct_dcx_lost_t *lost);

#endif
