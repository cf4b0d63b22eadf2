/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The copy between two lists. Plain ones are moved with one call of hca_mem.h.
 *
 * With a `via` in one of them they may have any number of pieces. The pieces of
 * both lists, side by side, are collected and copied together. The kernel takes
 * for a remote piece about the time of copying 4 KiB (it looks for its pages
 * anew: mm/process_vm_access.c, process_vm_rw_single_vec()), for a local one a
 * tenth of that. So neighbours are joined, a peer's pieces are read together
 * with the small gaps between them, and many small pieces of this process are
 * copied through a buffer by loads and stores.
 */
#define _GNU_SOURCE
#include "hca_sgl.h"
#include "hca_walk.h"
#include "softhca/doorbell/hca_trap.h"

#include <errno.h>

/* Pieces of a side; they lie on the stack of the thread that rang a doorbell */
#define HCA_BATCH_MAX 264u

/* More pieces than these are copied through the buffer, if they are short. */
#define HCA_BATCH_FEW   8u
#define HCA_BATCH_SHORT 1024u

/* Longest gap between two pieces of a peer that is read and dropped. As it is
 * less than a page, only pages that contain a piece are touched. */
#define HCA_BATCH_GAP 2048u

/* Least number of rows of both sides that are copied by one call. */
#define HCA_BATCH_MANY 16u

/* Pieces, and rows of them, that loads and stores copy */
#define HCA_BATCH_NEAR 176u

/* A position in a list. */
struct hca_batch_at {
    const struct hca_sgl *sgl;
    unsigned next;        /* entry */
    struct hca_walk walk; /* of the entry before it, if a layout */
    struct iovec piece;   /* rest of the current piece */
    bool is_null;
    uint32_t rows;    /* further pieces like it */
    struct iovec row; /* first of them */
    uint64_t stride;  /* between them, in bytes */
};

/* Pieces that were found, and are copied together: near or far ones. */
struct hca_batch {
    struct hca_batch_at dst, src;
    struct hca_owner owner; /* of the remote pieces; maybe this process */
    bool writes;            /* they are written */
    size_t total;
    unsigned num_near, nlocal, nremote;
    union {
        struct hca_trap_rows near[HCA_BATCH_NEAR];
        struct {
            struct iovec local[HCA_BATCH_MAX], remote[HCA_BATCH_MAX];
        };
    };
    char gap[HCA_BATCH_GAP];
};

static const char hca_batch_zeros[4096];

/* The buffer, for one thread at a time. Others, and a signal handler that
 * interrupts its use, do without. */
#define HCA_BATCH_BUFFER 65536u
static char hca_batch_buffer[HCA_BATCH_BUFFER];
static atomic_flag hca_batch_buffer_used = ATOMIC_FLAG_INIT;

static bool hca_batch_buffer_get(void)
{
    return !atomic_flag_test_and_set_explicit(&hca_batch_buffer_used,
                                              memory_order_acquire);
}

static void hca_batch_buffer_put(void)
{
    atomic_flag_clear_explicit(&hca_batch_buffer_used, memory_order_release);
}

/* --- position in a list---------------------------------------------------- */

static void hca_batch_at_init(struct hca_batch_at *at,
                              const struct hca_sgl *sgl)
{
    at->sgl           = sgl;
    at->next          = 0;
    at->walk.depth    = 0;
    at->walk.seen     = (struct hca_walk_seen){.mkey = NULL};
    at->piece.iov_len = 0;
    at->is_null       = false;
    at->rows          = 0;
    at->stride        = 0;
}

/* @return as hca_batch_at_piece() */
static int hca_batch_enter(struct hca_batch_at *at)
{
    const struct hca_sgl *sgl  = at->sgl;
    const struct iovec *iov    = &sgl->iov[at->next];
    const struct hca_mkey *via = sgl->has_via ? sgl->via[at->next] : NULL;
    struct hca_key_use use;

    at->next++;
    if ((via == NULL) || (via->type != HCA_MKEY_INDIRECT)) {
        at->piece   = *iov;
        at->is_null = (via != NULL);
        return 0;
    }
    use        = sgl->use;
    use.addr   = (uintptr_t)iov->iov_base;
    use.length = iov->iov_len;
    return (hca_walk_begin(&at->walk, via, &use) == HCA_KEY_OK) ? 0 : -EFAULT;
}

