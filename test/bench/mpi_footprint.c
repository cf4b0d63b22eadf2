/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Memory of a transport in an MPI rank that has communicated with every other
 * rank:
 *
 *     mpirun ... mpi_footprint         after messages to and from every rank
 *     mpi_footprint device             no message; only the device is open
 *
 * Each rank prints two sizes in KiB. The first is that of the private pages
 * that it has written and of its part of registered pages, which its peers have
 * mapped, too. Other memory does not count: a clean page of a library is
 * private or shared by how many processes run. The second is that of its part
 * of the software device's segment, which holds the rings that libmlx5
 * allocates. With `device`, run with UCX_TLS=self, they are those of a process
 * without a transport.
 */
#include <infiniband/verbs.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_SIZE = 4096 };

struct memory {
    long private_kib;
    long device_kib;
};

enum mapping {
    MAPPING_PRIVATE,
    MAPPING_SHARE,  /* registered memory of this process or a peer */
    MAPPING_SEGMENT /* of the device */
};

/* Adds a line of smaps; a mapping starts with a line that ends with its
 * name. */
static void memory_add(struct memory *memory, const char *line,
                       enum mapping *mapping)
{
    unsigned long start, end;
    char field[32];
    long kib;

    if (sscanf(line, "%lx-%lx ", &start, &end) == 2) {
        *mapping = strstr(line, "memfd:softhca-share") ? MAPPING_SHARE :
                   strstr(line, "memfd:softhca")       ? MAPPING_SEGMENT :
                                                         MAPPING_PRIVATE;
    } else if (sscanf(line, "%31s %ld kB", field, &kib) != 2) {
        return;
    } else if (*mapping == MAPPING_SEGMENT) {
        memory->device_kib += !strcmp(field, "Pss:") ? kib : 0;
    } else if (*mapping == MAPPING_SHARE) {
        memory->private_kib += !strcmp(field, "Pss:") ? kib : 0;
    } else if (!strcmp(field, "Private_Dirty:")) {
        memory->private_kib += kib;
    }
}

static struct memory memory_now(void)
{
    struct memory memory = {0, 0};
    FILE *file           = fopen("/proc/self/smaps", "r");
    char line[512];
    enum mapping mapping = MAPPING_PRIVATE;

    while ((file != NULL) && fgets(line, sizeof(line), file)) {
        memory_add(&memory, line, &mapping);
    }
    if (file != NULL) {
        fclose(file);
    }
    return memory;
}

static void print_memory(void)
{
    struct memory memory = memory_now();

    printf("footprint %ld %ld\n", memory.private_kib, memory.device_kib);
    fflush(stdout);
}

static int open_device(void)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    struct ibv_context *ctx;

    if ((list == NULL) || (list[0] == NULL)) {
        return 0;
    }
    ctx = ibv_open_device(list[0]);
    return (ctx != NULL) && (ibv_alloc_pd(ctx) != NULL);
}

/* Sends a short and a long message to each rank and receives them, including
 * this rank. */
static void talk(int rank, int size)
{
    static char out[MAX_SIZE], in[MAX_SIZE];
    int shift, to, from, length;

    for (shift = 0; shift < size; shift++) {
        to   = (rank + shift) % size;
        from = (rank + size - shift) % size;
        for (length = 8; length <= MAX_SIZE; length += MAX_SIZE - 8) {
            out[0] = rank;
            MPI_Sendrecv(out, length, MPI_CHAR, to, 1, in, length, MPI_CHAR,
                         from, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            if (in[0] != (char)from) {
                fprintf(stderr, "mpi_footprint: wrong data from %d\n", from);
                MPI_Abort(MPI_COMM_WORLD, 1);
            }
        }
    }
}

int main(int argc, char **argv)
{
    int only_device = (argc > 1) && !strcmp(argv[1], "device");
    int rank, size;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (only_device) {
        if (!open_device()) {
            fprintf(stderr, "mpi_footprint: no device\n");
            return 1;
        }
        print_memory();
    } else {
        talk(rank, size);
        MPI_Barrier(MPI_COMM_WORLD);
        print_memory();
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return 0;
}
