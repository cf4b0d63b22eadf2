/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Layouts: built, checked, compared; see dcx_sgl.h.
 */
#include "dcx_sgl.h"

#include <assert.h>
#include <infiniband/verbs.h>
#include <stdlib.h>
#include <string.h>


/* Returns the size of the content, which is the same in equal layouts. */
static inline size_t uct_dcx_sgl_content_size(const uct_dcx_sgl_t *layout)
{
    return uct_dcx_sgl_size(layout->num) - offsetof(uct_dcx_sgl_t, length);
}


int uct_dcx_sgl_is_equal(const uct_dcx_sgl_t *a, const uct_dcx_sgl_t *b)
{
    return (a->hash == b->hash) && (a->num == b->num) &&
           !memcmp(&a->length, &b->length, uct_dcx_sgl_content_size(a));
}


/* --- building ------------------------------------------------------------- */

void uct_dcx_sgl_begin(uct_dcx_sgl_t *layout, unsigned max, uint32_t access)
{
    memset(layout, 0, sizeof(*layout));
    layout->kind   = UCT_DCX_SGL_LIST;
    layout->access = access;
    layout->repeat = 1;
    layout->max    = max;
}


const char *uct_dcx_sgl_check(const uct_dcx_sgl_run_t *run)
{
    uint64_t end, span;

    if (run->count == 0) {
        return "count is 0";
    }

    if (run->bytes == 0) {
        return "length is 0";
    }

    if ((run->count > 1) && (run->stride < run->bytes)) {
        return "stride is smaller than length";
    }

    if (__builtin_mul_overflow(run->count - 1, run->stride, &span) ||
        __builtin_add_overflow(span, run->bytes - 1, &span) ||
        __builtin_add_overflow(run->addr, span, &end)) {
        return "address, length, stride and count exceed 64 bits";
    }
    return NULL;
}


/* Returns 1 if a layout of only this run has it as one entry. */
static int uct_dcx_sgl_is_interleaved(const uct_dcx_sgl_run_t *run)
{
    return (run->count > 1) && (run->count <= UINT32_MAX) &&
           (run->stride > run->bytes) && (run->stride <= UCT_DCX_SGL_MAX_BLOCK);
}


static void uct_dcx_sgl_put(uct_dcx_sgl_t *layout, uint64_t addr,
                            uint32_t bytes, uint32_t stride, uint32_t lkey)
{
    layout->entries[layout->num++] = (uct_dcx_sgl_entry_t){
        .addr   = addr,
        .bytes  = bytes,
        .stride = stride,
        .lkey   = lkey,
    };
}


/* Appends a piece of a LIST; merges it with the last one if that is
 * adjacent. */
static const char *uct_dcx_sgl_add_piece(uct_dcx_sgl_t *layout, uint64_t addr,
                                         uint64_t length, uint32_t lkey)
{
    const uint64_t max_piece = UCT_DCX_SGL_MAX_PIECE;
    uct_dcx_sgl_entry_t *last;
    uint64_t part;

    if (layout->num > 0) {
        last = &layout->entries[layout->num - 1];
        if ((last->lkey == lkey) && (last->addr + last->bytes == addr)) {
            part = max_piece - last->bytes;
            part = (part < length) ? part : length;

            last->bytes += part;
            addr += part;
            length -= part;
        }
    }

    for (; length > 0; addr += part, length -= part) {
        if (layout->num == layout->max) {
            return "too many pieces";
        }
        part = (length < max_piece) ? length : max_piece;
        uct_dcx_sgl_put(layout, addr, part, 0, lkey);
    }
    return NULL;
}


static const char *uct_dcx_sgl_add_pieces(uct_dcx_sgl_t *layout,
                                          const uct_dcx_sgl_run_t *run)
{
    const char *fault = NULL;
    uint64_t i;

    if (run->stride == run->bytes) { /* it is one piece */
        return uct_dcx_sgl_add_piece(layout, run->addr, run->count * run->bytes,
                                     run->lkey);
    }

    for (i = 0; (i < run->count) && (fault == NULL); ++i) {
        fault = uct_dcx_sgl_add_piece(layout, run->addr + (i * run->stride),
                                      run->bytes, run->lkey);
    }
    return fault;
}


