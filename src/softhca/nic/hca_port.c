/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Ports that go down and come up (hca_port.h). The event is that of the port,
 * not of an object: nobody counts it (ib_uverbs_event_handler() of the kernel),
 * and it goes to every file of async events that is open on the device.
 */
#include "hca_port.h"
#include "softhca/fabric/hca_chan.h"
#include "softhca/fabric/hca_dev.h"
#include "softhca/base/hca_log.h"
#include "softhca/fabric/hca_obj.h"
#include "softhca/fabric/hca_proc.h"

#include <rdma/ib_user_verbs.h>

#define HCA_PORT_NUM 1u /* of the one that a device has */

struct hca_port_change {
    unsigned                         dev;
    struct ib_uverbs_async_event_desc desc;
};

static void hca_port_tell(void *obj, void *arg)
{
    const struct hca_port_change *change = arg;
    const struct hca_chan *chan          = obj;
    uint32_t uncounted                   = 0;
    uint32_t num                         = atomic_load(&chan->obj.num);

    if ((num != 0) && chan->is_async && (chan->obj.dev == change->dev)) {
        hca_chan_write(num, &change->desc, sizeof(change->desc), &uncounted);
    }
}

void hca_port_set(unsigned dev, bool is_down)
{
    struct hca_port_change change = {
        .dev  = dev,
        .desc = {.element    = HCA_PORT_NUM,
                 .event_type = is_down ? IBV_EVENT_PORT_ERR :
                                         IBV_EVENT_PORT_ACTIVE}
    };

    if (atomic_exchange(&hca_fabric->port_down[dev], is_down) == is_down) {
        return;
    }
    hca_info("mlx5_%u of node %u: port %u is %s", dev % HCA_DEVS_PER_NODE,
             dev / HCA_DEVS_PER_NODE, HCA_PORT_NUM, is_down ? "down" : "up");
    for (unsigned proc = 0; proc < HCA_MAX_PROCS; proc++) {
        if ((atomic_load(&hca_fabric->procs[proc].state) == HCA_PROC_ALIVE) &&
            ((proc == hca_self) || hca_proc_alive(proc))) {
            hca_obj_foreach(HCA_KIND_CHAN, proc, hca_port_tell, &change);
        }
    }
}
