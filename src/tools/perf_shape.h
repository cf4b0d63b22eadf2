/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * A shape: where in a buffer the bytes of a transfer lie, as a list of pieces,
 * and what belongs there. Pure: knows no device, one thread.
 *
 *   strided     n blocks, the beginnings of which are a stride apart
 *   composite   pieces of half a block, one, and one and a half, with gaps of
 *               different lengths; each two of them in the wrong order
 *   box         planes of rows that are a stride apart, in an array whose
 *               planes have twice as many rows
 */
#ifndef DCX_PERF_SHAPE_H
#define DCX_PERF_SHAPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum perf_form {
    PERF_CONTIGUOUS,
    PERF_STRIDED,
    PERF_COMPOSITE,
    PERF_BOX,
    PERF_FORMS
};

enum {
    /* bytes before the first and behind the last piece, which are looked at */
    PERF_GUARD = 64
};

struct perf_piece {
    size_t offset; /* in the buffer */
    size_t length;
};

struct perf_shape {
    enum perf_form    form;
    size_t            size;   /* bytes of all pieces */
    size_t            extent; /* of the buffer, guards included */
    size_t            block;
    size_t            stride; /* from row to row; 0 for a composite */
    size_t            rows;   /* of a plane */
    size_t            planes; /* 1 but for a box */
    size_t            pitch;  /* rows from plane to plane */
    size_t            num;
    struct perf_piece *pieces;
};

/* A byte that is not as it should be */
struct perf_wrong {
    int64_t offset;    /* in the buffer; of the guard before it < 0 */
    uint8_t is;
    uint8_t expected;
    bool    is_hole;   /* belongs to no piece */
    bool    is_packed; /* of data that lie side by side, not of a buffer */
};

extern const char *perf_form_names[PERF_FORMS];

/* Bytes that a shape has which shall have `size`: whole blocks of them */
size_t perf_shape_size(enum perf_form form, size_t size, size_t block);

/* stride: 0 for twice the block. @return false if there is no memory for it. */
bool perf_shape_init(struct perf_shape *shape, enum perf_form form,
                     size_t size, size_t block, size_t stride);
void perf_shape_cleanup(struct perf_shape *shape);

/* The pieces of a buffer, side by side and back */
void perf_shape_pack(const struct perf_shape *shape, const void *buffer,
                     void *packed);
void perf_shape_unpack(const struct perf_shape *shape, void *buffer,
                       const void *packed);

/* The pattern `seed` in all pieces, and what is no data in all else. No byte of
 * data of any pattern is one that is none. */
void perf_shape_fill(const struct perf_shape *shape, uint8_t *buffer,
                     uint64_t seed);

/* No data anywhere */
void perf_shape_clear(const struct perf_shape *shape, uint8_t *buffer,
                      uint64_t seed);

/* Whether a cleared buffer now has the pattern in its pieces, and all else is
 * as it was. @return false with the first byte that is not so. */
bool perf_shape_check(const struct perf_shape *shape, const uint8_t *buffer,
                      uint64_t seed, struct perf_wrong *wrong);

/* The same of `size` bytes of data that lie side by side */
void perf_data_fill(uint8_t *data, size_t size, uint64_t seed);
void perf_data_clear(uint8_t *data, size_t size, uint64_t seed);
bool perf_data_check(const uint8_t *data, size_t size, uint64_t seed,
                     struct perf_wrong *wrong);

#endif
