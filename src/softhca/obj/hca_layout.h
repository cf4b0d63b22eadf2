/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Translation of an indirect mkey, one run of bytes after the other, to ranges
 * of other mkeys, which are neither looked up nor held here.
 *
 * A list (KLM, KSM): its entries lie one behind the other. Strided: a row is
 * one block of each entry, and row r has the block of an entry r strides behind
 * its first.
 */
#ifndef HCA_LAYOUT_H
#define HCA_LAYOUT_H

#include "hca_objs.h"

/* Position of a walk. The mkey's fields are read once, as a UMR may change them
 * meanwhile: the result is then discarded (hca_walk.h), but no entry beyond the
 * list is read. */
struct hca_layout {
    const struct hca_klm *klms;
    uint32_t num;
    uint8_t shift;
    uint32_t repeat, row_bytes; /* 0: a list */
    uint32_t row, entry;
    uint64_t skip; /* bytes of the entry already passed */
};

/* Finds the hull of an mkey's entries, which were changed. */
void hca_layout_measure(struct hca_mkey *mkey);

/* Begins a walk @offset bytes into the mkey. */
void hca_layout_seek(struct hca_layout *layout, const struct hca_mkey *mkey,
                     uint64_t offset);

/* Does as hca_layout_next() where the next run is a part of an entry, or
 * entries are empty. */
bool hca_layout_next_part(struct hca_layout *layout, uint64_t max,
                          struct hca_key_range *part);

static inline uint64_t hca_layout_size(const struct hca_layout *layout,
                                       const struct hca_klm *klm)
{
    if (layout->repeat != 0) {
        return klm->bytes;
    }
    return (layout->shift != 0) ? 1ull << layout->shift : klm->length;
}

/* Returns the bytes of all rows, or of the list. */
static inline uint64_t hca_layout_total(const struct hca_layout *layout)
{
    const struct hca_klm *last = layout->klms + layout->num;

    if (layout->repeat != 0) {
        return (uint64_t)layout->repeat * layout->row_bytes;
    }
    if ((layout->num == 0) || (layout->shift != 0)) {
        return (uint64_t)layout->num << layout->shift;
    }
    return last[-1].start + last[-1].length;
}

static inline bool hca_layout_is_over(const struct hca_layout *layout)
{
    return (layout->entry >= layout->num) ||
           ((layout->repeat != 0) && (layout->row >= layout->repeat));
}

/* Goes to the next entry. */
static inline void hca_layout_advance(struct hca_layout *layout)
{
    layout->skip = 0;
    layout->entry++;
    if ((layout->repeat != 0) && (layout->entry >= layout->num)) {
        layout->row++;
        layout->entry = 0;
    }
}

/* Stores the next run, of @max bytes (not 0) or less, in @part; it is never
 * empty. @return false at the end of the layout, or if a UMR changed it. */
static inline bool hca_layout_next(struct hca_layout *layout, uint64_t max,
                                   struct hca_key_range *part)
{
    const struct hca_klm *klm = &layout->klms[layout->entry];

    if (hca_layout_is_over(layout) || (layout->skip != 0)) {
        return hca_layout_next_part(layout, max, part);
    }
    part->length = hca_layout_size(layout, klm);
    if ((part->length == 0) || (part->length > max)) {
        return hca_layout_next_part(layout, max, part);
    }
    part->key  = klm->key;
    part->addr = klm->addr;
    if (layout->repeat != 0) {
        part->addr += (uint64_t)layout->row * klm->stride;
    }
    hca_layout_advance(layout);
    return true;
}

/* Returns true if the next @length bytes probably have more than @few runs. */
static inline bool hca_layout_is_long(const struct hca_layout *layout,
                                      uint64_t length, unsigned few)
{
    return ((layout->repeat != 0) || (layout->num > few)) &&
           !hca_layout_is_over(layout) &&
           (length / few >
            hca_layout_size(layout, &layout->klms[layout->entry]));
}

/* Returns the number of whole rows that come next, at most @max, without
 * skipping them; 0 unless a row is one block of @length bytes. */
static inline uint32_t hca_layout_rows(const struct hca_layout *layout,
                                       uint64_t length, uint64_t max)
{
    uint32_t left;

    if ((layout->row >= layout->repeat) || (layout->num != 1) ||
        (layout->skip != 0) || (layout->klms[0].bytes != length)) {
        return 0;
    }
    left = layout->repeat - layout->row;
    return (left < max) ? left : max;
}

#endif
