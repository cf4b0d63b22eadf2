/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Operations by view that are under way: from the call until UCP completes it,
 * when the view is closed, the data type's operation finished, and the user's
 * callback called, in this order.
 *
 * One lock, under which nothing is called. UCP may complete an operation while
 * the call that began it has not returned yet, in another thread or in this.
 */
#ifndef HOOK_OP_H
#define HOOK_OP_H

#include "hook_type.h"

#include "uct/dcx/view/dcx_view_ops.h"


/* The user's */
typedef struct hook_op_callback {
    __typeof__(((ucp_request_param_t *)0)
                       ->cb) cb; /* .send NULL: there is none */
    void *arg;
} hook_op_callback_t;


typedef struct hook_op {
    struct hook_op *next; /* unused ones, or those of a bucket */
    ucp_worker_h worker;
    void *request; /* NULL: the call has not returned */
    int is_over;   /* ... but UCP has completed it already */
    uct_dcx_view_t *view;
    hook_type_t *type; /* a reference */
    void *state;       /* of hook_type_start() */
    hook_op_callback_t callback;
} hook_op_t;


typedef enum hook_op_kind {
    HOOK_OP_SEND,
    HOOK_OP_TAG_RECV,
    HOOK_OP_AM_RECV
} hook_op_kind_t;


/* How many have a request. A hint that needs no lock: who asks about a request of
 * its own sees at least that one. */
extern atomic_uint hook_op_num __attribute__((visibility("hidden")));

/* An operation without anything yet, or NULL: no memory */
hook_op_t *hook_op_get(void);
void hook_op_put(hook_op_t *op);

/* The parameters by which UCP moves the view instead */
ucp_request_param_t hook_op_param(hook_op_t *op, hook_op_kind_t kind,
                                  const ucp_request_param_t *user);

/* UCP was called; returns what it returned. */
ucs_status_ptr_t hook_op_issued(hook_op_t *op, ucs_status_ptr_t result);

/* Whether a request is an operation's, whose user's callback is not called from
 * now on */
int hook_op_silence(void *request);

/* The worker is no more: ends what UCP has not completed, which includes receives
 * that nothing came for. */
void hook_op_abandon(ucp_worker_h worker);

#endif
