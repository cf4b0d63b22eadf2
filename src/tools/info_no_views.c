/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
#include "info_views.h"

ucs_config_field_t *const info_views_table = NULL;
