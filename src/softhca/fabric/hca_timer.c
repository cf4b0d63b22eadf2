/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Timers of the helper thread (hca_timer.h): a list sorted by time, which is
 * short, as only a queue that waits (for a retry, say) has one armed. One mutex
 * guards the list and hca_timer_running; it is never held in fn.
 */
#define _GNU_SOURCE
#include "hca_timer.h"
#include "softhca/base/hca_fd.h"
#include "softhca/base/hca_mutex.h"

#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t hca_timer_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t hca_timer_idle   = PTHREAD_COND_INITIALIZER;
static struct hca_timer *hca_timers;
static struct hca_timer *hca_timer_running;
static int hca_timer_fd = -1;

static void hca_timer_no_bracket(void)
{
}

static void (*hca_timer_enter)(void) = hca_timer_no_bracket;
static void (*hca_timer_leave)(void) = hca_timer_no_bracket;

void hca_timer_set_bracket(void (*enter)(void), void (*leave)(void))
{
    hca_timer_enter = enter;
    hca_timer_leave = leave;
}

int hca_timer_init(void)
{
    hca_timer_fd = hca_fd_mark(
        timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
    return (hca_timer_fd < 0) ? -errno : hca_timer_fd;
}

void hca_timer_cleanup(void)
{
    hca_fd_close(hca_timer_fd);
    hca_timer_fd = -1;
}

void hca_timer_forked(void)
{
    pthread_mutex_init(&hca_timer_mutex, NULL);
    pthread_cond_init(&hca_timer_idle, NULL); /* drops its waiters */
    hca_timers        = NULL;
    hca_timer_running = NULL;
}

uint64_t hca_time_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000ull + now.tv_nsec;
}

static void hca_timer_program(void)
{
    struct itimerspec when = {};

    if (hca_timers != NULL) {
        when.it_value.tv_sec  = hca_timers->due / 1000000000;
        when.it_value.tv_nsec = hca_timers->due % 1000000000;
    }
    timerfd_settime(hca_timer_fd, TFD_TIMER_ABSTIME, &when, NULL);
}

static void hca_timer_unlink(struct hca_timer *timer)
{
    struct hca_timer **link = &hca_timers;

    while ((*link != NULL) && (*link != timer)) {
        link = &(*link)->next;
    }
    if (*link != NULL) {
        *link = timer->next;
    }
    timer->due = 0;
}

void hca_timer_arm(struct hca_timer *timer, uint64_t due)
{
    struct hca_timer **link = &hca_timers;

    pthread_mutex_lock(&hca_timer_mutex);
    if (timer->due != 0) {
        hca_timer_unlink(timer);
    }
    while ((*link != NULL) && ((*link)->due <= due)) {
        link = &(*link)->next;
    }
    timer->due  = due;
    timer->next = *link;
    *link       = timer;
    if (hca_timers == timer) {
        hca_timer_program();
    }
    pthread_mutex_unlock(&hca_timer_mutex);
}

bool hca_timer_cancel(struct hca_timer *timer)
{
    struct timespec deadline = hca_mutex_deadline();
    bool is_over             = false;
    int cancels;

    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancels);
    pthread_mutex_lock(&hca_timer_mutex);
    for (;;) {
        if (timer->due != 0) {
            hca_timer_unlink(timer);
        }
        if ((hca_timer_running != timer) || is_over) {
            break;
        }
        /* it may arm itself again before it ends: look again */
        is_over = pthread_cond_clockwait(&hca_timer_idle, &hca_timer_mutex,
                                         CLOCK_MONOTONIC, &deadline) != 0;
    }
    is_over = (hca_timer_running == timer);
    pthread_mutex_unlock(&hca_timer_mutex);
    pthread_setcancelstate(cancels, NULL);
    return !is_over;
}

void hca_timer_expire(void)
{
    struct hca_timer *timer;
    uint64_t count;

    if (read(hca_timer_fd, &count, sizeof(count)) < 0) {
        return; /* set anew meanwhile */
    }
    pthread_mutex_lock(&hca_timer_mutex);
    while ((hca_timers != NULL) && (hca_timers->due <= hca_time_ns())) {
        timer             = hca_timers;
        hca_timers        = timer->next;
        timer->due        = 0;
        hca_timer_running = timer;
        pthread_mutex_unlock(&hca_timer_mutex);
        hca_timer_enter();
        timer->fn(timer);
        hca_timer_leave();
        pthread_mutex_lock(&hca_timer_mutex);
        hca_timer_running = NULL;
        pthread_cond_broadcast(&hca_timer_idle);
    }
    hca_timer_program();
    pthread_mutex_unlock(&hca_timer_mutex);
}
