/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Handles queues and devices that fail; see dcx_fatal.h. A QP that has failed
 * is reset, and what was outstanding on it ends with an error. After any other
 * failure the interface is closed to its users: all of its operations and
 * endpoints end with an error, peers get no answer, and it can only be
 * destroyed.
 */
#include "dcx_fatal.h"
#include "dcx_dct.h"
#include "dcx_event.h"
#include "uct/dcx/mem/dcx_md.h"
#include "uct/dcx/recover/dcx_recover.h"


static uct_dcx_async_t *uct_dcx_fatal_async(const uct_dcx_iface_t *iface)
{
    return &ucs_derived_of(iface->super.super.md, uct_dcx_md_t)->async;
}


/* --- the interface's thread ----------------------------------------------- */

/* Lets completed operations end before the rest fails. A call of progress
 * handles at least one completion of each queue: the limit is for those that
 * are still being written, maybe without end. */
static void uct_dcx_fatal_poll(uct_dcx_iface_t *iface)
{
    uint32_t left = iface->super.dci.group[0].cq.count;

    while ((uct_iface_progress(&iface->super.super.super) > 0) &&
           (--left > 0)) {
    }
}


/* Returns 1 if a QP is in error. Completions that were written before the query
 * are seen after it on the adapters known; nothing guarantees it. */
static int uct_dcx_fatal_is_in_error(const uct_dcx_dci_t *dci)
{
    struct ibv_qp_init_attr init;
    struct ibv_qp_attr attr;

    return (dci->state != UCT_DCX_DCI_LOST) &&
           ((ibv_query_qp(dci->txq.qp, &attr, IBV_QP_STATE, &init) != 0) ||
            (attr.qp_state == IBV_QPS_ERR));
}


/* Resets the QPs that are in error and have not said so. An idle one, too, as
 * its next operation would not end. An event may overtake completions: these
 * are handled first, and may reset the QP. Returns 0 if one cannot be reset. */
static int uct_dcx_fatal_reset_qps(uct_dcx_iface_t *iface)
{
    uct_dcx_dci_set_t *set = &iface->super.dci;
    uct_dcx_dci_t *dci;
    unsigned i;

    for (i = 0; i < set->num_created; ++i) {
        dci = &set->dci[set->created[i]];
        if (!uct_dcx_fatal_is_in_error(dci)) {
            continue;
        }

        uct_dcx_fatal_poll(iface);
        if (uct_dcx_fatal_is_in_error(dci) &&
            !uct_dcx_recover_fatal(set, dci)) {
            return 0;
        }
    }
    return 1;
}


static void uct_dcx_fatal_close_ep(void *ep)
{
    uct_dcx_recover_close_ep(ep);
}


/* Ends everything with an error: first sends, then receives, then endpoints,
 * also those that wait for nothing. */
static void uct_dcx_fatal_close(uct_dcx_iface_t *iface)
{
    uct_dcx_queues_t *queues = &iface->super;

    iface->fatal.is_closed = 1;
    queues->dci.is_closing = 1;
    uct_dcx_dct_cleanup(queues);
    uct_dcx_recover_close(&queues->dci);
    uct_dcx_fc_stop(&iface->fc);
    if (queues->tm != NULL) {
        uct_dcx_tm_close(queues->tm);
    }
    uct_dcx_slab_visit(&queues->eps.plain, uct_dcx_fatal_close_ep);
    uct_dcx_slab_visit(&queues->eps.grh, uct_dcx_fatal_close_ep);
    uct_dcx_slab_visit(&queues->eps.small, uct_dcx_fatal_close_ep);
    queues->dci.is_closing = 0;
}


/* Returns 1 if something has failed that cannot be reset. */
static int uct_dcx_fatal_is_dead(const uct_dcx_iface_t *iface)
{
    const uct_dcx_queues_t *queues = &iface->super;
    const uct_dcx_dci_set_t *set   = &queues->dci;
    int is_dead = uct_dcx_async_is_marked(&queues->port.dev->has_failed) ||
                  uct_dcx_async_is_marked(&queues->rx.cq.has_failed) ||
                  uct_dcx_async_is_marked(&queues->rx.srq_failed) ||
                  uct_dcx_async_is_marked(&iface->fatal.xrq.has_failed) ||
                  uct_dcx_async_is_marked(&iface->fatal.cmd.has_failed);
    unsigned i;

    for (i = 0; i < set->num_groups; ++i) {
        is_dead |= uct_dcx_async_is_marked(&set->group[i].cq.has_failed);
    }
    return is_dead;
}


void uct_dcx_fatal_progress(uct_dcx_iface_t *iface)
{
    uct_dcx_async_t *async = uct_dcx_fatal_async(iface);

    /* Under the lock, as the wake for this mark is over then: none comes after
     * arming. */
    pthread_mutex_lock(&async->lock);
    iface->super.dci.fatal = 0;
    pthread_mutex_unlock(&async->lock);
    iface->event.timer_runs = 1; /* by uct_dcx_event_wake(): arming stops it */

    uct_dcx_fatal_poll(iface);
    if (iface->fatal.is_closed) {
        return;
    }

    if (uct_dcx_fatal_is_dead(iface) || !uct_dcx_fatal_reset_qps(iface)) {
        uct_dcx_fatal_close(iface);
    }
}


/* --- the thread of events ------------------------------------------------- */

/* Called with async->lock held, which the thread of the interface takes, too,
 * maybe while it has UCX's lock of the worker. So it must not take that one:
 * uct_worker_progress_register_safe() does. */
static void uct_dcx_fatal_event(uct_dcx_async_user_t *user,
                                const struct ibv_async_event *event)
{
    uct_dcx_iface_t *iface = ucs_container_of(user, uct_dcx_iface_t,
                                              fatal.user);

    __atomic_store_n(&iface->super.dci.fatal, 1, __ATOMIC_RELAXED);
    uct_dcx_event_wake(&iface->event);
}


/* --- opening and closing -------------------------------------------------- */

void uct_dcx_fatal_init(uct_dcx_iface_t *iface)
{
    uct_dcx_async_t *async = uct_dcx_fatal_async(iface);
    uct_dcx_fatal_t *fatal = &iface->fatal;

    memset(fatal, 0, sizeof(*fatal));
    fatal->user.fatal = uct_dcx_fatal_event;
    uct_dcx_async_add(async, &fatal->user);
    if (iface->super.tm != NULL) {
        uct_dcx_async_watch_obj(async, &fatal->xrq, &iface->super.rx.xrq.obj,
                                IBV_EVENT_SRQ_ERR);
        uct_dcx_async_watch_obj(async, &fatal->cmd, &iface->tm.cmd.obj,
                                IBV_EVENT_QP_FATAL);
    }
}


void uct_dcx_fatal_cleanup(uct_dcx_iface_t *iface)
{
    uct_dcx_async_t *async = uct_dcx_fatal_async(iface);

    uct_dcx_async_unwatch_obj(async, &iface->fatal.xrq);
    uct_dcx_async_unwatch_obj(async, &iface->fatal.cmd);
    uct_dcx_async_remove(async, &iface->fatal.user);
}
