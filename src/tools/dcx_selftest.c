/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * dcx_selftest: tests what dcx assumes of a device, and writes a profile, which
 * dcx reads when it opens a device of this kind. See dcx_selftest(1).
 */
#include "perf_boot.h"
#include "perf_say.h"
#include "selftest_listen.h"
#include "selftest_peer.h"
#include "uct/dcx/dev/dcx_device.h"

#include <errno.h>
#include <getopt.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define SELFTEST_CLAIM(_feature) (1u << UCT_DCX_PROFILE_##_feature)
#define SELFTEST_TAGS            "UCX_DCX_TM_ENABLE=try"
#define SELFTEST_STRICT          "UCX_DCX_PCI_RELAXED_ORDERING=n"
#define SELFTEST_RELAXED         "UCX_DCX_PCI_RELAXED_ORDERING=try"
#define SELFTEST_REORDER         "UCX_DCX_AR_ENABLE=try", SELFTEST_RELAXED
#define SELFTEST_OWN_KEYS        SELFTEST_TAGS, "UCX_DCX_TM_COMMON_KEY=n"

/* --- probes --------------------------------------------------------------- */
#define SELFTEST_NO_ORDER \
    "set UCX_DCX_AR_ENABLE=n and UCX_DCX_PCI_RELAXED_ORDERING=n"
#define SELFTEST_NO_KSM "memory cannot be invalidated when a peer fails"
#define SELFTEST_NO_UMR "strided data is copied, or sent piece by piece"
#define SELFTEST_NO_TM  "software matches tags"

