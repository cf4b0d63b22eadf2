/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Whether the values of the options are in their ranges. Called when an
 * interface opens.
 */
#ifndef UCT_DCX_CONFIG_CHECK_H
#define UCT_DCX_CONFIG_CHECK_H

#include "dcx_config.h"


/* Checks each value against its range, and those that belong together against
 * each other. The first one that is wrong is reported with the name of its
 * variable and what it may be; UCS_ERR_INVALID_PARAM then. */
ucs_status_t uct_dcx_config_check(const uct_dcx_iface_config_t *config);

#endif
