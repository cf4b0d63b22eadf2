/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Collectives of derived types: messages of these types, and of types that the
 * MPI derives from them.
 */
#include "test/mpi/rules.h"

/* A part is 150,016 bytes: 586 blocks of 256. */
enum { BLOCKS = 586 };

/* Creates 'num' parts, one after the other. */
static void parts_init(struct area *area, int num)
{
    MPI_Datatype type;

    MPI_Type_vector(BLOCKS, 32, 50, MPI_DOUBLE, &type);
    area_init(area, type, num);
}

/* Returns the seed of the data from rank 'from' to rank 'to'. */
static unsigned seed_of(int from, int to)
{
    return from * 31 + to;
}

static void part_fill(struct area *area, int i, int num, unsigned seed)
{
    size_t size = area->size / num;

    for (size_t j = 0; j < size; j++) {
        area->memory[area->map[i * size + j]] = check_byte(seed, j);
    }
}

/* Checks all parts, and that nothing else was written. */
static int parts_check(const char *what, struct area *area,
                       unsigned (*seed)(int i))
{
    int errors = 0;

    for (int i = 0; i < ranks; i++) {
        errors += area_check_part(what, area, i, ranks, seed(i));
    }
    return errors + area_check_gaps(what, area);
}

static unsigned seed_to_me(int i)
{
    return seed_of(i, rank);
}

static unsigned seed_to_none(int i)
{
    return seed_of(i, 0);
}

static int coll_bcast(void)
{
    struct area area;
    int errors = 0;

    for (int i = 0; i < NUM_LAYOUTS; i++) {
        area_init_layout(&area, i, 150000);
        for (int root = 0; root < ranks; root++) {
            if (rank == root) {
                area_fill(&area, root);
            } else {
                area_clear(&area);
            }
            MPI_Bcast(area.buffer, 1, area.type, root, MPI_COMM_WORLD);
            errors += area_check("bcast", &area, &area, root, area.size);
        }
        area_cleanup(&area);
    }
    return errors;
}

static int coll_gather(void)
{
    struct area one, all;
    int errors = 0;

    parts_init(&one, 1);
    parts_init(&all, ranks);
    area_fill(&one, seed_of(rank, 0));
    MPI_Gather(one.buffer, 1, one.type, all.buffer, 1, all.type, ranks - 1,
               MPI_COMM_WORLD);
    if (rank == ranks - 1) {
        errors += parts_check("gather", &all, seed_to_none);
    }
    area_clear(&all);
    MPI_Allgather(one.buffer, 1, one.type, all.buffer, 1, all.type,
                  MPI_COMM_WORLD);
    errors += parts_check("allgather", &all, seed_to_none);
    area_cleanup(&all);
    area_cleanup(&one);
    return errors;
}

static int coll_scatter(void)
{
    struct area one, all;
    int errors;

    parts_init(&one, 1);
    parts_init(&all, ranks);
    for (int i = 0; i < ranks; i++) {
        part_fill(&all, i, ranks, seed_of(0, i));
    }
    MPI_Scatter(all.buffer, 1, all.type, one.buffer, 1, one.type, 0,
                MPI_COMM_WORLD);
    errors = area_check("scatter", &one, &one, seed_of(0, rank), one.size);
    area_cleanup(&all);
    area_cleanup(&one);
    return errors;
}

static int coll_alltoall(void)
{
    struct area out, in;
    int errors;

    parts_init(&out, ranks);
    parts_init(&in, ranks);
    for (int i = 0; i < ranks; i++) {
        part_fill(&out, i, ranks, seed_of(rank, i));
    }
    MPI_Alltoall(out.buffer, 1, out.type, in.buffer, 1, in.type,
                 MPI_COMM_WORLD);
    errors = parts_check("alltoall", &in, seed_to_me);
    area_cleanup(&in);
    area_cleanup(&out);
    return errors;
}

/* Areas for 'num' peers, with types of absolute addresses, as MPI_Alltoallw()
 * needs them */
struct peers {
    int num;
    struct area *outs, *ins;
    MPI_Datatype *out_types, *in_types;
    int *counts, *places;
    MPI_Aint *addresses;
};

static MPI_Datatype make_absolute(const struct area *area)
{
    MPI_Datatype type;
    MPI_Aint address;

    MPI_Get_address(area->buffer, &address);
    MPI_Type_create_hindexed_block(1, 1, &address, area->type, &type);
    MPI_Type_commit(&type);
    return type;
}

