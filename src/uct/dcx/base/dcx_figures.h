/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Figures of a process with UCX_DCX_REPORT=y or UCX's statistics: operations,
 * bytes, waits and rare events. They are in a memfd, which dcx_info --live
 * finds in /proc and reads: the kernel refuses other users, and no file is left
 * by a process that is killed. With the option they are printed at the end of
 * the process. A forked child has none until it opens an interface.
 *
 * Each open interface has a block of its own, so that threads do not share one.
 * Block 0 has the sums of closed interfaces, and counts of the process. Needs
 * nothing of UCX, as dcx_info uses it, too.
 */
#ifndef UCT_DCX_FIGURES_H
#define UCT_DCX_FIGURES_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define UCT_DCX_FIGURES_NAME   "dcx-figures"
#define UCT_DCX_FIGURES_BLOCKS 64
#define UCT_DCX_FIGURES_PORTS  8


/* clang-format off */

/* Kinds of operations: UCT_DCX_OP_* and the name in reports */
#define UCT_DCX_FIGURES_OPS(_add) \
    _add(AM_SHORT, "am_short"), \
    _add(AM_BCOPY, "am_bcopy"), \
    _add(AM_ZCOPY, "am_zcopy"), \
    _add(PUT_SHORT, "put_short"), \
    _add(PUT_BCOPY, "put_bcopy"), \
    _add(PUT_ZCOPY, "put_zcopy"), \
    _add(PUT_LIST, "put_sgl_zcopy"), \
    _add(GET_BCOPY, "get_bcopy"), \
    _add(GET_ZCOPY, "get_zcopy"), \
    _add(GET_LIST, "get_sgl_zcopy"), \
    _add(ATOMIC, "atomic"), \
    _add(TAG_SHORT, "tag_eager_short"), \
    _add(TAG_BCOPY, "tag_eager_bcopy"), \
    _add(TAG_ZCOPY, "tag_eager_zcopy"), \
    _add(TAG_RNDV, "tag_rndv"), \
    _add(TAG_RECV, "tag_recv")

/* Other counts: UCT_DCX_FIGURE_*, the name in UCX's statistics, the text in
 * reports. A connection is an operation on an initiator whose last one went to
 * another target. */
#define UCT_DCX_FIGURES_OTHERS(_add) \
    _add(PENDING, "queued", "requests that waited in a queue"), \
    _add(CONNECTS, "connections", "connections to another target"), \
    _add(CREDITS, "credit_requests", "requests for credits"), \
    _add(RETRY_EXC, "failed_retries", "endpoints failed, retries exhausted"), \
    _add(RNR_EXC, "failed_rnr_retries", \
         "endpoints failed, RNR retries exhausted"), \
    _add(FAILURES, "failed_other", "endpoints failed, other reasons"), \
    _add(REGS, "registrations", "registrations"), \
    _add(HITS, "layouts_found", "strided layouts found"), \
    _add(MISSES, "layouts_written", "strided layouts written"), \
    _add(EVICTIONS, "layouts_evicted", "strided layouts evicted"), \
    _add(EXHAUSTED, "no_strided_mkey", "operations without a strided mkey"), \
    _add(SETS, "layouts_set", "layouts of handles set")

/* clang-format on */

#define UCT_DCX_FIGURES_OP_ENUM(_op, _name) UCT_DCX_OP_##_op

typedef enum uct_dcx_figure_op {
    UCT_DCX_FIGURES_OPS(UCT_DCX_FIGURES_OP_ENUM),
    UCT_DCX_OP_LAST
} uct_dcx_figure_op_t;

#define UCT_DCX_FIGURES_OTHER_ENUM(_figure, _name, _text) \
    UCT_DCX_FIGURE_##_figure

typedef enum uct_dcx_figure {
    UCT_DCX_FIGURES_OTHERS(UCT_DCX_FIGURES_OTHER_ENUM),
    UCT_DCX_FIGURE_LAST
} uct_dcx_figure_t;


/* Counts of an interface; members are written by its thread alone, those of
 * block 0 by any. All members are uint64_t. */
typedef struct uct_dcx_figures_block {
    struct {
        uint64_t num;
        uint64_t bytes;
        uint64_t waits; /* calls that returned UCS_ERR_NO_RESOURCE, of tag_recv
                         * UCS_ERR_EXCEEDS_LIMIT */
    } ops[UCT_DCX_OP_LAST];
    uint64_t counts[UCT_DCX_FIGURE_LAST];
} uct_dcx_figures_block_t;

enum {
    UCT_DCX_FIGURES_COUNTS = sizeof(uct_dcx_figures_block_t) / sizeof(uint64_t)
};


/* Counters of a port in sysfs; names are in dcx_figures.c. */
enum { UCT_DCX_NUM_PORT_COUNTS = 16 };

typedef struct uct_dcx_figures {
    uint32_t size; /* of this structure. Change UCT_DCX_FIGURES_NAME if a new
                    * layout has the same size. */
    int32_t pid;
    char rank[16]; /* empty: none */
    struct {
        char name[64];                           /* "mlx5_0:1" */
        uint64_t first[UCT_DCX_NUM_PORT_COUNTS]; /* values at the first open;
                                                  * UINT64_MAX: none */
    } ports[UCT_DCX_FIGURES_PORTS];
    uint32_t is_used[UCT_DCX_FIGURES_BLOCKS];
    uct_dcx_figures_block_t blocks[UCT_DCX_FIGURES_BLOCKS];
} uct_dcx_figures_t;


/* NULL: the process counts nothing */
extern uct_dcx_figures_t *uct_dcx_figures;

/* Non-zero: the process prints the table when it ends */
extern int uct_dcx_figures_is_printed;


/* Returns a block for an interface of @port. Returns NULL if memory is short,
 * or too many interfaces are open. */
uct_dcx_figures_block_t *uct_dcx_figures_open(const char *port);

/* Adds the block to the sums of closed interfaces, and frees it. Does nothing
 * if it is of the parent of this process. */
void uct_dcx_figures_close(uct_dcx_figures_block_t *block);

/* Adds the counts of all blocks to @sum. */
void uct_dcx_figures_total(const uct_dcx_figures_t *figures,
                           uct_dcx_figures_block_t *sum);

/* Prints the figures as a table, with those of the ports since they were
 * opened, if they can be read. */
void uct_dcx_figures_print(const uct_dcx_figures_t *figures, FILE *out);

/* Returns the table of this process, which counts. The caller frees it; NULL if
 * memory is short. */
char *uct_dcx_figures_table(void);


/* Counts events of the process, in any thread. */
static inline void uct_dcx_figures_add(uct_dcx_figure_t figure, uint64_t num)
{
    if (uct_dcx_figures != NULL) {
        __atomic_fetch_add(&uct_dcx_figures->blocks[0].counts[figure], num,
                           __ATOMIC_RELAXED);
    }
}


/* Counts an operation of the process, in any thread. */
static inline void uct_dcx_figures_add_op(uct_dcx_figure_op_t op,
                                          uint64_t bytes)
{
    if (uct_dcx_figures != NULL) {
        __atomic_fetch_add(&uct_dcx_figures->blocks[0].ops[op].num, 1,
                           __ATOMIC_RELAXED);
        __atomic_fetch_add(&uct_dcx_figures->blocks[0].ops[op].bytes, bytes,
                           __ATOMIC_RELAXED);
    }
}

#endif
