/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Strided data between two processes, compared with a program that packs:
 *
 *     strided_turns dcx DEVICE ROUNDS
 *
 * Every other block of one or both sides is moved, by put and by get. Each
 * round runs each variant, a contiguous operation, and the loops that pack and
 * unpack, in turn. Prints for each message and block
 *
 *     LENGTH BLOCK PACK UNPACK CONTIGUOUS RATIO... CONTIGUOUS RATIO...
 *
 * LENGTH and BLOCK are in bytes; PACK, UNPACK and CONTIGUOUS are in
 * microseconds. CONTIGUOUS and its ratios come first for puts, then for gets. A
 * ratio is the time of an operation with blocks on the local side, on the
 * peer's side, or on both, over that of the contiguous operation and the
 * packing and unpacking that it saves. Times and ratios are medians over the
 * rounds; each ratio is of times in one round.
 */
#include "uct_pair.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <uct/dcx/dcx.h>
#include <unistd.h>

enum {
    MAX_LENGTH = 1 << 20,
    FLAT       = 2 * MAX_LENGTH, /* offset of contiguous bytes */
    MAX_ROUNDS = 1000,
    BURST      = 1 << 16, /* minimum bytes of a turn */
    MAX_ADDR   = 64,
    NUM_CASES  = 16
};

static const struct layout {
    size_t length;
    size_t block;
} layouts[NUM_CASES] = {
    {4096, 8},           {4096, 64},         {4096, 256},
    {4096, 1024},        {65536, 8},         {65536, 64},
    {65536, 256},        {65536, 1024},      {65536, 4096},
    {65536, 16384},      {MAX_LENGTH, 8},    {MAX_LENGTH, 64},
    {MAX_LENGTH, 256},   {MAX_LENGTH, 1024}, {MAX_LENGTH, 4096},
    {MAX_LENGTH, 16384},
};

/* Sent by the peer: addresses of its device and its interface, its memory, and
 * packed keys of that memory and of the blocks of each layout */
struct card {
    uint8_t dev_addr[MAX_ADDR];
    uint8_t iface_addr[MAX_ADDR];
    uint64_t addr;
    uint8_t flat[MAX_ADDR];
    uint8_t rows[NUM_CASES][MAX_ADDR];
};

struct turns {
    struct bench_pair pair; /* its memory is the local side's */
    uct_ep_h ep;
    uint64_t addr;
    uct_rkey_bundle_t flat;
    uct_rkey_bundle_t rows[NUM_CASES];
    const struct layout *layout;
    const uct_rkey_t *layout_rkey;
    uct_completion_t comp;
    int done;
};

/* Sides of a variant that have blocks */
enum { NEAR = 1, FAR = 2 };

/* Turns of a round */
enum { PACK, UNPACK, PUT, GET = PUT + 4, NUM_TURNS = GET + 4 };

static double now_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (now.tv_sec * 1e6) + (now.tv_nsec / 1e3);
}


/* --- the peer ------------------------------------------------------------- */

/* Creates a handle of the peer's blocks: every other one from the start of
 * memory. */
static uct_mem_h expose_rows(const struct bench_pair *pair,
                             const struct layout *layout)
{
    const uct_dcx_block_t block          = {.address = (uintptr_t)pair->mem,
                                            .length  = layout->block,
                                            .skip    = layout->block,
                                            .memh    = pair->memh};
    const uct_dcx_layout_params_t params = {
        .access = UCT_MD_MEM_ACCESS_RMA,
        .repeat = layout->length / layout->block,
        .num    = 1,
        .blocks = &block,
    };
    ucs_status_t status;
    uct_mem_h memh;

    BENCH_CHECK(uct_dcx_layout_create(pair->b.iface,
                                      uct_dcx_layout_pieces(&params), &memh));
    BENCH_CHECK(uct_dcx_layout_set(memh, &params));
    while ((status = uct_dcx_layout_test(memh)) == UCS_INPROGRESS) {
    }
    bench_check(status, "uct_dcx_layout_test");
    return memh;
}

