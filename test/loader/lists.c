/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * lists [peer | hard | rude | quick | types | tags | am | gpu | config |
 * threads | requests | scattered | endpoints]: every function of UCP that sends
 * or receives, with lists of pieces (UCP's own kind of non-contiguous data),
 * called by a program without code of dcx. Two workers of one process. Compares
 * every byte, also those between the pieces; the report of
 * UCX_DCX_TYPES_REPORT=y counts the zero-copy messages. A view is a zero-copy
 * datatype.
 */
#define _GNU_SOURCE
#include "../check.h"
#include "../times.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <ucp/api/ucp.h>
#include <unistd.h>

enum {
    BLOCK  = 1024, /* bytes of a piece */
    STEP   = 2048, /* from the start of a piece to the next */
    PIECES = 256,  /* pieces of a long message */
    LENGTH = PIECES * BLOCK,
    SPAN   = PIECES * STEP,
    SEED   = 5,
    GAP    = 0xee, /* a receiver's bytes between its pieces */
    AM_ID  = 1,
    OLD_ID = 2,
    TAG    = 0x1234,

    FAR_BLOCK  = 2048, /* for pieces that are far apart */
    FAR_STEP   = 1 << 18,
    FAR_PIECES = 64
};

#define ALL_BITS UINT64_MAX

typedef struct side {
    char memory[SPAN];
    ucp_dt_iov_t list[PIECES];
} side_t;

static struct {
    ucp_context_h context;
    ucp_context_h other; /* context of 'from' */
    size_t request_size;
    ucp_worker_h from;
    ucp_worker_h to;
    ucp_ep_h ep;
    side_t source;
    side_t dest;
    int num_called;      /* number of callbacks */
    ucs_status_t status; /* status in the last one */
    size_t length;
    void *am_request; /* from ucp_am_recv_data_nbx() */
    int is_peer;      /* endpoints have error handling of peers */
    ucp_datatype_t early;
    ucp_datatype_t late; /* 0: not created */
    int is_gpu;          /* the node has a GPU; 'from' has no dcx */
    int is_threads;      /* workers are for several threads */
    uint64_t features;   /* of contexts */
} t;

static void die(const char *what, ucs_status_t status)
{
    fprintf(stderr, "lists: %s: %s\n", what, ucs_status_string(status));
    exit(1);
}

static void need(const char *what, ucs_status_t status)
{
    if (status != UCS_OK) {
        die(what, status);
    }
}

static void *need_ptr(const char *what, void *result)
{
    if (UCS_PTR_IS_ERR(result)) {
        die(what, UCS_PTR_STATUS(result));
    }

    return result;
}

static void progress(void)
{
    ucp_worker_progress(t.from);
    ucp_worker_progress(t.to);
}

/* Waits for a request; gives up after half a minute, before the test does. */
static ucs_status_t wait_for(void *request)
{
    time_t end = time(NULL) + time_slow(30);
    ucs_status_t status;

    if (!UCS_PTR_IS_PTR(request)) {
        return UCS_PTR_STATUS(request);
    }

    while ((status = ucp_request_check_status(request)) == UCS_INPROGRESS) {
        progress();
        if (time(NULL) > end) {
            die("a request", UCS_ERR_TIMED_OUT);
        }
    }

    return status;
}

static ucs_status_t wait_and_free(void *request)
{
    ucs_status_t status = wait_for(request);

    if (UCS_PTR_IS_PTR(request)) {
        ucp_request_free(request);
    }

    return status;
}

static void progress_a_while(void)
{
    int i;

    for (i = 0; i < 20000; ++i) {
        progress();
    }
}

static void make_list(side_t *side)
{
    int i;

    for (i = 0; i < PIECES; ++i) {
        side->list[i].buffer = side->memory + i * STEP;
        side->list[i].length = BLOCK;
    }
}

static void fill(void)
{
    memset(t.dest.memory, GAP, SPAN);
    check_fill(t.source.memory, SPAN, SEED);
    t.num_called = 0;
    t.status     = UCS_INPROGRESS;
    t.length     = 0;
}

/* Checks that 'pieces' of the list have arrived, and nothing else. */
static int check_pieces(const char *what, int pieces)
{
    int errors = 0;
    int i;

    for (i = 0; (i < SPAN) && (errors == 0); ++i) {
        int is_data = (i % STEP < BLOCK) && (i / STEP < pieces);
        int want    = is_data ? (uint8_t)t.source.memory[i] : GAP;

        errors = check_value(what, (uint8_t)t.dest.memory[i], want);
    }

    return errors;
}

static int check_statuses(const char *what, ucs_status_t sent,
                          ucs_status_t received)
{
    return check_value(what, sent, UCS_OK) +
           check_value(what, received, UCS_OK) + check_pieces(what, PIECES);
}

static void sent(void *request, ucs_status_t status, void *arg)
{
    (void)request;
    t.num_called += (arg == &t);
    t.status = status;
}

static void received(void *request, ucs_status_t status,
                     const ucp_tag_recv_info_t *info, void *arg)
{
    (void)request;
    t.num_called += (arg == &t);
    t.status = status;
    t.length = info->length;
}

static void old_sent(void *request, ucs_status_t status)
{
    (void)request;
    t.num_called += (status == UCS_OK);
}

static void old_received(void *request, ucs_status_t status,
                         ucp_tag_recv_info_t *info)
{
    (void)request;
    t.num_called += (status == UCS_OK) && (info->length == LENGTH);
}

static ucp_request_param_t list_param(void)
{
    return (ucp_request_param_t){
        .op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE |
                        UCP_OP_ATTR_FIELD_USER_DATA,
        .datatype  = ucp_dt_make_iov(),
        .user_data = &t,
    };
}

static void *send_list(int pieces)
{
    ucp_request_param_t param = list_param();

    return need_ptr("send",
                    ucp_tag_send_nbx(t.ep, t.source.list, pieces, TAG, &param));
}

static void *recv_list(int pieces)
{
    ucp_request_param_t param = list_param();

    param.op_attr_mask |= UCP_OP_ATTR_FIELD_CALLBACK;
    param.cb.recv = received;
    return need_ptr("receive", ucp_tag_recv_nbx(t.to, t.dest.list, pieces, TAG,
                                                ALL_BITS, &param));
}

/* Replaces access(): the loader looks for devices that compute. */
int access(const char *path, int mode)
{
    int (*real)(const char *,
                int) = (int (*)(const char *, int))dlsym(RTLD_NEXT, "access");

    return (t.is_gpu && !strcmp(path, "/dev/nvidiactl")) ? 0 : real(path, mode);
}

/* --- tags ----------------------------------------------------------------- */

static int tag_expected(void)
{
    void *recv = recv_list(PIECES);
    void *send = send_list(PIECES);
    int errors = check_statuses("expected", wait_and_free(send),
                                wait_and_free(recv));

    return errors + check_value("callbacks", t.num_called, 1) +
           check_value("length", t.length, LENGTH);
}

static int tag_unexpected(void)
{
    void *send = send_list(PIECES);
    void *recv;

    progress_a_while();
    recv = recv_list(PIECES);
    return check_statuses("unexpected", wait_and_free(send),
                          wait_and_free(recv));
}

static int tag_many(void)
{
    void *send[8], *recv[8];
    int errors = 0;
    int i;

    for (i = 0; i < 8; ++i) {
        recv[i] = recv_list(PIECES);
        send[i] = send_list(PIECES);
    }
    for (i = 0; i < 8; ++i) {
        errors += check_statuses("many", wait_and_free(send[i]),
                                 wait_and_free(recv[i]));
    }

    return errors + check_value("callbacks", t.num_called, 8);
}

/* Calls the functions that are older than ucp_request_param_t. */
static int tag_nb(void)
{
    void *recv = ucp_tag_recv_nb(t.to, t.dest.list, PIECES, ucp_dt_make_iov(),
                                 TAG, ALL_BITS, old_received);
    void *send = ucp_tag_send_nb(t.ep, t.source.list, PIECES, ucp_dt_make_iov(),
                                 TAG, old_sent);
    int expected = 1 + (send != NULL); /* none for a send that ended at once */
    int errors = check_statuses("nb", wait_and_free(send), wait_and_free(recv));

    return errors + check_value("callbacks", t.num_called, expected);
}

/* Calls the older functions with request memory of the caller. */
static int tag_nbr(void)
{
    char *send = (char *)calloc(2, t.request_size) + t.request_size;
    char *recv = (char *)calloc(2, t.request_size) + t.request_size;
    ucs_status_t status;
    int errors;

    need("nbr", ucp_tag_recv_nbr(t.to, t.dest.list, PIECES, ucp_dt_make_iov(),
                                 TAG, ALL_BITS, recv));
    status = ucp_tag_send_nbr(t.ep, t.source.list, PIECES, ucp_dt_make_iov(),
                              TAG, send);
    if (status == UCS_INPROGRESS) {
        status = wait_for(send);
    }
    errors = check_statuses("nbr", status, wait_for(recv));

    free(send - t.request_size);
    free(recv - t.request_size);
    return errors;
}

/* --- requests in memory of the caller ------------------------------------- */

/* Returns memory of ones: a call must overwrite every byte that it relies
 * on. */
static char *new_request(void)
{
    char *memory = (char *)malloc(2 * t.request_size);

    if (memory == NULL) {
        die("memory", UCS_ERR_NO_MEMORY);
    }

    memset(memory, 0xff, 2 * t.request_size);
    return memory + t.request_size;
}

static void free_request(char *request)
{
    free(request - t.request_size);
}

static char *send_request(void)
{
    ucp_request_param_t param = list_param();

    param.op_attr_mask |= UCP_OP_ATTR_FIELD_REQUEST |
                          UCP_OP_ATTR_FLAG_NO_IMM_CMPL |
                          UCP_OP_ATTR_FIELD_CALLBACK;
    param.request = new_request();
    param.cb.send = sent;
    if (ucp_tag_send_nbx(t.ep, t.source.list, PIECES, TAG, &param) !=
        param.request) {
        die("a send is not its request", UCS_ERR_INVALID_PARAM);
    }

    return param.request;
}

/* Receives as Open MPI does: without a callback; the request is tested for any
 * result of the call. */
static char *recv_request(void)
{
    ucp_request_param_t param = list_param();

    param.op_attr_mask |= UCP_OP_ATTR_FIELD_REQUEST;
    param.request = new_request();
    need_ptr("receive", ucp_tag_recv_nbx(t.to, t.dest.list, PIECES, TAG,
                                         ALL_BITS, &param));
    return param.request;
}

/* Checks that UCP's queries work on requests in memory of the caller. */
static int end_requests(char *send, char *recv)
{
    ucp_tag_recv_info_t info = {0};
    int errors = check_statuses("requests", wait_for(send), wait_for(recv));

    errors += check_value("tested", ucp_request_test(recv, &info), UCS_OK) +
              check_value("tag", info.sender_tag, TAG) +
              check_value("length", info.length, LENGTH) +
              check_value("completed", ucp_request_is_completed(send), 1) +
              check_value("callbacks", t.num_called, 1);
    free_request(send);
    free_request(recv);
    return errors;
}

/* Checks a query while the request is in progress. */
static int check_query(char *request)
{
    ucp_request_attr_t attr = {
        .field_mask = UCP_REQUEST_ATTR_FIELD_STATUS |
                      UCP_REQUEST_ATTR_FIELD_MEM_TYPE,
        .mem_type = UCS_MEMORY_TYPE_UNKNOWN,
    };

    return check_value("query", ucp_request_query(request, &attr), UCS_OK) +
           check_value("status", attr.status, UCS_INPROGRESS) +
           check_value("unknown memory",
                       attr.mem_type == UCS_MEMORY_TYPE_UNKNOWN, 0);
}

static int request_expected(void)
{
    char *recv = recv_request();
    int errors = check_query(recv);

    return errors + end_requests(send_request(), recv);
}

/* With UCX_RNDV_THRESH=inf both complete within their calls. */
static int request_unexpected(void)
{
    char *send = send_request();

    progress_a_while();
    return end_requests(send, recv_request());
}

/* Cancels more receives than there are views. */
static int request_canceled(void)
{
    int errors = 0;
    int i;

    for (i = 0; i < 100; ++i) {
        char *recv = recv_request();

        ucp_request_cancel(t.to, recv);
        ucp_request_cancel(t.to, recv);
        errors += check_value("canceled", wait_for(recv), UCS_ERR_CANCELED);
        free_request(recv);
    }

    return errors + check_pieces("canceled", 0) + request_expected();
}

static int tag_sync(void)
{
    ucp_request_param_t param = list_param();
    void *send, *recv;
    int errors;

    send = need_ptr("sync", ucp_tag_send_sync_nbx(t.ep, t.source.list, PIECES,
                                                  TAG, &param));
    progress_a_while();
    errors = check_value("early", ucp_request_check_status(send),
                         UCS_INPROGRESS);
    recv   = recv_list(PIECES);
    return errors +
           check_statuses("sync", wait_and_free(send), wait_and_free(recv));
}

static int tag_sync_nb(void)
{
    void *recv = recv_list(PIECES);
    void *send = ucp_tag_send_sync_nb(t.ep, t.source.list, PIECES,
                                      ucp_dt_make_iov(), TAG, old_sent);
    int errors = check_statuses("sync_nb", wait_and_free(send),
                                wait_and_free(recv));

    return errors + check_value("callbacks", t.num_called, 2);
}

static ucp_tag_message_h probe(ucp_tag_recv_info_t *info)
{
    ucp_tag_message_h message;

    do {
        progress();
        message = ucp_tag_probe_nb(t.to, TAG, ALL_BITS, 1, info);
    } while (message == NULL);

    return message;
}

static int tag_probed(void)
{
    ucp_request_param_t param = list_param();
    void *send                = send_list(PIECES);
    ucp_tag_recv_info_t info;
    ucp_tag_message_h message = probe(&info);
    void *recv;

    recv = need_ptr("msg", ucp_tag_msg_recv_nbx(t.to, t.dest.list, PIECES,
                                                message, &param));
    return check_statuses("probed", wait_and_free(send), wait_and_free(recv)) +
           check_value("length", info.length, LENGTH);
}

static int tag_probed_nb(void)
{
    void *send = send_list(PIECES);
    ucp_tag_recv_info_t info;
    ucp_tag_message_h message = probe(&info);
    void *recv;

    recv = ucp_tag_msg_recv_nb(t.to, t.dest.list, PIECES, ucp_dt_make_iov(),
                               message, old_received);
    return check_statuses("probed", wait_and_free(send), wait_and_free(recv)) +
           check_value("callbacks", t.num_called, 1);
}

/* --- sides with different layouts or lengths ------------------------------ */

static int from_contiguous(void)
{
    static const ucp_request_param_t plain = {0};
    static char packed[LENGTH];
    void *send, *recv;
    int i;

    for (i = 0; i < PIECES; ++i) {
        memcpy(packed + i * BLOCK, t.source.memory + i * STEP, BLOCK);
    }
    recv = recv_list(PIECES);
    send = ucp_tag_send_nbx(t.ep, packed, LENGTH, TAG, &plain);
    return check_statuses("contiguous", wait_and_free(send),
                          wait_and_free(recv));
}

static int to_contiguous(void)
{
    static const ucp_request_param_t plain = {0};
    static char packed[LENGTH];
    void *recv = ucp_tag_recv_nbx(t.to, packed, LENGTH, TAG, ALL_BITS, &plain);
    void *send = send_list(PIECES);
    int errors = check_value("sent", wait_and_free(send), UCS_OK) +
                 check_value("received", wait_and_free(recv), UCS_OK);
    int i;

    for (i = 0; i < PIECES; ++i) {
        errors += memcmp(packed + i * BLOCK, t.source.memory + i * STEP,
                         BLOCK) != 0;
    }

    return errors;
}

static int shorter(void)
{
    void *recv = recv_list(PIECES);
    void *send = send_list(PIECES / 2);
    int errors = check_value("sent", wait_and_free(send), UCS_OK) +
                 check_value("received", wait_and_free(recv), UCS_OK);

    return errors + check_pieces("shorter", PIECES / 2) +
           check_value("length", t.length, LENGTH / 2);
}

/* Sends fewer pieces than a zero-copy message has, to a zero-copy receive. */
static int short_one(void)
{
    void *recv = recv_list(PIECES);
    void *send = send_list(2);
    int errors = check_value("sent", wait_and_free(send), UCS_OK) +
                 check_value("received", wait_and_free(recv), UCS_OK);

    return errors + check_pieces("short", 2) +
           check_value("length", t.length, 2 * BLOCK);
}

static int truncated(void)
{
    void *recv = recv_list(PIECES / 2);
    void *send = send_list(PIECES);

    return check_value("sent", wait_and_free(send), UCS_OK) +
           check_value("received", wait_and_free(recv),
                       UCS_ERR_MESSAGE_TRUNCATED) +
           check_value("callback", t.status, UCS_ERR_MESSAGE_TRUNCATED) +
           check_value("behind it", (uint8_t)t.dest.memory[SPAN / 2], GAP);
}

/* --- requests ------------------------------------------------------------- */

static int canceled(void)
{
    void *recv = recv_list(PIECES);

    ucp_request_cancel(t.to, recv);
    return check_value("canceled", wait_and_free(recv), UCS_ERR_CANCELED) +
           check_value("callback", t.status, UCS_ERR_CANCELED) +
           check_pieces("canceled", 0);
}

/* Frees more requests than there are views: each view is closed without a
 * callback. */
static int freed(void)
{
    ucp_request_param_t param = list_param();
    int errors                = 0;
    int i;

    param.op_attr_mask |= UCP_OP_ATTR_FIELD_CALLBACK |
                          UCP_OP_ATTR_FLAG_NO_IMM_CMPL;
    param.cb.send = sent;
    for (i = 0; i < 100; ++i) {
        ucp_request_free(
            need_ptr("send", ucp_tag_send_nbx(t.ep, t.source.list, PIECES, TAG,
                                              &param)));
        errors += check_value("received", wait_and_free(recv_list(PIECES)),
                              UCS_OK);
        progress_a_while();
    }

    return errors + check_pieces("freed", PIECES) +
           check_value("callbacks", t.num_called, 100);
}

static int freed_receive(void)
{
    void *recv = recv_list(PIECES);

    ucp_request_free(recv);
    wait_and_free(send_list(PIECES));
    progress_a_while();
    return check_value("callbacks", t.num_called, 0) +
           check_pieces("freed", PIECES);
}

/* --- active messages ------------------------------------------------------ */

static void am_received(void *request, ucs_status_t status, size_t length,
                        void *arg)
{
    (void)request;
    t.num_called += (arg == &t);
    t.status = status;
    t.length = length;
}

static ucs_status_t am_arrived(void *arg, const void *header,
                               size_t header_length, void *data, size_t length,
                               const ucp_am_recv_param_t *param)
{
    ucp_request_param_t to_list = list_param();

    (void)arg;
    (void)length;
    if ((header_length != 4) || memcmp(header, "head", 4) ||
        !(param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV)) {
        die("active message", UCS_ERR_INVALID_PARAM);
    }

    to_list.op_attr_mask |= UCP_OP_ATTR_FIELD_CALLBACK;
    to_list.cb.recv_am = am_received;
    t.am_request       = ucp_am_recv_data_nbx(t.to, data, t.dest.list, PIECES,
                                              &to_list);
    return UCS_INPROGRESS;
}

static int am_rendezvous(void)
{
    ucp_request_param_t param = list_param();
    void *send;

    t.am_request = NULL;
    param.op_attr_mask |= UCP_OP_ATTR_FIELD_FLAGS;
    param.flags = UCP_AM_SEND_FLAG_RNDV;
    send = need_ptr("am", ucp_am_send_nbx(t.ep, AM_ID, "head", 4, t.source.list,
                                          PIECES, &param));
    while (t.am_request == NULL) {
        progress();
    }

    return check_statuses("am", wait_and_free(send),
                          wait_and_free(t.am_request)) +
           check_value("length", t.length, LENGTH);
}

static ucs_status_t am_old_arrived(void *arg, void *data, size_t length,
                                   ucp_ep_h reply_ep, unsigned flags)
{
    int i;

    (void)arg;
    (void)reply_ep;
    (void)flags;
    t.length = length;
    for (i = 0; i < PIECES; ++i) {
        memcpy(t.dest.memory + i * STEP, (char *)data + i * BLOCK, BLOCK);
    }

    return UCS_OK;
}

static int am_nb(void)
{
    void *send = ucp_am_send_nb(t.ep, OLD_ID, t.source.list, PIECES,
                                ucp_dt_make_iov(), old_sent, 0);

    need("am_nb", wait_and_free(send));
    while (t.length == 0) {
        progress();
    }

    return check_pieces("am_nb", PIECES);
}

/* --- pieces that are far apart -------------------------------------------- */

static char *far_list(ucp_dt_iov_t *list)
{
    char *memory = (char *)calloc(FAR_PIECES, FAR_STEP);
    int i;

    if (memory == NULL) {
        die("memory", UCS_ERR_NO_MEMORY);
    }

    for (i = 0; i < FAR_PIECES; ++i) {
        list[i].buffer = memory + i * FAR_STEP;
        list[i].length = FAR_BLOCK;
    }

    return memory;
}

static int far_check(const ucp_dt_iov_t *source, const ucp_dt_iov_t *dest)
{
    int errors = 0;
    int i;

    for (i = 0; i < FAR_PIECES; ++i) {
        errors += memcmp(source[i].buffer, dest[i].buffer, FAR_BLOCK) ||
                  ((char *)dest[i].buffer)[FAR_BLOCK];
    }

    return check_value("pieces", errors, 0);
}

/* 128 KiB of data in 16 MiB of memory */
static int scattered(void)
{
    ucp_request_param_t param = list_param();
    ucp_dt_iov_t source[FAR_PIECES], dest[FAR_PIECES];
    char *from = far_list(source);
    char *to   = far_list(dest);
    void *recv, *send;
    int errors;

    check_fill(from, FAR_PIECES * FAR_STEP, SEED);
    recv   = need_ptr("receive", ucp_tag_recv_nbx(t.to, dest, FAR_PIECES, TAG,
                                                  ALL_BITS, &param));
    send   = need_ptr("send",
                      ucp_tag_send_nbx(t.ep, source, FAR_PIECES, TAG, &param));
    errors = check_value("sent", wait_and_free(send), UCS_OK) +
             check_value("received", wait_and_free(recv), UCS_OK) +
             far_check(source, dest);
    free(from);
    free(to);
    return errors;
}

/* --- workers -------------------------------------------------------------- */

static ucp_worker_h make_worker(ucp_context_h context)
{
    ucp_worker_params_t params = {
        .field_mask  = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
        .thread_mode = t.is_threads ? UCS_THREAD_MODE_MULTI :
                                      UCS_THREAD_MODE_SINGLE,
    };
    ucp_worker_h worker;

    need("worker", ucp_worker_create(context, &params, &worker));
    return worker;
}

static ucp_ep_h make_ep(ucp_worker_h from, ucp_worker_h to)
{
    ucp_ep_params_t params = {
        .field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS |
                      UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE,
        .err_mode = t.is_peer ? UCP_ERR_HANDLING_MODE_PEER :
                                UCP_ERR_HANDLING_MODE_NONE,
    };
    ucp_address_t *address;
    size_t length;
    ucp_ep_h ep;

    need("address", ucp_worker_get_address(to, &address, &length));
    params.address = address;
    need("endpoint", ucp_ep_create(from, &params, &ep));
    ucp_worker_release_address(to, address);
    return ep;
}

static void begin(void)
{
    ucp_am_handler_param_t am = {
        .field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID |
                      UCP_AM_HANDLER_PARAM_FIELD_CB,
        .id = AM_ID,
        .cb = am_arrived,
    };

    t.from = make_worker(t.other);
    t.to   = make_worker(t.context);
    t.ep   = make_ep(t.from, t.to);
    need("handler", ucp_worker_set_am_recv_handler(t.to, &am));
    need("handler", ucp_worker_set_am_handler(t.to, OLD_ID, am_old_arrived,
                                              NULL, UCP_AM_FLAG_WHOLE_MSG));
}

static void end(void)
{
    wait_and_free(ucp_ep_close_nb(t.ep, UCP_EP_CLOSE_MODE_FLUSH));
    ucp_worker_destroy(t.from);
    ucp_worker_destroy(t.to);
}

static int closed(void)
{
    wait_and_free(ucp_ep_close_nb(t.ep, UCP_EP_CLOSE_MODE_FLUSH));
    t.ep = make_ep(t.from, t.to);
    return tag_expected();
}

/* The same worker on both sides */
static int to_self(void)
{
    ucp_request_param_t param = list_param();
    ucp_ep_h ep               = make_ep(t.to, t.to);
    void *recv                = recv_list(PIECES);
    void *send = ucp_tag_send_nbx(ep, t.source.list, PIECES, TAG, &param);
    int errors = check_statuses("self", wait_and_free(send),
                                wait_and_free(recv));

    wait_and_free(ucp_ep_close_nb(ep, UCP_EP_CLOSE_MODE_FLUSH));
    return errors;
}

/* Destroys workers with receives that stay unmatched: over all workers, more
 * than there are views. */
static int destroyed(void)
{
    int i, j;

    for (i = 0; i < 10; ++i) {
        for (j = 0; j < 10; ++j) {
            recv_list(PIECES);
        }
        end();
        begin();
    }

    return check_value("callbacks", t.num_called, 0) + tag_expected();
}

/* Closes an endpoint while the peer may fetch: the peer loses its access,
 * though the message is announced to it. */
static int closed_hard(void)
{
    ucp_request_param_t param = list_param();
    ucp_tag_message_h message;
    ucp_tag_recv_info_t info;
    void *send, *recv;
    int errors = tag_expected(); /* connects both ends */

    fill();
    param.op_attr_mask |= UCP_OP_ATTR_FIELD_CALLBACK;
    param.cb.send = sent;
    send          = ucp_tag_send_nbx(t.ep, t.source.list, PIECES, TAG, &param);
    send          = need_ptr("send", send);
    message       = probe(&info);
    wait_and_free(ucp_ep_close_nb(t.ep, UCP_EP_CLOSE_MODE_FORCE));
    errors += check_value("sent", wait_and_free(send), UCS_ERR_CANCELED) +
              check_value("callback", t.status, UCS_ERR_CANCELED);

    param.op_attr_mask &= ~(uint64_t)UCP_OP_ATTR_FIELD_CALLBACK;
    recv = need_ptr("msg", ucp_tag_msg_recv_nbx(t.to, t.dest.list, PIECES,
                                                message, &param));
    errors += check_value("received", wait_and_free(recv) == UCS_OK, 0);
    errors += check_pieces("closed", 0);
    t.ep = make_ep(t.from, t.to);
    return errors;
}

/* --- endpoints of several kinds ------------------------------------------- */

static ucp_context_h make_context_without_dcx(void);

/* Closes an endpoint by UCP's own function, which the loader does not see. */
static void close_behind(ucp_ep_h ep)
{
    ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS,
        .flags        = UCP_EP_CLOSE_FLAG_FORCE,
    };
    ucs_status_ptr_t (*close)(ucp_ep_h, const ucp_request_param_t *) =
        (ucs_status_ptr_t(*)(ucp_ep_h, const ucp_request_param_t *))dlsym(
            dlopen("libucp.so.0", RTLD_LAZY | RTLD_NOLOAD), "ucp_ep_close_nbx");

    wait_and_free(close(ep, &param));
}

