/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Data types of applications, as the literature describes them: T. Schneider,
 * R. Gerstenberger, T. Hoefler, "Micro-Applications for Communication Data
 * Access Patterns and MPI Datatypes", EuroMPI 2012, and its longer
 * "Application-oriented ping-pong benchmarking", Computing 96 (2014). The kinds
 * of shapes are from there; the code, and details that the papers leave open,
 * such as sizes, are this project's:
 *
 *   WRF          faces of some 2-D, 3-D and 4-D fields of floats at once, in
 *                the west (a few floats a row) and the south (rows); as vectors
 *                of vectors, and as subarrays
 *   MILC         a lattice in four dimensions of su3 vectors (three complex
 *                numbers), even sites, then odd ones: the lowest plane in z
 *   NAS LU       planes of an array with 5 doubles a point: rows, and points
 *   NAS MG       faces of a cube of doubles: single ones, rows, a plane
 *   LAMMPS       properties of some particles, an array for each: position,
 *                tag, type, mask; "full" has molecule and charge, too
 *   SPECFEM3D    values at points of a mesh that lie on a border: a float each
 *                (oc); three each, of two regions (cm); one of three (mt)
 *   FFT2         a block of a matrix of complex doubles, transposed
 */
#include "mpi_layout.h"

#include <stdlib.h>

enum {
    BOX_DIMS   = 4,
    MAX_PARTS  = 8,
    PARTICLES  = 16384,
    LEAVING    = 4096,  /* particles that are sent */
    MESH       = 65536, /* points of the mesh */
    BORDER     = 8192,  /* points on the border */
    FFT        = 512,
    HALO       = 3, /* width of WRF's halo */
    WRF_FIELDS = 5
};

/* A box within an array, innermost dimension first */
typedef struct box {
    int num_dims;
    int all[BOX_DIMS], part[BOX_DIMS], from[BOX_DIMS];
} box_t;

/* Types that form a struct */
typedef struct parts {
    int num;
    MPI_Aint disp[MAX_PARTS];
    MPI_Datatype types[MAX_PARTS];
} parts_t;


static void parts_add(parts_t *parts, MPI_Aint disp, MPI_Datatype type)
{
    parts->disp[parts->num]    = disp;
    parts->types[parts->num++] = type;
}

/* Joins the types in a struct, and frees them. */
static MPI_Datatype parts_join(parts_t *parts)
{
    int ones[MAX_PARTS];
    MPI_Datatype type;

    for (int i = 0; i < parts->num; i++) {
        ones[i] = 1;
    }
    MPI_Type_create_struct(parts->num, ones, parts->disp, parts->types, &type);
    for (int i = 0; i < parts->num; i++) {
        MPI_Type_free(&parts->types[i]);
    }
    return type;
}

static size_t type_size(MPI_Datatype type)
{
    int size;

    MPI_Type_size(type, &size);
    return size;
}

static size_t box_elements(const box_t *box)
{
    size_t count = 1;

    for (int d = 0; d < box->num_dims; d++) {
        count *= box->all[d];
    }
    return count;
}

/* Returns the number of contiguous blocks: full rows, planes and so on join the
 * next. */
static size_t box_blocks(const box_t *box)
{
    size_t blocks = 1;
    int whole     = 1;

    for (int d = 0; d < box->num_dims; d++) {
        blocks *= whole ? 1 : box->part[d];
        whole = whole && (box->part[d] == box->all[d]);
    }
    return blocks;
}

static MPI_Datatype box_subarray(const box_t *box, MPI_Datatype element)
{
    MPI_Datatype type;

    MPI_Type_create_subarray(box->num_dims, box->all, box->part, box->from,
                             MPI_ORDER_FORTRAN, element, &type);
    return type;
}

/* Creates a vector of vectors; sets *disp_p to its start. */
static MPI_Datatype box_vector(const box_t *box, MPI_Datatype element,
                               MPI_Aint *disp_p)
{
    MPI_Aint stride = type_size(element);
    MPI_Datatype type, inner;

    *disp_p = box->from[0] * stride;
    MPI_Type_contiguous(box->part[0], element, &type);
    for (int d = 1; d < box->num_dims; d++) {
        stride *= box->all[d - 1];
        *disp_p += box->from[d] * stride;
        inner = type;
        MPI_Type_create_hvector(box->part[d], 1, stride, inner, &type);
        MPI_Type_free(&inner);
    }
    return type;
}

