/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Asynchronous events; see dcx_async.h. The table explains each to a user of
 * dcx. Sources for the events that mlx5 devices have: mlx5_ib_event(),
 * rsc_event_notifier() and mlx5_ib_cq_event() of the kernel's mlx5_ib. Events
 * of a target (DCT) do not leave the kernel.
 */
#include "dcx_async.h"
#include "dcx_cq.h"

#include <errno.h>
#include <string.h>
#include <ucs/async/async.h>
#include <ucs/debug/log.h>
#include <ucs/sys/sys.h>
#include <unistd.h>


/* The subject of an event: selects the member of the union */
typedef enum uct_dcx_async_about {
    UCT_DCX_ASYNC_DEVICE,
    UCT_DCX_ASYNC_PORT,
    UCT_DCX_ASYNC_QP,
    UCT_DCX_ASYNC_CQ,
    UCT_DCX_ASYNC_SRQ
} uct_dcx_async_about_t;


typedef struct uct_dcx_async_kind {
    uct_dcx_async_about_t about;
    ucs_log_level_t level;
    const char *text; /* NULL: unknown to dcx */
} uct_dcx_async_kind_t;


static const uct_dcx_async_kind_t uct_dcx_async_kinds[] = {
    [IBV_EVENT_DEVICE_FATAL] =
        {UCT_DCX_ASYNC_DEVICE, UCS_LOG_LEVEL_ERROR,
         "the device has failed or was removed: all of its endpoints and "
         "operations fail; restart the program, 'dmesg' shows the cause"},

    [IBV_EVENT_PORT_ERR] =
        {UCT_DCX_ASYNC_PORT, UCS_LOG_LEVEL_WARN,
         "the port is down: operations are retried, and fail after about "
         "UCX_DCX_RETRY_COUNT times UCX_DCX_TIMEOUT; check the cable, the "
         "switch or the network interface"},
    [IBV_EVENT_PORT_ACTIVE] = {UCT_DCX_ASYNC_PORT, UCS_LOG_LEVEL_WARN,
                               "the port is up again"},
    [IBV_EVENT_LID_CHANGE] =
        {UCT_DCX_ASYNC_PORT, UCS_LOG_LEVEL_WARN,
         "the LID of the port may have changed: if it has, peers can no "
         "longer reach this process, and you need to restart the program"},
    [IBV_EVENT_PKEY_CHANGE] =
        {UCT_DCX_ASYNC_PORT, UCS_LOG_LEVEL_WARN,
         "the partitions of the port have changed: if UCX_DCX_PKEY is no "
         "longer one of them, operations fail, and you need to restart the "
         "program"},
    [IBV_EVENT_GID_CHANGE] =
        {UCT_DCX_ASYNC_PORT, UCS_LOG_LEVEL_WARN,
         "GIDs of the port have changed: if the one at UCX_DCX_GID_INDEX has, "
         "peers can no longer reach this process, and you need to restart the "
         "program"},
    [IBV_EVENT_SM_CHANGE] = {UCT_DCX_ASYNC_PORT, UCS_LOG_LEVEL_DIAG,
                             "the subnet manager of the port has changed"},
    [IBV_EVENT_CLIENT_REREGISTER] =
        {UCT_DCX_ASYNC_PORT, UCS_LOG_LEVEL_DIAG,
         "the subnet manager requests that clients register again"},

    [IBV_EVENT_CQ_ERR] =
        {UCT_DCX_ASYNC_CQ, UCS_LOG_LEVEL_ERROR,
         "it has overrun, or its memory cannot be written: all endpoints and "
         "operations of its interface fail; restart the program"},

    [IBV_EVENT_SRQ_ERR] =
        {UCT_DCX_ASYNC_SRQ, UCS_LOG_LEVEL_ERROR,
         "it cannot be read: this process no longer receives messages, and all "
         "endpoints of its interface fail; restart the program"},
    [IBV_EVENT_SRQ_LIMIT_REACHED] = {UCT_DCX_ASYNC_SRQ, UCS_LOG_LEVEL_DEBUG,
                                     "few receive buffers are left"},

    [IBV_EVENT_QP_FATAL] =
        {UCT_DCX_ASYNC_QP, UCS_LOG_LEVEL_ERROR,
         "it has failed: its operations end with an error, and it is reset"},
    [IBV_EVENT_QP_REQ_ERR] = {UCT_DCX_ASYNC_QP, UCS_LOG_LEVEL_DIAG,
                              "rejected an invalid request of a peer"},
    [IBV_EVENT_QP_ACCESS_ERR] =
        {UCT_DCX_ASYNC_QP, UCS_LOG_LEVEL_DIAG,
         "rejected a request of a peer that has no access to the memory"},
    [IBV_EVENT_COMM_EST]            = {UCT_DCX_ASYNC_QP, UCS_LOG_LEVEL_DEBUG,
                                       "the first message has arrived"},
    [IBV_EVENT_SQ_DRAINED]          = {UCT_DCX_ASYNC_QP, UCS_LOG_LEVEL_DEBUG,
                                       "it has drained"},
    [IBV_EVENT_QP_LAST_WQE_REACHED] = {UCT_DCX_ASYNC_QP, UCS_LOG_LEVEL_DEBUG,
                                       "it does not take further receive "
                                       "buffers"},
};