static int send_by(ucp_ep_h ep)
{
    ucp_request_param_t param = list_param();
    void *recv                = recv_list(PIECES);
    void *send = ucp_tag_send_nbx(ep, t.source.list, PIECES, TAG, &param);

    return check_statuses("endpoints", wait_and_free(send),
                          wait_and_free(recv));
}

/* Creates endpoints of 'from' to a worker with dcx and to one without, two of
 * each in turn. UCP may place a new endpoint at the address of a closed one:
 * the loader must not use what it has stored for the old one. */
static int endpoints(void)
{
    ucp_context_h context = make_context_without_dcx();
    ucp_worker_h with     = t.to;
    ucp_worker_h without  = make_worker(context);
    int errors            = 0;
    ucp_ep_h ep;
    int i;

    for (i = 0; i < 8; ++i) {
        fill();
        t.to = (i & 2) ? without : with;
        ep   = make_ep(t.from, t.to);
        errors += send_by(ep);
        close_behind(ep);
    }

    ucp_worker_destroy(without);
    ucp_cleanup(context);
    t.to = with;
    return errors;
}

/* --- generic data types --------------------------------------------------- */

/* The pieces of a side, as a data type whose layout only the program has */
static void *type_start_pack(void *context, const void *buffer, size_t count)
{
    (void)context;
    (void)count;
    return (void *)buffer;
}