/* Creates a box at the start of an array. */
static MPI_Datatype app_box(const box_t *box, MPI_Datatype element,
                            size_t *blocks_p)
{
    *blocks_p = box_blocks(box);
    return box_subarray(box, element);
}

/* --- WRF --- */

static MPI_Datatype wrf(const box_t *fields, int is_subarray, size_t *blocks_p)
{
    parts_t parts = {0};
    MPI_Aint at   = 0;

    *blocks_p = 0;
    for (int i = 0; i < WRF_FIELDS; i++) {
        const box_t *box = &fields[i];
        MPI_Aint disp    = 0;
        MPI_Datatype type;

        type = is_subarray ? box_subarray(box, MPI_FLOAT) :
                             box_vector(box, MPI_FLOAT, &disp);
        parts_add(&parts, at + disp, type);
        at += box_elements(box) * sizeof(float);
        *blocks_p += box_blocks(box);
    }
    return parts_join(&parts);
}

/* x: west to east, then levels, then south to north, then species: 64 x 30 x 64
 * points with a halo around */
/* clang-format off */
#define WRF_2D(_x, _y, _fx, _fy) \
    {2, {70, 70}, {_x, _y}, {_fx, _fy}}
#define WRF_3D(_x, _y, _fx, _fy) \
    {3, {70, 30, 70}, {_x, 30, _y}, {_fx, 0, _fy}}
#define WRF_4D(_x, _y, _fx, _fy) \
    {4, {70, 30, 70, 3}, {_x, 30, _y, 2}, {_fx, 0, _fy, 1}}
#define WRF(...) \
    {WRF_2D(__VA_ARGS__), WRF_2D(__VA_ARGS__), WRF_3D(__VA_ARGS__), \
     WRF_3D(__VA_ARGS__), WRF_4D(__VA_ARGS__)}
/* clang-format on */

static const box_t wrf_west[]  = WRF(HALO, 64, HALO, HALO);
static const box_t wrf_south[] = WRF(64, HALO, HALO, HALO);

static MPI_Datatype wrf_x_vec(size_t *blocks_p)
{
    return wrf(wrf_west, 0, blocks_p);
}

static MPI_Datatype wrf_y_vec(size_t *blocks_p)
{
    return wrf(wrf_south, 0, blocks_p);
}

static MPI_Datatype wrf_x_sa(size_t *blocks_p)
{
    return wrf(wrf_west, 1, blocks_p);
}

static MPI_Datatype wrf_y_sa(size_t *blocks_p)
{
    return wrf(wrf_south, 1, blocks_p);
}

/* --- MILC, NAS --- */

/* 16 x 16 x 16 x 32 sites; half of each plane is contiguous */
static MPI_Datatype milc_su3_zd(size_t *blocks_p)
{
    static const box_t box = {4, {128, 16, 32, 2}, {128, 1, 32, 2}, {0}};
    MPI_Datatype su3, type;

    MPI_Type_contiguous(6, MPI_FLOAT, &su3);
    type = app_box(&box, su3, blocks_p);
    MPI_Type_free(&su3);
    return type;
}

/* class C on 4 processes */
static MPI_Datatype nas_lu_x(size_t *blocks_p)
{
    static const box_t box = {3, {5, 85, 85}, {5, 81, 1}, {0, 2, 2}};

    return app_box(&box, MPI_DOUBLE, blocks_p);
}

static MPI_Datatype nas_lu_y(size_t *blocks_p)
{
    static const box_t box = {4, {5, 85, 85, 162}, {5, 2, 81, 162}, {0, 2, 2}};

    return app_box(&box, MPI_DOUBLE, blocks_p);
}

static MPI_Datatype nas_mg_x(size_t *blocks_p)
{
    static const box_t box = {3, {130, 130, 130}, {1, 128, 128}, {1, 1, 1}};

    return app_box(&box, MPI_DOUBLE, blocks_p);
}

static MPI_Datatype nas_mg_y(size_t *blocks_p)
{
    static const box_t box = {3, {130, 130, 130}, {128, 1, 128}, {1, 1, 1}};

    return app_box(&box, MPI_DOUBLE, blocks_p);
}

static MPI_Datatype nas_mg_z(size_t *blocks_p)
{
    static const box_t box = {3, {130, 130, 130}, {128, 128, 1}, {1, 1, 1}};

    return app_box(&box, MPI_DOUBLE, blocks_p);
}

/* --- lists of indices ----------------------------------------------------- */

/* Picks 'count' of 'all' at random, ascending. Returns the number of contiguous
 * runs. */
