/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Asynchronous events; see dcx_async.h. The table explains each to a user of
 * dcx. Sources for the events that mlx5 devices have: mlx5_ib_event(),
 * rsc_event_notifier() and mlx5_ib_cq_event() of the kernel's mlx5_ib. Events
 * of a target (DCT) do not leave the kernel. Those of DEVX: devx.c there,
 * MLX5_EVENT_TYPE_* of the kernel's linux/mlx5/device.h.
 */
#include "dcx_async.h"
#include "dcx_cq.h"

#include <errno.h>
#include <string.h>
#include <ucs/async/async.h>
#include <ucs/debug/log.h>
#include <ucs/sys/sys.h>
#include <unistd.h>


/* Events of the device that a watch subscribes to */
enum { UCT_DCX_ASYNC_WQ_CATAS = 0x05, UCT_DCX_ASYNC_XRQ_ERROR = 0x18 };


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
         "it has overrun, or its memory cannot be written: operations that "
         "need it, and all endpoints of its interface fail; restart the "
         "program"},

    [IBV_EVENT_SRQ_ERR] =
        {UCT_DCX_ASYNC_SRQ, UCS_LOG_LEVEL_ERROR,
         "it cannot be read: this process no longer receives messages, and all "
         "endpoints of its interface fail; restart the program"},
    [IBV_EVENT_SRQ_LIMIT_REACHED] = {UCT_DCX_ASYNC_SRQ, UCS_LOG_LEVEL_DEBUG,
                                     "few receive buffers are left"},

    [IBV_EVENT_QP_FATAL] =
        {UCT_DCX_ASYNC_QP, UCS_LOG_LEVEL_ERROR,
         "it has failed: its operations end with an error, and it is reset, "
         "or its interface is closed"},
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
        snprintf(name, max, ": completion queue 0x%x (%s)", cq->cqn, cq->what);
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


static const uct_dcx_async_kind_t *
uct_dcx_async_kind(const struct ibv_async_event *event)
{
    return ((event->event_type < ucs_static_array_size(uct_dcx_async_kinds)) &&
            (uct_dcx_async_kinds[event->event_type].text != NULL)) ?
               &uct_dcx_async_kinds[event->event_type] :
               NULL;
}


static void uct_dcx_async_log(uct_dcx_async_t *async,
                              const struct ibv_async_event *event,
                              const char *name)
{
    const char *device               = ibv_get_device_name(async->ctx->device);
    const uct_dcx_async_kind_t *kind = uct_dcx_async_kind(event);
    ucs_log_level_t level;

    if (kind == NULL) {
        ucs_diag("%s: event %d: %s", device, event->event_type,
                 ibv_event_type_str(event->event_type));
        return;
    }

    level = uct_dcx_async_is_change(async, event) ? kind->level :
                                                    UCS_LOG_LEVEL_DEBUG;
    ucs_log(level, "%s%s: %s", device, name, kind->text);
}


/* Notifies the users of an event that is an error. */
static void uct_dcx_async_notify(uct_dcx_async_t *async,
                                 const struct ibv_async_event *event)
{
    const uct_dcx_async_kind_t *kind = uct_dcx_async_kind(event);
    uct_dcx_async_user_t *user;

    if ((kind != NULL) && (kind->level == UCS_LOG_LEVEL_ERROR)) {
        ucs_list_for_each (user, &async->users, list) {
            user->fatal(user, event);
        }
    }
}


/* Handles an event of verbs. The context of a queue says where its mark is. */
static void uct_dcx_async_event(uct_dcx_async_t *async,
                                const struct ibv_async_event *event)
{
    const uct_dcx_async_kind_t *kind = uct_dcx_async_kind(event);
    char name[64]                    = "";

    if (kind != NULL) {
        uct_dcx_async_name(event, kind->about, name, sizeof(name));
    }
    if (event->event_type == IBV_EVENT_CQ_ERR) {
        uct_dcx_async_mark(
            &((uct_dcx_cq_t *)event->element.cq->cq_context)->has_failed);
    } else if (event->event_type == IBV_EVENT_SRQ_ERR) {
        uct_dcx_async_mark(event->element.srq->srq_context);
    }
    uct_dcx_async_log(async, event, name);
    uct_dcx_async_notify(async, event);
}


/* Handles the error of an object by DEVX, unless it is no longer watched. */
static void uct_dcx_async_devx_event(uct_dcx_async_t *async, uint64_t cookie)
{
    struct ibv_async_event event = {};
    uct_dcx_async_watch_t *watch;
    char name[64];

    ucs_list_for_each (watch, &async->watches, list) {
        if (watch->cookie == cookie) {
            event.event_type = watch->type;
            snprintf(name, sizeof(name), ": %s 0x%x", watch->obj->name,
                     watch->obj->number);
            uct_dcx_async_mark(&watch->has_failed);
            uct_dcx_async_log(async, &event, name);
            uct_dcx_async_notify(async, &event);
            break;
        }
    }
}


