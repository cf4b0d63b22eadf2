/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Lists of pieces: what keys lead to, and the copy from list to list.
 */
#define _GNU_SOURCE
#include "hca_sgl.h"
#include "hca_mkey.h"

#include <string.h>

/* The list lets go of the key, or this does at once, if it is full. */
static bool hca_sgl_hold(struct hca_sgl *sgl, struct hca_mkey *mkey)
{
    if (sgl->num_held == HCA_SGL_MAX) {
        hca_mkey_release(mkey);
        return false;
    }
    sgl->held[sgl->num_held++] = mkey;
    return true;
}

static enum hca_key_fault hca_sgl_add_range(struct hca_sgl *sgl,
                                            const struct hca_mkey *mkey,
                                            const struct hca_key_use *use)
{
    uint64_t va = mkey->va + (use->addr - mkey->iova);

    if (mkey->type == HCA_MKEY_NULL) {
        va            = 0;
        sgl->has_null = true;
    }
    return hca_sgl_add(sgl, (void*)va, use->length) ? HCA_KEY_OK :
                                                      HCA_KEY_PIECES;
}

/* A window grants what its region has: the region's key is looked up anew at
 * each use, as it may be gone. */
static enum hca_key_fault hca_sgl_add_window(struct hca_sgl *sgl,
                                             const struct hca_mkey *window,
                                             const struct hca_key_use *use)
{
    struct hca_mkey *mkey  = hca_mkey_hold(window->base_key);
    struct hca_key_use base = *use;
    enum hca_key_fault fault;

    if ((mkey == NULL) || (mkey->type != HCA_MKEY_MR)) {
        fault = HCA_KEY_FREE;
        goto err_release;
    }
    base.addr   = window->base_addr + (use->addr - window->iova);
    base.access = (use->access & ~(IBV_ACCESS_REMOTE_READ)) ?
                  IBV_ACCESS_LOCAL_WRITE : 0;
    fault       = hca_mkey_check(mkey, &base);
    if (fault != HCA_KEY_OK) {
        goto err_release;
    }
    return hca_sgl_hold(sgl, mkey) ? hca_sgl_add_range(sgl, mkey, &base) :
                                     HCA_KEY_PIECES;

err_release:
    if (mkey != NULL) {
        hca_mkey_release(mkey);
    }
    return fault;
}

static enum hca_key_fault hca_sgl_add_level(struct hca_sgl *sgl,
                                            const struct hca_key_use *use,
                                            unsigned depth);

/* The part of a use that lies in entry `index`, which begins at byte `start`
 * of the key: as a use of the entry's own key, of which the owner's rights
 * count, as for windows. */
static struct hca_key_use hca_klm_part(const struct hca_mkey *mkey,
                                       const struct hca_key_use *use,
                                       uint64_t index, uint64_t start)
{
    const struct hca_klm *klm = (struct hca_klm*)hca_ptr(mkey->klms) + index;
    uint64_t size = (mkey->klm_shift != 0) ? 1ull << mkey->klm_shift :
                                             klm->length;
    uint64_t from = use->addr - mkey->iova, to = from + use->length;
    struct hca_key_use part = *use;

    from        = (from > start) ? from - start : 0;
    to          = (to - start < size) ? to - start : size;
    part.key    = klm->key;
    part.addr   = klm->addr + from;
    part.length = (to > from) ? to - from : 0;
    part.access = (use->access & ~IBV_ACCESS_REMOTE_READ) ?
                  IBV_ACCESS_LOCAL_WRITE : 0;
    return part;
}

/* Entries lie one behind the other in the space of the key, which begins with
 * the first of them at mkey->iova. */
static enum hca_key_fault hca_sgl_add_klms(struct hca_sgl *sgl,
                                           const struct hca_mkey *mkey,
                                           const struct hca_key_use *use,
                                           unsigned depth)
{
    const struct hca_klm *klms = hca_ptr(mkey->klms);
    uint64_t from = use->addr - mkey->iova, left = use->length, start = 0;
    uint64_t i    = 0;

    if (mkey->klm_shift != 0) {
        i     = from >> mkey->klm_shift;
        start = i << mkey->klm_shift;
    } else {
        while ((i < mkey->num_klms) && (from >= start + klms[i].length)) {
            start += klms[i++].length;
        }
    }
    for (; (i < mkey->num_klms) && (left > 0); i++) {
        struct hca_key_use part = hca_klm_part(mkey, use, i, start);
        enum hca_key_fault fault;

        if (part.length > 0) {
            fault = hca_sgl_add_level(sgl, &part, depth + 1);
            if (fault != HCA_KEY_OK) {
                return fault;
            }
        }
        left  -= part.length;
        start += (mkey->klm_shift != 0) ? 1ull << mkey->klm_shift :
                                          klms[i].length;
    }
    return (left == 0) ? HCA_KEY_OK : HCA_KEY_BOUNDS;
}

/* A key that is held from here on until the message is done with. */
static enum hca_key_fault hca_sgl_add_held(struct hca_sgl *sgl,
                                           struct hca_mkey *mkey,
                                           const struct hca_key_use *use,
                                           unsigned depth)
{
    if ((mkey->type == HCA_MKEY_INDIRECT) && (depth == HCA_MKEY_DEPTH)) {
        hca_mkey_release(mkey);
        return HCA_KEY_PIECES;
    }
    if (!hca_sgl_hold(sgl, mkey)) {
        return HCA_KEY_PIECES;
    }
    return (mkey->type == HCA_MKEY_INDIRECT) ?
           hca_sgl_add_klms(sgl, mkey, use, depth) :
           hca_sgl_add_range(sgl, mkey, use);
}

