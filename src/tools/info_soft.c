/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Finds out why softhca did not start; see info_soft.h.
 */
#include "info_soft.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

/* Tries to copy a byte from the memory of a child, as softhca does from a peer.
 * @return 0 or an errno */
static int info_soft_copy(void)
{
    char from          = 0, to;
    struct iovec local = {&to, 1}, remote = {&from, 1};
    pid_t child = fork();
    int error   = 0;

    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        pause();
        _exit(0);
    }
    if ((child > 0) &&
        (process_vm_readv(child, &local, 1, &remote, 1, 0) < 0)) {
        error = errno;
    }
    if (child > 0) {
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
    }
    return error;
}

/* Prints a note if softhca cannot read the memory of other processes. */
static void info_soft_note(void)
{
    const char *preload = getenv("LD_PRELOAD");
    int error;

    if ((preload == NULL) || (strstr(preload, "libsofthca.so") == NULL)) {
        return;
    }
    error = info_soft_copy();
    if (error != 0) {
        fprintf(stderr,
                "dcx_info: note: process_vm_readv of another process: %s: "
                "softhca reaches only memory that its processes share: "
                "docs/faq.md\n",
                strerror(error));
    }
}

/* Finds the last line "softhca[PID] error TEXT". */
static void info_soft_find(char *text, char *error)
{
    char *line, *rest;
    int at;

    for (line = strtok_r(text, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        at = 0;
        if ((sscanf(line, "softhca[%*d] error %n", &at) == 0) && (at > 0)) {
            snprintf(error, INFO_TEXT_MAX, "%.*s", INFO_TEXT_MAX - 1,
                     line + at);
        }
    }
}

/* Prints the captured output on stderr, and finds the error in it. */
static void info_soft_show(int fd, char *error)
{
    char text[4096];
    ssize_t size = pread(fd, text, sizeof(text) - 1, 0);

    if (size > 0) {
        text[size] = '\0';
        fputs(text, stderr);
        info_soft_find(text, error);
    }
}

struct ibv_device **info_soft_list(char *error)
{
    int file   = memfd_create("stderr", MFD_CLOEXEC);
    int screen = dup(STDERR_FILENO);
    struct ibv_device **list;

    info_soft_note();
    error[0] = '\0';
    dup2(file, STDERR_FILENO);
    list = ibv_get_device_list(NULL);
    dup2(screen, STDERR_FILENO);
    info_soft_show(file, error);
    close(screen);
    close(file);
    return list;
}

/* Says how to fix the error: names the variable that its text begins with, or
 * the folder or the limit in it. */
static void info_soft_fix(const char *error, struct info_verdict *verdict)
{
    const char *limit = strstr(error, "raise ulimit -");

    if (!strncmp(error, "SOFTHCA_", 8)) {
        info_fix(verdict, "unset %.*s", (int)strcspn(error, "=:, "), error);
    } else if (strstr(error, "SOFTHCA_DIR") != NULL) {
        info_fix(verdict, "export SOFTHCA_DIR=$(mktemp -d)");
    } else if (strstr(error, "SOFTHCA_FABRIC") != NULL) {
        info_fix(verdict, "export SOFTHCA_FABRIC=$$");
    } else if (strstr(error, "seccomp") != NULL) {
        info_fix(verdict, "unset SOFTHCA_SHARE, or start the container with "
                          "--cap-add=SYS_PTRACE");
    } else if (limit != NULL) {
        info_advise_limit(limit[strlen("raise ulimit -")], 0, verdict->fix);
    } else {
        info_fix(verdict, "SOFTHCA_LOG=debug ibv_devices");
    }
}

void info_soft_blame(const char *error, struct info_verdict *verdict)
{
    info_blame(verdict, "softhca, the software device, could not start%s%s",
               (error[0] == '\0') ? "" : ": ", error);
    info_soft_fix(error, verdict);
}
