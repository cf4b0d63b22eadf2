/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Waiting for completions: the file descriptor of an interface. Called in the
 * interface's thread.
 */
#ifndef UCT_DCX_EVENT_H
#define UCT_DCX_EVENT_H

#include "dcx_iface.h"


/* Create and destroy the completion channel and iface->event. The first is
 * called before the completion queues exist, the other when they are gone. Log
 * errors. */
ucs_status_t uct_dcx_event_init(uct_dcx_iface_t *iface);
void uct_dcx_event_cleanup(uct_dcx_iface_t *iface);

/* Makes the descriptor ready; any thread may call it. */
void uct_dcx_event_wake(const uct_dcx_event_t *event);

/* Operations of UCT's tables */
ucs_status_t uct_dcx_event_fd_get(uct_iface_h iface, int *fd_p);
ucs_status_t uct_dcx_event_arm(uct_iface_h iface, unsigned events);

#endif
