/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The transport's table for src/views: layouts whose entries the caller writes,
 * memory that they name, and ranges of addresses that stand for such a layout.
 * The transport itself never calls it.
 *
 * @md is an open memory domain of dcx. Any thread may call any function; one
 * layout is used by one thread at a time. Lengths are in bytes. Unless a
 * function says otherwise, it logs an error before it returns it, except
 * UCS_ERR_NO_MEMORY, and an error changes nothing.
 */
#ifndef UCT_DCX_EXT_H
#define UCT_DCX_EXT_H

#include <ucs/memory/memory_type.h>
#include <uct/api/uct.h>


enum {
    UCT_DCX_EXT_SIZES     = 4,      /* number of key sizes */
    UCT_DCX_EXT_MAX_BLOCK = 65535,  /* limit of @bytes and @stride of a
                                     * repeated entry */
    UCT_DCX_EXT_MAX_PIECE = 1 << 30 /* limit of @bytes of any other entry */
};


/* Limits of a domain; with @md = NULL, limits before one is open */
typedef struct uct_dcx_ext_attr {
    int has_keys;       /* keys can be made: the device has UMR, and an
                         * interface was opened since enable() */
    unsigned max_depth; /* deepest nesting of layouts; 1: no nesting */
    int has_nests;      /* repeated entries may lie in layouts with repeated
                         * entries */
    size_t max_pieces;  /* capacity of the largest key; before a domain is
                         * open, the limit of the options, 0 if they are
                         * invalid */
    size_t sizes[UCT_DCX_EXT_SIZES]; /* capacities of keys in pieces,
                                      * ascending; 0 before one is open */
    size_t min_length; /* bytes that the processor copies in the time of a UMR;
                        * at least the default */
    size_t min_block;  /* bytes that it copies in the time that one more entry
                        * takes; at least the default */
    int has_tags;      /* before a domain is open: options require devices to
                        * match tags */
} uct_dcx_ext_attr_t;


/* Registered memory that entries name */
typedef struct uct_dcx_region uct_dcx_ext_region_t;

/* A memory handle as in dcx.h, except that the caller writes its entries.
 * Entries are not checked for overlap. The caller keeps the memory that they
 * name registered while the layout is used. */
typedef struct uct_dcx_mem_layout uct_dcx_ext_layout_t;

typedef struct uct_dcx_ext_entry {
    uint64_t addr;     /* address of the first byte; if @lkey is a layout's,
                        * addresses begin at its @start */
    uint32_t bytes;    /* length of a block, at least 1 */
    uint32_t stride;   /* distance from a block to the next; 0 for a single
                        * block */
    uint32_t lkey;     /* key that reg() or set() returned */
    uint32_t reserved; /* 0 */
} uct_dcx_ext_entry_t;

/* Describes the entries of a layout */
typedef struct uct_dcx_ext_form {
    uint64_t start;  /* address of the first byte, by the layout's key */
    uint64_t length; /* total of all data: blocks of all entries, all rounds */
    uint32_t num;    /* entries: at most @max of make(), or one fewer if they
                      * are repeated */
    uint32_t repeat; /* rounds: block 0 of each entry, block 1 of each, ...;
                      * 1: each entry is one piece */
    unsigned depth;  /* nesting; 1: all entries lie in memory */
    int is_dest;     /* peers write to it; 0: peers read */
} uct_dcx_ext_form_t;


typedef struct uct_dcx_ext_ops {
    void (*query)(uct_md_h md, uct_dcx_ext_attr_t *attr);

    /* Returns the memory types of GPUs that devices register without a dma-buf,
     * a mask of UCS_BIT(UCS_MEMORY_TYPE_*). */
    uint64_t (*peer_types)(void);

    /* Registers memory until dereg(); @flags are UCT_MD_MEM_*. Returns
     * UCS_ERR_UNSUPPORTED for memory of a GPU, which is not logged. */
    ucs_status_t (*reg)(uct_md_h md, void *address, size_t length,
                        uint64_t flags, uct_dcx_ext_region_t **region_p,
                        uint32_t *lkey_p);
    void (*dereg)(uct_md_h md, uct_dcx_ext_region_t *region);

    /* Makes a layout of up to @max pieces; it has no entries yet. @entries_p
     * has room for @max entries, until destroy(). Logs UCS_ERR_NO_MEMORY and
     * UCS_ERR_IO_ERROR. Does not log UCS_ERR_EXCEEDS_LIMIT (no key is large
     * enough) and UCS_ERR_NO_RESOURCE (all keys are in use, see
     * UCX_DCX_UMR_LAYOUTS). */
    ucs_status_t (*make)(uct_md_h md, size_t max,
                         uct_dcx_ext_layout_t **layout_p,
                         uct_dcx_ext_entry_t **entries_p);

    /* Frees the layout. Peers have lost access when it returns. */
    void (*destroy)(uct_dcx_ext_layout_t *layout);

    /* Gives the entries to the device. The layout must not be used until wait()
     * has returned UCS_OK, but other layouts may name it. Stores the key that
     * is valid from now on in @lkey_p. Waits while the device's queue is full,
     * or has not executed the previous set(). Returns UCS_ERR_IO_ERROR if the
     * queue is unusable. */
    ucs_status_t (*set)(uct_dcx_ext_layout_t *layout,
                        const uct_dcx_ext_form_t *form, uint32_t *lkey_p);

    /* Waits until the device has the layout, and returns UCS_OK. Returns
     * UCS_ERR_NO_ELEM, not logged, if it was revoked or its memory was
     * deregistered, and UCS_ERR_IO_ERROR if the UMR failed or the queue is
     * unusable. */
    ucs_status_t (*wait)(uct_dcx_ext_layout_t *layout);

    /* Removes the layout from the device. Its key gives no access when this
     * returns. */
    void (*revoke)(uct_dcx_ext_layout_t *layout);

    /* --- places ---------------------------------------------------------- */

    /* Lets domains that are opened from now on register memory of @type: @max
     * places of @length bytes each. Place i begins at @base + i * @length.
     * @length and @max are powers of two; @base is a multiple of their product.
     * No memory may be mapped there. Called once. */
    void (*enable)(ucs_memory_type_t type, uint64_t base, uint64_t length,
                   unsigned max);

    /* Makes place @index stand for a layout, or for nothing if @layout is NULL.
     * Call it after each set(), which may change the key, and with NULL before
     * destroy(). Registering the addresses of the place returns its handle,
     * which is always the same one. The place must not be used meanwhile. */
    ucs_status_t (*place)(uct_md_h md, unsigned index,
                          uct_dcx_ext_layout_t *layout);

    /* Sets a hook. It is called for each domain that was opened, and for each
     * that is about to be closed, in the thread that does so. */
    void (*watch)(void (*watch)(uct_md_h md, int is_open));
} uct_dcx_ext_ops_t;


extern const uct_dcx_ext_ops_t uct_dcx_ext;

#endif
