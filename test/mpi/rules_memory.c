/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Memory that is unmapped and mapped again, read-only memory, memory with
 * unmapped gaps, and RMA of the same memory at the same time
 */
#define _GNU_SOURCE
#include "test/mpi/rules.h"

#include <sys/mman.h>

enum { BYTES = 400000 };

static void *map_memory(void *address, size_t length)
{
    void *memory = mmap(address, length, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS |
                            ((address == NULL) ? 0 : MAP_FIXED_NOREPLACE),
                        -1, 0);

    if (memory == MAP_FAILED) {
        perror("mmap");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    return memory;
}

/* The same addresses with other memory */
static int memory_mapped_again(void)
{
    int errors = 0;

    for (int layout = 0; layout < 3; layout++) {
        void *addresses[2] = {NULL, NULL};
        struct area first, pair[2];

        area_init_layout(&first, layout, BYTES);
        for (int i = 0; i < 6; i++) {
            for (int j = 0; j < 2; j++) {
                pair[j]      = first;
                addresses[j] = map_memory(addresses[j], first.length);
                area_place(&pair[j], addresses[j]);
            }
            errors += exchange("mapped again", &pair[0], &pair[1], i,
                               MPI_COMM_WORLD);
            munmap(addresses[0], first.length);
            munmap(addresses[1], first.length);
        }
        area_cleanup(&first);
    }
    return errors;
}

static int memory_freed(void)
{
    struct area first;
    int errors = 0;

    area_init_layout(&first, 0, BYTES);
    for (int i = 0; i < 10; i++) {
        struct area out, in;

        area_clone(&first, &out);
        area_clone(&first, &in);
        errors += exchange("freed", &out, &in, i, MPI_COMM_WORLD);
        area_cleanup_clone(&in);
        area_cleanup_clone(&out);
    }
    area_cleanup(&first);
    return errors;
}

/* A type on part of the memory, then on more of it, and vice versa */
static int memory_grows(void)
{
    static const size_t lengths[] = {100000, 800000, 200000, 1600000, 100000};
    struct area first, out, in;
    void *memory[2];
    int errors = 0;

    area_init_layout(&first, 0, 1600000);
    memory[0] = map_memory(NULL, first.length);
    memory[1] = map_memory(NULL, first.length);
    for (int i = 0; i < 5; i++) {
        struct area part;

        area_init_layout(&part, 0, lengths[i]);
        out = in = part;
        area_place(&out, memory[0]);
        area_place(&in, memory[1]);
        errors += exchange("grown", &out, &in, i, MPI_COMM_WORLD);
        area_cleanup(&part);
    }
    munmap(memory[0], first.length);
    munmap(memory[1], first.length);
    area_cleanup(&first);
    return errors;
}

/* Read-only memory can be sent. */
static int memory_read_only(void)
{
    struct area first, out, in;
    void *memory;
    int errors = 0;

    area_init_layout(&first, 0, BYTES);
    area_clone(&first, &in);
    memory = map_memory(NULL, first.length);
    out    = first;
    area_place(&out, memory);
    area_fill(&out, rank);
    mprotect(memory, first.length, PROT_READ);
    MPI_Sendrecv(out.buffer, 1, out.type, next_rank(), TAG, in.buffer, 1,
                 in.type, prev_rank(), TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    errors += area_check("read only", &in, &out, prev_rank(), out.size);
    munmap(memory, first.length);
    area_cleanup_clone(&in);
    area_cleanup(&first);
    return errors;
}

/* 'num' blocks of 256 KiB with 1 MiB of unmapped addresses between them */
enum { BLOCK = 1 << 18, STRIDE = 5 << 18 };

static char *map_blocks(int num)
{
    char *memory = map_memory(NULL, (size_t)num * STRIDE);

    for (int i = 0; i < num; i++) {
        munmap(memory + (size_t)i * STRIDE + BLOCK, STRIDE - BLOCK);
    }
    return memory;
}

static int holes_exchange(char *out, char *in, int num, MPI_Datatype type)
{
    int errors = 0;

    for (int i = 0; i < num; i++) {
        check_fill(out + (size_t)i * STRIDE, BLOCK, rank + i);
        memset(in + (size_t)i * STRIDE, 0, BLOCK);
    }
    MPI_Sendrecv(out, 1, type, next_rank(), TAG, in, 1, type, prev_rank(), TAG,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < num; i++) {
        errors += check_data("holes", in + (size_t)i * STRIDE, BLOCK,
                             prev_rank() + i);
    }
    return errors;
}

static int memory_holes(void)
{
    static const int nums[] = {2, 5, 40};
    int errors              = 0;

    for (int i = 0; i < 3; i++) {
        char *out = map_blocks(nums[i]), *in = map_blocks(nums[i]);
        MPI_Datatype type;

        MPI_Type_create_hvector(nums[i], BLOCK, STRIDE, MPI_BYTE, &type);
        MPI_Type_commit(&type);
        for (int j = 0; j < 3; j++) {
            errors += holes_exchange(out, in, nums[i], type);
        }
        MPI_Type_free(&type);
        for (int j = 0; j < nums[i]; j++) {
            munmap(out + (size_t)j * STRIDE, BLOCK);
            munmap(in + (size_t)j * STRIDE, BLOCK);
        }
    }
    return errors;
}

/* Puts, gets and messages of one type, in memory of a window */
static int memory_rma(void)
{
    struct area out, in, target, got;
    int errors = 0;
    MPI_Win win;

    area_init_layout(&out, 0, BYTES);
    area_clone(&out, &in);
    area_clone(&out, &got);
    area_clone(&out, &target);
    MPI_Win_create(target.memory, target.length, 1, MPI_INFO_NULL,
                   MPI_COMM_WORLD, &win);
    for (int i = 0; i < 3; i++) {
        MPI_Aint place = (char *)target.buffer - (char *)target.memory;

        area_clear(&target);
        area_clear(&got);
        MPI_Win_fence(0, win);
        area_fill(&out, i + rank);
        MPI_Put(out.buffer, 1, out.type, next_rank(), place, 1, target.type,
                win);
        errors += exchange("beside RMA", &out, &in, i, MPI_COMM_WORLD);
        MPI_Win_fence(0, win);
        errors += area_check("put", &target, &out, i + prev_rank(), out.size);
        MPI_Get(got.buffer, 1, got.type, next_rank(), place, 1, target.type,
                win);
        MPI_Win_fence(0, win);
        errors += area_check("got", &got, &out, i + rank, out.size);
        errors += exchange("behind RMA", &target, &in, i, MPI_COMM_WORLD);
    }
    MPI_Win_free(&win);
    area_cleanup_clone(&target);
    area_cleanup_clone(&got);
    area_cleanup_clone(&in);
    area_cleanup(&out);
    return errors;
}

const struct check rules_memory_checks[] = {
    {"memory_mapped_again", memory_mapped_again},
    {"memory_freed", memory_freed},
    {"memory_grows", memory_grows},
    {"memory_read_only", memory_read_only},
    {"memory_holes", memory_holes},
    {"memory_rma", memory_rma},
    {NULL, NULL}};
