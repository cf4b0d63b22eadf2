/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Examines the RDMA devices of the machine by the code of the transport
 * (src/uct/dcx), which opens them and resolves the options of a port.
 */
#ifndef DCX_INFO_DEVICE_H
#define DCX_INFO_DEVICE_H

#include "info_report.h"

/* Reports on each device, or on the one called @name, with its ports. If a
 * variable UCX_DCX_* has a wrong value, sets the report's error and uses the
 * defaults. @return 0, or -ENODEV if there is no device of that name. */
int info_device_report(struct info_report *report, const char *name);

#endif
