/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The peers of this process, and its helper thread. The helper waits in one
 * epoll set for the pidfd of every peer that was asked about, for the timerfd
 * of hca_timer.c, and for a pipe into which peers write their slots that want
 * to be watched here. It has all signals blocked: no handler of the program
 * ever runs in it.
 */
#define _GNU_SOURCE
#include "hca_proc.h"
#include "softhca/base/hca_fd.h"
#include "softhca/base/hca_log.h"
#include "softhca/base/hca_valgrind.h"
#include "hca_fabric.h"
#include "hca_timer.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define HCA_HELPER_STACK  (512ul << 10)
#define HCA_HELPER_STOP_S 10

/* What this process knows of a slot; written under hca_peers_mutex. */
struct hca_peer {
    _Atomic uint32_t gen; /* the life of the slot it speaks of; 0 none */
    uint32_t         warned; /* the life that could not be watched */
    int              pidfd;
};

static struct hca_peer hca_peers[HCA_MAX_PROCS];
static pthread_mutex_t hca_peers_mutex = PTHREAD_MUTEX_INITIALIZER;

static pthread_mutex_t hca_helper_mutex = PTHREAD_MUTEX_INITIALIZER;
static bool hca_helper_runs;
static int hca_helper_epoll = -1;

/* Held while the helper does something: no fork() may happen meanwhile, as the
 * child would have the locks that the helper holds, here or in a library that
 * intercepts its calls (UCX's memory hooks), and no helper to release them. */
static pthread_mutex_t hca_helper_work = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
static atomic_bool hca_helper_ends;

/* Tags in epoll data; others are slot << 32 | gen. */
#define HCA_HELPER_TIMER 0ull
#define HCA_HELPER_ASKS  1ull

/* Who wants to be watched here: both ends, so that it has no end. */
static int hca_asks[2] = {-1, -1};

/* Lives of other slots whose helper was told to watch this process. */
static _Atomic uint32_t hca_asked[HCA_MAX_PROCS];

/* For when the program has used all descriptors up: whether a peer is stopped
 * has to be found out even then. What was opened first is kept for that. */
static _Atomic int hca_spare_fd = -1;

static int hca_proc_open_stat(const char *path)
{
    int fd = syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
    int spare;

    if ((fd >= 0) || (errno != EMFILE)) {
        return fd;
    }
    spare = atomic_exchange(&hca_spare_fd, -1);
    if (spare < 0) {
        return -1;
    }
    hca_fd_close(spare);
    return syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
}

static void hca_proc_close_stat(int fd)
{
    int none = -1;

    hca_fd_keep(fd);
    if (!atomic_compare_exchange_strong(&hca_spare_fd, &none, fd)) {
        hca_fd_close(fd);
    }
}

/* Without stdio, which allocates, past any hook, and no cancellation point. */
static int hca_proc_read(pid_t pid, const char *name, char *text, size_t size)
{
    char path[32];
    ssize_t got;
    int fd, ret;

    snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
    fd = hca_proc_open_stat(path);
    if (fd < 0) {
        return (errno == ENOENT) ? -ESRCH : -errno;
    }
    got = syscall(SYS_read, fd, text, size - 1);
    ret = (got < 0) ? -errno : 0;
    hca_proc_close_stat(fd);
    text[(got < 0) ? 0 : got] = '\0';
    return ret;
}

int hca_proc_start_time(pid_t pid, uint64_t *start)
{
    unsigned long long ticks;
    char stat[512];
    const char *p;
    int ret = hca_proc_read(pid, "stat", stat, sizeof(stat));

    if (ret != 0) {
        return ret;
    }
    /* the name, in parentheses, may hold anything: fields count from ')' */
    p = strrchr(stat, ')');
    if ((p == NULL) ||
        (sscanf(p, ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d "
                   "%*d %*d %*d %*d %*d %llu", &ticks) != 1)) {
        return -EPROTO;
    }
    *start = ticks;
    return 0;
}

