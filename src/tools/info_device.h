/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Examines the RDMA devices of the machine by the code of the transport
 * (src/uct/dcx), which opens them and resolves the options of a port.
 */
#ifndef DCX_INFO_DEVICE_H
#define DCX_INFO_DEVICE_H

#include "info_report.h"

/* Reports on the device called @name, with its ports; NULL: on all devices. If
 * an option has a wrong value, sets the report's error and uses the defaults.
 * Call info_log_keep() before. @return 0, or -ENODEV: there is no @name. */
int info_device_report(struct info_report *report, const char *name);

#endif
