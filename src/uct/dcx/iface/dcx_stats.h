/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/* The figures of the process in UCX's statistics: dcx_stats.c */
#ifndef UCT_DCX_STATS_H
#define UCT_DCX_STATS_H

#include <ucs/stats/stats.h>

/* Returns non-zero if UCX has a destination for statistics; 0 if it was built
 * without them. */
static inline int uct_dcx_stats_is_on(void)
{
#ifdef ENABLE_STATS
    return ucs_stats_is_active();
#else
    return 0; /* UCX 1.22 has no function then */
#endif
}

/* Copies the figures into UCX's counters. Does nothing if UCX was built without
 * statistics, or has no destination for them. */
void uct_dcx_stats_update(void);

#endif
