/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The transport's views and the options about them, if it is in this process:
 * from the first call of ucp_init() on. By any thread.
 */
#ifndef HOOK_VIEWS_H
#define HOOK_VIEWS_H

#include "views/view/dcx_view_ops.h"

/* NULL: there is no transport, or one of another build */
const uct_dcx_view_ops_t *hook_views(void);

/* The options (UCX_DCX_TYPES*), which the first call reads; NULL: as above */
const uct_dcx_view_policy_t *hook_policy(void);

#endif
