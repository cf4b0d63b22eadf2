/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * faults --op OP [OPTION]...: operations of one kind between processes, of
 * which some have faults. Each payload is verified. After a fault nothing may
 * hang, no byte may be wrong, and an operation that has ended with OK has
 * arrived. See usage().
 */
#include "faults.h"
#include "rank.h"
#include "../times.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

struct ledger *ledger;

/* the kinds to run, separated by commas */
static const char *kinds = "";

static const char usage_text[] =
    "faults --op OP [OPTION]...\n"
    "  --op OP,..        kinds of operation, each in new processes; all, or of:\n"
    "                    %s\n"
    "  --ops N           operations that each rank posts (1000)\n"
    "  --ranks N         number of processes (3)\n"
    "  --window N        outstanding operations per pair (8)\n"
    "  --source RANK     only this rank posts operations\n"
    "  --deadline S      seconds in which something has to end (60)\n"
    "  --within MS       time in which operations to ranks with faults end,\n"
    "                    while all others are served\n"
    "  --fault RANK=RULE SOFTHCA_FAULT of this rank\n"
    "  --kill RANK@N     the rank is killed after N operations. The others have\n"
    "                    posted 64 to each rank by then, if --ops allows it, and\n"
    "                    post 64 later\n"
    "  --stop RANK@N:MS  the rank stands still after N operations, for MS ms\n"
    "  --hit RANK        errors are allowed to and from this rank, too\n"
    "  --allow STATUS,.. errors that operations to and from ranks with faults\n"
    "                    have to end with: one at least. Without this option\n"
    "                    all operations have to end with OK.\n"
    "  --or-all          with --allow: errors may be, but need not\n"
    "  --page-out        memory of all ranks is registered on demand, and dropped\n"
    "                    from their page tables meanwhile\n"
    "  --reconnect       a rank makes a new endpoint if one fails, and goes on:\n"
    "                    all operations are posted. For put, get, atomic and\n"
    "                    lists.\n"
    "                    An eager message that has ended with OK may be lost.\n"
    "                    A rendezvous may hang: UCX may lose the wire-up of the\n"
    "                    new endpoint (docs/known-issues.md)\n";

static const struct {
    const char *name;
    ucs_status_t status;
} statuses[] = {
    {"IO_ERROR", UCS_ERR_IO_ERROR},
    {"NO_MEMORY", UCS_ERR_NO_MEMORY},
    {"INVALID_PARAM", UCS_ERR_INVALID_PARAM},
    {"UNREACHABLE", UCS_ERR_UNREACHABLE},
    {"NO_DEVICE", UCS_ERR_NO_DEVICE},
    {"CANCELED", UCS_ERR_CANCELED},
    {"TIMED_OUT", UCS_ERR_TIMED_OUT},
    {"REJECTED", UCS_ERR_REJECTED},
    {"NOT_CONNECTED", UCS_ERR_NOT_CONNECTED},
    {"CONNECTION_RESET", UCS_ERR_CONNECTION_RESET},
    {"ENDPOINT_TIMEOUT", UCS_ERR_ENDPOINT_TIMEOUT},
};

/* --- options -------------------------------------------------------------- */

static void refuse(const char *what, const char *value)
{
    fprintf(stderr, "faults: %s %s\n", what, value);
    exit(1);
}

static void usage(void)
{
    printf(usage_text, op_names());
    exit(0);
}

static unsigned parse_number(const char *text, char **end)
{
    unsigned long number = strtoul(text, end, 10);

    if ((*end == text) || (number > 100000000)) {
        refuse("no number:", text);
    }
    return number;
}

static unsigned parse_all_number(const char *text)
{
    char *end;
    unsigned number = parse_number(text, &end);

    if (*end != '\0') {
        refuse("no number:", text);
    }
    return number;
}

static void parse_allow(struct options *options, char *text)
{
    char *save, *item = strtok_r(text, ",", &save);
    size_t i, count   = sizeof(statuses) / sizeof(*statuses);

    for (; item != NULL; item = strtok_r(NULL, ",", &save)) {
        for (i = 0; (i < count) && strcmp(item, statuses[i].name); i++) {
        }
        if (i == count) {
            refuse("unknown status", item);
        }
        options->allow[-statuses[i].status] = true;
    }
    options->may_fail = true;
}

