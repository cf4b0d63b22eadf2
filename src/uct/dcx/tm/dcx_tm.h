/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Tag matching by the device: what an interface has for it beside its receive
 * queue, which is an XRQ then. Belongs to the thread that progresses the
 * interface.
 *
 * tm/ is the room of that: the queue by which the device is told of tagged
 * buffers (dcx_tm_cmd.h). Called when an interface opens and closes. It must
 * not know how a message is sent, nor whose a receive buffer is.
 */
#ifndef UCT_DCX_TM_H
#define UCT_DCX_TM_H

#include "dcx_tm_cmd.h"


struct uct_dcx_tm {
    uct_dcx_tm_cmd_t cmd;
};


/* 'queues' are open, and the receive queue is an XRQ with a list of 'num_tags'
 * buffers and one more. Errors are logged. */
ucs_status_t uct_dcx_tm_init(uct_dcx_tm_t *tm, uct_dcx_queues_t *queues,
                             unsigned num_tags,
                             const uct_iface_params_t *params);

/* No completion comes any more. */
void uct_dcx_tm_cleanup(uct_dcx_tm_t *tm);

#endif
