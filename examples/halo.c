/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * halo [X Y Z [STEPS [PORT]]]: runs a halo exchange on a periodic box of X x Y
 * x Z cells, divided among all ranks. A step makes each cell the mean of its
 * six neighbours. The result must equal, bit for bit, the result of one rank
 * that computes alone.
 *
 *     mpicc -O2 halo*.c -o halo $(pkg-config --cflags --libs dcx)
 *     dcx-run mpirun -np 8 ./halo
 *
 * A rank has a part of the box and a layer of ghost cells around it: copies of
 * its neighbours' outermost cells, renewed before each step.
 *
 *     rank A                            rank B
 *     +---+---------------+---+         +---+---------------+---+
 *     |   |          face |   |         | g | face          |   |
 *     |   |            ===|===|=========|=> |               |   |
 *     |   |               | g |         |   |               |   |
 *     |   |               | <=|=========|===|===            |   |
 *     +---+---------------+---+         +---+---------------+---+
 *
 * The cells of a face are not contiguous; in two of the six faces no two cells
 * are adjacent. The program packs none of them: a face is a layout, a memory
 * handle of just these cells, and so are the ghost cells of a side. One put
 * moves a face from the local layout to the remote one.
 *
 * MPI introduces the ranks to each other and compares the results; all other
 * communication uses UCT, opened in halo_net.c as in any program. halo_box.c
 * has the cells and the computation.
 */
#include "halo_box.h"
#include "halo_net.h"

#include <uct/dcx/dcx.h>

#include <limits.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    SIDES  = 6, /* 2 * d and 2 * d + 1 are the ends of dimension d: MPI's order
                 * of the neighbours in a cartesian communicator */
    NOTICE = 0  /* active message: the ghost cells of a side have arrived */
};

/* A face, or the ghost cells of a side */
struct face {
    int first[3]; /* first cell, counted with the ghost cells */
    int n[3];
    uint64_t access;
    uct_mem_h rows; /* lower layout */
    uct_mem_h memh; /* upper layout: the face */
};

struct halo {
    MPI_Comm comm;
    struct net net;
    struct box box;
    uct_mem_h memh[2];           /* memory of box.cells */
    struct face face[SIDES];     /* source of each side's put */
    struct face ghost[2][SIDES]; /* target of each side's put, in
                                  * box.cells */
    uct_ep_h ep[SIDES];
    uct_rkey_bundle_t rkey[2][SIDES]; /* keys of the neighbours' ghost cells */
    int arrived[SIDES];               /* number of steps whose ghost cells have
                                       * arrived */
};

/* --- layouts ------------------------------------------------------------- */

static void layout_create(struct net *net, uct_mem_h *memh, size_t pieces)
{
    ucs_status_t status = uct_dcx_layout_create(net->iface, pieces, memh);
    char what[120];

    snprintf(what, sizeof(what),
             "a face of %zu pieces: set "
             "UCX_DCX_UMR_MAX_ENTRIES to as many, or take more ranks",
             pieces);
    check(status,
          (status == UCS_ERR_EXCEEDS_LIMIT) ? what : "uct_dcx_layout_create");
}

/* Sets a handle to 'repeat' blocks; creates the handle if it is NULL. */
static void layout_set(struct net *net, uct_mem_h *memh, uint64_t access,
                       size_t repeat, uct_dcx_block_t block)
{
    const uct_dcx_layout_params_t params = {
        .access = access,
        .repeat = repeat,
        .num    = 1,
        .blocks = &block,
    };
    ucs_status_t status;

    if (*memh == NULL) {
        layout_create(net, memh, uct_dcx_layout_pieces(&params));
    }
    while ((status = uct_dcx_layout_set(*memh, &params)) ==
           UCS_ERR_NO_RESOURCE) {
        (void)uct_dcx_layout_test(*memh); /* completes earlier sets */
    }
    check(status, "uct_dcx_layout_set");
}

