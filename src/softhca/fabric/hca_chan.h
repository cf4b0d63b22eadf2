/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Event channels: objects that any process writes to and the owner's program
 * reads.
 */
#ifndef HCA_CHAN_H
#define HCA_CHAN_H

#include "hca_obj.h"

/* A pipe of the owner. Any process that has an event writes to it. */
struct hca_chan {
    struct hca_obj obj;
    int write_fd;  /* the owner's */
    bool is_async; /* of the device's events, not of completions */
};

/* Writes one event record into a channel, wholly or not at all. The owner reads
 * it from its descriptor.
 * @param count  raised by one if the record is written
 * @return 0, -ESRCH (the channel is gone), or -errno, logged: -EAGAIN (it is
 *         full), or why the owner's pipe cannot be opened. */
int hca_chan_write(uint32_t chan, const void *record, size_t size,
                   uint32_t *count);

/* Creates the pipe of a channel of this process; *fd is the end to read, which
 * the program closes. @return channel number, or -errno. */
int64_t hca_chan_create(unsigned dev, bool is_async, int *fd);
void hca_chan_destroy(uint32_t chan);

/* Removes the unread records that match from a channel of this process.
 * @return how many were removed. */
unsigned hca_chan_purge(uint32_t chan, size_t record_size,
                        bool (*match)(const void *record, void *arg),
                        void *arg);

/* Forgets opened channels of other processes in a forked child: they are its
 * parent's. */
void hca_chan_forked(void);

#endif
