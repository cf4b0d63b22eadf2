/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Log lines of the device. No lock and no allocation. Threads and processes
 * share the file: O_APPEND, and one write for each line, keep lines whole.
 */
#define _GNU_SOURCE
#include "hca_log.h"
#include "hca_fd.h"
#include "hca_sys.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum hca_log_level hca_log_level = HCA_LOG_WARN;

static int hca_log_fd = STDERR_FILENO;

static const char *const hca_log_names[] = {
    [HCA_LOG_ERROR] = "error", [HCA_LOG_WARN] = "warn",
    [HCA_LOG_INFO] = "info",   [HCA_LOG_DEBUG] = "debug",
    [HCA_LOG_TRACE] = "trace",
};

static void hca_log_set_level(const char *name)
{
    for (unsigned i = 0; i <= HCA_LOG_TRACE; i++) {
        if (!strcasecmp(name, hca_log_names[i])) {
            hca_log_level = i;
            return;
        }
    }
    hca_error("SOFTHCA_LOG=%s: use error, warn, info, debug or trace", name);
}

static void hca_log_open(const char *file)
{
    int fd = hca_sys()->openat(AT_FDCWD, file,
                               O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

    if (fd < 0) {
        hca_error("SOFTHCA_LOG_FILE=%s: %s", file, strerror(errno));
        return;
    }
    hca_log_fd = hca_fd_mark(fd);
}

void hca_log_init(void)
{
    const char *level = getenv("SOFTHCA_LOG");
    const char *file  = getenv("SOFTHCA_LOG_FILE");

    if (file != NULL) {
        hca_log_open(file); /* first, as a wrong level is logged to it */
    }
    if (level != NULL) {
        hca_log_set_level(level);
    }
}

void hca_log_write(enum hca_log_level level, const char *fmt, ...)
{
    int saved_errno = errno;
    char line[512];
    va_list ap;
    int head, body, fd;

    head = snprintf(line, sizeof(line), "softhca[%d] %-5s ", getpid(),
                    hca_log_names[level]);
    va_start(ap, fmt);
    body = vsnprintf(line + head, sizeof(line) - head - 1, fmt, ap);
    va_end(ap);

    head += (body < (int)sizeof(line) - head - 1) ?
                body :
                (int)sizeof(line) - head - 2;
    line[head] = '\n';
    /* the program may have replaced the file's descriptor by dup2() */
    fd = hca_fd_is_own(hca_log_fd) ? hca_log_fd : STDERR_FILENO;
    /* write() is a cancellation point, but callers may hold locks */
    if (syscall(SYS_write, fd, line, head + 1) < 0) {
        /* nowhere left to report it */
    }
    errno = saved_errno;
}
