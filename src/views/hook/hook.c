/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Interposes UCP, so that data types of MPI are sent without being packed. This
 * library is preloaded, so programs and MPIs call the functions below first.
 * Calls that use no view reach UCP after a few instructions: messages of
 * contiguous memory, every call while views are off, and messages of a type
 * that is known to have too few elements.
 *
 *   hook_message.c   chooses the messages that use a view
 *   hook_op.c        their operations, from the call to completion
 *   hook_type.c      data types as shapes: mpi_type.h, or lists of pieces
 *   hook_commit.c    types of an MPI that has layouts only between its calls
 *   hook_pause.c     types into which short messages are received
 *   hook_context.c   contexts and workers that have views; hook_config.c reads
 *                    options of UCP, hook_tls.c UCX_TLS
 *   hook_ep.c        endpoints that can carry views
 *   hook_handle.c    UCP's memory handles of views
 *   hook_views.c     the transport's views
 *   hook_real.c      UCP's functions
 *   hook_report.c    counts messages with a view, and the reasons of others
 *
 * UCP's other functions of this kind (ucp_tag_send_nb(), ucp_tag_recv_nbr()
 * ...) call those here through the dynamic linker, so they are covered, too.
 * Functions that may run with UCP's locks held never call a function that takes
 * these while they hold a lock of ours.
 */
#include "views/type/hook_commit.h"
#include "hook_context.h"
#include "hook_message.h"
#include "views/ucp/hook_real.h"
#include "views/ucp/hook_report.h"

#define HOOK_EXPORT __attribute__((visibility("default")))
#define HOOK_SLOW   __attribute__((noinline, cold))


typedef __typeof__(&ucp_tag_send_nbx) hook_tag_send_t;

/* Returns 1 if the memory of a call is not contiguous. */
static inline int hook_has_type(const ucp_request_param_t *param)
{
    return __builtin_expect(
        (param->op_attr_mask & UCP_OP_ATTR_FIELD_DATATYPE) &&
            ((param->datatype & UCP_DATATYPE_CLASS_MASK) !=
             UCP_DATATYPE_CONTIG),
        0);
}

/* Returns 1 if it is known that UCP packs such a message, and messages are not
 * counted. */
static inline int hook_is_packed(ucp_datatype_t datatype, size_t count)
{
    return hook_type_is_ours(datatype) &&
           hook_type_is_few(ucp_inside_generic(datatype)->context, count) &&
           !hook_report_is_enabled();
}

/* Returns 1 if a call might use a view. */
static inline int hook_is_candidate(const ucp_request_param_t *param,
                                    size_t count)
{
    return hook_has_type(param) && hook_context_is_any() &&
           !hook_is_packed(param->datatype, count);
}

static HOOK_SLOW ucs_status_ptr_t
hook_tag_send(ucp_ep_h ep, const void *buffer, size_t count, ucp_tag_t tag,
              const ucp_request_param_t *param, const hook_tag_send_t *real)
{
    hook_op_t *op = hook_message_send(ep, buffer, count, param);
    ucp_request_param_t by_view;

    if (op == NULL) {
        return (*real)(ep, buffer, count, tag, param);
    }

    by_view = hook_op_param(op, HOOK_OP_SEND, param);
    return hook_op_issued(op, (*real)(ep, (void *)op->view->address,
                                      op->view->length, tag, &by_view));
}

HOOK_EXPORT ucs_status_ptr_t ucp_tag_send_nbx(ucp_ep_h ep, const void *buffer,
                                              size_t count, ucp_tag_t tag,
                                              const ucp_request_param_t *param)
{
    if (hook_is_candidate(param, count)) {
        return hook_tag_send(ep, buffer, count, tag, param,
                             &hook_real.ucp_tag_send_nbx);
    }

    return hook_real.ucp_tag_send_nbx(ep, buffer, count, tag, param);
}

HOOK_EXPORT ucs_status_ptr_t
ucp_tag_send_sync_nbx(ucp_ep_h ep, const void *buffer, size_t count,
                      ucp_tag_t tag, const ucp_request_param_t *param)
{
    if (hook_is_candidate(param, count)) {
        return hook_tag_send(ep, buffer, count, tag, param,
                             &hook_real.ucp_tag_send_sync_nbx);
    }

    return hook_real.ucp_tag_send_sync_nbx(ep, buffer, count, tag, param);
}

