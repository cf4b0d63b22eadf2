/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Releases initiators; see dcx_tx.h.
 */
#include "dcx_tx.h"
#include "dcx_pending.h"


uct_dcx_ep_t *uct_dcx_tx_detach(uct_dcx_dci_set_t *set, uct_dcx_dci_t *dci)
{
    /* Flushes that are ending are still in the list when nothing is outstanding
     * any longer. */
    if (uct_dcx_dci_is_shared(dci) || !uct_dcx_txq_is_idle(&dci->txq) ||
        !ucs_list_is_empty(&dci->txq.ops) || (dci->state == UCT_DCX_DCI_LOST)) {
        return NULL;
    }
    return uct_dcx_tx_unlink(set, dci);
}


void uct_dcx_tx_release(uct_dcx_dci_set_t *set, uct_dcx_dci_t *dci)
{
    uct_dcx_ep_t *ep = uct_dcx_tx_detach(set, dci);

    if ((ep != NULL) && !ucs_arbiter_group_is_empty(&ep->pending)) {
        uct_dcx_pending_lost_dci(set, ep, dci);
    }
}


ucs_status_t uct_dcx_tx_no_memory(uct_dcx_dci_set_t *set, uct_dcx_dci_t *dci)
{
    uct_dcx_tx_release(set, dci);
    return UCS_ERR_NO_MEMORY;
}
