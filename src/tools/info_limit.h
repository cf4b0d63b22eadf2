/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The rows of a device with its limits: how much it has of each resource, and
 * how much the transport needs with the current options.
 */
#ifndef DCX_INFO_LIMIT_H
#define DCX_INFO_LIMIT_H

#include "info_port.h"

/* Appends the rows. Marks limits that are too low. */
void info_limits(struct info_part *part, const uct_dcx_device_t *dev,
                 const uct_dcx_iface_config_t *config);

/* Returns the most tagged buffers that an interface can have: a limit of the
 * device, or of the CQ, which serves the receive queue, too. */
unsigned info_max_tags(const uct_dcx_device_t *dev,
                       const uct_dcx_iface_config_t *config);

/* Returns the tagged buffers that an interface has with these options: 0 with
 * UCX_DCX_TM_ENABLE=n, at least 1 with y. */
unsigned info_num_tags(const uct_dcx_device_t *dev,
                       const uct_dcx_iface_config_t *config);

#endif
