/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Derived types: a layout is sent as such and received as bytes, the other way
 * round, and as another layout of as much data. The bytes in the gaps must not
 * change. MPI_Pack(), which is local, and for simple layouts their own address
 * rule, give the bytes of a layout.
 */
#include "test/mpi/check.h"

enum { TAG = 11, GAP = 0xee };

struct layout {
    const char *name;
    void (*make)(int count, MPI_Datatype *type);
};

struct particle {
    char kind;
    double place[3];
    int id;
};

static void make_vector(int count, MPI_Datatype *type)
{
    MPI_Type_vector(count, 3, 5, MPI_INT, type);
}

/* A column of a matrix with rows of 100 doubles */
static void make_column(int count, MPI_Datatype *type)
{
    MPI_Type_vector(count, 1, 100, MPI_DOUBLE, type);
}

static void make_hvector(int count, MPI_Datatype *type)
{
    MPI_Type_create_hvector(count, 7, 19, MPI_CHAR, type);
}

static void make_indexed(int count, MPI_Datatype *type)
{
    int *lens = need(count * sizeof(*lens));
    int *disp = need(count * sizeof(*disp));

    for (int i = 0; i < count; i++) {
        lens[i] = 1 + i % 4;
        disp[i] = 6 * i + i % 2;
    }
    MPI_Type_indexed(count, lens, disp, MPI_SHORT, type);
    free(disp);
    free(lens);
}

/* Blocks in descending order of addresses */
static void make_backwards(int count, MPI_Datatype *type)
{
    int *disp = need(count * sizeof(*disp));

    for (int i = 0; i < count; i++) {
        disp[i] = 5 * (count - 1 - i);
    }
    MPI_Type_create_indexed_block(count, 2, disp, MPI_INT, type);
    free(disp);
}

static void make_struct(int count, MPI_Datatype *type)
{
    int lens[]            = {1, 3, 1};
    MPI_Aint disp[]       = {offsetof(struct particle, kind),
                             offsetof(struct particle, place),
                             offsetof(struct particle, id)};
    MPI_Datatype fields[] = {MPI_CHAR, MPI_DOUBLE, MPI_INT};
    MPI_Datatype one, spaced;

    MPI_Type_create_struct(3, lens, disp, fields, &one);
    MPI_Type_create_resized(one, 0, sizeof(struct particle), &spaced);
    MPI_Type_contiguous(count, spaced, type);
    MPI_Type_free(&spaced);
    MPI_Type_free(&one);
}

/* The inner part of a cube of ints: the face of a halo exchange */
static void make_subarray(int count, MPI_Datatype *type)
{
    int sizes[]    = {count + 2, 10, 12};
    int subsizes[] = {count, 8, 1};
    int starts[]   = {1, 1, 3};

    MPI_Type_create_subarray(3, sizes, subsizes, starts, MPI_ORDER_C, MPI_INT,
                             type);
}

/* A column of blocks that are themselves strided */
static void make_nested(int count, MPI_Datatype *type)
{
    MPI_Datatype inner;

    MPI_Type_vector(4, 2, 3, MPI_SHORT, &inner);
    MPI_Type_create_hvector(count, 1, 32, inner, type);
    MPI_Type_free(&inner);
}

static const struct layout layouts[] = {
    {"vector", make_vector},       {"column", make_column},
    {"hvector", make_hvector},     {"indexed", make_indexed},
    {"backwards", make_backwards}, {"struct", make_struct},
    {"subarray", make_subarray},   {"nested", make_nested},
};

enum { NUM_LAYOUTS = sizeof(layouts) / sizeof(layouts[0]) };

/* A layout with its memory: span bytes in all, size bytes of data */
struct area {
    MPI_Datatype type;
    char *buf;
    char *packed;
    MPI_Aint span;
    int size;
};

static void area_create(struct area *area, const struct layout *layout,
                        int count)
{
    MPI_Aint low;

    layout->make(count, &area->type);
    MPI_Type_commit(&area->type);
    MPI_Type_size(area->type, &area->size);
    MPI_Type_get_true_extent(area->type, &low, &area->span);
    area->span += low;
    area->buf    = need(area->span);
    area->packed = need(area->size);
}

static void area_destroy(struct area *area)
{
    free(area->packed);
    free(area->buf);
    MPI_Type_free(&area->type);
}

/* Fills the data of the area with the pattern of seed, its gaps with GAP. */
static void area_fill(struct area *area, unsigned seed)
{
    int at = 0;

    memset(area->buf, GAP, area->span);
    check_fill(area->packed, area->size, seed);
    MPI_Unpack(area->packed, area->size, &at, area->buf, 1, area->type,
               MPI_COMM_SELF);
}

