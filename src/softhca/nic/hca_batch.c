/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Pieces of two lists, side by side, are collected and copied together. The
 * kernel takes a remote piece for about as long as it copies 4 KiB (it looks
 * for its pages anew: mm/process_vm_access.c, process_vm_rw_single_vec()), and
 * a local one for a tenth of that. So neighbours are joined, and what is read
 * of a peer is read with the small gaps between its pieces.
 */
#define _GNU_SOURCE
#include "hca_batch.h"
#include "hca_walk.h"

#include <errno.h>

/* Pieces of a side; they lie on the stack of whoever rings a doorbell. */
#define HCA_BATCH_MAX 256u

/* Bytes between two pieces of a peer that are read and dropped. As it is less
 * than a page, only pages are touched that a piece lies in. */
#define HCA_BATCH_GAP 2048u

/* A position in a list. */
struct hca_batch_at {
    const struct hca_sgl *sgl;
    unsigned              next; /* entry */
    struct hca_walk       walk; /* of the one before it, if that is a layout */
    struct iovec          piece; /* what is left of it */
    bool                  is_null;
};

struct hca_batch {
    struct hca_owner owner; /* of the remote pieces; maybe this process */
    bool             writes;
    bool             joins; /* gaps may be read */
    unsigned         nlocal, nremote;
    struct iovec     local[HCA_BATCH_MAX], remote[HCA_BATCH_MAX];
    char             gap[HCA_BATCH_GAP];
};

static const char hca_batch_zeros[4096];

/* --- where a list is ------------------------------------------------------ */

static void hca_batch_at_init(struct hca_batch_at *at,
                              const struct hca_sgl *sgl)
{
    at->sgl           = sgl;
    at->next          = 0;
    at->walk.depth    = 0;
    at->piece.iov_len = 0;
    at->is_null       = false;
}

static void hca_batch_enter(struct hca_batch_at *at)
{
    const struct hca_sgl *sgl  = at->sgl;
    const struct iovec *iov    = &sgl->iov[at->next];
    const struct hca_mkey *via = sgl->has_via ? sgl->via[at->next] : NULL;
    struct hca_key_use use;

    at->next++;
    if ((via == NULL) || (via->type != HCA_MKEY_INDIRECT)) {
        at->piece   = *iov;
        at->is_null = (via != NULL);
        return;
    }
    use        = sgl->use;
    use.addr   = (uintptr_t)iov->iov_base;
    use.length = iov->iov_len;
    hca_walk_begin(&at->walk, via, &use);
}

/* Sees to it that there is a piece, unless the list has ended.
 * @return -EFAULT if what was checked before is there no more. */
static int hca_batch_at_piece(struct hca_batch_at *at)
{
    const struct hca_mkey *key = NULL;

    while (at->piece.iov_len == 0) {
        if (at->walk.depth > 0) {
            if (hca_walk_next(&at->walk, &at->piece, &key) != HCA_KEY_OK) {
                return -EFAULT;
            }
            at->is_null = (key != NULL) && (key->type == HCA_MKEY_NULL);
        } else if (at->next < at->sgl->count) {
            hca_batch_enter(at);
        } else {
            break;
        }
    }
    return 0;
}

static void hca_batch_at_advance(struct hca_batch_at *at, size_t length)
{
    at->piece.iov_base = (char*)at->piece.iov_base + length;
    at->piece.iov_len -= length;
}

/* --- what is collected ---------------------------------------------------- */

static int hca_batch_flush(struct hca_batch *batch)
{
    unsigned nlocal = batch->nlocal, nremote = batch->nremote;

    batch->nlocal  = 0;
    batch->nremote = 0;
    return batch->writes ?
           hca_mem_write(batch->owner, batch->local, nlocal, batch->remote,
                         nremote) :
           hca_mem_read(batch->owner, batch->local, nlocal, batch->remote,
                        nremote);
}

static void hca_batch_append(struct iovec *iov, unsigned *count, void *base,
                             size_t length)
{
    struct iovec *last = iov + *count - 1;

    if ((*count > 0) && ((char*)last->iov_base + last->iov_len == base)) {
        last->iov_len += length;
    } else {
        iov[(*count)++] = (struct iovec){base, length};
    }
}

/* Reads the bytes in front of the next remote piece, if they are few. */
static void hca_batch_join(struct hca_batch *batch, char *base)
{
    struct iovec *last = batch->remote + batch->nremote - 1;
    size_t gap;

    if (!batch->joins || (batch->nremote == 0)) {
        return;
    }
    gap = base - ((char*)last->iov_base + last->iov_len); /* or very large */
    if ((gap > 0) && (gap <= HCA_BATCH_GAP)) {
        batch->local[batch->nlocal++] = (struct iovec){batch->gap, gap};
        last->iov_len                += gap;
    }
}

static int hca_batch_add(struct hca_batch *batch, void *local, void *remote,
                         size_t length)
{
    if ((batch->nlocal + 2 > HCA_BATCH_MAX) ||
        (batch->nremote == HCA_BATCH_MAX)) {
        int ret = hca_batch_flush(batch);

        if (ret != 0) {
            return ret;
        }
    }
    hca_batch_join(batch, remote);
    hca_batch_append(batch->local, &batch->nlocal, local, length);
    hca_batch_append(batch->remote, &batch->nremote, remote, length);
    return 0;
}

static int hca_batch_zero(struct hca_owner owner, void *base, size_t length)
{
    struct iovec from = {(void*)hca_batch_zeros, length}, to = {base, length};

    return hca_mem_write(owner, &from, 1, &to, 1);
}

/* --- the copy ------------------------------------------------------------- */

/* Moves both on by what is in one piece of each. */
static int hca_batch_step(struct hca_batch *batch, struct hca_batch_at *dst,
                          struct hca_batch_at *src)
{
    void *to = dst->piece.iov_base, *from = src->piece.iov_base;
    size_t n = dst->piece.iov_len;

    n = (n < src->piece.iov_len) ? n : src->piece.iov_len;
    if (src->is_null && !dst->is_null) {
        n = (n < sizeof(hca_batch_zeros)) ? n : sizeof(hca_batch_zeros);
    }
    hca_batch_at_advance(dst, n);
    hca_batch_at_advance(src, n);
    if (dst->is_null) {
        return 0;
    }
    if (src->is_null) {
        return hca_batch_zero(dst->sgl->owner, to, n);
    }
    return batch->writes ? hca_batch_add(batch, from, to, n) :
                           hca_batch_add(batch, to, from, n);
}

int hca_batch_copy(const struct hca_sgl *dst, const struct hca_sgl *src)
{
    struct hca_batch_at to, from;
    struct hca_batch batch;
    int ret;

    batch.writes  = (src->owner.proc == hca_self);
    batch.owner   = batch.writes ? dst->owner : src->owner;
    batch.joins   = !batch.writes;
    batch.nlocal  = 0;
    batch.nremote = 0;
    hca_batch_at_init(&to, dst);
    hca_batch_at_init(&from, src);
    for (;;) {
        ret = hca_batch_at_piece(&to);
        if (ret == 0) {
            ret = hca_batch_at_piece(&from);
        }
        if (ret != 0) {
            return ret;
        }
        if ((to.piece.iov_len == 0) || (from.piece.iov_len == 0)) {
            return hca_batch_flush(&batch);
        }
        ret = hca_batch_step(&batch, &to, &from);
        if (ret != 0) {
            return ret;
        }
    }
}
