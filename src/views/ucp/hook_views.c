/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
#define _GNU_SOURCE
#include "hook_views.h"
#include "loader/loader.h"

#include <dlfcn.h>
#include <stdatomic.h>

static const uct_dcx_view_ops_t *hook_views_find(void)
{
    void *plugin = loader_plugin();
    const uct_dcx_view_ops_t *ops;

    if (plugin == NULL) {
        return NULL;
    }

    ops = dlsym(plugin, UCT_DCX_VIEW_OPS);
    return ((ops != NULL) && (ops->version == UCT_DCX_VIEW_OPS_VERSION)) ? ops :
                                                                           NULL;
}

const uct_dcx_view_ops_t *hook_views(void)
{
    static const uct_dcx_view_ops_t *_Atomic views;

    if (views == NULL) {
        views = hook_views_find();
    }

    return views;
}

const uct_dcx_view_policy_t *hook_policy(void)
{
    static const uct_dcx_view_policy_t *_Atomic policy;

    if ((policy == NULL) && (hook_views() != NULL)) {
        policy = hook_views()->policy();
    }

    return policy;
}
