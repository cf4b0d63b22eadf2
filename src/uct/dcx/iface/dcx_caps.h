/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Limits of an interface, which follow from the options and the port, and its
 * attributes as UCT asks for them.
 */
#ifndef UCT_DCX_CAPS_H
#define UCT_DCX_CAPS_H

#include "uct/dcx/queue/dcx_queues.h"


/* Decides whether the device matches tags, before uct_dcx_caps_init(): with how
 * many tagged buffers, 0 for none, or if the user of 'params' has no tags. It is
 * an error if the options want what the device does not have; that is logged. */
ucs_status_t
uct_dcx_caps_init_tm(const uct_dcx_iface_config_t *config,
                     const uct_dcx_device_t *dev,
                     const uct_iface_params_t *params, unsigned *num_tags_p);

/* The sizes of operations; limits->num_tags is set. */
void uct_dcx_caps_init(uct_dcx_limits_t *limits,
                       const uct_dcx_iface_config_t *config,
                       const uct_dcx_port_t *port);

/* Adds the sizes of tagged messages, after the others. The device matches tags,
 * and fetches the data of requests of up to @max_request bytes (0: it does
 * not). */
void uct_dcx_caps_init_tag(uct_dcx_limits_t *limits, size_t max_request);

/* Checks that the device has what the options ask for. 'max_bb' are the WQEBBs
 * of a WQE. The first option that is too much is logged; UCS_ERR_INVALID_PARAM
 * then. */
ucs_status_t
uct_dcx_caps_check(const uct_dcx_iface_config_t *config, unsigned max_bb,
                   const uct_dcx_device_t *dev);

/* Operations of UCT's tables */
ucs_status_t uct_dcx_caps_query(uct_iface_h iface, uct_iface_attr_t *attr);
ucs_status_t
uct_dcx_caps_estimate_perf(uct_iface_h iface, uct_perf_attr_t *attr);

#endif
