/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Cost of gathering and scattering a shape, in fragments as UCP requests them,
 * compared with the functions that the MPI gives to UCP to pack and unpack the
 * same type (intercepted on their way to UCP), and with memcpy() of as many
 * bytes. All alternate. Prints ns per KiB, and the ratio to the MPI, as medians
 * over the turns. First compares the bytes with those of the MPI.
 *
 *   shape_copy [BYTES [FRAGMENT]]     1 MiB, 8 KiB
 */
#include "views/shape/shape_build.h"

#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucp/api/ucp.h>


enum {
    TURNS    = 31,
    MIN_TIME = 300 /* of a turn, microseconds */
};


enum kind {
    VECTOR,
    PLANES, /* planes of rows, with a row left out between planes */
    LIST,   /* like VECTOR, but each block is displaced a little more */
    RECORDS /* 8 bytes, a hole, and 1 byte */
};

struct form {
    const char *name;
    size_t bytes; /* bytes of a block */
    size_t stride;
    size_t rows; /* rows of a plane, or 0 */
    enum kind kind;
};

static const struct form forms[] = {
    {"vector 8/16", 8, 16, 0, VECTOR},
    {"vector 8/8192", 8, 8192, 0, VECTOR},
    {"vector 12/64", 12, 64, 0, VECTOR},
    {"vector 16/64", 16, 64, 0, VECTOR},
    {"vector 24/48", 24, 48, 0, VECTOR},
    {"vector 32/64", 32, 64, 0, VECTOR},
    {"vector 40/80", 40, 80, 0, VECTOR},
    {"vector 64/128", 64, 128, 0, VECTOR},
    {"vector 100/200", 100, 200, 0, VECTOR},
    {"vector 256/512", 256, 512, 0, VECTOR},
    {"vector 1K/2K", 1024, 2048, 0, VECTOR},
    {"vector 4K/8K", 4096, 8192, 0, VECTOR},
    {"vector 64K/128K", 65536, 131072, 0, VECTOR},
    {"subarray 8x4", 8, 64, 4, PLANES},
    {"subarray 8x64", 8, 64, 64, PLANES},
    {"subarray 64x16", 64, 128, 16, PLANES},
    {"indexed 8", 8, 24, 0, LIST},
    {"indexed 24", 24, 64, 0, LIST},
    {"indexed 256", 256, 512, 0, LIST},
    {"indexed 4K", 4096, 8192, 0, LIST},
    {"records 8+1/16", 9, 16, 0, RECORDS},
};

struct job {
    const struct form *form;
    size_t num; /* number of blocks */
    size_t length;
    size_t span;
    size_t fragment;
    MPI_Datatype type;
    shape_data_t data;
    char *packed;
};

/* Last generic type that was created in UCP */
static ucp_generic_dt_ops_t mpi_ops;
static void *mpi_type;


/* Returns a displacement smaller than the gap between two blocks. */
static size_t jitter(const struct form *form, size_t i)
{
    size_t steps = (form->stride - form->bytes) / 8;

    return ((i * 2654435761u) >> 7) % steps * 8;
}

static size_t row_of(const struct form *form, size_t i)
{
    size_t at = i * form->stride;

    if (form->kind == PLANES) {
        at += (i / form->rows) * form->stride;
    } else if (form->kind == LIST) {
        at += jitter(form, i);
    }

    return at;
}

static void type_of_list(struct job *job, MPI_Datatype *type)
{
    MPI_Aint *at = malloc(job->num * sizeof(*at));
    size_t i;

    for (i = 0; i < job->num; i++) {
        at[i] = row_of(job->form, i);
    }
    MPI_Type_create_hindexed_block(job->num, job->form->bytes, at, MPI_BYTE,
                                   type);
    free(at);
}

static void type_of_records(struct job *job, MPI_Datatype *type)
{
    int lengths[]        = {1, 1};
    MPI_Aint at[]        = {0, 12};
    MPI_Datatype types[] = {MPI_DOUBLE, MPI_CHAR};
    MPI_Datatype record, element;

    MPI_Type_create_struct(2, lengths, at, types, &record);
    MPI_Type_create_resized(record, 0, job->form->stride, &element);
    MPI_Type_contiguous(job->num, element, type);
    MPI_Type_free(&record);
    MPI_Type_free(&element);
}

