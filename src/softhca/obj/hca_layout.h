/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * What an indirect key leads to, one run of bytes after the other: ranges of
 * other keys. Nothing is looked up here, and nothing held.
 *
 * A list (KLM, KSM): its entries lie one behind the other. Strided: a row is
 * one block of each entry, and row r has the block of an entry r strides behind
 * its first.
 */
#ifndef HCA_LAYOUT_H
#define HCA_LAYOUT_H

#include "hca_objs.h"

/* Where a walk is. What the key says is taken once, as a UMR may change it
 * meanwhile: what is read is of no use then (hca_walk.h), but no entry is read
 * that is not there. */
struct hca_layout {
    const struct hca_klm *klms;
    uint32_t              num;
    uint8_t               shift;
    uint32_t              repeat, row_bytes; /* 0: a list */
    uint32_t              row, entry;
    uint64_t              skip; /* bytes of the entry that are behind */
};

struct hca_layout_part {
    uint32_t key;
    uint64_t addr;
    uint64_t length;
};

/* A walk that begins `offset` bytes into the key. */
void hca_layout_seek(struct hca_layout *layout, const struct hca_mkey *mkey,
                     uint64_t offset);

/* The next run, of `max` bytes (not 0) or less.
 * @return false if the layout has ended, or changed; else it is not empty. */
bool hca_layout_next(struct hca_layout *layout, uint64_t max,
                     struct hca_layout_part *part);

/* Whole rows of one block that come next, if it has that length and a row has
 * no other: `max` or less. They are not passed over. */
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
