/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The options that come from variables of UCX's own transports, as an
 * administrator has set them for a whole site (src/uct/dcx/base/dcx_site.h).
 */
#ifndef DCX_INFO_SITE_H
#define DCX_INFO_SITE_H

#include "info_report.h"

#include "uct/dcx/base/dcx_site.h"

/* Appends a row for each option of the table that is taken from there. */
void info_site_report(struct info_part *part, const ucs_config_field_t *table);

#endif
