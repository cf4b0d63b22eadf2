/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * unfinished OP [close]: destroys a worker of UCP whose operations are
 * outstanding, to the same process; OP is tag, am, put or get. With "close" the
 * endpoints were closed before, but have not ended. UCP frees its requests and
 * endpoints before it closes the transport, which must not call their
 * completions. A device that is late (SOFTHCA_DELAY) keeps the operations
 * outstanding.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucp/api/ucp.h>

enum { NUM_EPS = 4, NUM_OPS = 8, LENGTH = 60000, MIN_OUTSTANDING = 30 };

static struct {
    ucp_context_h context;
    ucp_worker_h worker; /* sends */
    ucp_worker_h peer;
    ucp_ep_h ep[NUM_EPS];
    ucp_rkey_h key[NUM_EPS];
    ucp_mem_h memh;
    unsigned outstanding;
    char from[LENGTH], to[LENGTH];
} all;

static void need(const char *what, ucs_status_t status)
{
    if (status != UCS_OK) {
        printf("FAIL: %s: %s\n", what, ucs_status_string(status));
        exit(1);
    }
}

static void done(void *request, ucs_status_t status, void *arg)
{
    (void)status;
    (void)arg;
    ucp_request_free(request);
    all.outstanding--;
}

static void begin(void)
{
    ucp_params_t params = {
        .field_mask = UCP_PARAM_FIELD_FEATURES,
        .features   = UCP_FEATURE_AM | UCP_FEATURE_TAG | UCP_FEATURE_RMA,
    };
    ucp_worker_params_t worker_params = {0};
    ucp_mem_map_params_t map_params   = {
          .field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS |
                        UCP_MEM_MAP_PARAM_FIELD_LENGTH,
          .address = all.to,
          .length  = sizeof(all.to),
    };

    need("context", ucp_init(&params, NULL, &all.context));
    need("worker", ucp_worker_create(all.context, &worker_params, &all.worker));
    need("peer", ucp_worker_create(all.context, &worker_params, &all.peer));
    need("memory", ucp_mem_map(all.context, &map_params, &all.memh));
}

static void connect_all(void)
{
    ucp_ep_params_t params = {
        .field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS |
                      UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE,
        .err_mode = UCP_ERR_HANDLING_MODE_PEER,
    };
    ucp_address_t *address;
    size_t length;
    void *key;

    need("address", ucp_worker_get_address(all.peer, &address, &length));
    need("key", ucp_rkey_pack(all.context, all.memh, &key, &length));
    params.address = address;
    for (unsigned i = 0; i < NUM_EPS; i++) {
        need("endpoint", ucp_ep_create(all.worker, &params, &all.ep[i]));
        need("remote key", ucp_ep_rkey_unpack(all.ep[i], key, &all.key[i]));
    }
    ucp_rkey_buffer_release(key);
    ucp_worker_release_address(all.peer, address);
}

static void post(const char *op, unsigned i)
{
    uint64_t remote           = (uintptr_t)all.to;
    ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK,
        .cb.send      = done,
    };
    ucs_status_ptr_t result;

    if (!strcmp(op, "tag")) {
        result = ucp_tag_send_nbx(all.ep[i], all.from, 8192, 1, &param);
    } else if (!strcmp(op, "am")) {
        param.op_attr_mask |= UCP_OP_ATTR_FIELD_FLAGS;
        param.flags = UCP_AM_SEND_FLAG_EAGER;
        result = ucp_am_send_nbx(all.ep[i], 1, NULL, 0, all.from, 8192, &param);
    } else if (!strcmp(op, "put")) {
        result = ucp_put_nbx(all.ep[i], all.from, LENGTH, remote, all.key[i],
                             &param);
    } else {
        result = ucp_get_nbx(all.ep[i], all.from, LENGTH, remote, all.key[i],
                             &param);
    }
    all.outstanding += UCS_PTR_IS_PTR(result);
}

/* Sends a message on each endpoint, and waits until it has ended. */
static void wire_up(void)
{
    for (unsigned i = 0; i < NUM_EPS; i++) {
        post("tag", i);
    }
    while (all.outstanding > 0) {
        ucp_worker_progress(all.worker);
        ucp_worker_progress(all.peer);
    }
}

static void close_all(void)
{
    ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS,
        .flags        = UCP_EP_CLOSE_FLAG_FORCE,
    };

    for (unsigned i = 0; i < NUM_EPS; i++) {
        (void)ucp_ep_close_nbx(all.ep[i], &param);
    }
}

int main(int argc, char **argv)
{
    const char *op = (argc > 1) ? argv[1] : "put";

    begin();
    connect_all();
    wire_up();
    for (unsigned i = 0; i < NUM_OPS * NUM_EPS; i++) {
        post(op, i % NUM_EPS);
    }
    printf("%s: %u outstanding\n", op, all.outstanding);
    fflush(stdout);
    if (all.outstanding < MIN_OUTSTANDING) {
        printf("FAIL: the device was not late\n");
        return 1;
    }
    for (unsigned i = 0; i < NUM_EPS; i++) {
        ucp_rkey_destroy(all.key[i]);
    }
    if ((argc > 2) && !strcmp(argv[2], "close")) {
        close_all();
    }
    ucp_worker_destroy(all.worker);
    ucp_worker_destroy(all.peer);
    printf("the worker is destroyed\n");

    /* without ucp_cleanup(): the operations still have their registrations,
     * which is an assertion of UCX */
    return 0;
}
