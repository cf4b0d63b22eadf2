/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Matching: wildcards, order, unexpected and truncated messages, probes,
 * cancelled receives, and communicators that are separate.
 */
#include "test/mpi/check.h"

enum { SMALL = 32, EAGER = 3000, LARGE = 300000 };

static const int match_lens[] = {0, SMALL, EAGER, LARGE};

#define MATCH_NUM_LENS (int)(sizeof(match_lens) / sizeof(match_lens[0]))

/* Rank 0 receives from any source; messages of one source arrive in order. */
static int match_wildcards(void)
{
    enum { COUNT = 200 };
    int *next  = calloc(ranks, sizeof(*next));
    int errors = 0, msg[2];
    MPI_Status status;

    for (int i = 0; (rank != 0) && (i < COUNT); i++) {
        msg[0] = rank;
        msg[1] = i;
        MPI_Send(msg, 2, MPI_INT, 0, 100 + i, MPI_COMM_WORLD);
    }
    for (int i = 0; (rank == 0) && (i < COUNT * (ranks - 1)); i++) {
        MPI_Recv(msg, 2, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD,
                 &status);
        errors += check_value("source", status.MPI_SOURCE, msg[0]);
        errors += check_value("order", msg[1], next[msg[0]]++);
        errors += check_value("tag", status.MPI_TAG, 100 + msg[1]);
    }
    free(next);
    return errors;
}

/* One wildcard at a time, with receives posted before any send */
static int match_posted_wildcards(void)
{
    char in[3][SMALL], out[SMALL];
    MPI_Request req[3];
    MPI_Status status[3];
    int errors = 0;

    MPI_Irecv(in[0], SMALL, MPI_BYTE, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD,
              &req[0]);
    MPI_Irecv(in[1], SMALL, MPI_BYTE, prev_rank(), MPI_ANY_TAG, MPI_COMM_WORLD,
              &req[1]);
    MPI_Irecv(in[2], SMALL, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG,
              MPI_COMM_WORLD, &req[2]);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int tag = 1; tag <= 3; tag++) {
        check_fill(out, SMALL, rank + tag);
        MPI_Send(out, SMALL, MPI_BYTE, next_rank(), tag, MPI_COMM_WORLD);
    }
    MPI_Waitall(3, req, status);
    for (int i = 0; i < 3; i++) {
        errors += check_value("source", status[i].MPI_SOURCE, prev_rank());
        errors += check_value("tag", status[i].MPI_TAG, i + 1);
        errors += check_data("data", in[i], SMALL, prev_rank() + i + 1);
    }
    return errors;
}

/* Messages of all sizes wait; the receiver takes the last one first. */
static int match_unexpected(void)
{
    enum { COUNT = 40 };
    char *out = need(LARGE), *in = need(LARGE);
    MPI_Request req[COUNT];
    int errors = 0, count;
    MPI_Status status;

    check_fill(out, LARGE, rank);
    for (int i = 0; i < COUNT; i++) {
        MPI_Isend(out, match_lens[i % MATCH_NUM_LENS], MPI_BYTE, next_rank(), i,
                  MPI_COMM_WORLD, &req[i]);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = COUNT - 1; i >= 0; i--) {
        int len = match_lens[i % MATCH_NUM_LENS];

        memset(in, 0, LARGE);
        MPI_Recv(in, LARGE, MPI_BYTE, prev_rank(), i, MPI_COMM_WORLD, &status);
        MPI_Get_count(&status, MPI_BYTE, &count);
        errors += check_value("count", count, len);
        errors += check_data("unexpected", in, len, prev_rank());
    }
    MPI_Waitall(COUNT, req, MPI_STATUSES_IGNORE);
    free(in);
    free(out);
    return errors;
}

/* A receive that is too short reports an error, and writes nothing after its
 * buffer. */
