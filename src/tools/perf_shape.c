/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Shapes of data: their pieces, packing, and contents; see perf_shape.h.
 */
#include "perf_shape.h"

#include <stdlib.h>
#include <string.h>

const char *perf_form_names[PERF_FORMS] = {
    [PERF_CONTIGUOUS] = "contiguous",
    [PERF_STRIDED]    = "strided",
    [PERF_COMPOSITE]  = "composite",
    [PERF_BOX]        = "box",
};

/* --- pieces --------------------------------------------------------------- */
static size_t perf_max(size_t a, size_t b)
{
    return (a > b) ? a : b;
}

/* Returns the planes of a box of @rows: about as many as a plane has rows. */
static size_t perf_box_planes(size_t rows)
{
    size_t planes = 1;

    while ((4 * planes * planes) <= rows) {
        planes *= 2;
    }
    return planes;
}

size_t perf_shape_size(enum perf_form form, size_t size, size_t block)
{
    size_t rows = size / block;
    size_t planes;

    switch (form) {
    case PERF_STRIDED:
        return rows * block;
    case PERF_BOX:
        planes = perf_box_planes(rows);
        return rows / planes * planes * block;
    default:
        return size;
    }
}

/* Returns an upper bound of the number of pieces. */
static size_t perf_shape_max_pieces(const struct perf_shape *shape)
{
    if (shape->form == PERF_CONTIGUOUS) {
        return 1;
    }
    /* Three pieces of a composite have the bytes of three blocks, minus
     * rounding. */
    return shape->size / shape->block * 2 + 2;
}

static void perf_shape_add(struct perf_shape *shape, size_t offset,
                           size_t length)
{
    shape->pieces[shape->num].offset = offset;
    shape->pieces[shape->num].length = length;
    shape->extent = perf_max(shape->extent, offset + length + PERF_GUARD);
    shape->num++;
}

static void perf_shape_add_rows(struct perf_shape *shape)
{
    for (size_t plane = 0; plane < shape->planes; plane++) {
        for (size_t row = 0; row < shape->rows; row++) {
            perf_shape_add(shape,
                           PERF_GUARD +
                               (plane * shape->pitch + row) * shape->stride,
                           shape->block);
        }
    }
}

/* Swaps neighbouring pieces, so that addresses do not ascend. */
static void perf_shape_swap(struct perf_shape *shape)
{
    struct perf_piece first;

    for (size_t i = 0; i + 1 < shape->num; i += 2) {
        first                = shape->pieces[i];
        shape->pieces[i]     = shape->pieces[i + 1];
        shape->pieces[i + 1] = first;
    }
}

static void perf_shape_add_composite(struct perf_shape *shape)
{
    size_t offset = PERF_GUARD;
    size_t left   = shape->size;
    size_t length;

    while (left > 0) {
        length = perf_max(shape->block * (shape->num % 3 + 1) / 2, 1);
        length = (length < left) ? length : left;
        perf_shape_add(shape, offset, length);
        offset += length + 1 + shape->num * 37 % shape->block;
        left -= length;
    }
    perf_shape_swap(shape);
}

static void perf_shape_layout(struct perf_shape *shape)
{
    size_t rows = shape->size / shape->block;

    shape->planes = (shape->form == PERF_BOX) ? perf_box_planes(rows) : 1;
    shape->rows   = rows / shape->planes;
    shape->pitch  = 2 * shape->rows;
}

bool perf_shape_init(struct perf_shape *shape, enum perf_form form, size_t size,
                     size_t block, size_t stride)
{
    memset(shape, 0, sizeof(*shape));
    shape->form   = form;
    shape->size   = perf_shape_size(form, size, block);
    shape->block  = (form == PERF_CONTIGUOUS) ? shape->size : block;
    shape->pieces = calloc(perf_shape_max_pieces(shape),
                           sizeof(*shape->pieces));
    if (shape->pieces == NULL) {
        return false;
    }
    if (form == PERF_COMPOSITE) {
        perf_shape_add_composite(shape);
        return true;
    }
    shape->stride = (stride == 0) ? 2 * shape->block : stride;
    perf_shape_layout(shape);
    perf_shape_add_rows(shape);
    return true;
}

void perf_shape_cleanup(struct perf_shape *shape)
{
    free(shape->pieces);
}

