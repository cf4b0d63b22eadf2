/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/* Moves to and from memory that only system calls reach: see hca_far.h */
#define _GNU_SOURCE
#include "hca_far.h"

#include <errno.h>

/* More local pieces than FEW, of SHORT bytes or less on average, are copied
 * through the buffer. */
#define HCA_FAR_FEW   8u
#define HCA_FAR_SHORT 1024u

/* Least number of rows that are moved by one call. */
#define HCA_FAR_MANY 16u

/* The buffer, for one thread at a time. Other threads, and a signal handler
 * that interrupts its use, move pieces without it. */
#define HCA_FAR_BUFFER 65536u
static char hca_far_buffer[HCA_FAR_BUFFER];
static atomic_flag hca_far_buffer_used = ATOMIC_FLAG_INIT;

static bool hca_far_buffer_get(void)
{
    return !atomic_flag_test_and_set_explicit(&hca_far_buffer_used,
                                              memory_order_acquire);
}

static void hca_far_buffer_put(void)
{
    atomic_flag_clear_explicit(&hca_far_buffer_used, memory_order_release);
}

void hca_far_init(struct hca_far *far, struct hca_owner owner, bool writes)
{
    far->owner   = owner;
    far->writes  = writes;
    far->nlocal  = 0;
    far->nremote = 0;
    far->total   = 0;
}

/* --- pieces --------------------------------------------------------------- */

static void hca_far_append(struct iovec *iov, unsigned *count, void *base,
                           size_t length)
{
    struct iovec *last = iov + *count - 1;

    if ((*count > 0) && ((char *)last->iov_base + last->iov_len == base)) {
        last->iov_len += length;
    } else {
        iov[(*count)++] = (struct iovec){base, length};
    }
}

/* Returns the bytes of the gap in front of the next remote piece, to be read
 * with it; 0 if there is no gap, or a long one. */
static size_t hca_far_gap(const struct hca_far *far, const char *base)
{
    const struct iovec *last = far->remote + far->nremote - 1;
    size_t gap;

    if (far->writes || (far->nremote == 0)) {
        return 0;
    }
    /* very large if @base is in front of that piece */
    gap = base - ((char *)last->iov_base + last->iov_len);
    return (gap <= HCA_FAR_GAP) ? gap : 0;
}

bool hca_far_is_full(const struct hca_far *far, const void *remote,
                     size_t length)
{
    return (far->nlocal + 2 > HCA_FAR_MAX) || (far->nremote == HCA_FAR_MAX) ||
           ((far->nlocal > HCA_FAR_FEW) &&
            (far->total + hca_far_gap(far, remote) + length > HCA_FAR_BUFFER));
}

void hca_far_add(struct hca_far *far, void *local, void *remote, size_t length)
{
    size_t gap = hca_far_gap(far, remote);

    if (gap > 0) {
        far->local[far->nlocal++] = (struct iovec){far->gap, gap};
    }
    hca_far_append(far->local, &far->nlocal, local, length);
    hca_far_append(far->remote, &far->nremote, (char *)remote - gap,
                   gap + length);
    far->total += gap + length;
}

static int hca_far_transfer(const struct hca_far *far,
                            const struct iovec *local, unsigned nlocal)
{
    return far->writes ? hca_mem_write(far->owner, local, nlocal, far->remote,
                                       far->nremote) :
                         hca_mem_read(far->owner, local, nlocal, far->remote,
                                      far->nremote);
}

static int hca_far_move_buffered(const struct hca_far *far)
{
    const struct iovec buffer   = {hca_far_buffer, far->total};
    const struct hca_owner self = hca_owner(hca_self);
    int ret;

    if (far->writes) {
        ret = hca_mem_read(self, &buffer, 1, far->local, far->nlocal);
        return (ret == 0) ? hca_far_transfer(far, &buffer, 1) : ret;
    }
    ret = hca_far_transfer(far, &buffer, 1);
    return (ret == 0) ?
               hca_mem_write(self, &buffer, 1, far->local, far->nlocal) :
               ret;
}

static bool hca_far_is_small(const struct hca_far *far)
{
    return (far->nlocal > HCA_FAR_FEW) && (far->total <= HCA_FAR_BUFFER) &&
           (far->total / far->nlocal <= HCA_FAR_SHORT);
}

int hca_far_move(struct hca_far *far)
{
    int ret;

    if (hca_far_is_small(far) && hca_far_buffer_get()) {
        ret = hca_far_move_buffered(far);
        hca_far_buffer_put();
    } else {
        ret = hca_far_transfer(far, far->local, far->nlocal);
    }
    hca_far_init(far, far->owner, far->writes);
    return ret;
}

/* --- rows ----------------------------------------------------------------- */

size_t hca_far_count_rows(const struct hca_far *far,
                          const struct hca_trap_rows *rows)
{
    size_t stride = far->writes ? rows->to_stride : rows->from_stride;
    size_t max;

    if ((rows->count < HCA_FAR_MANY) || (rows->length > HCA_FAR_SHORT) ||
        (stride - rows->length > (far->writes ? 0 : HCA_FAR_GAP))) {
        return 0;
    }
    max = HCA_FAR_BUFFER / stride;
    max = (rows->count < max) ? rows->count : max;
    return (max < HCA_FAR_MANY) ? 0 : max;
}

/* Copies rows through the buffer: they are one piece at the peer, with gaps if
 * they are read. hca_far_count_rows() has made sure that they fit. */
static int hca_far_move_rows_buffered(const struct hca_far *far,
                                      struct hca_trap_rows *rows)
{
    size_t stride       = far->writes ? rows->to_stride : rows->from_stride;
    struct iovec local  = {hca_far_buffer,
                           (rows->count - 1) * stride + rows->length};
    struct iovec remote = {far->writes ? rows->to : (char *)rows->from,
                           local.iov_len};
    int ret;

    if (far->writes) {
        rows->to = hca_far_buffer;
        ret      = hca_trap_guard_rows(rows);
        return (ret == 0) ? hca_mem_write(far->owner, &local, 1, &remote, 1) :
                            ret;
    }
    rows->from = hca_far_buffer;
    ret        = hca_mem_read(far->owner, &local, 1, &remote, 1);
    return (ret == 0) ? hca_trap_guard_rows(rows) : ret;
}

int hca_far_move_rows(const struct hca_far *far, struct hca_trap_rows rows)
{
    int ret;

    if (!hca_far_buffer_get()) {
        return -EAGAIN;
    }
    ret = hca_far_move_rows_buffered(far, &rows);
    hca_far_buffer_put();
    return ret;
}