/* Gets the next piece of a walk, and the number of similar ones behind it. */
static int hca_batch_walk(struct hca_batch_at *at)
{
    const struct hca_mkey *key = NULL;

    if (hca_walk_next(&at->walk, &at->piece, &key) != HCA_KEY_OK) {
        return -EFAULT;
    }
    at->is_null = (key != NULL) && (key->type == HCA_MKEY_NULL);
    if (hca_walk_is_row(&at->walk) && !at->is_null) {
        at->rows         = hca_walk_rows(&at->walk, &at->stride);
        at->row          = at->piece;
        at->row.iov_base = (char *)at->row.iov_base + at->stride;
    }
    return 0;
}

/* Goes on to the @rows-th of the rows that were found. */
static void hca_batch_at_row(struct hca_batch_at *at, uint32_t rows)
{
    at->piece          = at->row;
    at->piece.iov_base = (char *)at->row.iov_base + (rows - 1) * at->stride;
    at->row.iov_base   = (char *)at->row.iov_base + rows * at->stride;
    at->rows -= rows;
}

/* Ensures that there is a piece, unless the list has ended.
 * @return -EFAULT if memory that was checked before is gone. */
static int hca_batch_at_piece(struct hca_batch_at *at)
{
    while (at->piece.iov_len == 0) {
        if (at->rows > 0) {
            hca_batch_at_row(at, 1);
        } else if (at->walk.depth > 0) {
            if (hca_batch_walk(at) != 0) {
                return -EFAULT;
            }
        } else if (at->next == at->sgl->count) {
            break;
        } else if (hca_batch_enter(at) != 0) {
            return -EFAULT;
        }
    }
    return 0;
}

/* Returns the bytes that are in one piece of each, and that the zeros have. */
static size_t hca_batch_at_common(const struct hca_batch_at *dst,
                                  const struct hca_batch_at *src)
{
    size_t n = dst->piece.iov_len;

    n = (n < src->piece.iov_len) ? n : src->piece.iov_len;
    return (src->is_null && (n > sizeof(hca_batch_zeros))) ?
               sizeof(hca_batch_zeros) :
               n;
}

static void hca_batch_at_advance(struct hca_batch_at *at, size_t length)
{
    at->piece.iov_base = (char *)at->piece.iov_base + length;
    at->piece.iov_len -= length;
}

/* --- near pieces ---------------------------------------------------------- */

static int hca_batch_move_near(const struct hca_batch *batch)
{
    int ret = 0;

    for (unsigned i = 0; (i < batch->num_near) && (ret == 0); i++) {
        ret = hca_trap_guard_rows(&batch->near[i]);
    }
    return ret;
}

/* --- far pieces ----------------------------------------------------------- */

static int hca_batch_move(struct hca_batch *batch, const struct iovec *local,
                          unsigned nlocal)
{
    return batch->writes ? hca_mem_write(batch->owner, local, nlocal,
                                         batch->remote, batch->nremote) :
                           hca_mem_read(batch->owner, local, nlocal,
                                        batch->remote, batch->nremote);
}

static int hca_batch_move_buffered(struct hca_batch *batch)
{
    const struct iovec buffer    = {hca_batch_buffer, batch->total};
    const struct hca_owner owner = hca_owner(hca_self);
    int ret;

    if (batch->writes) {
        ret = hca_mem_read(owner, &buffer, 1, batch->local, batch->nlocal);
        return (ret == 0) ? hca_batch_move(batch, &buffer, 1) : ret;
    }
    ret = hca_batch_move(batch, &buffer, 1);
    return (ret == 0) ?
               hca_mem_write(owner, &buffer, 1, batch->local, batch->nlocal) :
               ret;
}

static bool hca_batch_is_small(const struct hca_batch *batch)
{
    return (batch->nlocal > HCA_BATCH_FEW) &&
           (batch->total <= HCA_BATCH_BUFFER) &&
           (batch->total / batch->nlocal <= HCA_BATCH_SHORT);
}

static int hca_batch_move_far(struct hca_batch *batch)
{
    int ret;

    if (!hca_batch_is_small(batch) || !hca_batch_buffer_get()) {
        return hca_batch_move(batch, batch->local, batch->nlocal);
    }
    ret = hca_batch_move_buffered(batch);
    hca_batch_buffer_put();
    return ret;
}

/* Moves what was found. Layouts that were changed since then have other pieces
 * now: none of these is moved. */
static int hca_batch_flush(struct hca_batch *batch)
{
    int ret = 0;

    if (!hca_walk_is_valid(&batch->dst.walk) ||
        !hca_walk_is_valid(&batch->src.walk)) {
        return -EFAULT;
    }
    if (batch->num_near > 0) {
        ret = hca_batch_move_near(batch);
    } else if (batch->nlocal > 0) {
        ret = hca_batch_move_far(batch);
    }
    batch->num_near = 0;
    batch->nlocal   = 0;
    batch->nremote  = 0;
    batch->total    = 0;
    return ret;
}

