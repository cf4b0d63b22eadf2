/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Lists of pieces, and the translation of mkeys into them: see hca_sgl.h.
 */
#define _GNU_SOURCE
#include "hca_sgl.h"
#include "hca_walk.h"

#include <string.h>

/* Gives each entry a `via` from now on. */
static void hca_sgl_set_via(struct hca_sgl *sgl, const struct hca_key_use *use)
{
    if (!sgl->has_via) {
        memset(sgl->via, 0, sizeof(sgl->via));
        sgl->has_via = true;
        sgl->use     = *use;
    }
}

static enum hca_key_fault hca_sgl_add_via(struct hca_sgl *sgl,
                                          const struct hca_key_use *use,
                                          const struct hca_mkey *mkey)
{
    hca_sgl_set_via(sgl, use);
    if (!hca_sgl_add(sgl, (void *)use->addr, use->length)) {
        return HCA_KEY_PIECES;
    }
    sgl->via[sgl->count - 1] = mkey;
    return HCA_KEY_OK;
}

/* Appends a use of a region. */
static inline enum hca_key_fault
hca_sgl_add_pinned(struct hca_sgl *sgl, const struct hca_mkey *mkey,
                   const struct hca_key_use *use)
{
    uint64_t va = mkey->va + (use->addr - mkey->iova);

    return hca_sgl_add(sgl, (void *)va, use->length) ? HCA_KEY_OK :
                                                       HCA_KEY_PIECES;
}

/* Appends a use of a region whose pages may be missing. */
static enum hca_key_fault hca_sgl_add_range(struct hca_sgl *sgl,
                                            const struct hca_mkey *mkey,
                                            const struct hca_key_use *use)
{
    enum hca_key_fault fault = hca_sgl_add_pinned(sgl, mkey, use);

    if ((fault != HCA_KEY_OK) || !(mkey->access & IBV_ACCESS_ON_DEMAND)) {
        return fault;
    }
    if (!sgl->on_demand) {
        memset(sgl->demand, 0, sizeof(sgl->demand));
        sgl->on_demand = true;
    }
    sgl->demand[sgl->count - 1] = mkey;
    return HCA_KEY_OK;
}

/* Appends the part of a window's region. The region's mkey is looked up at each
 * use, as it may be gone; it needs local rights only. A window that is bound
 * again meanwhile gives no access: it is checked once more, as its fields may
 * have been of two bindings before. */
static enum hca_key_fault hca_sgl_add_window(struct hca_sgl *sgl,
                                             const struct hca_mkey *window,
                                             const struct hca_key_use *use)
{
    uint32_t change          = hca_mkey_change(window);
    enum hca_key_fault fault = hca_mkey_check(window, use);
    struct hca_key_use base  = *use;
    const struct hca_mkey *mkey;

    if (fault != HCA_KEY_OK) {
        return fault;
    }
    mkey = hca_mkey_find(window->base_key, sgl->owner.proc);
    if ((mkey == NULL) || (mkey->type != HCA_MKEY_MR)) {
        return HCA_KEY_FREE;
    }
    base.addr   = window->base_addr + (use->addr - window->iova);
    base.access = (use->access & ~(IBV_ACCESS_REMOTE_READ)) ?
                      IBV_ACCESS_LOCAL_WRITE :
                      0;
    if ((window->variant != (use->key & 0xff)) ||
        !hca_mkey_is_same(window, change)) {
        return HCA_KEY_FREE;
    }
    fault = hca_mkey_check(mkey, &base);
    return (fault == HCA_KEY_OK) ? hca_sgl_add_range(sgl, mkey, &base) : fault;
}

/* Removes the entries from @count on. */
static void hca_sgl_cut(struct hca_sgl *sgl, unsigned count)
{
    while (sgl->count > count) {
        sgl->length -= sgl->iov[--sgl->count].iov_len;
        if (sgl->has_via) {
            sgl->via[sgl->count] = NULL;
        }
    }
}

/* Checks and appends the pieces of an indirect mkey. Atomics cannot use rows
 * (HCA_KEY_ACCESS).
 * @return HCA_KEY_PIECES if there are more than a few, or seem to be. */
static enum hca_key_fault hca_sgl_add_few(struct hca_sgl *sgl,
                                          const struct hca_mkey *mkey,
                                          const struct hca_key_use *use)
{
    const unsigned few = (use->length < HCA_SGL_FEW * 1024u) ?
                             HCA_SGL_FEW_SHORT :
                             HCA_SGL_FEW;
    enum hca_key_fault fault;
    struct hca_key_use null = *use;
    struct hca_walk walk;

    fault = hca_walk_begin(&walk, mkey, use);
    if (!(use->access & IBV_ACCESS_REMOTE_ATOMIC) &&
        hca_layout_is_long(&walk.levels[0].layout, use->length, few)) {
        return HCA_KEY_PIECES;
    }
    for (;;) {
        if (fault == HCA_KEY_OK) {
            fault = hca_walk_next(&walk);
        }
        if ((fault != HCA_KEY_OK) || (walk.part.length == 0)) {
            return fault;
        }
        if ((use->access & IBV_ACCESS_REMOTE_ATOMIC) &&
            hca_walk_has_rows(&walk)) {
            return HCA_KEY_ACCESS;
        }
        if (sgl->count >= few) {
            return HCA_KEY_PIECES;
        }
        null.length = walk.part.length;
        if (walk.seen.mkey->type == HCA_MKEY_NULL) {
            hca_sgl_add_via(sgl, &null, walk.seen.mkey);
        } else {
            hca_sgl_add(sgl, hca_walk_base(&walk), walk.part.length);
        }
    }
}

