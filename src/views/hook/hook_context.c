/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
#define _GNU_SOURCE
#include "hook_context.h"
#include "views/ucp/hook_config.h"
#include "hook_op.h"
#include "views/ucp/hook_real.h"
#include "views/ucp/hook_report.h"
#include "views/ucp/hook_tls.h"
#include "views/ucp/hook_views.h"
#include "loader/loader.h"
#include "views/mpi/mpi_type.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <uct/api/uct.h>
#include <unistd.h>

#define HOOK_CONTEXT_PROTOCOLS "PROTO_ENABLE"

/* The option that has the memory types of fragments, and its default */
typedef struct hook_context_fragments {
    const char *name;
    const char *value;
} hook_context_fragments_t;

static struct {
    pthread_mutex_t lock;
    hook_context_t *contexts;
    hook_worker_t *_Atomic workers; /* none is ever freed */
    uint64_t num_workers;           /* created so far */
} hook_known = {.lock = PTHREAD_MUTEX_INITIALIZER};

atomic_int hook_context_any;

static void hook_context_add(hook_context_t *context)
{
    ucp_context_attr_t attr = {.field_mask = UCP_ATTR_FIELD_REQUEST_SIZE};

    hook_real.ucp_context_query(context->context, &attr);
    hook_op_set_request_size(attr.request_size);

    pthread_mutex_lock(&hook_known.lock);
    context->next       = hook_known.contexts;
    hook_known.contexts = context;
    hook_context_any    = 1;
    pthread_mutex_unlock(&hook_known.lock);
}

static hook_context_t **hook_context_place(ucp_context_h context)
{
    hook_context_t **place = &hook_known.contexts;

    while ((*place != NULL) && ((*place)->context != context)) {
        place = &(*place)->next;
    }

    return place;
}

static hook_context_t *hook_context_find(ucp_context_h context)
{
    hook_context_t *found;

    pthread_mutex_lock(&hook_known.lock);
    found = *hook_context_place(context);
    pthread_mutex_unlock(&hook_known.lock);
    return found;
}

static hook_context_t *hook_context_remove(ucp_context_h context)
{
    hook_context_t **place, *found;

    pthread_mutex_lock(&hook_known.lock);
    place = hook_context_place(context);
    found = *place;
    if (found != NULL) {
        *place = found->next;
    }
    pthread_mutex_unlock(&hook_known.lock);
    return found;
}

/* Makes libuct look for its transports, which loads dcx, before a memory domain
 * is opened. The first query of components does so. */
static void hook_context_open_plugin(void)
{
    uct_component_h *components;
    unsigned num;
    __typeof__(&uct_query_components) query =
        loader_ucx_symbol(RTLD_NEXT, "libuct.so.0", "uct_query_components");
    __typeof__(&uct_release_component_list) release = loader_ucx_symbol(
        RTLD_NEXT, "libuct.so.0", "uct_release_component_list");

    if ((query != NULL) && (release != NULL) &&
        (query(&components, &num) == UCS_OK)) {
        release(components);
    }
}

/* Returns 1 if options and process allow views. Otherwise reports why, unless
 * the option is "n". */
static int hook_context_is_wanted(const uct_dcx_view_policy_t *policy)
{
    if (policy->mode == UCT_DCX_VIEW_OFF) {
        return 0;
    }

    if (policy->is_reported) {
        hook_report_enable();
    }

    if ((policy->mode == UCT_DCX_VIEW_MPI) && !mpi_lib_is_present()) {
        hook_report_off("the process uses neither Open MPI nor MPICH "
                        "(UCX_DCX_TYPES=y is for other programs)");
        return 0;
    }

    return 1;
}

static int hook_context_has(const ucp_params_t *params, uint64_t features)
{
    return (params->field_mask & UCP_PARAM_FIELD_FEATURES) &&
           (params->features & features);
}

/* Returns 1 if the context could use views. It needs tags: UCP prints the
 * limits of its protocols (hook_ep.c) only with them. */
static int hook_context_is_for_views(const ucp_params_t *params,
                                     const uct_dcx_view_policy_t *policy)
{
    if (!hook_context_is_wanted(policy)) {
        return 0;
    }

    if (!hook_context_has(params, UCP_FEATURE_TAG)) {
        hook_report_off("the context has no UCP_FEATURE_TAG");
        return 0;
    }

    return 1;
}

