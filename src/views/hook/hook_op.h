/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Operations by view that are under way: from the call until UCP completes it,
 * when the view is closed, the data type's operation finished, and the user's
 * callback called, in this order.
 *
 * One lock, under which nothing is called. UCP may complete an operation while
 * the call that began it has not returned yet, in another thread or in this.
 *
 * A request in memory of the caller's UCP does not get, but gives one of its
 * own: it marks a request as completed before it calls what is to be called
 * then, when another thread that polls it may have used its memory again. The
 * caller's is a copy of what UCP completed, made in the end.
 */
#ifndef HOOK_OP_H
#define HOOK_OP_H

#include "views/type/hook_type.h"

#include "views/view/dcx_view_ops.h"


/* The user's */
typedef struct hook_op_callback {
    __typeof__(((ucp_request_param_t *)0)
                       ->cb) cb; /* .send NULL: there is none */
    void *arg;
    void *request; /* in memory of the user's; NULL: UCP's */
    struct hook_op *op; /* to be put when the callback has returned, or NULL */
} hook_op_callback_t;


typedef struct hook_op {
    struct hook_op *next; /* of a bucket */
    ucp_worker_h worker;
    unsigned num_refs; /* the call, UCP, and those that ask of it */
    int is_over;       /* UCP has completed it: no request finds it any more */
    void *request;     /* as the user knows it; NULL: not found by it */
    void *ucp_request; /* ... UCP's, if that is another */
    uct_dcx_view_t *view;
    ucp_mem_h memh; /* of the view; NULL: UCP needs none */
    hook_type_t *type; /* a reference */
    void *state;       /* of hook_type_start() */
    hook_op_callback_t callback;
} hook_op_t;


typedef enum hook_op_kind {
    HOOK_OP_SEND,
    HOOK_OP_TAG_RECV,
    HOOK_OP_AM_RECV
} hook_op_kind_t;


/* How many have a request. A hint that needs no lock: who asks about a request
 * of its own sees at least that one. */
extern atomic_uint hook_op_num __attribute__((visibility("hidden")));

/* An operation without anything yet, for a call, or NULL: no memory */
hook_op_t *hook_op_get(void);

/* One reference less */
void hook_op_put(hook_op_t *op);

/* The length of UCP's part of a request, which lies before the user's */
void hook_op_set_request_size(size_t size);

/* The parameters by which UCP moves the view instead, and has a reference */
ucp_request_param_t hook_op_param(hook_op_t *op, hook_op_kind_t kind,
                                  const ucp_request_param_t *user);

/* UCP was called; returns what it returned. */
ucs_status_ptr_t hook_op_issued(hook_op_t *op, ucs_status_ptr_t result);

/* Whether a request is an operation's, whose user's callback is not called from
 * now on */
int hook_op_silence(void *request);

/* A reference to the operation of a request, whose 'ucp_request' stays UCP's
 * while it is held; NULL: UCP has this request itself. */
hook_op_t *hook_op_hold(void *request);

/* The worker is no more: ends what UCP has not completed, which includes
 * receives that nothing came for. */
void hook_op_abandon(ucp_worker_h worker);

#endif