static HOOK_SLOW ucs_status_ptr_t hook_am_send(ucp_ep_h ep, unsigned id,
                                               const void *header,
                                               size_t header_length,
                                               const void *buffer, size_t count,
                                               const ucp_request_param_t *param)
{
    hook_op_t *op = hook_message_send(ep, buffer, count, param);
    ucp_request_param_t by_view;

    if (op == NULL) {
        return hook_real.ucp_am_send_nbx(ep, id, header, header_length, buffer,
                                         count, param);
    }

    by_view = hook_op_param(op, HOOK_OP_SEND, param);
    return hook_op_issued(
        op, hook_real.ucp_am_send_nbx(ep, id, header, header_length,
                                      (void *)op->view->address,
                                      op->view->length, &by_view));
}

HOOK_EXPORT ucs_status_ptr_t ucp_am_send_nbx(ucp_ep_h ep, unsigned id,
                                             const void *header,
                                             size_t header_length,
                                             const void *buffer, size_t count,
                                             const ucp_request_param_t *param)
{
    if (hook_is_candidate(param, count)) {
        return hook_am_send(ep, id, header, header_length, buffer, count,
                            param);
    }

    return hook_real.ucp_am_send_nbx(ep, id, header, header_length, buffer,
                                     count, param);
}

static HOOK_SLOW ucs_status_ptr_t
hook_tag_recv(ucp_worker_h worker, void *buffer, size_t count, ucp_tag_t tag,
              ucp_tag_t tag_mask, const ucp_request_param_t *param)
{
    hook_op_t *op = hook_message_recv(worker, buffer, count, param);
    ucp_request_param_t by_view;

    if (op == NULL) {
        return hook_real.ucp_tag_recv_nbx(worker, buffer, count, tag, tag_mask,
                                          param);
    }

    by_view = hook_op_param(op, HOOK_OP_TAG_RECV, param);
    return hook_op_issued(op, hook_real.ucp_tag_recv_nbx(
                                  worker, (void *)op->view->address,
                                  op->view->length, tag, tag_mask, &by_view));
}

HOOK_EXPORT ucs_status_ptr_t ucp_tag_recv_nbx(ucp_worker_h worker, void *buffer,
                                              size_t count, ucp_tag_t tag,
                                              ucp_tag_t tag_mask,
                                              const ucp_request_param_t *param)
{
    if (hook_is_candidate(param, count)) {
        return hook_tag_recv(worker, buffer, count, tag, tag_mask, param);
    }

    return hook_real.ucp_tag_recv_nbx(worker, buffer, count, tag, tag_mask,
                                      param);
}

static HOOK_SLOW ucs_status_ptr_t
hook_tag_msg_recv(ucp_worker_h worker, void *buffer, size_t count,
                  ucp_tag_message_h message, const ucp_request_param_t *param)
{
    hook_op_t *op = hook_message_recv(worker, buffer, count, param);
    ucp_request_param_t by_view;

    if (op == NULL) {
        return hook_real.ucp_tag_msg_recv_nbx(worker, buffer, count, message,
                                              param);
    }

    by_view = hook_op_param(op, HOOK_OP_TAG_RECV, param);
    return hook_op_issued(op, hook_real.ucp_tag_msg_recv_nbx(
                                  worker, (void *)op->view->address,
                                  op->view->length, message, &by_view));
}

HOOK_EXPORT ucs_status_ptr_t ucp_tag_msg_recv_nbx(
    ucp_worker_h worker, void *buffer, size_t count, ucp_tag_message_h message,
    const ucp_request_param_t *param)
{
    if (hook_is_candidate(param, count)) {
        return hook_tag_msg_recv(worker, buffer, count, message, param);
    }

    return hook_real.ucp_tag_msg_recv_nbx(worker, buffer, count, message,
                                          param);
}

static HOOK_SLOW ucs_status_ptr_t hook_am_recv(ucp_worker_h worker,
                                               void *data_desc, void *buffer,
                                               size_t count,
                                               const ucp_request_param_t *param)
{
    hook_op_t *op = hook_message_recv(worker, buffer, count, param);
    ucp_request_param_t by_view;

    if (op == NULL) {
        return hook_real.ucp_am_recv_data_nbx(worker, data_desc, buffer, count,
                                              param);
    }

    by_view = hook_op_param(op, HOOK_OP_AM_RECV, param);
    return hook_op_issued(op, hook_real.ucp_am_recv_data_nbx(
                                  worker, data_desc, (void *)op->view->address,
                                  op->view->length, &by_view));
}

