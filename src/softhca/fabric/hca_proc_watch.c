/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Watching peers. A process with a helper (hca_helper.c) has a pipe, for two
 * purposes: a peer writes its slot into it, to ask to be watched here; and a
 * peer that watches this process has a read end of it in its helper's epoll
 * set, which hangs up when this process ends. A process without a pipe, as the
 * program has closed it, is watched by a pidfd. hca_peers_mutex guards the
 * table of peers.
 */
#define _GNU_SOURCE
#include "hca_proc.h"
#include "hca_fabric.h"
#include "hca_share_map.h"
#include "softhca/base/hca_fd.h"
#include "softhca/base/hca_log.h"
#include "softhca/base/hca_sys.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Limits of the wait for a process that has closed its pipe and has no stack:
 * exec() has not set the new one yet, or some of its threads have not ended */
#define HCA_PEER_CHECKS   1000u
#define HCA_PEER_PAUSE_NS 1000000l

/* Knowledge of a slot; written under hca_peers_mutex. */
struct hca_peer {
    _Atomic uint32_t gen; /* life of the slot that is watched; 0 none */
    uint32_t warned;      /* life that could not be watched */
    int fd;               /* its pipe or a pidfd */
    bool is_pidfd;
};

static struct hca_peer hca_peers[HCA_MAX_PROCS];
static pthread_mutex_t hca_peers_mutex =
    PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;

static int hca_watch_epoll = -1; /* the helper's; -1: it does not run */

/* The pipe for peers: both ends, so that it has no end of file. */
static int hca_asks[2] = {-1, -1};

/* Lives of other slots whose helper was told to watch this process. */
static _Atomic uint32_t hca_asked[HCA_MAX_PROCS];

int hca_proc_watch_init(int epoll)
{
    struct stat st;

    if ((pipe2(hca_asks, O_CLOEXEC | O_NONBLOCK) < 0) ||
        (hca_sys()->fstat(hca_asks[0], &st) < 0)) {
        return -errno;
    }
    hca_fabric->procs[hca_self].asks_inode = st.st_ino;
    hca_asks[0]                            = hca_fd_mark(hca_asks[0]);
    hca_asks[1]                            = hca_fd_mark(hca_asks[1]);
    hca_watch_epoll                        = epoll;
    return hca_asks[0];
}

void hca_proc_watch_cleanup(void)
{
    for (unsigned i = 0; i < 2; i++) {
        hca_fd_close(hca_asks[i]);
        hca_asks[i] = -1;
    }
    hca_watch_epoll = -1;
}

void hca_proc_watch_asked(void)
{
    uint32_t slot;

    if ((syscall(SYS_read, hca_asks[0], &slot, sizeof(slot)) == sizeof(slot)) &&
        (slot < HCA_MAX_PROCS)) {
        hca_proc_alive(slot);
    }
}

void hca_proc_watch_fork_begin(const struct timespec *deadline)
{
    pthread_mutex_clocklock(&hca_peers_mutex, CLOCK_MONOTONIC, deadline);
}

void hca_proc_watch_fork_end(void)
{
    pthread_mutex_unlock(&hca_peers_mutex); /* fails without the mutex */
}

void hca_proc_watch_forked(void)
{
    for (unsigned i = 0; i < HCA_MAX_PROCS; i++) {
        if (atomic_load(&hca_peers[i].gen) != 0) {
            hca_fd_close(hca_peers[i].fd);
            atomic_store(&hca_peers[i].gen, 0);
        }
        atomic_store(&hca_asked[i], 0);
    }
    hca_peers_mutex = (pthread_mutex_t)PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
}

/* Opens the pipe of a process, as hca_proc_open_fd() does. */
static int hca_peer_open_pipe(unsigned slot, int asks_fd, int access)
{
    int fd = hca_proc_open_fd(slot, asks_fd, access);
    struct stat st;

    if (fd < 0) {
        return fd;
    }
    if ((hca_sys()->fstat(fd, &st) != 0) ||
        (st.st_ino != hca_fabric->procs[slot].asks_inode)) {
        syscall(SYS_close, fd);
        return -ENOENT; /* the number is another file's */
    }
    return fd;
}

/* Does hca_proc_check() for a process without its pipe. If it has no stack, as
 * it is about to end or runs exec(), waits for the outcome. */
static int hca_peer_check(const struct hca_proc *proc)
{
    const struct timespec pause = {.tv_nsec = HCA_PEER_PAUSE_NS};
    struct hca_task task;
    int ret = hca_proc_check(proc);

    for (unsigned i = 0;
         (i < HCA_PEER_CHECKS) && (ret == 0) && (proc->stack != 0) &&
         (hca_task_stat(proc->pid, &task) == 0) && (task.stack == 0);
         i++) {
        syscall(SYS_nanosleep, &pause, NULL); /* no cancellation point */
        ret = hca_proc_check(proc);
    }
    return ret;
}

/* Watches the process of a slot, under hca_peers_mutex: by its pipe, which
 * hangs up when the last writable end is closed, also by exec(); by a pidfd if
 * it has no pipe.
 * @param asks_fd  its pipe; 0: none
 * @return 0, -ESRCH (it is dead), or -errno: its state cannot be found out, or
 *         it cannot be watched. */
