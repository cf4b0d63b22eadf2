/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The fabric: every process of one user whose SOFTHCA_FABRIC names it shares a
 * segment of memory (hca_segment.h). A process attaches at its first look for
 * devices and leaves when it ends; another takes back what a dead one left.
 *
 * The segment is found through the run-time folder (hca_rundir.h): each
 * attached process keeps a directory there, with the link `fabric.<name>` to
 * its descriptor in /proc, and its sysfs tree.
 *
 * fabric/ is called by all rooms above it. It keeps objects, memory and
 * processes, and does not know what they are for: which process executes on an
 * object, which program made it, which files show the device.
 */
#ifndef HCA_FABRIC_H
#define HCA_FABRIC_H

#include "hca_segment.h"

#include <unistd.h>

/* Adds further files to the directory of this process.
 * @return 0 or -errno, logged. */
typedef int (*hca_fabric_fill_t)(const char *dir);

struct hca_kind_ops;

/* Attaches this process, once; later calls return the first result. Reads
 * SOFTHCA_DIR, SOFTHCA_FABRIC.
 * @param kinds  of objects, HCA_NUM_KINDS: the same in all processes
 * @param fill   called before any other call returns; NULL: nothing to add
 * @return 0 or -errno, logged with advice. */
int hca_fabric_attach(const struct hca_kind_ops *kinds, hca_fabric_fill_t fill);

/* Leaves: takes back all that this process still holds, removes its directory.
 * Called at exit; a forked child's call does nothing. The caller ensures that
 * this thread rings no doorbell meanwhile. */
void hca_fabric_detach(void);

/* Hides memory from valgrind's search for leaks, before a process ends that
 * does not leave, or a forked one that is not attached. */
void hca_fabric_hide(void);

/* Returns true if this very process, and not one that forked it, is attached
 * now. */
static inline bool hca_fabric_is_attached(void)
{
    return (hca_fabric != NULL) &&
           (hca_fabric->procs[hca_self].pid == getpid()) &&
           (atomic_load(&hca_fabric->procs[hca_self].state) == HCA_PROC_ALIVE);
}

/* The directory of this process, with no slash at its end; valid once
 * attached. */
const char *hca_fabric_dir(void);

/* Marks a process as dead and takes back its objects and chunks. Any process
 * may call it once it knows of the death (hca_proc.h), without a lock on any
 * object of the dead one; @gen is the life of the slot that is meant. If a
 * stopped process holds an object, the rest is left to the next caller. As for
 * hca_fabric_detach(), this thread must ring no doorbell meanwhile. */
void hca_fabric_reap(unsigned proc, uint32_t gen);

/* Sets the function that continues the work that a dead process was executing,
 * once its own objects are gone; it must lock no object that the caller of
 * hca_fabric_reap() holds. @heir returns false if it could not take over all:
 * the next caller tries again. Call this before the first object of this
 * process is made. */
void hca_fabric_set_heir(bool (*heir)(unsigned proc));

#endif