/* Checks that the data is the pattern, and that the gaps are unchanged. */
static int area_check(const char *name, struct area *area, unsigned seed)
{
    char *got  = area->buf;
    int errors = 0;

    area->buf = need(area->span);
    area_fill(area, seed);
    if (memcmp(got, area->buf, area->span)) {
        fprintf(stderr, "%s: wrong data or a changed gap\n", name);
        errors++;
    }
    free(area->buf);
    area->buf = got;
    return errors;
}

static void exchange(const void *out, int out_count, MPI_Datatype out_type,
                     void *in, int in_count, MPI_Datatype in_type)
{
    MPI_Sendrecv(out, out_count, out_type, next_rank(), TAG, in, in_count,
                 in_type, prev_rank(), TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* layout -> bytes, bytes -> layout, layout -> layout */
static int types_one(const struct layout *layout, int count)
{
    struct area out, in;
    int errors = 0;

    area_create(&out, layout, count);
    area_create(&in, layout, count);

    area_fill(&out, rank);
    memset(in.packed, 0, in.size);
    exchange(out.buf, 1, out.type, in.packed, in.size, MPI_BYTE);
    errors += check_data(layout->name, in.packed, in.size, prev_rank());

    memset(in.buf, GAP, in.span);
    check_fill(out.packed, out.size, rank + 1);
    exchange(out.packed, out.size, MPI_BYTE, in.buf, 1, in.type);
    errors += area_check(layout->name, &in, prev_rank() + 1);

    memset(in.buf, GAP, in.span);
    area_fill(&out, rank + 2);
    exchange(out.buf, 1, out.type, in.buf, 1, in.type);
    errors += area_check(layout->name, &in, prev_rank() + 2);

    area_destroy(&in);
    area_destroy(&out);
    return errors;
}

/* Each layout with few bytes (eager), and with many (rendezvous) */
static int types_layouts(void)
{
    static const int counts[] = {1, 3, 40, 500, 20000};
    int errors                = 0;

    for (int i = 0; i < NUM_LAYOUTS; i++) {
        for (unsigned j = 0; j < sizeof(counts) / sizeof(counts[0]); j++) {
            errors += types_one(&layouts[i], counts[j]);
        }
    }
    return errors;
}

/* A row becomes a column: a matrix arrives transposed. */
static int types_transpose(void)
{
    enum { N = 100 };
    double(*out)[N] = need(sizeof(double[N][N]));
    double(*in)[N]  = need(sizeof(double[N][N]));
    MPI_Datatype column, columns;
    int errors = 0;

    for (int i = 0; i < N * N; i++) {
        out[i / N][i % N] = rank * N * N + i;
    }
    MPI_Type_vector(N, 1, N, MPI_DOUBLE, &column);
    MPI_Type_create_hvector(N, 1, sizeof(double), column, &columns);
    MPI_Type_commit(&columns);
    exchange(out, N * N, MPI_DOUBLE, in, 1, columns);
    for (int i = 0; i < N * N; i++) {
        errors += in[i % N][i / N] != prev_rank() * N * N + i;
    }
    MPI_Type_free(&columns);
    MPI_Type_free(&column);
    free(in);
    free(out);
    return errors;
}

/* Several elements of a type in one message; a short sender sends only some of
 * them */
static int types_partial(void)
{
    enum { SENT = 7, ROOM = 9 };
    int out[SENT * 2], in[ROOM * 4], errors = 0, count;
    MPI_Datatype pair, spaced;
    MPI_Status status;

    MPI_Type_contiguous(2, MPI_INT, &pair);
    MPI_Type_create_resized(pair, 0, 4 * sizeof(int), &spaced);
    MPI_Type_commit(&pair);
    MPI_Type_commit(&spaced);
    for (int i = 0; i < SENT * 2; i++) {
        out[i] = rank * 100 + i;
    }
    memset(in, GAP, sizeof(in));
    MPI_Sendrecv(out, SENT, pair, next_rank(), TAG, in, ROOM, spaced,
                 prev_rank(), TAG, MPI_COMM_WORLD, &status);
    MPI_Get_count(&status, spaced, &count);
    errors += check_value("count", count, SENT);
    for (int i = 0; i < ROOM * 4; i++) {
        int filled = (i % 4 < 2) && (i / 4 < SENT);
        int want   = prev_rank() * 100 + i / 4 * 2 + i % 4;

        errors += check_value("partial", in[i],
                              filled ? want : (int)(GAP * 0x01010101u));
    }
    MPI_Type_free(&spaced);
    MPI_Type_free(&pair);
    return errors;
}

const struct check mpi_types_checks[] = {
    {"types_layouts", types_layouts},
    {"types_transpose", types_transpose},
    {"types_partial", types_partial},
    {NULL, NULL},
};
