/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Processes of the fabric as this one sees them: are they there, are they
 * stopped, what have they open (hca_proc.c), and the death of those that this
 * process has to do with (hca_proc_watch.c).
 */
#ifndef HCA_PROC_H
#define HCA_PROC_H

#include "hca_segment.h"

/* When a process started, in clock ticks after boot: tells it from another
 * that was given its pid. @return 0, -ESRCH (there is none), or -errno: it
 * could not be found out, for want of a descriptor for example. */
int hca_proc_start_time(pid_t pid, uint64_t *start);

/* Whether a thread is stopped, by SIGSTOP or a debugger, or its cgroup frozen. */
bool hca_proc_is_stopped(pid_t tid);

/* Returns true if a process has the slot and was not found dead. */
static inline bool hca_proc_is_attached(unsigned proc)
{
    return atomic_load(&hca_fabric->procs[proc].state) == HCA_PROC_ALIVE;
}

/* Whether the process that attached as `proc` is there. @return 0, -ESRCH (it
 * is not, its pid may be another's), or -errno: nobody knows. */
int hca_proc_check(const struct hca_proc *proc);

/* Whether the process of a slot lives. The first question about a slot opens
 * a pidfd, which the helper then watches; later ones are one load. It may take
 * back what a dead process left: no lock of another's object may be held.
 * Whoever cannot be asked about counts as alive, with a warning. */
bool hca_proc_alive(unsigned proc);

/* The same, asked this moment: the end of one that was killed is not always known.
 * Reads a file each time, and takes nothing back. */
bool hca_proc_lives(unsigned proc);

/* Has the helper of another process watch this one, which is about to do
 * something for that one's objects: its end is noticed there although nobody
 * sends to it. Once in the lives of both; not where no helper runs. */
void hca_proc_have_watched(unsigned proc);

/* Descriptor number of another process, opened here for reading and writing.
 * @return descriptor (the caller's) or -errno. */
int hca_proc_open_fd(unsigned proc, int fd);

/* --- for the helper (hca_helper.c) ---------------------------------------- */

/* Watches peers in this epoll set from now on. The data of an event is the
 * peer's slot << 32 | the life of that.
 * @return the descriptor for hca_proc.asks_fd, which is to be in the set, too;
 *         or -errno */
int hca_proc_watch_init(int epoll);

/* Closes it. */
void hca_proc_watch_cleanup(void);

/* Calls for events: a peer has ended, or has written to asks_fd. */
void hca_proc_watch_died(unsigned proc, uint32_t gen);
void hca_proc_watch_asked(void);

/* In a forked child: it watches nobody. */
void hca_proc_watch_forked(void);

#endif
