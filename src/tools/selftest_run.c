/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Runs a probe in a process of its own; see selftest_run.h. The parent reads
 * its output to the end: lines with "= " are values, lines with "# " are notes,
 * and errors of the program or of UCX are the reasons of a failure.
 */
#include "perf_clock.h"
#include "perf_say.h"
#include "selftest_run.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* --- in the process of the probe ------------------------------------------ */
void selftest_refused(const char *format, ...)
{
    va_list args;

    fprintf(stderr, "%s: ", program_invocation_short_name);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    exit(SELFTEST_REFUSED);
}

void selftest_need(ucs_status_t status, const char *what)
{
    if (UCS_STATUS_IS_ERR(status)) {
        selftest_refused("%s: %s", what, ucs_status_string(status));
    }
}

void selftest_need_memory(ucs_status_t status, const char *what)
{
    if (status != UCS_OK) {
        fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, what,
                ucs_status_string(status));
        exit(SELFTEST_NOT_RUN);
    }
}

static void selftest_print(const char *head, const char *format, va_list args)
{
    fputs(head, stdout);
    vprintf(format, args);
    putchar('\n');
}

void selftest_value(const char *key, const char *format, ...)
{
    va_list args;

    printf("= %s ", key);
    va_start(args, format);
    selftest_print("", format, args);
    va_end(args);
}

void selftest_note(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    selftest_print("# ", format, args);
    va_end(args);
}

/* Removes the caller's options of UCX, whose effect would look like a property
 * of the device, except UCX_NET_DEVICES. */
static void selftest_clear_environment(void)
{
    char name[256];
    char **entry;

    for (entry = environ; *entry != NULL;) {
        snprintf(name, sizeof(name), "%.*s", (int)strcspn(*entry, "="), *entry);
        if (strncmp(name, "UCX_", 4) || !strcmp(name, "UCX_NET_DEVICES") ||
            (getenv(name) == NULL)) {
            entry++;
        } else {
            unsetenv(name); /* moves the next entry here */
        }
    }
}

/* Fills @argv for the process of the probe. */
static void selftest_arguments(const char **argv,
                               const struct selftest_probe *probe,
                               const struct selftest_how *how)
{
    static char timeout[16], serve[16];
    const char *const pairs[][2] = {
        {"--probe", probe->name},
        {"--device", how->device},
        {"--timeout", timeout},
        {"--peer", probe->needs_peer ? how->host : NULL},
        {"--port", how->port},
        {"--serve", (how->serve == 0) ? NULL : serve},
    };

    snprintf(timeout, sizeof(timeout), "%u", how->timeout);
    snprintf(serve, sizeof(serve), "%d", how->serve);
    *argv++ = program_invocation_short_name;
    for (unsigned i = 0; i < sizeof(pairs) / sizeof(*pairs); i++) {
        if (pairs[i][1] != NULL) {
            *argv++ = pairs[i][0];
            *argv++ = pairs[i][1];
        }
    }
    *argv = NULL;
}

static void selftest_exec(const struct selftest_probe *probe,
                          const struct selftest_how *how, int out)
{
    const struct rlimit no_core = {};
    const char *argv[16];

    setrlimit(RLIMIT_CORE, &no_core);
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* nothing else stops a hanging probe */
    selftest_clear_environment();
    setenv("UCX_DCX_PROFILE", how->profile, 1);
    setenv("UCX_LOG_LEVEL", "diag", 1);
    setenv("UCX_HANDLE_ERRORS", "none", 1);
    for (unsigned i = 0; i < SELFTEST_OPTIONS; i++) {
        if (probe->options[i] != NULL) {
            putenv((char *)probe->options[i]);
        }
    }
    dup2(out, STDOUT_FILENO);
    dup2(out, STDERR_FILENO);
    selftest_arguments(argv, probe, how);
    execv("/proc/self/exe", (char **)argv);
    perf_fail("/proc/self/exe: %s", strerror(errno));
}

/* --- in the parent -------------------------------------------------------- */
static void selftest_append(char *text, const char *line)
{
    size_t length = strlen(text);

    snprintf(text + length, SELFTEST_TEXT - length, "%s\n", line);
}

/* Finds the line with the key of @line; returns the end if there is none. */
static char *selftest_find(char *values, const char *line)
{
    const size_t length = strcspn(line, " ") + 1;

    while ((*values != '\0') && strncmp(values, line, length)) {
        values += strcspn(values, "\n") + 1;
    }
    return values;
}

