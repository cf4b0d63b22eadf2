/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Collectives, small and large, blocking and nonblocking, compared with values
 * that each rank computes itself: element i of rank r is value(r, i).
 */
#include "test/mpi/check.h"

static const int coll_counts[] = {1, 2, 17, 1000, 20000, 200000};

#define COLL_NUM_COUNTS (int)(sizeof(coll_counts) / sizeof(coll_counts[0]))

static int value(int from, int i)
{
    return from * 1000003 + i * 7;
}

static int *values(int from, int count)
{
    int *buf = need((count + 1) * sizeof(*buf));

    for (int i = 0; i < count; i++) {
        buf[i] = value(from, i);
    }
    return buf;
}

/* Returns 0 if buf holds the first 'count' elements of rank 'from'. */
static int check_from(const char *name, const int *buf, int from, int count)
{
    for (int i = 0; i < count; i++) {
        if (check_value(name, buf[i], value(from, i))) {
            return 1;
        }
    }
    return 0;
}

/* Returns the sum of element i over ranks first .. last. */
static int sum_of(int first, int last, int i)
{
    int sum = 0;

    for (int r = first; r <= last; r++) {
        sum += value(r, i);
    }
    return sum;
}

static int check_sums(const char *name, const int *buf, int last, int count)
{
    for (int i = 0; i < count; i++) {
        if (check_value(name, buf[i], sum_of(0, last, i))) {
            return 1;
        }
    }
    return 0;
}

/* Runs one collective with each count. */
static int each_count(int (*run)(int count))
{
    int errors = 0;

    for (int i = 0; i < COLL_NUM_COUNTS; i++) {
        errors += run(coll_counts[i]);
    }
    return errors;
}