static void layout_wait(uct_mem_h memh)
{
    ucs_status_t status;

    while ((status = uct_dcx_layout_test(memh)) != UCS_OK) {
        check(status, "layout");
    }
}

/*
 * Sets the lower layout of a face: of each row of the box, the cells whose z is
 * right. They form an array [size[0]][size[1]][n[2]]. Only this layout has the
 * addresses of the cells. Setting it again moves the face to other cells; its
 * key stays, so the layout above needs no change.
 */
static void face_point(struct halo *halo, struct face *face, int which)
{
    const struct box *box = &halo->box;
    uct_dcx_block_t block = {
        .address = (uintptr_t)&box->cells[which][face->first[2]],
        .length  = face->n[2] * sizeof(double),
        .skip    = (box->size[2] - face->n[2]) * sizeof(double),
        .memh    = halo->memh[which],
    };

    layout_set(&halo->net, &face->rows, face->access,
               (size_t)box->size[0] * box->size[1], block);
}

/*
 * Sets the upper layout of a face: of the lower layout's array, the rows whose
 * y and x are right. A layout of layouts has one dimension more. Each layout is
 * one entry, however many cells there are, if its blocks are less than 64 KiB
 * apart: here, the planes of the lower layout. Otherwise each block is a piece,
 * and UCX_DCX_UMR_MAX_ENTRIES limits the pieces of a key.
 */
static void face_open(struct halo *halo, struct face *face, int which)
{
    const size_t row = face->n[2] * sizeof(double), y = halo->box.size[1];
    uct_dcx_block_t block = {
        .address = (face->first[0] * y + face->first[1]) * row,
        .length  = face->n[1] * row,
        .skip    = (y - face->n[1]) * row,
    };

    face_point(halo, face, which);
    block.memh = face->rows;
    layout_set(&halo->net, &face->memh, face->access, face->n[0], block);
    layout_wait(face->rows);
    layout_wait(face->memh);
}

static void face_close(struct halo *halo, struct face *face)
{
    CHECK(uct_md_mem_dereg(halo->net.md, face->memh));
    CHECK(uct_md_mem_dereg(halo->net.md, face->rows));
}

/* The outermost own cells of a side, or its ghost cells */
static struct face face_of(const struct box *box, int side, int is_ghost)
{
    const int d = side / 2, is_upper = side % 2;
    struct face face = {
        .first  = {1, 1, 1},
        .n      = {box->n[0], box->n[1], box->n[2]},
        .access = is_ghost ? UCT_MD_MEM_ACCESS_REMOTE_PUT : 0,
    };

    face.n[d]     = 1;
    face.first[d] = is_upper ? box->n[d] + is_ghost : !is_ghost;
    return face;
}

/* --- the halo ------------------------------------------------------------ */

static ucs_status_t halo_arrived(void *arg, void *data, size_t length,
                                 unsigned flags)
{
    struct halo *halo = arg;

    (void)length;
    (void)flags;
    halo->arrived[*(const uint64_t *)data]++;
    return UCS_OK;
}

/* Exchanges the keys of ghost cells with the neighbours. A neighbour at the
 * upper end has this rank at its lower end. */
static void halo_exchange_keys(struct halo *halo)
{
    uct_md_attr_t attr;
    char *mine, *theirs;
    size_t size;
    int b, i;

    CHECK(uct_md_query(halo->net.md, &attr));
    size   = attr.rkey_packed_size;
    mine   = alloc(SIDES * size);
    theirs = alloc(SIDES * SIDES * size);
    for (b = 0; b < 2; b++) {
        for (i = 0; i < SIDES; i++) {
            CHECK(uct_md_mkey_pack(halo->net.md, halo->ghost[b][i].memh,
                                   mine + i * size));
        }
        MPI_Neighbor_allgather(mine, SIDES * size, MPI_BYTE, theirs,
                               SIDES * size, MPI_BYTE, halo->comm);
        for (i = 0; i < SIDES; i++) {
            CHECK(uct_rkey_unpack(halo->net.component,
                                  theirs + (i * SIDES + (i ^ 1)) * size,
                                  &halo->rkey[b][i]));
        }
    }
    free(theirs);
    free(mine);
}

