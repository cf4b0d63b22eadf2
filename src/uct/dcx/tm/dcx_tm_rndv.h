/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Rendezvous under way, the sending side. A request carries the id of one; the
 * device that has fetched the data sends it back (FIN). Ids are given out one
 * after the other, so that one which comes late, to a rendezvous that has ended
 * otherwise, finds nothing. Used by tagged operations (ep/) and by the delivery
 * of messages, in the interface's thread.
 */
#ifndef UCT_DCX_TM_RNDV_H
#define UCT_DCX_TM_RNDV_H

#include "uct/dcx/queue/dcx_endpoint.h"


typedef struct uct_dcx_tm_rndv {
    uct_dcx_op_t **ops; /* by the low bits of their ids */
    uint32_t     mask;  /* length - 1 */
    uint32_t     count; /* in use, half of them at most */
    uint32_t     last;  /* id that was given out last */
} uct_dcx_tm_rndv_t;


ucs_status_t uct_dcx_tm_rndv_init(uct_dcx_tm_rndv_t *rndv);

/* All operations of the interface have ended. */
void uct_dcx_tm_rndv_cleanup(uct_dcx_tm_rndv_t *rndv);

/* An operation of 'ep', with an id, that waits for a FIN. It ends with its
 * endpoint, too. NULL: memory is short. */
uct_dcx_op_t *uct_dcx_tm_rndv_begin(uct_dcx_tm_rndv_t *rndv, uct_dcx_ep_t *ep,
                                    uct_completion_t *comp);

/* A FIN has come. */
void uct_dcx_tm_rndv_fin(uct_dcx_tm_rndv_t *rndv, __be32 app_ctx);

/* The user carries it out himself, and 'comp' is not called. */
void uct_dcx_tm_rndv_cancel(uct_dcx_op_t *op);

#endif
