/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * first: calls of UCP's functions before the hooks have looked them all up
 * (hook_real.c). This program stands in for UCP.
 */
#include "../check.h"
#include "views/ucp/hook_real.h"
#include "loader/loader.h"

#include <string.h>

enum { COUNT = 77 };

static struct {
    const char *called; /* last called function of UCP */
    size_t count;       /* two of its arguments */
    const void *param;
    int num_looked; /* look-ups of the first function */
} t;

static const ucp_request_param_t param;

/* --- UCP ------------------------------------------------------------------ */

static ucs_status_ptr_t called(const char *name, size_t count, const void *last)
{
    t.called = name;
    t.count  = count;
    t.param  = last;
    return &t;
}

static ucs_status_ptr_t tag_send(ucp_ep_h ep, const void *buffer, size_t count,
                                 ucp_tag_t tag, const ucp_request_param_t *last)
{
    (void)ep, (void)buffer, (void)tag;
    return called("ucp_tag_send_nbx", count, last);
}

static ucs_status_ptr_t tag_send_sync(ucp_ep_h ep, const void *buffer,
                                      size_t count, ucp_tag_t tag,
                                      const ucp_request_param_t *last)
{
    (void)ep, (void)buffer, (void)tag;
    return called("ucp_tag_send_sync_nbx", count, last);
}

static ucs_status_ptr_t tag_recv(ucp_worker_h worker, void *buffer,
                                 size_t count, ucp_tag_t tag, ucp_tag_t mask,
                                 const ucp_request_param_t *last)
{
    (void)worker, (void)buffer, (void)tag, (void)mask;
    return called("ucp_tag_recv_nbx", count, last);
}

static ucs_status_ptr_t tag_msg_recv(ucp_worker_h worker, void *buffer,
                                     size_t count, ucp_tag_message_h message,
                                     const ucp_request_param_t *last)
{
    (void)worker, (void)buffer, (void)message;
    return called("ucp_tag_msg_recv_nbx", count, last);
}

static ucs_status_ptr_t am_send(ucp_ep_h ep, unsigned id, const void *header,
                                size_t header_length, const void *buffer,
                                size_t count, const ucp_request_param_t *last)
{
    (void)ep, (void)id, (void)header, (void)header_length, (void)buffer;
    return called("ucp_am_send_nbx", count, last);
}

static ucs_status_ptr_t am_recv(ucp_worker_h worker, void *desc, void *buffer,
                                size_t count, const ucp_request_param_t *last)
{
    (void)worker, (void)desc, (void)buffer;
    return called("ucp_am_recv_data_nbx", count, last);
}

static void request_free(void *request)
{
    called("ucp_request_free", COUNT, request);
}

void *loader_ucx_symbol(void *scope, const char *library, const char *symbol)
{
    const struct {
        const char *name;
        void *addr;
    } functions[] = {{"ucp_tag_send_nbx", tag_send},
                     {"ucp_tag_send_sync_nbx", tag_send_sync},
                     {"ucp_tag_recv_nbx", tag_recv},
                     {"ucp_tag_msg_recv_nbx", tag_msg_recv},
                     {"ucp_am_send_nbx", am_send},
                     {"ucp_am_recv_data_nbx", am_recv},
                     {"ucp_request_free", request_free}};
    size_t i;

    (void)scope, (void)library;
    t.num_looked += !strcmp(symbol, functions[0].name);
    for (i = 0; i < sizeof(functions) / sizeof(*functions); ++i) {
        if (!strcmp(symbol, functions[i].name)) {
            return functions[i].addr;
        }
    }
    return NULL;
}

/* --- checks --------------------------------------------------------------- */

static int check_call(const char *name, const void *result)
{
    int failed = (t.called == NULL) || (strcmp(t.called, name) != 0) ||
                 (t.count != COUNT) || (t.param != &param) || (result != &t);

    if (failed) {
        fprintf(stderr, "%s: %s was called with %zu, %p\n", name,
                (t.called == NULL) ? "nothing" : t.called, t.count, t.param);
    }
    t.called = NULL;
    return failed;
}

int main(void)
{
    const hook_real_t first = hook_real;
    int failed              = 0;

    failed += check_call("ucp_tag_send_nbx",
                         first.ucp_tag_send_nbx(NULL, NULL, COUNT, 0, &param));
    failed +=
        check_call("ucp_tag_send_sync_nbx",
                   first.ucp_tag_send_sync_nbx(NULL, NULL, COUNT, 0, &param));
    failed +=
        check_call("ucp_tag_recv_nbx",
                   first.ucp_tag_recv_nbx(NULL, NULL, COUNT, 0, 0, &param));
    failed +=
        check_call("ucp_tag_msg_recv_nbx",
                   first.ucp_tag_msg_recv_nbx(NULL, NULL, COUNT, NULL, &param));
    failed += check_call(
        "ucp_am_send_nbx",
        first.ucp_am_send_nbx(NULL, 0, NULL, 0, NULL, COUNT, &param));
    failed +=
        check_call("ucp_am_recv_data_nbx",
                   first.ucp_am_recv_data_nbx(NULL, NULL, NULL, COUNT, &param));
    first.ucp_request_free((void *)&param);
    failed += check_call("ucp_request_free", &t);
    failed += check_value("looked for", t.num_looked, 1);
    failed += check_value("found", hook_real.ucp_tag_send_nbx == tag_send, 1);
    printf("9 checks, %d failed\n", failed);
    return failed != 0;
}
