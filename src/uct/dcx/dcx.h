/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * <uct/dcx/dcx.h>: what dcx has beyond UCT. Build with `pkg-config --cflags
 * --libs dcx`.
 *
 * A layout is a memory handle (uct_mem_h) for bytes that do not lie side by
 * side: columns of a matrix, a face of a box, pieces of several buffers. All
 * zero-copy operations take it, and its remote key lets a peer put to and get
 * from these bytes as if they were one buffer. The device gathers and scatters;
 * nothing is packed.
 *
 * Addresses in a layout are offsets: its bytes are 0 to length - 1 in the order
 * of the description. So uct_iov_t.buffer is an offset for the local side, and
 * 'remote_addr' one for the peer.
 *
 *     uct_dcx_layout_create(iface, max_pieces, &memh);
 *     uct_dcx_layout_set(memh, &params);
 *     while ((status = uct_dcx_layout_test(memh)) == UCS_INPROGRESS) ;
 *     ... uct_md_mkey_pack(md, memh, buffer), uct_ep_put_zcopy(..., memh) ...
 *     uct_md_mem_dereg(md, memh);
 *
 * A handle is used by one thread at a time; different handles by different
 * threads at the same time, whatever the thread mode of the interface is.
 *
 * What is wrong is logged by whoever returns the error, with the name of the
 * argument.
 */
#ifndef UCT_DCX_H
#define UCT_DCX_H

#include <uct/api/uct.h>

BEGIN_C_DECLS

/* An entry of a description: a run of blocks */
typedef struct uct_dcx_block {
    uint64_t  address; /* of the first block: in memory of 'memh', or an offset
                        * in it if that is a layout */
    size_t    length;  /* bytes of a block; 0: the entry is left out */
    size_t    skip;    /* bytes from the end of a block to the beginning of the
                        * next; not looked at if 'repeat' is 1 */
    uct_mem_h memh;    /* of the same memory domain: of uct_md_mem_reg(), or a
                        * layout that was set (nested, 4 deep at most, or as
                        * the device takes; while others name a layout it gets
                        * no deeper) */
} uct_dcx_block_t;


/*
 * Block 0 of entry 0, of entry 1, ..., then block 1 of entry 0, of entry 1,
 * ...: 'repeat' times round. A list of pieces (composite) is one with repeat =
 * 1. Blocks do not overlap, unless 'access' lets nobody write to them; those of
 * one handle are compared.
 */
typedef struct uct_dcx_layout_params {
    uint64_t              access; /* UCT_MD_MEM_ACCESS_*, no atomics; 0: for
                                   * operations of this process, which may write
                                   * to it. A rendezvous needs REMOTE_GET. What
                                   * it gives is limited by what the memory
                                   * gives. */
    size_t                repeat; /* at least 1 */
    size_t                num;    /* entries, at least 1 */
    const uct_dcx_block_t *blocks;
} uct_dcx_layout_params_t;


/*
 * Takes a key for layouts of up to 'max_pieces' pieces, as
 * uct_dcx_layout_pieces() counts them. It has no layout yet.
 *
 * iface: of dcx. The handle belongs to its memory domain, and may outlive it.
 * Used by the thread that uses the interface.
 *
 * The handle is the caller's, to be freed by uct_md_mem_dereg(), with or
 * without UCT_MD_MEM_DEREG_FLAG_INVALIDATE: when that returns, peers have lost
 * access. That is before the memory it names is deregistered; memory that goes
 * first takes the layouts that name it, and those that name these, out of use,
 * before uct_md_mem_dereg() returns or invokes a completion.
 *
 * Returns UCS_ERR_INVALID_PARAM   iface is not of dcx, max_pieces is 0
 *         UCS_ERR_EXCEEDS_LIMIT   the device's keys do not take as many, or all
 *                                 UCX_DCX_UMR_LAYOUTS keys are in use
 *         UCS_ERR_UNSUPPORTED     the device, or its kernel driver, has no UMR;
 *                                 not logged
 *         UCS_ERR_NO_MEMORY, UCS_ERR_IO_ERROR
 */
ucs_status_t uct_dcx_layout_create(uct_iface_h iface, size_t max_pieces,
                                   uct_mem_h *memh_p);

/*
 * Gives the layout to the device, in the place of the one before. The remote
 * key stays the same, so that peers need not be told; but it is another one if
 * a peer may have it (it was packed, or a rendezvous was of it), and memory was
 * deregistered that the layout before named: uct_dcx_layout_test() returns
 * UCS_ERR_NO_ELEM in between. No
 * operation of this process or of a peer uses it meanwhile, nor one that names
 * it: which goes on to do so, and has the bytes of the new one at the same
 * offsets. What is there already is not given to the device again. 'params' and
 * the blocks are not needed after the call. What is set one after the other
 * goes to the device under one doorbell, that of uct_dcx_layout_test(). Blocks
 * that may be written to are compared: entries in ascending order take a step
 * each, others are sorted, and take a step for each pair of entries that lie
 * between each other; a step for each block if their distances differ.
 *
 * Returns UCS_ERR_INVALID_PARAM   the layout of before remains
 *         UCS_ERR_EXCEEDS_LIMIT   more pieces than uct_dcx_layout_create() was
 *                                 told
 *         UCS_ERR_NO_RESOURCE     the one set before is on its way still, or too
 *                                 many of others: test, then again; not logged
 *         UCS_ERR_IO_ERROR        the queue for it has failed; was logged
 *         UCS_ERR_NO_MEMORY       to look whether blocks overlap
 */
ucs_status_t uct_dcx_layout_set(uct_mem_h memh,
                                const uct_dcx_layout_params_t *params);

/*
 * Whether the device has it: until then the handle must not be used, but for
 * others that name it. Does not wait. Returns UCS_OK, UCS_INPROGRESS,
 * UCS_ERR_IO_ERROR (why was logged), UCS_ERR_NO_ELEM (nothing was set, or its
 * memory was deregistered; not logged), UCS_ERR_INVALID_PARAM (it is no
 * layout).
 */
ucs_status_t uct_dcx_layout_test(uct_mem_h memh);

/* Bytes of the layout that was set last */
size_t uct_dcx_layout_length(uct_mem_h memh);

/*
 * Pieces that a key needs for it, which is what uct_dcx_layout_create() wants
 * to know: of entries with bytes as many as there are, and one for the
 * repetition, if blocks and their distances are below 64 KiB; else 'repeat'
 * times as many. A block of more than 1 GiB is one for each GiB begun.
 */
size_t uct_dcx_layout_pieces(const uct_dcx_layout_params_t *params);


/* What the keys of a memory domain have done so far: for operations with
 * strides, which share a cache of them, and for handles */
typedef struct uct_dcx_layout_stats {
    uint64_t hits;        /* operations that found their layout in a key */
    uint64_t misses;      /* ... for which the device was given it */
    uint64_t evictions;   /* ... in the place of another one */
    uint64_t exhausted;   /* ... that found no key */
    uint64_t invalidated; /* layouts that went with their memory */
    uint64_t failures;    /* of the device */
    uint64_t sets;        /* uct_dcx_layout_set() */
    uint64_t doorbells;   /* for all of them */
    unsigned num_keys;    /* that there are */
    unsigned num_layouts; /* in them */
} uct_dcx_layout_stats_t;


/* Returns UCS_ERR_INVALID_PARAM if the memory domain is not of dcx. */
ucs_status_t uct_dcx_layout_query(uct_md_h md, uct_dcx_layout_stats_t *stats);

END_C_DECLS

#endif
