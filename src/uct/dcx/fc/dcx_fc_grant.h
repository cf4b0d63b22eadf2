/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Flow control, the receiver's side: grants. Called by dcx_fc.c.
 */
#ifndef UCT_DCX_FC_GRANT_H
#define UCT_DCX_FC_GRANT_H

#include "dcx_fc.h"

ucs_status_t uct_dcx_fc_grant_init(uct_dcx_fc_t *fc);

/* Drops answers that are not posted. */
void uct_dcx_fc_grant_stop(uct_dcx_fc_t *fc);

/* Begins answers that wait for their turn, and cancels those that are not
 * acknowledged in time. */
void uct_dcx_fc_grant_progress(uct_dcx_fc_t *fc, ucs_time_t now);

/* Returns non-zero if progress has to be called for answers, after the time
 * @left at most. */
int uct_dcx_fc_grant_time_left(const uct_dcx_fc_t *fc, ucs_time_t *left);

/* Sends @state of @request back to its origin, as a message with @id
 * (UCT_DCX_FC_ID_*), or queues it. Drops the request if memory is short, or the
 * peer's address has no path; the peer repeats it. */
void uct_dcx_fc_answer(uct_dcx_fc_t *fc, uint8_t id,
                       const uct_dcx_fc_request_t *request);

/* Answers a request for credits with a grant. */
void uct_dcx_fc_receive_request(uct_dcx_fc_t *fc,
                                const uct_dcx_fc_request_t *request);

/* Uses the whole receive queue if the first half is too short for all grants,
 * @offer more credits, and the bases of as many peers as there are endpoints.
 * Peers without an endpoint here are not known. The whole queue is used, too,
 * if grants take most of the bank: then many peers send. */
void uct_dcx_fc_check_queue(uct_dcx_fc_t *fc, unsigned offer);

#endif
