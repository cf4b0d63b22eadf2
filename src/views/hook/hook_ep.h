/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Properties of an endpoint that decide whether it can send a view, as UCP
 * prints them. They are those of the endpoint's configuration, which never
 * changes. A worker has few configurations, so each is read once. An endpoint
 * gets another configuration when it is connected.
 */
#ifndef HOOK_EP_H
#define HOOK_EP_H

#include "hook_context.h"


/* Returns the properties of @ep, an endpoint of @worker. */
ucp_inside_ep_t hook_ep_get(hook_worker_t *worker, ucp_ep_h ep);

#endif
