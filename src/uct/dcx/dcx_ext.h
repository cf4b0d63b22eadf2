/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The transport's table for what stands beside it (src/views): layouts whose
 * entries their user writes, memory that they name, and ranges of addresses
 * that stand for such a layout. Nothing in the transport needs a user of it.
 *
 * @md is an open memory domain of dcx. Any thread may call any function; one
 * layout is used by one thread at a time. Lengths are in bytes. Functions that
 * return an error have logged it, unless they say otherwise, and have changed
 * nothing.
 */
#ifndef UCT_DCX_EXT_H
#define UCT_DCX_EXT_H

#include <ucs/memory/memory_type.h>
#include <uct/api/uct.h>


enum {
    UCT_DCX_EXT_SIZES     = 3,       /* of keys */
    UCT_DCX_EXT_MAX_BLOCK = 65535,   /* bytes and stride of a repeated entry */
    UCT_DCX_EXT_MAX_PIECE = 1 << 30  /* bytes of any other entry */
};


/* Limits of a domain, or with NULL in its place those before one is open */
typedef struct uct_dcx_ext_attr {
    int      has_keys;   /* keys can be made: the device has UMR, and an
                          * interface was opened */
    unsigned max_depth;  /* deepest nesting of layouts; 1: in memory alone */
    int      has_nests;  /* repeated entries may lie in layouts with such */
    size_t   max_pieces; /* of the largest key; before a domain is open, by
                          * options */
    size_t   sizes[UCT_DCX_EXT_SIZES]; /* pieces that keys take, ascending */
    size_t   min_length; /* bytes that the processor copies during a UMR, */
    size_t   min_block;  /* ... and for each entry of it, or defaults */
} uct_dcx_ext_attr_t;


/* Memory that is registered, for entries to name */
typedef struct uct_dcx_region uct_dcx_ext_region_t;

/* A layout is a handle of memory as in dcx.h, but that its user writes its
 * entries. Nobody looks whether these overlap. The user holds the memory that
 * they name for as long as the layout is used. */
typedef struct uct_dcx_mem_layout uct_dcx_ext_layout_t;

typedef struct uct_dcx_ext_entry {
    uint64_t addr;     /* of the first byte: an offset if @lkey is a layout's */
    uint32_t bytes;    /* of a block, at least 1 */
    uint32_t stride;   /* from a block to the next; 0 if there is one */
    uint32_t lkey;     /* of reg() or set() */
    uint32_t reserved; /* 0 */
} uct_dcx_ext_entry_t;

/* What the entries of a layout are */
typedef struct uct_dcx_ext_form {
    uint64_t start;   /* address of the first byte, by the layout's key */
    uint64_t length;  /* of all data: blocks of all entries, all rounds */
    uint32_t num;     /* entries: no more than make() was told, or one fewer if
                       * they are repeated */
    uint32_t repeat;  /* rounds: block 0 of each entry, block 1 of each, ...;
                       * 1: each entry is one piece */
    unsigned depth;   /* of nesting; 1: all entries lie in memory */
    int      is_dest; /* to be written to by a peer, or else read */
} uct_dcx_ext_form_t;


typedef struct uct_dcx_ext_ops {
    void         (*query)(uct_md_h md, uct_dcx_ext_attr_t *attr);

    /* Registers memory; @flags are UCT_MD_MEM_*. */
    ucs_status_t (*reg)(uct_md_h md, void *address, size_t length,
                        uint64_t flags, uct_dcx_ext_region_t **region_p,
                        uint32_t *lkey_p);
    void         (*dereg)(uct_md_h md, uct_dcx_ext_region_t *region);

    /* Makes a layout of up to @max pieces, one of the domain's sizes;
     * @entries_p has room for as many. Nothing is set. Only UCS_ERR_NO_MEMORY
     * and UCS_ERR_IO_ERROR are logged; UCS_ERR_NO_RESOURCE: all keys are in use
     * (UCX_DCX_UMR_LAYOUTS). */
    ucs_status_t (*make)(uct_md_h md, size_t max,
                         uct_dcx_ext_layout_t **layout_p,
                         uct_dcx_ext_entry_t **entries_p);

    /* Frees it. When it returns, nobody reaches anything by it. */
    void         (*destroy)(uct_dcx_ext_layout_t *layout);

    /* Gives the entries to the device; nothing uses the layout until wait() has
     * returned UCS_OK, but other layouts may name it. @lkey_p is its key from
     * now on. Waits while the device's queue is full. UCS_ERR_TIMED_OUT: the
     * queue does not move; the layout is revoked. */
    ucs_status_t (*set)(uct_dcx_ext_layout_t *layout,
                        const uct_dcx_ext_form_t *form, uint32_t *lkey_p);

    /* Returns UCS_OK as soon as the device has the layout; UCS_ERR_NO_ELEM, not
     * logged, if its memory was deregistered; UCS_ERR_TIMED_OUT as set(). */
    ucs_status_t (*wait)(uct_dcx_ext_layout_t *layout);

    /* Takes it from the device: nobody reaches anything by it any more. */
    void         (*revoke)(uct_dcx_ext_layout_t *layout);

    /* --- places ---------------------------------------------------------- */

    /* Lets domains that are opened from now on register memory of @type: @max
     * places of @length bytes each. Place i begins at @base + i * @length.
     * @length and @max are powers of two, @base is a multiple of their product.
     * Called once. */
    void         (*enable)(ucs_memory_type_t type, uint64_t base,
                           uint64_t length, unsigned max);

    /* Makes place @index stand for a layout, or with NULL for nothing:
     * registering its addresses gives that. Nobody uses the place meanwhile.
     * The handle of a place is always the same one. */
    ucs_status_t (*place)(uct_md_h md, unsigned index,
                          uct_dcx_ext_layout_t *layout);

    /* Calls @watch with each domain that was opened, and with each that is
     * about to be closed, in the thread that does so. */
    void         (*watch)(void (*watch)(uct_md_h md, int is_open));
} uct_dcx_ext_ops_t;


extern const uct_dcx_ext_ops_t uct_dcx_ext;

#endif
