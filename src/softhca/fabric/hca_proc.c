/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Processes by their number, as /proc has them. No thread, no lock: see
 * hca_proc.h.
 */
#define _GNU_SOURCE
#include "hca_proc.h"
#include "softhca/base/hca_fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The first descriptor opened here, kept as a spare: a stopped peer must be
 * detectable even when the program has used all descriptors up. */
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

    hca_fd_mark(fd);
    if (!atomic_compare_exchange_strong(&hca_spare_fd, &none, fd)) {
        hca_fd_close(fd);
    }
}

/* Reads without stdio, which allocates, past hooks; no cancellation point. */
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
        (sscanf(p,
                ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d "
                "%*d %*d %*d %*d %*d %llu",
                &ticks) != 1)) {
        return -EPROTO;
    }
    *start = ticks;
    return 0;
}

/* Detects freezing by the kernel function that the thread sleeps in, where the
 * kernel shows it: of a cgroup of version 1, or of version 2 (do_freezer_trap()
 * may be inlined in get_signal(), which has no other place to sleep). */
static bool hca_proc_is_frozen(pid_t tid)
{
    static const char *const places[] = {
        "__refrigerator",
        "get_signal",
        "do_freezer_trap",
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
                        strrchr(stat, ')') :
                        NULL;

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

bool hca_proc_lives(unsigned slot)
{
    return hca_proc_is_attached(slot) &&
           (hca_proc_check(&hca_fabric->procs[slot]) != -ESRCH);
}

int hca_proc_open_fd(unsigned slot, int fd)
{
    const struct hca_proc *proc = &hca_fabric->procs[slot];
    char path[48];
    int own, ret;

    snprintf(path, sizeof(path), "/proc/%d/fd/%d", proc->pid, fd);
    own = syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
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
