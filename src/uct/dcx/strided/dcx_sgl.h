/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * A layout: the places of the bytes that one key names, in order. Addresses in
 * a strided mkey (dcx_key.h) begin at @start, which is 0 by default: then they
 * are offsets into its data. Plain data that owns nothing: no device, no lock,
 * and the same in each process.
 *
 *   LIST         entry 0, entry 1, ...                             (KLMs)
 *   INTERLEAVED  block 0 of entry 0, of entry 1, ..., block 1 of entry 0, ...:
 *                @repeat rounds                             (repeated block)
 *
 * strided/ is the room of layouts: their handles (dcx_mem_layout.h), and mkeys
 * that a work queue entry configures: UMR, user-mode memory registration
 * (dcx_key.h). It knows regions, but neither ports nor interfaces.
 */
#ifndef UCT_DCX_SGL_H
#define UCT_DCX_SGL_H

#include <stddef.h>
#include <stdint.h>


enum {
    /* An INTERLEAVED entry: bytes of a block, and its stride. The repeated
     * block has 16 bits for either (mlx5dv.h, struct
     * mlx5_wqe_umr_repeat_ent_seg) */
    UCT_DCX_SGL_MAX_BLOCK = 65535,

    /* bytes of a LIST's entry: "up to 2GB" (mlx5dv.h, struct
     * mlx5_wqe_umr_klm_seg), reduced to a power of two */
    UCT_DCX_SGL_MAX_PIECE = 1 << 30,

    /* klm_octowords has 16 bits and is a multiple of four (mlx5dv.h, struct
     * mlx5_wqe_umr_ctrl_seg); the repeated block's own header is one of them */
    UCT_DCX_SGL_MAX_ENTRIES = 65528,

    UCT_DCX_SGL_KLM_ALIGN = 4
};


typedef enum uct_dcx_sgl_kind {
    UCT_DCX_SGL_LIST,
    UCT_DCX_SGL_INTERLEAVED
} uct_dcx_sgl_kind_t;


typedef struct uct_dcx_sgl_entry {
    uint64_t addr;   /* address of its first byte; an offset if @lkey is that
                      * of a strided mkey */
    uint32_t bytes;  /* of a block; never 0 */
    uint32_t stride; /* bytes from a block to the next; 0 in a LIST */
    uint32_t lkey;
    uint32_t reserved; /* 0: all bytes count for equality */
} uct_dcx_sgl_entry_t;


/* The content, from @length on, determines @hash and equality. */
typedef struct uct_dcx_sgl {
    uint32_t max;              /* maximum of entries */
    uint8_t is_based;          /* the UMR sets the start: the key has, or
                                * had, one that is not 0 */
    uint8_t is_list;           /* never INTERLEAVED: the device repeats no
                                * blocks over other layouts */
    uint16_t num_mems;         /* of @mems; 0: names only memory */
    struct uct_dcx_mem **mems; /* handles that a handle's layout names; not
                                * kept with the layout */
    uint64_t start;            /* address of the first byte in the key; 0 if
                                * it is to be found by its content */
    uint64_t hash;
    uint64_t length; /* bytes of all data: @repeat times those of
                      * the entries' blocks */
    uint32_t kind;   /* uct_dcx_sgl_kind_t */
    uint32_t access; /* IBV_ACCESS_LOCAL_WRITE, _REMOTE_READ,
                      * _REMOTE_WRITE; no atomics */
    uint32_t repeat; /* 1 in a LIST */
    uint32_t num;    /* entries, at least one when the layout has ended */
    uct_dcx_sgl_entry_t entries[];
} uct_dcx_sgl_t;


/* Returns the bytes of a layout with @num entries. */
static inline size_t uct_dcx_sgl_size(unsigned num)
{
    return sizeof(uct_dcx_sgl_t) + (num * sizeof(uct_dcx_sgl_entry_t));
}


/* Returns the number of translations of 16 bytes that a key needs, a multiple
 * of four, as UMR requires. */
static inline unsigned uct_dcx_sgl_num_klm(const uct_dcx_sgl_t *layout)
{
    unsigned num = layout->num + (layout->kind == UCT_DCX_SGL_INTERLEAVED);

    return (num + UCT_DCX_SGL_KLM_ALIGN - 1) & ~(UCT_DCX_SGL_KLM_ALIGN - 1u);
}


/* Returns the number of pieces; the bytes of a single piece are contiguous. */
static inline uint64_t uct_dcx_sgl_num_pieces(const uct_dcx_sgl_t *layout)
{
    return (uint64_t)layout->repeat * layout->num;
}


/* Returns address and bytes of piece @index; other fields are those of its
 * entry. */
static inline uct_dcx_sgl_entry_t uct_dcx_sgl_piece(const uct_dcx_sgl_t *layout,
                                                    uint64_t index)
{
    uct_dcx_sgl_entry_t piece = layout->entries[index % layout->num];

    piece.addr += (index / layout->num) * piece.stride;
    return piece;
}