static void halo_open(struct halo *halo, const int *whole, const char *port)
{
    size_t bytes;
    int b, i;

    box_init(&halo->box, whole);
    bytes = box_count(halo->box.size) * sizeof(double);
    net_open(&halo->net, port);
    CHECK(uct_iface_set_am_handler(halo->net.iface, NOTICE, halo_arrived, halo,
                                   0));
    for (b = 0; b < 2; b++) {
        CHECK(uct_md_mem_reg(halo->net.md, halo->box.cells[b], bytes,
                             UCT_MD_MEM_ACCESS_RMA, &halo->memh[b]));
        for (i = 0; i < SIDES; i++) {
            halo->ghost[b][i] = face_of(&halo->box, i, 1);
            face_open(halo, &halo->ghost[b][i], b);
        }
    }
    for (i = 0; i < SIDES; i++) {
        halo->face[i] = face_of(&halo->box, i, 0);
        face_open(halo, &halo->face[i], 0);
    }
    net_connect(&halo->net, halo->comm, halo->ep, SIDES);
    halo_exchange_keys(halo);
}

/* Puts a whole face. Addresses in a layout are offsets, so it starts at 0 on
 * both sides. */
static void halo_put(struct halo *halo, int side, int b)
{
    const uct_mem_h memh = halo->face[side].memh;
    const uct_iov_t iov  = {
         .buffer = NULL,
         .length = uct_dcx_layout_length(memh),
         .memh   = memh,
         .count  = 1,
    };
    ucs_status_t status;

    do {
        status = uct_ep_put_zcopy(halo->ep[side], &iov, 1, 0,
                                  halo->rkey[b][side].rkey, NULL);
    } while (net_retry(&halo->net, status));
}

static void halo_notify(struct halo *halo, int side)
{
    ucs_status_t status;

    do {
        status = uct_ep_am_short(halo->ep[side], NOTICE, side ^ 1, NULL, 0);
    } while (net_retry(&halo->net, status));
}

/*
 * Fills the ghost cells of cells[step % 2].
 *
 * A put does not notify the peer. After the flush the cells are in the peer's
 * memory. A message after it therefore cannot come too early, and the layouts
 * of the faces can be set to the cells of the next step. The first test rings
 * one doorbell for all of them; the device works while this rank waits and
 * computes.
 *
 * The ghost cells have a layout for each of box.cells: a neighbour that has its
 * notices may be one step ahead, and put its next face while this rank still
 * reads the last one. It cannot be two steps ahead, because it then waits for
 * this rank's notice.
 */
static void halo_exchange(struct halo *halo, int step)
{
    const int b = step % 2;
    int i;

    for (i = 0; i < SIDES; i++) {
        layout_wait(halo->face[i].rows);
        halo_put(halo, i, b);
    }
    net_flush(&halo->net);
    for (i = 0; i < SIDES; i++) {
        halo_notify(halo, i);
        face_point(halo, &halo->face[i], !b);
    }
    check(uct_dcx_layout_test(halo->face[0].rows), "layout");
    for (i = 0; i < SIDES; i++) {
        while (halo->arrived[i] <= step) {
            uct_worker_progress(halo->net.worker);
        }
    }
}

/* No rank puts after the barrier. */
static void halo_close(struct halo *halo)
{
    int b, i;

    net_flush(&halo->net);
    MPI_Barrier(halo->comm);
    for (i = 0; i < SIDES; i++) {
        uct_ep_destroy(halo->ep[i]);
        face_close(halo, &halo->face[i]);
    }
    for (b = 0; b < 2; b++) {
        for (i = 0; i < SIDES; i++) {
            CHECK(uct_rkey_release(halo->net.component, &halo->rkey[b][i]));
            face_close(halo, &halo->ghost[b][i]);
        }
        CHECK(uct_md_mem_dereg(halo->net.md, halo->memh[b]));
        free(halo->box.cells[b]);
    }
    net_close(&halo->net);
}

