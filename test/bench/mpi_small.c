/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * MPI calls for short messages of a rank to itself, for callgrind to count
 * (test/bench/count-types):
 *
 *     mpirun -np 1 valgrind --tool=callgrind ... mpi_small [MESSAGES]
 *
 * "bytes": 8 contiguous bytes; "blocks": 8 doubles in 4 blocks, too small for
 * zero-copy. Counted are MPI_Isend(), MPI_Irecv(), and MPI_Wait() for a receive
 * that is complete. Progress in between is not counted, because its work
 * varies.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <valgrind/callgrind.h>

enum { WARM_UP = 16 };

typedef struct data {
    const char *name;
    int count;
    MPI_Datatype type;
} data_t;

/* Dumps the calls collected so far under this name. */
static void dump(const data_t *data, const char *call)
{
    char label[64];

    snprintf(label, sizeof(label), "%s/%s", call, data->name);
    CALLGRIND_DUMP_STATS_AT(label);
}

static void collect(int is_on)
{
    if (is_on) {
        CALLGRIND_TOGGLE_COLLECT;
    }
}

/* Makes progress without completing a request. */
static void complete(MPI_Request request)
{
    int is_complete = 0;

    while (!is_complete) {
        MPI_Request_get_status(request, &is_complete, MPI_STATUS_IGNORE);
    }
}

static void message(const data_t *data, const char *counted)
{
    static double in[8], out[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    MPI_Request reqs[2];
    MPI_Status status;

    collect(*counted == 'r');
    MPI_Irecv(in, data->count, data->type, 0, 1, MPI_COMM_WORLD, &reqs[0]);
    collect(*counted == 'r');
    collect(*counted == 's');
    MPI_Isend(out, data->count, data->type, 0, 1, MPI_COMM_WORLD, &reqs[1]);
    collect(*counted == 's');
    complete(reqs[0]);
    collect(*counted == 'w');
    MPI_Wait(&reqs[0], &status);
    collect(*counted == 'w');
    MPI_Wait(&reqs[1], &status);
    if (in[0] != out[0]) {
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

static void count(const data_t *data, const char *call, int messages)
{
    for (int i = 0; i < messages; i++) {
        message(data, call);
    }
    dump(data, call);
}

int main(int argc, char **argv)
{
    int messages   = (argc > 1) ? atoi(argv[1]) : 64;
    data_t datas[] = {{"bytes", 8, MPI_BYTE}, {"blocks", 1, MPI_DATATYPE_NULL}};

    MPI_Init(&argc, &argv);
    MPI_Type_vector(4, 1, 2, MPI_DOUBLE, &datas[1].type);
    MPI_Type_commit(&datas[1].type);
    for (int d = 0; d < 2; d++) {
        for (int i = 0; i < WARM_UP; i++) {
            message(&datas[d], "");
        }
        count(&datas[d], "send", messages);
        count(&datas[d], "recv", messages);
        count(&datas[d], "wait", messages);
    }
    printf("mpi_small: %d messages\n", messages);
    MPI_Type_free(&datas[1].type);
    MPI_Finalize();
    return 0;
}
