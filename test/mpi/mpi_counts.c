/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Data types that take another path with few elements than with many: zero-copy
 * or packed. Rank 0 sends rank 1 few, many, few and many of each, since the
 * properties found for one message are kept for later ones. The loader's report
 * counts the messages of each path (views.tab).
 */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

enum { MEMORY = 8 << 20 };

typedef struct use {
    int blocks, bytes, stride;
    MPI_Aint extent;
    int few, many;
} use_t;

static const use_t uses[] = {
    {4, 4096, 8192, 32768, 2, 20},     /* too short, zero-copy */
    {1, 131072, 131072, 262144, 1, 2}, /* a single block, zero-copy */
    {16, 64, 128, 2048, 2, 200},       /* too short, small blocks */
    {64, 512, 1024, 131072, 1, 3},     /* too short, blocks far apart */
    {256, 512, 2048, 512, 1, 4},       /* blocks far apart, zero-copy */
    {256, 512, 1024, 1 << 20, 1, 4},   /* zero-copy, blocks far apart */
};

enum { NUM_USES = sizeof(uses) / sizeof(uses[0]) };

/* Lists of blocks of 512 bytes, more than the pieces of a key unless they form
 * rounds of three */
enum { BLOCKS = 3000 };

static char memory[2][MEMORY]; /* [0] sent, [1] received */
static int rank;

static MPI_Datatype make(const use_t *use)
{
    MPI_Datatype blocks, type;

    MPI_Type_create_hvector(use->blocks, use->bytes, use->stride, MPI_BYTE,
                            &blocks);
    MPI_Type_create_resized(blocks, 0, use->extent, &type);
    MPI_Type_commit(&type);
    MPI_Type_free(&blocks);
    return type;
}

static MPI_Datatype make_list(int is_regular)
{
    static const MPI_Aint round[3] = {0, 1024, 2560};
    static MPI_Aint places[BLOCKS];
    unsigned random = 1;
    MPI_Datatype type;

    for (int i = 0; i < BLOCKS; i++) {
        random    = random * 1664525 + 1013904223;
        places[i] = is_regular ? i / 3 * 3328 + round[i % 3] :
                                 i * 1024 + random % 4096 / 512 * 64;
    }
    MPI_Type_create_hindexed_block(BLOCKS, 512, places, MPI_BYTE, &type);
    MPI_Type_commit(&type);
    return type;
}

/* Packs the expected bytes of a message. Returns their number. */
static int pack(char *data, MPI_Datatype type, int count, char *packed)
{
    int length = 0;

    MPI_Pack(data, count, type, packed, MEMORY, &length, MPI_COMM_WORLD);
    return length;
}

/* Sends a message; returns 1 if rank 1 received wrong bytes. */
static int message(MPI_Datatype type, int count)
{
    static char packed[2][MEMORY];
    int length;

    if (rank == 0) {
        MPI_Send(memory[0], count, type, 1, 0, MPI_COMM_WORLD);
        return 0;
    }

    memset(memory[1], 0, MEMORY);
    MPI_Recv(memory[1], count, type, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    length = pack(memory[0], type, count, packed[0]);
    return (pack(memory[1], type, count, packed[1]) != length) ||
           memcmp(packed[0], packed[1], length);
}

/* Returns the number of wrong messages. */
static int messages(MPI_Datatype type, int few, int many)
{
    int wrong = 0;

    for (int n = 0; n < 4; n++) {
        wrong += message(type, n % 2 ? many : few);
    }
    MPI_Type_free(&type);
    return wrong;
}

int main(int argc, char **argv)
{
    int wrong = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < MEMORY; i++) {
        memory[0][i] = i % 251 + 1;
    }
    for (int i = 0; i < NUM_USES; i++) {
        wrong += messages(make(&uses[i]), uses[i].few, uses[i].many);
    }
    wrong += messages(make_list(1), 1, 1);
    wrong += messages(make_list(0), 1, 1);
    if (rank == 1) {
        printf("mpi_counts: %d wrong\n", wrong);
    }
    MPI_Finalize();
    return wrong != 0;
}
