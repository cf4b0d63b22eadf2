/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Completions of the user that outlive their endpoint: those of operations that
 * the device still executes when the endpoint is destroyed. They are called
 * when the device is done. Once the interface is closed they are not called any
 * longer: ucp_worker_destroy() of UCX frees them before. Called in the
 * interface's thread.
 */
#ifndef UCT_DCX_ORPHAN_H
#define UCT_DCX_ORPHAN_H

#include "uct/dcx/queue/dcx_dci_set.h"

/* Notes which of the completions of @ep's outstanding operations are of dcx.
 * Called before @ep is destroyed. */
void uct_dcx_orphan_mark(uct_dcx_ep_t *ep);

/* Forgets the user's completions of endpoints that were destroyed. Called
 * before the initiators are destroyed, which ends the operations of all other
 * endpoints with UCS_ERR_CANCELED. */
void uct_dcx_orphan_forget(uct_dcx_dci_set_t *set);

#endif