/* Returns the rest of a piece from byte @offset of the data on; the data is
 * longer than @offset. */
uct_dcx_sgl_entry_t uct_dcx_sgl_find(const uct_dcx_sgl_t *layout,
                                     uint64_t offset);


/* Blocks of memory at a constant stride */
typedef struct uct_dcx_sgl_run {
    uint64_t addr;   /* of the first */
    uint64_t bytes;  /* of a block */
    uint64_t stride; /* bytes from a block to the next; ignored if there is only
                      * one */
    uint64_t count;  /* blocks */
    uint32_t lkey;
} uct_dcx_sgl_run_t;


/* Returns NULL, or the fault of a run as the end of a sentence. */
const char *uct_dcx_sgl_check(const uct_dcx_sgl_run_t *run);

/* Begins an empty layout in memory of uct_dcx_sgl_size(max) bytes. */
void uct_dcx_sgl_begin(uct_dcx_sgl_t *layout, unsigned max, uint32_t access);

/* Appends a piece of a list that is not adjacent to the last one. Returns 0 if
 * there is no room for it, or it is too long. Used for long lists. */
static inline int uct_dcx_sgl_append(uct_dcx_sgl_t *layout, uint64_t addr,
                                     uint64_t bytes, uint32_t lkey)
{
    uct_dcx_sgl_entry_t *entry = &layout->entries[layout->num];

    if ((layout->num == layout->max) || (bytes > UCT_DCX_SGL_MAX_PIECE)) {
        return 0;
    }

    entry->addr     = addr;
    entry->bytes    = (uint32_t)bytes;
    entry->stride   = 0;
    entry->lkey     = lkey;
    entry->reserved = 0;
    layout->length += bytes;
    layout->num++;
    return 1;
}

/* Checks a run, and appends all its blocks. Blocks adjacent to the last piece
 * are merged with it. A single run remains one entry for any count, if the
 * device has a form for it. Returns NULL, or the fault of the run as the end of
 * a sentence; then the layout is unusable. */
const char *uct_dcx_sgl_add(uct_dcx_sgl_t *layout,
                            const uct_dcx_sgl_run_t *run);

/* Returns 1 if the device has a form for rounds of blocks of these runs, which
 * have the same count: block 0 of each, block 1 of each, ... */
int uct_dcx_sgl_has_rounds(const uct_dcx_sgl_run_t *runs, unsigned num);

/* Appends these rounds to an empty layout: as one entry for each run if the
 * device has a form for them, otherwise piece by piece. Each run was checked,
 * and so was the sum of their bytes. Returns NULL, or an error text. */
const char *uct_dcx_sgl_add_rounds(uct_dcx_sgl_t *layout,
                                   const uct_dcx_sgl_run_t *runs, unsigned num);

/* Ends a layout: finds its shortest form, and its hash. There is at least one
 * entry. Returns as uct_dcx_sgl_overlaps() if it may be written to, otherwise
 * 0. */
int uct_dcx_sgl_end(uct_dcx_sgl_t *layout);

/* Returns 1 if a byte belongs to two pieces, which is wrong for a destination;
 * 0 if none does; -1 if memory is short. Compares memory of the same key. */
int uct_dcx_sgl_overlaps(const uct_dcx_sgl_t *layout);

/* Returns 1 if both have the same content and rights. Both have ended. */
int uct_dcx_sgl_is_equal(const uct_dcx_sgl_t *a, const uct_dcx_sgl_t *b);

/* Copy with the processor: from the pieces to @buffer, and from @buffer to the
 * pieces. Addresses are those of this process. */
void uct_dcx_sgl_gather(const uct_dcx_sgl_t *layout, void *buffer);
void uct_dcx_sgl_scatter(const uct_dcx_sgl_t *layout, const void *buffer);


/* Ways of an operation to move data with a layout */
typedef enum uct_dcx_sgl_form {
    UCT_DCX_SGL_FORM_NONE,  /* none: too much data */
    UCT_DCX_SGL_FORM_PLAIN, /* a scatter entry of its WQE for each piece */
    UCT_DCX_SGL_FORM_COPY,  /* the processor copies to or from a buffer */
    UCT_DCX_SGL_FORM_KEY    /* a strided mkey */
} uct_dcx_sgl_form_t;

/* Limits of the operation, and of the options */
typedef struct uct_dcx_sgl_limits {
    unsigned max_plain; /* pieces that become scatter entries */
    size_t max_copy;    /* bytes that fit in a buffer */
    size_t copy;        /* bytes up to which all data is copied */
    size_t copy_piece;  /* bytes up to which an average piece is copied */
    unsigned max_klm;   /* translations of a key, 0: there are none */
} uct_dcx_sgl_limits_t;

/* Returns the way to move the data of a layout. */
uct_dcx_sgl_form_t uct_dcx_sgl_pick(const uct_dcx_sgl_t *layout,
                                    const uct_dcx_sgl_limits_t *limits);

#endif
