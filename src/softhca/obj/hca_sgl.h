/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The memory of one message: each piece that a WQE names is looked up, checked
 * and kept until the bytes have moved (hca_mkey.h), and ends up in a list of
 * addresses of one process.
 */
#ifndef HCA_SGL_H
#define HCA_SGL_H

#include "hca_mkey.h"
#include "softhca/fabric/hca_mem.h"

#include <sys/uio.h>

/* Entries of a list. A WQE has at most 63 octowords; short layouts of its mkeys
 * and a header fit in, too. */
#define HCA_SGL_MAX 128u

/* Entries that a list may have after an indirect mkey is replaced by its
 * pieces: FEW, or FEW_SHORT if the use is shorter than FEW KiB. Otherwise the
 * mkey is one entry: many short pieces are copied with fewer calls then. */
#define HCA_SGL_FEW       32u
#define HCA_SGL_FEW_SHORT 8u

/* An entry is a piece of memory or, where `via` names an mkey, its translation:
 * zeros, or (INDIRECT) the range that begins at iov_base in its address space,
 * in any number of pieces, which are found during the copy. */
struct hca_sgl {
    unsigned count;
    struct hca_owner owner; /* of these addresses */
    bool is_access;         /* to the owner's mkeys, until hca_sgl_put() */
    uint8_t turn;           /* of hca_mkeys_enter() */
    bool has_via;           /* of some entry; `via` is valid */
    bool is_outer;          /* some entry is of a program's memory */
    bool on_demand;         /* of some entry; `demand` is valid */
    uint64_t length;
    struct hca_key_use use; /* with has_via: the user of mkeys */
    const struct hca_mkey *via[HCA_SGL_MAX + 1];
    const struct hca_mkey *demand[HCA_SGL_MAX + 1]; /* of entries on demand
                                                     * (hca_odp.h), or NULL */
    struct iovec iov[HCA_SGL_MAX + 1];              /* entries, a header */
};

static inline void hca_sgl_init(struct hca_sgl *sgl, struct hca_owner owner)
{
    sgl->count     = 0;
    sgl->owner     = owner;
    sgl->is_access = false;
    sgl->has_via   = false;
    sgl->is_outer  = false;
    sgl->on_demand = false;
    sgl->length    = 0;
}

/* Appends memory of sgl->owner as it is: neither checked nor kept.
 * @return false if the list is full. */
static inline bool hca_sgl_add(struct hca_sgl *sgl, const void *base,
                               size_t length)
{
    if (__builtin_expect(sgl->count == HCA_SGL_MAX, 0)) {
        return false;
    }
    sgl->iov[sgl->count].iov_base  = (void *)base;
    sgl->iov[sgl->count++].iov_len = length;
    sgl->length += length;
    return true;
}

/* Returns the bytes of a list of one piece that the device itself has, such as
 * inline data; NULL for another list. */
static inline const void *hca_sgl_inner(const struct hca_sgl *sgl)
{
    return (!sgl->is_outer && (sgl->count == 1)) ? sgl->iov[0].iov_base : NULL;
}

/* Checks all of the use and appends the range. The mkey, and those that an
 * indirect one leads to, are kept until hca_sgl_put().
 * @return HCA_KEY_OK or a fault: HCA_KEY_PIECES if the list is full. After a
 *         fault the caller must put the list, too. */
enum hca_key_fault hca_sgl_add_key(struct hca_sgl *sgl,
                                   const struct hca_key_use *use);

/* Ends the access, once: call hca_sgl_init() before another use. */
static inline void hca_sgl_put(struct hca_sgl *sgl)
{
    if (sgl->is_access) {
        hca_mkeys_leave(sgl->owner.proc, sgl->turn);
    }
}

/* Removes the first @length bytes of the list. */
void hca_sgl_skip(struct hca_sgl *sgl, size_t length);

/* Appends @length bytes of @src from @offset on to @dst; @src has that many.
 * @dst has no mkeys of its own and must not be used after @src is put. */
void hca_sgl_append(struct hca_sgl *dst, const struct hca_sgl *src,
                    size_t offset, size_t length);

/* Initializes @dst, and appends as hca_sgl_append() does. */
void hca_sgl_part(struct hca_sgl *dst, const struct hca_sgl *src, size_t offset,
                  size_t length);

/* Copies @src to @dst, of the same length; the owner of one is this process.
 * The null mkey reads as zeros and discards writes. @return as hca_mem_*();
 * -EFAULT also if an mkey has changed since its check. */
int hca_sgl_copy(const struct hca_sgl *dst, const struct hca_sgl *src);

#endif
