/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Walks over indirect mkeys: see hca_walk.h. Executed by the process that moves
 * the data: the owner of the mkeys or a peer.
 */
#include "hca_walk.h"

/* Returns the use of the mkeys that entries name: they need local rights only,
 * as the region of a window. */
static struct hca_key_use hca_walk_below(const struct hca_key_use *use)
{
    struct hca_key_use below = *use;

    below.access = (use->access & ~IBV_ACCESS_REMOTE_READ) ?
                       IBV_ACCESS_LOCAL_WRITE :
                       0;
    return below;
}

/* Returns true if the range is in the region that was seen last: neighbours
 * mostly name one mkey. */
static inline bool hca_walk_is_seen(const struct hca_walk_seen *seen,
                                    const struct hca_key_range *part)
{
    return seen->is_region && (seen->key == part->key) &&
           hca_mkey_spans(seen->mkey, part->addr, part->length);
}

static bool hca_walk_seen_is_valid(const struct hca_walk_seen *seen)
{
    return (seen->mkey == NULL) || hca_mkey_is_same(seen->mkey, seen->change);
}

/* Checks an entry's range, and stores its mkey in @seen. A region that is
 * registered on demand may not be named ("ODP does not support ... Indirect
 * MKEY", MLNX_OFED User Manual); Linux resolves faults of lists, not of
 * repeated blocks (pagefault_single_data_segment() of mlx5_ib). */
static enum hca_key_fault hca_walk_look(struct hca_walk_seen *seen,
                                        struct hca_key_use *use, unsigned proc,
                                        const struct hca_key_range *part)
{
    const struct hca_mkey *mkey;
    enum hca_key_fault fault;
    uint32_t change;

    if (!hca_walk_seen_is_valid(seen)) {
        return HCA_KEY_FREE;
    }
    mkey = hca_mkey_find(part->key, proc);
    if (mkey == NULL) {
        return HCA_KEY_UNKNOWN;
    }
    use->key    = part->key;
    use->addr   = part->addr;
    use->length = part->length;
    change      = hca_mkey_change(mkey);
    fault       = hca_mkey_check(mkey, use);
    if (mkey->access & IBV_ACCESS_ON_DEMAND) {
        return HCA_KEY_ACCESS;
    }
    if (fault == HCA_KEY_OK) {
        *seen = (struct hca_walk_seen){part->key, change, mkey,
                                       mkey->type == HCA_MKEY_MR};
    }
    return fault;
}

/* Flag in a depth: one of the levels has a repeated block. */
#define HCA_WALK_IN_ROWS 0x100u

/* --- the check ------------------------------------------------------------ */

static enum hca_key_fault hca_walk_check_level(const struct hca_mkey *mkey,
                                               const struct hca_key_use *use,
                                               unsigned depth);

/* Checks one range and all that it leads to.
 * @param use  of the mkeys that entries name; the range is stored in it */
static enum hca_key_fault hca_walk_check_part(struct hca_walk_seen *seen,
                                              unsigned proc,
                                              struct hca_key_use *use,
                                              const struct hca_key_range *part,
                                              unsigned depth)
{
    enum hca_key_fault fault;

    if (__builtin_expect(hca_walk_is_seen(seen, part), 1)) {
        return HCA_KEY_OK;
    }
    fault = hca_walk_look(seen, use, proc, part);
    if ((fault != HCA_KEY_OK) || (seen->mkey->type != HCA_MKEY_INDIRECT)) {
        return fault;
    }
    return ((depth & ~HCA_WALK_IN_ROWS) < hca_mkey_depth()) ?
               hca_walk_check_level(seen->mkey, use, depth) :
               HCA_KEY_PIECES;
}

/* Checks the range of all entries as one: more than is used, so that a failure
 * does not mean that the use is forbidden. */
static bool hca_walk_check_hull(const struct hca_mkey *mkey,
                                const struct hca_key_use *use, unsigned depth)
{
    const struct hca_key_range hull = mkey->hull;
    struct hca_key_use below        = hca_walk_below(use);
    struct hca_walk_seen seen       = {.mkey = NULL};

    return (hull.length != 0) &&
           (hca_walk_check_part(&seen, mkey->obj.proc, &below, &hull, depth) ==
            HCA_KEY_OK);
}