/* The probes; the last one has no name */
static const struct selftest_probe selftest_probes[] = {
    {"open", "the device opens, a put and a get to itself arrive",
     "dcx does not work here", .run = selftest_open},
    {"mmio_db", "WQEs posted by doorbell", "set another UCX_DCX_MMIO_MODE",
     .run = selftest_post_sizes, .options = {"UCX_DCX_MMIO_MODE=db"}},
    {"mmio_bf", "WQEs posted by BlueFlame", "set UCX_DCX_MMIO_MODE=db",
     .run = selftest_post_sizes, .options = {"UCX_DCX_MMIO_MODE=bf_post"}},
    {"mmio_bf_mt", "WQEs posted by BlueFlame, for threads",
     "set UCX_DCX_MMIO_MODE=db", .run = selftest_post_sizes,
     .options = {"UCX_DCX_MMIO_MODE=bf_post_mt"}},
    {"messages", "messages of each size", "dcx does not work here",
     .run = selftest_messages},
    {"order", "a flush completes after large gets",
     "do not use dcx here: data could be used before it has arrived",
     .run = selftest_order},
    {"fence", "operations after a fence are visible after a large put",
     SELFTEST_NO_ORDER, .run = selftest_fence, .options = {SELFTEST_REORDER}},
    {"recovery", "a DCI works again after an error",
     "a peer that fails takes the process along", .run = selftest_recovery},
    {"strict", "bandwidth without relaxed ordering of PCIe",
     "large transfers do not work", .run = selftest_bandwidth,
     .options = {SELFTEST_STRICT}},
    {"relaxed", "bandwidth with relaxed ordering of PCIe",
     "set UCX_DCX_PCI_RELAXED_ORDERING=n", .run = selftest_bandwidth,
     .options = {SELFTEST_RELAXED}},
    {"ksm_boundary", "an mkey for invalidation across 2 GiB", SELFTEST_NO_KSM,
     .run = selftest_ksm_boundary},
    {"ksm_large", "an mkey for invalidation of 5 GiB", SELFTEST_NO_KSM,
     .run = selftest_ksm_large},
    {"ksm_read_only", "an mkey for invalidation of read-only memory",
     SELFTEST_NO_KSM, .run = selftest_ksm_read_only},
    {"invalidation", "invalidated memory cannot be accessed", SELFTEST_NO_KSM,
     .run = selftest_invalidation},
    {"list4", "a layout of 4 pieces", SELFTEST_NO_UMR, .run = selftest_list4},
    {"list20", "a layout of 20 pieces", SELFTEST_NO_UMR,
     .run = selftest_list20},
    {"list53", "a layout of 53 pieces", SELFTEST_NO_UMR,
     .run = selftest_list53},
    {"list1024", "layouts of 1,024 and of 4,096 pieces", SELFTEST_NO_UMR,
     .run = selftest_list1024},
    {"inline52", "52 pieces within a WQE",
     "dcx puts up to 20 into a WQE, more into memory", .run = selftest_inline52,
     .claims = SELFTEST_CLAIM(INLINE)},
    {"strided", "a strided layout", SELFTEST_NO_UMR, .run = selftest_strided},
    {"list_over", "a list over a strided layout", SELFTEST_NO_UMR,
     .run = selftest_list_over},
    {"nests", "a strided layout over another one",
     "dcx gives the device a list of pieces instead", .run = selftest_nests,
     .claims = SELFTEST_CLAIM(NESTS)},
    {"depth", "layouts over layouts",
     "dcx gives the device a list of pieces instead", .run = selftest_depth},
    {"changes", "1,000 changes of a layout", SELFTEST_NO_UMR,
     .run = selftest_changes},
    {"local_inv", "a freed layout cannot be accessed", SELFTEST_NO_UMR,
     .run = selftest_local_inv},
    {"umr_cost", "the cost of changing a layout, and of a copy",
     SELFTEST_NO_UMR, .run = selftest_umr_cost},
    {"tm_eager", "tags: messages into posted buffers", SELFTEST_NO_TM,
     .run = selftest_tm_eager, .options = {SELFTEST_TAGS}},
    {"tm_rndv", "tags: the device fetches large messages", SELFTEST_NO_TM,
     .run = selftest_tm_rndv, .options = {SELFTEST_TAGS}},
    {"tm_keys", "tags: receives into lists and strided layouts",
     "software matches these receives", .run = selftest_tm_keys,
     .claims = SELFTEST_CLAIM(TM_KEYS), .options = {SELFTEST_TAGS}},
    {"tm_appends", "tags: 100,000 posted buffers", SELFTEST_NO_TM,
     .run = selftest_tm_appends, .options = {SELFTEST_TAGS}},
    {"tm_own_keys", "tags: the DC access key of the device's fetches (tm_key)",
     "leave UCX_DCX_TM_COMMON_KEY=y", .run = selftest_tm_own_keys,
     .options = {SELFTEST_OWN_KEYS}},

    {"wire_open", "a put and a get arrive at the peer",
     "dcx does not work on this network", .run = selftest_open,
     .needs_peer = true},
    {"wire_messages", "messages of each size, to the peer",
     "dcx does not work on this network", .run = selftest_messages,
     .needs_peer = true},
    {"wire_order", "a flush completes after large gets from the peer",
     "do not use dcx here: data could be used before it has arrived",
     .run = selftest_order, .needs_peer = true},
    {"wire_fence",
     "operations after a fence are visible after a large put, at the peer",
     SELFTEST_NO_ORDER, .run = selftest_fence, .options = {SELFTEST_REORDER},
     .needs_peer = true},
    {"wire_recovery", "a DCI works again after an error of the peer",
     "a peer that fails takes the process along", .run = selftest_recovery,
     .needs_peer = true},
    {"wire_strict", "bandwidth without relaxed ordering of PCIe",
     "large transfers do not work", .run = selftest_bandwidth,
     .options = {SELFTEST_STRICT}, .needs_peer = true},
    {"wire_relaxed", "bandwidth with relaxed ordering of PCIe",
     "set UCX_DCX_PCI_RELAXED_ORDERING=n", .run = selftest_bandwidth,
     .options = {SELFTEST_RELAXED}, .needs_peer = true},
    {"wire_invalidation", "the peer's invalidated memory cannot be accessed",
     SELFTEST_NO_KSM, .run = selftest_invalidation, .needs_peer = true},
    {"wire_lists", "layouts of 4 to 4,096 pieces of the peer's memory",
     SELFTEST_NO_UMR, .run = selftest_lists, .needs_peer = true},
    {"wire_strided", "a strided layout of the peer's memory", SELFTEST_NO_UMR,
     .run = selftest_strided, .needs_peer = true},
    {"wire_list_over", "a list over a strided layout, at the peer",
     SELFTEST_NO_UMR, .run = selftest_list_over, .needs_peer = true},
    {"wire_tm_eager", "tags: messages into the peer's posted buffers",
     SELFTEST_NO_TM, .run = selftest_tm_eager, .options = {SELFTEST_TAGS},
     .needs_peer = true},
    {"wire_tm_rndv", "tags: the peer's device fetches large messages",
     SELFTEST_NO_TM, .run = selftest_tm_rndv, .options = {SELFTEST_TAGS},
     .needs_peer = true},
    {"wire_tm_own_keys", "tags: the DC access key of its fetches (wire_tm_key)",
     "leave UCX_DCX_TM_COMMON_KEY=y", .run = selftest_tm_own_keys,
     .options = {SELFTEST_OWN_KEYS}, .needs_peer = true},
    {.name = NULL},
};

