/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
#include "hook_op.h"
#include "views/ucp/hook_real.h"
#include "views/ucp/hook_views.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum {
    HOOK_OP_BUCKETS = 256 /* usually more than concurrent operations */
};

static struct {
    pthread_mutex_t lock;
    hook_op_t *buckets[HOOK_OP_BUCKETS]; /* by request */
} hook_ops = {.lock = PTHREAD_MUTEX_INITIALIZER};

atomic_uint hook_op_num;

static atomic_size_t hook_op_request_size;

void hook_op_set_request_size(size_t size)
{
    hook_op_request_size = size;
}

hook_op_t *hook_op_get(void)
{
    hook_op_t *op = calloc(1, sizeof(*op));

    if (op != NULL) {
        op->num_refs = 1;
    }
    return op;
}

/* Drops a reference, with the lock held. Returns the operation if that was the
 * last one, for hook_op_free() without the lock, or NULL. */
static hook_op_t *hook_op_unref(hook_op_t *op)
{
    return (--op->num_refs == 0) ? op : NULL;
}

static void hook_op_free(hook_op_t *op)
{
    if ((op != NULL) && (op->ucp_request != NULL)) {
        hook_real.ucp_request_free(op->ucp_request);
    }
    free(op);
}

void hook_op_put(hook_op_t *op)
{
    hook_op_t *last;

    pthread_mutex_lock(&hook_ops.lock);
    last = hook_op_unref(op);
    pthread_mutex_unlock(&hook_ops.lock);
    hook_op_free(last);
}

/* Returns the bucket of a request. Requests lie some hundred bytes apart. */
static hook_op_t **hook_op_bucket(const void *request)
{
    return &hook_ops.buckets[((uintptr_t)request / 64) % HOOK_OP_BUCKETS];
}

static void hook_op_insert(hook_op_t *op, void *request)
{
    hook_op_t **bucket = hook_op_bucket(request);

    op->request = request;
    op->next    = *bucket;
    *bucket     = op;
    ++hook_op_num;
}

static void hook_op_remove(hook_op_t *op)
{
    hook_op_t **place = hook_op_bucket(op->request);

    while (*place != op) {
        place = &(*place)->next;
    }

    *place      = op->next;
    op->request = NULL;
    --hook_op_num;
}

static hook_op_t *hook_op_find(const void *request)
{
    hook_op_t *op = *hook_op_bucket(request);

    while ((op != NULL) && (op->request != request)) {
        op = op->next;
    }

    return op;
}

/* Closes the view, and finishes the data type's operation. @op belongs to the
 * caller afterwards. The peer has no access any longer after success, nor after
 * a message too long for its buffer, which UCP drops before any transfer. All
 * other errors, cancellation among them, may mean that a connection failed in
 * the middle, so the view is revoked. The MPI may destroy the data type inside
 * of finish(). */
static void hook_op_finish(hook_op_t *op, ucs_status_t status)
{
    int is_failed = (status != UCS_OK) && (status != UCS_ERR_MESSAGE_TRUNCATED);

    hook_views()->close(op->view, is_failed);
    hook_type_finish(op->type, op->state);
    hook_type_put(op->type);
}

/* Ends an operation that UCP has completed. Returns the user's callback, with
 * its request. Reads the callback under the lock under which the operation
 * leaves its bucket, so hook_op_silence() comes before, or finds nothing. With
 * a request in the user's memory, UCP's reference is kept, and with it UCP's
 * request, until the callback returns. */
static hook_op_callback_t hook_op_complete(hook_op_t *op, void *request,
                                           ucs_status_t status)
{
    hook_op_t *last = NULL;
    hook_op_callback_t user;

    hook_op_finish(op, status);
    pthread_mutex_lock(&hook_ops.lock);
    user        = op->callback;
    op->is_over = 1;
    if (op->request != NULL) {
        hook_op_remove(op);
    }
    if (user.request != NULL) {
        op->ucp_request = request;
    } else {
        last = hook_op_unref(op);
    }
    pthread_mutex_unlock(&hook_ops.lock);

    if (user.request != NULL) {
        ucp_inside_request_copy(user.request, request, hook_op_request_size);
        user.op = op;
    } else {
        user.request = request;
    }
    hook_op_free(last);
    return user;
}

/* Drops the reference that was kept until the user's callback returned. */
static void hook_op_called(const hook_op_callback_t *user)
{
    if (user->op != NULL) {
        hook_op_put(user->op);
    }
}

/* Counts a received message as short or long (hook_pause.h). Only tagged
 * receives are counted; MPIs use a callback for all of them. */
static void hook_op_came(hook_op_t *op, const ucp_tag_recv_info_t *info,
                         ucs_status_t status)
{
    if (status == UCS_OK) {
        hook_pause_came(&op->type->pause,
                        info->length < hook_policy()->min_length);
    }
}

static void hook_op_sent(void *request, ucs_status_t status, void *arg)
{
    hook_op_callback_t user = hook_op_complete(arg, request, status);

    if (user.cb.send != NULL) {
        user.cb.send(user.request, status, user.arg);
    }
    hook_op_called(&user);
}

