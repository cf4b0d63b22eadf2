/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/* The figures of the process in UCX's statistics: dcx_stats.c */
#ifndef UCT_DCX_STATS_H
#define UCT_DCX_STATS_H

/* Copies the figures into UCX's counters. Does nothing if UCX was built without
 * statistics, or has no destination for them. */
void uct_dcx_stats_update(void);

#endif
