/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Queues and devices that stop without a completion: the device reports them by
 * an asynchronous event (dev/dcx_async.h), in another thread. What failed is
 * handled in the interface's thread.
 */
#ifndef UCT_DCX_FATAL_H
#define UCT_DCX_FATAL_H

#include "dcx_iface.h"


/* Starts and stops handling errors of the interface's queues and device. */
void uct_dcx_fatal_init(uct_dcx_iface_t *iface);
void uct_dcx_fatal_cleanup(uct_dcx_iface_t *iface);

/* Handles failures that were reported (uct_dcx_fatal_is_pending()). Called by
 * progress. */
void uct_dcx_fatal_progress(uct_dcx_iface_t *iface);

#endif
