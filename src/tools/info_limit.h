/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The rows of a device that are about numbers: what it has, and how much of
 * that the transport needs with the options as they are.
 */
#ifndef DCX_INFO_LIMIT_H
#define DCX_INFO_LIMIT_H

#include "info_port.h"

void info_limits(struct info_part *part, const uct_dcx_device_t *dev,
                 const uct_dcx_iface_config_t *config);

/* Tagged buffers that an interface has with these options */
unsigned info_num_tags(const uct_dcx_device_t *dev,
                       const uct_dcx_iface_config_t *config);

#endif
