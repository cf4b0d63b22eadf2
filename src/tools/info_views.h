/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The options of derived types, for info_device.c. info_views.c has them;
 * info_no_views.c replaces it if dcx is built without src/views.
 */
#ifndef DCX_INFO_VIEWS_H
#define DCX_INFO_VIEWS_H

#include "views/view/dcx_view_config.h"

/* The table of uct_dcx_view_config_t; NULL: there are no such options. */
extern ucs_config_field_t *const info_views_table;

#endif
