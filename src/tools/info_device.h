/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Looks at the RDMA devices of the machine with the eyes of the transport,
 * whose own code opens them and resolves the options of a port (src/uct/dcx).
 */
#ifndef DCX_INFO_DEVICE_H
#define DCX_INFO_DEVICE_H

#include "info_report.h"

/* Reports on each device, or on the one called `name`, with its ports. @return
 * 0, or -ENODEV if there is no device of that name. A variable of UCX_DCX_* that
 * has a wrong value is the report's error; the defaults count then. */
int info_device_report(struct info_report *report, const char *name);

#endif
