/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The limits of an interface, from options and port, and its attributes for
 * UCT.
 */
#ifndef UCT_DCX_CAPS_H
#define UCT_DCX_CAPS_H

#include "uct/dcx/queue/dcx_queues.h"


/* Decides whether the device matches tags, before uct_dcx_caps_init(). Stores
 * the number of tagged buffers in @num_tags_p; 0 if it does not, or @params do
 * not ask for it. Logs an error if the options require more than the device
 * has. */
ucs_status_t uct_dcx_caps_init_tm(const uct_dcx_iface_config_t *config,
                                  const uct_dcx_device_t *dev,
                                  const uct_iface_params_t *params,
                                  unsigned *num_tags_p);

/* Calculates the sizes of operations, except strided.max_klm. The caller has
 * set limits->num_tags. */
void uct_dcx_caps_init(uct_dcx_limits_t *limits,
                       const uct_dcx_iface_config_t *config,
                       const uct_dcx_port_t *port);

/* Adds the sizes of tagged messages, after the others. The device matches tags,
 * and fetches the data of requests of up to @max_request bytes (0: of none). */
void uct_dcx_caps_init_tag(uct_dcx_limits_t *limits, size_t max_request);

/* Checks that the device supports the options. @max_bb: WQEBBs of a WQE. Logs
 * the first option that it does not support. Returns UCS_ERR_INVALID_PARAM if a
 * value is too large, UCS_ERR_UNSUPPORTED if the device has no streams. */
ucs_status_t uct_dcx_caps_check(const uct_dcx_iface_config_t *config,
                                unsigned max_bb, const uct_dcx_device_t *dev);

/* Operations of UCT's tables */
ucs_status_t uct_dcx_caps_query(uct_iface_h iface, uct_iface_attr_t *attr);
ucs_status_t uct_dcx_caps_estimate_perf(uct_iface_h iface,
                                        uct_perf_attr_t *attr);

#endif
