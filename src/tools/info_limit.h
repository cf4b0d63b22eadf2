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

/* Tagged buffers that an interface could have beside its receive queue */
unsigned info_max_tags(const uct_dcx_device_t *dev,
                       const uct_dcx_iface_config_t *config);

/* ... and has with these options; one at least if they insist */
unsigned info_num_tags(const uct_dcx_device_t *dev,
                       const uct_dcx_iface_config_t *config);

#endif
