/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * A device that fails, as one process sees it: by a fault (hca_fault.h), and
 * for the rest of the process' life.
 */
#ifndef HCA_FATAL_H
#define HCA_FATAL_H

#include "softhca/obj/hca_objs.h"

/* Fails a device of this process' node: the queue pairs of this process stop
 * without a completion, its targets do not answer, and its async event files
 * get DEVICE_FATAL. Waits for the messages of other threads.
 * @param held  queue pair whose sq_lock the caller holds, no other lock; or one
 *              that only the caller knows */
void hca_fatal_device(unsigned dev, const struct hca_qp *held);

/* Returns true if the device has failed for process @proc: its commands end
 * with EIO, except those that destroy an object or stop a queue pair. */
static inline bool hca_fatal_is(unsigned proc, unsigned dev)
{
    return (atomic_load_explicit(&hca_fabric->procs[proc].failed,
                                 memory_order_relaxed) >>
            (dev % HCA_DEVS_PER_NODE)) &
           1;
}

#endif
