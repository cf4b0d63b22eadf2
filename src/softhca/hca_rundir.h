/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The run-time folder: SOFTHCA_DIR, or /dev/shm/softhca-<uid>. Mode 0700 and
 * owned by the user, or it is refused. Holds one directory per attached
 * process, `<pid>`, which is locked with flock() while that process lives.
 * Used by hca_fabric.c only, in the order lock, find, publish, unlock.
 */
#ifndef HCA_RUNDIR_H
#define HCA_RUNDIR_H

/* Makes the folder where needed, locks it, removes what dead processes left
 * there. @return 0 or -errno, logged with the path and what to do. */
int hca_rundir_lock(void);
void hca_rundir_unlock(void);

/* Opens the segment of a fabric that some living process has.
 * @return descriptor (the caller's), -ENOENT if none has it. */
int hca_rundir_find(const char *fabric);

/* Makes this process' directory, with the link to its segment.
 * @return 0 or -errno, logged. */
int hca_rundir_publish(const char *fabric, int fd);

/* This process' directory. */
const char *hca_rundir_path(void);

/* In a forked child: forgets the parent's directory. */
void hca_rundir_forked(void);

/* Removes this process' directory, and the folder if it is the last. */
void hca_rundir_remove(void);

#endif