/* By the function of the kernel that it sleeps in, where the kernel tells: in a
 * cgroup of version 1, of version 2 (do_freezer_trap() is part of get_signal() or
 * not), which has no other place to sleep. */
static bool hca_proc_is_frozen(pid_t tid)
{
    static const char *const places[] = {
        "__refrigerator", "get_signal", "do_freezer_trap"
    };
    char wchan[64];

    if (hca_proc_read(tid, "wchan", wchan, sizeof(wchan)) != 0) {
        return false;
    }
    for (unsigned i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        if (!strcmp(wchan, places[i])) {
            return true;
        }
    }
    return false;
}

bool hca_proc_is_stopped(pid_t tid)
{
    char stat[512];
    const char *p = (hca_proc_read(tid, "stat", stat, sizeof(stat)) == 0) ?
                    strrchr(stat, ')') : NULL;

    /* as hca_proc_start_time(): the state is the next field */
    return (p != NULL) && (!strncmp(p, ") T", 3) || !strncmp(p, ") t", 3) ||
                           hca_proc_is_frozen(tid));
}

int hca_proc_check(const struct hca_proc *proc)
{
    uint64_t start;
    int ret = hca_proc_start_time(proc->pid, &start);

    return (ret != 0) ? ret : (start == proc->start_time) ? 0 : -ESRCH;
}

static void hca_helper_peer_died(unsigned slot, uint32_t gen)
{
    struct hca_peer *peer = &hca_peers[slot];

    pthread_mutex_lock(&hca_peers_mutex);
    if (atomic_load(&peer->gen) == gen) {
        hca_fd_close(peer->pidfd); /* also leaves the epoll set */
        atomic_store(&peer->gen, 0);
    }
    pthread_mutex_unlock(&hca_peers_mutex);

    hca_fabric_reap(slot, gen);
}

static void hca_helper_asked(void)
{
    uint32_t slot;

    if ((syscall(SYS_read, hca_asks[0], &slot, sizeof(slot)) ==
         sizeof(slot)) && (slot < HCA_MAX_PROCS)) {
        hca_proc_alive(slot);
    }
}

static void *hca_helper_main(void *started)
{
    struct epoll_event event;

    pthread_barrier_wait(started);
    for (;;) {
        if (epoll_wait(hca_helper_epoll, &event, 1, -1) < 1) {
            continue; /* EINTR: a debugger */
        }
        pthread_mutex_lock(&hca_helper_work);
        if (hca_helper_ends) {
            break;
        }
        if (event.data.u64 == HCA_HELPER_TIMER) {
            hca_timer_expire();
        } else if (event.data.u64 == HCA_HELPER_ASKS) {
            hca_helper_asked();
        } else {
            hca_helper_peer_died(event.data.u64 >> 32,
                                 (uint32_t)event.data.u64);
        }
        pthread_mutex_unlock(&hca_helper_work);
    }
    pthread_mutex_unlock(&hca_helper_work);
    return NULL;
}

/* The thread runs when it returns: AddressSanitizer allocates in a thread that
 * starts, and a child that is forked meanwhile keeps its allocator's lock. */
static int hca_helper_spawn(void)
{
    sigset_t all, old;
    pthread_attr_t attr;
    pthread_barrier_t started;
    pthread_t thread;
    int ret;

    sigfillset(&all);
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attr, HCA_HELPER_STACK);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    pthread_barrier_init(&started, NULL, 2);
    ret = pthread_create(&thread, &attr, hca_helper_main, &started);
    if (ret == 0) {
        pthread_setname_np(thread, "softhca");
        pthread_barrier_wait(&started);
    }
    pthread_barrier_destroy(&started);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    pthread_attr_destroy(&attr);
    return -ret;
}

static int hca_helper_add(int fd, uint64_t tag)
{
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = tag};

    return (epoll_ctl(hca_helper_epoll, EPOLL_CTL_ADD, fd, &event) < 0) ?
           -errno : 0;
}

static int hca_helper_listen(void)
{
    if (pipe2(hca_asks, O_CLOEXEC | O_NONBLOCK) < 0) {
        return -errno;
    }
    hca_asks[0] = hca_fd_keep(hca_asks[0]);
    hca_asks[1] = hca_fd_keep(hca_asks[1]);
    return hca_helper_add(hca_asks[0], HCA_HELPER_ASKS);
}

