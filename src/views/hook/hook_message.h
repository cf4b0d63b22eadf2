/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Chooses the messages that use a view: of a known data type, long, in large
 * blocks, over dcx. hook.c asks for each message that is not contiguous, except
 * those of a type known to have too few elements. Decisions are counted
 * (hook_report.h).
 */
#ifndef HOOK_MESSAGE_H
#define HOOK_MESSAGE_H

#include "hook_op.h"


/* Return an operation: its view is open, and the data type's own operation has
 * started. The caller then calls UCP with hook_op_param(), and
 * hook_op_issued(). NULL: pass the call to UCP unchanged. */
hook_op_t *hook_message_send(ucp_ep_h ep, const void *buffer, size_t count,
                             const ucp_request_param_t *param);
hook_op_t *hook_message_recv(ucp_worker_h worker, void *buffer, size_t count,
                             const ucp_request_param_t *param);

#endif
