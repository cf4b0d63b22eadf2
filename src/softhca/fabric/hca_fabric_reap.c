/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Takes back all that a process left: its ports, objects, work under way and
 * chunks, in this order, and its slot. A process that leaves keeps its slot
 * until it has ended, as its other threads may be in the middle of accesses.
 * One process at a time does this, under hca_fabric->reap_lock.
 */
#include "hca_fabric.h"
#include "hca_arena.h"
#include "hca_obj.h"
#include "hca_port.h"
#include "hca_share_map.h"
#include "softhca/base/hca_log.h"
#include "softhca/base/hca_mutex.h"

static bool (*hca_heir)(unsigned proc); /* hca_fabric_set_heir() */

void hca_fabric_set_heir(bool (*heir)(unsigned proc))
{
    hca_heir = heir;
}

void hca_fabric_reap(unsigned slot, uint32_t gen)
{
    struct hca_proc *proc    = &hca_fabric->procs[slot];
    struct timespec deadline = hca_mutex_deadline();
    bool is_broken;

    if (!hca_mutex_lock_until(&hca_fabric->reap_lock, &deadline, &is_broken)) {
        hca_warn("fabric: process %d: its objects stay: a stopped process "
                 "frees others",
                 proc->pid);
        return;
    }
    if ((atomic_load(&proc->state) != HCA_PROC_FREE) && (proc->gen == gen)) {
        hca_info("fabric: process %d has ended", proc->pid);
        atomic_store(&proc->state, HCA_PROC_DEAD);
        hca_share_map_close(slot);
        hca_port_reap(slot);
        if (!hca_obj_reap(slot)) {
            hca_warn("fabric: process %d: some of its objects stay: a stopped "
                     "process has them locked",
                     proc->pid);
        } else if ((hca_heir == NULL) || hca_heir(slot)) {
            hca_arena_reap(slot);
            if (slot != hca_self) {
                atomic_store(&proc->state, HCA_PROC_FREE);
            }
        }
    }
    hca_mutex_unlock(&hca_fabric->reap_lock);
}
