/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Walks over layouts of indirect mkeys (hca_layout.h), within an access to the
 * mkey (hca_mkey.h). Entries of length 0, the padding of a list, are skipped.
 */
#include "hca_layout.h"

/* Skips entries until the one that contains the byte at @skip. */
static void hca_layout_skip(struct hca_layout *layout)
{
    for (; layout->entry < layout->num; layout->entry++) {
        uint64_t size = hca_layout_size(layout, &layout->klms[layout->entry]);

        if (layout->skip < size) {
            return;
        }
        layout->skip -= size;
    }
}

/* Finds the last entry that begins at @skip or before. By bisection, as rows of
 * a layout above seek here one by one. */
static void hca_layout_find(struct hca_layout *layout)
{
    uint32_t end = layout->num, at, middle;
    uint64_t start, found = 0;

    for (at = 0; end - at > 1;) {
        middle = at + (end - at) / 2;
        start  = layout->klms[middle].start;
        if (start <= layout->skip) {
            at    = middle;
            found = start;
        } else {
            end = middle;
        }
    }
    layout->entry = at;
    layout->skip -= found;
}

/* Reads a field once. A UMR may change the mkey meanwhile: the walk detects it
 * afterwards, and until then all decisions must be from one value. */
#define HCA_LAYOUT_ONCE(_member) __atomic_load_n(&(_member), __ATOMIC_RELAXED)

/* Maximum number of entries that are read: see hca_at() */
#define HCA_LAYOUT_MAX (HCA_PIT_SIZE / sizeof(struct hca_klm))

void hca_layout_seek(struct hca_layout *layout, const struct hca_mkey *mkey,
                     uint64_t offset)
{
    uint32_t num = HCA_LAYOUT_ONCE(mkey->num_klms);

    *layout = (struct hca_layout){
        .klms      = hca_at(HCA_LAYOUT_ONCE(mkey->klms)),
        .num       = (num < HCA_LAYOUT_MAX) ? num : HCA_LAYOUT_MAX,
        .shift     = HCA_LAYOUT_ONCE(mkey->klm_shift),
        .repeat    = HCA_LAYOUT_ONCE(mkey->repeat),
        .row_bytes = HCA_LAYOUT_ONCE(mkey->row_bytes),
        .skip      = offset,
    };
    if ((layout->repeat != 0) && (layout->row_bytes != 0)) {
        uint64_t row = offset / layout->row_bytes;

        layout->row  = (row < layout->repeat) ? row : layout->repeat;
        layout->skip = offset % layout->row_bytes;
    } else if (layout->shift != 0) {
        uint64_t entry = offset >> layout->shift;

        layout->entry = (entry < layout->num) ? entry : layout->num;
        layout->skip  = offset & ((1ull << layout->shift) - 1);
    }
    if (layout->shift == 0) {
        hca_layout_find(layout);
    }
    hca_layout_skip(layout);
}

/* Skips empty entries, at the end of a row also those of the next one. */
static void hca_layout_skip_empty(struct hca_layout *layout)
{
    hca_layout_skip(layout);
    if ((layout->repeat != 0) && (layout->entry >= layout->num)) {
        layout->row++;
        layout->entry = 0;
        hca_layout_skip(layout);
    }
}

bool hca_layout_next_part(struct hca_layout *layout, uint64_t max,
                          struct hca_key_range *part)
{
    const struct hca_klm *klm;
    uint64_t left;

    hca_layout_skip_empty(layout);
    if (hca_layout_is_over(layout)) {
        return false;
    }
    klm          = &layout->klms[layout->entry];
    left         = hca_layout_size(layout, klm) - layout->skip;
    part->key    = klm->key;
    part->addr   = klm->addr + layout->skip;
    part->length = (left < max) ? left : max;
    if (part->length == 0) {
        return false; /* just shortened by a UMR */
    }
    if (layout->repeat != 0) {
        part->addr += (uint64_t)layout->row * klm->stride;
    }
    layout->skip += part->length;
    if (part->length == left) {
        hca_layout_advance(layout);
    }
    return true;
}

/* Extends the hull by an entry, in all rows.
 * @return false if there is no hull: entries are of several mkeys, or their
 *         addresses wrap. */
static bool hca_layout_extend(struct hca_key_range *hull,
                              const struct hca_layout *layout,
                              const struct hca_klm *klm)
{
    uint64_t size = hca_layout_size(layout, klm), end, hull_end;

    if (size == 0) {
        return true;
    }
    if (layout->repeat != 0) {
        size += (uint64_t)(layout->repeat - 1) * klm->stride;
    }
    if (hull->length == 0) {
        *hull = (struct hca_key_range){klm->key, klm->addr, size};
    }
    end          = klm->addr + size;
    hull_end     = hull->addr + hull->length;
    hull_end     = (end > hull_end) ? end : hull_end;
    hull->addr   = (klm->addr < hull->addr) ? klm->addr : hull->addr;
    hull->length = hull_end - hull->addr;
    return (klm->key == hull->key) && (end >= klm->addr);
}

void hca_layout_measure(struct hca_mkey *mkey)
{
    struct hca_key_range hull = {0, 0, 0};
    struct hca_layout layout;

    hca_layout_seek(&layout, mkey, 0);
    for (uint32_t i = 0; i < layout.num; i++) {
        if (!hca_layout_extend(&hull, &layout, &layout.klms[i])) {
            hull.length = 0;
            break;
        }
    }
    mkey->hull = hull;
}
