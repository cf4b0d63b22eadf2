/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * UCT's atomics on a device.
 */
#ifndef UCT_DCX_ATOMIC_H
#define UCT_DCX_ATOMIC_H

#include "uct/dcx/dev/dcx_device.h"

#include <uct/api/uct.h>


/* Announces the atomics of the device to UCT. */
void uct_dcx_atomic_query(const uct_dcx_device_t *dev, uct_iface_attr_t *attr);

#endif
