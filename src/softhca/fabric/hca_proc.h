/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Processes of the fabric as this one sees them: if they live, their open
 * files (hca_proc.c), and the deaths of peers (hca_proc_watch.c).
 */
#ifndef HCA_PROC_H
#define HCA_PROC_H

#include "hca_segment.h"

#include <time.h>

/* Returns true if a process has the slot and was not found dead. */
static inline bool hca_proc_is_attached(unsigned proc)
{
    return atomic_load(&hca_fabric->procs[proc].state) == HCA_PROC_ALIVE;
}

/* Checks if the process that attached as @proc lives. @return 0, -ESRCH (it
 * does not: its pid may be another's, it runs another program by exec(), or its
 * parent has not waited for its end), or -errno: unknown. */
int hca_proc_check(const struct hca_proc *proc);

/* Returns true if the process of a slot lives. The first call for a slot opens
 * its pipe, which the helper then watches; later ones only load its state. A
 * process found dead is reaped (hca_fabric_reap()): hold no lock of another
 * process' object. A process whose state is unknown, or that cannot be watched,
 * counts as alive, with a warning. */
bool hca_proc_alive(unsigned owner);

/* Returns true if the process of a slot lives this moment, even if it has left
 * the fabric. Reads a file each time, and frees nothing. */
bool hca_proc_lives(unsigned proc);

/* Makes the helper of process @owner watch this process, which is about to use
 * objects of @owner: so @owner notices its end even if it never sends to it.
 * Done once in the lives of both, and only if @owner has a helper. */
void hca_proc_have_watched(unsigned owner);

/* Opens descriptor @fd of another process here, without blocking.
 * @param access  O_RDWR or O_RDONLY
 * @return descriptor (the caller's) or -errno. */
int hca_proc_open_fd(unsigned proc, int fd, int access);

/* --- for the helper (hca_helper.c) ---------------------------------------- */

/* Starts watching peers in this epoll set. The data of an event is the peer's
 * slot << 32 | the life of that slot.
 * @return the descriptor for hca_proc.asks_fd, which the caller adds to the
 *         set; or -errno */
int hca_proc_watch_init(int epoll);

/* Ends watching and closes its descriptors. */
void hca_proc_watch_cleanup(void);

/* Handle events: a peer has ended, or closed its pipe, or one has written to
 * asks_fd. */
void hca_proc_watch_died(unsigned proc, uint32_t gen);
void hca_proc_watch_asked(void);

/* Keep a forked child from getting a writable end of a peer's pipe, with which
 * it would hide the peer's end. The parent calls both. */
void hca_proc_watch_fork_begin(const struct timespec *deadline);
void hca_proc_watch_fork_end(void);

/* Ends all watches in a forked child, before hca_proc_watch_cleanup(). */
void hca_proc_watch_forked(void);

#endif