HOOK_EXPORT ucs_status_ptr_t
ucp_am_recv_data_nbx(ucp_worker_h worker, void *data_desc, void *buffer,
                     size_t count, const ucp_request_param_t *param)
{
    if (hook_is_candidate(param, count)) {
        return hook_am_recv(worker, data_desc, buffer, count, param);
    }

    return hook_real.ucp_am_recv_data_nbx(worker, data_desc, buffer, count,
                                          param);
}

/* Releases a request, so that our callback still closes the view. After
 * ucp_request_free() UCP would call no callback: so only the user's callback is
 * dropped. */
static HOOK_SLOW void hook_request_free(void *request)
{
    if (hook_op_silence(request)) {
        hook_real.ucp_request_release(request);
    } else {
        hook_real.ucp_request_free(request);
    }
}

HOOK_EXPORT void ucp_request_free(void *request)
{
    if (__builtin_expect(
            atomic_load_explicit(&hook_op_num, memory_order_relaxed) != 0, 0)) {
        hook_request_free(request);
        return;
    }

    hook_real.ucp_request_free(request);
}

/* Cancels UCP's request: it differs from the caller's if that is in the
 * caller's memory. */
HOOK_EXPORT void ucp_request_cancel(ucp_worker_h worker, void *request)
{
    hook_op_t *op;

    hook_real_find();
    op = hook_op_hold(request);
    if (op == NULL) {
        hook_real.ucp_request_cancel(worker, request);
        return;
    }

    hook_real.ucp_request_cancel(worker, op->ucp_request);
    hook_op_put(op);
}

/* Queries UCP's request, but takes the status from the caller's: until that is
 * completed, it has no other information. */
HOOK_EXPORT ucs_status_t ucp_request_query(void *request,
                                           ucp_request_attr_t *attr)
{
    hook_op_t *op;
    ucs_status_t status;

    hook_real_find();
    op = hook_op_hold(request);
    if (op == NULL) {
        return hook_real.ucp_request_query(request, attr);
    }

    status = hook_real.ucp_request_query(op->ucp_request, attr);
    if (attr->field_mask & UCP_REQUEST_ATTR_FIELD_STATUS) {
        attr->status = hook_real.ucp_request_check_status(request);
    }
    hook_op_put(op);
    return status;
}

HOOK_EXPORT ucs_status_t ucp_dt_create_generic(const ucp_generic_dt_ops_t *ops,
                                               void *context,
                                               ucp_datatype_t *datatype_p)
{
    ucs_status_t status;

    hook_real_find();
    if (!hook_context_is_any()) {
        return hook_real.ucp_dt_create_generic(ops, context, datatype_p);
    }

    status = hook_type_create(ops, context, datatype_p);
    if ((status == UCS_OK) && hook_type_is_ours(*datatype_p)) {
        hook_commit_add(hook_type_of(*datatype_p));
    }

    return status;
}

HOOK_EXPORT void ucp_dt_destroy(ucp_datatype_t datatype)
{
    hook_real_find();
    hook_type_destroy(datatype);
}

HOOK_EXPORT ucs_status_t ucp_init_version(unsigned api_major_version,
                                          unsigned api_minor_version,
                                          const ucp_params_t *params,
                                          const ucp_config_t *config,
                                          ucp_context_h *context_p)
{
    hook_real_find();
    return hook_context_create(api_major_version, api_minor_version, params,
                               config, context_p);
}

HOOK_EXPORT void ucp_cleanup(ucp_context_h context_p)
{
    hook_real_find();
    hook_context_destroy(context_p);
}

HOOK_EXPORT ucs_status_t ucp_worker_create(ucp_context_h context,
                                           const ucp_worker_params_t *params,
                                           ucp_worker_h *worker_p)
{
    hook_real_find();
    return hook_worker_create(context, params, worker_p);
}

/* Destroys a worker, then closes the views of receives that got no message. UCP
 * does not complete these; no device accesses their memory any longer. */
HOOK_EXPORT void ucp_worker_destroy(ucp_worker_h worker)
{
    uint64_t number;

    hook_real_find();
    number = hook_worker_remove(worker);
    hook_real.ucp_worker_destroy(worker);
    if (number != 0) {
        hook_op_abandon(number);
    }
}
