/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Operations of dcx that are more than one WQE, for tests in C++: the headers
 * are C. Only for programs that dcx is linked into (libdcx.la).
 */
#ifndef DCX_TEST_DCX_OP_DRIVER_H
#define DCX_TEST_DCX_OP_DRIVER_H

#include <uct/api/uct.h>

/* Begins an operation of `ep` that waits for `events`, and with `wqe` for what
 * the endpoint has posted last as well. It ends with `comp`. */
void *dcx_op_begin(uct_ep_h ep, unsigned events, int wqe,
                   uct_completion_t *comp);

/* One event has come. */
void dcx_op_event(void *op, ucs_status_t status);

/* Takes it out: nobody hears of it any more. */
void dcx_op_cancel(void *op);

#endif
