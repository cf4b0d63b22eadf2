/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Areas. MPI_Pack(), which is local, tells the places of a type's bytes: it
 * packs memory in which each byte holds a part of its own offset, once for each
 * part.
 */
#include "test/mpi/rules.h"

enum { GAP = 0xee, MARGIN = 64 };

static void area_map(struct area *area)
{
    unsigned char *packed = need(area->size + 1);

    memset(area->map, 0, area->size * sizeof(*area->map));
    for (int shift = 0; (area->length >> shift) > 0; shift += 8) {
        int position = 0;

        for (size_t i = 0; i < area->length; i++) {
            area->memory[i] = (unsigned char)(i >> shift);
        }
        MPI_Pack(area->buffer, area->count, area->type, packed, (int)area->size,
                 &position, MPI_COMM_SELF);
        for (size_t i = 0; i < area->size; i++) {
            area->map[i] |= (uint32_t)packed[i] << shift;
        }
    }
    free(packed);
}

void area_init(struct area *area, MPI_Datatype type, int count)
{
    MPI_Aint lb, extent, begin, length, more;
    int size;

    MPI_Type_commit(&type);
    MPI_Type_size(type, &size);
    MPI_Type_get_extent(type, &lb, &extent);
    MPI_Type_get_true_extent(type, &begin, &length);
    more         = (count > 1) ? (count - 1) * extent : 0;
    area->type   = type;
    area->count  = count;
    area->size   = (size_t)size * count;
    area->length = length + more + 2 * MARGIN;
    area->memory = need(area->length);
    area->buffer = area->memory + MARGIN - begin;
    area->map    = need(area->size * sizeof(*area->map) + 1);
    area_map(area);
    area_clear(area);
}

void area_cleanup(struct area *area)
{
    if (area->type != MPI_DATATYPE_NULL) {
        MPI_Type_free(&area->type);
    }
    free(area->map);
    free(area->memory);
}

void area_clear(struct area *area)
{
    memset(area->memory, GAP, area->length);
}

void area_fill(struct area *area, unsigned seed)
{
    area_clear(area);
    for (size_t i = 0; i < area->size; i++) {
        area->memory[area->map[i]] = check_byte(seed, i);
    }
}

/* Returns the bytes of a message from an area; if several have one place, the
 * last counts. */
static unsigned char *area_message(const struct area *area, unsigned seed)
{
    struct area copy       = *area;
    unsigned char *message = need(area->size + 1);

    copy.memory = need(area->length);
    area_fill(&copy, seed);
    for (size_t i = 0; i < area->size; i++) {
        message[i] = copy.memory[area->map[i]];
    }
    free(copy.memory);
    return message;
}

int area_check(const char *what, const struct area *area,
               const struct area *source, unsigned seed, size_t size)
{
    unsigned char *message = area_message(source, seed);
    unsigned char *want    = need(area->length);
    int errors             = 0;

    memset(want, GAP, area->length);
    for (size_t i = 0; i < size; i++) {
        want[area->map[i]] = message[i];
    }
    for (size_t i = 0; (i < area->length) && (errors == 0); i++) {
        if (area->memory[i] != want[i]) {
            fprintf(stderr,
                    "%s: rank %d: byte %zu of %zu in memory, of a message of "
                    "%zu, is 0x%02x instead of 0x%02x\n",
                    what, rank, i, area->length, size, area->memory[i],
                    want[i]);
            errors = 1;
        }
    }
    free(want);
    free(message);
    return errors;
}

int area_check_part(const char *what, const struct area *area, int i, int num,
                    unsigned seed)
{
    size_t size         = area->size / num;
    const uint32_t *map = area->map + i * size;
    unsigned char *part = need(size + 1);
    int errors;

    for (size_t j = 0; j < size; j++) {
        part[j] = area->memory[map[j]];
    }
    errors = check_data(what, part, size, seed);
    free(part);
    return errors;
}

int area_check_gaps(const char *what, struct area *area)
{
    for (size_t i = 0; i < area->size; i++) {
        area->memory[area->map[i]] = check_byte(0, i);
    }
    return area_check(what, area, area, 0, area->size);
}

void area_place(struct area *area, void *memory)
{
    area->buffer = (char *)memory +
                   ((char *)area->buffer - (char *)area->memory);
    area->memory = memory;
}

void area_clone(const struct area *area, struct area *clone)
{
    *clone = *area;
    area_place(clone, need(area->length));
    area_clear(clone);
}

void area_cleanup_clone(struct area *clone)
{
    free(clone->memory);
}

/* --- messages ------------------------------------------------------------- */

static int exchange_check(const char *what, struct area *out, struct area *in,
                          unsigned seed)
{
    return area_check(what, in, out, seed + prev_rank(), out->size) +
           area_check(what, out, out, seed + rank, out->size);
}