/* Calls that a target in another process serves */
static const selftest_serve_t selftest_calls[SELFTEST_OPS] = {
    [SELFTEST_MEET]      = selftest_serve_meet,
    [SELFTEST_WRITE]     = selftest_serve_write,
    [SELFTEST_READ]      = selftest_serve_read,
    [SELFTEST_TAKE]      = selftest_serve_take,
    [SELFTEST_TAKE_BACK] = selftest_serve_take_back,
    [SELFTEST_LAYOUT]    = selftest_serve_layout,
    [SELFTEST_MESSAGE]   = selftest_serve_message,
    [SELFTEST_FENCES]    = selftest_serve_fences,
    [SELFTEST_RECV]      = selftest_serve_recv,
    [SELFTEST_RECV_TEST] = selftest_serve_recv_test,
};

/* --- arguments ------------------------------------------------------------ */
struct selftest_args {
    const char *device; /* "mlx5_0:1", or NULL */
    const char *output; /* NULL: the user's folder */
    const char *probe;  /* to run in this process, or NULL */
    const char *host;   /* of the peer, or NULL */
    const char *port;
    unsigned timeout; /* seconds of a probe */
    int serve;        /* see struct selftest_how */
    bool listens;
    bool any_driver;
    bool is_list;
};

static void selftest_usage(void)
{
    puts("Usage: dcx-run [--soft | --hw] dcx_selftest [OPTION...]\n"
         "\n"
         "Proves on a device what dcx assumes of it, in less than a minute, "
         "and writes a\nprofile that dcx reads when it opens a device of that "
         "kind. See dcx_selftest(1).\n"
         "\n"
         "  --device NAME     such as mlx5_0:1; else the first that dcx can "
         "use\n"
         "  --output FILE     write the profile to FILE, not to ~/.config/dcx\n"
         "  --listen          be the peer of one test on another node\n"
         "  --peer HOST       test with it over the wire, too\n"
         "  --port PORT       of --listen and --peer; " PERF_PORT "\n"
         "  --any-driver      the profile holds for every release of the "
         "kernel\n"
         "  --timeout SECONDS after which a probe has hung; 30\n"
         "  --list            print the names of the probes, and what each "
         "proves\n"
         "  --probe NAME      run one probe in this process, for a debugger\n"
         "  -h, --help        print this text and exit\n"
         "  --version         print the version and exit");
}

