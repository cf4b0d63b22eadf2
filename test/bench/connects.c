/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Connections that the initiators of one transport make:
 *
 *     connects TRANSPORT DEVICE PEERS ORDERS INITIATORS WINDOW [MORE]
 *
 * One interface puts 8 bytes to each of PEERS others, WINDOW puts at a time;
 * then it makes progress until all have ended. A put that finds no room becomes
 * a pending request. ORDERS is a list of orders of the puts, with commas
 * between:
 *
 *     ABAB     1 to a peer, then 1 to the next one
 *     AAABBB   64 to a peer, then 64 to the next one
 *     ALL      each peer always has a put to do
 *     TALK     a message to a peer, and one back, then to the next one
 *
 * INITIATORS is a list of numbers of initiators, each for an interface of its
 * own. MORE peers get the first puts, and none later. With WINDOW 0 each put is
 * followed by a flush of its endpoint with a completion. ALL makes progress
 * after each row of puts to all peers, TALK after each message.
 *
 * Prints a line for each number of initiators and each order, after as many
 * puts to warm up:
 *
 *     ORDER   INITIATORS   connections of 1,000 puts
 *         turns of others that a peer waited at most
 *         puts to the peer that got fewest, divided by those to the one that
 *         got most
 *
 * A turn is a row of puts to one peer. The device counts connections for all
 * processes.
 */
#include "uct_pair.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    AM_ID      = 5,
    BURST      = 64,  /* puts to a peer in a row, with AAABBB */
    ROUNDS     = 2,   /* to all peers at least */
    MANY       = 512, /* puts to each peer with ALL: many quotas; or messages */
    MAX_WINDOW = 4096,
    MIN_PUTS   = 8192
};

struct peer {
    struct bench_side side;
    uct_ep_h ep;
    uct_ep_h back; /* to our interface */
    unsigned puts;
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
    struct bench_pair pair; /* its memory, and the domain of all interfaces */
    struct bench_side from;
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
    peer->puts++;
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
            uct_worker_progress(bench->from.worker);
        }
    }
}

/* Makes progress until all puts have ended. */
static void flush(struct bench *bench)
{
    while (bench->waiting > 0) {
        uct_worker_progress(bench->from.worker);
    }
    bench_side_flush(&bench->from, &bench->pair.b);
}

/* Returns the number of puts, or of messages, of a run in which each peer gets
 * at least 'each'. */
static unsigned num_puts(unsigned peers, unsigned each)
{
    return (peers * each < MIN_PUTS) ? MIN_PUTS : peers * each;
}

/* Puts to the peers in turn, 'burst' to each. */
static unsigned run_in_turn(struct bench *bench, unsigned peers, unsigned burst,
                            unsigned window)
{
    unsigned count = num_puts(peers, ROUNDS * burst);
    struct peer *peer;
    unsigned i;

    for (i = 0; i < count; i++) {
        peer = &bench->peers[(i / burst) % peers];
        put_or_wait(bench, peer);
        if (window == 0) {
            flush_ep(bench, peer);
        } else if ((i + 1) % window == 0) {
            flush(bench);
        }
    }
    return count;
}

/* Puts to each peer that has no pending request, again and again. Returns the
 * number of puts that were done; the last ones are not counted. */
static unsigned run_all(struct bench *bench, unsigned peers)
{
    unsigned wanted = num_puts(peers, MANY);
    unsigned count  = 0;
    unsigned i;

    while (count < wanted) {
        for (i = 0, count = 0; i < peers; i++) {
            if (bench->peers[i].waiting == 0) {
                put_or_wait(bench, &bench->peers[i]);
            }
            count += bench->peers[i].puts;
        }
        uct_worker_progress(bench->from.worker);
    }
    return count;
}

/* Sends a message from either side. */
static void post_am(struct bench *bench, struct peer *peer, uct_ep_h ep)
{
    ucs_status_t status;

    while ((status = uct_ep_am_short(ep, AM_ID, 1, bench->pair.mem, 8)) ==
           UCS_ERR_NO_RESOURCE) {
        uct_worker_progress(peer->side.worker);
        uct_worker_progress(bench->from.worker);
    }
    bench_check(status, "uct_ep_am_short");
}

/* Exchanges messages with the peers in turn. Returns the number of those that
 * were sent. */
static unsigned run_talk(struct bench *bench, unsigned peers)
{
    unsigned count = num_puts(peers, MANY);
    struct peer *peer;
    unsigned i;

    for (i = 0; i < count; i++) {
        peer = &bench->peers[i % peers];
        post_am(bench, peer, peer->ep);
        post_am(bench, peer, peer->back);
        while (uct_worker_progress(peer->side.worker) +
                   uct_worker_progress(bench->from.worker) >
               0) {
        }
        peer->puts++;
    }
    return count;
}

/* Runs one order. Returns the number of puts. */
static unsigned run(struct bench *bench, unsigned peers, const char *order,
                    unsigned window)
{
    unsigned i;

    for (i = 0; i < bench->num_peers; i++) {
        bench->peers[i].puts = 0;
    }
    bench->longest = 0;
    if (!strcmp(order, "TALK")) {
        return run_talk(bench, peers);
    }
    if (!strcmp(order, "ALL")) {
        return run_all(bench, peers);
    }
    return run_in_turn(bench, peers, strcmp(order, "AAABBB") ? 1 : BURST,
                       window);
}

