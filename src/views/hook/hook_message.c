/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Messages without a view must be recognized quickly. So the first checks need
 * only the type, with no lock and no reference, as the type is alive during the
 * call. Their result is kept with the type, as the number of elements below
 * which it holds (hook_type_is_few()).
 */
#include "hook_message.h"
#include "hook_context.h"
#include "hook_ep.h"
#include "views/ucp/hook_handle.h"
#include "views/ucp/hook_report.h"
#include "views/ucp/hook_views.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>

/* The arguments of a call */
typedef struct hook_message {
    ucp_ep_h ep;           /* of a send */
    ucp_worker_h receiver; /* of a receive */
    void *buffer;
    size_t count; /* as the user passed it; of a list, its pieces */
    int is_dest;
    int is_immediate;
    hook_type_t *type;
    shape_data_t data;
} hook_message_t;

/* Counts the reason why a message has no view. Returns NULL: UCP gets the call
 * unchanged. */
static hook_op_t *hook_message_as_it_came(hook_kind_t why, size_t bytes)
{
    hook_report_add(why, bytes);
    return NULL;
}

/* Returns 1 if the span is at most 2.25 times the data. Blocks farther apart
 * cost the device more, as it translates the address of each. */
static int hook_message_is_dense_span(size_t span, size_t length)
{
    return 4. * span <= 9. * length;
}

static int hook_message_is_dense(const shape_data_t *data)
{
    char *begin, *end;

    shape_span(data, &begin, &end);
    return hook_message_is_dense_span(end - begin, shape_length(data));
}

/* Returns the reason why a message is not worth a view, or HOOK_SENT if it
 * is. */
static hook_kind_t hook_message_check_blocks(const shape_data_t *data)
{
    size_t block;

    if (data->shape->num > hook_policy()->max_pieces) {
        return HOOK_STATUS + UCT_DCX_VIEW_TOO_MANY;
    }

    if (data->count * data->shape->num_blocks < 2) {
        return HOOK_ONE_BLOCK;
    }

    block = data->shape->size / data->shape->num_blocks;
    if (block < hook_policy()->min_block) {
        return HOOK_BLOCKS;
    }

    return ((block < hook_policy()->min_sparse_block) &&
            !hook_message_is_dense(data)) ?
               HOOK_SPARSE :
               HOOK_SENT;
}

/* Checks a message of a generic type, which it walks only if the message is
 * long enough. Returns as hook_message_check_blocks(). Stores the bytes of the
 * message in @length_p; 0 if they are unknown. */
static hook_kind_t hook_message_check_type(hook_message_t *message,
                                           size_t *length_p)
{
    size_t size = hook_type_size(message->type);

    if ((size == 0) || __builtin_mul_overflow(size, message->count, length_p)) {
        *length_p = 0;
        return HOOK_LAYOUT;
    }

    if (*length_p < hook_policy()->min_length) {
        return HOOK_SHORT;
    }

    message->data.shape  = hook_type_shape(message->type);
    message->data.buffer = message->buffer;
    message->data.count  = message->count;
    return (message->data.shape == NULL) ?
               HOOK_LAYOUT :
               hook_message_check_blocks(&message->data);
}

/* Returns the smallest number of elements that are not too short. */
static size_t hook_message_min_count(hook_type_t *type)
{
    size_t size = hook_type_size(type);
    size_t min  = hook_policy()->min_length;

    return min / size + (min % size != 0);
}

/* Returns 1 if @count elements are sparse, and any larger number is, too. */
static int hook_message_is_sparse_from(shape_data_t data, size_t count)
{
    data.count = count;
    return !hook_message_is_dense(&data) &&
           !hook_message_is_dense_span(labs(data.shape->extent),
                                       data.shape->size);
}

/* Returns the number of elements below which messages of this type have no view
 * for the same reason as this one. */
static size_t hook_message_few(const hook_message_t *message, hook_kind_t why)
{
    size_t min;

    if ((why == HOOK_LAYOUT) || (why == HOOK_BLOCKS) ||
        (why == HOOK_STATUS + UCT_DCX_VIEW_TOO_MANY)) {
        return SIZE_MAX;
    }

    min = hook_message_min_count(message->type);
    return ((why == HOOK_SPARSE) &&
            hook_message_is_sparse_from(message->data, min)) ?
               SIZE_MAX :
               min;
}

/* Stores the result of hook_message_few() in the type, for later calls. */
static void hook_message_keep(const hook_message_t *message, hook_kind_t why)
{
    size_t few;

    if (message->type == NULL) {
        return;
    }

    few = hook_message_few(message, why);
    if (!hook_type_is_few(message->type, few)) {
        atomic_store_explicit(&message->type->min_count, few,
                              memory_order_relaxed);
    }
}

/* Checks a receive: without fragments (hook_context_without_fragments()), it
 * works with any peer and any lane. */
static hook_kind_t hook_message_check_receive(const hook_worker_t *worker,
                                              const hook_message_t *message)
{
    if (!worker->context->is_any_peer) {
        return HOOK_PEERS;
    }

    return hook_pause_take(&message->type->pause) ? HOOK_PAUSE : HOOK_SENT;
}

/* Returns the reason why a message cannot use a view, or HOOK_SENT if it
 * can. */
