/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The helper thread of a process, for all work that no doorbell causes: deaths
 * of peers (hca_proc.h) and timers (hca_timer.h). It sleeps in epoll_wait()
 * until there is some.
 */
#ifndef HCA_HELPER_H
#define HCA_HELPER_H

/* Starts the helper thread of this process, which is attached, unless it runs.
 * @return 0 or -errno, logged. */
int hca_helper_start(void);

/* Stops the helper at the end of the process; waits up to 10 seconds for the
 * work that it has begun, unless called by the helper. Any thread may call it,
 * also in a signal handler. */
void hca_helper_stop(void);

/* Keep the helper idle around fork(), so that the child gets none of its locks.
 * The parent calls both. The first waits until hca_mutex_deadline(), as the
 * helper may wait for a stopped process. */
void hca_helper_fork_begin(void);
void hca_helper_fork_end(void);

/* Forgets the helper, its timers and its watches in a forked child: they are
 * the parent's. */
void hca_helper_forked(void);

#endif
