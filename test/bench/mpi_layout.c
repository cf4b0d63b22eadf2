/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/* The tables of the groups in mpi_layout.h, and the search in them */
#include "mpi_layout.h"

#include <stdlib.h>
#include <string.h>

enum {
    KIB       = 1024,
    MIB       = 1024 * KIB,
    UNIT      = sizeof(double),
    FAR       = 64 * KIB,
    BIG       = 256 * KIB, /* limit of the group large */
    BIG_BLOCK = 256
};

typedef struct layout_grid {
    const char *name;
    size_t bytes[9]; /* ended by 0 */
    size_t blocks[9];
} layout_grid_t;

static const layout_grid_t layout_grids[] = {
    {"vector",
     {4 * KIB, 16 * KIB, 64 * KIB, 128 * KIB, 256 * KIB, MIB, 4 * MIB,
      16 * MIB},
     {8, 64, 256, KIB, 4 * KIB, 16 * KIB, 64 * KIB}},
    {"far",
     {16 * KIB, 64 * KIB, 256 * KIB, MIB, 4 * MIB},
     {256, KIB, 2 * KIB, 4 * KIB, 16 * KIB, 64 * KIB}},
    {"indexed",
     {4 * KIB, 64 * KIB, 128 * KIB, 256 * KIB, MIB, 4 * MIB, 16 * MIB},
     {64, 256, KIB, 4 * KIB, 64 * KIB}},
};

static void create_vector(layout_t *layout, size_t stride)
{
    MPI_Type_create_hvector(layout->bytes / layout->block, layout->block / UNIT,
                            stride, MPI_DOUBLE, &layout->type);
}

/* Returns half to one and a half times 'mean' at random, the same in all
 * processes. */
static size_t random_length(unsigned *seed, size_t mean)
{
    size_t units = mean / UNIT;

    return (units / 2 + rand_r(seed) % (units + 1)) * UNIT;
}

/* Creates blocks of random length; the last one has the rest. Sets
 * layout->block to their mean. */
static void create_indexed(layout_t *layout)
{
    size_t max = 2 * layout->bytes / layout->block + 2, left = layout->bytes;
    int *lengths   = calloc(max, sizeof(*lengths));
    MPI_Aint *disp = calloc(max, sizeof(*disp)), at = 0;
    unsigned seed = 1;
    int count     = 0;

    while (left > 0) {
        size_t length = random_length(&seed, layout->block);

        length         = (length < left) ? length : left;
        lengths[count] = length / UNIT;
        disp[count++]  = at;
        left -= length;
        at += length + random_length(&seed, layout->block);
    }
    MPI_Type_create_hindexed(count, lengths, disp, MPI_DOUBLE, &layout->type);
    layout->block = layout->bytes / count;
    free(lengths);
    free(disp);
}

static int is_in_grid(const layout_grid_t *grid, size_t bytes, size_t block,
                      int is_large)
{
    size_t stride = strcmp(grid->name, "far") ? 2 * block : FAR + block;

    return (2 * block <= bytes) &&
           (bytes / block * stride <= LAYOUT_MAX_SPAN) &&
           (!is_large || ((bytes >= BIG) && (block >= BIG_BLOCK)));
}

/* Takes the layout of that number from the grid; subtracts the grid's layouts
 * from *number_p if it has fewer. */
static int find_in_grid(const layout_grid_t *grid, int is_large,
                        unsigned *number_p, layout_t *layout)
{
    for (int i = 0; grid->bytes[i] > 0; i++) {
        for (int j = 0; grid->blocks[j] > 0; j++) {
            if (!is_in_grid(grid, grid->bytes[i], grid->blocks[j], is_large) ||
                ((*number_p)-- > 0)) {
                continue;
            }
            layout->name  = grid->name;
            layout->bytes = grid->bytes[i];
            layout->block = grid->blocks[j];
            return 1;
        }
    }
    return 0;
}

static int find(const char *group, unsigned number, layout_t *layout)
{
    int is_large = !strcmp(group, "large");

    for (size_t i = 0; i < sizeof(layout_grids) / sizeof(*layout_grids); i++) {
        if ((is_large || !strcmp(group, layout_grids[i].name)) &&
            find_in_grid(&layout_grids[i], is_large, &number, layout)) {
            return 1;
        }
    }
    return 0;
}

static void create(layout_t *layout)
{
    if (!strcmp(layout->name, "vector")) {
        create_vector(layout, 2 * layout->block);
    } else if (!strcmp(layout->name, "far")) {
        create_vector(layout, FAR + layout->block);
    } else {
        create_indexed(layout);
    }
}

/* Commits the type, and sets its bytes and span. */
static void finish(layout_t *layout)
{
    MPI_Aint begin, extent;
    int size;

    MPI_Type_commit(&layout->type);
    MPI_Type_size(layout->type, &size);
    MPI_Type_get_true_extent(layout->type, &begin, &extent);
    layout->bytes = size;
    layout->span  = begin + extent;
}

int layout_create(const char *group, unsigned number, layout_t *layout)
{
    size_t blocks;

    if (!strcmp(group, "ddt")) {
        if (!layout_create_app(number, layout, &blocks)) {
            return 0;
        }
        finish(layout);
        layout->block = layout->bytes / blocks;
        return 1;
    }
    if (!find(group, number, layout)) {
        return 0;
    }
    create(layout);
    finish(layout);
    return 1;
}

void layout_destroy(layout_t *layout)
{
    MPI_Type_free(&layout->type);
}