static void *type_start_unpack(void *context, void *buffer, size_t count)
{
    return type_start_pack(context, buffer, count);
}

static size_t type_size(void *state)
{
    (void)state;
    return LENGTH;
}

static char *type_byte(void *state, size_t offset)
{
    return (char *)state + offset / BLOCK * STEP + offset % BLOCK;
}

static size_t type_pack(void *state, size_t offset, void *dest, size_t max)
{
    size_t i;

    for (i = 0; (i < max) && (offset + i < LENGTH); ++i) {
        ((char *)dest)[i] = *type_byte(state, offset + i);
    }

    return i;
}

static ucs_status_t type_unpack(void *state, size_t offset, const void *src,
                                size_t length)
{
    size_t i;

    for (i = 0; i < length; ++i) {
        *type_byte(state, offset + i) = ((const char *)src)[i];
    }

    return UCS_OK;
}

static void type_finish(void *state)
{
    (void)state;
    t.num_called++;
}

static const ucp_generic_dt_ops_t type_ops = {
    .start_pack   = type_start_pack,
    .start_unpack = type_start_unpack,
    .packed_size  = type_size,
    .pack         = type_pack,
    .unpack       = type_unpack,
    .finish       = type_finish,
};

static ucp_datatype_t type_create(void)
{
    ucp_datatype_t type;

    need("type", ucp_dt_create_generic(&type_ops, NULL, &type));
    return type;
}

