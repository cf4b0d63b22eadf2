/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The transport's views and their options, if the transport is in this process:
 * at the latest from the first ucp_init() with tags or active messages on. Any
 * thread may call these.
 */
#ifndef HOOK_VIEWS_H
#define HOOK_VIEWS_H

#include "views/view/dcx_view_ops.h"

/* Returns the functions of views; NULL: there is no transport, or its table has
 * another version. */
const uct_dcx_view_ops_t *hook_views(void);

/* Returns the options (UCX_DCX_TYPES*), which the first call reads; NULL if
 * hook_views() returns NULL. */
const uct_dcx_view_policy_t *hook_policy(void);

#endif
