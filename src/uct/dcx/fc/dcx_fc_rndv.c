/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Asks for rendezvous that wait for a FIN, answers peers that ask, and ends
 * those that the peer reports as lost; see dcx_fc_rndv.h.
 */
#include "dcx_fc_rndv.h"
#include "dcx_fc_grant.h"
#include "dcx_fc_msg.h"
#include "uct/dcx/tm/dcx_tm.h"

#include <ucs/sys/math.h>

/* A rendezvous is asked for at ticks that are a power of two, from 2 on, and at
 * multiples of this number: a question takes a receive buffer, and the
 * receiver's user may only be late. */
#define UCT_DCX_FC_RNDV_TICKS 64


int uct_dcx_fc_rndv_is_open(const uct_dcx_fc_t *fc)
{
    const uct_dcx_tm_t *tm = fc->queues->tm;

    return (tm != NULL) && (tm->rndv.count > 0);
}


/* Returns 0 if nothing can be posted now. */
static int uct_dcx_fc_rndv_ask(uct_dcx_fc_t *fc, const uct_dcx_op_t *op)
{
    const uct_dcx_fc_grant_t state = {.rndv = op->id};
    uct_dcx_ep_t *ep               = op->ep;
    uct_dcx_dci_t *dci             = NULL;

    if (ep->credits > 0) {
        dci = uct_dcx_tx_get(&fc->queues->dci, ep);
    }

    if (dci == NULL) {
        return 0;
    }

    uct_dcx_fc_post_msg(fc, dci, ep, UCT_DCX_FC_ID_ASK, &state);
    ep->credits--;
    return 1;
}


static int uct_dcx_fc_rndv_is_due(unsigned ticks)
{
    return (ticks >= 2) &&
           (ucs_is_pow2(ticks) || (ticks % UCT_DCX_FC_RNDV_TICKS == 0));
}


void uct_dcx_fc_rndv_tick(uct_dcx_fc_t *fc)
{
    uct_dcx_op_t *op;

    ucs_list_for_each (op, &fc->queues->dci.ops.open, list) {
        if (!uct_dcx_fc_rndv_is_due(op->ticks + 1) ||
            uct_dcx_fc_rndv_ask(fc, op)) {
            op->ticks++;
        }
    }
}


void uct_dcx_fc_receive_ask(uct_dcx_fc_t *fc,
                            const uct_dcx_fc_request_t *request)
{
    const uct_dcx_tm_t *tm = fc->queues->tm;

    if ((tm != NULL) && uct_dcx_tm_is_lost(tm, request->state.rndv)) {
        uct_dcx_fc_answer(fc, UCT_DCX_FC_ID_LOST, request);
    }
}


void uct_dcx_fc_receive_lost(uct_dcx_fc_t *fc, __be32 id)
{
    if (uct_dcx_fc_rndv_is_open(fc)) {
        uct_dcx_tm_rndv_failed(&fc->queues->tm->rndv, id);
    }
}