/* Converts the only run so far to pieces, as another one follows. */
static const char *uct_dcx_sgl_unroll(uct_dcx_sgl_t *layout)
{
    const uct_dcx_sgl_entry_t *entry = &layout->entries[0];
    const uct_dcx_sgl_run_t run      = {
             .addr   = entry->addr,
             .bytes  = entry->bytes,
             .stride = entry->stride,
             .count  = layout->repeat,
             .lkey   = entry->lkey,
    };

    layout->kind   = UCT_DCX_SGL_LIST;
    layout->repeat = 1;
    layout->num    = 0;
    return uct_dcx_sgl_add_pieces(layout, &run);
}


/* Appends a piece of a LIST, if it is a simple one; most are. Returns 1 if it
 * did. */
static inline int uct_dcx_sgl_add_plain(uct_dcx_sgl_t *layout,
                                        const uct_dcx_sgl_run_t *run)
{
    const uct_dcx_sgl_entry_t *last;

    if ((run->count != 1) || (layout->num == 0) ||
        (layout->num == layout->max) || (layout->kind != UCT_DCX_SGL_LIST) ||
        (run->bytes > UCT_DCX_SGL_MAX_PIECE) ||
        (run->addr + run->bytes <= run->addr) ||
        (layout->length + run->bytes < run->bytes)) {
        return 0;
    }

    last = &layout->entries[layout->num - 1];
    if (last->addr + last->bytes == run->addr) {
        return 0;
    }

    layout->length += run->bytes;
    uct_dcx_sgl_put(layout, run->addr, run->bytes, 0, run->lkey);
    return 1;
}


const char *uct_dcx_sgl_add(uct_dcx_sgl_t *layout, const uct_dcx_sgl_run_t *run)
{
    const char *fault;
    uint64_t length;

    if (uct_dcx_sgl_add_plain(layout, run)) {
        return NULL;
    }

    fault = uct_dcx_sgl_check(run);
    if (fault != NULL) {
        return fault;
    }

    if (__builtin_mul_overflow(run->count, run->bytes, &length) ||
        __builtin_add_overflow(layout->length, length, &layout->length)) {
        return "the sum of lengths exceeds 64 bits";
    }

    if (layout->kind == UCT_DCX_SGL_INTERLEAVED) {
        fault = uct_dcx_sgl_unroll(layout);
    } else if ((layout->num == 0) && (layout->max > 0) && !layout->is_list &&
               uct_dcx_sgl_is_interleaved(run)) {
        layout->kind   = UCT_DCX_SGL_INTERLEAVED;
        layout->repeat = run->count;
        uct_dcx_sgl_put(layout, run->addr, run->bytes, run->stride, run->lkey);
        return NULL;
    }
    return (fault != NULL) ? fault : uct_dcx_sgl_add_pieces(layout, run);
}


int uct_dcx_sgl_has_rounds(const uct_dcx_sgl_run_t *runs, unsigned num)
{
    unsigned i;

    for (i = 0; i < num; ++i) {
        if ((runs[i].bytes > UCT_DCX_SGL_MAX_BLOCK) ||
            (runs[i].stride > UCT_DCX_SGL_MAX_BLOCK)) {
            return 0;
        }
    }
    return (runs[0].count > 1) && (runs[0].count <= UINT32_MAX);
}


/* Adds one entry for each run. */
static void uct_dcx_sgl_interleave(uct_dcx_sgl_t *layout,
                                   const uct_dcx_sgl_run_t *runs, unsigned num)
{
    unsigned i;

    layout->kind   = UCT_DCX_SGL_INTERLEAVED;
    layout->repeat = runs[0].count;
    for (i = 0; i < num; ++i) {
        layout->length += runs[i].count * runs[i].bytes;
        uct_dcx_sgl_put(layout, runs[i].addr, runs[i].bytes, runs[i].stride,
                        runs[i].lkey);
    }
}


/* Adds all rounds piece by piece, as a LIST. */
static const char *uct_dcx_sgl_unroll_rounds(uct_dcx_sgl_t *layout,
                                             const uct_dcx_sgl_run_t *runs,
                                             unsigned num)
{
    const char *fault = NULL;
    uint64_t round;
    unsigned i;

    for (round = 0; (round < runs[0].count) && (fault == NULL); ++round) {
        for (i = 0; (i < num) && (fault == NULL); ++i) {
            layout->length += runs[i].bytes;
            fault = uct_dcx_sgl_add_piece(
                layout, runs[i].addr + (round * runs[i].stride), runs[i].bytes,
                runs[i].lkey);
        }
    }
    return fault;
}


/* Returns 1 for adjacent blocks that are longer than a piece in total. */
static int uct_dcx_sgl_is_long(const uct_dcx_sgl_run_t *run)
{
    return (run->stride == run->bytes) &&
           (run->count > UCT_DCX_SGL_MAX_PIECE / run->bytes);
}


