/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Tagged messages with several variants of UCX's settings, in turn:
 *
 *     tag_turns ROUNDS "NAME=VALUE..." "NAME=VALUE..."...
 *
 * Two processes have a worker for each variant, opened with its variables set.
 * Each round runs a burst of about a millisecond for each variant, like
 * ucx_perftest's tag_lat (both directions) and tag_bw (one direction, the next
 * message after the last is sent), with the same buffers, so that other load on
 * the machine affects all variants. Prints for each test and size, 8 bytes to 4
 * MiB:
 *
 *     TEST SIZE   us of a message of the first variant   RATIO...
 *
 * A ratio for each other variant is its time over the first one's in the same
 * round. All are medians over the rounds. The data of the last message of each
 * size is compared.
 */
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <ucp/api/ucp.h>
#include <unistd.h>

#define CHECK(_expr) check((_expr), #_expr)

enum {
    MAX_VARIANTS = 8,
    MAX_ROUNDS   = 1000,
    MAX_SIZE     = 4 << 20,
    WARM_UP      = 3,    /* rounds that are not counted */
    SPINS        = 4096, /* calls of progress before a yield of the core */
    TAG          = 1,
    TAG_DONE     = 2
};

struct variant {
    ucp_context_h context;
    ucp_worker_h worker;
    ucp_ep_h ep;
};

struct job {
    int sender;    /* 1 in the parent */
    int sock;      /* socket to the other process */
    unsigned seed; /* for the order of variants */
    int rounds;
    int count;
    struct variant variants[MAX_VARIANTS];
    char *buf;
    size_t size;
    int messages; /* messages of a burst */
};

typedef void (*burst_t)(const struct job *job, const struct variant *variant);

static void check(ucs_status_t status, const char *what)
{
    if (status != UCS_OK) {
        fprintf(stderr, "tag_turns: %s: %s\n", what, ucs_status_string(status));
        exit(1);
    }
}

static double now_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1e6 + now.tv_nsec * 1e-3;
}

static void finish(const struct variant *variant, void *request)
{
    unsigned spins = 0;

    if (request == NULL) {
        return;
    }
    check(UCS_PTR_IS_ERR(request) ? UCS_PTR_STATUS(request) : UCS_OK,
          "request");
    while (ucp_request_check_status(request) == UCS_INPROGRESS) {
        ucp_worker_progress(variant->worker);
        if (++spins % SPINS == 0) {
            sched_yield();
        }
    }
    check(ucp_request_check_status(request), "request");
    ucp_request_free(request);
}

static void send_one(const struct variant *variant, char *buf, size_t size,
                     ucp_tag_t tag)
{
    ucp_request_param_t param = {0};

    finish(variant, ucp_tag_send_nbx(variant->ep, buf, size, tag, &param));
}

static void receive_one(const struct variant *variant, char *buf, size_t size,
                        ucp_tag_t tag)
{
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FLAG_NO_IMM_CMPL};

    finish(variant, ucp_tag_recv_nbx(variant->worker, buf, size, tag,
                                     UINT64_MAX, &param));
}

static void burst_lat(const struct job *job, const struct variant *variant)
{
    char *in = job->buf + MAX_SIZE;
    int i;

    for (i = 0; i < job->messages; i++) {
        if (job->sender) {
            send_one(variant, job->buf, job->size, TAG);
            receive_one(variant, in, job->size, TAG);
        } else {
            receive_one(variant, in, job->size, TAG);
            send_one(variant, job->buf, job->size, TAG);
        }
    }
}

