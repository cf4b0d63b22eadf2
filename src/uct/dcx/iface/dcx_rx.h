/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The receiving half of an interface: the DC target that all peers address
 * (dcx_dct.h), and the delivery of active messages. The queue behind the target
 * and its buffers are in queue/dcx_srq.h.
 */
#ifndef UCT_DCX_RX_H
#define UCT_DCX_RX_H

#include "dcx_iface.h"


/* Creates the completion queue, the SRQ or XRQ with its buffers, and the
 * target; sets rx.num_tags. Needs port, channel and limits of @queues. @params
 * gives headroom and alignment. Logs errors. */
ucs_status_t uct_dcx_rx_init(uct_dcx_queues_t *queues,
                             const uct_dcx_iface_config_t *config,
                             const uct_iface_params_t *params);

/* Destroys the target first, then the memory that it wrote to. */
void uct_dcx_rx_cleanup(uct_dcx_queues_t *queues);

/* iface_progress of UCT: delivers messages and posts fresh buffers, then takes
 * send completions. Returns the number of completions taken. */
unsigned uct_dcx_rx_progress(uct_iface_h tl_iface);

/* The same for an interface with rx.num_tags > 0; see dcx_rx_tm.c */
unsigned uct_dcx_rx_tm_progress(uct_iface_h tl_iface);

#endif
