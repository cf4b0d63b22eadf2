/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Waiting without polling: one completion channel for all queues of an
 * interface, and a timer for flow control, as an endpoint that waits for
 * credits has to repeat its request. The user gets one descriptor for both.
 * Called by UCT in the interface's thread; the contract is that of
 * uct_iface_event_arm() in uct/api/uct.h.
 */
#include "dcx_event.h"
#include "dcx_rx.h"
#include "uct/dcx/queue/dcx_signal.h"
#include "uct/dcx/sched/dcx_pending.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <ucs/debug/log.h>
#include <ucs/sys/sys.h>
#include <ucs/time/time.h>
#include <unistd.h>


ucs_status_t uct_dcx_event_fd_get(uct_iface_h tl_iface, int *fd_p)
{
    uct_dcx_iface_t *iface = ucs_derived_of(tl_iface, uct_dcx_iface_t);

    *fd_p = iface->event.fd;
    return UCS_OK;
}


/* Reads all pending events. Returns their number, negative on error. */
static int uct_dcx_event_drain(uct_dcx_iface_t *iface)
{
    struct ibv_cq *cq;
    void *context;
    int count;

    for (count = 0; ibv_get_cq_event(iface->super.channel, &cq, &context) == 0;
         ++count) {
        uct_dcx_cq_event(context);
    }

    if ((errno != EAGAIN) && (errno != EINTR)) {
        ucs_error("%s: ibv_get_cq_event() failed: %m", iface->super.port.name);
        return -1;
    }
    return count;
}


/* Arms a queue. Returns UCS_ERR_BUSY if it has a completion already. */
static ucs_status_t uct_dcx_event_arm_cq(uct_dcx_cq_t *cq, int solicited)
{
    uct_dcx_cq_arm(cq, solicited);
    return (uct_dcx_cq_next(cq) == NULL) ? UCS_OK : UCS_ERR_BUSY;
}


static ucs_status_t uct_dcx_event_arm_tx(uct_dcx_dci_set_t *set)
{
    ucs_status_t status;
    unsigned i;

    for (i = 0; i < set->num_groups; ++i) {
        status = uct_dcx_event_arm_cq(&set->group[i].cq, 0);
        if (status != UCS_OK) {
            return status;
        }
    }
    return UCS_OK;
}


/* Starts the timer if flow control waits for an answer, otherwise stops it.
 * Setting a timer clears its expiry. */
static ucs_status_t uct_dcx_event_arm_timer(uct_dcx_iface_t *iface)
{
    uct_dcx_event_t *event   = &iface->event;
    struct itimerspec expiry = {};
    ucs_time_t left;

    if (!uct_dcx_fc_time_left(&iface->fc, &left)) {
        if (!event->timer_runs) {
            return UCS_OK;
        }
    } else if (left == 0) {
        return UCS_ERR_BUSY;
    } else {
        ucs_sec_to_timespec(ucs_time_to_sec(left), &expiry.it_value);
        expiry.it_value.tv_nsec += (expiry.it_value.tv_sec == 0) &&
                                   (expiry.it_value.tv_nsec == 0);
    }

    if (timerfd_settime(event->timer_fd, 0, &expiry, NULL) != 0) {
        ucs_error("%s: timerfd_settime() failed: %m", iface->super.port.name);
        return UCS_ERR_IO_ERROR;
    }

    event->timer_runs = (left > 0);
    return UCS_OK;
}


ucs_status_t uct_dcx_event_arm(uct_iface_h tl_iface, unsigned events)
{
    uct_dcx_iface_t *iface = ucs_derived_of(tl_iface, uct_dcx_iface_t);
    uct_dcx_dci_set_t *set = &iface->super.dci;
    int count              = uct_dcx_event_drain(iface);
    ucs_status_t status;

    /* Unsignaled WQEs, and messages that find no buffer, would not wake the
     * process. */
    uct_dcx_signal_request_all(set);
    if (set->todo & UCT_DCX_TODO_REFILL) {
        uct_dcx_queues_refill(&iface->super);
    }

    if (count < 0) {
        return UCS_ERR_IO_ERROR;
    }

    /* Requests that are ready now would not wake the process. */
    if ((count > 0) || uct_dcx_pending_is_ready(set)) {
        return UCS_ERR_BUSY;
    }

    status = uct_dcx_event_arm_timer(iface);
    if (status != UCS_OK) {
        return status;
    }

    /* Later: uct_dcx_event_wake() sets the timer after this. */
    if (uct_dcx_fatal_is_pending(iface)) {
        return UCS_ERR_BUSY;
    }

    if (events & UCT_EVENT_SEND_COMP) {
        status = uct_dcx_event_arm_tx(set);
        if (status != UCS_OK) {
            return status;
        }
    }

    /* No completion of a list of tags is solicited. */
    if (events & UCT_EVENT_RECV) {
        return uct_dcx_event_arm_cq(&iface->super.rx.cq,
                                    iface->super.tm == NULL);
    }
    return UCS_OK;
}


void uct_dcx_event_wake(const uct_dcx_event_t *event)
{
    const struct itimerspec expiry = {.it_value = {.tv_nsec = 1}};

    timerfd_settime(event->timer_fd, 0, &expiry, NULL);
}


static int uct_dcx_event_add(uct_dcx_event_t *event, int fd)
{
    struct epoll_event in = {.events = EPOLLIN};

    return epoll_ctl(event->fd, EPOLL_CTL_ADD, fd, &in);
}


ucs_status_t uct_dcx_event_init(uct_dcx_iface_t *iface)
{
    struct ibv_comp_channel *channel;
    uct_dcx_event_t *event = &iface->event;

    channel              = ibv_create_comp_channel(iface->super.port.dev->ctx);
    iface->super.channel = channel;
    event->timer_runs    = 0;
    event->fd            = epoll_create1(EPOLL_CLOEXEC);
    event->timer_fd      = timerfd_create(CLOCK_MONOTONIC,
                                          TFD_CLOEXEC | TFD_NONBLOCK);

    /* arming reads the channel until it is empty */
    if ((channel == NULL) || (event->fd < 0) || (event->timer_fd < 0) ||
        (ucs_sys_fcntl_modfl(channel->fd, O_NONBLOCK, 0) != UCS_OK) ||
        (uct_dcx_event_add(event, channel->fd) != 0) ||
        (uct_dcx_event_add(event, event->timer_fd) != 0)) {
        ucs_error("%s: failed to create a file descriptor for events: %m",
                  iface->super.port.name);
        uct_dcx_event_cleanup(iface);
        return UCS_ERR_IO_ERROR;
    }
    return UCS_OK;
}


/* Destroys what exists: an interface that could not be opened may lack some. */
void uct_dcx_event_cleanup(uct_dcx_iface_t *iface)
{
    if (iface->event.timer_fd >= 0) {
        close(iface->event.timer_fd);
    }
    if (iface->event.fd >= 0) {
        close(iface->event.fd);
    }
    if ((iface->super.channel != NULL) &&
        (ibv_destroy_comp_channel(iface->super.channel) != 0)) {
        ucs_warn("%s: failed to destroy the completion channel: %m",
                 iface->super.port.name);
    }
}
