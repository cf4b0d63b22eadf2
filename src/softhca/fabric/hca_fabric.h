/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The fabric: every process of one user whose SOFTHCA_FABRIC names it shares a
 * segment of memory (hca_segment.h). A process attaches at its first look for
 * devices and leaves when it ends. If it is killed, another process frees its
 * objects and memory (hca_fabric_reap()).
 *
 * The segment is found through the run-time folder (hca_rundir.h): each
 * attached process keeps a directory there, with the link `fabric.<name>` to
 * its descriptor in /proc, and its sysfs tree.
 *
 * fabric/ is called by all other directories but base/ and doorbell/. It keeps
 * objects, memory and processes, and does not know their use: which process
 * executes on an object, which program made it, which files show the device.
 */
#ifndef HCA_FABRIC_H
#define HCA_FABRIC_H

#include "hca_segment.h"

#include <unistd.h>

/* Adds further files to the directory of this process.
 * @return 0 or -errno, logged. */
typedef int (*hca_fabric_fill_t)(const char *dir);

struct hca_kind_ops;

/* Attaches this process, once. Later calls return the first result, or
 * -ESHUTDOWN after hca_fabric_detach(). A forked child attaches anew. Reads
 * SOFTHCA_DIR, SOFTHCA_FABRIC and the variables of hca_dev.h and hca_caps.h.
 * @param kinds  HCA_NUM_KINDS kinds of objects, the same in all processes
 * @param fill   called before any thread's call returns; NULL: nothing to add
 * @return 0 or -errno, logged with advice. */
int hca_fabric_attach(const struct hca_kind_ops *kinds, hca_fabric_fill_t fill);

/* Locks the run-time folder and maps the segment of the fabric of other
 * processes, without attaching: for a command that ends soon.
 * @return 0; -ENOENT, not logged, if there is none; or -errno, logged. */
int hca_fabric_visit(void);

/* Leaves the fabric: frees the objects and memory of this process, and removes
 * its directory. Called at exit; does nothing if the process is not attached.
 * This thread must ring no doorbell meanwhile (hca_thread_enter()). */
void hca_fabric_detach(void);

/* Stops the helper and hides the segment from valgrind's search for leaks, in a
 * process that ends without hca_fabric_detach(), and in a forked child. Does
 * nothing without valgrind. */
void hca_fabric_hide(void);

/* Returns true if this process, not only one that forked it, is attached. */
static inline bool hca_fabric_is_attached(void)
{
    return (hca_fabric != NULL) &&
           (hca_fabric->procs[hca_self].pid == getpid()) &&
           (atomic_load(&hca_fabric->procs[hca_self].state) == HCA_PROC_ALIVE);
}

/* Returns the directory of this process, with no slash at its end; valid once
 * attached. */
const char *hca_fabric_dir(void);

/* Marks process @proc as dead, brings up its ports, and frees its objects and
 * chunks. Does nothing unless @gen is the current life of the slot. Any process
 * may call it once it knows of the death (hca_proc.h), without a lock of an
 * object of @proc. This thread must ring no doorbell meanwhile. If a stopped
 * process holds an object, the rest is left to the next caller. */
void hca_fabric_reap(unsigned proc, uint32_t gen);

/* Sets the function that continues the work that a dead process was executing,
 * once its own objects are gone; it must lock no object that the caller of
 * hca_fabric_reap() holds. @heir returns false if it could not take over all:
 * the next caller tries again. Call this before the first object of this
 * process is made. */
void hca_fabric_set_heir(bool (*heir)(unsigned proc));

#endif