/* Stops reading a descriptor that reports an error from now on. The device was
 * removed (ib_uverbs_event_read() of the kernel). */
static void uct_dcx_async_give_up(uct_dcx_async_t *async, int fd)
{
    const struct ibv_async_event removed = {
        .event_type = IBV_EVENT_DEVICE_FATAL};

    ucs_diag("%s: failed to read events of the device: %s; they are no longer "
             "reported",
             ibv_get_device_name(async->ctx->device),
             (errno == 0) ? "end of file" : strerror(errno));
    ucs_async_remove_handler(fd, 0);
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
        uct_dcx_async_event(async, &event);
        ibv_ack_async_event(&event);
    } else if ((errno != EAGAIN) && (errno != EINTR)) {
        uct_dcx_async_give_up(async, fd);
    }
    pthread_mutex_unlock(&async->lock);
}


/* uct_dcx_async_read() of the channel for objects by DEVX */
static void uct_dcx_async_read_devx(int fd, ucs_event_set_types_t events,
                                    void *arg)
{
    uct_dcx_async_t *async = arg;
    struct mlx5dv_devx_async_event_hdr event;

    pthread_mutex_lock(&async->lock);
    errno = 0;
    if (mlx5dv_devx_get_event(async->channel, &event, sizeof(event)) ==
        sizeof(event)) {
        uct_dcx_async_devx_event(async, event.cookie);
    } else if ((errno != EAGAIN) && (errno != EINTR)) {
        uct_dcx_async_give_up(async, fd);
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


/* Lets UCX's thread call @read whenever @fd can be read. */
static ucs_status_t uct_dcx_async_start(uct_dcx_async_t *async, int fd,
                                        ucs_async_event_cb_t read)
{
    ucs_status_t status = ucs_sys_fcntl_modfl(fd, O_NONBLOCK, 0);

    return (status != UCS_OK) ?
               status :
               ucs_async_set_event_handler(UCS_ASYNC_MODE_THREAD_SPINLOCK, fd,
                                           UCS_EVENT_SET_EVREAD, read, async,
                                           NULL);
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
    ucs_list_head_init(&async->watches);
    async->ctx = ctx;

    status = uct_dcx_async_start(async, ctx->async_fd, uct_dcx_async_read);
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


/* Opens the channel for the first watch. Returns 0 if that fails. */
static int uct_dcx_async_open_channel(uct_dcx_async_t *async)
{
    if (async->channel != NULL) {
        return 1;
    }

    async->channel = mlx5dv_devx_create_event_channel(
        async->ctx, MLX5DV_DEVX_CREATE_EVENT_CHANNEL_FLAGS_OMIT_EV_DATA);
    if ((async->channel != NULL) &&
        (uct_dcx_async_start(async, async->channel->fd,
                             uct_dcx_async_read_devx) != UCS_OK)) {
        mlx5dv_devx_destroy_event_channel(async->channel);
        async->channel = NULL;
    }
    return async->channel != NULL;
}


void uct_dcx_async_watch_obj(uct_dcx_async_t *async,
                             uct_dcx_async_watch_t *watch,
                             const uct_dcx_devx_obj_t *obj,
                             enum ibv_event_type type)
{
    uint16_t event = (type == IBV_EVENT_SRQ_ERR) ? UCT_DCX_ASYNC_XRQ_ERROR :
                                                   UCT_DCX_ASYNC_WQ_CATAS;

    if (!uct_dcx_async_is_read(async)) {
        return;
    }

    pthread_mutex_lock(&async->lock);
    watch->obj    = obj;
    watch->type   = type;
    watch->cookie = ++async->num_watches;
    ucs_list_add_tail(&async->watches, &watch->list);
    if (!uct_dcx_async_open_channel(async) ||
        (mlx5dv_devx_subscribe_devx_event(async->channel, obj->obj,
                                          sizeof(event), &event,
                                          watch->cookie) != 0)) {
        ucs_diag("%s: errors of the %s 0x%x are not reported: %m",
                 ibv_get_device_name(async->ctx->device), obj->name,
                 obj->number);
    }
    pthread_mutex_unlock(&async->lock);
}


void uct_dcx_async_unwatch_obj(uct_dcx_async_t *async,
                               uct_dcx_async_watch_t *watch)
{
    if (uct_dcx_async_is_read(async) && (watch->obj != NULL)) {
        pthread_mutex_lock(&async->lock);
        ucs_list_del(&watch->list);
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
    if (async->channel != NULL) {
        ucs_async_remove_handler(async->channel->fd, 1);
    }
    pthread_mutex_lock(&async->lock);
    pthread_mutex_unlock(&async->lock);
    if (async->channel != NULL) {
        mlx5dv_devx_destroy_event_channel(async->channel);
    }
    pthread_mutex_destroy(&async->lock);
}
