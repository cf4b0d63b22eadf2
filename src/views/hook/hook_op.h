/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Operations with a view, from the call until UCP completes them. Then the view
 * is closed, the data type's operation is finished, and the user's callback is
 * called, in this order.
 *
 * One lock protects them; nothing is called while it is held. UCP may complete
 * an operation before the call that began it has returned, in another thread or
 * in the same one.
 *
 * If the caller passes memory for a request, UCP still allocates its own. UCP
 * marks a request as completed before it calls the callback, and then another
 * thread that polls the request may already reuse its memory. The caller's
 * request is a copy of the one that UCP completed, made at the end.
 */
#ifndef HOOK_OP_H
#define HOOK_OP_H

#include "views/type/hook_type.h"

#include "views/view/dcx_view_ops.h"


/* The user's callback */
typedef struct hook_op_callback {
    __typeof__(((ucp_request_param_t *)0)
                   ->cb) cb; /* .send is NULL: there is none */
    void *arg;
    void *request;      /* in the user's memory; NULL: UCP's request */
    struct hook_op *op; /* hook_op_put() it after the callback; or NULL */
} hook_op_callback_t;


typedef struct hook_op {
    struct hook_op *next; /* in its bucket */
    uint64_t worker;      /* hook_worker_t::number; addresses are used again */
    unsigned num_refs;    /* of the call, of UCP, and of hook_op_hold() */
    int is_over;   /* UCP has completed it: no request finds it any longer */
    void *request; /* the user's, by which it is found; NULL: it is not */
    void *ucp_request; /* UCP's request, if @request is in the user's memory */
    uct_dcx_view_t *view;
    ucp_mem_h memh;    /* of the view; NULL: UCP needs none */
    hook_type_t *type; /* a reference */
    void *state;       /* returned by hook_type_start() */
    hook_op_callback_t callback;
} hook_op_t;


typedef enum hook_op_kind {
    HOOK_OP_SEND,
    HOOK_OP_TAG_RECV,
    HOOK_OP_AM_RECV
} hook_op_kind_t;


/* Number of operations that are found by a request. Read it without the lock,
 * as a hint: a caller that passes its own request sees at least that one. */
extern atomic_uint hook_op_num __attribute__((visibility("hidden")));

/* Returns an empty operation with one reference, the call's; NULL: there is no
 * memory. */
hook_op_t *hook_op_get(void);

/* Drops a reference. The last one frees the operation, and @ucp_request. */
void hook_op_put(hook_op_t *op);

/* Sets the bytes of UCP's part of a request, which lies before its handle. It
 * is the same in all contexts. */
void hook_op_set_request_size(size_t size);

/* Returns parameters for UCP to move the view instead of the user's data. Keeps
 * the user's callback and request. Takes a reference for UCP. Called once. */
ucp_request_param_t hook_op_param(hook_op_t *op, hook_op_kind_t kind,
                                  const ucp_request_param_t *user);

/* Records @result, returned by UCP's function, and drops the call's reference.
 * Finishes the operation if @result is not a request. Returns the result for
 * the user. */
ucs_status_ptr_t hook_op_issued(hook_op_t *op, ucs_status_ptr_t result);

/* Drops the user's callback of the operation that has this request. Returns 0
 * if none has it. */
int hook_op_silence(void *request);

/* Returns a reference to the operation of a request in the user's memory. Its
 * @ucp_request stays valid until hook_op_put(). NULL: the request is UCP's own,
 * or is completed. */
hook_op_t *hook_op_hold(void *request);

/* Ends the operations of a worker that was destroyed, if UCP has not completed
 * them: receives without a message, for example. Revokes their views. Calls
 * neither finish() of the data type nor the user's callback. */
void hook_op_abandon(uint64_t worker);

#endif
