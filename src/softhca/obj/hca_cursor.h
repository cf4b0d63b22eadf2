/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * A position in a list (hca_sgl.h): its pieces one after the other, those of
 * layouts, too, and rows of equal ones together. hca_sgl_copy() moves two of
 * them side by side.
 */
#ifndef HCA_CURSOR_H
#define HCA_CURSOR_H

#include "hca_sgl.h"
#include "hca_walk.h"

struct hca_cursor {
    char *base;  /* rest of the current piece */
    size_t left; /* its bytes */
    char *row;   /* further pieces that were found: the first of them */
    size_t length, stride;
    uint32_t rows; /* their number */
    bool is_null;  /* the piece reads as zeros and discards writes */
    unsigned next; /* entry */
    const struct hca_sgl *sgl;
    struct hca_walk walk; /* of the entry before it, if a layout */
};

void hca_cursor_init(struct hca_cursor *cursor, const struct hca_sgl *sgl);

/* Gets the next piece; cursor->left stays 0 at the end.
 * @return 0 or -EFAULT if memory that was checked before is gone. */
int hca_cursor_next(struct hca_cursor *cursor);

/* Counts pieces of @length bytes that come next, also as parts of one piece,
 * and stores the distance between them. */
size_t hca_cursor_count(const struct hca_cursor *cursor, size_t length,
                        size_t *stride);

/* Passes by @count of these. */
void hca_cursor_pass_rows(struct hca_cursor *cursor, size_t length,
                          size_t count);

static inline void hca_cursor_pass(struct hca_cursor *cursor, size_t length)
{
    cursor->base += length;
    cursor->left -= length;
}

#endif
