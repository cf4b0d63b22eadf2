/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * dies sender | receiver: two processes of UCP. The one that is named is killed
 * after a message of a list of pieces has been announced, and before it is
 * fetched. The other's request must end with an error, and in time. The message
 * before it must have arrived.
 */
#include "../check.h"
#include "../times.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <ucp/api/ucp.h>
#include <unistd.h>

enum {
    BLOCK  = 1024,
    STEP   = 2048, /* from the start of a piece to the next */
    PIECES = 256,
    SEED   = 5,
    TAG    = 0x1234
};

static struct {
    ucp_context_h context;
    ucp_worker_h worker;
    ucp_ep_h ep;
    int in;  /* from the peer */
    int out; /* to the peer */
    char memory[PIECES * STEP];
    ucp_dt_iov_t list[PIECES];
    ucs_status_t status; /* from the last callback */
} t;

static void need(const char *what, int is_right)
{
    if (!is_right) {
        fprintf(stderr, "dies: %s\n", what);
        exit(1);
    }
}

static void put(const void *data, size_t length)
{
    need("write", write(t.out, data, length) == (ssize_t)length);
}

static void get(void *data, size_t length)
{
    need("read", read(t.in, data, length) == (ssize_t)length);
}

static void failed(void *arg, ucp_ep_h ep, ucs_status_t status)
{
    (void)arg;
    (void)ep;
    printf("the endpoint failed: %s\n", ucs_status_string(status));
}

static void begin_worker(void)
{
    ucp_params_t params = {
        .field_mask = UCP_PARAM_FIELD_FEATURES,
        .features   = UCP_FEATURE_TAG,
    };
    ucp_worker_params_t worker_params = {0};

    need("context", ucp_init(&params, NULL, &t.context) == UCS_OK);
    need("worker",
         ucp_worker_create(t.context, &worker_params, &t.worker) == UCS_OK);
}

/* Creates an endpoint to the peer's worker, whose address comes through the
 * pipe. */
static void connect_peer(void)
{
    char address[4096];
    ucp_ep_params_t params = {
        .field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS |
                      UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                      UCP_EP_PARAM_FIELD_ERR_HANDLER,
        .address        = (ucp_address_t *)address,
        .err_mode       = UCP_ERR_HANDLING_MODE_PEER,
        .err_handler.cb = failed,
    };
    ucp_address_t *own;
    size_t length;

    need("address", ucp_worker_get_address(t.worker, &own, &length) == UCS_OK);
    put(&length, sizeof(length));
    put(own, length);
    ucp_worker_release_address(t.worker, own);
    get(&length, sizeof(length));
    need("a short address", length <= sizeof(address));
    get(address, length);
    need("endpoint", ucp_ep_create(t.worker, &params, &t.ep) == UCS_OK);
}

static void begin(void)
{
    int i;

    for (i = 0; i < PIECES; ++i) {
        t.list[i].buffer = t.memory + i * STEP;
        t.list[i].length = BLOCK;
    }
    begin_worker();
    connect_peer();
}

static ucs_status_t wait_for(void *request)
{
    uint64_t end = time_now_us() + time_slow(TIME_WAIT) * 1000ull;
    ucs_status_t status;

    need("request", UCS_PTR_IS_PTR(request));
    while ((status = ucp_request_check_status(request)) == UCS_INPROGRESS) {
        ucp_worker_progress(t.worker);
        need("a request that does not end", time_now_us() <= end);
    }
    ucp_request_free(request);
    need("another status in the callback", t.status == status);
    return status;
}

static void sent(void *request, ucs_status_t status, void *arg)
{
    (void)request;
    (void)arg;
    t.status = status;
}

static void received(void *request, ucs_status_t status,
                     const ucp_tag_recv_info_t *info, void *arg)
{
    (void)info;
    sent(request, status, arg);
}

static void *send_list(void)
{
    ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE | UCP_OP_ATTR_FIELD_CALLBACK,
        .datatype     = ucp_dt_make_iov(),
        .cb.send      = sent,
    };

    check_fill(t.memory, sizeof(t.memory), SEED);
    return ucp_tag_send_nbx(t.ep, t.list, PIECES, TAG, &param);
}

static ucp_tag_message_h probe(void)
{
    ucp_tag_recv_info_t info;
    ucp_tag_message_h message;

    do {
        ucp_worker_progress(t.worker);
        message = ucp_tag_probe_nb(t.worker, TAG, UINT64_MAX, 1, &info);
    } while (message == NULL);

    return message;
}

static void *recv_list(ucp_tag_message_h message)
{
    ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE | UCP_OP_ATTR_FIELD_CALLBACK,
        .datatype     = ucp_dt_make_iov(),
        .cb.recv      = received,
    };

    memset(t.memory, 0, sizeof(t.memory));
    return ucp_tag_msg_recv_nbx(t.worker, t.list, PIECES, message, &param);
}

/* The state of the connection does not matter here. */
static void end(void)
{
    void *request = ucp_ep_close_nb(t.ep, UCP_EP_CLOSE_MODE_FORCE);

    while (UCS_PTR_IS_PTR(request) &&
           (ucp_request_check_status(request) == UCS_INPROGRESS)) {
        ucp_worker_progress(t.worker);
    }
    ucp_worker_destroy(t.worker);
    ucp_cleanup(t.context);
}

/* --- both processes ------------------------------------------------------- */

static int send_and_wait(pid_t peer)
{
    void *request;
    char byte;

    need("the first message", wait_for(send_list()) == UCS_OK);
    request = send_list();
    if (peer == 0) { /* until it is killed */
        for (;;) {
            ucp_worker_progress(t.worker);
        }
    }
    /* the peer has received it, and kills itself */
    do {
        ucp_worker_progress(t.worker);
    } while (waitpid(peer, NULL, WNOHANG) == 0);
    get(&byte, 1);
    return check_value("sent", wait_for(request) == UCS_OK, 0);
}

static int recv_and_wait(pid_t peer)
{
    ucp_tag_message_h message;
    int errors = 0, i;

    need("the first message", wait_for(recv_list(probe())) == UCS_OK);
    for (i = 0; i < PIECES; ++i) {
        errors += t.memory[i * STEP] != (char)check_byte(SEED, i * STEP);
    }
    message = probe();
    if (peer == 0) {
        put("", 1);
        raise(SIGKILL);
    }
    kill(peer, SIGKILL);
    waitpid(peer, NULL, 0);
    return errors +
           check_value("received", wait_for(recv_list(message)) == UCS_OK, 0);
}

int main(int argc, char **argv)
{
    /* this process sends if the receiver dies */
    int is_sender = (argc > 1) && !strcmp(argv[1], "receiver");
    int up[2], down[2], errors;
    pid_t peer;

    need("pipe", (pipe(up) == 0) && (pipe(down) == 0));
    peer = fork();
    /* also for the peer, if this process fails */
    alarm(2 * time_slow(TIME_WAIT) / 1000);
    t.in  = (peer == 0) ? down[0] : up[0];
    t.out = (peer == 0) ? up[1] : down[1];
    begin();
    errors = (is_sender == (peer != 0)) ? send_and_wait(peer) :
                                          recv_and_wait(peer);
    end();
    printf("%s dies: %d failed\n", is_sender ? "receiver" : "sender", errors);
    fflush(stdout);
    return errors != 0;
}