static int type_use(ucp_datatype_t sent_type, ucp_datatype_t received_type)
{
    ucp_request_param_t param = list_param();
    void *recv, *send;

    param.datatype = received_type;
    recv = ucp_tag_recv_nbx(t.to, t.dest.memory, 1, TAG, ALL_BITS, &param);
    param.datatype = sent_type;
    send           = ucp_tag_send_nbx(t.ep, t.source.memory, 1, TAG, &param);
    return check_statuses("types", wait_and_free(send), wait_and_free(recv));
}

/* Uses two types: 'early' is older than any context and is destroyed while
 * there is one; 'late' is destroyed after the last context (main()). */
static int types(void)
{
    int errors = type_use(t.early, t.early);

    t.late = type_create();
    errors += type_use(t.late, t.early) + type_use(t.early, t.late) +
              type_use(t.late, t.late);
    ucp_dt_destroy(t.early);
    t.early = 0;
    return errors + check_value("ends", t.num_called, 8);
}

static int contiguous(void)
{
    ucp_request_param_t param = list_param();
    int errors                = 0;
    int i;

    param.datatype = ucp_dt_make_contig(1);
    for (i = 0; i < 1000; ++i) {
        void *recv = ucp_tag_recv_nbx(t.to, t.dest.memory, 8, TAG, ALL_BITS,
                                      &param);
        void *send = ucp_tag_send_nbx(t.ep, t.source.memory, 8, TAG, &param);

        errors += check_value("sent", wait_for(send), UCS_OK) +
                  check_value("received", wait_and_free(recv), UCS_OK);
    }

    return errors;
}

