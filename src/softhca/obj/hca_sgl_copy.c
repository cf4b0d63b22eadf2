/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The copy between two lists: see hca_sgl.h. Lists of plain memory are moved by
 * one call of hca_mem.h.
 *
 * A list with a `via` may have any number of pieces. The pieces of both lists,
 * side by side, are collected in batches and copied together: by loads and
 * stores where these reach both sides (hca_mem_near()), else by system calls
 * (hca_far.h).
 */
#define _GNU_SOURCE
#include "hca_cursor.h"
#include "hca_far.h"
#include "hca_sgl.h"

#include <errno.h>

/* Limits of a batch that loads and stores copy. Before each batch the layouts
 * are checked for changes. */
#define HCA_BATCH_ROWS  64u
#define HCA_BATCH_BYTES 65536u

/* Rows to be copied by loads and stores. */
struct hca_batch_rows {
    struct hca_trap_rows rows; /* with the peer's side as it is reached here */
    char *remote;              /* the address of that side at its owner */
};

/* Pieces that were found and are not copied yet: rows or far ones. Lies on the
 * stack of the thread that rang a doorbell. */
struct hca_batch {
    struct hca_cursor dst, src;
    unsigned num_rows;
    size_t bytes;
    struct hca_batch_rows rows[HCA_BATCH_ROWS];
    struct hca_far far; /* far.owner: of the list that is the peer's */
};

static const char hca_batch_zeros[4096];

/* --- near pieces ---------------------------------------------------------- */

/* Returns the address of the remote side of rows as it is reached here, or
 * NULL. */
static char *hca_batch_near(const struct hca_batch *batch, char *remote,
                            const struct hca_trap_rows *rows)
{
    size_t stride = batch->far.writes ? rows->to_stride : rows->from_stride;

    return hca_mem_near(batch->far.owner, remote,
                        (rows->count - 1) * stride + rows->length,
                        batch->far.writes);
}

/* Copies rows one by one with hca_mem.h, as their memory is not reached as
 * before. */
static int hca_batch_copy_again(const struct hca_batch *batch,
                                const struct hca_batch_rows *near)
{
    const struct hca_trap_rows *rows = &near->rows;
    struct iovec local = {batch->far.writes ? (char *)rows->from : rows->to,
                          rows->length};
    struct iovec remote = {near->remote, rows->length};
    int ret             = 0;

    for (size_t i = 0; (i < rows->count) && (ret == 0); i++) {
        if (batch->far.writes) {
            ret = hca_mem_write(batch->far.owner, &local, 1, &remote, 1);
            local.iov_base  = (char *)local.iov_base + rows->from_stride;
            remote.iov_base = (char *)remote.iov_base + rows->to_stride;
        } else {
            ret = hca_mem_read(batch->far.owner, &local, 1, &remote, 1);
            local.iov_base  = (char *)local.iov_base + rows->to_stride;
            remote.iov_base = (char *)remote.iov_base + rows->from_stride;
        }
    }
    return ret;
}

/* Copies rows; again, by other means, if the owner has replaced its pages
 * meanwhile. */
static int hca_batch_copy_rows(const struct hca_batch *batch,
                               const struct hca_batch_rows *near)
{
    const struct hca_trap_rows *rows = &near->rows;
    const char *used = batch->far.writes ? rows->to : rows->from;
    int ret          = hca_trap_guard_rows(rows);

    if ((ret == 0) && (hca_batch_near(batch, near->remote, rows) == used)) {
        return 0;
    }
    return (batch->far.owner.proc == hca_self) ?
               ret :
               hca_batch_copy_again(batch, near);
}

/* Copies the batch.
 * @return -EFAULT, with nothing copied, if a layout has changed since its
 *         pieces were found; else 0 or as hca_mem_*() */
static int hca_batch_flush(struct hca_batch *batch)
{
    int ret = 0;

    if (!hca_walk_is_valid(&batch->dst.walk) ||
        !hca_walk_is_valid(&batch->src.walk)) {
        return -EFAULT;
    }
    if (batch->far.nlocal > 0) {
        return hca_far_move(&batch->far);
    }
    for (unsigned i = 0; (i < batch->num_rows) && (ret == 0); i++) {
        ret = hca_batch_copy_rows(batch, &batch->rows[i]);
    }
    batch->num_rows = 0;
    batch->bytes    = 0;
    return ret;
}

/* Writes zeros to memory of this process. */
static int hca_batch_clear(struct hca_batch *batch,
                           const struct hca_trap_rows *rows)
{
    int ret = hca_batch_flush(batch);

    return (ret == 0) ? hca_trap_guard_rows(rows) : ret;
}

/* Adds rows that loads and stores reach; writes zeros at once.
 * @return 0, an error, or -EAGAIN if they do not reach the rows */