static void selftest_line(struct selftest_report *report, const char *line)
{
    static const char *const heads[] = {"UCX  ERROR ", "UCX  WARN  ",
                                        "UCX  DIAG  ", "UCX  FATAL "};
    size_t length                    = strlen(program_invocation_short_name);
    const char *found;

    if (!strncmp(line, "= ", 2)) {
        *selftest_find(report->values, line + 2) = '\0';
        selftest_append(report->values, line + 2);
    } else if (!strncmp(line, "# ", 2)) {
        selftest_append(report->notes, line + 2);
    } else if (!strncmp(line, program_invocation_short_name, length)) {
        selftest_append(report->reasons, line + length + 2);
    }
    for (unsigned i = 0; i < sizeof(heads) / sizeof(*heads); i++) {
        found = strstr(line, heads[i]);
        if (found != NULL) {
            selftest_append(report->reasons, found + strlen(heads[i]));
        }
    }
}

/* Parses whole lines of @text; if @is_last, also a part of one. Moves the rest
 * to the beginning, and returns its length. */
static size_t selftest_lines(struct selftest_report *report, char *text,
                             size_t length, int is_last)
{
    char *line = text, *end;

    while ((end = memchr(line, '\n', length)) != NULL) {
        *end = '\0';
        length -= end + 1 - line;
        selftest_line(report, line);
        line = end + 1;
    }
    if (is_last && (length > 0)) {
        line[length] = '\0';
        selftest_line(report, line);
    }
    memmove(text, line, length);
    return length;
}

/* Reads until the process closes its output. Returns 0 if @timeout seconds pass
 * first. */
static int selftest_read(struct selftest_report *report, unsigned timeout,
                         int in)
{
    const uint64_t end    = perf_now() + timeout * 1000000000ull;
    struct pollfd poll_in = {.fd = in, .events = POLLIN};
    static char text[65536];
    size_t length = 0;
    ssize_t count = 1;

    while ((count > 0) && (perf_now() < end)) {
        if (poll(&poll_in, 1, 100) > 0) {
            count = read(in, text + length, sizeof(text) - 1 - length);
            length += (count > 0) ? count : 0;
            length = selftest_lines(report, text, length, count <= 0);
            length = (length == sizeof(text) - 1) ? 0 : length;
        }
    }
    return count <= 0;
}

static void selftest_ended(struct selftest_report *report, int status)
{
    char text[64];

    report->result = WIFEXITED(status) ? WEXITSTATUS(status) : SELFTEST_FAIL;
    if ((report->result != SELFTEST_PASS) &&
        (report->result != SELFTEST_REFUSED) &&
        (report->result != SELFTEST_NOT_RUN)) {
        report->result = SELFTEST_FAIL;
    }
    if (WIFSIGNALED(status)) {
        if (WTERMSIG(status) == SIGKILL) { /* the kernel ran out of memory */
            report->result = SELFTEST_NOT_RUN;
        }
        snprintf(text, sizeof(text), "it ended by signal %d (%s)",
                 WTERMSIG(status), strsignal(WTERMSIG(status)));
        selftest_append(report->reasons, text);
    }
    if (report->result == SELFTEST_NOT_RUN) {
        report->values[0] = '\0';
    }
}

void selftest_run(const struct selftest_probe *probe,
                  const struct selftest_how *how,
                  struct selftest_report *report)
{
    int fds[2], status;
    pid_t pid;

    memset(report, 0, sizeof(*report));
    fflush(stdout);
    if (pipe(fds) != 0) {
        perf_fail("pipe: %s", strerror(errno));
    }
    pid = fork();
    if (pid < 0) {
        perf_fail("fork: %s", strerror(errno));
    }
    if (pid == 0) {
        close(fds[0]);
        selftest_exec(probe, how, fds[1]);
    }
    close(fds[1]);
    if (!selftest_read(report, how->timeout, fds[0])) {
        kill(pid, SIGKILL);
        waitpid(pid, &status, 0);
        report->result = SELFTEST_FAIL;
        selftest_append(report->reasons, "it did not end in time, and was "
                                         "killed");
    } else {
        waitpid(pid, &status, 0);
        selftest_ended(report, status);
    }
    close(fds[0]);
}
