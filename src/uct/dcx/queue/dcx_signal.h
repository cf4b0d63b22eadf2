/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Selects the WQEs that request a completion. The others are unsignaled.
 *
 * The first WQE on an idle queue requests one, then one every
 * UCX_DCX_TX_CQ_MODERATION WQEBBs, and WQEs with a completion of the user. Each
 * WQE requests one on shared initiators, with policy dcs, and while endpoints
 * wait for an initiator. A completion also ends all WQEs before its own.
 *
 * If the last requested completion has arrived and unsignaled WQEs follow it,
 * the next WQE requests one. If none is posted until the next call of progress,
 * a NOP is posted that requests one; at once if an endpoint waits for an
 * initiator or flushes, or the interface is armed. So each initiator with
 * outstanding WQEs awaits a requested completion, or is in one of the set's
 * lists @unsignaled and @unsignaled_due. Used by the interface's thread.
 */
#ifndef UCT_DCX_SIGNAL_H
#define UCT_DCX_SIGNAL_H

#include "dcx_dci.h"


/* Returns non-zero if a completion has been requested that ends the WQE at
 * @index, which is outstanding. */
static inline int uct_dcx_signal_is_requested(const uct_dcx_dci_t *dci,
                                              uint16_t index)
{
    const uct_dcx_sq_t *sq = &dci->txq.sq;

    return uct_dcx_txq_is_outstanding(&dci->txq, sq->signaled) &&
           UCS_CIRCULAR_COMPARE16(sq->signaled, >=, index);
}


/* Returns non-zero if WQEs are outstanding and no completion has been requested
 * for any. */
static inline int uct_dcx_signal_has_unsignaled(const uct_dcx_dci_t *dci)
{
    return !uct_dcx_txq_is_idle(&dci->txq) &&
           !uct_dcx_signal_is_requested(dci, dci->txq.sq.ci);
}


/* Posts a NOP that requests a completion, and completes after all previous
 * WQEs. The queue is not idle and has room for the NOP. */
void uct_dcx_signal_post_nop(uct_dcx_dci_t *dci);

/* Requests a completion that ends all posted WQEs. Does nothing if one was
 * requested, or the queue is idle. The queue has room for a NOP. */
void uct_dcx_signal_request(uct_dcx_dci_t *dci);

/* Requests a completion on all initiators in the two lists. */
void uct_dcx_signal_request_all(uct_dcx_dci_set_t *set);

/* Requests a completion on initiators that already had unsignaled WQEs in the
 * last call of progress; on all in the two lists if endpoints wait for an
 * initiator. */
void uct_dcx_signal_progress(uct_dcx_dci_set_t *set);

/* Records that unsignaled WQEs follow the last completion: the next WQE, or a
 * NOP, requests one. */
void uct_dcx_signal_add_unsignaled(uct_dcx_dci_set_t *set, uct_dcx_dci_t *dci);

#endif
