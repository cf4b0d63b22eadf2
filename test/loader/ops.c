/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * ops: zero-copy operations (hook_op.c). This program stands in for UCP. It
 * completes an operation before the call that starts it returns, after that, or
 * in another thread, whose callback lasts until the call has returned.
 */
#include "../check.h"
#include "views/hook/hook_op.h"
#include "views/ucp/hook_real.h"
#include "views/ucp/hook_views.h"

#include <pthread.h>
#include <semaphore.h>
#include <string.h>
#include <unistd.h>

enum {
    REQUEST_SIZE = 256 /* UCP's part of a request */
};

typedef char request_memory_t[2 * REQUEST_SIZE];

static struct {
    request_memory_t ucp;
    request_memory_t user;
    uct_dcx_view_t view;
    hook_type_t type;
    int num_called; /* calls of the user's callback */
    int num_closed;
    int num_freed; /* frees of UCP's request */
    sem_t is_called;
    sem_t is_issued;
    ucp_request_param_t param;
} t;

/* --- functions that hook_op.c calls --------------------------------------- */

hook_real_t hook_real;

static void close_view(uct_dcx_view_t *view, int is_failed)
{
    (void)view;
    (void)is_failed;
    t.num_closed++;
}

const uct_dcx_view_ops_t *hook_views(void)
{
    static const uct_dcx_view_ops_t views = {.close = close_view};

    return &views;
}

const uct_dcx_view_policy_t *hook_policy(void)
{
    static const uct_dcx_view_policy_t policy;

    return &policy;
}

void hook_pause_came(hook_pause_t *pause, int is_short)
{
    (void)pause;
    (void)is_short;
}

void hook_type_finish(const hook_type_t *type, void *state)
{
    (void)type;
    (void)state;
}

void hook_type_put(hook_type_t *type)
{
    (void)type;
}

static void free_request(void *request)
{
    (void)request;
    t.num_freed++;
}

/* --- UCP and its user ----------------------------------------------------- */

static void *ucp_request(void)
{
    return t.ucp + REQUEST_SIZE;
}

static void *user_request(void)
{
    return t.user + REQUEST_SIZE;
}

static void called(void *request, ucs_status_t status, void *arg)
{
    (void)request;
    (void)status;
    (void)arg;
    t.num_called++;
}

/* Callback in another thread that lasts until the call has returned */
static void called_meanwhile(void *request, ucs_status_t status, void *arg)
{
    called(request, status, arg);
    sem_post(&t.is_called);
    sem_wait(&t.is_issued);
}

static hook_op_t *begin(ucp_send_nbx_callback_t cb, uint32_t flags)
{
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
                                                 flags,
                                 .request = user_request(),
                                 .cb.send = cb};
    hook_op_t *op             = hook_op_get();

    t.num_called = t.num_closed = t.num_freed = 0;
    op->view                                  = &t.view;
    op->type                                  = &t.type;
    t.param = hook_op_param(op, HOOK_OP_SEND, &param);
    return op;
}

static void complete(void)
{
    t.param.cb.send(ucp_request(), UCS_OK, t.param.user_data);
}

/* Checks that the operation has ended and is no longer found. */
static int check_over(const char *what, int num_called, int num_freed)
{
    return check_value(what, t.num_called, num_called) +
           check_value("closed", t.num_closed, 1) +
           check_value("freed", t.num_freed, num_freed) +
           check_value("known", hook_op_num, 0) +
           check_value("found", hook_op_silence(ucp_request()), 0) +
           check_value("found", hook_op_silence(user_request()), 0);
}

/* --- checks --------------------------------------------------------------- */

static int later(void)
{
    int errors = check_value(
        "issued",
        hook_op_issued(begin(called, 0), ucp_request()) == ucp_request(), 1);

    errors += check_value("known", hook_op_num, 1);
    complete();
    return errors + check_over("later", 1, 0);
}

static int within(void)
{
    hook_op_t *op = begin(called, 0);

    complete();
    hook_op_issued(op, ucp_request());
    return check_over("within", 1, 0);
}

static int within_caller(void)
{
    hook_op_t *op = begin(called, UCP_OP_ATTR_FIELD_REQUEST);
    int errors;

    complete();
    errors = check_value(
        "issued", hook_op_issued(op, ucp_request()) == user_request(), 1);
    return errors + check_over("within, the caller's", 1, 1);
}

static void *complete_thread(void *arg)
{
    (void)arg;
    complete();
    return NULL;
}

static int meanwhile_with(uint32_t flags)
{
    hook_op_t *op = begin(called_meanwhile, flags);
    pthread_t thread;

    pthread_create(&thread, NULL, complete_thread, NULL);
    sem_wait(&t.is_called);
    hook_op_issued(op, ucp_request());
    sem_post(&t.is_issued);
    pthread_join(thread, NULL);
    return check_over("meanwhile", 1, !!flags);
}

/* The next operation, of the same request, must work normally. */
static int meanwhile(void)
{
    return meanwhile_with(0) + later();
}

static int meanwhile_caller(void)
{
    return meanwhile_with(UCP_OP_ATTR_FIELD_REQUEST) + later();
}

static int at_once(void)
{
    hook_op_issued(begin(called, 0), NULL);
    return check_over("at once", 0, 0);
}

static int silenced(void)
{
    int errors;

    hook_op_issued(begin(called, 0), ucp_request());
    errors = check_value("found", hook_op_silence(ucp_request()), 1);
    complete();
    return errors + check_over("silenced", 0, 0);
}

/* Until it is put, the request belongs to UCP. */
static int held(void)
{
    hook_op_t *op;
    int errors;

    hook_op_issued(begin(called, UCP_OP_ATTR_FIELD_REQUEST), ucp_request());
    op = hook_op_hold(user_request());
    complete();
    errors = check_over("held", 1, 0) +
             check_value("UCP's", op->ucp_request == ucp_request(), 1);
    hook_op_put(op);
    return errors + check_value("put", t.num_freed, 1);
}

static int abandoned(void)
{
    hook_op_issued(begin(called, UCP_OP_ATTR_FIELD_REQUEST), ucp_request());
    hook_op_abandon(0);
    return check_over("abandoned", 0, 0) + later();
}

static const struct check checks[] = {{"later", later},
                                      {"within", within},
                                      {"within_caller", within_caller},
                                      {"meanwhile", meanwhile},
                                      {"meanwhile_caller", meanwhile_caller},
                                      {"at_once", at_once},
                                      {"silenced", silenced},
                                      {"held", held},
                                      {"abandoned", abandoned}};

int main(void)
{
    int failed = 0;
    size_t i;

    hook_real.ucp_request_free = free_request;
    hook_op_set_request_size(REQUEST_SIZE);
    sem_init(&t.is_called, 0, 0);
    sem_init(&t.is_issued, 0, 0);
    for (i = 0; i < sizeof(checks) / sizeof(*checks); i++) {
        int errors = checks[i].run();

        if (errors > 0) {
            printf("%s: %d errors\n", checks[i].name, errors);
            failed++;
        }
    }
    printf("%zu checks, %d failed\n", i, failed);
    return failed != 0;
}