/* Each peer gets a different layout, and receives it as another. */
static void peers_init(struct peers *peers, int num, const int *ranks_of)
{
    peers->num       = num;
    peers->outs      = need(num * sizeof(*peers->outs));
    peers->ins       = need(num * sizeof(*peers->ins));
    peers->out_types = need(num * sizeof(*peers->out_types));
    peers->in_types  = need(num * sizeof(*peers->in_types));
    peers->counts    = need(num * sizeof(*peers->counts));
    peers->places    = need(num * sizeof(*peers->places));
    peers->addresses = need(num * sizeof(*peers->addresses));
    for (int i = 0; i < num; i++) {
        area_init_layout(&peers->outs[i], ((rank + ranks_of[i]) % 2) ? 0 : 4,
                         150016);
        area_init_layout(&peers->ins[i], ((rank + ranks_of[i]) % 2) ? 4 : 0,
                         150016);
        area_fill(&peers->outs[i], seed_of(rank, ranks_of[i]));
        peers->out_types[i] = make_absolute(&peers->outs[i]);
        peers->in_types[i]  = make_absolute(&peers->ins[i]);
        peers->counts[i]    = 1;
        peers->places[i]    = 0;
        peers->addresses[i] = 0;
    }
}

static int peers_check(const char *what, struct peers *peers,
                       const int *ranks_of)
{
    int errors = 0;

    for (int i = 0; i < peers->num; i++) {
        errors += area_check_part(what, &peers->ins[i], 0, 1,
                                  seed_of(ranks_of[i], rank));
        errors += area_check_gaps(what, &peers->ins[i]);
    }
    return errors;
}

static void peers_cleanup(struct peers *peers)
{
    for (int i = 0; i < peers->num; i++) {
        MPI_Type_free(&peers->in_types[i]);
        MPI_Type_free(&peers->out_types[i]);
        area_cleanup(&peers->ins[i]);
        area_cleanup(&peers->outs[i]);
    }
    free(peers->addresses);
    free(peers->places);
    free(peers->counts);
    free(peers->in_types);
    free(peers->out_types);
    free(peers->ins);
    free(peers->outs);
}

static int coll_alltoallw(void)
{
    int *all = need(ranks * sizeof(*all)), errors;
    struct peers peers;

    for (int i = 0; i < ranks; i++) {
        all[i] = i;
    }
    peers_init(&peers, ranks, all);
    MPI_Alltoallw(MPI_BOTTOM, peers.counts, peers.places, peers.out_types,
                  MPI_BOTTOM, peers.counts, peers.places, peers.in_types,
                  MPI_COMM_WORLD);
    errors = peers_check("alltoallw", &peers, all);
    peers_cleanup(&peers);
    free(all);
    return errors;
}

/* A ring; each rank sends to both sides. */
static int coll_neighbors(void)
{
    int around[] = {prev_rank(), next_rank()}, weights[] = {1, 1}, errors;
    struct peers peers;
    MPI_Comm ring;

    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 2, around, weights, 2,
                                   around, weights, MPI_INFO_NULL, 0, &ring);
    peers_init(&peers, 2, around);
    MPI_Neighbor_alltoallw(MPI_BOTTOM, peers.counts, peers.addresses,
                           peers.out_types, MPI_BOTTOM, peers.counts,
                           peers.addresses, peers.in_types, ring);
    errors = peers_check("neighbors", &peers, around);
    peers_cleanup(&peers);
    MPI_Comm_free(&ring);
    return errors;
}

/* Nonblocking, several at once */
static int coll_nonblocking(void)
{
    MPI_Request requests[3];
    struct area one, alls[3];
    int errors = 0;

    parts_init(&one, 1);
    area_fill(&one, seed_of(rank, 0));
    for (int i = 0; i < 3; i++) {
        parts_init(&alls[i], ranks);
        MPI_Iallgather(one.buffer, 1, one.type, alls[i].buffer, 1, alls[i].type,
                       MPI_COMM_WORLD, &requests[i]);
    }
    MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < 3; i++) {
        errors += parts_check("iallgather", &alls[i], seed_to_none);
        area_cleanup(&alls[i]);
    }
    area_cleanup(&one);
    return errors;
}

const struct check rules_coll_checks[] = {
    {"coll_bcast", coll_bcast},
    {"coll_gather", coll_gather},
    {"coll_scatter", coll_scatter},
    {"coll_alltoall", coll_alltoall},
    {"coll_alltoallw", coll_alltoallw},
    {"coll_neighbors", coll_neighbors},
    {"coll_nonblocking", coll_nonblocking},
    {NULL, NULL}};
