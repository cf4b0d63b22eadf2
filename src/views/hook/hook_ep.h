/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Finds out from the text of ucp_ep_print_info() if an endpoint can send views.
 * The result is kept by the index of the endpoint's configuration, for the
 * first HOOK_WORKER_MAX_CONFIGS of them; the index changes when the endpoint is
 * connected. A miss takes the worker's lock, and prints and parses the text.
 */
#ifndef HOOK_EP_H
#define HOOK_EP_H

#include "hook_context.h"


/* Returns the properties of @ep, an endpoint of @worker; zeroes if there is no
 * memory. */
ucp_inside_ep_t hook_ep_get(hook_worker_t *worker, ucp_ep_h ep);

#endif