static ucp_context_h make_context(const ucp_config_t *config)
{
    ucp_params_t params = {
        .field_mask = UCP_PARAM_FIELD_FEATURES,
        .features   = t.features,
    };
    ucp_context_h context;

    need("context", ucp_init(&params, config, &context));
    return context;
}

static char *config_text(const ucp_config_t *config)
{
    char *text = NULL;
    size_t size;
    FILE *file = open_memstream(&text, &size);

    ucp_config_print(config, file, NULL, UCS_CONFIG_PRINT_CONFIG);
    fclose(file);
    return text;
}

/* Checks that the program's own configuration is not changed. */
static int config_kept(void)
{
    ucp_config_t *config;
    char *before, *after;
    int errors;

    need("configuration", ucp_config_read(NULL, NULL, &config));
    before = config_text(config);
    ucp_cleanup(make_context(config));
    after  = config_text(config);
    errors = check_value("as before", !strcmp(before, after), 1);

    free(before);
    free(after);
    ucp_config_release(config);
    return errors;
}

static const struct check checks[] = {
    {"tag_expected", tag_expected},
    {"tag_unexpected", tag_unexpected},
    {"tag_many", tag_many},
    {"tag_nb", tag_nb},
    {"tag_nbr", tag_nbr},
    {"tag_sync", tag_sync},
    {"tag_sync_nb", tag_sync_nb},
    {"tag_probed", tag_probed},
    {"tag_probed_nb", tag_probed_nb},
    {"from_contiguous", from_contiguous},
    {"to_contiguous", to_contiguous},
    {"shorter", shorter},
    {"short_one", short_one},
    {"truncated", truncated},
    {"canceled", canceled},
    {"freed", freed},
    {"freed_receive", freed_receive},
    {"closed", closed},
    {"to_self", to_self},
    {"am_rendezvous", am_rendezvous},
    {"am_nb", am_nb},
};

