/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * softhca-sweep PID: removes the directories that killed processes leave in the
 * run-time folder, as long as the command lives that dcx-run becomes (PID), and
 * after it until the folder has no process directory any more. Processes that
 * end in order remove their own directories, and each one that starts removes
 * those of the dead: the sweeper is for when all are killed and none starts.
 *
 * It goes on in the background, detached from the command, in a session of its
 * own, and prints its pid. Several may serve one folder: they share nothing but
 * its lock. Each sleeps until a process of the folder, or the command, ends, or
 * one starts; it keeps no state between two looks at the folder.
 */
#define _GNU_SOURCE
#include "hca_rundir.h"
#include "softhca/base/hca_sys.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/syscall.h>
#include <unistd.h>

/* More than the usual limit of descriptors; further processes are looked at
 * when one of the others ends. */
#define SWEEP_MAX 1024

enum {
    SWEEP_COMMAND, /* pidfd; -1 when it has ended */
    SWEEP_FOLDER,  /* inotify */
    SWEEP_PROCS    /* pidfds, from here on */
};

struct sweep {
    struct pollfd fds[SWEEP_MAX];
    unsigned num;
};

static int sweep_pidfd(pid_t pid)
{
    return syscall(SYS_pidfd_open, pid, 0);
}

static bool sweep_has_ended(int pidfd)
{
    struct pollfd fd = {.fd = pidfd, .events = POLLIN};

    return (pidfd < 0) || (poll(&fd, 1, 0) != 0);
}

static void sweep_detach(void)
{
    static const int signals[] = {SIGHUP,  SIGINT,  SIGQUIT,
                                  SIGTSTP, SIGTTIN, SIGTTOU};
    int null = hca_sys()->openat(AT_FDCWD, "/dev/null", O_RDWR);

    for (unsigned i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
        hca_sys()->signal(signals[i], SIG_IGN);
    }
    setsid();
    if (chdir("/") < 0) {
        /* a sweeper that stays there keeps that file system busy */
    }
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        (null < 0) ? hca_sys()->close(fd) : hca_sys()->dup2(null, fd);
    }
    if (null > STDERR_FILENO) {
        hca_sys()->close(null);
    }
}

/* Opens a descriptor that can be read when the folder gets a new directory, is
 * removed, or is created. */
static int sweep_watch(const char *folder)
{
    const uint32_t inside = IN_CREATE | IN_DELETE_SELF | IN_ONLYDIR;
    int fd                = inotify_init1(IN_CLOEXEC);
    char parent[PATH_MAX];

    if ((fd >= 0) && (inotify_add_watch(fd, folder, inside) < 0)) {
        snprintf(parent, sizeof(parent), "%s", folder);
        inotify_add_watch(fd, dirname(parent), IN_CREATE | IN_ONLYDIR);
        inotify_add_watch(fd, folder, inside); /* made in between */
    }
    return fd;
}

/* Removes the directory of a dead process, or adds the process to those waited
 * for. Looks for its end before trying its lock: if it ends in between, its
 * pidfd reports that. A process that has ended but holds a lock is of another
 * pid namespace. */
static int sweep_look_at(const char *name, void *arg)
{
    struct sweep *sweep = arg;
    int pidfd           = sweep_pidfd(atoi(name));
    bool has_ended      = sweep_has_ended(pidfd);

    if (!hca_rundir_sweep(name) && !has_ended && (sweep->num < SWEEP_MAX)) {
        sweep->fds[sweep->num].fd       = pidfd;
        sweep->fds[sweep->num++].events = POLLIN;
    } else if (pidfd >= 0) {
        hca_sys()->close(pidfd);
    }
    return 0;
}

/* @return true if there is something to wait for. */
static bool sweep_look(struct sweep *sweep)
{
    const char *folder = hca_rundir_folder_path();
    int ret;

    while (sweep->num > SWEEP_FOLDER) {
        hca_sys()->close(sweep->fds[--sweep->num].fd);
    }
    if (folder == NULL) {
        return false;
    }
    sweep->fds[SWEEP_FOLDER].fd     = sweep_watch(folder);
    sweep->fds[SWEEP_FOLDER].events = POLLIN;
    sweep->num                      = SWEEP_PROCS;

    ret = hca_rundir_lock_existing();
    if (ret == 0) {
        hca_rundir_foreach(sweep_look_at, sweep);
        hca_rundir_rmdir();
        hca_rundir_unlock();
    }
    if (sweep_has_ended(sweep->fds[SWEEP_COMMAND].fd)) {
        sweep->fds[SWEEP_COMMAND].fd = -1; /* poll() leaves it out */
    }
    return ((ret == 0) || (ret == -ENOENT)) &&
           ((sweep->num > SWEEP_PROCS) || (sweep->fds[SWEEP_COMMAND].fd >= 0));
}

int main(int argc, char **argv)
{
    static struct sweep sweep;
    pid_t pid;

    if (argc != 2) {
        fprintf(stderr, "Usage: softhca-sweep PID (dcx-run starts it)\n");
        return 2;
    }
    hca_sys()->closefrom(STDERR_FILENO + 1);
    sweep.fds[SWEEP_COMMAND].fd     = sweep_pidfd(atoi(argv[1]));
    sweep.fds[SWEEP_COMMAND].events = POLLIN;
    sweep.num                       = SWEEP_FOLDER;
    if (sweep.fds[SWEEP_COMMAND].fd < 0) {
        fprintf(stderr, "softhca-sweep: process %s: %s\n", argv[1],
                strerror(errno));
        return 1;
    }

    pid = fork();
    if (pid != 0) {
        printf("%d\n", pid);
        return pid < 0;
    }
    sweep_detach();
    while (sweep_look(&sweep)) {
        poll(sweep.fds, sweep.num, -1);
    }
    return 0;
}
