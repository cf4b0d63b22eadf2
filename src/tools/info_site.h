/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Options from variables of UCX's own transports, which an administrator has
 * set for a whole site (src/uct/dcx/base/dcx_site.h).
 */
#ifndef DCX_INFO_SITE_H
#define DCX_INFO_SITE_H

#include "info_report.h"

#include "uct/dcx/base/dcx_site.h"

/* Names the part. Appends a row for each option of @table that a variable of
 * the site sets to a valid value. */
void info_site_report(struct info_part *part, const ucs_config_field_t *table);

#endif