/* Calls the real function with this configuration, and records the domains that
 * it opens. */
static ucs_status_t hook_context_watch(unsigned major, unsigned minor,
                                       const ucp_params_t *params,
                                       const ucp_config_t *config,
                                       hook_context_t *context)
{
    const uct_dcx_view_ops_t *views = hook_views();
    ucs_status_t status;
    unsigned copy_eps;

    views->watch_begin();
    status           = hook_real.ucp_init_version(major, minor, params, config,
                                                  &context->context);
    context->num_mds = views->watch_end(context->mds, HOOK_CONTEXT_MAX_MDS,
                                        &copy_eps);
    if ((status == UCS_OK) && context->is_for_views &&
        (context->num_mds == 0)) {
        hook_report_off("no device of dcx is in use");
    }

    return status;
}

/* Returns 1 if the node may have a GPU. */
static int hook_context_has_gpu(void)
{
    return !access("/dev/kfd", F_OK) || !access("/dev/nvidiactl", F_OK);
}

/* Makes UCP receive without fragments, if there is no GPU and the user has not
 * set the option. UCP would fetch a message that a peer without dcx announces
 * to memory that the CPU cannot access through fragments in host memory, and
 * asserts that the peer does so, too (rndv.c:
 * ucp_rndv_is_recv_pipeline_needed()). No lane takes memory of the type set
 * here, so there are no fragments, and the peer sends by active messages. GPUs
 * need the fragments. Returns the option that was set, or NULL. */
static const hook_context_fragments_t *
hook_context_without_fragments(ucp_config_t *config, const char *text)
{
    static const hook_context_fragments_t options[] = {
        {"RNDV_FRAG_MEM_TYPE", "host"},
        {"RNDV_FRAG_MEM_TYPES", "host,cuda"}, /* since UCX 1.18 */
    };
    const hook_context_fragments_t *option = options;
    const hook_context_fragments_t *end =
        options + (sizeof(options) / sizeof(options[0]));

    if (hook_context_has_gpu()) {
        return NULL;
    }

    while ((option < end) &&
           !hook_config_is(text, option->name, option->value)) {
        option++;
    }
    return ((option < end) &&
            (hook_real.ucp_config_modify(config, option->name,
                                         "rocm-managed") == UCS_OK)) ?
               option :
               NULL;
}

/* Makes a context with the copy transport in UCX_TLS, and without fragments
 * unless UCP uses its newer protocols. Restores both options afterwards, as the
 * configuration is the caller's. */
static ucs_status_t hook_context_with_tls(unsigned major, unsigned minor,
                                          const ucp_params_t *params,
                                          ucp_config_t *config,
                                          const char *text, const char *tls,
                                          hook_context_t *context)
{
    const hook_context_fragments_t *fragments =
        context->has_protocols ? NULL :
                                 hook_context_without_fragments(config, text);
    char *added = hook_tls_with_views(tls);
    ucs_status_t status;

    if (added != NULL) {
        hook_real.ucp_config_modify(config, "TLS", added);
    }

    context->needs_handles = hook_views()->ucp->has_typed_handles();
    context->is_any_peer   = context->has_protocols || (fragments != NULL) ||
                           hook_tls_is_dcx_only(tls);
    status = hook_context_watch(major, minor, params, config, context);
    if (added != NULL) {
        hook_real.ucp_config_modify(config, "TLS", tls);
    }
    if (fragments != NULL) {
        hook_real.ucp_config_modify(config, fragments->name, fragments->value);
    }
    free(added);
    return status;
}

/* Makes UCP use its older protocols with UCX_DCX_TM_ENABLE=y, if the
 * environment does not have the option: the newer ones leave few large messages
 * to the device (docs/tag-matching.md). Contexts with other features than those
 * of messages may need the newer ones, as may memory of GPUs, and
 * UCX_FENCE_MODE=ep_based requires them. Returns 1 if the option was set. */
