/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The registration cache, in any version of UCX: its options, and the first
 * members of its table of operations. See dcx_ucx.h.
 */
#ifndef UCT_DCX_UCX_UCS_H
#define UCT_DCX_UCX_UCS_H

#include <ucs/memory/rcache.h>
#include <uct/api/version.h>
#include <uct/base/uct_md.h>


/* Since 1.16 UCP caches registrations for all transports, so that UCX's do not
 * by default, and the options are those of UCS. */
#if UCT_VERNO_MINOR >= 16
typedef ucs_rcache_config_t uct_dcx_ucx_rcache_config_t;
#define UCT_DCX_UCX_RCACHE_TABLE   ucs_config_rcache_table
#define UCT_DCX_UCX_RCACHE_DEFAULT "auto"
#else
typedef uct_md_rcache_config_t uct_dcx_ucx_rcache_config_t;
#define UCT_DCX_UCX_RCACHE_TABLE   uct_md_config_rcache_table
#define UCT_DCX_UCX_RCACHE_DEFAULT "try"
#endif

#if UCT_VERNO_MINOR >= 18
#define UCT_DCX_UCX_RCACHE_OPS .merge = uct_dcx_ucx_rcache_merge,
/* Does nothing: UCX requires it since 1.18. */
void uct_dcx_ucx_rcache_merge(void *context, ucs_rcache_t *rcache, void *arg,
                              ucs_rcache_region_t *region);
#else
#define UCT_DCX_UCX_RCACHE_OPS
#endif

#endif
