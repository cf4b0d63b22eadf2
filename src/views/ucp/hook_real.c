/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
#define _GNU_SOURCE
#include "hook_real.h"
#include "loader/loader.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* clang-format off */
#define HOOK_REAL_ENTRY(_name) {#_name, offsetof(hook_real_t, _name)},
/* clang-format on */

static const struct {
    const char *name;
    size_t offset;
} hook_real_table[] = {HOOK_REAL_UCP(HOOK_REAL_ENTRY)};

/* First calls of the data path: look all functions up, which replaces these
 * entries, and pass the call on. */

static ucs_status_ptr_t hook_real_tag_send(ucp_ep_h ep, const void *buffer,
                                           size_t count, ucp_tag_t tag,
                                           const ucp_request_param_t *param)
{
    hook_real_find();
    return hook_real.ucp_tag_send_nbx(ep, buffer, count, tag, param);
}

static ucs_status_ptr_t
hook_real_tag_send_sync(ucp_ep_h ep, const void *buffer, size_t count,
                        ucp_tag_t tag, const ucp_request_param_t *param)
{
    hook_real_find();
    return hook_real.ucp_tag_send_sync_nbx(ep, buffer, count, tag, param);
}

static ucs_status_ptr_t hook_real_tag_recv(ucp_worker_h worker, void *buffer,
                                           size_t count, ucp_tag_t tag,
                                           ucp_tag_t tag_mask,
                                           const ucp_request_param_t *param)
{
    hook_real_find();
    return hook_real.ucp_tag_recv_nbx(worker, buffer, count, tag, tag_mask,
                                      param);
}

static ucs_status_ptr_t hook_real_tag_msg_recv(ucp_worker_h worker,
                                               void *buffer, size_t count,
                                               ucp_tag_message_h message,
                                               const ucp_request_param_t *param)
{
    hook_real_find();
    return hook_real.ucp_tag_msg_recv_nbx(worker, buffer, count, message,
                                          param);
}

static ucs_status_ptr_t hook_real_am_send(ucp_ep_h ep, unsigned id,
                                          const void *header,
                                          size_t header_length,
                                          const void *buffer, size_t count,
                                          const ucp_request_param_t *param)
{
    hook_real_find();
    return hook_real.ucp_am_send_nbx(ep, id, header, header_length, buffer,
                                     count, param);
}

static ucs_status_ptr_t hook_real_am_recv(ucp_worker_h worker, void *data_desc,
                                          void *buffer, size_t count,
                                          const ucp_request_param_t *param)
{
    hook_real_find();
    return hook_real.ucp_am_recv_data_nbx(worker, data_desc, buffer, count,
                                          param);
}

static void hook_real_request_free(void *request)
{
    hook_real_find();
    hook_real.ucp_request_free(request);
}

hook_real_t hook_real = {
    .ucp_tag_send_nbx      = hook_real_tag_send,
    .ucp_tag_send_sync_nbx = hook_real_tag_send_sync,
    .ucp_tag_recv_nbx      = hook_real_tag_recv,
    .ucp_tag_msg_recv_nbx  = hook_real_tag_msg_recv,
    .ucp_am_send_nbx       = hook_real_am_send,
    .ucp_am_recv_data_nbx  = hook_real_am_recv,
    .ucp_request_free      = hook_real_request_free,
};

static void hook_real_missing(void)
{
    fprintf(stderr, "dcx: this libucp does not have a function that was "
                    "called\n");
    abort();
}

/* Finds a copy of libucp under another name, as packages of Python bundle it;
 * copies its path. dl_iterate_phdr() holds a lock of the linker, below which
 * dlopen() must not be called. */
static int hook_real_renamed(struct dl_phdr_info *info, size_t size, void *arg)
{
    const char *base = strrchr(info->dlpi_name, '/');

    (void)size;
    return (base != NULL) &&
           (!strncmp(base, "/libucp.", 8) || !strncmp(base, "/libucp-", 8)) &&
           (snprintf(arg, PATH_MAX, "%s", info->dlpi_name) < PATH_MAX);
}

static void *hook_real_symbol(const char *name)
{
    void *symbol = loader_ucx_symbol(RTLD_NEXT, "libucp.so.0", name);
    char path[PATH_MAX];
    void *handle;

    if ((symbol == NULL) && dl_iterate_phdr(hook_real_renamed, path)) {
        handle = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
        symbol = (handle == NULL) ? NULL : dlsym(handle, name);
    }

    return (symbol == NULL) ? (void *)hook_real_missing : symbol;
}

static void hook_real_fill(void)
{
    size_t i;

    for (i = 0; i < sizeof(hook_real_table) / sizeof(*hook_real_table); ++i) {
        *(void **)((char *)&hook_real + hook_real_table[i].offset) =
            hook_real_symbol(hook_real_table[i].name);
    }
}

void hook_real_find(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, hook_real_fill);
}