static void selftest_parse(struct selftest_args *args, int argc, char **argv)
{
    static const struct option options[] = {
        {"device", required_argument, NULL, 'd'},
        {"output", required_argument, NULL, 'o'},
        {"any-driver", no_argument, NULL, 'a'},
        {"list", no_argument, NULL, 'l'},
        {"listen", no_argument, NULL, 'L'},
        {"peer", required_argument, NULL, 'r'},
        {"port", required_argument, NULL, 'P'},
        {"serve", required_argument, NULL, 's'}, /* internal, for --listen */
        {"timeout", required_argument, NULL, 't'},
        {"probe", required_argument, NULL, 'p'},
        {"help", no_argument, NULL, 'h'},
        {"version", no_argument, NULL, 'v'},
        {NULL, 0, NULL, 0},
    };
    int option;

    memset(args, 0, sizeof(*args));
    args->timeout = 30;
    args->port    = PERF_PORT;
    while ((option = getopt_long(argc, argv, "h", options, NULL)) != -1) {
        switch (option) {
        case 'd':
            args->device = optarg;
            break;
        case 'o':
            args->output = optarg;
            break;
        case 'a':
            args->any_driver = true;
            break;
        case 'l':
            args->is_list = true;
            break;
        case 'L':
            args->listens = true;
            break;
        case 'r':
            args->host = optarg;
            break;
        case 'P':
            args->port = optarg;
            break;
        case 's':
            args->serve = atoi(optarg);
            break;
        case 'p':
            args->probe = optarg;
            break;
        case 't':
            args->timeout = strtoul(optarg, NULL, 10);
            break;
        case 'h':
            selftest_usage();
            exit(PERF_GOOD);
        case 'v':
            puts("dcx_selftest (dcx) " DCX_VERSION);
            exit(PERF_GOOD);
        default:
            exit(PERF_USAGE);
        }
    }
    if ((args->timeout == 0) || (args->timeout > SELFTEST_TIMEOUT_MAX)) {
        perf_wrong_call("--timeout takes 1 to 3600 seconds");
    }
    if (args->listens && (args->host != NULL)) {
        perf_wrong_call("--listen is for one side, --peer for the other");
    }
    if (optind < argc) {
        perf_wrong_call("unknown argument %s (dcx_selftest --help)",
                        argv[optind]);
    }
}

/* --- one probe ------------------------------------------------------------ */
static int selftest_probe(const struct selftest_args *args)
{
    static struct selftest_loop loop;
    const struct selftest_probe *probe = selftest_probes;

    while ((probe->name != NULL) && strcmp(probe->name, args->probe)) {
        probe++;
    }
    if (probe->name == NULL) {
        perf_wrong_call("no probe is called %s (dcx_selftest --list)",
                        args->probe);
    }
    if (probe->needs_peer && (args->host == NULL) && (args->serve == 0)) {
        perf_wrong_call("%s needs --peer", probe->name);
    }
    loop.device  = args->device;
    loop.probe   = probe->name;
    loop.timeout = args->timeout;
    loop.host    = probe->needs_peer ? args->host : NULL;
    loop.port    = args->port;
    loop.fd      = args->serve;
    loop.serves  = (args->serve != 0);
    loop.calls   = selftest_calls;
    probe->run(&loop);
    fflush(stdout);
    return SELFTEST_PASS;
}

static void selftest_list(void)
{
    for (const struct selftest_probe *probe = selftest_probes;
         probe->name != NULL; probe++) {
        printf("%-17s %s\n", probe->name, probe->proves);
    }
}

/* --- all of them ---------------------------------------------------------- */
struct selftest {
    const struct selftest_args *args;
    char device[PERF_DEVICE_MAX];
    uct_dcx_profile_id_t id;
    char results[SELFTEST_TEXT]; /* for the profile */
    char folder[32];
    char claim[64]; /* path of a probe's profile */
    unsigned counts[SELFTEST_NUM];
    bool has_devx;
    int peer; /* connection to the peer, if any */
};

static void selftest_print_lines(const char *text)
{
    size_t length;

    for (; *text != '\0'; text += length + (text[length] != '\0')) {
        length = strcspn(text, "\n");
        printf("         %.*s\n", (int)length, text);
    }
}

