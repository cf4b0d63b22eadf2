/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Recovery: from an error completion to a working queue, and the report to the
 * user. Called by progress and when endpoints are destroyed, in the interface's
 * thread.
 */
#ifndef UCT_DCX_RECOVER_H
#define UCT_DCX_RECOVER_H

#include "dcx_resend.h"


/* Allocates all memory that recovery will need. Called after
 * uct_dcx_dci_set_init(). Returns UCS_ERR_NO_MEMORY on failure. */
ucs_status_t uct_dcx_recover_init(uct_dcx_dci_set_t *set);

/* Frees the memory, after the last endpoint is destroyed. */
void uct_dcx_recover_cleanup(uct_dcx_dci_set_t *set);

/* Handles an error completion of a send queue, or any completion of an
 * initiator that drains. Ignores those of a LOST one. */
void uct_dcx_recover_take(uct_dcx_dci_set_t *set, uct_dcx_dci_t *dci,
                          const struct mlx5_cqe64 *cqe);

/* Handles an initiator whose QP is in error and writes no completion: all that
 * is outstanding on it ends, also operations that may have been executed, and
 * their endpoints fail: with UCS_ERR_IO_ERROR, or with the earlier failure of
 * their stream. Canceled operations end with UCS_ERR_CANCELED. The initiator
 * works again after that. Returns 0, with nothing ended, if the QP cannot be
 * used any longer: call uct_dcx_recover_close(). */
int uct_dcx_recover_fatal(uct_dcx_dci_set_t *set, uct_dcx_dci_t *dci);

/* Makes all initiators LOST, for ever: the device, or a queue that cannot be
 * reset, has failed. All that is outstanding ends as in
 * uct_dcx_recover_fatal(). */
void uct_dcx_recover_close(uct_dcx_dci_set_t *set);

/* Fails @ep after uct_dcx_recover_close(): ends its operations and calls its
 * error handler. Does nothing if it has failed before, or has
 * UCT_DCX_EP_FLAG_MUTED. */
void uct_dcx_recover_close_ep(uct_dcx_ep_t *ep);

/* Detaches an endpoint that is being destroyed: its error handler is not called
 * any longer. Its flushes end before this returns. On an exclusive initiator
 * whose queue could be reset, all of its operations do, also lost ones. On any
 * other one they end when the device has completed them; lost ones end with the
 * report that is under way. */
void uct_dcx_recover_leave(uct_dcx_dci_set_t *set, uct_dcx_ep_t *ep);


/* Returns non-zero in the callback of a lost operation, if other lost
 * operations have not ended. */
int uct_dcx_recover_is_ending(const uct_dcx_dci_set_t *set);

/* Flushes @ep, whose lost operations may be among those that are being ended.
 * Returns as uct_ep_flush(). */
ucs_status_t uct_dcx_recover_flush(uct_dcx_dci_set_t *set, uct_dcx_ep_t *ep,
                                   uct_completion_t *comp);

#endif
