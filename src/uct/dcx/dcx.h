/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * <uct/dcx/dcx.h>: layouts of strided memory, and puts and gets of lists: dcx's
 * extensions of UCT. Build with `pkg-config --cflags --libs dcx`.
 *
 * A layout is a memory handle (uct_mem_h) for bytes that do not lie side by
 * side: columns of a matrix, a face of a box, pieces of several buffers. All
 * zero-copy operations accept it. With its remote key a peer puts to and gets
 * from these bytes as if they were one buffer. The device gathers and scatters;
 * nothing is packed.
 *
 * Addresses in a layout are offsets: its bytes are 0 to length - 1, in the
 * order of the description. uct_iov_t.buffer is therefore an offset for the
 * local side, and @remote_addr is one for the peer.
 *
 *     uct_dcx_layout_create(iface, max_pieces, &memh);
 *     uct_dcx_layout_set(memh, &params);
 *     while ((status = uct_dcx_layout_test(memh)) == UCS_INPROGRESS) ;
 *     ... uct_md_mkey_pack(md, memh, buffer), uct_ep_put_zcopy(..., memh) ...
 *     uct_md_mem_dereg(md, memh);
 *
 * One thread at a time uses a handle. Different threads may use different
 * handles at the same time, in any thread mode of the interface.
 *
 * Each function that returns an error logs it first, with the name of the wrong
 * argument, unless it says otherwise.
 */
#ifndef UCT_DCX_H
#define UCT_DCX_H

#include <uct/api/uct.h>

BEGIN_C_DECLS

/* An entry of a description: a run of blocks */
typedef struct uct_dcx_block {
    uint64_t address; /* address of the first block, in memory of @memh; an
                       * offset if @memh is a layout */
    size_t length;    /* bytes of a block; 0: the entry is skipped */
    size_t skip;      /* bytes from the end of a block to the beginning of the
                       * next; ignored if @repeat is 1 */
    uct_mem_h memh;   /* handle in the same memory domain: from
                       * uct_md_mem_reg(), or a layout that was set. Nesting is
                       * limited to 4 levels, or fewer if the device supports
                       * fewer. A layout that others name cannot become
                       * deeper. */
} uct_dcx_block_t;


/*
 * Order of the bytes: block 0 of entry 0, of entry 1, ..., then block 1 of
 * entry 0, of entry 1, ...; @repeat rounds. A list of pieces (composite) has
 * @repeat = 1. Blocks must not overlap if @access permits writing; blocks with
 * the same @memh are checked.
 */
typedef struct uct_dcx_layout_params {
    uint64_t access; /* UCT_MD_MEM_ACCESS_*, no atomics; 0: only
                      * operations of this process, which may
                      * write. A rendezvous needs REMOTE_GET. The
                      * access of the memory limits it. */
    size_t repeat;   /* at least 1 */
    size_t num;      /* entries, at least 1 */
    const uct_dcx_block_t *blocks;
} uct_dcx_layout_params_t;


/*
 * Creates a layout handle with a key for up to @max_pieces pieces, as
 * uct_dcx_layout_pieces() counts them. It has no layout yet.
 *
 * @iface: an interface of dcx. The handle belongs to its memory domain, and may
 * outlive the interface. Call this from the thread that uses @iface.
 *
 * The caller owns the handle, and frees it with uct_md_mem_dereg(), with or
 * without UCT_MD_MEM_DEREG_FLAG_INVALIDATE. When that returns, peers have lost
 * access. Free the handle before you deregister the memory that it names. If
 * the memory is deregistered first, the layouts that name it become invalid,
 * and so do layouts that name these, before uct_md_mem_dereg() returns or
 * invokes a completion.
 *
 * Returns UCS_ERR_INVALID_PARAM   @iface is not of dcx, or @max_pieces is 0
 *         UCS_ERR_EXCEEDS_LIMIT   @max_pieces exceeds the device's limit or
 *                                 UCX_DCX_UMR_MAX_ENTRIES, or all
 *                                 UCX_DCX_UMR_LAYOUTS keys of that size are in
 *                                 use
 *         UCS_ERR_UNSUPPORTED     the device, or its kernel driver, has no UMR;
 *                                 not logged
 *         UCS_ERR_NO_MEMORY, UCS_ERR_IO_ERROR
 */