static void type_of_rows(struct job *job, MPI_Datatype *type)
{
    const struct form *form = job->form;
    size_t rows             = (form->rows > 0) ? form->rows : job->num;
    MPI_Datatype plane;

    MPI_Type_create_hvector(rows, form->bytes / 4, form->stride, MPI_INT,
                            &plane);
    MPI_Type_create_hvector(job->num / rows, 1, (rows + 1) * form->stride,
                            plane, type);
    MPI_Type_free(&plane);
}

static MPI_Datatype type_of(struct job *job)
{
    MPI_Datatype type;

    if (job->form->kind == LIST) {
        type_of_list(job, &type);
    } else if (job->form->kind == RECORDS) {
        type_of_records(job, &type);
    } else {
        type_of_rows(job, &type);
    }

    MPI_Type_commit(&type);
    return type;
}

static shape_t *shape_of(const struct job *job)
{
    shape_builder_t *builder = shape_build_begin(job->num * 2);
    shape_nest_t nest        = {.bytes = job->form->bytes};
    size_t i;

    for (i = 0; i < job->num; i++) {
        nest.offset = row_of(job->form, i);
        if (job->form->kind == RECORDS) {
            nest.bytes = 8;
            shape_build_add(builder, &nest);
            nest.offset += 12;
            nest.bytes = 1;
        }
        shape_build_add(builder, &nest);
    }

    return shape_build_end(builder, job->span);
}


static size_t fragment_at(const struct job *job, size_t at)
{
    size_t left = job->length - at;

    return (left < job->fragment) ? left : job->fragment;
}

static void run_memcpy(struct job *job)
{
    size_t i;

    for (i = 0; i < job->length; i += job->fragment) {
        memcpy(job->packed + i, job->data.buffer + i, fragment_at(job, i));
    }
}

static void run_gather(struct job *job)
{
    size_t i;

    for (i = 0; i < job->length; i += job->fragment) {
        shape_gather(&job->data, i, job->packed + i, fragment_at(job, i));
    }
}

static void run_scatter(struct job *job)
{
    size_t i;

    for (i = 0; i < job->length; i += job->fragment) {
        shape_scatter(&job->data, i, job->packed + i, fragment_at(job, i));
    }
}

#ifdef MPICH_VERSION
/* The MPI's function would also release the reference to the type that a send
 * has taken. */
static void finish(void *state)
{
    free(state);
}
#else
static void finish(void *state)
{
    mpi_ops.finish(state);
}
#endif

static void run_pack(struct job *job)
{
    void *state = mpi_ops.start_pack(mpi_type, job->data.buffer, 1);
    size_t i;

    /* the function may fill only a part of a fragment */
    for (i = 0; i < job->length;) {
        i += mpi_ops.pack(state, i, job->packed + i, fragment_at(job, i));
    }

    finish(state);
}

static void run_unpack(struct job *job)
{
    void *state = mpi_ops.start_unpack(mpi_type, job->data.buffer, 1);
    size_t i;

    for (i = 0; i < job->length; i += job->fragment) {
        mpi_ops.unpack(state, i, job->packed + i, fragment_at(job, i));
    }

    finish(state);
}

enum way { MEMCPY, GATHER, PACK, SCATTER, UNPACK, WAYS };

static void (*const runs[WAYS])(struct job *) = {[MEMCPY]  = run_memcpy,
                                                 [GATHER]  = run_gather,
                                                 [PACK]    = run_pack,
                                                 [SCATTER] = run_scatter,
                                                 [UNPACK]  = run_unpack};

/* Returns ns per KiB. */
static double run_turn(struct job *job, enum way way)
{
    double start = MPI_Wtime();
    int times    = 0;
    double time;

    do {
        runs[way](job);
        times++;
        time = MPI_Wtime() - start;
    } while (time * 1e6 < MIN_TIME);

    return time * 1e9 / times * 1024 / job->length;
}

static int compare(const void *a, const void *b)
{
    double difference = *(const double *)a - *(const double *)b;

    return (difference > 0) - (difference < 0);
}

/* Returns the median of one way, or of its ratio to another. */
static double median(double times[TURNS][WAYS], enum way way, enum way over)
{
    double values[TURNS];
    int i;

    for (i = 0; i < TURNS; i++) {
        values[i] = times[i][way];
        values[i] /= (over < WAYS) ? times[i][over] : 1;
    }

    qsort(values, TURNS, sizeof(values[0]), compare);
    return values[TURNS / 2];
}