const char *uct_dcx_sgl_add_rounds(uct_dcx_sgl_t *layout,
                                   const uct_dcx_sgl_run_t *runs, unsigned num)
{
    if ((num == 1) && !uct_dcx_sgl_is_long(runs)) {
        return uct_dcx_sgl_add(layout, runs);
    }

    if (layout->is_list || !uct_dcx_sgl_has_rounds(runs, num)) {
        return uct_dcx_sgl_unroll_rounds(layout, runs, num);
    }

    if (num > layout->max) {
        return "too many pieces";
    }

    uct_dcx_sgl_interleave(layout, runs, num);
    return NULL;
}


/* Converts a LIST to one entry if its pieces have the same length and
 * stride. */
static void uct_dcx_sgl_fold(uct_dcx_sgl_t *layout)
{
    uct_dcx_sgl_entry_t *first = &layout->entries[0];
    const uct_dcx_sgl_entry_t *entry;
    uct_dcx_sgl_run_t run = {
        .bytes  = first->bytes,
        .count  = layout->num,
        .stride = first[1].addr - first->addr,
    };
    unsigned i;

    if (!uct_dcx_sgl_is_interleaved(&run)) {
        return;
    }

    for (i = 1; i < layout->num; ++i) {
        entry = &first[i];
        if ((entry->lkey != first->lkey) || (entry->bytes != first->bytes) ||
            (entry->addr != first->addr + (i * run.stride))) {
            return;
        }
    }

    layout->kind   = UCT_DCX_SGL_INTERLEAVED;
    layout->repeat = layout->num;
    layout->num    = 1;
    first->stride  = run.stride;
}


/* Returns the hash of the content. Entries are mixed by multiplication
 * (Fibonacci hashing: 2^64 over the golden ratio), which makes the upper bits
 * depend on all; they are folded down at the end, for tables that use the lower
 * ones. */
static uint64_t uct_dcx_sgl_hash(const uct_dcx_sgl_t *layout)
{
    const uint64_t factor = 0x9e3779b97f4a7c15ul;
    const uint8_t *bytes  = (const uint8_t *)&layout->length;
    size_t size           = uct_dcx_sgl_content_size(layout);
    uint64_t hash         = 0;
    uint64_t word;
    size_t pos;

    static_assert(sizeof(uct_dcx_sgl_entry_t) % sizeof(word) == 0, "in words");
    for (pos = 0; pos < size; pos += sizeof(word)) {
        memcpy(&word, bytes + pos, sizeof(word));
        hash = (hash ^ word) * factor;
        hash ^= hash >> 32;
    }
    return hash;
}


int uct_dcx_sgl_end(uct_dcx_sgl_t *layout)
{
    if ((layout->kind == UCT_DCX_SGL_LIST) && (layout->num > 1) &&
        !layout->is_list) {
        uct_dcx_sgl_fold(layout);
    }
    layout->hash = uct_dcx_sgl_hash(layout);
    return ((layout->access & IBV_ACCESS_LOCAL_WRITE) && (layout->num > 1)) ?
               uct_dcx_sgl_overlaps(layout) :
               0;
}


/* --- overlap -------------------------------------------------------------- */

/* Orders entries by key, then by address. */
static int uct_dcx_sgl_compare(const void *arg_a, const void *arg_b)
{
    const uct_dcx_sgl_entry_t *a = arg_a, *b = arg_b;

    return (a->lkey != b->lkey) ? ((a->lkey < b->lkey) ? -1 : 1) :
                                  (a->addr > b->addr) - (a->addr < b->addr);
}


/* Returns 1 if each entry begins behind the previous one, and all end before
 * the next round, as in most layouts. */
static int uct_dcx_sgl_is_ascending(const uct_dcx_sgl_t *layout)
{
    const uct_dcx_sgl_entry_t *first = layout->entries;
    const uct_dcx_sgl_entry_t *entry = first + 1;

    for (; entry < first + layout->num; ++entry) {
        if ((entry->lkey != first->lkey) || (entry->stride != first->stride) ||
            (entry->addr < entry[-1].addr) ||
            (entry->addr - entry[-1].addr < entry[-1].bytes)) {
            return 0;
        }
    }
    return (layout->repeat == 1) ||
           (entry[-1].addr - first->addr + entry[-1].bytes <= first->stride);
}