/* Checks for each entry the range from its block in the first row to that in
 * the last one. As it includes gaps, a failure does not mean that the use is
 * forbidden. */
static bool hca_walk_check_rows(const struct hca_mkey *mkey,
                                const struct hca_layout *first,
                                const struct hca_key_use *use, unsigned depth)
{
    struct hca_key_use below  = hca_walk_below(use);
    struct hca_walk_seen seen = {.mkey = NULL};
    uint64_t start, rows;

    if ((first->repeat == 0) || (first->row_bytes == 0)) {
        return false;
    }
    start = (use->addr - mkey->iova) % first->row_bytes;
    rows  = (start + use->length - 1) / first->row_bytes + 1;
    for (uint32_t i = 0; i < first->num; i++) {
        const struct hca_klm *klm = &first->klms[i];
        struct hca_key_range part;

        if (klm->bytes == 0) {
            continue;
        }
        part.key    = klm->key;
        part.addr   = klm->addr + (uint64_t)first->row * klm->stride;
        part.length = (rows - 1) * klm->stride + klm->bytes;
        if (hca_walk_check_part(&seen, mkey->obj.proc, &below, &part, depth) !=
            HCA_KEY_OK) {
            return false;
        }
    }
    return true;
}

static enum hca_key_fault hca_walk_check_runs(const struct hca_mkey *mkey,
                                              struct hca_layout *layout,
                                              const struct hca_key_use *use,
                                              unsigned depth)
{
    struct hca_key_use below  = hca_walk_below(use);
    struct hca_walk_seen seen = {.mkey = NULL};
    enum hca_key_fault fault  = HCA_KEY_OK;
    uint64_t left             = use->length;
    struct hca_key_range part;

    while ((left > 0) && (fault == HCA_KEY_OK)) {
        if (!hca_layout_next(layout, left, &part)) {
            return HCA_KEY_BOUNDS;
        }
        left -= part.length;
        fault = hca_walk_check_part(&seen, mkey->obj.proc, &below, &part,
                                    depth);
    }
    return fault;
}

/* Checks a use of an indirect mkey.
 * @param depth  number of levels above, with HCA_WALK_IN_ROWS */
static enum hca_key_fault hca_walk_check_level(const struct hca_mkey *mkey,
                                               const struct hca_key_use *use,
                                               unsigned depth)
{
    uint64_t offset = use->addr - mkey->iova, total;
    struct hca_layout layout;

    hca_layout_seek(&layout, mkey, offset);
    if ((layout.repeat != 0) && hca_lacks(HCA_LACK_REPEAT_NEST)) {
        if (depth & HCA_WALK_IN_ROWS) {
            return HCA_KEY_PIECES;
        }
        depth |= HCA_WALK_IN_ROWS;
    }
    total = hca_layout_total(&layout);
    if ((offset > total) || (use->length > total - offset)) {
        return HCA_KEY_BOUNDS;
    }
    return (hca_walk_check_hull(mkey, use, depth + 1) ||
            hca_walk_check_rows(mkey, &layout, use, depth + 1)) ?
               HCA_KEY_OK :
               hca_walk_check_runs(mkey, &layout, use, depth + 1);
}

enum hca_key_fault hca_walk_check(const struct hca_mkey *mkey,
                                  const struct hca_key_use *use)
{
    return hca_walk_check_level(mkey, use, 0);
}

/* --- piece by piece ------------------------------------------------------- */

/* Returns true if all entries are of one region, and may be used. */
static bool hca_walk_look_at_hull(struct hca_walk *walk,
                                  const struct hca_mkey *mkey)
{
    const struct hca_key_range hull = mkey->hull;

    return (hull.length != 0) &&
           (hca_walk_look(&walk->seen, &walk->use, walk->proc, &hull) ==
            HCA_KEY_OK) &&
           walk->seen.is_region;
}

/* Enters the layout of an mkey, at walk->part.
 * @param change  of the mkey, before it was checked for this */
static void hca_walk_push(struct hca_walk *walk, const struct hca_mkey *mkey,
                          uint32_t change)
{
    struct hca_walk_level *level = &walk->levels[walk->depth++];

    hca_layout_seek(&level->layout, mkey, walk->part.addr - mkey->iova);
    level->mkey      = mkey;
    level->change    = change;
    level->left      = walk->part.length;
    level->is_region = hca_walk_look_at_hull(walk, mkey);
}

