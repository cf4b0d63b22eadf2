/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * What a device does of UCT's atomics.
 */
#ifndef UCT_DCX_ATOMIC_H
#define UCT_DCX_ATOMIC_H

#include "uct/dcx/dev/dcx_device.h"

#include <uct/api/uct.h>


/* Which atomics the device does, as UCT announces them. */
void uct_dcx_atomic_query(const uct_dcx_device_t *dev, uct_iface_attr_t *attr);

#endif