static const struct check request_checks[] = {
    {"request_expected", request_expected},
    {"request_unexpected", request_unexpected},
    {"request_canceled", request_canceled},
};

enum {
    NUM_CHECKS = sizeof(checks) / sizeof(*checks),
    NUM_TAGS   = NUM_CHECKS - 2 /* the others are active messages */
};

/* UCX logs complaints in these */
static const struct check rude_checks[] = {{"destroyed", destroyed}};
static const struct check hard_checks[] = {{"closed_hard", closed_hard}};

static const struct check ep_checks[]  = {{"endpoints", endpoints}};
static const struct check far_checks[] = {{"scattered", scattered}};

static const struct check config_checks[] = {{"config_kept", config_kept}};
static const struct check types_checks[]  = {{"types", types}};

/* for counting instructions: a thousand calls of each function */
static const struct check quick_checks[] = {{"contiguous", contiguous}};

static const struct {
    const char *name;
    const struct check *checks;
    size_t num;
} lists[] = {
    {"", checks, NUM_CHECKS},
    {"peer", checks, NUM_CHECKS},
    {"hard", hard_checks, 1},
    {"rude", rude_checks, 1},
    {"quick", quick_checks, 1},
    {"types", types_checks, 1},
    {"config", config_checks, 1},
    {"tags", checks, NUM_TAGS},
    {"am", checks + NUM_TAGS, NUM_CHECKS - NUM_TAGS},
    {"gpu", checks, NUM_CHECKS},
    {"threads", checks, NUM_CHECKS},
    {"requests", request_checks, 3},
    {"scattered", far_checks, 1},
    {"endpoints", ep_checks, 1},
};

