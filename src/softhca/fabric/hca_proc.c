/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Processes as /proc shows them, without a lock: see hca_proc.h.
 */
#define _GNU_SOURCE
#include "hca_proc.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

int hca_proc_check(const struct hca_proc *proc)
{
    struct hca_task task;
    int ret = hca_task_stat(proc->pid, &task);

    if (ret != 0) {
        return ret;
    }
    /* a first thread that ends before the others is a zombie, too */
    if (((task.state == 'Z') && (task.threads == 1)) || (task.state == 'X') ||
        (task.start != proc->start_time)) {
        return -ESRCH;
    }
    return ((task.stack == 0) || (proc->stack == 0) ||
            (task.stack == proc->stack)) ?
               0 :
               -ESRCH;
}

bool hca_proc_lives(unsigned slot)
{
    const struct hca_proc *proc = &hca_fabric->procs[slot];

    return (atomic_load(&proc->state) != HCA_PROC_FREE) &&
           (hca_proc_check(proc) != -ESRCH);
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