/* --- packing -------------------------------------------------------------- */
/* Copies; lengths known to the compiler avoid a call for a few bytes. */
static inline void perf_copy(void *to, const void *from, size_t length)
{
    switch (length) {
    case 4:
        memcpy(to, from, 4);
        break;
    case 8:
        memcpy(to, from, 8);
        break;
    case 16:
        memcpy(to, from, 16);
        break;
    case 32:
        memcpy(to, from, 32);
        break;
    case 64:
        memcpy(to, from, 64);
        break;
    default:
        memcpy(to, from, length);
    }
}

void perf_shape_pack(const struct perf_shape *shape, const void *buffer,
                     void *packed)
{
    const struct perf_piece *end = shape->pieces + shape->num;
    uint8_t *to                  = packed;

    for (const struct perf_piece *piece = shape->pieces; piece < end; piece++) {
        perf_copy(to, (const uint8_t *)buffer + piece->offset, piece->length);
        to += piece->length;
    }
}

void perf_shape_unpack(const struct perf_shape *shape, void *buffer,
                       const void *packed)
{
    const struct perf_piece *end = shape->pieces + shape->num;
    const uint8_t *from          = packed;

    for (const struct perf_piece *piece = shape->pieces; piece < end; piece++) {
        perf_copy((uint8_t *)buffer + piece->offset, from, piece->length);
        from += piece->length;
    }
}

/* --- contents ------------------------------------------------------------- */
/* Returns byte @i of a pattern. Its highest bit is 0, unlike that of holes. */
static inline uint8_t perf_byte(uint64_t i, uint64_t seed)
{
    return ((i + seed * 0x10001 + 1) * 0x9e3779b97f4a7c15) >> 57;
}

static inline uint8_t perf_hole(uint64_t i, uint64_t seed)
{
    return 0x80 | perf_byte(i, seed);
}

void perf_data_fill(uint8_t *data, size_t size, uint64_t seed)
{
    for (size_t i = 0; i < size; i++) {
        data[i] = perf_byte(i, seed);
    }
}

void perf_data_clear(uint8_t *data, size_t size, uint64_t seed)
{
    for (size_t i = 0; i < size; i++) {
        data[i] = perf_hole(i, seed);
    }
}

static void perf_wrong_set(struct perf_wrong *wrong, int64_t offset, uint8_t is,
                           uint8_t expected, bool is_packed)
{
    wrong->offset    = offset;
    wrong->is        = is;
    wrong->expected  = expected;
    wrong->is_hole   = (expected & 0x80) != 0;
    wrong->is_packed = is_packed;
}

bool perf_data_check(const uint8_t *data, size_t size, uint64_t seed,
                     struct perf_wrong *wrong)
{
    for (size_t i = 0; i < size; i++) {
        if (data[i] != perf_byte(i, seed)) {
            perf_wrong_set(wrong, i, data[i], perf_byte(i, seed), true);
            return false;
        }
    }
    return true;
}

void perf_shape_clear(const struct perf_shape *shape, uint8_t *buffer,
                      uint64_t seed)
{
    perf_data_clear(buffer, shape->extent, seed);
}

/* Writes byte by byte, independent of the copies that are measured. */
static void perf_shape_set(const struct perf_shape *shape, uint8_t *buffer,
                           uint64_t seed)
{
    uint64_t i = 0;

    for (size_t p = 0; p < shape->num; p++) {
        for (size_t j = 0; j < shape->pieces[p].length; j++) {
            buffer[shape->pieces[p].offset + j] = perf_byte(i++, seed);
        }
    }
}

/* perf_byte() differs at each place between a seed and the next one. */
void perf_shape_fill(const struct perf_shape *shape, uint8_t *buffer,
                     uint64_t seed)
{
    perf_shape_clear(shape, buffer, seed + 1);
    perf_shape_set(shape, buffer, seed);
}

bool perf_shape_check(const struct perf_shape *shape, const uint8_t *buffer,
                      uint64_t seed, struct perf_wrong *wrong)
{
    uint8_t *expected = malloc(shape->extent);
    size_t i;

    if (expected == NULL) {
        abort();
    }
    perf_shape_clear(shape, expected, seed);
    perf_shape_set(shape, expected, seed);
    for (i = 0; (i < shape->extent) && (buffer[i] == expected[i]); i++) {
    }
    if (i < shape->extent) {
        perf_wrong_set(wrong, (int64_t)i - PERF_GUARD, buffer[i], expected[i],
                       false);
    }
    free(expected);
    return i == shape->extent;
}