static int truncated(int len, int posted_first)
{
    char *out = need(len), *in = need(len);
    int errors = 0, class = 0, status;
    MPI_Request req[2];

    check_fill(out, len, rank);
    memset(in, 0xee, len);
    if (posted_first) {
        MPI_Irecv(in, len / 2, MPI_BYTE, prev_rank(), 3, MPI_COMM_WORLD,
                  &req[0]);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Isend(out, len, MPI_BYTE, next_rank(), 3, MPI_COMM_WORLD, &req[1]);
    if (!posted_first) {
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Irecv(in, len / 2, MPI_BYTE, prev_rank(), 3, MPI_COMM_WORLD,
                  &req[0]);
    }
    status = MPI_Wait(&req[0], MPI_STATUS_IGNORE);
    MPI_Error_class(status, &class);
    errors += check_value("error class", class, MPI_ERR_TRUNCATE);
    MPI_Wait(&req[1], MPI_STATUS_IGNORE);
    for (int i = len / 2; i < len; i++) {
        errors += (uint8_t)in[i] != 0xee;
    }
    free(in);
    free(out);
    return errors;
}

static int match_truncated(void)
{
    int errors = 0;

    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (int i = 1; i < MATCH_NUM_LENS; i++) {
        errors += truncated(match_lens[i], 0);
        errors += truncated(match_lens[i], 1);
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    return errors;
}

/* Probe, Iprobe, Mprobe and Improbe return source, tag and length first. */
static int probe_one(int way, char *in, MPI_Status *status)
{
    int found = 0, count;
    MPI_Message message;

    if (way == 0) {
        MPI_Probe(prev_rank(), MPI_ANY_TAG, MPI_COMM_WORLD, status);
    } else if (way == 1) {
        while (!found) {
            MPI_Iprobe(MPI_ANY_SOURCE, 9, MPI_COMM_WORLD, &found, status);
        }
    } else if (way == 2) {
        MPI_Mprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &message,
                   status);
    } else {
        while (!found) {
            MPI_Improbe(prev_rank(), 9, MPI_COMM_WORLD, &found, &message,
                        status);
        }
    }

    MPI_Get_count(status, MPI_BYTE, &count);
    if (way < 2) {
        MPI_Recv(in, count, MPI_BYTE, status->MPI_SOURCE, status->MPI_TAG,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
        MPI_Mrecv(in, count, MPI_BYTE, &message, MPI_STATUS_IGNORE);
    }
    return count;
}

static int match_probe(void)
{
    char *out = need(LARGE), *in = need(LARGE);
    MPI_Request req;
    MPI_Status status;
    int errors = 0;

    for (int i = 0; i < 4 * MATCH_NUM_LENS; i++) {
        int len = match_lens[i / 4];

        check_fill(out, len, rank + i);
        MPI_Isend(out, len, MPI_BYTE, next_rank(), 9, MPI_COMM_WORLD, &req);
        errors += check_value("count", probe_one(i % 4, in, &status), len);
        errors += check_value("source", status.MPI_SOURCE, prev_rank());
        errors += check_value("tag", status.MPI_TAG, 9);
        errors += check_data("probed", in, len, prev_rank() + i);
        MPI_Wait(&req, MPI_STATUS_IGNORE);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    free(in);
    free(out);
    return errors;
}

/* A cancelled receive matches nothing; the next receive gets the message. */
static int match_cancel(void)
{
    char in[SMALL], other[SMALL], out[SMALL];
    int errors = 0, cancelled;
    MPI_Status status;
    MPI_Request req;

    check_fill(out, SMALL, rank);
    MPI_Irecv(other, SMALL, MPI_BYTE, prev_rank(), 4, MPI_COMM_WORLD, &req);
    MPI_Cancel(&req);
    MPI_Wait(&req, &status);
    MPI_Test_cancelled(&status, &cancelled);
    errors += check_value("cancelled", cancelled, 1);
    MPI_Barrier(MPI_COMM_WORLD); /* no rank sends before all have cancelled */
    MPI_Sendrecv(out, SMALL, MPI_BYTE, next_rank(), 4, in, SMALL, MPI_BYTE,
                 prev_rank(), 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return errors + check_data("after cancel", in, SMALL, prev_rank());
}

/* Waitany, Waitsome and Testall with receives that complete in any order */
static int match_waits(void)
{
    enum { COUNT = 30 };
    int out[COUNT], in[COUNT], errors = 0, index, left = COUNT, done = 0;
    MPI_Request sends[COUNT], recvs[COUNT];
    int indices[COUNT];

    for (int i = 0; i < COUNT; i++) {
        MPI_Irecv(&in[i], 1, MPI_INT, prev_rank(), i, MPI_COMM_WORLD,
                  &recvs[i]);
    }
    for (int i = COUNT - 1; i >= 0; i--) {
        out[i] = rank * 1000 + i;
        MPI_Isend(&out[i], 1, MPI_INT, next_rank(), i, MPI_COMM_WORLD,
                  &sends[i]);
    }
    while (left > COUNT / 2) {
        MPI_Waitany(COUNT, recvs, &index, MPI_STATUS_IGNORE);
        errors += check_value("waitany", in[index], prev_rank() * 1000 + index);
        left--;
    }
    while (left > 0) {
        MPI_Waitsome(COUNT, recvs, &index, indices, MPI_STATUSES_IGNORE);
        for (int i = 0; i < index; i++) {
            errors += check_value("waitsome", in[indices[i]],
                                  prev_rank() * 1000 + indices[i]);
        }
        left -= index;
    }
    while (!done) {
        MPI_Testall(COUNT, sends, &done, MPI_STATUSES_IGNORE);
    }
    return errors;
}

/* Source and tag are the same in another communicator, but do not match. */
static int match_comm_dup(void)
{
    int out[2] = {rank, rank + 1000}, in[2], errors = 0;
    MPI_Request req[2];
    MPI_Comm dup;

    MPI_Comm_dup(MPI_COMM_WORLD, &dup);
    MPI_Isend(&out[0], 1, MPI_INT, next_rank(), 5, MPI_COMM_WORLD, &req[0]);
    MPI_Isend(&out[1], 1, MPI_INT, next_rank(), 5, dup, &req[1]);
    MPI_Recv(&in[1], 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, dup,
             MPI_STATUS_IGNORE);
    MPI_Recv(&in[0], 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD,
             MPI_STATUS_IGNORE);
    errors += check_value("world", in[0], prev_rank());
    errors += check_value("dup", in[1], prev_rank() + 1000);
    MPI_Waitall(2, req, MPI_STATUSES_IGNORE);
    MPI_Comm_free(&dup);
    return errors;
}

/* Halves of the world, in reverse order, each with a sum of its own */
static int match_comm_split(void)
{
    int half = rank % 2, errors = 0, sum, want = 0, at, count, first;
    MPI_Comm comm;

    MPI_Comm_split(MPI_COMM_WORLD, half, -rank, &comm);
    MPI_Comm_rank(comm, &at);
    MPI_Comm_size(comm, &count);
    for (int i = half; i < ranks; i += 2) {
        want += i;
    }
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm);
    errors += check_value("sum of a half", sum, want);
    first = rank;
    MPI_Bcast(&first, 1, MPI_INT, 0, comm);
    errors += check_value("first of a half", first, half + 2 * (count - 1));
    errors += check_value("rank in a half", at, count - 1 - rank / 2);
    MPI_Comm_free(&comm);
    return errors;
}

const struct check mpi_match_checks[] = {
    {"match_wildcards", match_wildcards},
    {"match_posted_wildcards", match_posted_wildcards},
    {"match_unexpected", match_unexpected},
    {"match_truncated", match_truncated},
    {"match_probe", match_probe},
    {"match_cancel", match_cancel},
    {"match_waits", match_waits},
    {"match_comm_dup", match_comm_dup},
    {"match_comm_split", match_comm_split},
    {NULL, NULL},
};
