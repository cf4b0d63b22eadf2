/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The options of derived types; see info_views.h.
 */
#include "info_views.h"

ucs_config_field_t *const info_views_table = uct_dcx_view_config_table;