/* No rank leaves a barrier before the last one has entered it. */
static int coll_barrier(void)
{
    int errors = 0, flag, token = 0;
    MPI_Request req;

    for (int i = 0; i < 200; i++) {
        MPI_Barrier(MPI_COMM_WORLD);
    }
    if (rank == 0) {
        MPI_Ibarrier(MPI_COMM_WORLD, &req);
        for (int i = 0; i < 1000; i++) {
            MPI_Test(&req, &flag, MPI_STATUS_IGNORE);
        }
        errors += check_value("left an ibarrier alone", flag, 0);
        MPI_Send(&token, 1, MPI_INT, 1, 1, MPI_COMM_WORLD);
    } else {
        if (rank == 1) {
            MPI_Recv(&token, 1, MPI_INT, 0, 1, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        }
        MPI_Ibarrier(MPI_COMM_WORLD, &req);
    }
    MPI_Wait(&req, MPI_STATUS_IGNORE);
    return errors;
}

static int bcast(int count)
{
    int errors = 0;

    for (int root = 0; root < ranks; root++) {
        int *buf = values(rank, count);
        MPI_Request req;

        MPI_Bcast(buf, count, MPI_INT, root, MPI_COMM_WORLD);
        errors += check_from("bcast", buf, root, count);
        free(buf);

        buf = values(rank, count);
        MPI_Ibcast(buf, count, MPI_INT, root, MPI_COMM_WORLD, &req);
        MPI_Wait(&req, MPI_STATUS_IGNORE);
        errors += check_from("ibcast", buf, root, count);
        free(buf);
    }
    return errors;
}

static int coll_bcast(void)
{
    return each_count(bcast);
}

static int reduce(int count)
{
    int *out = values(rank, count), *in = values(0, count), errors = 0;
    MPI_Request req;

    for (int root = 0; root < ranks; root++) {
        MPI_Reduce(out, in, count, MPI_INT, MPI_SUM, root, MPI_COMM_WORLD);
        errors += (rank == root) && check_sums("reduce", in, ranks - 1, count);
    }
    MPI_Allreduce(out, in, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    errors += check_sums("allreduce", in, ranks - 1, count);
    MPI_Allreduce(out, in, count, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    errors += check_from("allreduce max", in, ranks - 1, count);
    memset(in, 0, count * sizeof(*in));
    MPI_Iallreduce(out, in, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &req);
    MPI_Wait(&req, MPI_STATUS_IGNORE);
    errors += check_sums("iallreduce", in, ranks - 1, count);
    memcpy(in, out, count * sizeof(*in));
    MPI_Allreduce(MPI_IN_PLACE, in, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    errors += check_sums("allreduce in place", in, ranks - 1, count);

    free(in);
    free(out);
    return errors;
}

static int coll_reduce(void)
{
    return each_count(reduce);
}

/* User-defined operation; it does not commute. */
static void three_times_plus(void *in, void *inout, int *len,
                             MPI_Datatype *type)
{
    (void)type;
    for (int i = 0; i < *len; i++) {
        ((int *)inout)[i] = ((int *)in)[i] * 3 + ((int *)inout)[i];
    }
}

/* MAXLOC, MINLOC and a user-defined operation */
static int coll_reduce_ops(void)
{
    struct {
        double value;
        int at;
    } mine     = {(rank * 7) % 5, rank}, max, min;
    int errors = 0, got, at_max = 0, at_min = 0;
    MPI_Op op;

    for (int r = 0; r < ranks; r++) {
        at_max = ((r * 7) % 5 > (at_max * 7) % 5) ? r : at_max;
        at_min = ((r * 7) % 5 < (at_min * 7) % 5) ? r : at_min;
    }
    MPI_Allreduce(&mine, &max, 1, MPI_DOUBLE_INT, MPI_MAXLOC, MPI_COMM_WORLD);
    MPI_Allreduce(&mine, &min, 1, MPI_DOUBLE_INT, MPI_MINLOC, MPI_COMM_WORLD);
    errors += check_value("maxloc", max.at, at_max);
    errors += check_value("minloc", min.at, at_min);

    /* the operation is not associative; with two ranks it is applied once */
    MPI_Op_create(three_times_plus, 0, &op);
    if (ranks == 2) {
        got = rank + 1;
        MPI_Allreduce(MPI_IN_PLACE, &got, 1, MPI_INT, op, MPI_COMM_WORLD);
        errors += check_value("own operation", got, 3 * 1 + 2);
    }
    MPI_Op_free(&op);
    return errors;
}

static int scan(int count)
{
    int *out = values(rank, count), *in = values(rank, count), errors = 0;

    MPI_Scan(out, in, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    errors += check_sums("scan", in, rank, count);
    MPI_Exscan(out, in, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    errors += (rank > 0) && check_sums("exscan", in, rank - 1, count);
    free(in);
    free(out);
    return errors;
}

static int coll_scan(void)
{
    return each_count(scan);
}

static int gather(int count)
{
    int *out = values(rank, count), errors = 0;
    int *in = need(sizeof(int) * count * ranks);

    for (int root = 0; root < ranks; root++) {
        memset(in, 0, sizeof(int) * count * ranks);
        MPI_Gather(out, count, MPI_INT, in, count, MPI_INT, root,
                   MPI_COMM_WORLD);
        for (int r = 0; (r < ranks) && (rank == root); r++) {
            errors += check_from("gather", in + r * count, r, count);
        }
    }
    memset(in, 0, sizeof(int) * count * ranks);
    MPI_Allgather(out, count, MPI_INT, in, count, MPI_INT, MPI_COMM_WORLD);
    for (int r = 0; r < ranks; r++) {
        errors += check_from("allgather", in + r * count, r, count);
    }
    free(in);
    free(out);
    return errors;
}

static int coll_gather(void)
{
    return each_count(gather);
}

/* Rank r has count + r elements, with a gap before each part. */
static int gatherv(int count)
{
    int *out = values(rank, count + rank), errors = 0, room = 0;
    int *lens = need(ranks * sizeof(*lens));
    int *at   = need(ranks * sizeof(*at));
    int *in, *back = need((count + rank) * sizeof(int));

    for (int r = 0; r < ranks; r++) {
        lens[r] = count + r;
        at[r]   = room + 1;
        room += lens[r] + 1;
    }
    in = need(room * sizeof(*in));
    memset(in, 0xee, room * sizeof(*in));
    MPI_Allgatherv(out, count + rank, MPI_INT, in, lens, at, MPI_INT,
                   MPI_COMM_WORLD);
    for (int r = 0; r < ranks; r++) {
        errors += check_from("allgatherv", in + at[r], r, lens[r]);
        errors += check_value("hole", in[at[r] - 1], (int)0xeeeeeeee);
    }
    MPI_Scatterv(in, lens, at, MPI_INT, back, count + rank, MPI_INT, ranks - 1,
                 MPI_COMM_WORLD);
    errors += check_from("scatterv", back, rank, count + rank);
    free(in);
    free(back);
    free(at);
    free(lens);
    free(out);
    return errors;
}

static int coll_gatherv(void)
{
    return each_count(gatherv);
}

/* Part p of rank r is value(r * ranks + p, ...). */
static int alltoall(int count)
{
    int *out = need(sizeof(int) * count * ranks), errors = 0;
    int *in = need(sizeof(int) * count * ranks);

    for (int i = 0; i < count * ranks; i++) {
        out[i] = value(rank * ranks + i / count, i % count);
    }
    MPI_Alltoall(out, count, MPI_INT, in, count, MPI_INT, MPI_COMM_WORLD);
    for (int r = 0; r < ranks; r++) {
        errors += check_from("alltoall", in + r * count, r * ranks + rank,
                             count);
    }
    memset(out, 0, sizeof(int) * count * ranks);
    MPI_Scatter(in, count, MPI_INT, out, count, MPI_INT, 0, MPI_COMM_WORLD);
    errors += check_from("scatter", out, rank * ranks, count);
    free(in);
    free(out);
    return errors;
}

static int coll_alltoall(void)
{
    return each_count(alltoall);
}

/* Rank r sends r + p + 1 elements to rank p. */
static int coll_alltoallv(void)
{
    int *lens[2], *at[2], *out, *in, room = 0, errors = 0;

    for (int i = 0; i < 2; i++) {
        lens[i] = need(ranks * sizeof(int));
        at[i]   = need(ranks * sizeof(int));
    }
    for (int r = 0; r < ranks; r++) {
        lens[0][r] = lens[1][r] = rank + r + 1;
        at[0][r] = at[1][r] = room;
        room += rank + r + 1;
    }
    out = need(room * sizeof(*out));
    in  = need(room * sizeof(*in));
    for (int r = 0; r < ranks; r++) {
        for (int i = 0; i < lens[0][r]; i++) {
            out[at[0][r] + i] = value(rank * ranks + r, i);
        }
    }
    MPI_Alltoallv(out, lens[0], at[0], MPI_INT, in, lens[1], at[1], MPI_INT,
                  MPI_COMM_WORLD);
    for (int r = 0; r < ranks; r++) {
        errors += check_from("alltoallv", in + at[1][r], r * ranks + rank,
                             lens[1][r]);
    }
    for (int i = 0; i < 2; i++) {
        free(lens[i]);
        free(at[i]);
    }
    free(in);
    free(out);
    return errors;
}

/* Rank r receives block r of the sum. */
static int reduce_scatter(int count)
{
    int *out = values(rank, count * ranks), errors = 0;
    int *in = need(sizeof(int) * count);

    MPI_Reduce_scatter_block(out, in, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; (i < count) && !errors; i++) {
        errors += check_value("reduce_scatter", in[i],
                              sum_of(0, ranks - 1, rank * count + i));
    }
    free(in);
    free(out);
    return errors;
}

static int coll_reduce_scatter(void)
{
    return each_count(reduce_scatter);
}

const struct check mpi_coll_checks[] = {
    {"coll_barrier", coll_barrier},
    {"coll_bcast", coll_bcast},
    {"coll_reduce", coll_reduce},
    {"coll_reduce_ops", coll_reduce_ops},
    {"coll_scan", coll_scan},
    {"coll_gather", coll_gather},
    {"coll_gatherv", coll_gatherv},
    {"coll_alltoall", coll_alltoall},
    {"coll_alltoallv", coll_alltoallv},
    {"coll_reduce_scatter", coll_reduce_scatter},
    {NULL, NULL},
};
