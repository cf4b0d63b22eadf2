/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Event channels: pipes. The program reads one end. The other is open for
 * reading and writing, so that a write never finds a pipe without a reader
 * (SIGPIPE) and its owner can take back unread records. A peer opens it through
 * /proc and keeps it open. Writers hold the channel's lock. System calls are
 * made directly: libc's are cancellation points, at which a thread would end
 * with that lock and its callers' locks held.
 */
#define _GNU_SOURCE
#include "hca_chan.h"
#include "softhca/base/hca_fd.h"
#include "softhca/base/hca_log.h"
#include "softhca/base/hca_sys.h"
#include "hca_proc.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Descriptors of other processes' channels, opened here: a small cache. */
#define HCA_CHAN_CACHE 64u

struct hca_chan_peer {
    uint32_t num;
    int fd;
};

static struct hca_chan_peer hca_chan_peers[HCA_CHAN_CACHE];
static pthread_mutex_t hca_chan_mutex = PTHREAD_MUTEX_INITIALIZER;

void hca_chan_forked(void)
{
    pthread_mutex_init(&hca_chan_mutex, NULL);
    for (unsigned i = 0; i < HCA_CHAN_CACHE; i++) {
        if (hca_chan_peers[i].num != 0) {
            hca_fd_close(hca_chan_peers[i].fd);
            hca_chan_peers[i].num = 0;
        }
    }
}

int64_t hca_chan_create(unsigned dev, bool is_async, int *fd)
{
    struct hca_chan *chan;
    char path[32];
    int pipe_fds[2], ret;

    if (pipe2(pipe_fds, O_CLOEXEC) < 0) {
        return -errno;
    }
    hca_fd_mark(pipe_fds[1]);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", pipe_fds[0]);
    ret = syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (ret < 0) {
        ret = -errno;
        goto err_close;
    }
    hca_fd_close(pipe_fds[1]);
    pipe_fds[1] = hca_fd_mark(ret);

    chan = hca_obj_alloc(HCA_KIND_CHAN, dev);
    if (chan == NULL) {
        ret = -ENOMEM;
        goto err_close;
    }
    chan->write_fd = pipe_fds[1];
    chan->is_async = is_async;
    *fd            = pipe_fds[0];
    return hca_obj_publish(HCA_KIND_CHAN, chan);

err_close:
    syscall(SYS_close, pipe_fds[0]);
    hca_fd_close(pipe_fds[1]);
    return ret;
}

void hca_chan_destroy(uint32_t num)
{
    struct hca_chan *chan = hca_obj_peek(HCA_KIND_CHAN, num);

    if ((chan != NULL) && hca_obj_hold_last(HCA_KIND_CHAN, chan, NULL)) {
        int write_fd = chan->write_fd;

        hca_obj_retire(HCA_KIND_CHAN, chan);
        hca_fd_close(write_fd);
    }
}

/* Returns the cached descriptor of a peer's channel. Called with
 * hca_chan_mutex. */
static int hca_chan_peer_fd(struct hca_chan *chan, uint32_t num)
{
    struct hca_chan_peer *peer = &hca_chan_peers[num % HCA_CHAN_CACHE];
    int fd;

    if (peer->num == num) {
        return peer->fd;
    }
    fd = hca_proc_open_fd(chan->obj.proc, chan->write_fd, O_RDWR);
    if (fd < 0) {
        return fd;
    }
    if (peer->num != 0) {
        hca_fd_close(peer->fd);
    }
    peer->num = num;
    peer->fd  = hca_fd_mark(fd);
    return fd;
}

/* Counts first: a writer that is killed here has probably written. */
static int hca_chan_put(int fd, const void *record, size_t size,
                        uint32_t *count)
{
    if (fd < 0) {
        return fd;
    }
    ++*count;
    if (syscall(SYS_write, fd, record, size) == (long)size) {
        return 0;
    }
    --*count;
    return -errno;
}

/* Writes a record into a locked channel, and unlocks it. */
static int hca_chan_write_locked(struct hca_chan *chan, const void *record,
                                 size_t size, uint32_t *count)
{
    uint32_t num = atomic_load(&chan->obj.num);
    int ret;

    if (chan->obj.proc == hca_self) {
        ret = hca_chan_put(chan->write_fd, record, size, count);
    } else {
        pthread_mutex_lock(&hca_chan_mutex);
        ret = hca_chan_put(hca_chan_peer_fd(chan, num), record, size, count);
        pthread_mutex_unlock(&hca_chan_mutex);
    }
    hca_obj_unlock(chan);
    if (ret != 0) {
        hca_warn("channel 0x%x: events cannot be delivered: %s", num,
                 (ret == -EAGAIN) ? "it is full" : strerror(-ret));
    }
    return ret;
}

int hca_chan_write(uint32_t num, const void *record, size_t size,
                   uint32_t *count)
{
    struct hca_chan *chan = hca_obj_lock(HCA_KIND_CHAN, num);

    return (chan == NULL) ? -ESRCH :
                            hca_chan_write_locked(chan, record, size, count);
}

int hca_chan_write_until(uint32_t num, const void *record, size_t size,
                         uint32_t *count, const struct timespec *deadline)
{
    struct hca_chan *chan = hca_obj_peek(HCA_KIND_CHAN, num);

    if (chan == NULL) {
        return -ESRCH;
    }
    if (!hca_obj_hold_until(HCA_KIND_CHAN, chan, deadline)) {
        hca_warn("channel 0x%x: an event is lost: a stopped process has it "
                 "locked",
                 num);
        return -ETIMEDOUT;
    }
    if (atomic_load(&chan->obj.num) != num) {
        hca_obj_unlock(chan);
        return -ESRCH;
    }
    return hca_chan_write_locked(chan, record, size, count);
}

int hca_chan_purge(uint32_t num, size_t record_size,
                   bool (*match)(const void *record, void *arg), void *arg,
                   uint32_t *count)
{
    struct hca_chan *chan = hca_obj_peek(HCA_KIND_CHAN, num);
    char record[64];
    int queued;

    if (chan == NULL) {
        return 0;
    }
    if (!hca_obj_hold_last(HCA_KIND_CHAN, chan, NULL)) {
        return -ETIMEDOUT;
    }
    if (hca_sys()->ioctl(chan->write_fd, FIONREAD, &queued) < 0) {
        queued = 0;
    }
    /* once around: records that stay go back to the end of the queue */
    for (unsigned i = queued / record_size; i > 0; i--) {
        if (syscall(SYS_read, chan->write_fd, record, record_size) !=
            (long)record_size) {
            break; /* the program's reader took it */
        }
        if (match(record, arg)) {
            --*count;
        } else if (syscall(SYS_write, chan->write_fd, record, record_size) <
                   0) {
            hca_warn("channel 0x%x: lost an event", num);
        }
    }
    hca_obj_unlock(chan);
    return 0;
}
