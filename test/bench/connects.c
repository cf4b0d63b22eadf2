/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Connections that the initiators of one transport make:
 *
 *     connects TRANSPORT DEVICE PEERS ORDER INITIATORS WINDOW [MORE]
 *
 * One interface puts 8 bytes to each of PEERS others, WINDOW puts at a time;
 * then it makes progress until all have ended. A put that finds no room becomes
 * a pending request. ORDER is the order of the puts:
 *
 *     ABAB     1 to a peer, then 1 to the next one
 *     AAABBB   64 to a peer, then 64 to the next one
 *
 * MORE peers get the first puts, and none later. With WINDOW 0 each put is
 * followed by a flush of its endpoint with a completion.
 *
 * Prints, after as many puts to warm up:
 *
 *     connections of 1,000 puts   turns of others that a peer waited at most
 *
 * A turn is a row of puts to one peer. The device counts connections for all
 * processes.
 */
#include "uct_pair.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    BURST      = 64, /* puts to a peer in a row, with AAABBB */
    MAX_WINDOW = 1024,
    PUTS       = 8192
};

struct peer {
    struct bench_side side;
    uct_ep_h ep;
    unsigned waiting; /* pending requests */
    unsigned since;   /* turn of its first one, or of its last put */
};

struct request {
    uct_pending_req_t super; /* first */
    struct bench *bench;
    struct peer *peer;
    struct request *next; /* free ones */
};

struct bench {
    struct bench_pair pair;
    struct peer *peers;
    unsigned num_peers;
    struct request requests[MAX_WINDOW];
    struct request *free;
    unsigned waiting;
    const struct peer *last; /* peer of the last put */
    unsigned turns;
    unsigned longest;
};

static unsigned long num_connects(const char *dev)
{
    char path[256];
    unsigned long count = 0;
    FILE *file;

    snprintf(path, sizeof(path),
             "/sys/class/infiniband/%.*s/ports/1/hw_counters/rx_dct_connect",
             (int)strcspn(dev, ":"), dev);
    file = fopen(path, "r");
    if ((file == NULL) || (fscanf(file, "%lu", &count) != 1)) {
        fprintf(stderr, "connects: cannot read %s\n", path);
        exit(1);
    }
    fclose(file);
    return count;
}

/* Puts 8 bytes to a peer, and counts turns and its wait. */
static ucs_status_t put(struct bench *bench, struct peer *peer)
{
    ucs_status_t status =
        uct_ep_put_short(peer->ep, bench->pair.mem, 8,
                         (uintptr_t)bench->pair.mem + (BENCH_MEM_SIZE / 2),
                         bench->pair.rkey.rkey);

    if (status != UCS_OK) {
        return status;
    }

    if (bench->last != peer) {
        bench->last = peer;
        bench->turns++;
        if ((peer->waiting > 0) &&
            (bench->turns - peer->since > bench->longest)) {
            bench->longest = bench->turns - peer->since;
        }
    }
    peer->since = bench->turns;
    return UCS_OK;
}

static ucs_status_t put_pending(uct_pending_req_t *req)
{
    struct request *request = (struct request *)req;
    struct bench *bench     = request->bench;
    ucs_status_t status     = put(bench, request->peer);

    if (status == UCS_OK) {
        request->peer->waiting--;
        bench->waiting--;
        request->next = bench->free;
        bench->free   = request;
    }
    return status;
}

/* Makes a put wait for room. Returns 0 if there is some meanwhile. */
static int wait_for_room(struct bench *bench, struct peer *peer)
{
    struct request *request = bench->free;

    request->super.func = put_pending;
    request->peer       = peer;
    if (uct_ep_pending_add(peer->ep, &request->super, 0) != UCS_OK) {
        return 0;
    }
    bench->free = request->next;
    bench->waiting++;
    if (peer->waiting++ == 0) {
        peer->since = bench->turns;
    }
    return 1;
}

/* Puts behind those of the same peer that wait. */
static void put_or_wait(struct bench *bench, struct peer *peer)
{
    int done = (peer->waiting == 0) && (put(bench, peer) == UCS_OK);

    while (!done && !wait_for_room(bench, peer)) {
        done = (put(bench, peer) == UCS_OK);
    }
}