static void peer_run(int fd, const char *tl, const char *dev)
{
    uct_mem_h memh[NUM_CASES];
    struct bench_pair pair;
    struct card card;
    int i;

    bench_pair_open(&pair, tl, dev);
    memcpy(card.dev_addr, pair.b.dev_addr, pair.b.attr.device_addr_len);
    memcpy(card.iface_addr, pair.b.iface_addr, pair.b.attr.iface_addr_len);
    card.addr = (uintptr_t)pair.mem;
    BENCH_CHECK(uct_md_mkey_pack(pair.md, pair.memh, card.flat));
    for (i = 0; i < NUM_CASES; i++) {
        memh[i] = expose_rows(&pair, &layouts[i]);
        BENCH_CHECK(uct_md_mkey_pack(pair.md, memh[i], card.rows[i]));
    }
    bench_check((write(fd, &card, sizeof(card)) == sizeof(card)) ?
                    UCS_OK :
                    UCS_ERR_IO_ERROR,
                "write");
    while (read(fd, &card, 1) > 0) { /* until the other process has ended its
                                      * operations */
    }
    for (i = 0; i < NUM_CASES; i++) {
        BENCH_CHECK(uct_md_mem_dereg(pair.md, memh[i]));
    }
    bench_pair_close(&pair);
}

/* Starts the peer, a process of its own that opens the device after the fork.
 * Returns the socket to it. */
static int start_peer(const char *tl, const char *dev, pid_t *pid)
{
    int fds[2];

    bench_check((socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0) ?
                    UCS_OK :
                    UCS_ERR_IO_ERROR,
                "socketpair");
    *pid = fork();
    if (*pid == 0) {
        close(fds[0]);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        peer_run(fds[1], tl, dev);
        exit(0);
    }
    close(fds[1]);
    return fds[0];
}

static void peer_connect(struct turns *turns, int fd)
{
    uct_ep_params_t params = {
        .field_mask = UCT_EP_PARAM_FIELD_IFACE | UCT_EP_PARAM_FIELD_DEV_ADDR |
                      UCT_EP_PARAM_FIELD_IFACE_ADDR,
        .iface = turns->pair.a.iface,
    };
    uct_component_h component = turns->pair.component;
    struct card card;
    int i;

    bench_check((recv(fd, &card, sizeof(card), MSG_WAITALL) == sizeof(card)) ?
                    UCS_OK :
                    UCS_ERR_IO_ERROR,
                "the peer");
    params.dev_addr   = (uct_device_addr_t *)card.dev_addr;
    params.iface_addr = (uct_iface_addr_t *)card.iface_addr;
    BENCH_CHECK(uct_ep_create(&params, &turns->ep));
    turns->addr = card.addr;
    BENCH_CHECK(uct_rkey_unpack(component, card.flat, &turns->flat));
    for (i = 0; i < NUM_CASES; i++) {
        BENCH_CHECK(uct_rkey_unpack(component, card.rows[i], &turns->rows[i]));
    }
}


/* --- turns ---------------------------------------------------------------- */

static void completed(uct_completion_t *comp)
{
    ucs_container_of(comp, struct turns, comp)->done = 1;
}

static uct_iov_t local_iov(const struct turns *turns, int sides)
{
    const struct layout *layout = turns->layout;

    if (!(sides & NEAR)) {
        return (uct_iov_t){.buffer = turns->pair.mem + FLAT,
                           .length = layout->length,
                           .memh   = turns->pair.memh,
                           .count  = 1};
    }
    return (uct_iov_t){.buffer = turns->pair.mem,
                       .length = layout->block,
                       .memh   = turns->pair.memh,
                       .stride = 2 * layout->block,
                       .count  = layout->length / layout->block};
}

/* Runs one operation; tries again after UCS_ERR_NO_RESOURCE. The first one with
 * local blocks gets this until its mkey is ready; that round is not counted. */
static void operate(struct turns *turns, int is_get, int sides)
{
    uct_iov_t iov   = local_iov(turns, sides);
    uct_rkey_t rkey = (sides & FAR) ? *turns->layout_rkey : turns->flat.rkey;
    uint64_t addr   = (sides & FAR) ? 0 : turns->addr + FLAT;
    ucs_status_t (*operation)(uct_ep_h, const uct_iov_t *, size_t, uint64_t,
                              uct_rkey_t, uct_completion_t *) =
        is_get ? uct_ep_get_zcopy : uct_ep_put_zcopy;
    ucs_status_t status;

    turns->done = 0;
    turns->comp = (uct_completion_t){.func = completed, .count = 1};
    while ((status = operation(turns->ep, &iov, 1, addr, rkey, &turns->comp)) ==
           UCS_ERR_NO_RESOURCE) {
        uct_iface_progress(turns->pair.a.iface);
    }
    bench_check(status, "operation");
    while (!turns->done) {
        uct_iface_progress(turns->pair.a.iface);
    }
    bench_check(turns->comp.status, "completion");
}

