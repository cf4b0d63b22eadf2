/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The other processes of the fabric as this one sees them: are they alive,
 * how is their memory reached, and the helper thread of this process, to which
 * everything belongs that is not caused by a store to a doorbell: deaths of
 * peers and timers. The helper sleeps in epoll_wait() unless one is due.
 */
#ifndef HCA_PROC_H
#define HCA_PROC_H

#include "hca_obj.h"

#include <sys/uio.h>

/* Starts the helper thread, once. @return 0 or -errno. */
int hca_helper_start(void);

/* Around fork(): keeps the helper idle, so that the child gets none of its
 * locks. */
void hca_proc_fork_begin(void);
void hca_proc_fork_end(void);

/* In a forked child: the helper, its timers and what it watched are the
 * parent's; so are the opened channels. */
void hca_proc_forked(void);
void hca_chan_forked(void);

/* When a process started, in clock ticks after boot: tells it from another
 * that was given its pid. @return 0, -ESRCH (there is none), or -errno: it
 * could not be found out, for want of a descriptor for example. */
int hca_proc_start_time(pid_t pid, uint64_t *start);

/* Whether the process that attached as `proc` is there. @return 0, -ESRCH (it
 * is not, its pid may be another's), or -errno: nobody knows. */
int hca_proc_check(const struct hca_proc *proc);

/* Whether the process of a slot lives. The first question about a slot opens
 * a pidfd, which the helper then watches; later ones are one load. It may take
 * back what a dead process left: no lock of another's object may be held.
 * Whoever cannot be asked about counts as alive, with a warning. */
bool hca_proc_alive(unsigned proc);

/* A timer of the helper. Embedded in process-local memory. */
struct hca_timer {
    uint64_t          due; /* CLOCK_MONOTONIC ns, 0 not armed */
    void            (*fn)(struct hca_timer *timer); /* in the helper */
    struct hca_timer *next;
};

/* Arms (or moves) a timer. fn runs once, in the helper thread, with no lock
 * held; it may arm the timer again. */
void hca_timer_arm(struct hca_timer *timer, uint64_t due);

/* When it returns, fn does not run and will not. Not from inside fn. */
void hca_timer_cancel(struct hca_timer *timer);

uint64_t hca_time_ns(void);

/* Whose memory is meant. The pid is kept because the slot may be another's at
 * the time of the copy: then there is no process of that pid any more. */
struct hca_owner {
    unsigned proc;
    pid_t    pid;
};

/* While the lock of an object of that process is held, which therefore has its
 * slot, alive or not; or for this process. */
static inline struct hca_owner hca_owner(unsigned proc)
{
    return (struct hca_owner){proc, hca_fabric->procs[proc].pid};
}

/* Copies between local pieces and pieces of the owner's memory (which may be
 * this process). Total lengths are equal; iov counts <= IOV_MAX each.
 * @return 0, -EFAULT (some address is not mapped or not accessible),
 *         -ESRCH (the process is gone), -EPERM (the system forbids it). */
int hca_mem_write(struct hca_owner owner, const struct iovec *local,
                  unsigned nlocal, const struct iovec *remote,
                  unsigned nremote);
int hca_mem_read(struct hca_owner owner, const struct iovec *local,
                 unsigned nlocal, const struct iovec *remote,
                 unsigned nremote);

/* Descriptor number of another process, opened here for reading and writing.
 * @return descriptor (the caller's) or -errno. */
int hca_proc_open_fd(unsigned proc, int fd);

/* Writes one event record into a channel: a whole or nothing. The owner reads
 * it from its descriptor.
 * @param count  raised by one for what was written
 * @return 0, -ESRCH (the channel is gone), or -errno, logged: -EAGAIN (it is
 *         full), or why the owner's pipe cannot be opened. */
int hca_chan_write(uint32_t chan, const void *record, size_t size,
                   uint32_t *count);

/* Creates the pipe of a channel of this process; *fd is the end to read, and
 * is the program's to close. @return channel number, or -errno. */
int64_t hca_chan_create(unsigned dev, bool is_async, int *fd);
void hca_chan_destroy(uint32_t chan);

/* Removes the records that match from a channel of this process that nobody
 * has read yet. @return how many were removed. */
unsigned hca_chan_purge(uint32_t chan, size_t record_size,
                        bool (*match)(const void *record, void *arg),
                        void *arg);

#endif
