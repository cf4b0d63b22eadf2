/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The helper thread of a process, for all work that no doorbell causes: deaths
 * of peers (hca_proc.h) and timers (hca_timer.h). It sleeps in epoll_wait()
 * unless one of them is due.
 */
#ifndef HCA_HELPER_H
#define HCA_HELPER_H

/* Starts the helper thread, once. @return 0 or -errno. */
int hca_helper_start(void);

/* Stops the helper at the end of the process, from any thread, in a signal
 * handler: it does nothing more when this returns. */
void hca_helper_stop(void);

/* Around fork(): keeps the helper idle, so that the child gets none of its
 * locks. */
void hca_helper_fork_begin(void);
void hca_helper_fork_end(void);

/* Forgets the helper, its timers and its watches in a forked child: they are
 * the parent's. */
void hca_helper_forked(void);

#endif
