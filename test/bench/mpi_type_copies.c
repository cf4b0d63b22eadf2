/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Counts the copies of a message's data by a processor, for derived types:
 *
 *     mpirun -np 2 mpi_type_copies GROUP...
 *
 * Groups are those of mpi_layout.h. As in mpi_copies.c, this program's memcpy()
 * replaces libc's in all libraries. It adds up copies from and to the memory of
 * the type, except those of the software device. Prints for each layout
 *
 *     NAME BYTES BLOCK   copies of the receiver   copies of the sender
 *
 * Copies by a loop of loads and stores, which an MPI may use for blocks of a
 * few bytes, are not counted: if the program finds none, compare with a run
 * without zero-copy datatypes.
 */
#define _GNU_SOURCE    /* dladdr() */
#undef _FORTIFY_SOURCE /* memcpy() is a function */
#include "mpi_layout.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MESSAGES = 3 };

static char *memory; /* memory of the type */
static size_t span, copied;

static int is_of_type(const void *address)
{
    return (memory != NULL) && ((char *)address >= memory) &&
           ((char *)address < memory + span);
}

static int is_device(const void *caller)
{
    Dl_info info;

    return dladdr(caller, &info) && strstr(info.dli_fname, "libsofthca");
}

static void count(const void *dest, const void *src, size_t length,
                  const void *caller)
{
    if ((is_of_type(dest) || is_of_type(src)) && !is_device(caller)) {
        copied += length;
    }
}

void *memcpy(void *dest, const void *src, size_t length)
{
    count(dest, src, length, __builtin_return_address(0));
    return memmove(dest, src, length);
}

/* called for memcpy() where the compiler knows the size of the destination */
void *__memcpy_chk(void *dest, const void *src, size_t length, size_t room)
{
    (void)room;
    count(dest, src, length, __builtin_return_address(0));
    return memmove(dest, src, length);
}

/* Returns the number of copies. The first message, which opens connections and
 * views, is not counted. */
static double copies(int rank, const layout_t *layout)
{
    for (int i = 0; i <= MESSAGES; i++) {
        MPI_Barrier(MPI_COMM_WORLD);
        copied = (i <= 1) ? 0 : copied;
        if (rank == 0) {
            MPI_Send(memory, 1, layout->type, 1, 0, MPI_COMM_WORLD);
        } else {
            MPI_Recv(memory, 1, layout->type, 0, 0, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        }
    }
    return (double)copied / layout->bytes / MESSAGES;
}

static void run(int rank, const layout_t *layout)
{
    double own[1], both[2];

    span   = layout->span;
    own[0] = copies(rank, layout);
    MPI_Gather(own, 1, MPI_DOUBLE, both, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("%-13s %8zu %6zu %6.2f %6.2f\n", layout->name, layout->bytes,
               layout->block, both[1], both[0]);
    }
}

int main(int argc, char **argv)
{
    int rank, ranks;
    layout_t layout;

    /* UCX would copy long blocks by a processor instruction. */
    setenv("UCX_BUILTIN_MEMCPY_MIN", "inf", 1);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    memory = calloc(1, LAYOUT_MAX_SPAN + (1 << 20));
    if ((ranks != 2) || (memory == NULL)) {
        fprintf(stderr, "usage: mpirun -np 2 mpi_type_copies GROUP...\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    for (int i = 1; i < argc; i++) {
        for (int n = 0; layout_create(argv[i], n, &layout); n++) {
            run(rank, &layout);
            layout_destroy(&layout);
        }
    }
    MPI_Finalize();
    return 0;
}
