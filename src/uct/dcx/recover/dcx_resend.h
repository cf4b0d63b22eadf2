/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Operations that a failure costs, and those that are posted again after it.
 * Owned by the thread that progresses the interface.
 */
#ifndef UCT_DCX_RESEND_H
#define UCT_DCX_RESEND_H

#include "uct/dcx/queue/dcx_endpoint.h"


/* Operations that end with an error, and endpoints that fail, from when an
 * initiator was stopped until the user was told of the last of them. It is
 * large enough for all that fits on one. */
struct uct_dcx_lost {
    uct_dcx_slot_t  *slots;   /* with their status */
    unsigned        num_slots;
    unsigned        next;     /* of which the user is told */
    const uct_dcx_ep_t *ep;   /* whose they are, if the initiator was its own;
                               * to compare with only */
    uct_dcx_ep_t    **eps;    /* NULL: destroyed meanwhile */
    unsigned        num_eps;
    ucs_list_link_t ops;      /* that waited for a lost WQE */
    uint8_t         *ring;    /* what the ring of a shared one was like */
    uct_dcx_ep_t    **owners; /* ... and the endpoints of its WQEs */
};


/* The endpoint, if it is not NULL, fails with the failure of its stream. */
void uct_dcx_lost_add_ep(uct_dcx_lost_t *lost, const uct_dcx_dci_t *dci,
                         uct_dcx_ep_t *ep);

/* All that is outstanding on an initiator, which the device does not use any
 * more, ends with the failures of its streams. */
void uct_dcx_lost_add_all(uct_dcx_lost_t *lost, uct_dcx_dci_t *dci);

/* The same for what is lost on a shared initiator. All else is left in its send
 * queue, from WQEBB 0 on, to be posted again. */
void uct_dcx_resend(uct_dcx_lost_t *lost, uct_dcx_dci_t *dci);

#endif
