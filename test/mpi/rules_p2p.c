/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The rules of point-to-point messages, with messages that are long enough for
 * zero-copy
 */
#include "test/mpi/rules.h"

#include <time.h>

enum { BYTES = 200000 };

/* An area to send, and one to receive */
struct pair {
    struct area out;
    struct area in;
};

static void pair_init(struct pair *pair, int layout)
{
    area_init_layout(&pair->out, layout, BYTES);
    area_clone(&pair->out, &pair->in);
}

static void pair_fill(struct pair *pair, unsigned seed)
{
    area_fill(&pair->out, seed + rank);
    area_clear(&pair->in);
}

static int pair_check(const char *what, const struct pair *pair, unsigned seed)
{
    return area_check(what, &pair->in, &pair->out, seed + prev_rank(),
                      pair->out.size);
}

static void pair_cleanup(struct pair *pair)
{
    area_cleanup_clone(&pair->in);
    area_cleanup(&pair->out);
}

static MPI_Request start_send(struct area *area)
{
    MPI_Request request;

    MPI_Isend(area->buffer, area->count, area->type, next_rank(), TAG,
              MPI_COMM_WORLD, &request);
    return request;
}

static MPI_Request start_recv(struct area *area)
{
    MPI_Request request;

    MPI_Irecv(area->buffer, area->count, area->type, prev_rank(), TAG,
              MPI_COMM_WORLD, &request);
    return request;
}

static void recv(struct area *area, MPI_Status *status)
{
    MPI_Recv(area->buffer, area->count, area->type, prev_rank(), TAG,
             MPI_COMM_WORLD, status);
}

