/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Which messages go by view: those of a known data type, long, in large blocks,
 * over dcx. Answers for a call of UCP that has a data type which is not
 * contiguous, and counts what it answers.
 */
#ifndef HOOK_MESSAGE_H
#define HOOK_MESSAGE_H

#include "hook_op.h"


/* The operation, with a view that devices can use and the data type's own
 * start, for the caller to issue; NULL: it goes as it came. */
hook_op_t *hook_message_send(ucp_ep_h ep, const void *buffer, size_t count,
                             const ucp_request_param_t *param);
hook_op_t *hook_message_recv(ucp_worker_h worker, void *buffer, size_t count,
                             const ucp_request_param_t *param);

#endif