static enum hca_key_fault hca_sgl_add_level(struct hca_sgl *sgl,
                                            const struct hca_key_use *use,
                                            unsigned depth)
{
    struct hca_mkey *mkey = hca_mkey_hold(use->key);
    enum hca_key_fault fault;

    if (mkey == NULL) {
        return HCA_KEY_UNKNOWN;
    }
    fault = (mkey->obj.proc == sgl->owner.proc) ? hca_mkey_check(mkey, use) :
                                            HCA_KEY_UNKNOWN;
    if ((fault == HCA_KEY_OK) && (mkey->type == HCA_MKEY_MW)) {
        fault = hca_sgl_add_window(sgl, mkey, use);
        hca_mkey_release(mkey);
        return fault;
    }
    if (fault != HCA_KEY_OK) {
        hca_mkey_release(mkey);
        return fault;
    }
    return hca_sgl_add_held(sgl, mkey, use, depth);
}

enum hca_key_fault hca_sgl_add_key(struct hca_sgl *sgl,
                                   const struct hca_key_use *use)
{
    return hca_sgl_add_level(sgl, use, 0);
}

void hca_sgl_put(struct hca_sgl *sgl)
{
    while (sgl->num_held > 0) {
        hca_mkey_release(sgl->held[--sgl->num_held]);
    }
}

void hca_sgl_skip(struct hca_sgl *sgl, size_t length)
{
    unsigned i = 0;

    while ((i < sgl->count) && (length >= sgl->iov[i].iov_len)) {
        length      -= sgl->iov[i].iov_len;
        sgl->length -= sgl->iov[i++].iov_len;
    }
    sgl->count -= i;
    memmove(sgl->iov, sgl->iov + i, sgl->count * sizeof(sgl->iov[0]));
    if (length > 0) {
        if (sgl->iov[0].iov_base != NULL) {
            sgl->iov[0].iov_base = (char*)sgl->iov[0].iov_base + length;
        }
        sgl->iov[0].iov_len -= length;
        sgl->length         -= length;
    }
}

void hca_sgl_part(struct hca_sgl *dst, const struct hca_sgl *src,
                  size_t offset, size_t length)
{
    hca_sgl_init(dst, src->owner);
    dst->has_null = src->has_null;
    for (unsigned i = 0; (length > 0) && (i < src->count); i++) {
        const struct iovec *iov = &src->iov[i];
        size_t n;

        if (offset >= iov->iov_len) {
            offset -= iov->iov_len;
            continue;
        }
        n = iov->iov_len - offset;
        n = (n < length) ? n : length;
        hca_sgl_add(dst, (iov->iov_base == NULL) ? NULL :
                         (char*)iov->iov_base + offset, n);
        length -= n;
        offset  = 0;
    }
}

/* One stretch of a copy in which neither side changes its piece. */
static int hca_sgl_copy_piece(struct hca_owner to_whom, struct iovec *dst,
                              struct hca_owner of_whom, struct iovec *src)
{
    static const char zeros[4096];
    int ret;

    if (dst->iov_base == NULL) {
        return 0;
    }
    if (src->iov_base != NULL) {
        return (of_whom.proc == hca_self) ?
               hca_mem_write(to_whom, src, 1, dst, 1) :
               hca_mem_read(of_whom, dst, 1, src, 1);
    }
    for (size_t done = 0; done < dst->iov_len;) {
        size_t n = dst->iov_len - done;
        struct iovec from, to;

        n    = (n < sizeof(zeros)) ? n : sizeof(zeros);
        from = (struct iovec){(void*)zeros, n};
        to   = (struct iovec){(char*)dst->iov_base + done, n};
        ret  = hca_mem_write(to_whom, &from, 1, &to, 1);
        if (ret != 0) {
            return ret;
        }
        done += n;
    }
    return 0;
}

static struct iovec hca_iov_part(const struct iovec *iov, size_t offset,
                                 size_t length)
{
    return (struct iovec){
        (iov->iov_base == NULL) ? NULL : (char*)iov->iov_base + offset, length};
}

/* Piece by piece, as some of them are null. */
static int hca_sgl_copy_null(const struct hca_sgl *dst,
                             const struct hca_sgl *src)
{
    size_t dst_off = 0, src_off = 0;
    unsigned d = 0, s = 0;

    while ((d < dst->count) && (s < src->count)) {
        size_t dst_left = dst->iov[d].iov_len - dst_off;
        size_t src_left = src->iov[s].iov_len - src_off;
        size_t n        = (dst_left < src_left) ? dst_left : src_left;
        struct iovec to   = hca_iov_part(&dst->iov[d], dst_off, n);
        struct iovec from = hca_iov_part(&src->iov[s], src_off, n);
        int ret = hca_sgl_copy_piece(dst->owner, &to, src->owner, &from);

        if (ret != 0) {
            return ret;
        }
        dst_off = (n == dst_left) ? (d++, 0) : dst_off + n;
        src_off = (n == src_left) ? (s++, 0) : src_off + n;
    }
    return 0;
}

int hca_sgl_copy(const struct hca_sgl *dst, const struct hca_sgl *src)
{
    if (__builtin_expect(dst->has_null || src->has_null, 0)) {
        return hca_sgl_copy_null(dst, src);
    }
    return (src->owner.proc == hca_self) ?
           hca_mem_write(dst->owner, src->iov, src->count, dst->iov,
                         dst->count) :
           hca_mem_read(src->owner, dst->iov, dst->count, src->iov,
                        src->count);
}