static void hca_batch_append(struct iovec *iov, unsigned *count, void *base,
                             size_t length)
{
    struct iovec *last = iov + *count - 1;

    if ((*count > 0) && ((char *)last->iov_base + last->iov_len == base)) {
        last->iov_len += length;
    } else {
        iov[(*count)++] = (struct iovec){base, length};
    }
}

/* Bytes to read in front of the next remote piece: 0 if none. */
static size_t hca_batch_gap(const struct hca_batch *batch, const char *base)
{
    const struct iovec *last = batch->remote + batch->nremote - 1;
    size_t gap;

    if (batch->writes || (batch->nremote == 0)) {
        return 0;
    }
    gap = base - ((char *)last->iov_base + last->iov_len); /* or very large */
    return (gap <= HCA_BATCH_GAP) ? gap : 0;
}

/* The batch is full, too, when the buffer is, which is used for many pieces
 * only. */
static bool hca_batch_is_full(const struct hca_batch *batch, size_t length)
{
    return (batch->nlocal + 2 > HCA_BATCH_MAX) ||
           (batch->nremote == HCA_BATCH_MAX) ||
           ((batch->nlocal > HCA_BATCH_FEW) &&
            (batch->total + length > HCA_BATCH_BUFFER));
}

static int hca_batch_add(struct hca_batch *batch, void *local, void *remote,
                         size_t length)
{
    size_t gap = hca_batch_gap(batch, remote);

    if (hca_batch_is_full(batch, gap + length)) {
        int ret = hca_batch_flush(batch);

        if (ret != 0) {
            return ret;
        }
        gap = 0;
    }
    if (gap > 0) {
        batch->local[batch->nlocal++] = (struct iovec){batch->gap, gap};
    }
    hca_batch_append(batch->local, &batch->nlocal, local, length);
    hca_batch_append(batch->remote, &batch->nremote, (char *)remote - gap,
                     gap + length);
    batch->total += gap + length;
    return 0;
}

/* --- rows ----------------------------------------------------------------- */

static bool hca_batch_at_is_row(const struct hca_batch_at *at, size_t length)
{
    return (at->rows > 0) && (at->piece.iov_len == length) &&
           (at->row.iov_len == length);
}

/* Counts pieces of @length bytes that come next, also as parts of one piece. */
static size_t hca_batch_at_count(const struct hca_batch_at *at, size_t length,
                                 size_t *stride)
{
    if (hca_batch_at_is_row(at, length)) {
        *stride = at->stride;
        return (size_t)at->rows + 1;
    }
    *stride = length;
    return at->piece.iov_len / length;
}

static void hca_batch_at_pass(struct hca_batch_at *at, size_t length,
                              size_t count)
{
    if (!hca_batch_at_is_row(at, length)) {
        hca_batch_at_advance(at, length * count);
        return;
    }
    if (count > 1) {
        hca_batch_at_row(at, count - 1);
    }
    at->piece.iov_len = 0;
}

/* Finds the rows that both begin with: one at least. */
static void hca_batch_rows_find(const struct hca_batch_at *dst,
                                const struct hca_batch_at *src,
                                struct hca_trap_rows *rows)
{
    size_t count;

    rows->to          = dst->piece.iov_base;
    rows->from        = src->piece.iov_base;
    rows->length      = hca_batch_at_common(dst, src);
    rows->count       = 1;
    rows->to_stride   = 0;
    rows->from_stride = 0;
    if ((dst->rows > 0) || (src->rows > 0)) {
        rows->count = hca_batch_at_count(dst, rows->length, &rows->to_stride);
        count       = hca_batch_at_count(src, rows->length, &rows->from_stride);
        rows->count = (rows->count < count) ? rows->count : count;
    }
    if (src->is_null) {
        rows->from        = hca_batch_zeros;
        rows->from_stride = 0;
    }
}

/* Copies rows through the buffer, in which they fit together with the gaps
 * between a peer's pieces: these are read as one, but written as one only
 * without gaps. */
static int hca_batch_rows_buffered(const struct hca_batch *batch,
                                   struct hca_trap_rows *rows)
{
    size_t far         = batch->writes ? rows->to_stride : rows->from_stride;
    struct iovec near  = {hca_batch_buffer,
                          (rows->count - 1) * far + rows->length};
    struct iovec peers = {batch->writes ? rows->to : (char *)rows->from,
                          near.iov_len};
    int ret;

