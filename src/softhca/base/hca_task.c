/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/* Reads the state of threads from /proc: see hca_task.h. No lock. */
#define _GNU_SOURCE
#include "hca_task.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define HCA_TASK_TID_MASK 0x3fffffffu

__thread uint64_t hca_task_id;

/* Reads by system calls: stdio allocates, libc's functions are interposed, and
 * read() is a cancellation point. */
static int hca_task_read_stat(pid_t tid, char *text, size_t size)
{
    char path[32];
    ssize_t got;
    int fd, ret;

    snprintf(path, sizeof(path), "/proc/%d/stat", tid);
    fd = syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return (errno == ENOENT) ? -ESRCH : -errno;
    }
    got = syscall(SYS_read, fd, text, size - 1);
    ret = (got < 0) ? -errno : 0;
    syscall(SYS_close, fd);
    text[(got < 0) ? 0 : got] = '\0';
    return ret;
}

int hca_task_stat(pid_t tid, struct hca_task *task)
{
    unsigned long long start, stack;
    char stat[512];
    const char *p;
    int ret = hca_task_read_stat(tid, stat, sizeof(stat));

    if (ret != 0) {
        return ret;
    }
    /* the name, in parentheses, may contain spaces and ')': skip to the last */
    p = strrchr(stat, ')');
    if ((p == NULL) ||
        (sscanf(p,
                ") %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d "
                "%*d %*d %*d %u %*d %llu %*u %*d %*u %*u %*u %llu",
                &task->state, &task->threads, &start, &stack) != 4)) {
        return -EPROTO;
    }
    task->start = start;
    task->stack = stack;
    return 0;
}

/* Returns the upper half of a hca_task_id. */
static uint32_t hca_task_mark(const struct hca_task *task)
{
    uint64_t stack = task->stack >> 4;

    return ((uint32_t)(stack ^ (stack >> 16)) << 16) | (uint16_t)task->start;
}

/* Returns true if two parts of marks are known, and differ. */
static bool hca_task_differs(uint16_t a, uint16_t b)
{
    return (a != 0) && (b != 0) && (a != b);
}

uint64_t hca_task_identify(void)
{
    pid_t tid            = syscall(SYS_gettid);
    int err              = errno;
    struct hca_task task = {};

    if (hca_task_stat(tid, &task) != 0) {
        task = (struct hca_task){}; /* identify it by its number alone */
    }
    hca_task_id = ((uint64_t)hca_task_mark(&task) << 32) | (uint32_t)tid;
    errno       = err;
    return hca_task_id;
}

bool hca_task_is_dead(uint64_t id)
{
    uint32_t before = id >> 32, now;
    int err         = errno, ret;
    struct hca_task task;

    /* kill() accepts the number of any thread, and works without /proc and
     * without a free descriptor */
    ret = syscall(SYS_kill, (pid_t)(id & HCA_TASK_TID_MASK), 0);
    if ((ret != 0) && (errno == ESRCH)) {
        errno = err;
        return true;
    }
    ret   = hca_task_stat(id & HCA_TASK_TID_MASK, &task);
    errno = err;
    if (ret != 0) {
        return false;
    }
    now = hca_task_mark(&task);
    return (task.state == 'Z') || (task.state == 'X') ||
           hca_task_differs(before, now) ||
           hca_task_differs(before >> 16, now >> 16);
}

void hca_task_forked(void)
{
    hca_task_id = 0;
}