static int hook_context_without_protocols(const ucp_params_t *params,
                                          ucp_config_t *config,
                                          const char *text, const char *tls)
{
    static const uint64_t features = UCP_FEATURE_TAG | UCP_FEATURE_AM |
                                     UCP_FEATURE_STREAM | UCP_FEATURE_WAKEUP;

    return hook_policy()->has_tags && (tls != NULL) && hook_tls_has_dcx(tls) &&
           hook_context_has(params, UCP_FEATURE_TAG) &&
           !hook_context_has(params, ~features) && !hook_context_has_gpu() &&
           hook_config_is(text, HOOK_CONTEXT_PROTOCOLS, "y") &&
           !hook_config_is_in_environment(text, HOOK_CONTEXT_PROTOCOLS) &&
           !hook_config_is(text, "FENCE_MODE", "ep_based") &&
           (hook_real.ucp_config_modify(config, HOOK_CONTEXT_PROTOCOLS, "n") ==
            UCS_OK);
}

/* Sets @is_for_views if this configuration allows views, or reports why not. */
static void hook_context_decide(hook_context_t *context, const char *tls)
{
    context->is_for_views = 0;
    if ((tls == NULL) || !hook_tls_has_dcx(tls)) {
        hook_report_off("UCX_TLS does not have dcx");
    } else if (context->has_protocols &&
               !hook_views()->ucp->has_typed_handles()) {
        hook_report_off("UCX_PROTO_ENABLE=y is not supported in this version "
                        "of UCX");
    } else {
        context->is_for_views = 1;
    }
}

/* Returns 1 if a context has to know views of its peers. */
static int hook_context_has_to_know(const hook_context_t *context,
                                    const char *tls)
{
    return (tls != NULL) && context->has_protocols &&
           hook_views()->ucp->has_typed_handles();
}

/* Returns 0, and reports it, if views have no memory type. */
static int hook_context_enable(hook_context_t *context)
{
    if (hook_views()->enable() != NULL) {
        return 1;
    }

    hook_report_off("memory of GPUs uses all memory types that UCX has for "
                    "zero-copy datatypes");
    context->is_for_views = 0;
    return 0;
}

static ucs_status_t hook_context_try(unsigned major, unsigned minor,
                                     const ucp_params_t *params,
                                     ucp_config_t *config,
                                     hook_context_t *context)
{
    char *text = hook_config_read(config);
    char *tls  = (text == NULL) ? NULL : hook_config_value(text, "TLS");
    int is_old = (text != NULL) &&
                 hook_context_without_protocols(params, config, text, tls);
    ucs_status_t status;

    context->has_protocols = (text != NULL) && !is_old &&
                             !hook_config_is(text, HOOK_CONTEXT_PROTOCOLS, "n");
    if (context->is_for_views) {
        hook_context_decide(context, tls);
    }

    if ((context->is_for_views || hook_context_has_to_know(context, tls)) &&
        hook_context_enable(context)) {
        status = hook_context_with_tls(major, minor, params, config, text, tls,
                                       context);
    } else {
        status = hook_real.ucp_init_version(major, minor, params, config,
                                            &context->context);
    }

    if (is_old) {
        hook_real.ucp_config_modify(config, HOOK_CONTEXT_PROTOCOLS, "y");
    }
    free(tls);
    free(text);
    return status;
}

/* Makes a context with the given configuration, or, if it is NULL, with that of
 * the environment. */
static ucs_status_t hook_context_with_config(unsigned major, unsigned minor,
                                             const ucp_params_t *params,
                                             const ucp_config_t *given,
                                             hook_context_t *context)
{
    ucp_config_t *config;
    ucs_status_t status;

    if (given != NULL) {
        return hook_context_try(major, minor, params, (ucp_config_t *)given,
                                context);
    }

    status = hook_real.ucp_config_read(NULL, NULL, &config);
    if (status != UCS_OK) {
        return status;
    }

    status = hook_context_try(major, minor, params, config, context);
    hook_real.ucp_config_release(config);
    return status;
}

/* Returns a record for a context that sends messages, or NULL. An MPI's windows
 * have contexts of their own, without these features. */
static hook_context_t *hook_context_new(const ucp_params_t *params)
{
    const uct_dcx_view_policy_t *policy;
    hook_context_t *context;

    if (!hook_context_has(params, UCP_FEATURE_TAG | UCP_FEATURE_AM)) {
        return NULL;
    }

    hook_context_open_plugin();
    policy  = hook_policy();
    context = (policy == NULL) ? NULL : calloc(1, sizeof(*context));
    if (context != NULL) {
        context->is_for_views = hook_context_is_for_views(params, policy);
    }
    return context;
}

