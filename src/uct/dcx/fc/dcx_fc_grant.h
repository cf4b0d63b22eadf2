/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Flow control: the grants of the receiver's side.
 */
#ifndef UCT_DCX_FC_GRANT_H
#define UCT_DCX_FC_GRANT_H

#include "dcx_fc.h"

ucs_status_t uct_dcx_fc_grant_init(uct_dcx_fc_t *fc);
void uct_dcx_fc_grant_stop(uct_dcx_fc_t *fc);
void uct_dcx_fc_receive_request(uct_dcx_fc_t *fc,
                                const uct_dcx_fc_request_t *request);

#endif
