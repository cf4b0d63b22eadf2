/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The run-time folder: SOFTHCA_DIR, or /dev/shm/softhca-<uid>. It is refused
 * unless the user owns it and others have no access. It holds a directory per
 * attached process, `<pid>`, which is locked with flock() while that process
 * lives. Used by hca_fabric.c, in the order lock, find, publish, unlock, and by
 * the sweeper (sweep.c), which has no directory of its own. Callers have locked
 * the folder, except of functions that lock it, return a path, or run in a
 * forked child.
 */
#ifndef HCA_RUNDIR_H
#define HCA_RUNDIR_H

#include <stdbool.h>

/* Makes the folder if needed, locks it, and removes the directories of dead
 * processes. A line in the log names the process that has it locked for more
 * than two seconds. @return 0 or -errno, logged with the path and advice. */
int hca_rundir_lock(void);
void hca_rundir_unlock(void);

/* hca_rundir_lock() at the end of a process: waits two seconds at most, and
 * makes no folder. @return also -ENOENT and, logged, -ETIMEDOUT. */
int hca_rundir_lock_last(void);

/* Only locks the folder. @return 0; -ENOENT, not logged, if there is none; or
 * -errno, logged. */
int hca_rundir_lock_existing(void);

/* Calls @fn with the name of each process directory, until it returns other
 * than 0. @return the last result of @fn; 0 if there is no directory. */
int hca_rundir_foreach(int (*fn)(const char *name, void *arg), void *arg);

/* Removes a process directory whose process is dead. @return true if it is. */
bool hca_rundir_sweep(const char *name);

/* Removes the folder, if it is empty. */
void hca_rundir_rmdir(void);

/* Returns the path of the folder, which may not exist yet. NULL if SOFTHCA_DIR
 * is wrong (logged). */
const char *hca_rundir_folder_path(void);

/* Opens the segment of a fabric that a living process has.
 * @return descriptor (the caller's), -ENOENT if there is none. */
int hca_rundir_find(const char *fabric);

/* Makes and locks this process' directory, with the link to its segment, of
 * descriptor @fd.
 * @return 0 or -errno, logged: call hca_rundir_remove() then, too. */
int hca_rundir_publish(const char *fabric, int fd);

/* Returns this process' directory, "" if it has none. */
const char *hca_rundir_path(void);

/* Forgets the parent's directory in a forked child. */
void hca_rundir_forked(void);

/* Removes this process' directory, and the folder if it is the last. */
void hca_rundir_remove(void);

#endif
