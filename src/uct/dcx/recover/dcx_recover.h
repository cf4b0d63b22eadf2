/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Recovery: from a completion with error to a queue that works again, and a
 * user who was told. Called by progress and when endpoints end, in the
 * interface's thread.
 */
#ifndef UCT_DCX_RECOVER_H
#define UCT_DCX_RECOVER_H

#include "dcx_resend.h"


/* All memory that recovery will need. The set is open. */
ucs_status_t uct_dcx_recover_init(uct_dcx_dci_set_t *set);

void uct_dcx_recover_cleanup(uct_dcx_dci_set_t *set);

/* A send completion with error, or any of an initiator that does not work. */
void uct_dcx_recover_take(uct_dcx_dci_set_t *set, uct_dcx_dci_t *dci,
                          const struct mlx5_cqe64 *cqe);

/* The endpoint is being destroyed. Its error handler is not called any more.
 * Its operations on an exclusive initiator end before this returns, those on a
 * shared one when the device is done with them. */
void uct_dcx_recover_leave(uct_dcx_dci_set_t *set, uct_dcx_ep_t *ep);


/* Returns non-zero while lost operations are being ended, and some have not. */
int uct_dcx_recover_tells(const uct_dcx_dci_set_t *set);

/* Flushes @ep, of which lost operations may be among those that are being
 * ended. Returns as uct_ep_flush(). */
ucs_status_t uct_dcx_recover_flush(uct_dcx_dci_set_t *set, uct_dcx_ep_t *ep,
                                   uct_completion_t *comp);

#endif
