/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * A port of a device that the transport has opened: its state, and the values
 * that the options of the path resolve to.
 */
#ifndef DCX_INFO_PORT_H
#define DCX_INFO_PORT_H

#include "info_report.h"

#include "uct/dcx/net/dcx_port.h"

/* Appends a part for one port of @md's device. @num counts from 1. A port that
 * is not active has only the rows of its state. Failures become rows. */
void info_port_report(struct info_report *report, uct_dcx_md_t *md,
                      const uct_dcx_iface_config_t *config, unsigned num);

#endif