static int hca_batch_add(struct hca_batch *batch,
                         const struct hca_trap_rows *rows)
{
    char *remote = batch->far.writes ? rows->to : (char *)rows->from;
    char *near   = hca_batch_near(batch, remote, rows);
    struct hca_batch_rows *added;
    int ret = 0;

    if (batch->src.is_null && !batch->far.writes) {
        return hca_batch_clear(batch, rows);
    }
    if (near == NULL) {
        return -EAGAIN;
    }
    if ((batch->num_rows == HCA_BATCH_ROWS) ||
        (batch->bytes >= HCA_BATCH_BYTES) || (batch->far.nlocal > 0)) {
        ret = hca_batch_flush(batch);
    }
    if (ret == 0) {
        added         = &batch->rows[batch->num_rows++];
        added->rows   = *rows;
        added->remote = remote;
        if (batch->far.writes) {
            added->rows.to = near;
        } else {
            added->rows.from = near;
        }
        batch->bytes += rows->count * rows->length;
    }
    return ret;
}

/* --- far pieces ----------------------------------------------------------- */

/* Flushes the batch, as writes must be in order, and moves some of the rows at
 * once. @return as hca_far_move_rows() */
static int hca_batch_move_rows(struct hca_batch *batch,
                               struct hca_trap_rows *rows)
{
    size_t count = hca_far_count_rows(&batch->far, rows);
    int ret;

    if (count == 0) {
        return -EAGAIN;
    }
    ret         = hca_batch_flush(batch);
    rows->count = count;
    return (ret == 0) ? hca_far_move_rows(&batch->far, *rows) : ret;
}

static int hca_batch_add_piece(struct hca_batch *batch,
                               const struct hca_trap_rows *row)
{
    void *from   = (char *)row->from;
    void *local  = batch->far.writes ? from : row->to;
    void *remote = batch->far.writes ? row->to : from;
    int ret      = 0;

    if ((batch->num_rows > 0) ||
        hca_far_is_full(&batch->far, remote, row->length)) {
        ret = hca_batch_flush(batch);
    }
    if (ret == 0) {
        hca_far_add(&batch->far, local, remote, row->length);
    }
    return ret;
}

/* Adds or moves some of the rows; stores their number in rows->count. */
static int hca_batch_add_far(struct hca_batch *batch,
                             struct hca_trap_rows *rows)
{
    int ret = hca_batch_move_rows(batch, rows);

    if (ret != -EAGAIN) {
        return ret;
    }
    rows->count = 1;
    return hca_batch_add_piece(batch, rows);
}

/* --- the copy ------------------------------------------------------------- */

/* Finds the rows of one length, at least one, that both lists continue with. */
static void hca_batch_find(const struct hca_cursor *dst,
                           const struct hca_cursor *src,
                           struct hca_trap_rows *rows)
{
    size_t n = (dst->left < src->left) ? dst->left : src->left, count;

    if (src->is_null && (n > sizeof(hca_batch_zeros))) {
        n = sizeof(hca_batch_zeros);
    }
    *rows = (struct hca_trap_rows){dst->base, src->base, 0, 0, n, 1};
    if ((dst->rows > 0) || (src->rows > 0)) {
        rows->count = hca_cursor_count(dst, n, &rows->to_stride);
        count       = hca_cursor_count(src, n, &rows->from_stride);
        rows->count = (rows->count < count) ? rows->count : count;
    }
    if (src->is_null) {
        rows->from        = hca_batch_zeros;
        rows->from_stride = 0;
    }
}

/* Copies the next rows of one length, and passes them in both lists. */
static int hca_batch_step(struct hca_batch *batch)
{
    struct hca_trap_rows rows;
    int ret = 0;

    hca_batch_find(&batch->dst, &batch->src, &rows);
    if (!batch->dst.is_null) {
        ret = hca_batch_add(batch, &rows);
        ret = (ret == -EAGAIN) ? hca_batch_add_far(batch, &rows) : ret;
    }
    if (rows.count == 1) {
        hca_cursor_pass(&batch->dst, rows.length);
        hca_cursor_pass(&batch->src, rows.length);
    } else {
        hca_cursor_pass_rows(&batch->dst, rows.length, rows.count);
        hca_cursor_pass_rows(&batch->src, rows.length, rows.count);
    }
    return ret;
}

static int hca_batch_copy(const struct hca_sgl *dst, const struct hca_sgl *src)
{
    bool writes = (src->owner.proc == hca_self);
    struct hca_batch batch;
    int ret = 0;

    batch.num_rows = 0;
    batch.bytes    = 0;
    hca_far_init(&batch.far, writes ? dst->owner : src->owner, writes);
    hca_cursor_init(&batch.dst, dst);
    hca_cursor_init(&batch.src, src);
    while (ret == 0) {
        if (batch.dst.left == 0) {
            ret = hca_cursor_next(&batch.dst);
        }
        if ((ret == 0) && (batch.src.left == 0)) {
            ret = hca_cursor_next(&batch.src);
        }
        if (ret != 0) {
            break;
        }
        if ((batch.dst.left == 0) || (batch.src.left == 0)) {
            return hca_batch_flush(&batch);
        }
        ret = hca_batch_step(&batch);
    }
    return ret;
}

int hca_sgl_copy(const struct hca_sgl *dst, const struct hca_sgl *src)
{
    if (__builtin_expect(dst->has_via || src->has_via, 0)) {
        return hca_batch_copy(dst, src);
    }
    return (src->owner.proc == hca_self) ?
               hca_mem_write(dst->owner, src->iov, src->count, dst->iov,
                             dst->count) :
               hca_mem_read(src->owner, dst->iov, dst->count, src->iov,
                            src->count);
}
