/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Strided operations of a program that is linked with a tool (shmem_tool.c):
 * the tool counts each of them once, and they transfer the right data.
 */
#include "test/shmem/tool.h"

#include <stdio.h>

enum { NUM = 100, CALLS = 5 };

static int ints[2 * NUM];
static double doubles[NUM];

static int get(int pe, int peer)
{
    int got[NUM];
    int wrong = 0;

    for (int i = 0; i < 2 * NUM; i++) {
        ints[i] = 1000 * pe + i;
    }
    shmem_barrier_all();
    for (int i = 0; i < CALLS; i++) {
        shmem_int_iget(got, ints, 1, 2, NUM, peer);
    }
    for (int i = 0; i < NUM; i++) {
        wrong += got[i] != 1000 * peer + 2 * i;
    }
    return wrong;
}

static int put(int pe, int peer, int from)
{
    double put[2 * NUM];
    int wrong = 0;

    for (int i = 0; i < 2 * NUM; i++) {
        put[i] = 1000 * pe + i;
    }
    for (int i = 0; i < CALLS; i++) {
        shmem_ctx_double_iput(SHMEM_CTX_DEFAULT, doubles, put, 1, 2, NUM, peer);
    }
    shmem_barrier_all();
    for (int i = 0; i < NUM; i++) {
        wrong += doubles[i] != 1000 * from + 2 * i;
    }
    return wrong;
}

int main(void)
{
    int pe, pes, wrong;

    shmem_init();
    pe    = shmem_my_pe();
    pes   = shmem_n_pes();
    wrong = get(pe, (pe + 1) % pes);
    wrong += put(pe, (pe + 1) % pes, (pe + pes - 1) % pes);
    printf("PE %d: the tool saw %d gets, %d puts; %d wrong\n", pe, tool_gets,
           tool_puts, wrong);
    shmem_finalize();
    return wrong != 0;
}