int exchange(const char *what, struct area *out, struct area *in, unsigned seed,
             MPI_Comm comm)
{
    MPI_Request requests[2];

    area_fill(out, seed + rank);
    area_clear(in);
    MPI_Irecv(in->buffer, in->count, in->type, prev_rank(), TAG, comm,
              &requests[0]);
    MPI_Isend(out->buffer, out->count, out->type, next_rank(), TAG, comm,
              &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    return exchange_check(what, out, in, seed);
}

int exchange_late(const char *what, struct area *out, struct area *in,
                  unsigned seed, MPI_Comm comm)
{
    MPI_Request request;
    int is_there = 0;

    area_fill(out, seed + rank);
    area_clear(in);
    MPI_Isend(out->buffer, out->count, out->type, next_rank(), TAG, comm,
              &request);
    while (!is_there) {
        MPI_Iprobe(prev_rank(), TAG, comm, &is_there, MPI_STATUS_IGNORE);
    }
    MPI_Recv(in->buffer, in->count, in->type, prev_rank(), TAG, comm,
             MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    return exchange_check(what, out, in, seed);
}

/* --- layouts -------------------------------------------------------------- */

/* Blocks of 'block' doubles with gaps of half their length */
static MPI_Datatype make_vector(size_t bytes, int block)
{
    int num = (int)(bytes / 8 / block);
    MPI_Datatype type;

    if (num == 0) {
        num   = 1;
        block = (bytes < 8) ? 1 : (int)(bytes / 8);
    }
    MPI_Type_vector(num, block, block + (block + 1) / 2, MPI_DOUBLE, &type);
    return type;
}

/* Blocks of 2 KiB with gaps of four times their length */
static MPI_Datatype make_sparse(size_t bytes)
{
    int num = (bytes < 2048) ? 1 : (int)(bytes / 2048);
    MPI_Datatype type;

    MPI_Type_vector(num, 256, 5 * 256, MPI_DOUBLE, &type);
    return type;
}

/* A face of a box: rows of 64 doubles, planes of 8 rows out of 10 */
static MPI_Datatype make_face(size_t bytes)
{
    int planes     = (bytes < 4096) ? 1 : (int)(bytes / 4096);
    int sizes[]    = {planes + 2, 10, 80};
    int subsizes[] = {planes, 8, 64};
    int starts[]   = {1, 1, 8};
    MPI_Datatype type;

    MPI_Type_create_subarray(3, sizes, subsizes, starts, MPI_ORDER_C,
                             MPI_DOUBLE, &type);
    return type;
}

/* Blocks of up to 512 bytes, at distances that repeat only after 4,000
 * blocks */
static MPI_Datatype make_irregular(size_t bytes)
{
    int num = (bytes < 256) ? 1 : (int)(bytes / 256), at = 3;
    int *lengths = need(num * sizeof(*lengths));
    int *places  = need(num * sizeof(*places));
    MPI_Datatype type;

    for (int i = 0; i < num; i++) {
        lengths[i] = 1 + (i * 37) % 64;
        places[i]  = at;
        at += lengths[i] + 1 + (i * 61) % 63;
    }
    MPI_Type_indexed(num, lengths, places, MPI_DOUBLE, &type);
    free(places);
    free(lengths);
    return type;
}

/* Rows from the last to the first */
static MPI_Datatype make_backwards(size_t bytes)
{
    int num = (bytes < 512) ? 1 : (int)(bytes / 512);
    MPI_Datatype type;

    MPI_Type_create_hvector(num, 64, -800, MPI_DOUBLE, &type);
    return type;
}

/* Records with a hole, and a lower bound below 0 */
static MPI_Datatype make_records(size_t bytes)
{
    int lengths[]        = {32, 1, 31};
    MPI_Aint places[]    = {-256, 8, 48};
    MPI_Datatype types[] = {MPI_DOUBLE, MPI_LONG_LONG, MPI_DOUBLE};
    int num              = (bytes < 512) ? 1 : (int)(bytes / 512);
    MPI_Datatype record, spaced, type;

    MPI_Type_create_struct(3, lengths, places, types, &record);
    MPI_Type_create_resized(record, -300, 640, &spaced);
    MPI_Type_contiguous(num, spaced, &type);
    MPI_Type_free(&spaced);
    MPI_Type_free(&record);
    return type;
}

/* Blocks of blocks */
static MPI_Datatype make_nested(size_t bytes)
{
    int num = (bytes < 1024) ? 1 : (int)(bytes / 1024);
    MPI_Datatype inner, type;

    MPI_Type_vector(4, 32, 40, MPI_DOUBLE, &inner);
    MPI_Type_create_hvector(num, 1, 1500, inner, &type);
    MPI_Type_free(&inner);
    return type;
}

MPI_Datatype make_layout(int layout, size_t bytes)
{
    switch (layout) {
    case 0:
        return make_vector(bytes, 32); /* 256 bytes, the minimum for
                                        * zero-copy */
    case 1:
        return make_vector(bytes, 512);
    case 2:
        return make_face(bytes);
    case 3:
        return make_irregular(bytes);
    case 4:
        return make_backwards(bytes);
    case 5:
        return make_records(bytes);
    case 6:
        return make_nested(bytes);
    case 7:
        return make_vector(bytes, 9000); /* more than 64 KiB each */
    case 8:
        return make_sparse(bytes);
    default:
        return make_vector(bytes, 1); /* too small for zero-copy */
    }
}

void area_init_layout(struct area *area, int layout, size_t bytes)
{
    area_init(area, make_layout(layout, bytes), 1);
}

void area_init_bytes(struct area *area, size_t bytes)
{
    MPI_Datatype type;

    MPI_Type_contiguous((int)bytes, MPI_BYTE, &type);
    area_init(area, type, 1);
}
