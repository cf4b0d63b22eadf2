/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/* Counts the operations of an interface with UCX_DCX_REPORT=y, or if UCX writes
 * statistics: dcx_count.c. */
#ifndef UCT_DCX_COUNT_H
#define UCT_DCX_COUNT_H

#include "dcx_iface.h"

/* Starts counting, if it is on: replaces operations of the interface, which is
 * open. A failure is logged, and nothing is counted. */
void uct_dcx_count_init(uct_dcx_iface_t *iface,
                        const uct_dcx_iface_config_t *config);

/* Stops counting. The counts stay in the figures of the process. */
void uct_dcx_count_cleanup(uct_dcx_iface_t *iface);

#endif