static void burst_bw(const struct job *job, const struct variant *variant)
{
    char *in = job->buf + MAX_SIZE;
    int i;

    for (i = 0; i < job->messages; i++) {
        if (job->sender) {
            send_one(variant, job->buf, job->size, TAG);
        } else {
            receive_one(variant, in, job->size, TAG);
        }
    }
    if (job->sender) {
        receive_one(variant, NULL, 0, TAG_DONE);
    } else {
        send_one(variant, NULL, 0, TAG_DONE);
    }
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median(double *values, int count)
{
    qsort(values, count, sizeof(*values), compare);
    return values[count / 2];
}

/* Orders the variants at random, the same in both processes: each follows every
 * other one equally often, with the caches that it leaves. */
static void shuffle(struct job *job, int *order)
{
    int i, j;

    for (i = 0; i < job->count; i++) {
        j        = rand_r(&job->seed) % (i + 1);
        order[i] = order[j];
        order[j] = i;
    }
}

/* Sets 'us' to the microseconds of each variant's burst. */
static void run_round(struct job *job, burst_t burst, double *us)
{
    int order[MAX_VARIANTS];
    double start;
    int i, v;

    shuffle(job, order);
    for (i = 0; i < job->count; i++) {
        v     = order[i];
        start = now_us();
        burst(job, &job->variants[v]);
        us[v] = now_us() - start;
    }
}

/* @ways: how often a message of the burst crosses */
static void run(struct job *job, const char *name, burst_t burst, int ways)
{
    static double values[MAX_VARIANTS][MAX_ROUNDS];
    static int byte;
    double us[MAX_VARIANTS];
    int i, v;

    memset(job->buf, ++byte, job->size);
    for (i = 0; i < WARM_UP; i++) {
        run_round(job, burst, us);
    }
    for (i = 0; i < job->rounds; i++) {
        run_round(job, burst, us);
        values[0][i] = us[0] / ways / job->messages;
        for (v = 1; v < job->count; v++) {
            values[v][i] = us[v] / us[0];
        }
    }
    if (!job->sender) {
        check(memcmp(job->buf, job->buf + MAX_SIZE, job->size) ?
                  UCS_ERR_IO_ERROR :
                  UCS_OK,
              "data");
        return;
    }
    printf("%s %zu", name, job->size);
    for (v = 0; v < job->count; v++) {
        printf(" %.3f", median(values[v], job->rounds));
    }
    printf("\n");
    fflush(stdout);
}

/* Sets the variables of a variant, "NAME=VALUE...". */
static void set_variables(char *settings)
{
    char *pair, *rest;

    for (pair = strtok_r(settings, " ", &rest); pair != NULL;
         pair = strtok_r(NULL, " ", &rest)) {
        putenv(pair);
    }
}

static void exchange(const struct job *job, const void *own, size_t own_length,
                     void *peer, size_t room)
{
    if ((send(job->sock, own, own_length, 0) < 0) ||
        (recv(job->sock, peer, room, 0) <= 0)) {
        check(UCS_ERR_IO_ERROR, "the other process");
    }
}

static void variant_open(const struct job *job, struct variant *variant)
{
    ucp_params_t params               = {.field_mask = UCP_PARAM_FIELD_FEATURES,
                                         .features   = UCP_FEATURE_TAG};
    ucp_worker_params_t worker_params = {0};
    ucp_ep_params_t ep_params         = {
                .field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS,
    };
    ucp_address_t *address;
    char peer[4096];
    size_t length;

    CHECK(ucp_init(&params, NULL, &variant->context));
    CHECK(
        ucp_worker_create(variant->context, &worker_params, &variant->worker));
    CHECK(ucp_worker_get_address(variant->worker, &address, &length));
    exchange(job, address, length, peer, sizeof(peer));
    ucp_worker_release_address(variant->worker, address);
    ep_params.address = (ucp_address_t *)peer;
    CHECK(ucp_ep_create(variant->worker, &ep_params, &variant->ep));
}

/* Neither side closes before the other has received everything. */
static void variant_close(const struct job *job, struct variant *variant)
{
    ucp_request_param_t param = {0};
    char byte                 = 0;

    finish(variant, ucp_ep_close_nbx(variant->ep, &param));
    exchange(job, &byte, 1, &byte, 1);
    ucp_worker_destroy(variant->worker);
    ucp_cleanup(variant->context);
}

static void run_all(struct job *job, char **settings)
{
    int v;

    job->buf = calloc(2, MAX_SIZE);
    check(job->buf ? UCS_OK : UCS_ERR_NO_MEMORY, "calloc");
    for (v = 0; v < job->count; v++) {
        set_variables(settings[v]);
        variant_open(job, &job->variants[v]);
    }
    for (job->size = 8; job->size <= MAX_SIZE; job->size *= 2) {
        job->messages = (job->size <= 16384)  ? 64 :
                        (job->size <= 262144) ? 16 :
                                                4;
        run(job, "tag_lat", burst_lat, 2);
        run(job, "tag_bw", burst_bw, 1);
    }
    for (v = 0; v < job->count; v++) {
        variant_close(job, &job->variants[v]);
    }
    free(job->buf);
}

int main(int argc, char **argv)
{
    struct job job = {.rounds = (argc > 1) ? atoi(argv[1]) : 0,
                      .count  = argc - 2};
    int socks[2], status = 0;

    if ((job.rounds < 1) || (job.rounds > MAX_ROUNDS) || (job.count < 1) ||
        (job.count > MAX_VARIANTS)) {
        fprintf(stderr, "usage: tag_turns ROUNDS NAME=VALUE...\n");
        return 2;
    }
    check(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, socks) ? UCS_ERR_IO_ERROR :
                                                          UCS_OK,
          "socketpair");
    job.sender = fork() != 0;
    job.sock   = socks[job.sender];
    close(socks[!job.sender]);
    run_all(&job, argv + 2);
    if (job.sender) {
        wait(&status);
    }
    return status != 0;
}