/* Sorts entries of one stride by the place of their blocks in a round. Returns
 * 1 if they are side by side there, thus overlap nowhere. */
static int uct_dcx_sgl_is_disjoint(uct_dcx_sgl_entry_t *entries, unsigned num,
                                   uint32_t repeat)
{
    const uct_dcx_sgl_entry_t *first = entries;
    uint32_t stride                  = entries->stride;
    unsigned i;

    for (i = 0; i < num; ++i) {
        if (entries[i].stride != stride) {
            return 0;
        }
        if (repeat > 1) {
            entries[i].addr %= stride;
        }
    }

    qsort(entries, num, sizeof(*entries), uct_dcx_sgl_compare);
    for (i = 0; i < num; ++i) {
        if ((i + 1 < num) && (entries[i + 1].lkey == entries[i].lkey)) {
            if (entries[i + 1].addr - entries[i].addr < entries[i].bytes) {
                return 0;
            }
            continue;
        }
        if ((repeat > 1) &&
            (stride - (entries[i].addr - first->addr) < entries[i].bytes)) {
            return 0;
        }
        first = &entries[i + 1];
    }
    return 1;
}


/* Returns the entry below @parent that begins first; @num if there is none. */
static inline unsigned uct_dcx_sgl_child(const uct_dcx_sgl_entry_t *heap,
                                         unsigned num, unsigned parent)
{
    unsigned child = (2 * parent) + 1;

    if (child >= num) {
        return num;
    }
    return ((child + 1 < num) &&
            (uct_dcx_sgl_compare(&heap[child + 1], &heap[child]) < 0)) ?
               child + 1 :
               child;
}


/* Moves the entry at @parent down to its place. */
static void uct_dcx_sgl_sift(uct_dcx_sgl_entry_t *heap, unsigned num,
                             unsigned parent)
{
    uct_dcx_sgl_entry_t moved = heap[parent];
    unsigned child;

    for (;;) {
        child = uct_dcx_sgl_child(heap, num, parent);
        if ((child == num) ||
            (uct_dcx_sgl_compare(&heap[child], &moved) >= 0)) {
            break;
        }
        heap[parent] = heap[child];
        parent       = child;
    }
    heap[parent] = moved;
}


/* Drops the blocks of @first that begin no later than @next. Returns 1 if the
 * last of them reaches into that. */
static int uct_dcx_sgl_skip(uct_dcx_sgl_entry_t *first,
                            const uct_dcx_sgl_entry_t *next)
{
    uint64_t skip = first->reserved - 1;
    uint64_t fit;

    if (first->lkey != next->lkey) {
        first->reserved = 0;
        return 0;
    }

    if (skip > 0) {
        fit  = (next->addr - first->addr) / first->stride;
        skip = (fit < skip) ? fit : skip;
    }

    first->addr += skip * first->stride;
    if (next->addr - first->addr < first->bytes) {
        return 1;
    }

    first->addr += first->stride;
    first->reserved -= skip + 1;
    return 0;
}


/* Takes blocks in the order of their addresses: the entry whose next one begins
 * first is on top of a heap, with the number of its blocks in 'reserved'. */
static int uct_dcx_sgl_heap_overlaps(uct_dcx_sgl_entry_t *heap, unsigned num)
{
    unsigned i;

    for (i = num / 2; i-- > 0;) {
        uct_dcx_sgl_sift(heap, num, i);
    }

    while (num > 1) {
        if (uct_dcx_sgl_skip(heap, heap + uct_dcx_sgl_child(heap, num, 0))) {
            return 1;
        }

        if (heap[0].reserved == 0) {
            heap[0] = heap[--num];
        }
        uct_dcx_sgl_sift(heap, num, 0);
    }
    return 0;
}


/* uct_dcx_sgl_overlaps() of a layout whose entries are out of order */
static int __attribute__((noinline))
uct_dcx_sgl_sorted_overlaps(const uct_dcx_sgl_t *layout)
{
    size_t size                  = layout->num * sizeof(*layout->entries);
    uct_dcx_sgl_entry_t *entries = malloc(size);
    int result                   = 0;
    unsigned i;

    if (entries == NULL) {
        return -1;
    }

    memcpy(entries, layout->entries, size);
    if (!uct_dcx_sgl_is_disjoint(entries, layout->num, layout->repeat)) {
        memcpy(entries, layout->entries, size);
        for (i = 0; i < layout->num; ++i) {
            entries[i].reserved = layout->repeat;
        }
        result = uct_dcx_sgl_heap_overlaps(entries, layout->num);
    }
    free(entries);
    return result;
}


