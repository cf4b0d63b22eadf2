/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The slow ways of hook.c, with the parameters of UCP's functions: for calls that
 * have a data type, and for the first calls of all, which have to find UCP's
 * functions. hook_real.c has them stand there in place of these, so that the
 * quick ways do not ask.
 */
#ifndef HOOK_H
#define HOOK_H

#include <ucp/api/ucp.h>

ucs_status_ptr_t hook_tag_send(ucp_ep_h ep, const void *buffer, size_t count,
                               ucp_tag_t tag, const ucp_request_param_t *param);
ucs_status_ptr_t hook_tag_send_sync(ucp_ep_h ep, const void *buffer,
                                    size_t count, ucp_tag_t tag,
                                    const ucp_request_param_t *param);
ucs_status_ptr_t hook_tag_recv(ucp_worker_h worker, void *buffer, size_t count,
                               ucp_tag_t tag, ucp_tag_t tag_mask,
                               const ucp_request_param_t *param);
ucs_status_ptr_t hook_tag_msg_recv(ucp_worker_h worker, void *buffer,
                                   size_t count, ucp_tag_message_h message,
                                   const ucp_request_param_t *param);
ucs_status_ptr_t hook_am_send(ucp_ep_h ep, unsigned id, const void *header,
                              size_t header_length, const void *buffer,
                              size_t count, const ucp_request_param_t *param);
ucs_status_ptr_t hook_am_recv(ucp_worker_h worker, void *data_desc,
                              void *buffer, size_t count,
                              const ucp_request_param_t *param);
void hook_request_free(void *request);

#endif
