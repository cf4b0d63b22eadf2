/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * A use of an indirect key, however long its list or nested its layout: checked
 * as a whole, then taken piece by piece. No memory is needed for either. What
 * the entries name is not held one by one: hca_walk_enter() says that keys of a
 * process are looked at, and who takes one of them back waits for the end.
 */
#ifndef HCA_WALK_H
#define HCA_WALK_H

#include "hca_layout.h"
#include "hca_mkey.h"

#include <sys/uio.h>

/* The key that the last entry named, if mkey is not NULL. */
struct hca_walk_seen {
    uint32_t               key;
    const struct hca_mkey *mkey;
    uint32_t               change; /* of it, before it was checked */
};

/* Where a use has come to. */
struct hca_walk {
    struct hca_key_use     use;   /* what entries' keys are asked for */
    unsigned               proc;  /* whose keys they are */
    unsigned               depth; /* levels in use, 0: nothing is left */
    struct hca_walk_seen   seen;
    struct {
        const struct hca_mkey *mkey;
        uint32_t               change; /* as above */
        struct hca_layout      layout;
        uint64_t               left;
    } levels[HCA_MKEY_DEPTH];
};

/* From here to hca_walk_leave() no key of `proc` that was found goes away, nor
 * its list. The caller holds one of its keys (hca_mkey_hold()) all the while.
 * @return what hca_walk_leave() takes. */
unsigned hca_walk_enter(unsigned proc);
void hca_walk_leave(unsigned proc, unsigned turn);

/* Whether all that a use of the indirect key reaches may be reached. Costs a
 * step per entry of a strided layout and not per row, unless a row leads to
 * where the holes do not. */
enum hca_key_fault hca_walk_check(const struct hca_mkey *mkey,
                                  const struct hca_key_use *use);

/* Begins a walk over that use.
 * @return HCA_KEY_OK, or why the key, as it is now, does not allow it. */
enum hca_key_fault hca_walk_begin(struct hca_walk *walk,
                                  const struct hca_mkey *mkey,
                                  const struct hca_key_use *use);

/* The next piece, of length 0 at the end; `key` tells what it belongs to: where
 * that is the null key, iov_base is of no meaning. Each piece is checked, as a
 * UMR may have changed the layout since hca_walk_check(). A key that has been
 * changed, invalidated or taken back since the walk came to it is HCA_KEY_FREE,
 * so that all pieces are those of one layout. */
enum hca_key_fault hca_walk_next(struct hca_walk *walk, struct iovec *piece,
                                 const struct hca_mkey **key);

/* Whether it may have such behind it as hca_walk_rows() finds. */
static inline bool hca_walk_is_row(const struct hca_walk *walk)
{
    return (walk->depth > 0) &&
           (walk->levels[walk->depth - 1].layout.repeat != 0);
}

/* Pieces behind that one which are as long, each `*stride` behind the one
 * before it: `max` or less, checked and passed over. 0 where one of them may
 * not be reached: hca_walk_next() tells which. Not for the null key. */
uint32_t hca_walk_rows(struct hca_walk *walk, uint32_t max, uint64_t *stride);

/* Whether that piece was reached through rows, at any level. */
bool hca_walk_has_rows(const struct hca_walk *walk);

#endif