int uct_dcx_sgl_overlaps(const uct_dcx_sgl_t *layout)
{
    if ((layout->num == 1) || /* its stride was checked */
        uct_dcx_sgl_is_ascending(layout)) {
        return 0;
    }
    return uct_dcx_sgl_sorted_overlaps(layout);
}


/* --- use ------------------------------------------------------------------ */

static inline void *uct_dcx_sgl_block(const uct_dcx_sgl_entry_t *entry,
                                      uint32_t number)
{
    return (void *)(uintptr_t)(entry->addr +
                               ((uint64_t)number * entry->stride));
}


/* Copies @count blocks, which begin at every @to_step or @from_step bytes.
 * Needs no call for each element of a matrix column. */
static inline void uct_dcx_sgl_copy(uint8_t *to, size_t to_step,
                                    const uint8_t *from, size_t from_step,
                                    uint32_t bytes, uint32_t count)
{
    if (bytes == sizeof(double)) {
        for (; count > 0; --count, to += to_step, from += from_step) {
            memcpy(to, from, sizeof(double));
        }
    } else {
        for (; count > 0; --count, to += to_step, from += from_step) {
            memcpy(to, from, bytes);
        }
    }
}


uct_dcx_sgl_entry_t uct_dcx_sgl_find(const uct_dcx_sgl_t *layout,
                                     uint64_t offset)
{
    const uint64_t round             = layout->length / layout->repeat;
    const uct_dcx_sgl_entry_t *entry = layout->entries;
    uct_dcx_sgl_entry_t piece;
    uint64_t rest;

    assert(offset < layout->length);
    for (rest = offset % round; rest >= entry->bytes; ++entry) {
        rest -= entry->bytes;
    }

    piece = *entry;
    piece.addr += ((offset / round) * piece.stride) + rest;
    piece.bytes -= rest;
    return piece;
}


void uct_dcx_sgl_gather(const uct_dcx_sgl_t *layout, void *buffer)
{
    const uct_dcx_sgl_entry_t *entry = layout->entries;
    const uct_dcx_sgl_entry_t *end   = entry + layout->num;
    uint8_t *to                      = buffer;
    uint32_t i;

    if (layout->num == 1) {
        uct_dcx_sgl_copy(to, entry->bytes, uct_dcx_sgl_block(entry, 0),
                         entry->stride, entry->bytes, layout->repeat);
        return;
    }

    for (i = 0; i < layout->repeat; ++i) {
        for (entry = layout->entries; entry < end; ++entry) {
            uct_dcx_sgl_copy(to, 0, uct_dcx_sgl_block(entry, i), 0,
                             entry->bytes, 1);
            to += entry->bytes;
        }
    }
}


void uct_dcx_sgl_scatter(const uct_dcx_sgl_t *layout, const void *buffer)
{
    const uct_dcx_sgl_entry_t *entry = layout->entries;
    const uct_dcx_sgl_entry_t *end   = entry + layout->num;
    const uint8_t *from              = buffer;
    uint32_t i;

    if (layout->num == 1) {
        uct_dcx_sgl_copy(uct_dcx_sgl_block(entry, 0), entry->stride, from,
                         entry->bytes, entry->bytes, layout->repeat);
        return;
    }

    for (i = 0; i < layout->repeat; ++i) {
        for (entry = layout->entries; entry < end; ++entry) {
            uct_dcx_sgl_copy(uct_dcx_sgl_block(entry, i), 0, from, 0,
                             entry->bytes, 1);
            from += entry->bytes;
        }
    }
}


uct_dcx_sgl_form_t uct_dcx_sgl_pick(const uct_dcx_sgl_t *layout,
                                    const uct_dcx_sgl_limits_t *limits)
{
    uint64_t num_pieces = uct_dcx_sgl_num_pieces(layout);
    int can_copy        = layout->length <= limits->max_copy;

    if (num_pieces <= limits->max_plain) {
        return UCT_DCX_SGL_FORM_PLAIN;
    }

    if (can_copy && ((layout->length <= limits->copy) ||
                     (layout->length / num_pieces <= limits->copy_piece))) {
        return UCT_DCX_SGL_FORM_COPY;
    }

    if (uct_dcx_sgl_num_klm(layout) <= limits->max_klm) {
        return UCT_DCX_SGL_FORM_KEY;
    }
    return can_copy ? UCT_DCX_SGL_FORM_COPY : UCT_DCX_SGL_FORM_NONE;
}
