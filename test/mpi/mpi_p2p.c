/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Point to point: each size class by each mode of sending, one at a time and
 * many at once, to a neighbour, to all ranks and to the rank itself.
 */
#include "test/mpi/check.h"

enum { TAG = 7 };

static char *send_buf;
static char *recv_buf;

static void alloc_buffers(void)
{
    send_buf = need(CHECK_MAX_SIZE);
    recv_buf = need(CHECK_MAX_SIZE + 64);
}

static void free_buffers(void)
{
    free(recv_buf);
    free(send_buf);
}

/* Sends and receives around the ring, blocking: even ranks send first. */
static void ring_blocking(size_t len)
{
    int even = !(rank % 2) && (rank + 1 < ranks || ranks % 2 == 0);

    if (even) {
        MPI_Send(send_buf, len, MPI_BYTE, next_rank(), TAG, MPI_COMM_WORLD);
    }
    MPI_Recv(recv_buf, len, MPI_BYTE, prev_rank(), TAG, MPI_COMM_WORLD,
             MPI_STATUS_IGNORE);
    if (!even) {
        MPI_Send(send_buf, len, MPI_BYTE, next_rank(), TAG, MPI_COMM_WORLD);
    }
}

static void ring_sendrecv(size_t len)
{
    MPI_Sendrecv(send_buf, len, MPI_BYTE, next_rank(), TAG, recv_buf, len,
                 MPI_BYTE, prev_rank(), TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void ring_nonblocking(size_t len)
{
    MPI_Request req[2];

    MPI_Isend(send_buf, len, MPI_BYTE, next_rank(), TAG, MPI_COMM_WORLD,
              &req[0]);
    MPI_Irecv(recv_buf, len, MPI_BYTE, prev_rank(), TAG, MPI_COMM_WORLD,
              &req[1]);
    MPI_Waitall(2, req, MPI_STATUSES_IGNORE);
}

/* Sends every size class in one mode, with a guard after the receive buffer. */
static int all_sizes(void (*ring)(size_t len))
{
    int errors = 0;

    alloc_buffers();
    for (unsigned i = 0; i < CHECK_NUM_SIZES; i++) {
        size_t len = check_sizes[i];

        check_fill(send_buf, len, rank + i);
        memset(recv_buf, 0xee, len + 8);
        ring(len);
        errors += check_data("ring", recv_buf, len, prev_rank() + i);
        errors += check_value("guard", (uint8_t)recv_buf[len], 0xee);
    }
    free_buffers();
    return errors;
}

static int p2p_blocking(void)
{
    return all_sizes(ring_blocking);
}

static int p2p_sendrecv(void)
{
    return all_sizes(ring_sendrecv);
}

static int p2p_nonblocking(void)
{
    return all_sizes(ring_nonblocking);
}

/* A synchronous send must not complete before its receive is posted. */
static int p2p_ssend_len(size_t len)
{
    MPI_Request req;
    int errors = 0, done = 0;

    if (rank == 0) {
        check_fill(send_buf, len, 5);
        MPI_Issend(send_buf, len, MPI_BYTE, 1, TAG, MPI_COMM_WORLD, &req);
        for (int i = 0; i < 1000; i++) {
            MPI_Test(&req, &done, MPI_STATUS_IGNORE);
        }
        errors += check_value("unmatched ssend is complete", done, 0);
        MPI_Send(NULL, 0, MPI_BYTE, 1, TAG + 1, MPI_COMM_WORLD);
        MPI_Wait(&req, MPI_STATUS_IGNORE);
        MPI_Ssend(send_buf, len, MPI_BYTE, 1, TAG, MPI_COMM_WORLD);
    } else if (rank == 1) {
        MPI_Recv(NULL, 0, MPI_BYTE, 0, TAG + 1, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
        for (int i = 0; i < 2; i++) {
            memset(recv_buf, 0, len);
            MPI_Recv(recv_buf, len, MPI_BYTE, 0, TAG, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
            errors += check_data("ssend", recv_buf, len, 5);
        }
    }
    return errors;
}

static int p2p_ssend(void)
{
    static const size_t lens[] = {0, 8, 1000, 100000, 4194304};
    int errors                 = 0;

    alloc_buffers();
    for (unsigned i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
        errors += p2p_ssend_len(lens[i]);
    }
    free_buffers();
    return errors;
}

/* Each rank sends to every rank, including itself, all at the same time. */
static int p2p_all_pairs(void)
{
    enum { LEN = 100000 };
    MPI_Request *req = need(2 * ranks * sizeof(*req));
    char *out        = need(LEN * ranks);
    char *in         = need(LEN * ranks);
    int errors       = 0;

    for (int i = 0; i < ranks; i++) {
        int len = LEN >> (4 * ((rank + i) % 3)); /* short, eager, rendezvous */

        check_fill(out + i * LEN, len, rank * ranks + i);
        memset(in + i * LEN, 0, len);
        MPI_Irecv(in + i * LEN, len, MPI_BYTE, i, TAG, MPI_COMM_WORLD,
                  &req[2 * i]);
        MPI_Isend(out + i * LEN, len, MPI_BYTE, i, TAG, MPI_COMM_WORLD,
                  &req[2 * i + 1]);
    }
    MPI_Waitall(2 * ranks, req, MPI_STATUSES_IGNORE);
    for (int i = 0; i < ranks; i++) {
        errors += check_data("all pairs", in + i * LEN,
                             LEN >> (4 * ((rank + i) % 3)), i * ranks + rank);
    }

    free(in);
    free(out);
    free(req);
    return errors;
}

/* More small messages at once than a queue holds, in both directions */
static int p2p_flood(void)
{
    enum { COUNT = 5000, LEN = 64 };
    MPI_Request *req = need(2 * COUNT * sizeof(*req));
    char *out        = need(COUNT * LEN);
    char *in         = need(COUNT * LEN);
    int errors       = 0;

    check_fill(out, COUNT * LEN, rank);
    memset(in, 0, COUNT * LEN);
    for (int i = 0; i < COUNT; i++) {
        MPI_Isend(out + i * LEN, LEN, MPI_BYTE, next_rank(), TAG,
                  MPI_COMM_WORLD, &req[i]);
    }
    for (int i = 0; i < COUNT; i++) {
        MPI_Irecv(in + i * LEN, LEN, MPI_BYTE, prev_rank(), TAG, MPI_COMM_WORLD,
                  &req[COUNT + i]);
    }
    MPI_Waitall(2 * COUNT, req, MPI_STATUSES_IGNORE);
    errors += check_data("flood", in, COUNT * LEN, prev_rank());

    free(in);
    free(out);
    free(req);
    return errors;
}

/* All ranks flood rank 0, which receives slowly. */
static int p2p_incast(void)
{
    enum { COUNT = 2000, LEN = 600 };
    int(*buf)[LEN / sizeof(int)] = need(COUNT * sizeof(*buf));
    MPI_Request *req             = need(COUNT * sizeof(*req));
    int errors                   = 0;

    memset(buf, 0, COUNT * sizeof(*buf));
    for (int i = 0; (i < COUNT) && (rank != 0); i++) {
        buf[i][0] = buf[i][LEN / sizeof(int) - 1] = rank * COUNT + i;
        MPI_Isend(buf[i], LEN, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, &req[i]);
    }
    if (rank != 0) {
        MPI_Waitall(COUNT, req, MPI_STATUSES_IGNORE);
    }
    for (int src = ranks - 1; (src > 0) && (rank == 0); src--) {
        for (int i = 0; i < COUNT; i++) {
            MPI_Recv(buf[0], LEN, MPI_BYTE, src, TAG, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
            errors += check_value("incast", buf[0][0], src * COUNT + i);
            errors += check_value("incast end", buf[0][LEN / sizeof(int) - 1],
                                  src * COUNT + i);
        }
    }

    free(req);
    free(buf);
    return errors;
}

static int p2p_persistent(void)
{
    enum { LEN = 30000, ROUNDS = 40 };
    MPI_Request req[2];
    int errors = 0;

    alloc_buffers();
    MPI_Send_init(send_buf, LEN, MPI_BYTE, next_rank(), TAG, MPI_COMM_WORLD,
                  &req[0]);
    MPI_Recv_init(recv_buf, LEN, MPI_BYTE, prev_rank(), TAG, MPI_COMM_WORLD,
                  &req[1]);
    for (int i = 0; i < ROUNDS; i++) {
        check_fill(send_buf, LEN, rank + i);
        memset(recv_buf, 0, LEN);
        MPI_Startall(2, req);
        MPI_Waitall(2, req, MPI_STATUSES_IGNORE);
        errors += check_data("persistent", recv_buf, LEN, prev_rank() + i);
    }
    MPI_Request_free(&req[0]);
    MPI_Request_free(&req[1]);
    free_buffers();
    return errors;
}

/* A buffered send completes without its receiver. */
static int p2p_bsend(void)
{
    enum { LEN = 50000 };
    int size     = LEN + MPI_BSEND_OVERHEAD;
    void *buffer = need(size);
    int errors   = 0;

    alloc_buffers();
    MPI_Buffer_attach(buffer, size);
    check_fill(send_buf, LEN, rank);
    MPI_Bsend(send_buf, LEN, MPI_BYTE, next_rank(), TAG, MPI_COMM_WORLD);
    memset(send_buf, 0, LEN);
    MPI_Recv(recv_buf, LEN, MPI_BYTE, prev_rank(), TAG, MPI_COMM_WORLD,
             MPI_STATUS_IGNORE);
    errors += check_data("bsend", recv_buf, LEN, prev_rank());
    MPI_Buffer_detach(&buffer, &size);
    free(buffer);
    free_buffers();
    return errors;
}

/* Buffers are unmapped and mapped again: a registration cache must notice
 * it. */
static int p2p_remapped(void)
{
    enum { LEN = 1 << 20 };
    int errors = 0;

    for (int i = 0; i < 20; i++) {
        alloc_buffers(); /* large: from mmap(), and returned to the system */
        check_fill(send_buf, LEN, rank + i);
        memset(recv_buf, 0, LEN);
        ring_sendrecv(LEN);
        errors += check_data("remapped", recv_buf, LEN, prev_rank() + i);
        free_buffers();
    }
    return errors;
}

const struct check mpi_p2p_checks[] = {
    {"p2p_blocking", p2p_blocking},
    {"p2p_sendrecv", p2p_sendrecv},
    {"p2p_nonblocking", p2p_nonblocking},
    {"p2p_ssend", p2p_ssend},
    {"p2p_bsend", p2p_bsend},
    {"p2p_all_pairs", p2p_all_pairs},
    {"p2p_flood", p2p_flood},
    {"p2p_incast", p2p_incast},
    {"p2p_persistent", p2p_persistent},
    {"p2p_remapped", p2p_remapped},
    {NULL, NULL},
};