/* --- main ----------------------------------------------------------------- */

/* Checks the arguments. MPI_Bcast() counts the cells by an int, and so do the
 * sizes of a box, which include two ghost cells in each dimension. */
static void check_arguments(const int *whole, int steps)
{
    double cells = 1;
    int d;

    for (d = 0; d < 3; d++) {
        check(whole[d] > 0 ? UCS_OK : UCS_ERR_INVALID_PARAM, "X, Y, Z < 1");
        cells *= whole[d];
    }
    check(cells <= INT_MAX - 2 ? UCS_OK : UCS_ERR_INVALID_PARAM,
          "a box of 2^31 cells or more");
    check(steps >= 0 ? UCS_OK : UCS_ERR_INVALID_PARAM, "STEPS < 0");
}

/* Creates the grid of ranks; sets the part of the box that this rank has. */
static void halo_divide(struct halo *halo, const int *whole, int *ranks)
{
    const int joined[3] = {1, 1, 1};
    int d, size, rank, place[3];

    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Dims_create(size, 3, ranks);
    MPI_Cart_create(MPI_COMM_WORLD, 3, ranks, joined, 0, &halo->comm);
    MPI_Comm_rank(halo->comm, &rank);
    MPI_Cart_coords(halo->comm, rank, 3, place);
    for (d = 0; d < 3; d++) {
        check(whole[d] >= ranks[d] ? UCS_OK : UCS_ERR_INVALID_PARAM,
              "a box of fewer cells than ranks");
        halo->box.first[d] = (long)whole[d] * place[d] / ranks[d];
        halo->box.n[d]     = (long)whole[d] * (place[d] + 1) / ranks[d] -
                         halo->box.first[d];
    }
}

/* Returns the greatest difference, over all ranks, to rank 0's own result. */
static double halo_difference(struct halo *halo, const int *whole, int steps)
{
    const size_t count = box_count(whole);
    double *cells      = alloc(2 * count * sizeof(double));
    double *result     = cells, difference;
    int rank;

    MPI_Comm_rank(halo->comm, &rank);
    if (rank == 0) {
        result = box_run_alone(whole, steps, cells);
    }
    MPI_Bcast(result, count, MPI_DOUBLE, 0, halo->comm);
    difference = box_difference(&halo->box, steps % 2, whole, result);
    MPI_Allreduce(MPI_IN_PLACE, &difference, 1, MPI_DOUBLE, MPI_MAX,
                  halo->comm);
    free(cells);
    return difference;
}

int main(int argc, char **argv)
{
    int whole[3] = {60, 50, 40}, ranks[3] = {0, 0, 0}, steps = 20, d, step;
    struct halo halo = {0};
    double difference;
    int rank;

    MPI_Init(&argc, &argv);
    for (d = 0; (d < 3) && (d + 1 < argc); d++) {
        whole[d] = atoi(argv[d + 1]);
    }
    steps = (argc > 4) ? atoi(argv[4]) : steps;

    check_arguments(whole, steps);
    halo_divide(&halo, whole, ranks);
    halo_open(&halo, whole, (argc > 5) ? argv[5] : "mlx5_0:1");
    for (step = 0; step < steps; step++) {
        halo_exchange(&halo, step);
        box_step(&halo.box, step % 2);
    }
    difference = halo_difference(&halo, whole, steps);
    halo_close(&halo);

    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) {
        printf("%d steps on %dx%dx%d, max difference %g\n", steps, ranks[0],
               ranks[1], ranks[2], difference);
    }
    MPI_Finalize();
    return difference != 0;
}