/* Parses RANK or RANK-RANK, and sets the bounds. Returns what follows. */
static char *parse_ranks(char *text, unsigned *first, unsigned *last)
{
    char *end;

    *first = *last = parse_number(text, &end);
    if (*end == '-') {
        *last = parse_number(end + 1, &end);
    }
    if ((*first > *last) || (*last >= MAX_RANKS)) {
        refuse("no rank:", text);
    }
    return end;
}

static void parse_event(struct options *options, char *text, bool is_stop)
{
    unsigned first, last;
    char *end          = parse_ranks(text, &first, &last);
    struct event event = {.is_kill = !is_stop, .is_set = true};

    if (*end != '@') {
        refuse("no @ in", text);
    }
    event.after = parse_number(end + 1, &end);
    if (is_stop) {
        if (*end != ':') {
            refuse("no milliseconds in", text);
        }
        event.stop = parse_number(end + 1, &end);
    }
    for (unsigned i = first; i <= last; i++) {
        options->event[i]  = event;
        options->is_hit[i] = true;
    }
}

static void parse_fault(struct options *options, char *text)
{
    unsigned first, last;
    char *end = parse_ranks(text, &first, &last);

    if (*end != '=') {
        refuse("no rule in", text);
    }
    for (unsigned i = first; i <= last; i++) {
        options->fault[i]  = end + 1;
        options->is_hit[i] = true;
    }
}

static void parse_hit(struct options *options, char *text)
{
    unsigned first, last;

    parse_ranks(text, &first, &last);
    for (unsigned i = first; i <= last; i++) {
        options->is_hit[i] = true;
    }
}

/* Parses an option with a value. Returns false if there is no such option. */
static bool parse_option(struct options *options, const char *name, char *value)
{
    if (!strcmp(name, "--op")) {
        kinds = value;
    } else if (!strcmp(name, "--ops")) {
        options->ops = parse_all_number(value);
    } else if (!strcmp(name, "--ranks")) {
        options->ranks = parse_all_number(value);
    } else if (!strcmp(name, "--window")) {
        options->window = parse_all_number(value);
    } else if (!strcmp(name, "--source")) {
        options->source = parse_all_number(value);
    } else if (!strcmp(name, "--deadline")) {
        options->deadline = parse_all_number(value) * 1000000ull;
    } else if (!strcmp(name, "--within")) {
        options->within = parse_all_number(value);
    } else if (!strcmp(name, "--fault")) {
        parse_fault(options, value);
    } else if (!strcmp(name, "--kill")) {
        parse_event(options, value, false);
    } else if (!strcmp(name, "--stop")) {
        parse_event(options, value, true);
    } else if (!strcmp(name, "--hit")) {
        parse_hit(options, value);
    } else if (!strcmp(name, "--allow")) {
        parse_allow(options, value);
    } else {
        return false;
    }
    return true;
}

static struct options parse(int argc, char **argv)
{
    struct options options = {
        .ops      = 1000,
        .ranks    = 3,
        .window   = 8,
        .source   = -1,
        .deadline = time_slow(TIME_WAIT) * 1000ull,
    };
    bool or_all = false;

    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--help")) {
            usage();
        } else if (!strcmp(argv[i], "--or-all")) {
            or_all = true;
        } else if (!strcmp(argv[i], "--reconnect")) {
            options.reconnects = true;
        } else if (!strcmp(argv[i], "--page-out")) {
            options.pages_out = true;
        } else if ((i + 1 == argc) ||
                   !parse_option(&options, argv[i], argv[i + 1])) {
            refuse("unknown option (see --help), or no value:", argv[i]);
        } else {
            i++;
        }
    }
    if ((options.ranks < 2) || (options.ranks > MAX_RANKS) ||
        (options.window == 0)) {
        refuse("needs 2 ranks or more, and a window", "");
    }
    options.must_fail = options.may_fail && !or_all;
    /* of each pair */
    options.ops = (options.ops + options.ranks - 2) / (options.ranks - 1);
    return options;
}

/* --- processes ------------------------------------------------------------ */

