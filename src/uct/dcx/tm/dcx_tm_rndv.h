/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Outstanding rendezvous of the sending side. A request carries an id; the
 * device that has fetched the data sends it back (FIN). Ids are random: a
 * process that was not sent one cannot guess it, and a late FIN, for a
 * rendezvous that has ended otherwise, finds nothing. Only the id identifies
 * the sender of a FIN: the data of one that is in its completion overwrites the
 * sender's LID. Used by tagged operations (ep/) and by the delivery of
 * messages, in the interface's thread.
 */
#ifndef UCT_DCX_TM_RNDV_H
#define UCT_DCX_TM_RNDV_H

#include "uct/dcx/queue/dcx_endpoint.h"


enum {
    UCT_DCX_TM_RNDV_IDS = 64 /* random numbers taken from the kernel at once */
};


typedef struct uct_dcx_tm_rndv {
    uct_dcx_op_t **ops; /* by some bits of their ids */
    uint32_t mask;      /* length of @ops - 1 */
    uint32_t count;     /* in use, at most half of @ops */
    unsigned num_ids;
    __be32 ids[UCT_DCX_TM_RNDV_IDS]; /* for the next rendezvous, the last
                                      * one first */
} uct_dcx_tm_rndv_t;


/* Returns UCS_ERR_NO_MEMORY on failure. */
ucs_status_t uct_dcx_tm_rndv_init(uct_dcx_tm_rndv_t *rndv);

/* Frees the table; all operations of the interface have ended. */
void uct_dcx_tm_rndv_cleanup(uct_dcx_tm_rndv_t *rndv);

/* Returns an operation of @ep, with an id, that waits for a FIN; NULL if memory
 * or random numbers are short. It also ends with its endpoint. */
uct_dcx_op_t *uct_dcx_tm_rndv_begin(uct_dcx_tm_rndv_t *rndv, uct_dcx_ep_t *ep,
                                    uct_completion_t *comp);

/* Handles a FIN with @id: ends the operation, if it has not ended
 * otherwise. */
void uct_dcx_tm_rndv_fin(uct_dcx_tm_rndv_t *rndv, __be32 id);

/* Ends the operation with UCS_ERR_CONNECTION_RESET, if it has not ended
 * otherwise: the peer's device could not fetch the data. */
void uct_dcx_tm_rndv_failed(uct_dcx_tm_rndv_t *rndv, __be32 id);

/* Ends a rendezvous that the user cancels; does not call its completion. */
void uct_dcx_tm_rndv_cancel(uct_dcx_op_t *op);

#endif