static double fewest_of_most(const struct bench *bench, unsigned peers)
{
    unsigned fewest = bench->peers[0].puts;
    unsigned most   = fewest;
    unsigned i;

    for (i = 1; i < peers; i++) {
        fewest = (bench->peers[i].puts < fewest) ? bench->peers[i].puts :
                                                   fewest;
        most   = (bench->peers[i].puts > most) ? bench->peers[i].puts : most;
    }
    return (double)fewest / most;
}

static void measure(struct bench *bench, const char *dev, unsigned peers,
                    const char *order, const char *initiators, unsigned window)
{
    unsigned long before;
    unsigned count;

    run(bench, bench->num_peers, order, window);
    flush(bench);
    run(bench, peers, order, window);
    flush(bench);
    before = num_connects(dev);
    count  = run(bench, peers, order, window);
    printf("%s %s %.1f %u %.2f\n", order, initiators,
           (num_connects(dev) - before) * 1000.0 / count, bench->longest,
           fewest_of_most(bench, peers));
    flush(bench);
}

/* Runs all orders with an interface that has this number of initiators. */
static void measure_orders(struct bench *bench, char **argv, unsigned peers,
                           const char *initiators)
{
    char *orders = strdup(argv[4]);
    char *order, *rest = orders;
    uct_ep_params_t params = {
        .field_mask = UCT_EP_PARAM_FIELD_IFACE | UCT_EP_PARAM_FIELD_DEV_ADDR |
                      UCT_EP_PARAM_FIELD_IFACE_ADDR,
    };
    unsigned i;

    setenv("UCX_DCX_NUM_DCI", initiators, 1);
    setenv("UCX_DC_MLX5_NUM_DCI", initiators, 1);
    bench_side_open(&bench->pair, &bench->from, argv[1], argv[2]);
    params.iface = bench->from.iface;
    for (i = 0; i < bench->num_peers; i++) {
        params.dev_addr   = bench->peers[i].side.dev_addr;
        params.iface_addr = bench->peers[i].side.iface_addr;
        BENCH_CHECK(uct_ep_create(&params, &bench->peers[i].ep));
    }
    bench_side_drop(&bench->from, AM_ID);
    params.dev_addr   = bench->from.dev_addr;
    params.iface_addr = bench->from.iface_addr;
    for (i = 0; i < bench->num_peers; i++) {
        params.iface = bench->peers[i].side.iface;
        BENCH_CHECK(uct_ep_create(&params, &bench->peers[i].back));
    }

    while ((order = strsep(&rest, ",")) != NULL) {
        measure(bench, argv[2], peers, order, initiators, atoi(argv[6]));
    }

    for (i = 0; i < bench->num_peers; i++) {
        uct_ep_destroy(bench->peers[i].ep);
        uct_ep_destroy(bench->peers[i].back);
    }
    bench_side_close(&bench->from);
    free(orders);
}

/* Each peer is an interface, with a target of its own. */
static void open_peers(struct bench *bench, const char *tl, const char *dev)
{
    unsigned i;

    bench->peers = calloc(bench->num_peers, sizeof(*bench->peers));
    bench_check(bench->peers ? UCS_OK : UCS_ERR_NO_MEMORY, "calloc");
    for (i = 0; i < bench->num_peers; i++) {
        bench_side_open(&bench->pair, &bench->peers[i].side, tl, dev);
        bench_side_drop(&bench->peers[i].side, AM_ID);
    }
}

static void close_peers(struct bench *bench)
{
    unsigned i;

    for (i = 0; i < bench->num_peers; i++) {
        bench_side_close(&bench->peers[i].side);
    }
    free(bench->peers);
}

int main(int argc, char **argv)
{
    static struct bench bench;
    unsigned peers, i;
    char *initiators;

    if ((argc != 7) && (argc != 8)) {
        fprintf(stderr, "usage: connects TRANSPORT DEVICE PEERS ORDERS "
                        "INITIATORS WINDOW [MORE]\n"
                        "orders: ABAB, AAABBB, ALL, TALK\n");
        return 2;
    }
    peers           = atoi(argv[3]);
    bench.num_peers = (argc == 8) ? peers + atoi(argv[7]) : peers;
    for (i = 0; i < MAX_WINDOW; i++) {
        bench.requests[i].bench = &bench;
        bench.requests[i].next  = bench.free;
        bench.free              = &bench.requests[i];
    }

    /* of peers, which only have a target */
    setenv("UCX_DCX_RX_QUEUE_LEN", "64", 1);
    setenv("UCX_DC_MLX5_RX_QUEUE_LEN", "64", 1);
    setenv("UCX_DCX_NUM_DCI", "1", 1);
    setenv("UCX_DC_MLX5_NUM_DCI", "1", 1);
    bench_pair_open(&bench.pair, argv[1], argv[2]);
    open_peers(&bench, argv[1], argv[2]);
    unsetenv("UCX_DCX_RX_QUEUE_LEN");
    unsetenv("UCX_DC_MLX5_RX_QUEUE_LEN");

    while ((initiators = strsep(&argv[5], ",")) != NULL) {
        measure_orders(&bench, argv, peers, initiators);
    }
    close_peers(&bench);
    bench_pair_close(&bench.pair);
    return 0;
}