static size_t pick(int *indices, int count, int all, int width)
{
    unsigned seed = 1;
    size_t runs   = 0;
    int picked    = 0;

    for (int i = 0; i < all; i++) {
        if ((int)(rand_r(&seed) % (all - i)) < count - picked) {
            runs += (picked == 0) || (indices[picked - 1] != (i - 1) * width);
            indices[picked++] = i * width;
        }
    }
    return runs;
}

/* Adds 'width' elements for each index. */
static void add_indexed(parts_t *parts, MPI_Aint *at_p, int count, int all,
                        int width, MPI_Datatype element, size_t *blocks_p)
{
    int *indices = calloc(count, sizeof(*indices));
    MPI_Datatype type;

    *blocks_p += pick(indices, count, all, width);
    MPI_Type_create_indexed_block(count, width, indices, element, &type);
    parts_add(parts, *at_p, type);
    *at_p += (MPI_Aint)all * width * type_size(element);
    free(indices);
}

static MPI_Datatype lammps(int is_full, size_t *blocks_p)
{
    parts_t parts = {0};
    MPI_Aint at   = 0;

    *blocks_p = 0;
    add_indexed(&parts, &at, LEAVING, PARTICLES, 3, MPI_DOUBLE, blocks_p);
    for (int i = 0; i < 3 + is_full; i++) {
        add_indexed(&parts, &at, LEAVING, PARTICLES, 1, MPI_INT, blocks_p);
    }
    if (is_full) {
        add_indexed(&parts, &at, LEAVING, PARTICLES, 1, MPI_DOUBLE, blocks_p);
    }
    return parts_join(&parts);
}

static MPI_Datatype lammps_full(size_t *blocks_p)
{
    return lammps(1, blocks_p);
}

static MPI_Datatype lammps_atomic(size_t *blocks_p)
{
    return lammps(0, blocks_p);
}

static MPI_Datatype specfem3d(int regions, int width, size_t *blocks_p)
{
    parts_t parts = {0};
    MPI_Aint at   = 0;

    *blocks_p = 0;
    for (int i = 0; i < regions; i++) {
        add_indexed(&parts, &at, BORDER, MESH, width, MPI_FLOAT, blocks_p);
    }
    return parts_join(&parts);
}

static MPI_Datatype specfem3d_oc(size_t *blocks_p)
{
    return specfem3d(1, 1, blocks_p);
}

static MPI_Datatype specfem3d_cm(size_t *blocks_p)
{
    return specfem3d(2, 3, blocks_p);
}

static MPI_Datatype specfem3d_mt(size_t *blocks_p)
{
    MPI_Datatype type;

    MPI_Type_vector(BORDER, 1, 3, MPI_FLOAT, &type);
    *blocks_p = BORDER;
    return type;
}

/* Half of the columns, one after the other */
static MPI_Datatype fft2(size_t *blocks_p)
{
    MPI_Datatype column, next, type;

    MPI_Type_vector(FFT / 2, 2, 2 * FFT, MPI_DOUBLE, &column);
    MPI_Type_create_resized(column, 0, 2 * sizeof(double), &next);
    MPI_Type_contiguous(FFT / 2, next, &type);
    MPI_Type_free(&next);
    MPI_Type_free(&column);
    *blocks_p = (FFT / 2) * (FFT / 2);
    return type;
}

/* --- all --- */

static const struct app {
    const char *name;
    MPI_Datatype (*create)(size_t *blocks_p);
} apps[] = {
    {"WRF_x_vec", wrf_x_vec},       {"WRF_y_vec", wrf_y_vec},
    {"WRF_x_sa", wrf_x_sa},         {"WRF_y_sa", wrf_y_sa},
    {"MILC_su3_zd", milc_su3_zd},   {"NAS_LU_x", nas_lu_x},
    {"NAS_LU_y", nas_lu_y},         {"NAS_MG_x", nas_mg_x},
    {"NAS_MG_y", nas_mg_y},         {"NAS_MG_z", nas_mg_z},
    {"LAMMPS_full", lammps_full},   {"LAMMPS_atomic", lammps_atomic},
    {"SPECFEM3D_oc", specfem3d_oc}, {"SPECFEM3D_cm", specfem3d_cm},
    {"SPECFEM3D_mt", specfem3d_mt}, {"FFT2", fft2},
};

int layout_create_app(unsigned number, layout_t *layout, size_t *blocks_p)
{
    if (number >= sizeof(apps) / sizeof(*apps)) {
        return 0;
    }
    layout->name = apps[number].name;
    layout->type = apps[number].create(blocks_p);
    return 1;
}