ucs_status_t uct_dcx_layout_create(uct_iface_h iface, size_t max_pieces,
                                   uct_mem_h *memh_p);

/*
 * Sets the layout of @memh; it replaces the previous one. Returns before the
 * device has it: see uct_dcx_layout_test(). @params and its blocks are not used
 * after the call.
 *
 * The remote key stays the same, with one exception. It changes if a peer may
 * have it (it was packed, or used in a rendezvous) and memory that the previous
 * layout named was deregistered. In between, uct_dcx_layout_test() returns
 * UCS_ERR_NO_ELEM.
 *
 * No operation of this process or of a peer may use the handle meanwhile, nor a
 * layout that names it. Such a layout stays valid, and has the new bytes at the
 * same offsets.
 *
 * Cost: an unchanged layout is not written again. Several layouts that are set
 * in a row share one doorbell, rung by uct_dcx_layout_test(). Blocks that may
 * be written are checked for overlap: one step for each entry if entries are in
 * ascending order. Other entries are sorted, and each pair of interleaved
 * entries takes one step, or one for each block if their strides differ.
 *
 * Returns UCS_ERR_INVALID_PARAM   the previous layout remains
 *         UCS_ERR_EXCEEDS_LIMIT   more pieces than the @max_pieces of
 *                                 uct_dcx_layout_create()
 *         UCS_ERR_NO_RESOURCE     the previous layout, or too many others, are
 *                                 still on their way: test, and try again; not
 *                                 logged
 *         UCS_ERR_IO_ERROR        the queue for layouts has failed; was logged
 *         UCS_ERR_NO_MEMORY       to check whether blocks overlap, or for
 *                                 another key
 */
ucs_status_t uct_dcx_layout_set(uct_mem_h memh,
                                const uct_dcx_layout_params_t *params);

/*
 * Returns UCS_OK if the device has the layout. Before that, only other layouts
 * may name the handle; nothing else may use it. Does not wait. Returns
 * UCS_INPROGRESS, UCS_ERR_IO_ERROR (the cause was logged), UCS_ERR_NO_ELEM
 * (nothing was set, or its memory was deregistered; not logged) or
 * UCS_ERR_INVALID_PARAM (@memh is no layout) otherwise.
 */
ucs_status_t uct_dcx_layout_test(uct_mem_h memh);

/* Returns the length, in bytes, of the layout that was set last; 0 if there is
 * none. */
size_t uct_dcx_layout_length(uct_mem_h memh);

/*
 * Returns the pieces that @params takes in a key: the @max_pieces for
 * uct_dcx_layout_create(). Entries of length 0 do not count. If @repeat is
 * above 1, and all blocks and strides (length + skip) are below 64 KiB, each
 * entry is one piece, and the repetition is one more. Otherwise each entry is
 * @repeat pieces, and a block of more than 1 GiB is one for each GiB begun.
 *
 * Each entry is @repeat pieces, too, if one of them lies in a layout and the
 * device has no strided mkeys over others ("nests" of dcx_selftest(1)). The
 * number is right for the handles @memh that it is counted with.
 */
size_t uct_dcx_layout_pieces(const uct_dcx_layout_params_t *params);


/* Counters of a memory domain's keys since it was opened: of the cache for
 * strided operations, and of handles */
