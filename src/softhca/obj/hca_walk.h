/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * A use of an indirect mkey, for any length of list and nesting of layouts:
 * checked as a whole, then walked piece by piece, without allocation. The
 * caller is in an access to the mkeys of its process (hca_mkeys_enter()).
 */
#ifndef HCA_WALK_H
#define HCA_WALK_H

#include "hca_layout.h"
#include "hca_mkey.h"

/* The mkey that the last entry named, and that allowed the use, or NULL. */
struct hca_walk_seen {
    uint32_t key;
    uint32_t change; /* of it, before it was checked */
    const struct hca_mkey *mkey;
    bool is_region;
};

/* Position of a use. */
struct hca_walk {
    struct hca_key_use use; /* of the entries' mkeys */
    unsigned proc;          /* owner of the mkeys */
    unsigned depth;         /* levels in use, 0: at the end */
    struct hca_walk_seen seen;
    struct hca_key_range part; /* the last piece, of that mkey */
    struct hca_walk_level {
        const struct hca_mkey *mkey;
        uint32_t change; /* of it, before it was checked */
        struct hca_layout layout;
        uint64_t left;
        bool is_region; /* all entries are of one region, the one seen last,
                         * and may be used */
    } levels[HCA_MKEY_DEPTH];
};

/* Checks that a use of the indirect mkey is allowed for all that it reaches.
 * Costs a step per entry of a strided layout; a step per block if the range of
 * an entry's blocks, gaps included, is not allowed as a whole. */
enum hca_key_fault hca_walk_check(const struct hca_mkey *mkey,
                                  const struct hca_key_use *use);

/* Begins a walk over a use. Checks only @mkey itself.
 * @return HCA_KEY_OK or a fault. */
enum hca_key_fault hca_walk_begin(struct hca_walk *walk,
                                  const struct hca_mkey *mkey,
                                  const struct hca_key_use *use);

/* Does as hca_walk_next() where the next piece needs a look at its mkey. */
enum hca_key_fault hca_walk_next_key(struct hca_walk *walk);

/* Gets the next piece, walk->part, of length 0 at the end, and its mkey,
 * walk->seen.mkey: a region or the null mkey. Each piece is checked, as a UMR
 * may have changed the layout since hca_walk_check(). An mkey that was changed,
 * invalidated or destroyed since the walk reached it gives HCA_KEY_FREE at its
 * end at the latest, so that all pieces are of one layout: before that, ask
 * hca_walk_is_valid() and then use pieces. */
static inline enum hca_key_fault hca_walk_next(struct hca_walk *walk)
{
    struct hca_walk_level *level = &walk->levels[walk->depth - 1];

    if ((walk->depth > 0) && level->is_region && (level->left > 0) &&
        hca_layout_next(&level->layout, level->left, &walk->part)) {
        level->left -= walk->part.length;
        return HCA_KEY_OK;
    }
    return hca_walk_next_key(walk);
}

/* Returns the address of the last piece, unless it is of the null mkey. */
static inline char *hca_walk_base(const struct hca_walk *walk)
{
    const struct hca_mkey *mkey = walk->seen.mkey;

    return (char *)(mkey->va + (walk->part.addr - mkey->iova));
}

/* Returns true if hca_walk_rows() may find pieces behind the last one. */
static inline bool hca_walk_is_row(const struct hca_walk *walk)
{
    return (walk->depth > 0) &&
           (walk->levels[walk->depth - 1].layout.repeat != 0);
}

/* Skips pieces behind the last one that have its length, each *@stride bytes
 * behind the one before it, after a check. Not for the null mkey.
 * @return their number; 0 also if one of them may not be accessed:
 *         hca_walk_next() finds it. */
uint32_t hca_walk_rows(struct hca_walk *walk, uint64_t *stride);

/* Returns false if an mkey that the walk is in was changed meanwhile: pieces
 * since then must not be used. */
bool hca_walk_is_valid(const struct hca_walk *walk);

/* Returns true if the last piece was reached through rows, at any level. */
bool hca_walk_has_rows(const struct hca_walk *walk);

#endif