static hook_kind_t hook_message_check_way(hook_worker_t *worker,
                                          const hook_message_t *message)
{
    ucp_inside_ep_t ep;

    if (message->is_immediate) {
        return HOOK_IMMEDIATE;
    }

    if (message->is_dest) {
        return hook_message_check_receive(worker, message);
    }

    ep = hook_ep_get(worker, message->ep);
    if (!ep.has_dcx) {
        return HOOK_LANE;
    }

    return (shape_length(&message->data) <= ep.max_short) ? HOOK_SHORT :
                                                            HOOK_SENT;
}

/* Opens a view, and starts the data type's own operation. The reference to the
 * type becomes the operation's. Returns NULL, and counts why, if there is no
 * view. */
static hook_op_t *hook_message_open(hook_worker_t *worker,
                                    const hook_message_t *message)
{
    hook_context_t *context = worker->context;
    hook_op_t *op           = hook_op_get();
    uct_dcx_view_status_t status;

    if (op == NULL) {
        return NULL;
    }

    status = hook_views()->open(context->mds, context->num_mds, &message->data,
                                message->is_dest, &op->view);
    if ((status == UCT_DCX_VIEW_OK) && context->needs_handles) {
        op->memh = hook_handle_get(&context->handles, context->context,
                                   worker->worker, op->view);
        if (op->memh == NULL) {
            hook_views()->close(op->view, 0);
            status = UCT_DCX_VIEW_FAILED;
        }
    }
    if (status != UCT_DCX_VIEW_OK) {
        hook_op_put(op);
        return hook_message_as_it_came(HOOK_STATUS + status,
                                       shape_length(&message->data));
    }

    op->worker = worker->number;
    op->type   = message->type;
    op->state  = hook_type_start(message->type, message->buffer, message->count,
                                 message->is_dest);
    hook_report_add(message->is_dest ? HOOK_RECEIVED : HOOK_SENT,
                    shape_length(&message->data));
    return op;
}

/* Checks the way, and opens a view. The reference to the type becomes the
 * operation's, or is dropped. */
static hook_op_t *hook_message_on_way(const hook_message_t *message)
{
    hook_worker_t *worker = hook_worker_find(
        message->is_dest ? message->receiver : ucp_inside_worker(message->ep));
    hook_op_t *op = NULL;
    hook_kind_t why;

    if (worker != NULL) {
        why = hook_message_check_way(worker, message);
        if (why == HOOK_SENT) {
            op = hook_message_open(worker, message);
        } else {
            op = hook_message_as_it_came(why, shape_length(&message->data));
        }
    }
    if (op == NULL) {
        hook_type_put(message->type);
    }

    return op;
}

static hook_op_t *hook_message_of_type(hook_message_t *message,
                                       ucp_datatype_t datatype)
{
    size_t length   = 0;
    hook_kind_t why = HOOK_LAYOUT;

    message->type = hook_type_of(datatype);
    if (message->type != NULL) {
        why = hook_message_check_type(message, &length);
    }

    if (why != HOOK_SENT) {
        hook_message_keep(message, why);
        return hook_message_as_it_came(why, length);
    }

    /* With UCX_DCX_TYPES_REPORT=y, hook_is_packed() filters no message. */
    assert(!hook_type_is_few(message->type, message->count));
    hook_type_get(message->type);
    return hook_message_on_way(message);
}

static size_t hook_message_list_length(const ucp_dt_iov_t *iov, size_t count)
{
    size_t length = 0;
    size_t i;

    for (i = 0; i < count; ++i) {
        length += iov[i].length;
    }

    return length;
}

/* Makes a new type of each list that is long enough. */
static hook_op_t *hook_message_of_list(hook_message_t *message)
{
    const ucp_dt_iov_t *iov = message->buffer;
    size_t length           = hook_message_list_length(iov, message->count);
    hook_kind_t why;

    if (length < hook_policy()->min_length) {
        return hook_message_as_it_came(HOOK_SHORT, length);
    }

    message->type = hook_type_of_list(iov, message->count);
    if (message->type == NULL) {
        return hook_message_as_it_came(HOOK_LAYOUT, length);
    }

    message->data.shape  = hook_type_shape(message->type);
    message->data.buffer = iov[0].buffer;
    message->data.count  = 1;
    why                  = hook_message_check_blocks(&message->data);
    if (why != HOOK_SENT) {
        hook_type_put(message->type);
        return hook_message_as_it_came(why, length);
    }

    return hook_message_on_way(message);
}

static hook_op_t *hook_message_begin(hook_message_t *message,
                                     const ucp_request_param_t *param)
{
    message->is_immediate = !!(param->op_attr_mask &
                               UCP_OP_ATTR_FLAG_FORCE_IMM_CMPL);

    return ((param->datatype & UCP_DATATYPE_CLASS_MASK) == UCP_DATATYPE_IOV) ?
               hook_message_of_list(message) :
               hook_message_of_type(message, param->datatype);
}

hook_op_t *hook_message_send(ucp_ep_h ep, const void *buffer, size_t count,
                             const ucp_request_param_t *param)
{
    hook_message_t message = {
        .ep     = ep,
        .buffer = (void *)buffer,
        .count  = count,
    };

    return hook_message_begin(&message, param);
}

hook_op_t *hook_message_recv(ucp_worker_h worker, void *buffer, size_t count,
                             const ucp_request_param_t *param)
{
    hook_message_t message = {
        .receiver = worker,
        .buffer   = buffer,
        .count    = count,
        .is_dest  = 1,
    };

    return hook_message_begin(&message, param);
}
