/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
#include "hook_message.h"
#include "hook_context.h"
#include "hook_ep.h"
#include "hook_report.h"
#include "hook_views.h"

#include <stdint.h>

/* A call as it was made */
typedef struct hook_message {
    ucp_ep_h ep; /* of a send */
    hook_type_t *type;
    shape_data_t data;
    size_t count; /* as the user gave it; of a list, its pieces */
    void *buffer;
    int is_dest;
} hook_message_t;

/* Counts why it is not by view */
static hook_op_t *hook_message_as_it_came(hook_kind_t why, size_t bytes)
{
    hook_report_add(why, bytes);
    return NULL;
}

static int hook_message_is_list(ucp_datatype_t datatype)
{
    return (datatype & UCP_DATATYPE_CLASS_MASK) == UCP_DATATYPE_IOV;
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

/* Why a message of that shape is not worth a view; HOOK_SENT: it is */
static hook_kind_t hook_message_check_blocks(const shape_data_t *data)
{
    size_t length     = shape_length(data);
    size_t num_blocks = data->count * data->shape->num_blocks;

    if (length < hook_policy()->min_length) {
        return HOOK_SHORT;
    }

    if (num_blocks < 2) {
        return HOOK_ONE_BLOCK;
    }

    return (length / num_blocks < hook_policy()->min_block) ? HOOK_BLOCKS :
                                                              HOOK_SENT;
}

/* Why it could not travel as a view; HOOK_SENT: it can. A receive may be matched by
 * a message of any peer, over whatever lanes there are. */
static hook_kind_t hook_message_check_way(hook_worker_t *worker,
                                          const hook_message_t *message)
{
    hook_ep_t ep;

    if (message->is_dest) {
        return worker->context->is_dcx_only ? HOOK_SENT : HOOK_NETWORKS;
    }

    ep = hook_ep_get(worker, message->ep);
    if (!ep.has_dcx) {
        return HOOK_LANE;
    }

    return (shape_length(&message->data) <= ep.max_short) ? HOOK_SHORT :
                                                            HOOK_SENT;
}

static hook_kind_t hook_message_check(hook_worker_t *worker,
                                      const hook_message_t *message)
{
    hook_kind_t why = hook_message_check_blocks(&message->data);

    return (why == HOOK_SENT) ? hook_message_check_way(worker, message) : why;
}

/* Opens the view, and begins the operation as the data type's owner sees it */
static hook_op_t *hook_message_open(const hook_worker_t *worker,
                                    const hook_message_t *message)
{
    const hook_context_t *context = worker->context;
    size_t length                 = shape_length(&message->data);
    hook_op_t *op                 = hook_op_get();
    uct_dcx_view_status_t status;

    if (op == NULL) {
        return NULL;
    }

    status = hook_views()->open(context->mds, context->num_mds, &message->data,
                                message->is_dest, &op->view);
    if (status != UCT_DCX_VIEW_OK) {
        hook_op_put(op);
        return hook_message_as_it_came(HOOK_STATUS + status, length);
    }

    op->worker = worker->worker;
    op->type   = message->type;
    op->state  = hook_type_start(message->type, message->buffer, message->count,
                                 message->is_dest);
    hook_report_add(message->is_dest ? HOOK_RECEIVED : HOOK_SENT, length);
    return op;
}

static hook_op_t *hook_message_with_shape(hook_worker_t *worker,
                                          hook_message_t *message)
{
    hook_kind_t why;

    message->data.shape = hook_type_shape(message->type);
    if (message->data.shape == NULL) {
        return hook_message_as_it_came(HOOK_LAYOUT, 0);
    }

    why = hook_message_check(worker, message);
    if (why != HOOK_SENT) {
        return hook_message_as_it_came(why, shape_length(&message->data));
    }

    return hook_message_open(worker, message);
}

/* The reference becomes the operation's */
static hook_op_t *hook_message_with_type(hook_worker_t *worker,
                                         hook_message_t *message)
{
    hook_op_t *op = hook_message_with_shape(worker, message);

    if (op == NULL) {
        hook_type_put(message->type);
    }

    return op;
}

static hook_op_t *hook_message_of_list(hook_worker_t *worker,
                                       hook_message_t *message)
{
    const ucp_dt_iov_t *iov = message->buffer;
    size_t length           = hook_message_list_length(iov, message->count);

    if (length < hook_policy()->min_length) {
        return hook_message_as_it_came(HOOK_SHORT, length);
    }

    message->type = hook_type_of_list(iov, message->count);
    if (message->type == NULL) {
        return hook_message_as_it_came(HOOK_LAYOUT, length);
    }

    message->data.buffer = iov[0].buffer;
    message->data.count  = 1;
    return hook_message_with_type(worker, message);
}

/* No type is walked for a message that is too short anyway. */
static hook_kind_t hook_message_check_size(const hook_message_t *message,
                                           size_t *length_p)
{
    size_t size = hook_type_size(message->type);

    if ((size == 0) || __builtin_mul_overflow(size, message->count, length_p)) {
        *length_p = 0;
        return HOOK_LAYOUT;
    }

    return (*length_p < hook_policy()->min_length) ? HOOK_SHORT : HOOK_SENT;
}

static hook_op_t *hook_message_of_type(hook_worker_t *worker,
                                       hook_message_t *message)
{
    size_t length;
    hook_kind_t why = hook_message_check_size(message, &length);

    if (why != HOOK_SENT) {
        hook_type_put(message->type);
        return hook_message_as_it_came(why, length);
    }

    message->data.buffer = message->buffer;
    message->data.count  = message->count;
    return hook_message_with_type(worker, message);
}

static hook_op_t *hook_message_begin(hook_worker_t *worker,
                                     hook_message_t *message,
                                     const ucp_request_param_t *param)
{
    if (param->op_attr_mask & UCP_OP_ATTR_FLAG_FORCE_IMM_CMPL) {
        return hook_message_as_it_came(HOOK_IMMEDIATE, 0);
    }

    if (hook_message_is_list(param->datatype)) {
        return hook_message_of_list(worker, message);
    }

    message->type = hook_type_get(param->datatype);
    return (message->type == NULL) ? hook_message_as_it_came(HOOK_LAYOUT, 0) :
                                     hook_message_of_type(worker, message);
}

hook_op_t *hook_message_send(ucp_ep_h ep, const void *buffer, size_t count,
                             const ucp_request_param_t *param)
{
    hook_message_t message = {.ep     = ep,
                              .buffer = (void *)buffer,
                              .count  = count};
    hook_worker_t *worker  = hook_ep_worker(ep);

    return (worker == NULL) ? NULL :
                              hook_message_begin(worker, &message, param);
}

hook_op_t *hook_message_recv(ucp_worker_h worker, void *buffer, size_t count,
                             const ucp_request_param_t *param)
{
    hook_message_t message = {.buffer = buffer, .count = count, .is_dest = 1};
    hook_worker_t *known   = hook_worker_find(worker);

    return (known == NULL) ? NULL : hook_message_begin(known, &message, param);
}
