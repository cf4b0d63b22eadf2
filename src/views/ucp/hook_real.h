/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The real functions of UCP: the interposed ones, and others that dcx calls.
 */
#ifndef HOOK_REAL_H
#define HOOK_REAL_H

#include <ucp/api/ucp.h>

#define HOOK_REAL_UCP(_) \
    _(ucp_init_version) \
    _(ucp_cleanup) \
    _(ucp_context_query) \
    _(ucp_config_read) \
    _(ucp_config_print) \
    _(ucp_config_modify) \
    _(ucp_config_release) \
    _(ucp_worker_create) \
    _(ucp_worker_destroy) \
    _(ucp_ep_print_info) \
    _(ucp_mem_map) \
    _(ucp_mem_unmap) \
    _(ucp_dt_create_generic) \
    _(ucp_dt_destroy) \
    _(ucp_tag_send_nbx) \
    _(ucp_tag_send_sync_nbx) \
    _(ucp_tag_recv_nbx) \
    _(ucp_tag_msg_recv_nbx) \
    _(ucp_am_send_nbx) \
    _(ucp_am_recv_data_nbx) \
    _(ucp_request_cancel) \
    _(ucp_request_free) \
    _(ucp_request_query) \
    _(ucp_request_check_status) \
    _(ucp_request_release)

#define HOOK_REAL_MEMBER(_name) __typeof__(&_name) _name;

typedef struct hook_real {
    HOOK_REAL_UCP(HOOK_REAL_MEMBER)
} hook_real_t;

/* Addresses of the functions. Before hook_real_find(), those of the data path
 * call it first, and all others are NULL. */
extern hook_real_t hook_real __attribute__((visibility("hidden")));

/* Looks all functions up, once. Any thread may call it. A later call of a
 * function that this UCX lacks aborts the process. */
void hook_real_find(void);

#endif