static void hca_helper_close(void)
{
    hca_fd_close(hca_helper_epoll);
    hca_timer_cleanup();
    for (unsigned i = 0; i < 2; i++) {
        hca_fd_close(hca_asks[i]);
        hca_asks[i] = -1;
    }
}

static int hca_helper_init(void)
{
    int ret;

    hca_helper_epoll = hca_fd_keep(epoll_create1(EPOLL_CLOEXEC));
    if (hca_helper_epoll < 0) {
        return -errno;
    }
    ret = hca_timer_init();
    if (ret >= 0) {
        ret = hca_helper_add(ret, HCA_HELPER_TIMER);
    }
    if (ret == 0) {
        ret = hca_helper_listen();
    }
    if (ret == 0) {
        ret = hca_helper_spawn();
    }
    if (ret == 0) {
        hca_fabric->procs[hca_self].asks_fd = hca_asks[0];
    } else {
        hca_helper_close();
    }
    return ret;
}

int hca_helper_start(void)
{
    int ret = 0;

    pthread_mutex_lock(&hca_helper_mutex);
    if (!hca_helper_runs) {
        hca_helper_ends = false;
        ret             = hca_helper_init();
        if (ret != 0) {
            hca_error("no helper thread: %s; raise ulimit -n or -u",
                      strerror(-ret));
        }
        hca_helper_runs = (ret == 0);
    }
    pthread_mutex_unlock(&hca_helper_mutex);
    return ret;
}

/* Not if this is the helper, or in fork(). Who is ended by a signal may hold what
 * the helper waits for, thus not for ever. */
void hca_helper_stop(void)
{
    struct timespec until;
    bool is_locked;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec   += HCA_HELPER_STOP_S;
    is_locked       = pthread_mutex_timedlock(&hca_helper_work, &until) == 0;
    hca_helper_ends = true;
    if (is_locked) {
        pthread_mutex_unlock(&hca_helper_work);
    }
}

void hca_proc_fork_begin(void)
{
    pthread_mutex_lock(&hca_helper_work);
}

void hca_proc_fork_end(void)
{
    pthread_mutex_unlock(&hca_helper_work);
}

void hca_proc_forked(void)
{
    for (unsigned i = 0; i < HCA_MAX_PROCS; i++) {
        if (atomic_load(&hca_peers[i].gen) != 0) {
            hca_fd_close(hca_peers[i].pidfd);
            atomic_store(&hca_peers[i].gen, 0);
        }
        atomic_store(&hca_asked[i], 0);
    }
    if (hca_helper_runs) {
        hca_helper_close();
        hca_timer_forked();
    }
    hca_helper_runs = false;
    hca_helper_work = (pthread_mutex_t)PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
    pthread_mutex_init(&hca_helper_mutex, NULL);
    pthread_mutex_init(&hca_peers_mutex, NULL);
}

/* A descriptor that has an event when the process is gone. valgrind knows no
 * pidfd_open(): the pipe of hca_helper_listen(), which hangs up with the last
 * end that can write. */