/* Ends a flush. */
static void flushed(uct_completion_t *comp)
{
    (void)comp;
}

static void flush_ep(struct bench *bench, struct peer *peer)
{
    uct_completion_t comp = {.func = flushed, .count = 1, .status = UCS_OK};

    if (uct_ep_flush(peer->ep, 0, &comp) == UCS_INPROGRESS) {
        while (comp.count > 0) {
            uct_worker_progress(bench->pair.a.worker);
        }
    }
}

static void run(struct bench *bench, unsigned peers, unsigned burst,
                unsigned window)
{
    struct peer *peer;
    unsigned i;

    for (i = 0; i < PUTS; i++) {
        peer = &bench->peers[(i / burst) % peers];
        put_or_wait(bench, peer);
        if (window == 0) {
            flush_ep(bench, peer);
        } else if ((i + 1) % window == 0) {
            while (bench->waiting > 0) {
                uct_worker_progress(bench->pair.a.worker);
            }
            bench_pair_flush(&bench->pair);
        }
    }
}

/* Each peer is an interface, with a target of its own. */
static void open_peers(struct bench *bench, const char *tl, const char *dev)
{
    uct_ep_params_t params = {
        .field_mask = UCT_EP_PARAM_FIELD_IFACE | UCT_EP_PARAM_FIELD_DEV_ADDR |
                      UCT_EP_PARAM_FIELD_IFACE_ADDR,
        .iface = bench->pair.a.iface,
    };
    unsigned i;

    bench->peers = calloc(bench->num_peers, sizeof(*bench->peers));
    bench_check(bench->peers ? UCS_OK : UCS_ERR_NO_MEMORY, "calloc");
    for (i = 0; i < bench->num_peers; i++) {
        bench_side_open(&bench->pair, &bench->peers[i].side, tl, dev);
        params.dev_addr   = bench->peers[i].side.dev_addr;
        params.iface_addr = bench->peers[i].side.iface_addr;
        BENCH_CHECK(uct_ep_create(&params, &bench->peers[i].ep));
    }
}

static void close_peers(struct bench *bench)
{
    unsigned i;

    for (i = 0; i < bench->num_peers; i++) {
        uct_ep_destroy(bench->peers[i].ep);
        bench_side_close(&bench->peers[i].side);
    }
    free(bench->peers);
}

int main(int argc, char **argv)
{
    static struct bench bench;
    unsigned long before;
    unsigned peers, burst, window, i;

    if ((argc != 7) && (argc != 8)) {
        fprintf(stderr, "usage: connects TRANSPORT DEVICE PEERS ABAB|AAABBB "
                        "INITIATORS WINDOW [MORE]\n");
        return 2;
    }
    peers           = atoi(argv[3]);
    bench.num_peers = (argc == 8) ? peers + atoi(argv[7]) : peers;
    burst           = strcmp(argv[4], "AAABBB") ? 1 : BURST;
    window          = atoi(argv[6]);
    setenv("UCX_DCX_NUM_DCI", argv[5], 1);
    setenv("UCX_DC_MLX5_NUM_DCI", argv[5], 1);
    for (i = 0; i < MAX_WINDOW; i++) {
        bench.requests[i].bench = &bench;
        bench.requests[i].next  = bench.free;
        bench.free              = &bench.requests[i];
    }

    bench_pair_open(&bench.pair, argv[1], argv[2]);
    /* of peers, which only have a target */
    setenv("UCX_DCX_RX_QUEUE_LEN", "64", 1);
    setenv("UCX_DC_MLX5_RX_QUEUE_LEN", "64", 1);
    setenv("UCX_DC_MLX5_NUM_DCI", "1", 1);
    open_peers(&bench, argv[1], argv[2]);

    run(&bench, bench.num_peers, burst, window);
    run(&bench, peers, burst, window);
    before        = num_connects(argv[2]);
    bench.longest = 0;
    run(&bench, peers, burst, window);
    printf("%.1f %u\n", (num_connects(argv[2]) - before) * 1000.0 / PUTS,
           bench.longest);
    close_peers(&bench);
    bench_pair_close(&bench.pair);
    return 0;
}