/* Writes the name of the event's subject to @name. The queue of an event exists
 * until the event is acknowledged. */
static void uct_dcx_async_name(const struct ibv_async_event *event,
                               uct_dcx_async_about_t about, char *name,
                               size_t max)
{
    const struct ibv_qp *qp = event->element.qp;
    const uct_dcx_cq_t *cq;

    switch (about) {
    case UCT_DCX_ASYNC_PORT:
        snprintf(name, max, ":%d", event->element.port_num);
        break;
    case UCT_DCX_ASYNC_CQ:
        cq = event->element.cq->cq_context;
        snprintf(name, max, ": completion queue 0x%x (%s)",
                 (cq == NULL) ? 0 : cq->cqn,
                 (cq == NULL) ? "unknown" : cq->what);
        break;
    case UCT_DCX_ASYNC_SRQ:
        snprintf(name, max, ": the receive queue");
        break;
    case UCT_DCX_ASYNC_QP:
        if (qp->srq != NULL) {
            snprintf(name, max, ": the DCT, qp 0x%x", qp->qp_num);
        } else {
            snprintf(name, max, ": DCI %lu, qp 0x%x",
                     (unsigned long)qp->qp_context, qp->qp_num);
        }
        break;
    default:
        name[0] = '\0';
        break;
    }
}


/* Returns non-zero if the event is a change worth logging. A port that goes
 * down may be reported twice: again when the cable is back and the subnet
 * manager has not configured the port yet (handle_port_change() of mlx5_ib). A
 * port that comes up without having been down is not logged. */
static int uct_dcx_async_is_change(uct_dcx_async_t *async,
                                   const struct ibv_async_event *event)
{
    unsigned port = event->element.port_num & 0xff;
    uint8_t bit   = UCS_BIT(port % 8);
    int is_err    = (event->event_type == IBV_EVENT_PORT_ERR);
    int was_down;

    if (!is_err && (event->event_type != IBV_EVENT_PORT_ACTIVE)) {
        return 1;
    }

    was_down = !!(async->is_down[port / 8] & bit);
    async->is_down[port / 8] ^= (was_down != is_err) ? bit : 0;
    return was_down != is_err;
}


static void uct_dcx_async_log(uct_dcx_async_t *async,
                              const struct ibv_async_event *event)
{
    const char *device       = ibv_get_device_name(async->ctx->device);
    enum ibv_event_type type = event->event_type;
    const uct_dcx_async_kind_t *kind;
    ucs_log_level_t level;
    char name[64];

    if ((type >= ucs_static_array_size(uct_dcx_async_kinds)) ||
        (uct_dcx_async_kinds[type].text == NULL)) {
        ucs_diag("%s: event %d: %s", device, type, ibv_event_type_str(type));
        return;
    }

    kind = &uct_dcx_async_kinds[type];
    uct_dcx_async_name(event, kind->about, name, sizeof(name));
    level = uct_dcx_async_is_change(async, event) ? kind->level :
                                                    UCS_LOG_LEVEL_DEBUG;
    ucs_log(level, "%s%s: %s", device, name, kind->text);
}


/* Notifies the users of an event that is an error. */
static void uct_dcx_async_notify(uct_dcx_async_t *async,
                                 const struct ibv_async_event *event)
{
    enum ibv_event_type type = event->event_type;
    uct_dcx_async_user_t *user;

    if ((type < ucs_static_array_size(uct_dcx_async_kinds)) &&
        (uct_dcx_async_kinds[type].text != NULL) &&
        (uct_dcx_async_kinds[type].level == UCS_LOG_LEVEL_ERROR)) {
        ucs_list_for_each (user, &async->users, list) {
            user->fatal(user, event);
        }
    }
}


