/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * What a failure costs: the operations that end with its error, and the
 * endpoints whose users hear of it. Lives from the completion with error until
 * the last of them was told. Owned by the thread that progresses the interface.
 */
#ifndef UCT_DCX_DCI_LOST_H
#define UCT_DCX_DCI_LOST_H

#include "dcx_dci.h"
#include "dcx_peer.h"


/* What a completion with error told. */
typedef struct uct_dcx_failure {
    ucs_status_t status;
    const char   *reason;
    unsigned     syndrome;
    unsigned     vendor_syndrome;
    uint16_t     index;    /* block of the WQE */
    uint32_t     qpn;
    char         peer[UCT_DCX_PEER_NAME_MAX];
} uct_dcx_failure_t;


typedef struct uct_dcx_lost_op {
    uct_dcx_op_t op;       /* without done: it has ended */
    uct_dcx_ep_t *ep;
} uct_dcx_lost_op_t;


/* The lists have room for all that is outstanding on the initiator. */
struct uct_dcx_lost {
    uct_dcx_lost_op_t *ops;
    unsigned          num_ops;
    ucs_list_link_t   flushes;
    uct_dcx_ep_t      **eps;    /* NULL: not to be told of */
    unsigned          num_eps;
};


/* Nothing is lost yet. */
void uct_dcx_lost_init(uct_dcx_lost_t *lost, const uct_dcx_dci_t *dci);

void uct_dcx_lost_cleanup(uct_dcx_lost_t *lost);

/* Takes what 'failure' costs off an initiator that is in RESET. What is
 * innocent is left in its send queue, from block 0 on, to be posted again. An
 * exclusive one loses all, 'failure' is not looked at. */
void uct_dcx_lost_take(uct_dcx_lost_t *lost, uct_dcx_dci_t *dci,
                       const uct_dcx_failure_t *failure);

/* Ends the operations and flushes, in order. */
void uct_dcx_lost_end(uct_dcx_lost_t *lost, uct_dcx_dci_t *dci,
                      ucs_status_t status);

/* Whether operations of the endpoint have still to end. */
int uct_dcx_lost_has(const uct_dcx_lost_t *lost, const uct_dcx_ep_t *ep);

/* The endpoint is being destroyed: what is left of it ends as cancelled, and
 * nobody hears of its failure any more. */
void uct_dcx_lost_forget(uct_dcx_lost_t *lost, const uct_dcx_ep_t *ep);

#endif
