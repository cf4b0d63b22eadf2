/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Counts the copies of a message's data by a processor, with a receive that is
 * posted before:
 *
 *     mpirun -np 2 mpi_copies
 *
 * Rank 1 posts a receive and tells rank 0, which then sends, as in
 * mpi_overlap.c. This program's memcpy() replaces libc's in all libraries and
 * adds up the bytes, except headers and the copies of the software device,
 * which a NIC would make. Prints for each size, 256 bytes to 4 MiB:
 *
 *     SIZE   copies of the receiver   copies of the sender
 */
#define _GNU_SOURCE    /* dladdr() */
#undef _FORTIFY_SOURCE /* memcpy() is a function */
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_SIZE = 4 << 20,
    MESSAGES = 10,
    WARM_UP  = 3,
    HEADER   = 128 /* fewer bytes are a header */
};

static int counting;
static size_t copied;

static int by_device(const void *caller)
{
    Dl_info info;

    return dladdr(caller, &info) && strstr(info.dli_fname, "libsofthca");
}

static void count(size_t length, const void *caller)
{
    if (counting && (length > HEADER) && !by_device(caller)) {
        copied += length;
    }
}

void *memcpy(void *dest, const void *src, size_t length)
{
    count(length, __builtin_return_address(0));
    return memmove(dest, src, length);
}

/* called for memcpy() where the compiler knows the size of the destination */
void *__memcpy_chk(void *dest, const void *src, size_t length, size_t room)
{
    (void)room;
    count(length, __builtin_return_address(0));
    return memmove(dest, src, length);
}

static void message(int rank, char *buf, int size)
{
    MPI_Request req;

    MPI_Barrier(MPI_COMM_WORLD);
    counting = 1;
    if (rank == 0) {
        MPI_Recv(NULL, 0, MPI_CHAR, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(buf, size, MPI_CHAR, 1, 1, MPI_COMM_WORLD);
    } else {
        MPI_Irecv(buf, size, MPI_CHAR, 0, 1, MPI_COMM_WORLD, &req);
        MPI_Send(NULL, 0, MPI_CHAR, 0, 2, MPI_COMM_WORLD);
        MPI_Wait(&req, MPI_STATUS_IGNORE);
    }
    counting = 0;
}

/* Returns the number of copies of a message's data on this side. */
static double copies(int rank, char *buf, int size)
{
    for (int i = 0; i < WARM_UP; i++) {
        message(rank, buf, size);
    }
    copied = 0;
    for (int i = 0; i < MESSAGES; i++) {
        message(rank, buf, size);
    }
    return (double)copied / size / MESSAGES;
}

int main(int argc, char **argv)
{
    int rank, ranks;
    double own[1], both[2];
    char *buf;

    /* UCX would copy long blocks by a processor instruction. */
    setenv("UCX_BUILTIN_MEMCPY_MIN", "inf", 1);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    buf = calloc(1, MAX_SIZE);
    if ((ranks != 2) || (buf == NULL)) {
        fprintf(stderr, "usage: mpirun -np 2 mpi_copies\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    for (int size = 256; size <= MAX_SIZE; size *= 4) {
        own[0] = copies(rank, buf, size);
        MPI_Gather(own, 1, MPI_DOUBLE, both, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
        if (rank == 0) {
            printf("%-8d %6.2f %6.2f\n", size, both[1], both[0]);
        }
    }
    free(buf);
    MPI_Finalize();
    return 0;
}