typedef struct uct_dcx_layout_stats {
    uint64_t hits;        /* operations that found their layout in a key */
    uint64_t misses;      /* operations that set a key's layout */
    uint64_t evictions;   /* misses that replaced another layout */
    uint64_t exhausted;   /* operations that found no free key */
    uint64_t invalidated; /* layouts invalidated with their memory */
    uint64_t failures;    /* UMRs that failed */
    uint64_t sets;        /* calls of uct_dcx_layout_set() */
    uint64_t doorbells;   /* rung for these calls */
    unsigned num_keys;    /* keys that exist */
    unsigned num_layouts; /* keys with a layout */
} uct_dcx_layout_stats_t;


/* Returns UCS_ERR_INVALID_PARAM if the memory domain is not of dcx. */
ucs_status_t uct_dcx_layout_query(uct_md_h md, uct_dcx_layout_stats_t *stats);


/* --- lists ---------------------------------------------------------------- */

/*
 * Puts a list of pieces in one call: @lengths[i] bytes at @buffers[i], in
 * memory of @memhs[i], to @remote_addrs[i] with @rkeys[i], for each i below
 * @count. Arguments and results are those of uct_ep_put_sgl_zcopy(), which UCX
 * has since 1.22; this function is for any version.
 *
 * All keys are of the peer that @ep leads to. Handles and keys may be those of
 * layouts; their addresses are offsets. Pieces are written in any order, so
 * they must not overlap on the remote side.
 *
 * @counts, @strides: if @counts is not NULL, piece i is @counts[i] blocks of
 * @lengths[i] bytes, and @strides[i] bytes lead from the beginning of a block
 * to that of the next, on both sides. Pieces of length or count 0 are skipped.
 *
 * @comp: called when all pieces are complete, with the first error; or NULL.
 * The arrays are not used after the call, the memory of the pieces is.
 *
 * Costs one doorbell, one completion, and a work request for each block, or for
 * each max_zcopy (1 GiB) of a longer one. Up to 11 pieces that follow each
 * other on the remote side share one, if @counts is NULL.
 *
 * Returns UCS_OK                  there are no bytes to move; @comp is not
 *                                 called
 *         UCS_INPROGRESS          all is posted
 *         UCS_ERR_NO_RESOURCE     nothing is posted: add a pending request, as
 *                                 for any operation; not logged
 *         UCS_ERR_INVALID_PARAM   nothing is posted: blocks of a piece overlap,
 *                                 @counts is above 1 without @strides, the end
 *                                 of a piece of several blocks, or of more than
 *                                 1 GiB, exceeds 64 bits, or @ep is not of dcx
 *         UCS_ERR_EXCEEDS_LIMIT   nothing is posted: the list does not fit into
 *                                 an empty send queue
 *         error of @ep            it has failed
 */
ucs_status_t uct_dcx_put_sgl_zcopy(uct_ep_h ep, void *const *buffers,
                                   const size_t *lengths,
                                   uct_mem_h const *memhs,
                                   const uint64_t *remote_addrs,
                                   uct_rkey_t const *rkeys,
                                   const size_t *counts, const size_t *strides,
                                   size_t count, uct_completion_t *comp);

/* Gets a list of pieces from the peer: see uct_dcx_put_sgl_zcopy(). */
ucs_status_t uct_dcx_get_sgl_zcopy(uct_ep_h ep, void *const *buffers,
                                   const size_t *lengths,
                                   uct_mem_h const *memhs,
                                   const uint64_t *remote_addrs,
                                   uct_rkey_t const *rkeys,
                                   const size_t *counts, const size_t *strides,
                                   size_t count, uct_completion_t *comp);

/* Returns the number of blocks that a list to the peer may always have, if none
 * is longer than max_zcopy. If some share a work request, it may have more. The
 * number depends on UCX_DCX_TX_QUEUE_LEN: with its default it is 507, or 254 if
 * the path needs a global route header, as on RoCE. 0, logged: @ep is not of
 * dcx. */
size_t uct_dcx_max_sgl_count(uct_ep_h ep);

END_C_DECLS

#endif