/* Appends the pieces of an indirect mkey or, if they are many, one entry. */
static enum hca_key_fault hca_sgl_add_layout(struct hca_sgl *sgl,
                                             const struct hca_mkey *mkey,
                                             const struct hca_key_use *use)
{
    unsigned count = sgl->count;
    enum hca_key_fault fault;

    fault = hca_sgl_add_few(sgl, mkey, use);
    if (fault != HCA_KEY_PIECES) {
        return fault;
    }
    hca_sgl_cut(sgl, count);
    fault = hca_walk_check(mkey, use);
    return (fault == HCA_KEY_OK) ? hca_sgl_add_via(sgl, use, mkey) : fault;
}

/* Appends the range of any mkey but a plain one. */
static __attribute__((noinline)) enum hca_key_fault
hca_sgl_add_any(struct hca_sgl *sgl, const struct hca_mkey *mkey,
                const struct hca_key_use *use)
{
    enum hca_key_fault fault = hca_mkey_check(mkey, use);

    if (fault != HCA_KEY_OK) {
        return fault;
    }
    switch (mkey->type) {
    case HCA_MKEY_MR:
        return hca_sgl_add_range(sgl, mkey, use);
    case HCA_MKEY_MW:
        return hca_sgl_add_window(sgl, mkey, use);
    case HCA_MKEY_NULL:
        return hca_sgl_add_via(sgl, use, mkey);
    default:
        return hca_sgl_add_layout(sgl, mkey, use);
    }
}

enum hca_key_fault hca_sgl_add_key(struct hca_sgl *sgl,
                                   const struct hca_key_use *use)
{
    const struct hca_mkey *mkey;

    if (!sgl->is_access) {
        sgl->turn      = hca_mkeys_enter(sgl->owner.proc);
        sgl->is_access = true;
        sgl->is_outer  = true;
    }
    mkey = hca_mkey_find(use->key, sgl->owner.proc);
    if (__builtin_expect(mkey == NULL, 0)) {
        return HCA_KEY_UNKNOWN;
    }
    if (__builtin_expect(!hca_mkey_is_plain(mkey, use), 0)) {
        return hca_sgl_add_any(sgl, mkey, use);
    }
    return hca_sgl_add_pinned(sgl, mkey, use);
}

void hca_sgl_skip(struct hca_sgl *sgl, size_t length)
{
    unsigned i = 0;

    while ((i < sgl->count) && (length >= sgl->iov[i].iov_len)) {
        length -= sgl->iov[i].iov_len;
        sgl->length -= sgl->iov[i++].iov_len;
    }
    sgl->count -= i;
    memmove(sgl->iov, sgl->iov + i, sgl->count * sizeof(sgl->iov[0]));
    if (sgl->has_via) {
        memmove(sgl->via, sgl->via + i, sgl->count * sizeof(sgl->via[0]));
    }
    if (length > 0) {
        sgl->iov[0].iov_base = (char *)sgl->iov[0].iov_base + length;
        sgl->iov[0].iov_len -= length;
        sgl->length -= length;
    }
}

static void hca_sgl_append_entry(struct hca_sgl *dst, const struct hca_sgl *src,
                                 unsigned index, size_t offset, size_t length)
{
    if (dst->has_via) {
        dst->via[dst->count] = src->via[index];
    }
    dst->iov[dst->count].iov_base  = (char *)src->iov[index].iov_base + offset;
    dst->iov[dst->count++].iov_len = length;
    dst->length += length;
}

void hca_sgl_append(struct hca_sgl *dst, const struct hca_sgl *src,
                    size_t offset, size_t length)
{
    dst->is_outer |= src->is_outer;
    if (src->has_via) {
        hca_sgl_set_via(dst, &src->use);
    }
    for (unsigned i = 0; (length > 0) && (i < src->count); i++) {
        const struct iovec *iov = &src->iov[i];
        size_t n;

        if (offset >= iov->iov_len) {
            offset -= iov->iov_len;
            continue;
        }
        n = iov->iov_len - offset;
        n = (n < length) ? n : length;
        hca_sgl_append_entry(dst, src, i, offset, n);
        length -= n;
        offset = 0;
    }
}

void hca_sgl_part(struct hca_sgl *dst, const struct hca_sgl *src, size_t offset,
                  size_t length)
{
    hca_sgl_init(dst, src->owner);
    hca_sgl_append(dst, src, offset, length);
}
