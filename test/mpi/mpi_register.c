/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * A persistent halo registers its memory once. Two ranks exchange planes of
 * derived types of a box by persistent requests; this program counts calls of
 * ibv_reg_mr_iova2(), which the macro ibv_reg_mr() calls, by a function of that
 * name that libraries find before libibverbs' own. After the first round there
 * must be none. Prints
 *
 *     mpi_register: N messages, N registered in the first round, N later, ...
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { CELLS = 128, ROWS = CELLS * 2, PLANES = 6, ROUNDS = 12 };

static double box[PLANES * 2][ROWS][CELLS * 2];
static unsigned registered;

struct ibv_pd;
struct ibv_mr;

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length,
                                uint64_t iova, unsigned access);

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length,
                                uint64_t iova, unsigned access)
{
    static __typeof__(ibv_reg_mr_iova2) *next;

    if (next == NULL) {
        next = (__typeof__(next))dlsym(dlopen("libibverbs.so.1", RTLD_NOW),
                                       "ibv_reg_mr_iova2");
    }
    registered++;
    return next(pd, addr, length, iova, access);
}

static double value(int rank, int round, int plane, int i)
{
    return rank + (round * 2.) + (plane * 100.) + (i * 1000.);
}

/* A plane has every second row of its part of the box. */
static double *cell(int plane, int i)
{
    return &box[plane][i / CELLS * 2][i % CELLS];
}

static int exchange(MPI_Request *requests, int rank, int round)
{
    int wrong = 0;

    for (int plane = 0; plane < PLANES; plane++) {
        for (int i = 0; i < CELLS * CELLS; i++) {
            *cell(plane, i)          = value(rank, round, plane, i);
            *cell(PLANES + plane, i) = -1;
        }
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Startall(2 * PLANES, requests);
    MPI_Waitall(2 * PLANES, requests, MPI_STATUSES_IGNORE);
    for (int plane = 0; plane < PLANES; plane++) {
        for (int i = 0; i < CELLS * CELLS; i++) {
            wrong += *cell(PLANES + plane, i) !=
                     value(1 - rank, round, plane, i);
        }
    }
    return wrong;
}

int main(int argc, char **argv)
{
    MPI_Request requests[2 * PLANES];
    unsigned before, later, first = 0;
    int rank, wrong = 0;
    MPI_Datatype type;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Type_vector(CELLS, CELLS, CELLS * 4, MPI_DOUBLE, &type);
    MPI_Type_commit(&type);
    for (int plane = 0; plane < PLANES; plane++) {
        MPI_Send_init(box[plane], 1, type, 1 - rank, plane, MPI_COMM_WORLD,
                      &requests[plane]);
        MPI_Recv_init(box[PLANES + plane], 1, type, 1 - rank, plane,
                      MPI_COMM_WORLD, &requests[PLANES + plane]);
    }

    before = registered;
    for (int round = 0; round < ROUNDS; round++) {
        wrong += exchange(requests, rank, round);
        first = (round == 0) ? registered - before : first;
    }
    later = registered - before - first;
    printf("mpi_register: %d messages, %u registered in the first round, %u "
           "later, %d wrong\n",
           ROUNDS * PLANES, first, later, wrong);

    for (int i = 0; i < 2 * PLANES; i++) {
        MPI_Request_free(&requests[i]);
    }
    MPI_Type_free(&type);
    MPI_Finalize();
    return (wrong != 0) || (later != 0);
}
