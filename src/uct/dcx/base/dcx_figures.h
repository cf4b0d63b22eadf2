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


/* Kinds of operations; names are in dcx_figures.c. */
typedef enum uct_dcx_figure_op {
    UCT_DCX_OP_AM_SHORT,
    UCT_DCX_OP_AM_BCOPY,
    UCT_DCX_OP_AM_ZCOPY,
    UCT_DCX_OP_PUT_SHORT,
    UCT_DCX_OP_PUT_BCOPY,
    UCT_DCX_OP_PUT_ZCOPY,
    UCT_DCX_OP_PUT_LIST,
    UCT_DCX_OP_GET_BCOPY,
    UCT_DCX_OP_GET_ZCOPY,
    UCT_DCX_OP_GET_LIST,
    UCT_DCX_OP_ATOMIC,
    UCT_DCX_OP_TAG_SHORT,
    UCT_DCX_OP_TAG_BCOPY,
    UCT_DCX_OP_TAG_ZCOPY,
    UCT_DCX_OP_TAG_RNDV,
    UCT_DCX_OP_TAG_RECV,
    UCT_DCX_OP_LAST
} uct_dcx_figure_op_t;

/* Other counts */
typedef enum uct_dcx_figure {
    UCT_DCX_FIGURE_PENDING,  /* requests that were queued */
    UCT_DCX_FIGURE_CONNECTS, /* operations on an initiator whose last one went
                              * to another target */
    UCT_DCX_FIGURE_CREDITS,  /* requests for credits */
    UCT_DCX_FIGURE_RETRY_EXC,
    UCT_DCX_FIGURE_RNR_EXC,
    UCT_DCX_FIGURE_FAILURES, /* of endpoints, for another reason */
    UCT_DCX_FIGURE_REGS,
    UCT_DCX_FIGURE_HITS,
    UCT_DCX_FIGURE_MISSES,
    UCT_DCX_FIGURE_EVICTIONS,
    UCT_DCX_FIGURE_EXHAUSTED,
    UCT_DCX_FIGURE_SETS,
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
