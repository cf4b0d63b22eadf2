/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Operations of dcx that wait for more than one WQE (dcx_op.h), for tests in
 * C++: the headers of dcx are C. Only for programs that are linked with
 * libdcx.la.
 */
#ifndef DCX_TEST_DCX_OP_DRIVER_H
#define DCX_TEST_DCX_OP_DRIVER_H

#include <uct/api/uct.h>

/* Begins an operation of `ep` that waits for `events` events and, with `wqe`,
 * for the endpoint's last WQE. It ends with `comp`. */
void *dcx_op_begin(uct_ep_h ep, unsigned events, int wqe,
                   uct_completion_t *comp);

/* Reports an event. */
void dcx_op_event(void *op, ucs_status_t status);

/* Removes the operation: its completion is not called. */
void dcx_op_cancel(void *op);

#endif