static int hca_peer_open(const struct hca_proc *proc)
{
    char path[48];
    int fd;

    if (!hca_valgrind_active()) {
        /* Debian 12's kernel headers know it by number only */
        fd = syscall(SYS_pidfd_open, proc->pid, 0);
    } else {
        snprintf(path, sizeof(path), "/proc/%d/fd/%d", proc->pid,
                 proc->asks_fd);
        fd = syscall(SYS_openat, AT_FDCWD, path,
                     O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    }
    return (fd < 0) ? -errno : hca_fd_keep(fd);
}

/* Opens and watches the pidfd of a slot's process. Under hca_peers_mutex.
 * @return 0, -ESRCH (it is dead), or why that cannot be told or watched. */
static int hca_peer_watch(unsigned slot, uint32_t gen)
{
    struct hca_proc *proc    = &hca_fabric->procs[slot];
    struct hca_peer *peer    = &hca_peers[slot];
    struct epoll_event event = {.events   = hca_valgrind_active() ? 0 :
                                                                    EPOLLIN,
                                .data.u64 = ((uint64_t)slot << 32) | gen};
    int pidfd, ret;

    if (atomic_load(&peer->gen) != 0) {
        hca_fd_close(peer->pidfd); /* of an earlier life that left in order */
        atomic_store(&peer->gen, 0);
    }

    pidfd = hca_peer_open(proc);
    if (pidfd < 0) { /* also: the pid is that of a stranger's thread by now */
        return (hca_proc_check(proc) == -ESRCH) ? -ESRCH : pidfd;
    }
    ret = hca_proc_check(proc); /* else a stranger was given the pid */
    if ((ret == 0) &&
        (epoll_ctl(hca_helper_epoll, EPOLL_CTL_ADD, pidfd, &event) < 0)) {
        ret = -errno;
    }
    if (ret != 0) {
        hca_fd_close(pidfd);
        return ret;
    }
    peer->pidfd = pidfd;
    atomic_store(&peer->gen, gen);
    return 0;
}

/* Said once in the life of the peer: each message asks again. */
static void hca_peer_warn(unsigned slot, uint32_t gen, int error)
{
    struct hca_peer *peer = &hca_peers[slot];

    if (peer->warned != gen) {
        peer->warned = gen;
        hca_warn("process %d: its end will go unnoticed: %s",
                 hca_fabric->procs[slot].pid, strerror(error));
    }
}

/* It counts as alive as long as nothing says that it is dead. */
static bool hca_proc_ask(unsigned slot, uint32_t gen)
{
    int ret = 0;

    pthread_mutex_lock(&hca_peers_mutex);
    if (atomic_load(&hca_peers[slot].gen) != gen) {
        ret = hca_peer_watch(slot, gen);
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

bool hca_proc_alive(unsigned slot)
{
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
    return (atomic_load_explicit(&hca_peers[slot].gen,
                                 memory_order_relaxed) == gen) ||
           hca_proc_ask(slot, gen);
}

bool hca_proc_lives(unsigned slot)
{
    const struct hca_proc *proc = &hca_fabric->procs[slot];

    return (atomic_load(&proc->state) == HCA_PROC_ALIVE) &&
           (hca_proc_check(proc) != -ESRCH);
}

static int hca_proc_write_ask(unsigned slot)
{
    uint32_t self = hca_self;
    int fd        = hca_proc_open_fd(slot, hca_fabric->procs[slot].asks_fd);
    int ret       = (fd < 0) ? fd : 0;

    if (fd >= 0) {
        ret = (syscall(SYS_write, fd, &self, sizeof(self)) < 0) ? -errno : 0;
        syscall(SYS_close, fd);
    }
    return ret;
}

void hca_proc_have_watched(unsigned slot)
{
    const struct hca_proc *proc = &hca_fabric->procs[slot];
    uint32_t gen                = proc->gen;
    int ret;

    if ((slot == hca_self) || (proc->asks_fd == 0) ||
        (atomic_load(&hca_asked[slot]) == gen)) {
        return;
    }
    ret = hca_proc_write_ask(slot);
    if ((ret != 0) && (ret != -ESRCH)) {
        hca_warn("process %d: cannot be asked to notice the end of this one: "
                 "%s", proc->pid, strerror(-ret));
    }
    atomic_store(&hca_asked[slot], gen);
}

int hca_proc_open_fd(unsigned slot, int fd)
{
    const struct hca_proc *proc = &hca_fabric->procs[slot];
    char path[48];
    int own, ret;

    snprintf(path, sizeof(path), "/proc/%d/fd/%d", proc->pid, fd);
    own = syscall(SYS_openat, AT_FDCWD, path,
                  O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (own < 0) {
        return -errno;
    }
    ret = hca_proc_check(proc);
    if (ret != 0) {
        syscall(SYS_close, own); /* may be a stranger's */
        return ret;
    }
    return own;
}