static void finish(MPI_Request request)
{
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

/* --- shorter and longer messages ------------------------------------------ */

/* Receives 'num' doubles into room for 100 elements of 256. */
static int short_one(struct area *out, struct area *in, int num)
{
    int errors = 0, count, elements;
    MPI_Request request;
    MPI_Status status;

    area_fill(out, rank);
    area_clear(in);
    request = start_send(out);
    recv(in, &status);
    finish(request);
    MPI_Get_count(&status, in->type, &count);
    MPI_Get_elements(&status, in->type, &elements);
    errors += check_value("source", status.MPI_SOURCE, prev_rank());
    errors += check_value("tag", status.MPI_TAG, TAG);
    errors += check_value("count", count,
                          (num % 256) ? MPI_UNDEFINED : num / 256);
    errors += check_value("elements", elements, num);
    return errors + area_check("short", in, out, prev_rank(), out->size);
}

static int p2p_short(void)
{
    static const int nums[] = {25600, 20480, 20517, 8193, 1000, 256, 255, 0};
    struct area out, in;
    MPI_Datatype type;
    int errors = 0;

    MPI_Type_vector(4, 64, 80, MPI_DOUBLE, &type);
    area_init(&in, type, 100);
    for (unsigned i = 0; i < sizeof(nums) / sizeof(nums[0]); i++) {
        MPI_Type_contiguous(nums[i], MPI_DOUBLE, &type);
        area_init(&out, type, 1);
        errors += short_one(&out, &in, nums[i]);
        area_cleanup(&out);
        MPI_Type_vector((nums[i] + 31) / 32, 32, 40, MPI_DOUBLE, &type);
        area_init(&out, type, 1);
        errors += short_one(&out, &in, (int)(out.size / 8));
        area_cleanup(&out);
    }
    area_cleanup(&in);
    return errors;
}

/* Only the receiver gets an error, nothing is written elsewhere, and the next
 * message is normal. */
static int truncated_one(struct pair *pair, struct area *small, int is_late)
{
    MPI_Request send, receive = MPI_REQUEST_NULL;
    int errors = 0, class = MPI_SUCCESS, code;

    pair_fill(pair, 1);
    area_clear(small);
    if (!is_late) {
        receive = start_recv(small);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    send = start_send(&pair->out);
    MPI_Barrier(MPI_COMM_WORLD);
    if (is_late) {
        receive = start_recv(small);
    }
    code = MPI_Wait(&receive, MPI_STATUS_IGNORE);
    MPI_Error_class(code, &class);
    errors += check_value("truncated", class, MPI_ERR_TRUNCATE);
    finish(send);
    errors += area_check_gaps("truncated", small);
    return errors + exchange("after truncated", &pair->out, &pair->in, 2,
                             MPI_COMM_WORLD);
}

static int p2p_truncated(void)
{
    struct pair pair;
    struct area small;
    int errors = 0;

    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (int i = 0; i < 4; i++) {
        pair_init(&pair, i);
        area_init_layout(&small, i, BYTES / 2);
        errors += truncated_one(&pair, &small, 0);
        errors += truncated_one(&pair, &small, 1);
        area_cleanup(&small);
        pair_cleanup(&pair);
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    return errors;
}

/* --- probes --------------------------------------------------------------- */

static void probe_recv(struct area *area, MPI_Status *status)
{
    MPI_Probe(prev_rank(), TAG, MPI_COMM_WORLD, status);
    recv(area, MPI_STATUS_IGNORE);
}

static void iprobe_recv(struct area *area, MPI_Status *status)
{
    int is_there = 0;

    while (!is_there) {
        MPI_Iprobe(MPI_ANY_SOURCE, TAG, MPI_COMM_WORLD, &is_there, status);
    }
    recv(area, MPI_STATUS_IGNORE);
}

static void mprobe_recv(struct area *area, MPI_Status *status)
{
    MPI_Message message;

    MPI_Mprobe(prev_rank(), MPI_ANY_TAG, MPI_COMM_WORLD, &message, status);
    MPI_Mrecv(area->buffer, area->count, area->type, &message,
              MPI_STATUS_IGNORE);
}

static void improbe_recv(struct area *area, MPI_Status *status)
{
    MPI_Message message;
    MPI_Request request;
    int is_there = 0;

    while (!is_there) {
        MPI_Improbe(prev_rank(), TAG, MPI_COMM_WORLD, &is_there, &message,
                    status);
    }
    MPI_Imrecv(area->buffer, area->count, area->type, &message, &request);
    finish(request);
}

static int p2p_probe(void)
{
    static void (*const ways[])(struct area * area, MPI_Status * status) = {
        probe_recv, iprobe_recv, mprobe_recv, improbe_recv};
    struct pair pair;
    int errors = 0, elements;

    for (int i = 0; i < 4; i++) {
        MPI_Request request;
        MPI_Status status;

        pair_init(&pair, i);
        pair_fill(&pair, i);
        request = start_send(&pair.out);
        ways[i](&pair.in, &status);
        finish(request);
        MPI_Get_elements(&status, pair.out.type, &elements);
        errors += check_value("probed", elements, pair.out.size / 8);
        errors += pair_check("probed", &pair, i);
        pair_cleanup(&pair);
    }
    return errors;
}

/* --- modes ---------------------------------------------------------------- */

static void mode_ssend(const struct area *area)
{
    MPI_Ssend(area->buffer, area->count, area->type, next_rank(), TAG,
              MPI_COMM_WORLD);
}

static void mode_issend(const struct area *area)
{
    MPI_Request request;

    MPI_Issend(area->buffer, area->count, area->type, next_rank(), TAG,
               MPI_COMM_WORLD, &request);
    finish(request);
}

static void mode_bsend(const struct area *area)
{
    int size     = (int)area->size + MPI_BSEND_OVERHEAD + 1024;
    void *buffer = need(size);

    MPI_Buffer_attach(buffer, size);
    MPI_Bsend(area->buffer, area->count, area->type, next_rank(), TAG,
              MPI_COMM_WORLD);
    memset(area->memory, 0, area->length); /* MPI_Bsend() has copied it */
    MPI_Buffer_detach(&buffer, &size);
    free(buffer);
}

static void mode_rsend(const struct area *area)
{
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Rsend(area->buffer, area->count, area->type, next_rank(), TAG,
              MPI_COMM_WORLD);
}

static void mode_send(const struct area *area)
{
    MPI_Send(area->buffer, area->count, area->type, next_rank(), TAG,
             MPI_COMM_WORLD);
}

static int p2p_modes(void)
{
    static void (*const modes[])(const struct area *area) = {
        mode_send, mode_ssend, mode_issend, mode_bsend, mode_rsend};
    struct pair pair;
    int errors = 0;

    for (int i = 0; i < 5; i++) {
        MPI_Request request;

        pair_init(&pair, i);
        pair_fill(&pair, i);
        request = start_recv(&pair.in);
        modes[i](&pair.out);
        finish(request);
        errors += pair_check("mode", &pair, i);
        pair_cleanup(&pair);
    }
    return errors;
}

/* A synchronous send must not complete before its receive is posted. */
static int p2p_sync(void)
{
    struct pair pair;
    MPI_Request request;
    int errors = 0, is_done;

    pair_init(&pair, 0);
    pair_fill(&pair, 0);
    MPI_Issend(pair.out.buffer, 1, pair.out.type, next_rank(), TAG,
               MPI_COMM_WORLD, &request);
    for (int i = 0; i < 1000; i++) {
        MPI_Test(&request, &is_done, MPI_STATUS_IGNORE);
        errors += is_done;
    }
    MPI_Barrier(MPI_COMM_WORLD);
    recv(&pair.in, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    errors += pair_check("synchronous", &pair, 0);
    pair_cleanup(&pair);
    return errors;
}

/* Persistent requests, with types that are freed before the start */
static int p2p_persistent(void)
{
    MPI_Request requests[2];
    struct pair pair;
    int errors = 0;

    pair_init(&pair, 1);
    MPI_Recv_init(pair.in.buffer, 1, pair.in.type, prev_rank(), TAG,
                  MPI_COMM_WORLD, &requests[0]);
    MPI_Send_init(pair.out.buffer, 1, pair.out.type, next_rank(), TAG,
                  MPI_COMM_WORLD, &requests[1]);
    MPI_Type_free(&pair.out.type);
    for (int i = 0; i < 5; i++) {
        pair_fill(&pair, i);
        MPI_Startall(2, requests);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        errors += pair_check("persistent", &pair, i);
    }
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);
    pair_cleanup(&pair);
    return errors;
}

/* --- requests and types that go ------------------------------------------- */

static int p2p_cancel(void)
{
    struct pair pair;
    MPI_Request request;
    MPI_Status status;
    int errors = 0, is_cancelled;

    pair_init(&pair, 0);
    for (int i = 0; i < 20; i++) {
        area_clear(&pair.in);
        request = start_recv(&pair.in);
        MPI_Cancel(&request);
        MPI_Wait(&request, &status);
        MPI_Test_cancelled(&status, &is_cancelled);
        errors += check_value("cancelled", is_cancelled, 1);
        errors += area_check("cancelled", &pair.in, &pair.out, 0, 0);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    errors += exchange("after cancel", &pair.out, &pair.in, 5, MPI_COMM_WORLD);
    pair_cleanup(&pair);
    return errors;
}

/* Frees requests while they are in progress; an answer shows their end. */
static int p2p_request_free(void)
{
    struct pair pair;
    int errors = 0, ok = 1;

    pair_init(&pair, 1);
    for (int i = 0; i < 20; i++) {
        MPI_Request request;

        pair_fill(&pair, i);
        MPI_Barrier(MPI_COMM_WORLD);
        request = start_send(&pair.out);
        MPI_Request_free(&request);
        recv(&pair.in, MPI_STATUS_IGNORE);
        MPI_Sendrecv_replace(&ok, 1, MPI_INT, prev_rank(), TAG, next_rank(),
                             TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        errors += pair_check("request freed", &pair, i);
    }
    pair_cleanup(&pair);
    return errors;
}

/* Frees types while they are in use, and creates others in their place. */
static int p2p_type_free(void)
{
    int errors = 0;

    for (int i = 0; i < NUM_LAYOUTS; i++) {
        struct area others[10];
        MPI_Request requests[2];
        struct pair pair;

        pair_init(&pair, i);
        pair_fill(&pair, i);
        requests[0] = start_recv(&pair.in);
        requests[1] = start_send(&pair.out);
        MPI_Type_free(&pair.out.type);
        for (int j = 0; j < 10; j++) {
            area_init_layout(&others[j], (i + j) % NUM_LAYOUTS, 10000);
        }
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        for (int j = 0; j < 10; j++) {
            area_cleanup(&others[j]);
        }
        errors += pair_check("type freed", &pair, i);
        pair_cleanup(&pair);
    }
    return errors;
}

/* Messages packed by the program, on one side; the other side uses the type. */
static int p2p_packed(void)
{
    int size = 0, errors = 0, position;
    struct pair pair;
    char *packed;

    pair_init(&pair, 3);
    MPI_Pack_size(1, pair.out.type, MPI_COMM_WORLD, &size);
    packed = need(size);
    for (int i = 0; i < 2; i++) {
        MPI_Request request;

        pair_fill(&pair, i);
        position = 0;
        if (i == 0) {
            MPI_Pack(pair.out.buffer, 1, pair.out.type, packed, size, &position,
                     MPI_COMM_WORLD);
            MPI_Isend(packed, position, MPI_PACKED, next_rank(), TAG,
                      MPI_COMM_WORLD, &request);
            recv(&pair.in, MPI_STATUS_IGNORE);
        } else {
            request = start_send(&pair.out);
            MPI_Recv(packed, size, MPI_PACKED, prev_rank(), TAG, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
            MPI_Unpack(packed, size, &position, pair.in.buffer, 1, pair.in.type,
                       MPI_COMM_WORLD);
        }
        finish(request);
        errors += pair_check("packed", &pair, i);
    }
    free(packed);
    pair_cleanup(&pair);
    return errors;
}

/* --- absolute addresses, communicators, buffers --------------------------- */

static int p2p_self(void)
{
    struct area bytes;
    struct pair pair;
    int errors = 0;

    for (int i = 0; i < 4; i++) {
        struct area *ins[] = {&pair.in, &bytes};

        pair_init(&pair, i);
        area_init_bytes(&bytes, pair.out.size);
        for (int j = 0; j < 2; j++) {
            area_fill(&pair.out, i);
            area_clear(ins[j]);
            MPI_Sendrecv(pair.out.buffer, 1, pair.out.type, rank, TAG,
                         ins[j]->buffer, 1, ins[j]->type, rank, TAG,
                         MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            errors += area_check("self", ins[j], &pair.out, i, pair.out.size);
        }
        area_cleanup(&bytes);
        pair_cleanup(&pair);
    }
    return errors;
}

/* Creates a type with absolute addresses. */
static MPI_Datatype make_absolute(const struct area *area)
{
    MPI_Datatype type;
    MPI_Aint address;

    MPI_Get_address(area->buffer, &address);
    MPI_Type_create_hindexed(1, &area->count, &address, area->type, &type);
    MPI_Type_commit(&type);
    return type;
}

static int p2p_bottom(void)
{
    int errors = 0;

    for (int i = 0; i < 4; i++) {
        MPI_Datatype out, in;
        struct pair pair;

        pair_init(&pair, i);
        pair_fill(&pair, i);
        out = make_absolute(&pair.out);
        in  = make_absolute(&pair.in);
        MPI_Sendrecv(MPI_BOTTOM, 1, out, next_rank(), TAG, MPI_BOTTOM, 1, in,
                     prev_rank(), TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        errors += pair_check("MPI_BOTTOM", &pair, i);
        MPI_Type_free(&in);
        MPI_Type_free(&out);
        pair_cleanup(&pair);
    }
    return errors;
}

/* Messages of several communicators with equal tags */
static int p2p_comms(void)
{
    enum { NUM = 4 };
    MPI_Request requests[2 * NUM];
    struct pair pairs[NUM];
    MPI_Comm comms[NUM];
    int errors = 0;

    for (int i = 0; i < NUM; i++) {
        MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
        pair_init(&pairs[i], 0);
        pair_fill(&pairs[i], 10 * i);
        MPI_Irecv(pairs[i].in.buffer, 1, pairs[i].in.type, MPI_ANY_SOURCE,
                  MPI_ANY_TAG, comms[i], &requests[i]);
    }
    for (int i = NUM - 1; i >= 0; i--) {
        MPI_Isend(pairs[i].out.buffer, 1, pairs[i].out.type, next_rank(), TAG,
                  comms[i], &requests[NUM + i]);
    }
    MPI_Waitall(2 * NUM, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < NUM; i++) {
        errors += pair_check("communicator", &pairs[i], 10 * i);
        pair_cleanup(&pairs[i]);
        MPI_Comm_free(&comms[i]);
    }
    return errors;
}

/* One buffer in several sends at once, with two types */
static int p2p_same_buffer(void)
{
    enum { NUM = 6 };
    MPI_Request requests[2 * NUM];
    struct area out, ins[NUM];
    MPI_Datatype dup;
    int errors = 0;

    area_init_layout(&out, 0, BYTES);
    area_fill(&out, rank);
    MPI_Type_dup(out.type, &dup);
    for (int i = 0; i < NUM; i++) {
        area_clone(&out, &ins[i]);
        MPI_Irecv(ins[i].buffer, 1, ins[i].type, prev_rank(), i, MPI_COMM_WORLD,
                  &requests[i]);
    }
    for (int i = 0; i < NUM; i++) {
        MPI_Isend(out.buffer, 1, (i % 2) ? dup : out.type, next_rank(), i,
                  MPI_COMM_WORLD, &requests[NUM + i]);
    }
    MPI_Waitall(2 * NUM, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < NUM; i++) {
        errors += area_check("same buffer", &ins[i], &out, prev_rank(),
                             out.size);
        area_cleanup_clone(&ins[i]);
    }
    MPI_Type_free(&dup);
    area_cleanup(&out);
    return errors;
}

/* More messages in flight than there are views, completed in another order */
static int p2p_many(void)
{
    enum { NUM = 200 };
    MPI_Request requests[2 * NUM];
    struct area outs[NUM], ins[NUM], first;
    int errors = 0;

    area_init_layout(&first, 0, 80000);
    for (int i = 0; i < NUM; i++) {
        area_clone(&first, &ins[i]);
        area_clone(&first, &outs[i]);
        area_fill(&outs[i], i + rank);
        MPI_Irecv(ins[i].buffer, 1, ins[i].type, prev_rank(), i, MPI_COMM_WORLD,
                  &requests[i]);
    }
    for (int i = NUM - 1; i >= 0; i--) {
        MPI_Isend(outs[i].buffer, 1, outs[i].type, next_rank(), i,
                  MPI_COMM_WORLD, &requests[NUM + i]);
    }
    MPI_Waitall(2 * NUM, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < NUM; i++) {
        errors += area_check("many", &ins[i], &first, i + prev_rank(),
                             first.size);
        area_cleanup_clone(&ins[i]);
        area_cleanup_clone(&outs[i]);
    }
    area_cleanup(&first);
    return errors;
}

/* --- everything at once --------------------------------------------------- */

/* The same numbers on all ranks */
static unsigned random_state;

static unsigned below(unsigned limit)
{
    random_state = random_state * 1103515245u + 12345u;
    return (random_state >> 8) % limit;
}

/* As many short messages as long ones */
static size_t random_length(void)
{
    return (size_t)(8 + below(120)) << below(12);
}

enum { RANDOM = 24 };

static void random_init(struct area *outs, struct area *ins)
{
    for (int i = 0; i < RANDOM; i++) {
        size_t length = random_length();

        area_init_layout(&outs[i], below(NUM_LAYOUTS), length);
        if (below(3) == 0) {
            area_init_bytes(&ins[i], outs[i].size + below(1000));
        } else {
            area_init_layout(&ins[i], below(NUM_LAYOUTS),
                             outs[i].size * 2 + 100000);
        }
    }
}

/* Posts some receives early, some late, and waits for them in any order. */
static int random_round(unsigned seed)
{
    struct area outs[RANDOM], ins[RANDOM];
    MPI_Request requests[2 * RANDOM];
    unsigned first = below(RANDOM);
    int errors     = 0, index;

    random_init(outs, ins);
    for (int i = 0; i < 2 * RANDOM; i++) {
        int j = (i + first) % RANDOM, is_late = (i >= RANDOM);

        if (is_late == j % 2) {
            MPI_Irecv(ins[j].buffer, ins[j].count, ins[j].type, prev_rank(), j,
                      MPI_COMM_WORLD, &requests[RANDOM + j]);
        }
        if (i < RANDOM) {
            area_fill(&outs[i], seed + i + rank);
            MPI_Isend(outs[i].buffer, outs[i].count, outs[i].type, next_rank(),
                      i, MPI_COMM_WORLD, &requests[i]);
        }
    }
    for (int i = 0; i < 2 * RANDOM; i++) {
        MPI_Waitany(2 * RANDOM, requests, &index, MPI_STATUS_IGNORE);
    }
    for (int i = 0; i < RANDOM; i++) {
        errors += area_check("random", &ins[i], &outs[i],
                             seed + i + prev_rank(), outs[i].size);
        area_cleanup(&ins[i]);
        area_cleanup(&outs[i]);
    }
    return errors;
}

static int p2p_random(void)
{
    unsigned seed = (unsigned)time(NULL);
    int errors    = 0;

    MPI_Bcast(&seed, 1, MPI_UNSIGNED, 0, MPI_COMM_WORLD);
    random_state = seed;
    for (int i = 0; i < 8; i++) {
        errors += random_round(i);
    }
    if (errors != 0) {
        fprintf(stderr, "p2p_random: seed %u\n", seed);
    }
    return errors;
}

const struct check rules_p2p_checks[] = {{"p2p_short", p2p_short},
                                         {"p2p_truncated", p2p_truncated},
                                         {"p2p_probe", p2p_probe},
                                         {"p2p_modes", p2p_modes},
                                         {"p2p_sync", p2p_sync},
                                         {"p2p_persistent", p2p_persistent},
                                         {"p2p_cancel", p2p_cancel},
                                         {"p2p_request_free", p2p_request_free},
                                         {"p2p_type_free", p2p_type_free},
                                         {"p2p_packed", p2p_packed},
                                         {"p2p_self", p2p_self},
                                         {"p2p_bottom", p2p_bottom},
                                         {"p2p_comms", p2p_comms},
                                         {"p2p_same_buffer", p2p_same_buffer},
                                         {"p2p_many", p2p_many},
                                         {"p2p_random", p2p_random},
                                         {NULL, NULL}};
