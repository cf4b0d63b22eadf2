/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * A shape: where the bytes of a transfer lie in a buffer, as a list of pieces,
 * and their contents. Knows no device. One thread.
 *
 *   contiguous  one piece
 *   strided     n blocks; each begins a stride after the previous one
 *   composite   pieces of half a block, one, and one and a half, with gaps of
 *               different lengths; the first and second, third and fourth, ...
 *               are swapped
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
    /* bytes before the first and behind the last piece, which are checked */
    PERF_GUARD = 64
};

struct perf_piece {
    size_t offset; /* in the buffer, guard included */
    size_t length;
};

struct perf_shape {
    enum perf_form form;
    size_t size;   /* bytes of all pieces */
    size_t extent; /* bytes of the buffer, guards included */
    size_t block;
    size_t stride; /* from row to row; 0 for a composite */
    size_t rows;   /* of a plane */
    size_t planes; /* 1 except for a box */
    size_t pitch;  /* rows from plane to plane */
    size_t num;    /* pieces */
    struct perf_piece *pieces;
};

/* A wrong byte */
struct perf_wrong {
    int64_t offset; /* in the buffer behind its first guard, or in contiguous
                     * data; < 0: in that guard */
    uint8_t is;
    uint8_t expected;
    bool is_hole;   /* belongs to no piece */
    bool is_packed; /* in contiguous data, not in a buffer */
};

extern const char *perf_form_names[PERF_FORMS];

/* Returns the bytes of a shape of up to @size bytes: strided shapes and boxes
 * have whole blocks. */
size_t perf_shape_size(enum perf_form form, size_t size, size_t block);

/* Makes a shape of perf_shape_size() bytes. @stride: 0 for twice the block.
 * @return false if memory is short. */
bool perf_shape_init(struct perf_shape *shape, enum perf_form form, size_t size,
                     size_t block, size_t stride);
void perf_shape_cleanup(struct perf_shape *shape);

/* Copy the pieces of a buffer to contiguous data, and back. */
void perf_shape_pack(const struct perf_shape *shape, const void *buffer,
                     void *packed);
void perf_shape_unpack(const struct perf_shape *shape, void *buffer,
                       const void *packed);

/* Writes pattern @seed to all pieces, and bytes that are no data elsewhere.
 * These differ from all data of any pattern, and from the bytes at the same
 * places of a buffer that is cleared with @seed. */
void perf_shape_fill(const struct perf_shape *shape, uint8_t *buffer,
                     uint64_t seed);

/* Writes bytes that are no data everywhere. */
void perf_shape_clear(const struct perf_shape *shape, uint8_t *buffer,
                      uint64_t seed);

/* Returns true if a cleared buffer now has the pattern in its pieces, and all
 * other bytes are unchanged. Otherwise stores the first wrong byte. */
bool perf_shape_check(const struct perf_shape *shape, const uint8_t *buffer,
                      uint64_t seed, struct perf_wrong *wrong);

/* Fill, clear and check @size bytes of contiguous data. */
void perf_data_fill(uint8_t *data, size_t size, uint64_t seed);
void perf_data_clear(uint8_t *data, size_t size, uint64_t seed);
bool perf_data_check(const uint8_t *data, size_t size, uint64_t seed,
                     struct perf_wrong *wrong);

#endif
