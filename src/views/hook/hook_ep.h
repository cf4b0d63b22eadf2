/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * What is to be known of an endpoint before a view is sent by it, as UCP itself
 * tells. It is that of the endpoint's configuration, of which a worker has few,
 * for as long as it is there: read once for each. Endpoints come and go, and
 * UCP gives one another configuration when it is connected.
 */
#ifndef HOOK_EP_H
#define HOOK_EP_H

#include "hook_context.h"


ucp_inside_ep_t hook_ep_get(hook_worker_t *worker, ucp_ep_h ep);

#endif
