/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Messages of the transport with the address of their sender: an answer can be
 * sent to it. Called by dcx_fc.c and dcx_fc_rndv.c.
 */
#ifndef UCT_DCX_FC_MSG_H
#define UCT_DCX_FC_MSG_H

#include "dcx_fc.h"

/* Posts a uct_dcx_fc_request_t on @dci, which has room for a WQE. @id is a
 * UCT_DCX_FC_ID_*. */
void uct_dcx_fc_post_msg(uct_dcx_fc_t *fc, uct_dcx_dci_t *dci, uct_dcx_ep_t *ep,
                         uint8_t id, const uct_dcx_fc_grant_t *state);

#endif
