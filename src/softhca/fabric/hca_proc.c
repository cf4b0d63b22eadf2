/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Processes by their number, as /proc has them. No thread, no lock: see
 * hca_proc.h.
 */
#define _GNU_SOURCE
#include "hca_proc.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Reads without stdio, which allocates, past hooks; no cancellation point. */
static int hca_proc_read_stat(pid_t pid, char *text, size_t size)
{
    char path[32];
    ssize_t got;
    int fd, ret;

    snprintf(path, sizeof(path), "/proc/%d/stat", pid);
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

int hca_proc_start_time(pid_t pid, uint64_t *start)
{
    unsigned long long ticks;
    char stat[512];
    const char *p;
    int ret = hca_proc_read_stat(pid, stat, sizeof(stat));

    if (ret != 0) {
        return ret;
    }
    /* the name, in parentheses, may hold anything: fields count from ')' */
    p = strrchr(stat, ')');
    if ((p == NULL) ||
        (sscanf(p,
                ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d "
                "%*d %*d %*d %*d %*d %llu",
                &ticks) != 1)) {
        return -EPROTO;
    }
    *start = ticks;
    return 0;
}

int hca_proc_check(const struct hca_proc *proc)
{
    uint64_t start;
    int ret = hca_proc_start_time(proc->pid, &start);

    return (ret != 0) ? ret : (start == proc->start_time) ? 0 : -ESRCH;
}

bool hca_proc_lives(unsigned slot)
{
    return hca_proc_is_attached(slot) &&
           (hca_proc_check(&hca_fabric->procs[slot]) != -ESRCH);
}

int hca_proc_open_fd(unsigned slot, int fd, int access)
{
    const struct hca_proc *proc = &hca_fabric->procs[slot];
    char path[48];
    int own, ret;

    snprintf(path, sizeof(path), "/proc/%d/fd/%d", proc->pid, fd);
    own = syscall(SYS_openat, AT_FDCWD, path, access | O_NONBLOCK | O_CLOEXEC);
    if (own < 0) {
        return -errno;
    }
    ret = hca_proc_check(proc);
    if (ret != 0) {
        syscall(SYS_close, own); /* may be an unrelated process' */
        return ret;
    }
    return own;
}
