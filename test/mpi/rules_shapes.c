/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Types of all kinds and lengths: sent to the same type, to others of the same
 * signature, to and from contiguous data
 */
#include "test/mpi/rules.h"

/* Receives in both ways, then with contiguous data on either side. */
static int all_ways(const char *what, struct area *area, unsigned seed)
{
    struct area same, bytes;
    int errors = 0;

    area_clone(area, &same);
    area_init_bytes(&bytes, area->size);
    errors += exchange(what, area, &same, seed, MPI_COMM_WORLD);
    errors += exchange_late(what, area, &same, seed + 1, MPI_COMM_WORLD);
    errors += exchange(what, area, &bytes, seed + 2, MPI_COMM_WORLD);
    errors += exchange(what, &bytes, area, seed + 3, MPI_COMM_WORLD);
    errors += exchange_late(what, &bytes, area, seed + 4, MPI_COMM_WORLD);
    area_cleanup(&bytes);
    area_cleanup_clone(&same);
    return errors;
}

/* Lengths around the thresholds, up to the longest for zero-copy, in blocks of
 * 256 bytes */
static int shapes_lengths(void)
{
    static const size_t lengths[] = {
        8,     256,   4096,  7936,  8192,  8448,   16384,   65280,
        65536, 65792, 98048, 98304, 98560, 131072, 1048576, 4194304};
    int errors = 0;

    for (unsigned i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        struct area area;

        area_init_layout(&area, 0, lengths[i]);
        errors += all_ways("length", &area, i);
        area_cleanup(&area);
    }
    return errors;
}

static int shapes_kinds(void)
{
    int errors = 0;

    for (int i = 0; i < NUM_LAYOUTS; i++) {
        struct area area;
        char name[32];

        snprintf(name, sizeof(name), "layout %d", i);
        area_init_layout(&area, i, 300000);
        errors += all_ways(name, &area, i);
        area_cleanup(&area);
    }
    return errors;
}

/* Each kind is received as each other kind, which has more room. */
static int shapes_others(void)
{
    int errors = 0;

    for (int i = 0; i < NUM_LAYOUTS; i++) {
        for (int j = 0; j < NUM_LAYOUTS; j++) {
            struct area out, in;
            char name[32];

            snprintf(name, sizeof(name), "layout %d as %d", i, j);
            area_init_layout(&out, i, 100000);
            area_init_layout(&in, j, 200000);
            errors += exchange(name, &out, &in, i + j, MPI_COMM_WORLD);
            area_cleanup(&in);
            area_cleanup(&out);
        }
    }
    return errors;
}

/* Odd numbers of bytes, also of blocks and distances */
static int shapes_odd(void)
{
    static const int nums[] = {1, 3, 257, 300};
    int errors              = 0;

    for (int i = 0; i < 4; i++) {
        struct area area;
        MPI_Datatype type;

        MPI_Type_create_hvector(nums[i], 769, 1001, MPI_CHAR, &type);
        area_init(&area, type, 1);
        errors += all_ways("odd bytes", &area, i);
        area_cleanup(&area);
    }
    return errors;
}

/* One byte, and none: empty types, zero elements of a type */
static int shapes_small(void)
{
    struct area area;
    MPI_Datatype type;
    int errors = 0;

    MPI_Type_vector(1, 1, 2, MPI_CHAR, &type);
    area_init(&area, type, 1);
    errors += all_ways("a byte", &area, 1);
    area_cleanup(&area);

    MPI_Type_vector(5, 0, 7, MPI_DOUBLE, &type);
    area_init(&area, type, 3);
    errors += all_ways("empty", &area, 1);
    area_cleanup(&area);

    area_init(&area, make_layout(0, 100000), 0);
    errors += all_ways("none", &area, 1);
    area_cleanup(&area);
    return errors;
}

/* Several elements of types with an extent smaller than their span, larger, or
 * with another lower bound */
static int shapes_resized(void)
{
    static const MPI_Aint extents[][2] = {{0, 512},
                                          {-1000, 5000},
                                          {64, 100000},
                                          {0, 1024}};
    int errors                         = 0;

    for (int i = 0; i < 4; i++) {
        struct area area;
        MPI_Datatype inner, type;

        /* 64 blocks of 512 bytes, 1024 apart or, of two, interleaved */
        MPI_Type_vector((i == 0) ? 1 : 64, 64, (i == 3) ? 256 : 128, MPI_DOUBLE,
                        &inner);
        MPI_Type_create_resized(inner, extents[i][0], extents[i][1], &type);
        MPI_Type_free(&inner);
        area_init(&area, type, (i == 0) ? 300 : (i == 3) ? 2 : 5);
        errors += all_ways("resized", &area, i);
        area_cleanup(&area);
    }
    return errors;
}

/* A source may contain the same bytes several times. */
static int shapes_overlap(void)
{
    struct area out, in;
    MPI_Datatype type;
    int errors = 0;

    MPI_Type_create_hvector(400, 64, 200, MPI_DOUBLE, &type);
    area_init(&out, type, 1);
    area_init_bytes(&in, out.size);
    errors += exchange("overlapping source", &out, &in, 1, MPI_COMM_WORLD);
    area_cleanup(&in);
    area_init_layout(&in, 3, 2 * out.size);
    errors += exchange("overlapping source", &out, &in, 2, MPI_COMM_WORLD);
    area_cleanup(&in);
    area_cleanup(&out);

    MPI_Type_create_hvector(400, 64, 0, MPI_DOUBLE, &type);
    area_init(&out, type, 1);
    area_init_bytes(&in, out.size);
    errors += exchange("all at one place", &out, &in, 3, MPI_COMM_WORLD);
    area_cleanup(&in);
    area_cleanup(&out);
    return errors;
}

/* A million pieces of 8 bytes, and ten thousand of 256, at irregular
 * distances */
static int shapes_pieces(void)
{
    static const int nums[][2] = {{1000000, 1}, {10000, 32}};
    int errors                 = 0;

    for (int i = 0; i < 2; i++) {
        int num = nums[i][0], length = nums[i][1];
        int *places = need(num * sizeof(*places));
        struct area out, in;
        MPI_Datatype type;

        for (int j = 0; j < num; j++) {
            places[j] = (2 * length) * j + (j * j) % (length + 1);
        }
        MPI_Type_create_indexed_block(num, length, places, MPI_DOUBLE, &type);
        free(places);
        area_init(&out, type, 1);
        area_clone(&out, &in);
        errors += exchange("pieces", &out, &in, i, MPI_COMM_WORLD);
        area_cleanup_clone(&in);
        area_cleanup(&out);
    }
    return errors;
}

const struct check rules_shapes_checks[] = {{"shapes_lengths", shapes_lengths},
                                            {"shapes_kinds", shapes_kinds},
                                            {"shapes_others", shapes_others},
                                            {"shapes_odd", shapes_odd},
                                            {"shapes_small", shapes_small},
                                            {"shapes_resized", shapes_resized},
                                            {"shapes_overlap", shapes_overlap},
                                            {"shapes_pieces", shapes_pieces},
                                            {NULL, NULL}};
