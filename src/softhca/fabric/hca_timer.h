/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The helper's side of the timers that hca_proc.h offers: one timerfd, set to
 * the earliest of them.
 */
#ifndef HCA_TIMER_H
#define HCA_TIMER_H

/* @return the timerfd, for the helper's epoll set, or -errno. */
int hca_timer_init(void);

/* In a forked child: no timer of the parent's runs here. */
void hca_timer_forked(void);

/* Runs what is due; called by the helper when the timerfd is readable. */
void hca_timer_expire(void);

#endif