static void report(struct job *job)
{
    double times[TURNS][WAYS];
    int turn;
    enum way way, mpi;

    for (turn = 0; turn < TURNS; turn++) {
        for (way = 0; way < WAYS; way++) {
            times[turn][way] = run_turn(job, way);
        }
    }

    printf("%-16s %7.1f", job->form->name, median(times, MEMCPY, WAYS));
    for (way = GATHER; way < WAYS; way += 2) {
        mpi = way + 1;
        printf(" | %7.1f %7.1f %5.2f", median(times, way, WAYS),
               median(times, mpi, WAYS), median(times, way, mpi));
    }
    printf("\n");
    fflush(stdout);
}

static void fail(const char *what, const char *name)
{
    fprintf(stderr, "shape_copy: %s%s\n", name, what);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

/* Fills memory with numbers that @seed selects. */
static void fill(char *at, size_t length, uint32_t seed)
{
    size_t i;

    for (i = 0; i < length; i++) {
        seed  = seed * 1664525u + 1013904223u;
        at[i] = seed >> 24;
    }
}

/* Runs both ways on equal memory. Both must write the same bytes to @out. The
 * MPI gets one fragment, as MPICH's unpack loses a number that lies in two. */
static void check_ways(struct job *job, enum way way, enum way mpi, char *out,
                       size_t length)
{
    struct job whole = *job;
    char *other      = malloc(length);

    whole.fragment = job->length;
    fill(job->data.buffer, job->span, 1);
    fill(job->packed, job->length, 2);
    runs[way](job);
    memcpy(other, out, length);
    fill(job->data.buffer, job->span, 1);
    fill(job->packed, job->length, 2);
    runs[mpi](&whole);
    if (memcmp(other, out, length)) {
        fail((way == GATHER) ? ": gathered bytes differ from the MPI's" :
                               ": scattered bytes differ from the MPI's",
             job->form->name);
    }
    free(other);
}

static void check(struct job *job)
{
    check_ways(job, GATHER, PACK, job->packed, job->length);
    check_ways(job, SCATTER, UNPACK, job->data.buffer, job->span);
}

/* Intercepts the MPI's functions: MPICH creates the generic type when a type is
 * committed, Open MPI at the first send. */
static void ask_mpi(struct job *job)
{
    MPI_Request request;

    MPI_Irecv(job->packed, job->length, MPI_BYTE, 0, 0, MPI_COMM_SELF,
              &request);
    MPI_Send(job->data.buffer, 1, job->type, 0, 0, MPI_COMM_SELF);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (mpi_ops.pack == NULL) {
        fail("this MPI does not send by UCX", "");
    }
}

/* Replaces UCP's function for the libraries. */
ucs_status_t ucp_dt_create_generic(const ucp_generic_dt_ops_t *ops,
                                   void *context, ucp_datatype_t *datatype_p)
{
    void *ucp = dlopen("libucp.so.0", RTLD_LAZY);
    ucs_status_t (*create)(const ucp_generic_dt_ops_t *, void *,
                           ucp_datatype_t *);

    mpi_ops  = *ops;
    mpi_type = context;
    create   = dlsym(ucp, "ucp_dt_create_generic");
    return create(ops, context, datatype_p);
}

static void run_form(const struct form *form, size_t bytes, size_t fragment)
{
    struct job job = {.form = form, .fragment = fragment};
    shape_t *shape;

    job.num = bytes / form->bytes;
    job.num -= (form->rows > 0) ? (job.num % form->rows) : 0;
    job.length      = job.num * form->bytes;
    job.span        = row_of(form, job.num) + form->stride;
    job.type        = type_of(&job);
    shape           = shape_of(&job);
    job.data.shape  = shape;
    job.data.count  = 1;
    job.data.buffer = malloc(job.span);
    job.packed      = malloc(job.length);
    memset(job.data.buffer, 1, job.span);
    memset(job.packed, 1, job.length);
    ask_mpi(&job);
    check(&job);
    report(&job);
    MPI_Type_free(&job.type);
    free(shape);
    free(job.data.buffer);
    free(job.packed);
}

int main(int argc, char **argv)
{
    size_t bytes    = (argc > 1) ? strtoul(argv[1], NULL, 0) : (1u << 20);
    size_t fragment = (argc > 2) ? strtoul(argv[2], NULL, 0) : 8192;
    size_t i;

    MPI_Init(&argc, &argv);
    printf("ns/KiB            memcpy |  gather    pack  over | scatter  unpack"
           "  over\n");
    for (i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        run_form(&forms[i], bytes, fragment);
    }
    printf("%zu types: the bytes of the MPI\n", i);
    MPI_Finalize();
    return 0;
}
