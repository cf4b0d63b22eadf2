/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The capabilities of a device in UCT's terms of atomics; dcx_ep.h declares the
 * operations.
 */
#ifndef UCT_DCX_ATOMIC_H
#define UCT_DCX_ATOMIC_H

#include "uct/dcx/dev/dcx_device.h"

#include <uct/api/uct.h>


/* Adds the atomics of the device to the flags in @attr. */
void uct_dcx_atomic_query(const uct_dcx_device_t *dev, uct_iface_attr_t *attr);

#endif
