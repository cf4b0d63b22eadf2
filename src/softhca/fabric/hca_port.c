/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Ports that go down and come up: see hca_port.h. Their events are of no
 * object: they are not counted (ib_uverbs_event_handler() of the kernel). They
 * go to every async event file of the device, except one that a stopped process
 * has locked until the deadline: a process that ends must not wait for it.
 *
 * hca_port_mutex keeps the events of this process' changes in order.
 */
#include "hca_port.h"
#include "hca_chan.h"
#include "hca_dev.h"
#include "softhca/base/hca_log.h"
#include "hca_obj.h"
#include "hca_proc.h"

#include <infiniband/verbs.h>
#include <rdma/ib_user_verbs.h>

#define HCA_PORT_NUM 1u /* a device has one port */

static pthread_mutex_t hca_port_mutex = PTHREAD_MUTEX_INITIALIZER;

struct hca_port_change {
    unsigned dev;
    struct ib_uverbs_async_event_desc desc;
    struct timespec deadline;
};

static void hca_port_notify(void *obj, void *arg)
{
    const struct hca_port_change *change = arg;
    const struct hca_chan *chan          = obj;
    uint32_t uncounted                   = 0;
    uint32_t num                         = atomic_load(&chan->obj.num);

    if ((num != 0) && chan->is_async && (chan->obj.dev == change->dev)) {
        hca_chan_write_until(num, &change->desc, sizeof(change->desc),
                             &uncounted, &change->deadline);
    }
}

static void hca_port_notify_all(unsigned dev, bool is_down)
{
    struct hca_port_change change = {
        .dev      = dev,
        .desc     = {.element    = HCA_PORT_NUM,
                     .event_type = is_down ? IBV_EVENT_PORT_ERR :
                                             IBV_EVENT_PORT_ACTIVE},
        .deadline = hca_mutex_deadline(),
    };

    hca_info("mlx5_%u of node %u: port %u is %s", dev % HCA_DEVS_PER_NODE,
             dev / HCA_DEVS_PER_NODE, HCA_PORT_NUM, is_down ? "down" : "up");
    for (unsigned proc = 1; proc < HCA_MAX_PROCS; proc++) {
        if (hca_proc_is_attached(proc)) {
            hca_obj_foreach(HCA_KIND_CHAN, proc, hca_port_notify, &change);
        }
    }
}

/* Changes the keeper of a port (0: none) to @to, if it is @from. */
static void hca_port_pass(unsigned dev, uint16_t from, uint16_t to)
{
    if (atomic_compare_exchange_strong(&hca_fabric->port_down[dev], &from,
                                       to)) {
        hca_port_notify_all(dev, to != 0);
    }
}

void hca_port_keep(unsigned dev)
{
    pthread_mutex_lock(&hca_port_mutex);
    hca_port_pass(dev, 0, hca_self);
    pthread_mutex_unlock(&hca_port_mutex);
}

void hca_port_up(unsigned dev)
{
    pthread_mutex_lock(&hca_port_mutex);
    hca_port_pass(dev, hca_self, 0);
    pthread_mutex_unlock(&hca_port_mutex);
}

void hca_port_up_all(void)
{
    for (unsigned dev = 0; dev < HCA_MAX_DEVS; dev++) {
        if (atomic_load(&hca_fabric->port_down[dev]) == hca_self) {
            hca_port_up(dev);
        }
    }
}

void hca_port_reap(unsigned proc)
{
    for (unsigned dev = 0; dev < HCA_MAX_DEVS; dev++) {
        hca_port_pass(dev, proc, 0);
    }
}

void hca_port_forked(void)
{
    pthread_mutex_init(&hca_port_mutex, NULL);
}