/* Packs or unpacks (@is_pack). Copies blocks of 8 bytes by a memcpy() of
 * constant length, as a program with an array of doubles does. */
static void copy_rows(uint8_t *rows, uint8_t *flat, const struct layout *layout,
                      int is_pack)
{
    size_t block = layout->block;
    size_t i;

    if (block == sizeof(uint64_t)) {
        for (i = 0; i < layout->length / block; i++) {
            memcpy(is_pack ? flat + (i * block) : rows + (2 * i * block),
                   is_pack ? rows + (2 * i * block) : flat + (i * block),
                   sizeof(uint64_t));
        }
    } else {
        for (i = 0; i < layout->length / block; i++) {
            memcpy(is_pack ? flat + (i * block) : rows + (2 * i * block),
                   is_pack ? rows + (2 * i * block) : flat + (i * block),
                   block);
        }
    }
}

static double turn(struct turns *turns, int what)
{
    size_t number = (BURST > turns->layout->length) ?
                        BURST / turns->layout->length :
                        1;
    double start  = now_us();
    size_t i;

    for (i = 0; i < number; i++) {
        if (what < PUT) {
            copy_rows(turns->pair.mem, turns->pair.mem + FLAT, turns->layout,
                      what == PACK);
        } else {
            operate(turns, what >= GET, (what - PUT) % (GET - PUT));
        }
    }
    return (now_us() - start) / number;
}

static int compare(const void *a, const void *b)
{
    double diff = *(const double *)a - *(const double *)b;

    return (diff > 0) - (diff < 0);
}

static double median(double *values, int count)
{
    qsort(values, count, sizeof(*values), compare);
    return values[count / 2];
}

/* Returns the time of a variant over that of the operations that it
 * replaces. */
static double ratio(const double *us, int first, int sides)
{
    int packs_near = (first == PUT) ? PACK : UNPACK;
    double sum     = us[first];

    sum += (sides & NEAR) ? us[packs_near] : 0;
    sum += (sides & FAR) ? us[PACK + UNPACK - packs_near] : 0;
    return us[first + sides] / sum;
}

/* Returns a column of the output for one round. */
static double column_value(const double *us, int column)
{
    return ((column == PACK) || (column == UNPACK) || (column == PUT) ||
            (column == GET)) ?
               us[column] :
               ratio(us, (column < GET) ? PUT : GET,
                     (column - PUT) % (GET - PUT));
}

static void run_layout(struct turns *turns, int rounds)
{
    static double us[MAX_ROUNDS][NUM_TURNS];
    double values[MAX_ROUNDS];
    int round, what, column;

    for (round = -1; round < rounds; round++) { /* one to warm up */
        for (what = 0; what < NUM_TURNS; what++) {
            us[(round < 0) ? 0 : round][what] = turn(turns, what);
        }
    }
    printf("%zu %zu", turns->layout->length, turns->layout->block);
    for (column = 0; column < NUM_TURNS; column++) {
        for (round = 0; round < rounds; round++) {
            values[round] = column_value(us[round], column);
        }
        printf(" %.3f", median(values, rounds));
    }
    puts("");
    fflush(stdout);
}

int main(int argc, char **argv)
{
    struct turns turns;
    int fd, i, rounds, status;
    pid_t pid;

    rounds = (argc == 4) ? atoi(argv[3]) : 0;
    if ((rounds < 1) || (rounds > MAX_ROUNDS)) {
        fprintf(stderr, "usage: strided_turns dcx DEVICE ROUNDS (1 to %d)\n",
                MAX_ROUNDS);
        return 2;
    }
    fd = start_peer(argv[1], argv[2], &pid);
    bench_pair_open(&turns.pair, argv[1], argv[2]);
    memset(turns.pair.mem, 1, BENCH_MEM_SIZE);
    peer_connect(&turns, fd);
    for (i = 0; i < NUM_CASES; i++) {
        turns.layout      = &layouts[i];
        turns.layout_rkey = &turns.rows[i].rkey;
        run_layout(&turns, rounds);
    }
    uct_ep_destroy(turns.ep);
    for (i = 0; i < NUM_CASES; i++) {
        uct_rkey_release(turns.pair.component, &turns.rows[i]);
    }
    uct_rkey_release(turns.pair.component, &turns.flat);
    bench_pair_close(&turns.pair);
    close(fd);
    waitpid(pid, &status, 0);
    return !WIFEXITED(status) || (WEXITSTATUS(status) != 0);
}