/* Stops reading. The device was removed, and its descriptor reports an error
 * from now on (ib_uverbs_event_read() of the kernel). */
static void uct_dcx_async_give_up(uct_dcx_async_t *async)
{
    const struct ibv_async_event removed = {
        .event_type = IBV_EVENT_DEVICE_FATAL};

    ucs_diag("%s: failed to read events of the device: %s; they are no longer "
             "reported",
             ibv_get_device_name(async->ctx->device),
             (errno == 0) ? "end of file" : strerror(errno));
    ucs_async_remove_handler(async->ctx->async_fd, 0);
    uct_dcx_async_notify(async, &removed);
}


/* Reads one event; the thread calls it again while there are more. */
static void uct_dcx_async_read(int fd, ucs_event_set_types_t events, void *arg)
{
    uct_dcx_async_t *async = arg;
    struct ibv_async_event event;

    pthread_mutex_lock(&async->lock);
    errno = 0;
    if (ibv_get_async_event(async->ctx, &event) == 0) {
        uct_dcx_async_log(async, &event);
        uct_dcx_async_notify(async, &event);
        ibv_ack_async_event(&event);
    } else if ((errno != EAGAIN) && (errno != EINTR)) {
        uct_dcx_async_give_up(async);
    }
    pthread_mutex_unlock(&async->lock);
}


/* Returns non-zero if this process has, or may start, UCX's async thread. A
 * forked child has its parent's table of handlers, but no thread. It shares the
 * set of descriptors with the parent: a descriptor that it adds would wake the
 * parent in vain. */
static int uct_dcx_async_is_possible(void)
{
    static pid_t first; /* the first process that reads events */
    pid_t none = 0, pid = getpid();

    return __atomic_compare_exchange_n(&first, &none, pid, 0, __ATOMIC_RELAXED,
                                       __ATOMIC_RELAXED) ||
           (none == pid);
}


void uct_dcx_async_init(uct_dcx_async_t *async, struct ibv_context *ctx)
{
    ucs_status_t status;

    memset(async, 0, sizeof(*async));
    if (!uct_dcx_async_is_possible()) {
        ucs_diag("%s: events of the device are not reported in a forked "
                 "process",
                 ibv_get_device_name(ctx->device));
        return;
    }

    pthread_mutex_init(&async->lock, NULL);
    ucs_list_head_init(&async->users);
    async->ctx = ctx;

    status = ucs_sys_fcntl_modfl(ctx->async_fd, O_NONBLOCK, 0);
    if (status == UCS_OK) {
        status = ucs_async_set_event_handler(
            UCS_ASYNC_MODE_THREAD_SPINLOCK, ctx->async_fd, UCS_EVENT_SET_EVREAD,
            uct_dcx_async_read, async, NULL);
    }
    if (status != UCS_OK) {
        ucs_warn("%s: events of the device cannot be read (%s), so a port "
                 "that goes down is not reported; UCX_DCX_ASYNC_EVENTS=n "
                 "avoids this warning",
                 ibv_get_device_name(ctx->device), ucs_status_string(status));
        pthread_mutex_destroy(&async->lock);
        async->ctx = NULL;
    }
}


/* Returns non-zero if a thread of this process reads events. In a forked child
 * the thread, its set of descriptors and the lock belong to the parent. */
static int uct_dcx_async_is_read(const uct_dcx_async_t *async)
{
    return (async->ctx != NULL) && uct_dcx_async_is_possible();
}


void uct_dcx_async_add(uct_dcx_async_t *async, uct_dcx_async_user_t *user)
{
    ucs_list_head_init(&user->list);
    if (uct_dcx_async_is_read(async)) {
        pthread_mutex_lock(&async->lock);
        ucs_list_add_tail(&async->users, &user->list);
        pthread_mutex_unlock(&async->lock);
    }
}


void uct_dcx_async_remove(uct_dcx_async_t *async, uct_dcx_async_user_t *user)
{
    if (uct_dcx_async_is_read(async)) {
        pthread_mutex_lock(&async->lock);
        ucs_list_del(&user->list);
        pthread_mutex_unlock(&async->lock);
    }
}


void uct_dcx_async_cleanup(uct_dcx_async_t *async)
{
    if (!uct_dcx_async_is_read(async)) {
        return;
    }

    /* waits for a call under way, but not for uct_dcx_async_give_up() */
    ucs_async_remove_handler(async->ctx->async_fd, 1);
    pthread_mutex_lock(&async->lock);
    pthread_mutex_unlock(&async->lock);
    pthread_mutex_destroy(&async->lock);
}