ucs_status_t hook_context_create(unsigned major, unsigned minor,
                                 const ucp_params_t *params,
                                 const ucp_config_t *config,
                                 ucp_context_h *context_p)
{
    hook_context_t *context = hook_context_new(params);
    ucs_status_t status;

    if (context == NULL) {
        return hook_real.ucp_init_version(major, minor, params, config,
                                          context_p);
    }

    status = hook_context_with_config(major, minor, params, config, context);
    if (status == UCS_OK) {
        *context_p = context->context;
    }

    if ((status == UCS_OK) && context->is_for_views && (context->num_mds > 0)) {
        hook_context_add(context);
    } else {
        free(context);
    }
    return status;
}

void hook_context_destroy(ucp_context_h context)
{
    hook_context_t *known = hook_context_remove(context);

    if (known != NULL) {
        hook_handles_release(&known->handles, context);
        hook_views()->leave(known->mds, known->num_mds);
        free(known);
    }

    hook_real.ucp_cleanup(context);
}

/* Returns the record of a destroyed worker, or a new one; NULL: there is no
 * memory. */
static hook_worker_t *hook_worker_unused(void)
{
    hook_worker_t *known = hook_worker_find(NULL);

    if (known != NULL) {
        memset(known->eps, 0, sizeof(known->eps));
        return known;
    }

    known = calloc(1, sizeof(*known));
    if (known != NULL) {
        known->next = hook_known.workers;
        atomic_store_explicit(&hook_known.workers, known, memory_order_release);
    }
    return known;
}

/* Records a worker with its context. */
static void hook_worker_add(ucp_worker_h worker, hook_context_t *context)
{
    hook_worker_t *known;

    pthread_mutex_lock(&hook_known.lock);
    known = hook_worker_unused();
    if (known != NULL) {
        known->number  = ++hook_known.num_workers;
        known->context = context;
        atomic_store_explicit(&known->worker, worker, memory_order_release);
    }
    pthread_mutex_unlock(&hook_known.lock);
}

/* Calls the real function, and checks that it makes endpoints of the copy
 * transport. A context without views has that transport, too, to know views of
 * its peers. Stores in @off_p the reason why there are no views, or NULL. */
static ucs_status_t hook_worker_watch(ucp_context_h context,
                                      const ucp_worker_params_t *params,
                                      ucp_worker_h *worker_p,
                                      const char **off_p)
{
    const uct_dcx_view_ops_t *views = hook_views();
    ucs_status_t status;
    unsigned copy_eps;

    views->watch_begin();
    status = hook_real.ucp_worker_create(context, params, worker_p);
    views->watch_end(NULL, 0, &copy_eps);
    *off_p = NULL;
    if (copy_eps == 0) {
        *off_p = "UCP did not create an endpoint of the copy transport";
    } else if ((status == UCS_OK) && !views->ucp->worker_discount(*worker_p)) {
        *off_p = "dcx was built for another version of UCX: build it for this "
                 "one";
    }

    return status;
}

ucs_status_t hook_worker_create(ucp_context_h context,
                                const ucp_worker_params_t *params,
                                ucp_worker_h *worker_p)
{
    hook_context_t *known = hook_context_find(context);
    ucs_status_t status;
    const char *off;

    if (hook_views() == NULL) {
        return hook_real.ucp_worker_create(context, params, worker_p);
    }

    status = hook_worker_watch(context, params, worker_p, &off);
    if ((status != UCS_OK) || (known == NULL)) {
        return status;
    }

    if (off == NULL) {
        hook_worker_add(*worker_p, known);
    } else {
        hook_report_off(off);
    }
    return UCS_OK;
}

hook_worker_t *hook_worker_find(ucp_worker_h worker)
{
    hook_worker_t *known = atomic_load_explicit(&hook_known.workers,
                                                memory_order_acquire);

    while ((known != NULL) &&
           (atomic_load_explicit(&known->worker, memory_order_acquire) !=
            worker)) {
        known = known->next;
    }
    return known;
}

uint64_t hook_worker_remove(ucp_worker_h worker)
{
    hook_worker_t *known = hook_worker_find(worker);
    uint64_t number      = 0;

    if (known != NULL) {
        number = known->number;
        atomic_store_explicit(&known->worker, NULL, memory_order_release);
    }
    return number;
}