    if (batch->writes) {
        rows->to = hca_batch_buffer;
        ret      = hca_trap_guard_rows(rows);
        return (ret == 0) ? hca_mem_write(batch->owner, &near, 1, &peers, 1) :
                            ret;
    }
    rows->from = hca_batch_buffer;
    ret        = hca_mem_read(batch->owner, &near, 1, &peers, 1);
    return (ret == 0) ? hca_trap_guard_rows(rows) : ret;
}

/* Returns how many of these rows to copy at once: 0 if collecting is faster. */
static size_t hca_batch_rows_most(const struct hca_batch *batch,
                                  const struct hca_trap_rows *rows,
                                  size_t count)
{
    size_t far = batch->writes ? rows->to_stride : rows->from_stride;
    size_t max;

    if ((count < HCA_BATCH_MANY) || (rows->length > HCA_BATCH_SHORT) ||
        (far - rows->length > (batch->writes ? 0 : HCA_BATCH_GAP))) {
        return 0;
    }
    max = HCA_BATCH_BUFFER / far;
    max = (count < max) ? count : max;
    return (max < HCA_BATCH_MANY) ? 0 : max;
}

/* --- the copy ------------------------------------------------------------- */

/* Adds rows if loads and stores reach both sides. @return 0, an error, or
 * -EAGAIN if not. */
static int hca_batch_add_near(struct hca_batch *batch,
                              const struct hca_trap_rows *rows)
{
    struct hca_trap_rows near = *rows;
    size_t more               = rows->count - 1;
    int ret;

    near.to   = hca_mem_near(batch->dst.sgl->owner, rows->to,
                             more * rows->to_stride + rows->length, true);
    near.from = batch->src.is_null ?
                    rows->from :
                    hca_mem_near(batch->src.sgl->owner, (char *)rows->from,
                                 more * rows->from_stride + rows->length,
                                 false);
    if ((near.to == NULL) || (near.from == NULL)) {
        return -EAGAIN;
    }
    if ((batch->nlocal > 0) || (batch->num_near == HCA_BATCH_NEAR) ||
        (batch->total >= HCA_BATCH_BUFFER)) {
        ret = hca_batch_flush(batch);
        if (ret != 0) {
            return ret;
        }
    }
    batch->near[batch->num_near++] = near;
    batch->total += rows->count * rows->length;
    return 0;
}

/* Adds the first of the rows, or copies some of them through the buffer.
 * Collected pieces go first, as writes must be in order.
 * @param rows  the number passed is stored in it */
static int hca_batch_add_far(struct hca_batch *batch,
                             struct hca_trap_rows *rows)
{
    size_t count = rows->count;
    int ret;

    rows->count = 1;
    count       = hca_batch_rows_most(batch, rows, count);
    if ((count > 0) && hca_batch_buffer_get()) {
        rows->count = count;
        ret         = hca_batch_flush(batch);
        ret         = (ret == 0) ? hca_batch_rows_buffered(batch, rows) : ret;
        hca_batch_buffer_put();
        return ret;
    }
    return batch->writes ?
               hca_batch_add(batch, (char *)rows->from, rows->to,
                             rows->length) :
               hca_batch_add(batch, rows->to, (char *)rows->from, rows->length);
}

/* Moves both on by pieces of one length. */
static int hca_batch_step(struct hca_batch *batch)
{
    struct hca_trap_rows rows;
    int ret = 0;

    hca_batch_rows_find(&batch->dst, &batch->src, &rows);
    if (!batch->dst.is_null) {
        ret = hca_batch_add_near(batch, &rows);
        if (ret == -EAGAIN) {
            ret = hca_batch_add_far(batch, &rows);
        }
    }
    hca_batch_at_pass(&batch->dst, rows.length, rows.count);
    hca_batch_at_pass(&batch->src, rows.length, rows.count);
    return ret;
}

static int hca_batch_copy(const struct hca_sgl *dst, const struct hca_sgl *src)
{
    struct hca_batch batch;
    int ret;

    batch.writes   = (src->owner.proc == hca_self);
    batch.owner    = batch.writes ? dst->owner : src->owner;
    batch.num_near = 0;
    batch.nlocal   = 0;
    batch.nremote  = 0;
    batch.total    = 0;
    hca_batch_at_init(&batch.dst, dst);
    hca_batch_at_init(&batch.src, src);
    for (;;) {
        ret = hca_batch_at_piece(&batch.dst);
        if (ret == 0) {
            ret = hca_batch_at_piece(&batch.src);
        }
        if (ret != 0) {
            return ret;
        }
        if ((batch.dst.piece.iov_len == 0) || (batch.src.piece.iov_len == 0)) {
            return hca_batch_flush(&batch);
        }
        ret = hca_batch_step(&batch);
        if (ret != 0) {
            return ret;
        }
    }
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