static int run(const struct check *check)
{
    int failed;

    fill();
    failed = check->run() != 0;
    printf("%s %s\n", failed ? "FAIL" : "ok  ", check->name);
    return failed;
}

static ucp_context_h make_context_without_dcx(void)
{
    ucp_context_h context;
    ucp_config_t *config;

    need("configuration", ucp_config_read(NULL, NULL, &config));
    need("configuration", ucp_config_modify(config, "TLS", "tcp"));
    context = make_context(config);
    ucp_config_release(config);
    return context;
}

static void begin_contexts(void)
{
    ucp_context_attr_t attr = {
        .field_mask = UCP_ATTR_FIELD_REQUEST_SIZE,
    };

    t.context = make_context(NULL);
    t.other   = t.is_gpu ? make_context_without_dcx() : t.context;
    need("context", ucp_context_query(t.context, &attr));
    t.request_size = attr.request_size;
    make_list(&t.source);
    make_list(&t.dest);
}

int main(int argc, char **argv)
{
    const char *name = (argc > 1) ? argv[1] : "";
    int errors       = 0;
    size_t i         = 0, j;

    while (strcmp(lists[i].name, name)) {
        if (++i == sizeof(lists) / sizeof(lists[0])) {
            die(name, UCS_ERR_INVALID_PARAM);
        }
    }
    t.is_peer = !strcmp(name, "peer") || !strcmp(name, "hard") ||
                !strcmp(name, "endpoints");
    t.is_gpu     = !strcmp(name, "gpu");
    t.is_threads = !strcmp(name, "threads") || !strcmp(name, "requests");
    t.features   = UCP_FEATURE_AM | (strcmp(name, "am") ? UCP_FEATURE_TAG : 0);
    t.early      = type_create();
    begin_contexts();
    begin();

    for (j = 0; j < lists[i].num; ++j) {
        errors += run(&lists[i].checks[j]);
    }

    end();
    if (t.other != t.context) {
        ucp_cleanup(t.other);
    }
    ucp_cleanup(t.context);
    if (t.early != 0) {
        ucp_dt_destroy(t.early);
    }
    if (t.late != 0) {
        ucp_dt_destroy(t.late);
    }
    printf("%zu checks, %d failed\n", lists[i].num, errors);
    return errors != 0;
}
