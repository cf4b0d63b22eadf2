/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The limits of an interface, from options and port, and its attributes for
 * UCT.
 */
#ifndef UCT_DCX_CAPS_H
#define UCT_DCX_CAPS_H

#include "uct/dcx/queue/dcx_queues.h"


/* Decides whether the device matches tags, before uct_dcx_caps_init(): stores
 * the number of tagged buffers in @num_tags_p; 0 for none, or if @params has no
 * tags. Logs an error if the options request an unsupported feature. */
ucs_status_t uct_dcx_caps_init_tm(const uct_dcx_iface_config_t *config,
                                  const uct_dcx_device_t *dev,
                                  const uct_iface_params_t *params,
                                  unsigned *num_tags_p);

/* Calculates the sizes of operations; limits->num_tags is set. */
void uct_dcx_caps_init(uct_dcx_limits_t *limits,
                       const uct_dcx_iface_config_t *config,
                       const uct_dcx_port_t *port);

/* Adds the sizes of tagged messages, after the others. The device matches tags,
 * and fetches the data of requests of up to @max_request bytes (0: of none). */
void uct_dcx_caps_init_tag(uct_dcx_limits_t *limits, size_t max_request);

/* Checks that the device supports the options. @max_bb: WQEBBs of a WQE. Logs
 * the first option that is too large, and returns UCS_ERR_INVALID_PARAM. */
ucs_status_t uct_dcx_caps_check(const uct_dcx_iface_config_t *config,
                                unsigned max_bb, const uct_dcx_device_t *dev);

/* Operations of UCT's tables */
ucs_status_t uct_dcx_caps_query(uct_iface_h iface, uct_iface_attr_t *attr);
ucs_status_t uct_dcx_caps_estimate_perf(uct_iface_h iface,
                                        uct_perf_attr_t *attr);

#endif
