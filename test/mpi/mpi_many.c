/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Matching with 100,000 receives or messages, far more than a device's list
 * holds:
 *
 *     mpi_many [COUNT]
 *
 * Rank 0 posts receives before the messages come, in any order; has all
 * messages before it posts; posts receives from any source, its own messages
 * among them; and cancels receives while their messages arrive, then receives
 * what is left. The last check repeats the first. Prints the time of a message,
 * and the errors.
 */
#include "test/check.h"

#include <mpi.h>
#include <stdlib.h>
#include <string.h>

enum { LENGTH = 1024, COUNT = 100000, TAGS = 32000 };

static int rank, ranks, count;
static char *in;
static MPI_Request *requests;
static int errors;

static char *slot(int i)
{
    return in + ((size_t)i * LENGTH);
}

/* Permutation of 0 to count - 1, for the order of sends */
static int turn(int i)
{
    return (int)(((size_t)i * 7919) % (size_t)count);
}

static int tag_of(int i)
{
    return i % TAGS;
}

/* Sends message @i to rank 0. Its number is in its first bytes, as tags are
 * used several times. */
static void send_one(int i)
{
    char out[LENGTH];

    memset(out, i & 0x7f, sizeof(out));
    memcpy(out, &i, sizeof(i));
    MPI_Send(out, LENGTH, MPI_BYTE, 0, tag_of(i), MPI_COMM_WORLD);
}

/* Checks that a receive got a message with its tag, whole, and marks it. */
static void take(const char *data, int tag, char *seen)
{
    int i;

    memcpy(&i, data, sizeof(i));
    if ((i < 0) || (i >= count) || (tag_of(i) != tag) || seen[i]++ ||
        (data[sizeof(i)] != (char)(i & 0x7f)) ||
        memcmp(data + sizeof(i), data + sizeof(i) + 1,
               LENGTH - sizeof(i) - 1)) {
        errors++;
    }
}

static void take_all(char *seen)
{
    for (int i = 0; i < count; i++) {
        take(slot(i), tag_of(i), seen);
    }
}

static void post(int i, int source)
{
    MPI_Irecv(slot(i), LENGTH, MPI_BYTE, source, tag_of(i), MPI_COMM_WORLD,
              &requests[i]);
}

static void posted(char *seen)
{
    for (int i = 0; (rank == 0) && (i < count); i++) {
        post(i, 1);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; (rank == 1) && (i < count); i++) {
        send_one(turn(i));
    }
    if (rank == 0) {
        MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
        take_all(seen);
    }
}

static void unexpected(char *seen)
{
    for (int i = 0; (rank == 1) && (i < count); i++) {
        send_one(turn(i));
    }
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; (rank == 0) && (i < count); i++) {
        post(i, 1);
    }
    if (rank == 0) {
        MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
        take_all(seen);
    }
}

/* Every second message is rank 0's own, which takes another transport. */
static void any_source(char *seen)
{
    for (int i = 0; (rank == 0) && (i < count); i++) {
        post(i, MPI_ANY_SOURCE);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < count; i++) {
        if ((rank < 2) && (i % 2 == rank)) {
            send_one(i);
        }
    }
    if (rank == 0) {
        MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
        take_all(seen);
    }
}

/* A receive that is not canceled in time has its message. */
static void canceled(char *seen)
{
    MPI_Status status;
    int left = 0, is_there;

    for (int i = 0; (rank == 0) && (i < count); i++) {
        post(i, 1);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; (rank == 1) && (i < count); i++) {
        send_one(turn(i));
    }
    for (int i = 0; (rank == 0) && (i < count); i++) {
        if (i % 3) {
            MPI_Cancel(&requests[i]);
        }
        if (i % 16 == 0) { /* lets messages arrive */
            MPI_Iprobe(1, TAGS, MPI_COMM_WORLD, &is_there, &status);
        }
    }
    for (int i = 0; (rank == 0) && (i < count); i++) {
        int is_canceled;

        MPI_Wait(&requests[i], &status);
        MPI_Test_cancelled(&status, &is_canceled);
        left += is_canceled;
        if (!is_canceled) {
            take(slot(i), tag_of(i), seen);
        }
    }
    for (int i = 0; i < left; i++) {
        MPI_Recv(in, LENGTH, MPI_BYTE, 1, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
        take(in, status.MPI_TAG, seen);
    }
    if (rank == 0) {
        printf("# %d of %d receives were canceled\n", left, count);
        errors += (left == 0) || (left == count);
    }
}

static void run(const char *name, int messages, void (*check)(char *seen))
{
    char *seen = calloc(messages, 1);
    double start;

    count = messages;
    MPI_Barrier(MPI_COMM_WORLD);
    start = MPI_Wtime();
    check(seen);
    MPI_Barrier(MPI_COMM_WORLD);
    if ((rank == 0) && (memchr(seen, 0, count) != NULL)) {
        errors += check_value(name, 0, count);
    }
    if (rank == 0) {
        printf("%-14s %6d messages, %7.2f us each\n", name, count,
               (MPI_Wtime() - start) * 1e6 / count);
        fflush(stdout);
    }
    free(seen);
}

int main(int argc, char **argv)
{
    int messages = (argc > 1) ? atoi(argv[1]) : COUNT;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    in       = calloc(messages, LENGTH);
    requests = calloc(messages, sizeof(*requests));

    run("posted", messages, posted);
    /* libraries search these one by one */
    run("unexpected", messages / 10, unexpected);
    run("any source", messages / 10, any_source);
    run("canceled", messages, canceled);
    run("posted again", messages, posted);
    if (rank == 0) {
        printf("mpi_many: %d ranks, %d errors\n", ranks, errors);
    }
    free(requests);
    free(in);
    MPI_Finalize();
    return errors != 0;
}
