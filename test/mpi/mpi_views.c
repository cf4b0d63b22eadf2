/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * mpi_views: rules of MPI about data types, with messages long enough to travel as
 * views: rank 0 sends, rank 1 receives, each byte and gap is checked. What goes by
 * view on which side is in the report of UCX_DCX_TYPES_REPORT=y.
 */
#include "test/check.h"

#include <mpi.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum {
    BLOCK = 256,
    STEP  = 1024,
    ROWS  = 4096,
    BYTES = ROWS * BLOCK, /* of a message */
    SPAN  = ROWS * STEP,
    GAP   = 0xee,
    TAG   = 7
};

static struct {
    int rank;
    unsigned seed;
    char *memory;
    MPI_Datatype rows;
    MPI_Datatype shared; /* by threads */
} t;

/* A type of the caller's own, whose handle can be freed */
static MPI_Datatype make_rows(int num)
{
    MPI_Datatype type;

    MPI_Type_vector(num, BLOCK, STEP, MPI_BYTE, &type);
    MPI_Type_commit(&type);
    return type;
}

static void fill(void)
{
    if (t.rank == 0) {
        check_fill(t.memory, SPAN, t.seed);
    } else {
        memset(t.memory, GAP, SPAN);
    }
}

/* At the receiver, the first rows have come and nothing else */
static int check_rows(const char *what, int num)
{
    int errors = 0;

    for (size_t i = 0; (i < SPAN) && (errors == 0) && (t.rank == 1); i++) {
        int is_data = (i % STEP < BLOCK) && (i / STEP < (size_t)num);
        int want    = is_data ? check_byte(t.seed, i) : GAP;

        errors = check_value(what, (uint8_t)t.memory[i], want);
    }
    return errors;
}

static int check_elements(const char *what, MPI_Status *status, long long want)
{
    int num;

    MPI_Get_elements(status, MPI_BYTE, &num);
    return check_value(what, num, want);
}

static int blocking(void)
{
    MPI_Status status;

    if (t.rank == 0) {
        MPI_Send(t.memory, 1, t.rows, 1, TAG, MPI_COMM_WORLD);
        return 0;
    }
    MPI_Recv(t.memory, 1, t.rows, 0, TAG, MPI_COMM_WORLD, &status);
    return check_rows("blocking", ROWS) +
           check_elements("elements", &status, BYTES);
}

