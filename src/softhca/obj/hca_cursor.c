/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/* Positions in lists of pieces: see hca_cursor.h. */
#include "hca_cursor.h"

#include <errno.h>

void hca_cursor_init(struct hca_cursor *cursor, const struct hca_sgl *sgl)
{
    cursor->sgl        = sgl;
    cursor->next       = 0;
    cursor->left       = 0;
    cursor->rows       = 0;
    cursor->walk.depth = 0;
    cursor->walk.seen  = (struct hca_walk_seen){.mkey = NULL};
}

/* Begins the next entry. */
static int hca_cursor_enter(struct hca_cursor *cursor)
{
    const struct hca_sgl *sgl  = cursor->sgl;
    const struct iovec *iov    = &sgl->iov[cursor->next];
    const struct hca_mkey *via = sgl->has_via ? sgl->via[cursor->next] : NULL;
    struct hca_key_use use;

    cursor->next++;
    cursor->is_null = (via != NULL) && (via->type == HCA_MKEY_NULL);
    if ((via == NULL) || (via->type != HCA_MKEY_INDIRECT)) {
        cursor->base = iov->iov_base;
        cursor->left = iov->iov_len;
        return 0;
    }
    use        = sgl->use;
    use.addr   = (uintptr_t)iov->iov_base;
    use.length = iov->iov_len;
    return (hca_walk_begin(&cursor->walk, via, &use) == HCA_KEY_OK) ? 0 :
                                                                      -EFAULT;
}

/* Gets the next piece of a layout, and the number of equal ones behind it. */
static int hca_cursor_walk(struct hca_cursor *cursor)
{
    struct hca_walk *walk = &cursor->walk;

    if (hca_walk_next(walk) != HCA_KEY_OK) {
        return -EFAULT;
    }
    cursor->left = walk->part.length;
    if (walk->part.length == 0) {
        return 0;
    }
    cursor->base    = hca_walk_base(walk);
    cursor->is_null = (walk->seen.mkey->type == HCA_MKEY_NULL);
    if (hca_walk_is_row(walk) && !cursor->is_null) {
        cursor->rows   = hca_walk_rows(walk, &cursor->stride);
        cursor->length = cursor->left;
        cursor->row    = cursor->base + cursor->stride;
    }
    return 0;
}

/* Goes to the last of the next @rows rows. */
static void hca_cursor_row(struct hca_cursor *cursor, uint32_t rows)
{
    cursor->row += rows * cursor->stride;
    cursor->base = cursor->row - cursor->stride;
    cursor->left = cursor->length;
    cursor->rows -= rows;
}

int hca_cursor_next(struct hca_cursor *cursor)
{
    int ret = 0;

    while ((cursor->left == 0) && (ret == 0)) {
        if (cursor->rows > 0) {
            hca_cursor_row(cursor, 1);
        } else if (cursor->walk.depth > 0) {
            ret = hca_cursor_walk(cursor);
        } else if (cursor->next < cursor->sgl->count) {
            ret = hca_cursor_enter(cursor);
        } else {
            break;
        }
    }
    return ret;
}

static bool hca_cursor_is_row(const struct hca_cursor *cursor, size_t length)
{
    return (cursor->rows > 0) && (cursor->left == length) &&
           (cursor->length == length);
}

size_t hca_cursor_count(const struct hca_cursor *cursor, size_t length,
                        size_t *stride)
{
    if (hca_cursor_is_row(cursor, length)) {
        *stride = cursor->stride;
        return (size_t)cursor->rows + 1;
    }
    *stride = length;
    return cursor->left / length;
}

void hca_cursor_pass_rows(struct hca_cursor *cursor, size_t length,
                          size_t count)
{
    if (!hca_cursor_is_row(cursor, length)) {
        hca_cursor_pass(cursor, length * count);
        return;
    }
    if (count > 1) {
        hca_cursor_row(cursor, count - 1);
    }
    cursor->left = 0;
}
