/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Send completions. Called by progress, in the interface's thread.
 */
#ifndef UCT_DCX_TX_POLL_H
#define UCT_DCX_TX_POLL_H

#include "dcx_iface.h"


/* Takes send completions of the first queue, beginning with @cqe, which
 * uct_dcx_cq_next() has returned. Runs deferred work (todo) afterwards. Returns
 * the number of completions, also of other queues. */
unsigned uct_dcx_tx_poll(uct_dcx_iface_t *iface, const struct mlx5_cqe64 *cqe);

/* Runs deferred work (todo). Returns @count plus the CQEs polled. */
unsigned uct_dcx_tx_todo(uct_dcx_iface_t *iface, unsigned count);


/* Progresses the send side, after messages were delivered, or if there are
 * none. Returns the number of completions. */
static UCS_F_ALWAYS_INLINE unsigned uct_dcx_tx_progress(uct_dcx_iface_t *iface)
{
    uct_dcx_dci_set_t *set       = &iface->super.dci;
    const struct mlx5_cqe64 *cqe = uct_dcx_cq_next(&set->group[0].cq);

    if (cqe != NULL) {
        return uct_dcx_tx_poll(iface, cqe);
    }
    return ucs_unlikely(set->has_todo != 0) ? uct_dcx_tx_todo(iface, 0) : 0;
}

#endif
