/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * A device that fails (hca_fatal.h). Event and answers to commands are those of
 * the kernel (mlx5_ib_event(), mlx5_internal_err_ret_value()), but that a step
 * of a queue pair to ERR or RESET fails, too. A queue pair in RESET sends
 * nothing, flushes nothing and does not answer.
 */
#include "hca_fatal.h"
#include "softhca/base/hca_log.h"
#include "softhca/fabric/hca_chan.h"
#include "softhca/fabric/hca_proc.h"
#include "softhca/obj/hca_objs.h"

#include <rdma/ib_user_verbs.h>

static atomic_bool hca_fatal_devs[HCA_MAX_DEVS];

static void hca_fatal_qp(void *obj, void *arg)
{
    const unsigned *dev = arg;
    struct hca_qp *qp =
        hca_obj_lock(HCA_KIND_QP, atomic_load(&((struct hca_obj *)obj)->num));

    if (qp == NULL) {
        return;
    }
    if (qp->obj.dev == *dev) {
        atomic_store(&qp->state, IBV_QPS_RESET);
    }
    hca_obj_unlock(qp);
}

static void hca_fatal_notify(void *obj, void *arg)
{
    const struct ib_uverbs_async_event_desc desc = {
        .event_type = IBV_EVENT_DEVICE_FATAL,
    };
    const struct hca_chan *chan = obj;
    const unsigned *dev         = arg;
    uint32_t num                = atomic_load(&chan->obj.num);
    uint32_t uncounted          = 0;

    if ((num != 0) && chan->is_async && (chan->obj.dev == *dev)) {
        hca_chan_write(num, &desc, sizeof(desc), &uncounted);
    }
}

void hca_fatal_device(unsigned dev)
{
    if (atomic_exchange(&hca_fatal_devs[dev], true)) {
        return;
    }
    hca_info("mlx5_%u of node %u: has failed", dev % HCA_DEVS_PER_NODE,
             dev / HCA_DEVS_PER_NODE);
    hca_obj_foreach(HCA_KIND_QP, hca_self, hca_fatal_qp, &dev);
    hca_obj_foreach(HCA_KIND_CHAN, hca_self, hca_fatal_notify, &dev);
}

void hca_fatal_forked(void)
{
    for (unsigned dev = 0; dev < HCA_MAX_DEVS; dev++) {
        atomic_store(&hca_fatal_devs[dev], false);
    }
}

bool hca_fatal_is(unsigned dev)
{
    return atomic_load_explicit(&hca_fatal_devs[dev], memory_order_relaxed);
}