static void *share(size_t length)
{
    void *memory = mmap(NULL, length, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (memory == MAP_FAILED) {
        refuse("no memory:", strerror(errno));
    }
    return memory;
}

static void make_ledger(const struct options *options)
{
    size_t flows = (size_t)options->ranks * options->ranks;
    char *bytes  = share(flows * options->ops * 3);

    ledger          = share(sizeof(*ledger));
    ledger->flow    = share(flows * sizeof(*ledger->flow));
    ledger->options = *options;
    for (size_t i = 0; i < flows; i++) {
        ledger->flow[i].sent = (void *)bytes;
        ledger->flow[i].got  = (void *)(bytes + options->ops);
        ledger->flow[i].lost = (void *)(bytes + (2 * options->ops));
        bytes += 3 * options->ops;
    }
}

static void start(unsigned i)
{
    pid_t parent = getpid(), pid = fork();

    if (pid < 0) {
        refuse("no process:", strerror(errno));
    }
    if (pid != 0) {
        ledger->rank[i].pid = pid;
        return;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) {
        _exit(2);
    }
    if (ledger->options.fault[i] != NULL) {
        setenv("SOFTHCA_FAULT", ledger->options.fault[i], 1);
    }
    op_set_environment(ledger->options.op);
    setenv("UCX_TLS", "dcx", 0);
    setenv("UCX_KEEPALIVE_INTERVAL", "1s", 0);
    exit(rank_run(i));
}

static unsigned rank_of(pid_t pid)
{
    unsigned i = 0;

    while (ledger->rank[i].pid != pid) {
        i++;
    }
    return i;
}

static void kill_all(void)
{
    for (unsigned i = 0; i < ledger->options.ranks; i++) {
        if (!ledger->rank[i].is_dead) {
            kill(ledger->rank[i].pid, SIGKILL);
        }
    }
}

/* Notes the end of a rank. Returns the number of failures: ranks may only be
 * killed if they have to be. */
static int note_end(unsigned i, int status)
{
    bool is_planned = ledger->options.event[i].is_kill && WIFSIGNALED(status) &&
                      (WTERMSIG(status) == SIGKILL);

    ledger->rank[i].is_dead = true;
    if ((WIFEXITED(status) && (WEXITSTATUS(status) == 0)) || is_planned) {
        return 0;
    }
    printf("FAIL: rank %u: %s %d\n", i,
           WIFSIGNALED(status) ? "signal" : "status",
           WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    kill_all();
    return 1;
}

/* Waits until all ranks have ended; lets those go on that stand still. */
static int wait_for_all(void)
{
    unsigned left = ledger->options.ranks, i;
    int status, failures = 0;
    pid_t pid;

    while (left > 0) {
        pid = waitpid(-1, &status, WUNTRACED);
        if (pid < 0) {
            refuse("cannot wait:", strerror(errno));
        }
        i = rank_of(pid);
        if (WIFSTOPPED(status)) {
            usleep(ledger->options.event[i].stop * 1000);
            kill(pid, SIGCONT);
            continue;
        }
        failures += note_end(i, status);
        left--;
    }
    return failures;
}

/* --- verdict -------------------------------------------------------------- */

struct count {
    unsigned ok, errors, never, failures;
};

static int complain(const struct flow *flow, uint32_t sequence,
                    const char *what, int status)
{
    size_t number  = flow - ledger->flow;
    unsigned ranks = ledger->options.ranks;

    printf("FAIL: %s %u from %zu to %zu: %s (%s)\n", ledger->options.op->name,
           sequence, number / ranks, number % ranks, what,
           ucs_status_string(status));
    return 1;
}

/* Returns the number of failures of an operation that has ended with OK. */
static int judge_ok(const struct flow *flow, uint32_t i, bool may_fail,
                    bool sink_lives)
{
    bool must_arrive = sink_lives && (!may_fail || ledger->options.op->is_told);

    return (must_arrive && (flow->got[i] == 0)) ?
               complain(flow, i, "ended with OK, but has not arrived",
                        flow->lost[i]) :
               0;
}

static int judge_op(const struct flow *flow, uint32_t i, bool may_fail,
                    bool sink_lives)
{
    int sent = flow->sent[i];

    if (flow->got[i] > 1) {
        return complain(flow, i, "arrived twice", sent);
    }
    if (sent == OP_OK) {
        return judge_ok(flow, i, may_fail, sink_lives);
    }
    if (sent == OP_POSTED) {
        return complain(flow, i, "has not ended", sent);
    }
    if (!may_fail || ((sent == OP_NONE) && ledger->options.reconnects)) {
        return complain(flow, i, (sent == OP_NONE) ? "not posted" : "failed",
                        sent);
    }
    return ((sent < 0) && !ledger->options.allow[-sent]) ?
               complain(flow, i, "another error", sent) :
               0;
}

static void judge_flow(unsigned source, unsigned sink, struct count *count)
{
    const struct options *options = &ledger->options;
    const struct flow *flow       = ledger_flow(source, sink);
    bool may_fail                 = options->may_fail &&
                    (options->is_hit[source] || options->is_hit[sink]);
    bool sink_lives   = (ledger->rank[sink].phase >= PHASE_DONE);
    unsigned failures = 0;

    for (uint32_t i = 0; i < options->ops; i++) {
        count->ok += (flow->sent[i] == OP_OK);
        count->errors += (flow->sent[i] < 0);
        count->never += (flow->sent[i] == OP_NONE);
        if (failures < 5) {
            failures += judge_op(flow, i, may_fail, sink_lives);
        }
    }
    if (flow->received_wrong != 0) {
        failures += complain(flow, 0, "wrong bytes", 0);
    }
    if (((flow->handler_calls > 1) && !options->reconnects) ||
        (!may_fail && (flow->handler_calls != 0))) {
        printf("error handler called %u times\n", flow->handler_calls);
        failures += complain(flow, 0, "the endpoint failed",
                             flow->handler_status);
    }
    count->failures += failures;
}

/* Returns the number of failures: all operations of a source to ranks with
 * faults end in time, and those to other ranks do not wait for them. */
static int judge_time(unsigned source)
{
    const struct options *options = &ledger->options;
    uint64_t first = ledger->rank[source].first, hit = 0, healthy = 0, last;

    for (unsigned i = 0; i < options->ranks; i++) {
        last = ledger_flow(source, i)->last;
        if (options->is_hit[i] && (last > hit)) {
            hit = last;
        } else if (!options->is_hit[i] && (last > healthy)) {
            healthy = last;
        }
    }
    printf("%s: rank %u: the last error after %lu ms, the last OK after %lu "
           "ms\n",
           options->op->name, source, (unsigned long)(hit - first) / 1000,
           (unsigned long)(healthy - first) / 1000);
    return (hit - first > time_slow(options->within) * 1000ull) ||
           (healthy > hit);
}

/* Returns the number of failures: memory on demand has page faults, unless it
 * was pinned. */
static int judge_faults(void)
{
    uint64_t faults = 0;

    for (unsigned i = 0; i < ledger->options.ranks; i++) {
        faults += ledger->rank[i].page_faults;
    }
    if (!ledger->options.pages_out || (faults > 0) || !op_is_one_sided()) {
        return 0;
    }
    printf("FAIL: no page fault: memory on demand was pinned\n");
    return 1;
}

static int judge(int failures)
{
    const struct options *options = &ledger->options;
    struct count count            = {.failures = failures};
    unsigned handlers             = 0;

    for (unsigned i = 0; i < options->ranks; i++) {
        for (unsigned j = 0; j < options->ranks; j++) {
            handlers += ledger_flow(i, j)->handler_calls;
            if ((i != j) && ledger_sends(i) &&
                (ledger->rank[i].phase >= PHASE_DONE)) {
                judge_flow(i, j, &count);
            }
        }
    }
    for (unsigned i = 0; (options->within != 0) && (i < options->ranks); i++) {
        if (ledger_sends(i) && !options->is_hit[i]) {
            count.failures += judge_time(i);
        }
    }
    count.failures += judge_faults();
    if (options->must_fail && (count.errors + handlers == 0)) {
        printf("FAIL: the fault had no effect\n");
        count.failures++;
    }
    if (options->op->is_list) {
        printf("%s: %u pending\n", options->op->name, ledger->pending);
    }
    printf("%s: %u ok, %u errors, %u not posted, %u endpoints failed: %s\n",
           options->op->name, count.ok, count.errors, count.never, handlers,
           (count.failures == 0) ? "as allowed" : "WRONG");
    return count.failures != 0;
}

/* Runs one kind of operation. Returns 1 if something is not as allowed. */
static int run(const struct options *options)
{
    make_ledger(options);
    for (unsigned i = 0; i < options->ranks; i++) {
        start(i);
    }
    return judge(wait_for_all());
}

int main(int argc, char **argv)
{
    struct options options = parse(argc, argv);
    int failures           = 0;
    char *list, *save, *name;

    setvbuf(stdout, NULL, _IOLBF, 0);
    list = strdup(strcmp(kinds, "all") ? kinds : op_names());
    for (name = strtok_r(list, ", ", &save); name != NULL;
         name = strtok_r(NULL, ", ", &save)) {
        options.op = op_find(name);
        if (options.op == NULL) {
            refuse("unknown operation", name);
        }
        failures += run(&options);
    }
    if (options.op == NULL) {
        refuse("needs --op", "");
    }
    free(list);
    printf("%d kinds are not as allowed\n", failures);
    return failures != 0;
}