static int hca_peer_watch(unsigned slot, uint32_t gen, int asks_fd)
{
    struct hca_proc *proc    = &hca_fabric->procs[slot];
    struct hca_peer *peer    = &hca_peers[slot];
    struct epoll_event event = {.data.u64 = ((uint64_t)slot << 32) | gen};
    int fd                   = -ENOENT, ret;

    if (atomic_load(&peer->gen) != 0) {
        hca_fd_close(peer->fd); /* of an earlier life that left in order */
        atomic_store(&peer->gen, 0);
    }

    if (asks_fd != 0) {
        fd = hca_peer_open_pipe(slot, asks_fd, O_RDONLY);
    }
    peer->is_pidfd = (fd < 0);
    if (peer->is_pidfd) { /* Debian 12's kernel headers lack its name */
        fd           = syscall(SYS_pidfd_open, proc->pid, 0);
        fd           = (fd < 0) ? -errno : fd;
        event.events = EPOLLIN;
    }
    if (fd < 0) { /* or the pid is another process' thread */
        return (hca_proc_check(proc) == -ESRCH) ? -ESRCH : fd;
    }
    hca_fd_mark(fd);
    ret = peer->is_pidfd ? hca_peer_check(proc) : 0; /* the pid was reused? */
    if ((ret == 0) &&
        (epoll_ctl(hca_watch_epoll, EPOLL_CTL_ADD, fd, &event) < 0)) {
        ret = -errno;
    }
    if (ret != 0) {
        hca_fd_close(fd);
        return ret;
    }
    peer->fd = fd;
    atomic_store(&peer->gen, gen);
    return 0;
}

/* Warns once in the life of the peer, as each message asks again. */
static void hca_peer_warn(unsigned slot, uint32_t gen, int error)
{
    struct hca_peer *peer = &hca_peers[slot];

    if (peer->warned != gen) {
        peer->warned = gen;
        hca_warn("process %d: cannot be watched, so its end will not be "
                 "noticed: %s",
                 hca_fabric->procs[slot].pid, strerror(error));
    }
}

void hca_proc_watch_died(unsigned slot, uint32_t gen)
{
    struct hca_peer *peer = &hca_peers[slot];
    int ret               = -ESRCH;

    pthread_mutex_lock(&hca_peers_mutex);
    if (atomic_load(&peer->gen) == gen) {
        hca_fd_close(peer->fd); /* also leaves the epoll set */
        atomic_store(&peer->gen, 0);
        if (!peer->is_pidfd) {
            ret = hca_peer_check(&hca_fabric->procs[slot]);
        }
        if (ret != -ESRCH) {
            ret = hca_peer_watch(slot, gen, 0);
        }
    }
    if ((ret != 0) && (ret != -ESRCH)) {
        hca_peer_warn(slot, gen, -ret);
    }
    pthread_mutex_unlock(&hca_peers_mutex);

    if (ret == -ESRCH) {
        hca_fabric_reap(slot, gen);
        hca_share_map_collect();
    }
}

/* Starts watching a peer. @return false if it is dead, and reaped now. */
static bool hca_proc_ask(unsigned slot, uint32_t gen)
{
    int ret = 0;

    pthread_mutex_lock(&hca_peers_mutex);
    if (atomic_load(&hca_peers[slot].gen) != gen) {
        ret = hca_peer_watch(slot, gen,
                             atomic_load(&hca_fabric->procs[slot].asks_fd));
    }
    if ((ret != 0) && (ret != -ESRCH)) {
        hca_peer_warn(slot, gen, -ret);
    }
    pthread_mutex_unlock(&hca_peers_mutex);
    if (ret == -ESRCH) {
        hca_fabric_reap(slot, gen);
    }
    return ret != -ESRCH;
}

/* Returns the slot that an object names. Any process may have written it: none
 * is beyond the tables of this file. */
static unsigned hca_proc_slot(unsigned slot)
{
    return slot % HCA_MAX_PROCS;
}

bool hca_proc_alive(unsigned owner)
{
    unsigned slot         = hca_proc_slot(owner);
    struct hca_proc *proc = &hca_fabric->procs[slot];
    uint32_t gen;

    if (slot == hca_self) {
        return true;
    }
    if (atomic_load_explicit(&proc->state, memory_order_relaxed) !=
        HCA_PROC_ALIVE) {
        return false;
    }
    gen = proc->gen;
    return (atomic_load_explicit(&hca_peers[slot].gen, memory_order_relaxed) ==
            gen) ||
           hca_proc_ask(slot, gen);
}

static int hca_proc_write_ask(unsigned slot)
{
    const struct hca_proc *proc = &hca_fabric->procs[slot];
    uint32_t self               = hca_self;
    int fd, ret;

    pthread_mutex_lock(&hca_peers_mutex); /* no child gets a writable end */
    fd  = hca_peer_open_pipe(slot, proc->asks_fd, O_RDWR);
    ret = (fd < 0) ? fd : 0;
    if (fd >= 0) {
        ret = (syscall(SYS_write, fd, &self, sizeof(self)) < 0) ? -errno : 0;
        syscall(SYS_close, fd);
    }
    pthread_mutex_unlock(&hca_peers_mutex);
    return ((ret != 0) && (hca_proc_check(proc) == -ESRCH)) ? -ESRCH : ret;
}

void hca_proc_have_watched(unsigned owner)
{
    unsigned slot               = hca_proc_slot(owner);
    const struct hca_proc *proc = &hca_fabric->procs[slot];
    uint32_t gen                = proc->gen;
    int ret;

    if ((slot == hca_self) || (proc->asks_fd == 0) ||
        (atomic_load(&hca_asked[slot]) == gen)) {
        return;
    }
    ret = hca_proc_write_ask(slot);
    if ((ret != 0) && (ret != -ESRCH)) {
        hca_warn("process %d: cannot be asked to watch for the end of this "
                 "one: %s",
                 proc->pid, strerror(-ret));
    }
    atomic_store(&hca_asked[slot], gen);
}