static void hook_op_tag_received(void *request, ucs_status_t status,
                                 const ucp_tag_recv_info_t *info, void *arg)
{
    hook_op_callback_t user;

    hook_op_came(arg, info, status);
    user = hook_op_complete(arg, request, status);
    if (user.cb.recv != NULL) {
        user.cb.recv(user.request, status, info, user.arg);
    }
    hook_op_called(&user);
}

static void hook_op_am_received(void *request, ucs_status_t status,
                                size_t length, void *arg)
{
    hook_op_callback_t user = hook_op_complete(arg, request, status);

    if (user.cb.recv_am != NULL) {
        user.cb.recv_am(user.request, status, length, user.arg);
    }
    hook_op_called(&user);
}

ucp_request_param_t hook_op_param(hook_op_t *op, hook_op_kind_t kind,
                                  const ucp_request_param_t *user)
{
    static const __typeof__(user->cb) callbacks[] = {
        [HOOK_OP_SEND].send       = hook_op_sent,
        [HOOK_OP_TAG_RECV].recv   = hook_op_tag_received,
        [HOOK_OP_AM_RECV].recv_am = hook_op_am_received,
    };
    ucp_request_param_t param = *user;

    ++op->num_refs;
    if (user->op_attr_mask & UCP_OP_ATTR_FIELD_REQUEST) {
        ucp_inside_request_init(user->request, hook_op_request_size);
        op->callback.request = user->request;
        param.op_attr_mask &= ~UCP_OP_ATTR_FIELD_REQUEST;
        param.op_attr_mask |= UCP_OP_ATTR_FLAG_NO_IMM_CMPL;
    }
    if (user->op_attr_mask & UCP_OP_ATTR_FIELD_CALLBACK) {
        op->callback.cb = user->cb;
    }
    if (user->op_attr_mask & UCP_OP_ATTR_FIELD_USER_DATA) {
        op->callback.arg = user->user_data;
    }

    /* Drop the handle of the user's memory. Drop FAST_CMPL: with it UCP's newer
     * protocols would take a copy at the other side for completion. */
    param.op_attr_mask &= ~(UCP_OP_ATTR_FIELD_MEMH |
                            UCP_OP_ATTR_FLAG_FAST_CMPL);
    param.op_attr_mask |= UCP_OP_ATTR_FIELD_CALLBACK |
                          UCP_OP_ATTR_FIELD_USER_DATA |
                          UCP_OP_ATTR_FIELD_DATATYPE |
                          UCP_OP_ATTR_FIELD_MEMORY_TYPE;
    param.user_data   = op;
    param.datatype    = ucp_dt_make_contig(1);
    param.memory_type = (ucs_memory_type_t)op->view->memory_type;
    if (op->memh != NULL) {
        param.op_attr_mask |= UCP_OP_ATTR_FIELD_MEMH;
        param.memh = op->memh;
    }
    param.cb = callbacks[kind];
    return param;
}

/* Finishes an operation that ended at once, for which UCP calls no callback.
 * Any other one was completed already, or is found by its request from now
 * on. */
ucs_status_ptr_t hook_op_issued(hook_op_t *op, ucs_status_ptr_t result)
{
    void *request = op->callback.request;
    hook_op_t *last;

    if (!UCS_PTR_IS_PTR(result)) {
        hook_op_finish(op, UCS_PTR_STATUS(result));
        free(op);
        return result;
    }

    pthread_mutex_lock(&hook_ops.lock);
    if (!op->is_over) {
        op->ucp_request = (request == NULL) ? NULL : result;
        hook_op_insert(op, (request == NULL) ? result : request);
    }
    last = hook_op_unref(op);
    pthread_mutex_unlock(&hook_ops.lock);
    hook_op_free(last);
    return (request == NULL) ? result : request;
}

int hook_op_silence(void *request)
{
    hook_op_t *op;

    pthread_mutex_lock(&hook_ops.lock);
    op = hook_op_find(request);
    if (op != NULL) {
        op->callback.cb.send = NULL;
    }
    pthread_mutex_unlock(&hook_ops.lock);
    return op != NULL;
}

hook_op_t *hook_op_hold(void *request)
{
    hook_op_t *op;

    pthread_mutex_lock(&hook_ops.lock);
    op = hook_op_find(request);
    if ((op != NULL) && (op->ucp_request == NULL)) {
        op = NULL;
    }
    if (op != NULL) {
        ++op->num_refs;
    }
    pthread_mutex_unlock(&hook_ops.lock);
    return op;
}

static hook_op_t *hook_op_take(uint64_t worker)
{
    hook_op_t *op = NULL;
    unsigned i;

    pthread_mutex_lock(&hook_ops.lock);
    for (i = 0; (i < HOOK_OP_BUCKETS) && (op == NULL); ++i) {
        op = hook_ops.buckets[i];
        while ((op != NULL) && (op->worker != worker)) {
            op = op->next;
        }
    }
    if (op != NULL) {
        hook_op_remove(op);
    }
    pthread_mutex_unlock(&hook_ops.lock);
    return op;
}

/* The MPI's finish() is not called, as UCP does not; its requests are gone. */
void hook_op_abandon(uint64_t worker)
{
    hook_op_t *op;

    while ((op = hook_op_take(worker)) != NULL) {
        hook_views()->close(op->view, 1);
        hook_type_put(op->type);
        op->ucp_request = NULL;
        hook_op_put(op);
    }
}
