/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Replaces info_views.c if dcx is built without src/views.
 */
#include "info_views.h"

ucs_config_field_t *const info_views_table = NULL;
