/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Waiting without polling: one completion channel for all queues of an
 * interface. Called by UCT in the interface's thread; the contract is that of
 * uct_iface_event_arm() in uct/api/uct.h.
 */
#include "dcx_pending.h"

#include <errno.h>
#include <fcntl.h>
#include <ucs/debug/log.h>
#include <ucs/sys/sys.h>


ucs_status_t uct_dcx_event_fd_get(uct_iface_h tl_iface, int *fd_p)
{
    uct_dcx_iface_t *iface = ucs_derived_of(tl_iface, uct_dcx_iface_t);

    *fd_p = iface->channel->fd;
    return UCS_OK;
}


/* Reads the events that have come. Returns their number, negative on error. */
static int uct_dcx_event_drain(uct_dcx_iface_t *iface)
{
    struct ibv_cq *cq;
    void *context;
    int count;

    for (count = 0; ibv_get_cq_event(iface->channel, &cq, &context) == 0;
         ++count) {
        uct_dcx_cq_event(context);
    }

    if ((errno != EAGAIN) && (errno != EINTR)) {
        ucs_error("%s: ibv_get_cq_event() failed: %m",
                  uct_dcx_iface_name(iface));
        return -1;
    }
    return count;
}


/* Returns UCS_ERR_BUSY if a completion is there already. */
static ucs_status_t uct_dcx_event_arm_cq(uct_dcx_cq_t *cq, int solicited)
{
    uct_dcx_cq_arm(cq, solicited);
    return (uct_dcx_cq_peek(cq, cq->ci) == NULL) ? UCS_OK : UCS_ERR_BUSY;
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


ucs_status_t uct_dcx_event_arm(uct_iface_h tl_iface, unsigned events)
{
    uct_dcx_iface_t *iface = ucs_derived_of(tl_iface, uct_dcx_iface_t);
    int count              = uct_dcx_event_drain(iface);
    ucs_status_t status;

    if (count < 0) {
        return UCS_ERR_IO_ERROR;
    }

    /* nobody would be woken for what can be done right now */
    if ((count > 0) || uct_dcx_pending_is_ready(iface) ||
        uct_dcx_fc_is_ready(&iface->fc)) {
        return UCS_ERR_BUSY;
    }

    if (events & UCT_EVENT_SEND_COMP) {
        status = uct_dcx_event_arm_tx(&iface->dci);
        if (status != UCS_OK) {
            return status;
        }
    }

    if (events & UCT_EVENT_RECV) {
        return uct_dcx_event_arm_cq(&iface->rx_cq, 1);
    }
    return UCS_OK;
}


ucs_status_t uct_dcx_event_init(uct_dcx_iface_t *iface)
{
    ucs_status_t status;

    iface->channel = ibv_create_comp_channel(iface->port.dev->ctx);
    if (iface->channel == NULL) {
        ucs_error("%s: ibv_create_comp_channel() failed: %m",
                  uct_dcx_iface_name(iface));
        return UCS_ERR_IO_ERROR;
    }

    /* arming reads until there is no more */
    status = ucs_sys_fcntl_modfl(iface->channel->fd, O_NONBLOCK, 0);
    if (status != UCS_OK) {
        ibv_destroy_comp_channel(iface->channel);
    }
    return status;
}


void uct_dcx_event_cleanup(uct_dcx_iface_t *iface)
{
    if (ibv_destroy_comp_channel(iface->channel) != 0) {
        ucs_warn("%s: failed to destroy the completion channel: %m",
                 uct_dcx_iface_name(iface));
    }
}