static int synchronous(void)
{
    if (t.rank == 0) {
        MPI_Ssend(t.memory, 1, t.rows, 1, TAG, MPI_COMM_WORLD);
    } else {
        MPI_Recv(t.memory, 1, t.rows, 0, TAG, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    }
    return check_rows("synchronous", ROWS);
}

static int buffered(void)
{
    static char space[BYTES + 4096];
    int size;

    if (t.rank == 0) {
        MPI_Buffer_attach(space, sizeof(space));
        MPI_Bsend(t.memory, 1, t.rows, 1, TAG, MPI_COMM_WORLD);
        MPI_Buffer_detach(&(void *){NULL}, &size);
    } else {
        MPI_Recv(t.memory, 1, t.rows, 0, TAG, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    }
    return check_rows("buffered", ROWS);
}

/* Shorter than the buffer, and of contiguous data */
static int shorter(void)
{
    MPI_Datatype half = make_rows(ROWS / 2);
    MPI_Status status;
    int errors = 0;

    if (t.rank == 0) {
        MPI_Send(t.memory, 1, half, 1, TAG, MPI_COMM_WORLD);
    } else {
        MPI_Recv(t.memory, 1, t.rows, 0, TAG, MPI_COMM_WORLD, &status);
        errors = check_elements("elements", &status, BYTES / 2);
    }
    MPI_Type_free(&half);
    return errors + check_rows("shorter", ROWS / 2);
}

static int from_packed(void)
{
    char *packed = malloc(BYTES);
    int at = 0;

    if (t.rank == 0) {
        MPI_Pack(t.memory, 1, t.rows, packed, BYTES, &at, MPI_COMM_WORLD);
        MPI_Send(packed, BYTES, MPI_BYTE, 1, TAG, MPI_COMM_WORLD);
    } else {
        MPI_Recv(t.memory, 1, t.rows, 0, TAG, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    }
    free(packed);
    return check_rows("from packed", ROWS);
}

static int to_packed(void)
{
    char *packed = malloc(BYTES);
    int at = 0;

    if (t.rank == 0) {
        MPI_Send(t.memory, 1, t.rows, 1, TAG, MPI_COMM_WORLD);
    } else {
        MPI_Recv(packed, BYTES, MPI_BYTE, 0, TAG, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
        MPI_Unpack(packed, BYTES, &at, t.memory, 1, t.rows, MPI_COMM_WORLD);
    }
    free(packed);
    return check_rows("to packed", ROWS);
}

static int truncated(void)
{
    MPI_Datatype half = make_rows(ROWS / 2);
    int errors = 0, code, class;

    if (t.rank == 0) {
        MPI_Send(t.memory, 1, t.rows, 1, TAG, MPI_COMM_WORLD);
    } else {
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
        code = MPI_Recv(t.memory, 1, half, 0, TAG, MPI_COMM_WORLD,
                        MPI_STATUS_IGNORE);
        MPI_Error_class(code, &class);
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
        errors = check_value("error class", class, MPI_ERR_TRUNCATE) +
                 check_value("behind it", (uint8_t)t.memory[SPAN / 2], GAP);
    }
    MPI_Type_free(&half);
    return errors;
}

static int probed(void)
{
    MPI_Message message;
    MPI_Status status;

    if (t.rank == 0) {
        MPI_Send(t.memory, 1, t.rows, 1, TAG, MPI_COMM_WORLD);
        return 0;
    }
    MPI_Mprobe(0, TAG, MPI_COMM_WORLD, &message, &status);
    MPI_Mrecv(t.memory, 1, t.rows, &message, MPI_STATUS_IGNORE);
    return check_rows("probed", ROWS) +
           check_elements("elements", &status, BYTES);
}

/* A type may be freed as soon as the operation has begun */
static int freed_type(void)
{
    MPI_Datatype type = make_rows(ROWS);
    MPI_Request request;

    if (t.rank == 0) {
        MPI_Isend(t.memory, 1, type, 1, TAG, MPI_COMM_WORLD, &request);
    } else {
        MPI_Irecv(t.memory, 1, type, 0, TAG, MPI_COMM_WORLD, &request);
    }
    MPI_Type_free(&type);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    return check_rows("freed type", ROWS);
}

/* ... and persistent requests keep theirs. More rounds than there are views. */
static int persistent(void)
{
    MPI_Datatype type = make_rows(ROWS);
    MPI_Request request;
    int errors = 0;

    if (t.rank == 0) {
        MPI_Send_init(t.memory, 1, type, 1, TAG, MPI_COMM_WORLD, &request);
    } else {
        MPI_Recv_init(t.memory, 1, type, 0, TAG, MPI_COMM_WORLD, &request);
    }
    MPI_Type_free(&type);
    for (int i = 0; i < 100; i++) {
        t.memory[0] = (char)i;
        MPI_Start(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        errors += check_value("round", t.memory[0], i);
    }
    MPI_Request_free(&request);
    if (t.rank == 1) {
        t.memory[0] = (char)check_byte(t.seed, 0);
    }
    return errors + check_rows("persistent", ROWS);
}

/* More often than there are views */
static int freed_request(void)
{
    MPI_Request request;

    for (int i = 0; i < 100; i++) {
        if (t.rank == 0) {
            MPI_Isend(t.memory, 1, t.rows, 1, TAG, MPI_COMM_WORLD, &request);
            MPI_Request_free(&request);
        } else {
            MPI_Recv(t.memory, 1, t.rows, 0, TAG, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        }
        MPI_Barrier(MPI_COMM_WORLD);
    }
    return check_rows("freed request", ROWS);
}

static int canceled(void)
{
    MPI_Request request;
    MPI_Status status;
    int is_canceled = 1;

    if (t.rank == 1) {
        MPI_Irecv(t.memory, 1, t.rows, 0, TAG + 1, MPI_COMM_WORLD, &request);
        MPI_Cancel(&request);
        MPI_Wait(&request, &status);
        MPI_Test_cancelled(&status, &is_canceled);
    }
    return check_value("canceled", is_canceled, 1) + check_rows("canceled", 0);
}

static int to_self(void)
{
    char *memory = malloc(SPAN);
    int errors;

    memset(memory, GAP, SPAN);
    check_fill(t.memory, SPAN, t.seed);
    MPI_Sendrecv(t.memory, 1, t.rows, t.rank, TAG, memory, 1, t.rows, t.rank,
                 TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    memcpy(t.memory, memory, SPAN);
    free(memory);
    errors = check_rows("self", ROWS);
    return errors;
}

/* By absolute addresses */
static int bottom(void)
{
    MPI_Datatype type;
    MPI_Aint address;

    MPI_Get_address(t.memory, &address);
    MPI_Type_create_hvector(ROWS, BLOCK, STEP, MPI_BYTE, &type);
    MPI_Datatype at = type;
    MPI_Type_create_struct(1, &(int){1}, &address, &at, &type);
    MPI_Type_commit(&type);
    if (t.rank == 0) {
        MPI_Send(MPI_BOTTOM, 1, type, 1, TAG, MPI_COMM_WORLD);
    } else {
        MPI_Recv(MPI_BOTTOM, 1, type, 0, TAG, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    }
    MPI_Type_free(&type);
    MPI_Type_free(&at);
    return check_rows("bottom", ROWS);
}

/* The same rows several times, which a send may; to contiguous memory */
static int overlapping(void)
{
    MPI_Datatype type;
    int errors = 0;

    MPI_Type_vector(ROWS, BLOCK, BLOCK / 2, MPI_BYTE, &type);
    MPI_Type_commit(&type);
    if (t.rank == 0) {
        MPI_Send(t.memory, 1, type, 1, TAG, MPI_COMM_WORLD);
    } else {
        MPI_Recv(t.memory, BYTES, MPI_BYTE, 0, TAG, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
        for (size_t i = 0; (i < BYTES) && (errors == 0); i++) {
            errors = check_value("overlapping", (uint8_t)t.memory[i],
                                 check_byte(t.seed, i / BLOCK * BLOCK / 2 +
                                                            i % BLOCK));
        }
    }
    MPI_Type_free(&type);
    return errors;
}

/* From the last row to the first, by one rank and then by both */
static int backwards(void)
{
    MPI_Datatype type;
    char *last = t.memory + SPAN - STEP;

    MPI_Type_vector(ROWS, BLOCK, -STEP, MPI_BYTE, &type);
    MPI_Type_commit(&type);
    if (t.rank == 0) {
        MPI_Send(last, 1, type, 1, TAG, MPI_COMM_WORLD);
    } else {
        MPI_Recv(last, 1, type, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    MPI_Type_free(&type);
    return check_rows("backwards", ROWS);
}

/* Elements behind each other, of a type that was resized */
static int elements(void)
{
    MPI_Datatype row, type;
    MPI_Status status;
    int errors = 0;

    MPI_Type_contiguous(BLOCK, MPI_BYTE, &row);
    MPI_Type_create_resized(row, 0, STEP, &type);
    MPI_Type_commit(&type);
    if (t.rank == 0) {
        MPI_Send(t.memory, ROWS, type, 1, TAG, MPI_COMM_WORLD);
    } else {
        MPI_Recv(t.memory, ROWS, type, 0, TAG, MPI_COMM_WORLD, &status);
        errors = check_elements("elements", &status, BYTES);
    }
    MPI_Type_free(&type);
    MPI_Type_free(&row);
    return errors + check_rows("elements", ROWS);
}

static int collective(void)
{
    MPI_Bcast(t.memory, 1, t.rows, 0, MPI_COMM_WORLD);
    return check_rows("collective", ROWS);
}

/* Memory that is unmapped and mapped again, as other memory, between messages */
static int unmapped(void)
{
    char *kept = t.memory;
    int errors = 0;

    for (int i = 0; i < 5; i++) {
        t.memory = malloc(SPAN);
        fill();
        errors += blocking();
        free(t.memory);
        t.seed++;
    }
    t.memory = kept;
    return errors;
}

/* One of several pairs of threads, which have a new type in common */
static void *pair_of_threads(void *arg)
{
    int tag      = (int)(intptr_t)arg;
    char *memory = malloc(SPAN);
    long wrong   = 0;

    for (int i = 0; i < 10; i++) {
        memset(memory, (t.rank == 0) ? tag + i : GAP, SPAN);
        if (t.rank == 0) {
            MPI_Send(memory, 1, t.shared, 1, tag, MPI_COMM_WORLD);
        } else {
            MPI_Recv(memory, 1, t.shared, 0, tag, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        }
        for (size_t j = 0; (j < SPAN) && (t.rank == 1); j += BLOCK) {
            wrong += (uint8_t)memory[j] != ((j % STEP < BLOCK) ? tag + i : GAP);
        }
    }
    free(memory);
    return (void *)wrong;
}

static int threads(void)
{
    pthread_t ids[4];
    void *wrong;
    int errors = 0;

    t.shared = make_rows(ROWS);
    for (intptr_t i = 0; i < 4; i++) {
        pthread_create(&ids[i], NULL, pair_of_threads, (void *)(i * 32));
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(ids[i], &wrong);
        errors += check_value("threads", (long)wrong, 0);
    }
    MPI_Type_free(&t.shared);
    return errors;
}

static const struct check checks[] = {
    {"blocking", blocking},
    {"synchronous", synchronous},
    {"buffered", buffered},
    {"shorter", shorter},
    {"from_packed", from_packed},
    {"to_packed", to_packed},
    {"truncated", truncated},
    {"probed", probed},
    {"freed_type", freed_type},
    {"persistent", persistent},
    {"freed_request", freed_request},
    {"canceled", canceled},
    {"to_self", to_self},
    {"bottom", bottom},
    {"overlapping", overlapping},
    {"backwards", backwards},
    {"elements", elements},
    {"collective", collective},
    {"unmapped", unmapped},
    {"threads", threads} /* the last: if there may be any */
};

static int run(const struct check *check)
{
    int errors, all;

    t.seed++;
    fill();
    MPI_Barrier(MPI_COMM_WORLD);
    errors = check->run();
    MPI_Allreduce(&errors, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (t.rank == 0) {
        printf("%s %s\n", all ? "FAIL" : "ok  ", check->name);
    }
    return all != 0;
}

int main(int argc, char **argv)
{
    int num = sizeof(checks) / sizeof(*checks), failed = 0, level;

    MPI_Init_thread(&argc, &argv,
                    (argc > 1) ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE,
                    &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &t.rank);
    num     -= (level < MPI_THREAD_MULTIPLE);
    t.memory = malloc(SPAN);
    t.rows   = make_rows(ROWS);
    for (int i = 0; i < num; i++) {
        failed += run(&checks[i]);
    }
    if (t.rank == 0) {
        printf("mpi_views: %d checks, %d failed\n", num, failed);
    }
    MPI_Type_free(&t.rows);
    free(t.memory);
    MPI_Finalize();
    return failed != 0;
}