enum hca_key_fault hca_walk_begin(struct hca_walk *walk,
                                  const struct hca_mkey *mkey,
                                  const struct hca_key_use *use)
{
    uint32_t change = hca_mkey_change(mkey);

    walk->use   = hca_walk_below(use);
    walk->part  = (struct hca_key_range){use->key, use->addr, use->length};
    walk->proc  = mkey->obj.proc;
    walk->depth = 0;
    walk->seen  = (struct hca_walk_seen){.mkey = NULL};
    hca_walk_push(walk, mkey, change);
    return hca_mkey_check(mkey, use);
}

bool hca_walk_is_valid(const struct hca_walk *walk)
{
    for (unsigned i = 0; i < walk->depth; i++) {
        if (!hca_mkey_is_same(walk->levels[i].mkey, walk->levels[i].change)) {
            return false;
        }
    }
    return hca_walk_seen_is_valid(&walk->seen);
}

/* Leaves levels that have ended, for the ones above.
 * @return false if one has changed. */
static bool hca_walk_ascend(struct hca_walk *walk)
{
    const struct hca_walk_level *level;

    for (; walk->depth > 0; walk->depth--) {
        level = &walk->levels[walk->depth - 1];
        if (level->left > 0) {
            return true;
        }
        if (!hca_mkey_is_same(level->mkey, level->change)) {
            return false;
        }
    }
    return hca_walk_seen_is_valid(&walk->seen);
}

/* Goes into the layout that the last part leads to. */
static enum hca_key_fault hca_walk_descend(struct hca_walk *walk)
{
    const struct hca_mkey *mkey = walk->seen.mkey;

    if ((walk->depth == hca_mkey_depth()) ||
        ((mkey->repeat != 0) && hca_lacks(HCA_LACK_REPEAT_NEST) &&
         hca_walk_has_rows(walk))) {
        return HCA_KEY_PIECES;
    }
    hca_walk_push(walk, mkey, walk->seen.change);
    return HCA_KEY_OK;
}

/* Gets the next range, and the mkey that it is of. */
static enum hca_key_fault hca_walk_part(struct hca_walk *walk)
{
    struct hca_walk_level *level = &walk->levels[walk->depth - 1];

    if (!hca_layout_next(&level->layout, level->left, &walk->part)) {
        return HCA_KEY_BOUNDS;
    }
    level->left -= walk->part.length;
    return hca_walk_is_seen(&walk->seen, &walk->part) ?
               HCA_KEY_OK :
               hca_walk_look(&walk->seen, &walk->use, walk->proc, &walk->part);
}

enum hca_key_fault hca_walk_next_key(struct hca_walk *walk)
{
    enum hca_key_fault fault;

    do {
        walk->part.length = 0;
        if (!hca_walk_ascend(walk)) {
            return HCA_KEY_FREE;
        }
        if (walk->depth == 0) {
            return HCA_KEY_OK;
        }
        fault = hca_walk_part(walk);
        if ((fault == HCA_KEY_OK) &&
            (walk->seen.mkey->type != HCA_MKEY_INDIRECT)) {
            return HCA_KEY_OK;
        }
        fault = (fault == HCA_KEY_OK) ? hca_walk_descend(walk) : fault;
    } while (fault == HCA_KEY_OK);
    return hca_walk_is_valid(walk) ? fault : HCA_KEY_FREE;
}

uint32_t hca_walk_rows(struct hca_walk *walk, uint64_t *stride)
{
    struct hca_walk_level *level = &walk->levels[walk->depth - 1];
    uint64_t length              = walk->part.length;
    uint32_t rows;

    rows = hca_layout_rows(&level->layout, length, level->left / length);
    if (rows == 0) {
        return 0;
    }
    *stride = level->layout.klms[0].stride;
    if (!hca_mkey_spans(walk->seen.mkey, walk->part.addr,
                        rows * *stride + length)) {
        return 0;
    }
    level->layout.row += rows;
    level->left -= rows * length;
    return rows;
}

bool hca_walk_has_rows(const struct hca_walk *walk)
{
    for (unsigned i = 0; i < walk->depth; i++) {
        if (walk->levels[i].layout.repeat != 0) {
            return true;
        }
    }
    return false;
}
