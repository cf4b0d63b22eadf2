/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Event channels: pipes that any process writes event records to, and the
 * owner's program reads.
 */
#ifndef HCA_CHAN_H
#define HCA_CHAN_H

#include "hca_obj.h"

struct hca_chan {
    struct hca_obj obj;
    int write_fd;  /* descriptor of the owner, for reading and writing */
    bool is_async; /* for async events of the device, not for completions */
};

/* Writes one event record into a channel, wholly or not at all. Takes the lock
 * of the channel.
 * @param count  raised by one if the record is written
 * @return 0; -ESRCH if the channel is gone;
 *         -errno, logged: -EAGAIN (it is full), or the error of opening the
 *         owner's pipe. */
int hca_chan_write(uint32_t chan, const void *record, size_t size,
                   uint32_t *count);

/* hca_chan_write() until @deadline (hca_mutex_deadline()) at most.
 * @return also -ETIMEDOUT, logged. */
int hca_chan_write_until(uint32_t chan, const void *record, size_t size,
                         uint32_t *count, const struct timespec *deadline);

/* Creates a channel of this process; *fd is the end to read, which the program
 * closes; hca_chan_destroy() frees the rest. @return channel number, or
 * -errno. */
int64_t hca_chan_create(unsigned dev, bool is_async, int *fd);
void hca_chan_destroy(uint32_t chan);

/* Removes the unread records that match from a channel of this process.
 * @param record_size  of each, at most 64 bytes
 * @param match        called under the lock of the channel
 * @param count        lowered by one for each
 * @return 0; -ETIMEDOUT, as hca_obj_hold_last(): none is removed. */
int hca_chan_purge(uint32_t chan, size_t record_size,
                   bool (*match)(const void *record, void *arg), void *arg,
                   uint32_t *count);

/* Closes the parent's descriptors of other processes' channels in a forked
 * child. */
void hca_chan_forked(void);

#endif
