/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The helper thread: see hca_helper.h. It waits in one epoll set for the
 * timerfd of hca_timer.c and for the watches of hca_proc_watch.c. It has all
 * signals blocked, but those of faults, so that the program's handlers do not
 * run in it.
 */
#define _GNU_SOURCE
#include "hca_helper.h"
#include "hca_proc.h"
#include "hca_timer.h"
#include "softhca/base/hca_fd.h"
#include "softhca/base/hca_log.h"
#include "softhca/base/hca_mutex.h"
#include "softhca/doorbell/hca_trap.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>

#define HCA_HELPER_STACK  (512ul << 10)
#define HCA_HELPER_STOP_S 10

/* Held over fork(): a child has all descriptors of the helper, or none. */
static pthread_mutex_t hca_helper_mutex =
    PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
static bool hca_helper_runs;
static int hca_helper_epoll = -1;

/* Held while the helper works: no fork() may happen meanwhile, as the child
 * would have the locks that the helper holds, here or in a library that
 * intercepts its calls (UCX's memory hooks), and no helper to release them. */
static pthread_mutex_t hca_helper_work =
    PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
static atomic_bool hca_helper_ends;

/* Tags in epoll data; others are slot << 32 | gen, of a peer. */
#define HCA_HELPER_TIMER 0ull
#define HCA_HELPER_ASKS  1ull

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
            hca_proc_watch_asked();
        } else {
            hca_proc_watch_died(event.data.u64 >> 32, (uint32_t)event.data.u64);
        }
        pthread_mutex_unlock(&hca_helper_work);
    }
    pthread_mutex_unlock(&hca_helper_work);
    return NULL;
}

/* Starts the thread with the program's signals blocked; those of faults stay
 * unblocked, for guarded copies. The thread runs when this returns:
 * AddressSanitizer allocates in a thread that starts, and a child forked
 * meanwhile would keep its allocator's lock. */
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
    hca_trap_pthread_sigmask(SIG_SETMASK, &all, &old);
    pthread_barrier_init(&started, NULL, 2);
    ret = pthread_create(&thread, &attr, hca_helper_main, &started);
    if (ret == 0) {
        pthread_setname_np(thread, "softhca");
        pthread_barrier_wait(&started);
    }
    pthread_barrier_destroy(&started);
    hca_trap_pthread_sigmask(SIG_SETMASK, &old, NULL);
    pthread_attr_destroy(&attr);
    return -ret;
}

/* Adds a descriptor to those that the helper waits for.
 * @param fd  a descriptor, or -errno, which is returned */
static int hca_helper_add(int fd, uint64_t tag)
{
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = tag};

    if (fd < 0) {
        return fd;
    }
    return (epoll_ctl(hca_helper_epoll, EPOLL_CTL_ADD, fd, &event) < 0) ?
               -errno :
               0;
}

static void hca_helper_close(void)
{
    hca_fd_close(hca_helper_epoll);
    hca_helper_epoll = -1;
    hca_timer_cleanup();
    hca_proc_watch_cleanup();
}

static int hca_helper_init(void)
{
    int asks_fd, ret;

    hca_helper_epoll = hca_fd_mark(epoll_create1(EPOLL_CLOEXEC));
    if (hca_helper_epoll < 0) {
        return -errno;
    }
    ret = hca_helper_add(hca_timer_init(), HCA_HELPER_TIMER);
    if (ret != 0) {
        goto err_close;
    }
    asks_fd = hca_proc_watch_init(hca_helper_epoll);
    ret     = hca_helper_add(asks_fd, HCA_HELPER_ASKS);
    if (ret == 0) {
        ret = hca_helper_spawn();
    }
    if (ret != 0) {
        goto err_close;
    }
    hca_fabric->procs[hca_self].asks_fd = asks_fd;
    return 0;

err_close:
    hca_helper_close();
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
            hca_error("failed to start a helper thread: %s; raise ulimit -n "
                      "or -u",
                      strerror(-ret));
        }
        hca_helper_runs = (ret == 0);
    }
    pthread_mutex_unlock(&hca_helper_mutex);
    return ret;
}

/* Does not wait if this thread has the mutex: it is the helper, or in fork().
 * The wait has a limit, as a thread that runs a handler of a signal may hold a
 * lock that the helper waits for. */
void hca_helper_stop(void)
{
    struct timespec until;
    bool is_locked;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += HCA_HELPER_STOP_S;
    is_locked       = pthread_mutex_timedlock(&hca_helper_work, &until) == 0;
    hca_helper_ends = true;
    if (is_locked) {
        pthread_mutex_unlock(&hca_helper_work);
    }
}

/* After the deadline fork() goes on without the mutexes: a helper that waits so
 * long for a lock of the segment holds none that the child gets. */
void hca_helper_fork_begin(void)
{
    struct timespec deadline = hca_mutex_deadline();

    pthread_mutex_clocklock(&hca_helper_mutex, CLOCK_MONOTONIC, &deadline);
    pthread_mutex_clocklock(&hca_helper_work, CLOCK_MONOTONIC, &deadline);
    hca_proc_watch_fork_begin(&deadline);
}

void hca_helper_fork_end(void)
{
    hca_proc_watch_fork_end();
    pthread_mutex_unlock(&hca_helper_work); /* fails without the mutex */
    pthread_mutex_unlock(&hca_helper_mutex);
}

void hca_helper_forked(void)
{
    hca_proc_watch_forked();
    if (hca_helper_epoll >= 0) { /* it runs, or was about to start */
        hca_helper_close();
        hca_timer_forked();
    }
    hca_helper_runs  = false;
    hca_helper_work  = (pthread_mutex_t)PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
    hca_helper_mutex = hca_helper_work;
}
