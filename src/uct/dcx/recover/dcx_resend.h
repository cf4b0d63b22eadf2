/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Operations that are lost by a failure, and operations that are posted again
 * after it. Owned by the thread that progresses the interface.
 */
#ifndef UCT_DCX_RESEND_H
#define UCT_DCX_RESEND_H

#include "uct/dcx/queue/dcx_endpoint.h"


/* Operations that end with an error, and endpoints that fail: kept from the
 * reset of an initiator until the last report to the user. It has room for all
 * that fits on one initiator. */
struct uct_dcx_lost {
    uct_dcx_slot_t *slots; /* copies, with their status */
    unsigned num_slots;
    unsigned next;          /* next one to report */
    const uct_dcx_ep_t *ep; /* their endpoint, if the initiator was exclusive;
                             * only for comparison */
    uct_dcx_ep_t **eps;     /* NULL: destroyed meanwhile */
    unsigned num_eps;
    ucs_list_link_t ops;   /* operations that waited for a lost WQE */
    uint8_t *ring;         /* copy of a shared initiator's ring */
    uct_dcx_ep_t **owners; /* endpoints of the WQEs in @ring */
};


/* Fails the endpoint, if it is not NULL, with the failure of its stream. Adds
 * it if its error handler has to be called. */
void uct_dcx_lost_add_ep(uct_dcx_lost_t *lost, const uct_dcx_dci_t *dci,
                         uct_dcx_ep_t *ep);

/* Adds all outstanding operations of an initiator, with the failures of their
 * streams; fails and adds the endpoints of a shared one. Empties the send
 * queue, which the device does not use any longer. */
void uct_dcx_lost_add_all(uct_dcx_lost_t *lost, uct_dcx_dci_t *dci);

/* Adds the lost operations of a shared initiator, and their endpoints. Leaves
 * all other WQEs in its send queue, from WQEBB 0 on: the caller rings the
 * doorbell. */
void uct_dcx_resend(uct_dcx_lost_t *lost, uct_dcx_dci_t *dci);

#endif
