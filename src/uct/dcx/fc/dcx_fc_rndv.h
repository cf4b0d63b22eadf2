/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Rendezvous that the receiver's device could not fetch. The receiver knows
 * their ids, but not their senders: no completion has the sender's target. So a
 * sender asks for each rendezvous that waits for long, with its own address,
 * and a receiver answers for a lost one. A receiver that is gone makes the
 * endpoint fail. Called by dcx_fc.c.
 */
#ifndef UCT_DCX_FC_RNDV_H
#define UCT_DCX_FC_RNDV_H

#include "dcx_fc.h"

/* Returns non-zero if rendezvous of this interface wait for a FIN. */
int uct_dcx_fc_rndv_is_open(const uct_dcx_fc_t *fc);

/* Asks for the rendezvous that are due at this tick. One whose endpoint has no
 * credit or no initiator is due again at the next tick. */
void uct_dcx_fc_rndv_tick(uct_dcx_fc_t *fc);

/* Answers a sender's question, if its rendezvous is lost. */
void uct_dcx_fc_receive_ask(uct_dcx_fc_t *fc,
                            const uct_dcx_fc_request_t *request);

/* Ends a rendezvous of this interface: its receiver has lost it. */
void uct_dcx_fc_receive_lost(uct_dcx_fc_t *fc, __be32 id);

#endif
