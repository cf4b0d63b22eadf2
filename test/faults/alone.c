/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * alone NUMBER: sends so many tagged messages to itself, one after the other,
 * from its only thread, and prints a hash of what arrived. It does not verify
 * anything: test/faults/same compares two runs of it.
 */
#include "data.h"

#include <stdio.h>
#include <stdlib.h>
#include <ucp/api/ucp.h>

enum { MAX_LENGTH = 65536 };

static ucp_worker_h worker;
static ucp_ep_h ep;

static void need(const char *what, ucs_status_t status)
{
    if (status != UCS_OK) {
        printf("FAIL: %s: %s\n", what, ucs_status_string(status));
        exit(1);
    }
}

/* Waits for the end of an operation. */
static void wait_for(const char *what, ucs_status_ptr_t request)
{
    ucs_status_t status;

    if (!UCS_PTR_IS_PTR(request)) {
        need(what, UCS_PTR_STATUS(request));
        return;
    }
    while ((status = ucp_request_check_status(request)) == UCS_INPROGRESS) {
        ucp_worker_progress(worker);
    }
    ucp_request_free(request);
    need(what, status);
}

static void begin(void)
{
    ucp_params_t params               = {.field_mask = UCP_PARAM_FIELD_FEATURES,
                                         .features   = UCP_FEATURE_TAG};
    ucp_worker_params_t worker_params = {0};
    ucp_ep_params_t ep_params         = {
                .field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS,
    };
    ucp_address_t *address;
    ucp_context_h context;
    size_t length;

    need("context", ucp_init(&params, NULL, &context));
    need("worker", ucp_worker_create(context, &worker_params, &worker));
    need("address", ucp_worker_get_address(worker, &address, &length));
    ep_params.address = address;
    need("endpoint", ucp_ep_create(worker, &ep_params, &ep));
}

/* Sends message @i, and prints a hash (FNV-1a) of the bytes that arrive. */
static void send_one(unsigned i, char *from, char *to)
{
    static const ucp_request_param_t param;
    const size_t lengths[] = {8, 100, 1500, 8192, MAX_LENGTH};
    struct data_id id      = {.sequence = i};
    size_t length          = lengths[i % 5];
    uint64_t hash          = 0xcbf29ce484222325;
    ucs_status_ptr_t send, receive;

    data_fill(from, length, id);
    data_spoil(to, length);
    receive = ucp_tag_recv_nbx(worker, to, length, i, UINT64_MAX, &param);
    send    = ucp_tag_send_nbx(ep, from, length, i, &param);
    wait_for("receive", receive);
    wait_for("send", send);
    for (size_t at = 0; at < length; at++) {
        hash = (hash ^ (uint8_t)to[at]) * 0x100000001b3;
    }
    printf("message %u: %zu bytes, %016lx\n", i, length, (unsigned long)hash);
}

int main(int argc, char **argv)
{
    unsigned num = (argc == 2) ? strtoul(argv[1], NULL, 10) : 0;
    char *from = malloc(MAX_LENGTH), *to = malloc(MAX_LENGTH);

    setvbuf(stdout, NULL, _IOLBF, 0); /* lines of the device are between */
    begin();
    for (unsigned i = 0; i < num; i++) {
        send_one(i, from, to);
    }
    printf("%u messages\n", num);
    return 0;
}