static void selftest_report(struct selftest *test,
                            const struct selftest_probe *probe,
                            const struct selftest_report *report)
{
    static const char *const words[SELFTEST_NUM][2] = {
        [SELFTEST_PASS]    = {"PASS", "pass"},
        [SELFTEST_FAIL]    = {"FAIL", "fail"},
        [SELFTEST_REFUSED] = {"REFUSED", "refused"},
        [SELFTEST_NOT_RUN] = {"NOT RUN", "not_run"},
    };
    size_t length = strlen(test->results);

    test->counts[report->result]++;
    printf("%-8s %-17s %s\n", words[report->result][0], probe->name,
           probe->proves);
    selftest_print_lines(report->notes);
    selftest_print_lines(report->values);
    if (report->result != SELFTEST_PASS) {
        selftest_print_lines(report->reasons);
    }
    if ((report->result == SELFTEST_FAIL) ||
        (report->result == SELFTEST_REFUSED)) {
        printf("         without it: %s\n", probe->without);
    }
    snprintf(test->results + length, sizeof(test->results) - length,
             "%s %s\n%s", probe->name, words[report->result][1],
             report->values);
}

/* Identifies the device that dcx has chosen, by libibverbs. */
static void selftest_identify(struct selftest *test)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    uct_dcx_device_t device;

    for (unsigned i = 0; (list != NULL) && (list[i] != NULL); i++) {
        const char *name = ibv_get_device_name(list[i]);

        if (strncmp(name, test->device, strlen(name)) ||
            (test->device[strlen(name)] != ':')) {
            continue;
        }
        if (uct_dcx_device_open(&device, list[i], UCS_TRY, UCS_TRY, "none") ==
            UCS_OK) {
            uct_dcx_profile_identify(&test->id, list[i], &device.attr);
            test->has_devx = device.has_devx;
            uct_dcx_device_close(&device);
            ibv_free_device_list(list);
            return;
        }
    }
    perf_fail("%s: failed to query the firmware", test->device);
}

/* Runs the first probe, which reports the device that dcx chooses. Returns true
 * if it has passed. */
static bool selftest_begin(struct selftest *test)
{
    const struct selftest_probe *probe = selftest_probes;
    struct selftest_how how            = {.device  = test->args->device,
                                          .profile = "none",
                                          .timeout = test->args->timeout};
    struct selftest_report report;

    selftest_run(probe, &how, &report);
    if (sscanf(report.values, "device %63s", test->device) == 1) {
        selftest_identify(test);
        if (test->args->any_driver) {
            strcpy(test->id.driver, "any");
        }
        printf("# dcx_selftest " DCX_VERSION ", %s: part %u, PSID %s, firmware "
               "%s, kernel %s\n",
               test->device, test->id.part, test->id.psid, test->id.firmware,
               test->id.driver);
        report.values[0] = '\0';
    }
    selftest_report(test, probe, &report);
    return report.result == SELFTEST_PASS;
}

/* Writes a profile in which only the features @claims have passed. Returns its
 * path; "none" if @claims is 0. */
static const char *selftest_claim(struct selftest *test, unsigned claims)
{
    char text[256] = "";

    if (claims == 0) {
        return "none";
    }
    for (unsigned i = 0; i < UCT_DCX_PROFILE_NUM; i++) {
        size_t length = strlen(text);

        snprintf(text + length, sizeof(text) - length, "%s %s\n",
                 uct_dcx_profile_names[i],
                 (claims & (1u << i)) ? "pass" : "fail");
    }
    if (uct_dcx_profile_write(test->claim, &test->id, text) != UCS_OK) {
        exit(PERF_BAD);
    }
    return test->claim;
}

/* Returns true if there is a peer that still runs. Probes with a peer come
 * last. */
static bool selftest_has_peer(struct selftest *test)
{
    if ((test->args->host != NULL) && selftest_peer_is_gone(test->peer)) {
        printf("# the peer has ended: skipping its other probes\n");
        test->counts[SELFTEST_NOT_RUN]++;
        return false;
    }
    return test->args->host != NULL;
}

