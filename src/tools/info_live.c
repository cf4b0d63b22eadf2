/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Reads the figures of another process (dcx_figures.h): it has them in a memfd,
 * reachable through /proc/PID/fd. The kernel lets the same user open it.
 */
#include "info_live.h"
#include "info_args.h"
#include "uct/dcx/base/dcx_figures.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char info_live_denied[] =
    "belongs to another user, or cannot be read";

/* Prints one line. Returns the exit status. */
static int info_live_fail(const char *pid, const char *reason)
{
    fprintf(stderr, "dcx_info: process %s %s\n", pid, reason);
    return INFO_BAD;
}

/* Returns an open descriptor of the figures, -1 with errno if the folder has
 * none, or shows none: root without CAP_SYS_PTRACE may list it, but not read
 * its links. */
static int info_live_find(DIR *folder)
{
    static const char name[] = "/memfd:" UCT_DCX_FIGURES_NAME;
    struct dirent *entry;
    char target[64];
    ssize_t length;
    int error = ENOENT;

    while ((entry = readdir(folder)) != NULL) {
        length = readlinkat(dirfd(folder), entry->d_name, target,
                            sizeof(target));
        if ((length >= (ssize_t)sizeof(name) - 1) &&
            !strncmp(target, name, sizeof(name) - 1)) {
            return openat(dirfd(folder), entry->d_name, O_RDONLY | O_CLOEXEC);
        }
        if ((length < 0) && (errno == EACCES)) {
            error = EACCES;
        }
    }
    errno = error;
    return -1;
}

/* Drops names of ports that lead out of their folder: any process can write
 * them, and root may read them. */
static void info_live_check(uct_dcx_figures_t *figures)
{
    unsigned i;

    for (i = 0; i < UCT_DCX_FIGURES_PORTS; ++i) {
        char *name = figures->ports[i].name;

        name[sizeof(figures->ports[i].name) - 1] = '\0';
        if (strchr(name, '/') != NULL) {
            name[0] = '\0';
        }
    }
}

static int info_live_read(const char *pid, int fd)
{
    uct_dcx_figures_t *figures = calloc(1, sizeof(*figures));
    ssize_t length             = -1;
    int status                 = INFO_GOOD;

    if (figures != NULL) {
        length = pread(fd, figures, sizeof(*figures), 0);
    }
    if ((length != sizeof(*figures)) || (figures->size != sizeof(*figures))) {
        status = info_live_fail(pid, "uses another version of dcx");
    } else {
        info_live_check(figures);
        uct_dcx_figures_print(figures, stdout);
    }
    free(figures);
    return status;
}

int info_live_print(const char *pid)
{
    char path[64];
    DIR *folder;
    int fd, status;

    if ((pid[0] == '\0') || (pid[strspn(pid, "0123456789")] != '\0')) {
        fprintf(stderr, "dcx_info: '%s' is not the number of a process\n", pid);
        return INFO_USAGE;
    }

    snprintf(path, sizeof(path), "/proc/%.20s/fd", pid);
    folder = opendir(path);
    if (folder == NULL) {
        return info_live_fail(pid, (errno == ENOENT) ? "does not exist" :
                                   (errno == EACCES) ? info_live_denied :
                                                       strerror(errno));
    }

    fd = info_live_find(folder);
    if (fd < 0) {
        status = info_live_fail(pid, (errno == EACCES) ?
                                         info_live_denied :
                                         "has no figures: start it with "
                                         "UCX_DCX_REPORT=y");
        closedir(folder);
        return status;
    }
    closedir(folder);
    status = info_live_read(pid, fd);
    close(fd);
    return status;
}
