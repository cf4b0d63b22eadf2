/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * A device that fails (hca_fatal.h). Event and answers to commands are those of
 * the kernel (mlx5_ib_event(), mlx5_internal_err_ret_value()). A queue pair in
 * RESET sends nothing, flushes nothing and does not answer; WQEs that it has
 * fetched stay where they are (hca_stream.h).
 */
#include "hca_fatal.h"
#include "softhca/base/hca_log.h"
#include "softhca/base/hca_mutex.h"
#include "softhca/fabric/hca_chan.h"
#include "softhca/fabric/hca_proc.h"
#include "softhca/obj/hca_cq.h"
#include "softhca/obj/hca_todo.h"

#include <rdma/ib_user_verbs.h>

struct hca_fatal {
    unsigned dev;
    const struct hca_qp *held;
};

/* No other call takes two sq_locks, and only the first call for a device does:
 * its thread waits for no thread that waits for it. */
static void hca_fatal_qp(void *obj, void *arg)
{
    const struct hca_fatal *fatal = arg;
    struct hca_qp *qp             = obj;

    if (qp->obj.dev != fatal->dev) {
        return;
    }
    if (qp != fatal->held) {
        hca_mutex_lock(&qp->sq_lock);
    }
    if (hca_obj_lock(HCA_KIND_QP, atomic_load(&qp->obj.num)) != NULL) {
        atomic_store(&qp->state, IBV_QPS_RESET);
        hca_obj_unlock(qp);
    }
    if (qp != fatal->held) {
        hca_mutex_unlock(&qp->sq_lock);
    }
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

/* Completions that this thread holds (hca_cq_mini.h) are from before. */
void hca_fatal_device(unsigned dev, const struct hca_qp *held)
{
    struct hca_proc *self  = &hca_fabric->procs[hca_self];
    struct hca_fatal fatal = {dev, held};
    uint16_t bit           = 1u << dev % HCA_DEVS_PER_NODE;

    if ((dev / HCA_DEVS_PER_NODE != self->node) ||
        (atomic_fetch_or(&self->failed, bit) & bit)) {
        return;
    }
    hca_info("mlx5_%u of node %u: has failed", dev % HCA_DEVS_PER_NODE,
             dev / HCA_DEVS_PER_NODE);
    hca_obj_foreach(HCA_KIND_QP, hca_self, hca_fatal_qp, &fatal);
    while (hca_todo.num_held > 0) {
        hca_cq_close(hca_todo.held[--hca_todo.num_held]);
    }
    hca_obj_foreach(HCA_KIND_CHAN, hca_self, hca_fatal_notify, &dev);
}