static void selftest_run_all(struct selftest *test)
{
    struct selftest_how how = {.device  = test->device,
                               .timeout = test->args->timeout,
                               .host    = test->args->host,
                               .port    = test->args->port};
    struct selftest_report report;

    snprintf(test->folder, sizeof(test->folder), "/tmp/dcx_selftest.XXXXXX");
    if (mkdtemp(test->folder) == NULL) {
        perf_fail("%s: %s", test->folder, strerror(errno));
    }
    snprintf(test->claim, sizeof(test->claim), "%s/claim", test->folder);
    for (const struct selftest_probe *probe = selftest_probes + 1;
         probe->name != NULL; probe++) {
        if (probe->needs_peer && !selftest_has_peer(test)) {
            break;
        }
        how.profile = selftest_claim(test, probe->claims);
        selftest_run(probe, &how, &report);
        if (probe->needs_peer && (report.result == SELFTEST_FAIL) &&
            selftest_peer_is_gone(test->peer)) {
            report.result = SELFTEST_NOT_RUN;
        }
        selftest_report(test, probe, &report);
    }
    unlink(test->claim);
    rmdir(test->folder);
}

static void selftest_make_folders(const char *path)
{
    char folder[PATH_MAX];

    snprintf(folder, sizeof(folder), "%s", path);
    for (char *slash = strchr(folder + 1, '/'); slash != NULL;
         slash       = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(folder, 0755);
        *slash = '/';
    }
}

static void selftest_save(const struct selftest *test)
{
    char path[PATH_MAX];

    if (!test->has_devx) {
        printf("# no profile is written: %s was opened without DEVX, and the "
               "profile would disable what needs DEVX for good; see dcx_info "
               "and docs/hardware.md (UCTX_EN)\n",
               test->device);
        return;
    }
    if (test->args->output != NULL) {
        snprintf(path, sizeof(path), "%s", test->args->output);
    } else if (uct_dcx_profile_user_path(&test->id, path) == UCS_OK) {
        selftest_make_folders(path);
    } else {
        perf_fail("neither XDG_CONFIG_HOME nor HOME is set: name a file with "
                  "--output");
    }
    if (uct_dcx_profile_write(path, &test->id, test->results) != UCS_OK) {
        exit(PERF_BAD);
    }
    printf("# %s\n", path);
}

/* Closes the connection of the test. A last byte tells the peer that the test
 * has completed. */
static void selftest_goodbye(const struct selftest *test)
{
    if (test->args->host != NULL) {
        (void)send(test->peer, "", 1, MSG_NOSIGNAL);
        close(test->peer);
    }
}

static int selftest_test(const struct selftest_args *args)
{
    static struct selftest test;

    test.args = args;
    if (args->host != NULL) {
        test.peer = selftest_peer_connect(args->host, args->port, "", 0);
    }
    if (selftest_begin(&test)) {
        selftest_run_all(&test);
        printf("# %u passed, %u failed, %u refused, %u not run\n",
               test.counts[SELFTEST_PASS], test.counts[SELFTEST_FAIL],
               test.counts[SELFTEST_REFUSED], test.counts[SELFTEST_NOT_RUN]);
        selftest_save(&test);
    }
    selftest_goodbye(&test);
    return (test.counts[SELFTEST_FAIL] + test.counts[SELFTEST_REFUSED] +
                test.counts[SELFTEST_NOT_RUN] ==
            0) ?
               PERF_GOOD :
               PERF_BAD;
}

int main(int argc, char **argv)
{
    struct selftest_args args;
    struct selftest_how how = {.profile = "none"};

    selftest_parse(&args, argc, argv);
    if (args.probe != NULL) {
        return selftest_probe(&args);
    }
    if (args.is_list) {
        selftest_list();
        return PERF_GOOD;
    }
    if (args.listens) {
        how.device = args.device;
        how.port   = args.port;
        return selftest_listen(selftest_probes, &how);
    }
    return selftest_test(&args);
}
