/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Messages shorter than their receives. Rank 1 always has room for a whole
 * element of its type. Rank 0 sends it 20 times a few bytes, then 15 times the
 * full length: the first four receives are zero-copy, and the last five of the
 * others (views.tab).
 */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

enum { BLOCKS = 256, BYTES = 1024, STRIDE = 2 * BYTES, SHORT = 8 };

static char memory[BLOCKS * STRIDE];
static char packed[BLOCKS * BYTES];

/* Returns 1 unless the first bytes of 'packed' were received. */
static int is_wrong(MPI_Datatype type, const MPI_Status *status, int length)
{
    static char found[BLOCKS * BYTES], nothing[BLOCKS * BYTES];
    int at = 0;
    int count;

    MPI_Get_count(status, MPI_BYTE, &count);
    MPI_Pack(memory, 1, type, found, sizeof(found), &at, MPI_COMM_WORLD);
    return (count != length) || memcmp(found, packed, length) ||
           memcmp(found + length, nothing, sizeof(found) - length);
}

/* Receives a message that is expected, or that has arrived before. */
static void receive(MPI_Datatype type, int is_expected, MPI_Status *status)
{
    MPI_Request request;

    memset(memory, 0, sizeof(memory));
    if (is_expected) {
        MPI_Irecv(memory, 1, type, 0, 0, MPI_COMM_WORLD, &request);
        MPI_Send(NULL, 0, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
        MPI_Wait(&request, status);
    } else {
        MPI_Probe(0, 0, MPI_COMM_WORLD, status);
        MPI_Recv(memory, 1, type, 0, 0, MPI_COMM_WORLD, status);
    }
}

static void send(int length, int is_expected)
{
    if (is_expected) {
        MPI_Recv(NULL, 0, MPI_BYTE, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    MPI_Send(packed, length, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
}

/* Returns 1 if rank 1 received wrong data. */
static int message(int rank, MPI_Datatype type, int length, int is_expected)
{
    MPI_Status status;

    if (rank == 0) {
        send(length, is_expected);
        return 0;
    }

    receive(type, is_expected, &status);
    return is_wrong(type, &status, length);
}

int main(int argc, char **argv)
{
    MPI_Datatype type;
    int wrong = 0;
    int rank;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Type_create_hvector(BLOCKS, BYTES, STRIDE, MPI_BYTE, &type);
    MPI_Type_commit(&type);
    for (int i = 0; i < BLOCKS * BYTES; i++) {
        packed[i] = i % 251 + 1;
    }
    for (int i = 0; i < 35; i++) {
        wrong += message(rank, type, (i < 20) ? SHORT : BLOCKS * BYTES, i % 4);
    }
    if (rank == 1) {
        printf("mpi_short: %d wrong\n", wrong);
    }
    MPI_Type_free(&type);
    MPI_Finalize();
    return wrong != 0;
}
