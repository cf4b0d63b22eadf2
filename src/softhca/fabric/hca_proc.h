/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The other processes of the fabric as this one sees them: are they alive,
 * how is their memory reached, and the helper thread of this process, to which
 * everything belongs that is not caused by a store to a doorbell: deaths of
 * peers and timers. The helper sleeps in epoll_wait() unless one is due.
 */
#ifndef HCA_PROC_H
#define HCA_PROC_H

#include "hca_segment.h"

/* Starts the helper thread, once. @return 0 or -errno. */
int hca_helper_start(void);

/* For the end of the process, from any thread, in a signal handler: the helper does
 * nothing more when this returns. */
void hca_helper_stop(void);

/* Around fork(): keeps the helper idle, so that the child gets none of its
 * locks. */
void hca_proc_fork_begin(void);
void hca_proc_fork_end(void);

/* In a forked child: the helper, its timers and what it watched are the
 * parent's. */
void hca_proc_forked(void);

/* When a process started, in clock ticks after boot: tells it from another
 * that was given its pid. @return 0, -ESRCH (there is none), or -errno: it
 * could not be found out, for want of a descriptor for example. */
int hca_proc_start_time(pid_t pid, uint64_t *start);

/* Whether a thread is stopped, by SIGSTOP or a debugger, or its cgroup frozen. */
bool hca_proc_is_stopped(pid_t tid);

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

#endif
