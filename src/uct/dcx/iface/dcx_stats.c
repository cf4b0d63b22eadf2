/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * UCX's statistics, if UCX was built with --enable-stats: the figures of the
 * process (base/dcx_figures.h) as counters of the class "dcx" below the root of
 * its tree. They are counted once, in the figures, and copied here from time to
 * time: UCX has no call before it writes them. Operations and bytes of each
 * endpoint are in UCX's own classes. Called by dcx_count.c, in any thread.
 */
#include "dcx_stats.h"
#include "uct/dcx/base/dcx_figures.h"

#include <ucs/debug/log.h>
#include <ucs/stats/stats.h>

#ifdef ENABLE_STATS

#include <pthread.h>


/* Counters of an operation; the index follows from the block's layout. */
#define UCT_DCX_STATS_OP(_op, _name) \
    [3 * UCT_DCX_OP_##_op]          = _name, \
         [3 * UCT_DCX_OP_##_op + 1] = _name "_bytes", \
         [3 * UCT_DCX_OP_##_op + 2] = _name "_no_room"

#define UCT_DCX_STATS_COUNT(_figure, _name) \
    [3 * UCT_DCX_OP_LAST + UCT_DCX_FIGURE_##_figure] = _name

static ucs_stats_class_t uct_dcx_stats_class = {
    .name         = "dcx",
    .num_counters = UCT_DCX_FIGURES_COUNTS,
    .class_id     = UCS_STATS_CLASS_ID_INVALID,
    .counter_names =
        {
            UCT_DCX_STATS_OP(AM_SHORT, "am_short"),
            UCT_DCX_STATS_OP(AM_BCOPY, "am_bcopy"),
            UCT_DCX_STATS_OP(AM_ZCOPY, "am_zcopy"),
            UCT_DCX_STATS_OP(PUT_SHORT, "put_short"),
            UCT_DCX_STATS_OP(PUT_BCOPY, "put_bcopy"),
            UCT_DCX_STATS_OP(PUT_ZCOPY, "put_zcopy"),
            UCT_DCX_STATS_OP(PUT_LIST, "put_sgl_zcopy"),
            UCT_DCX_STATS_OP(GET_BCOPY, "get_bcopy"),
            UCT_DCX_STATS_OP(GET_ZCOPY, "get_zcopy"),
            UCT_DCX_STATS_OP(GET_LIST, "get_sgl_zcopy"),
            UCT_DCX_STATS_OP(ATOMIC, "atomic"),
            UCT_DCX_STATS_OP(TAG_SHORT, "tag_eager_short"),
            UCT_DCX_STATS_OP(TAG_BCOPY, "tag_eager_bcopy"),
            UCT_DCX_STATS_OP(TAG_ZCOPY, "tag_eager_zcopy"),
            UCT_DCX_STATS_OP(TAG_RNDV, "tag_rndv"),
            UCT_DCX_STATS_OP(TAG_RECV, "tag_recv"),
            UCT_DCX_STATS_COUNT(PENDING, "queued"),
            UCT_DCX_STATS_COUNT(CONNECTS, "connections"),
            UCT_DCX_STATS_COUNT(CREDITS, "credit_requests"),
            UCT_DCX_STATS_COUNT(RETRY_EXC, "failed_retries"),
            UCT_DCX_STATS_COUNT(RNR_EXC, "failed_rnr_retries"),
            UCT_DCX_STATS_COUNT(FAILURES, "failed_other"),
            UCT_DCX_STATS_COUNT(REGS, "registrations"),
            UCT_DCX_STATS_COUNT(HITS, "layouts_found"),
            UCT_DCX_STATS_COUNT(MISSES, "layouts_written"),
            UCT_DCX_STATS_COUNT(EVICTIONS, "layouts_evicted"),
            UCT_DCX_STATS_COUNT(EXHAUSTED, "no_strided_mkey"),
            UCT_DCX_STATS_COUNT(SETS, "layouts_set"),
        },
};

_Static_assert(UCT_DCX_FIGURES_COUNTS <= 64, "UCX prints the first 64");

static ucs_stats_node_t *uct_dcx_stats_node;
static int uct_dcx_stats_has_ended;

/* protects both */
static pthread_mutex_t uct_dcx_stats_lock = PTHREAD_MUTEX_INITIALIZER;


void uct_dcx_stats_update(void)
{
    uct_dcx_figures_block_t sum = {};

    if (!ucs_stats_is_active() || (uct_dcx_figures == NULL)) {
        return;
    }

    pthread_mutex_lock(&uct_dcx_stats_lock);
    uct_dcx_figures_total(uct_dcx_figures, &sum);
    if (!uct_dcx_stats_has_ended && (uct_dcx_stats_node == NULL) &&
        (ucs_stats_node_alloc(&uct_dcx_stats_node, &uct_dcx_stats_class,
                              ucs_stats_get_root(), "") != UCS_OK)) {
        ucs_debug("no memory for statistics of dcx");
    }
    if (uct_dcx_stats_node != NULL) {
        memcpy(uct_dcx_stats_node->counters, &sum, sizeof(sum));
    }
    pthread_mutex_unlock(&uct_dcx_stats_lock);
}


/* Copies for the last time, before libucs writes the statistics and ends. Other
 * threads may still use interfaces. */
static void __attribute__((destructor)) uct_dcx_stats_end(void)
{
    uct_dcx_stats_update();
    pthread_mutex_lock(&uct_dcx_stats_lock);
    ucs_stats_node_free(uct_dcx_stats_node);
    uct_dcx_stats_node      = NULL;
    uct_dcx_stats_has_ended = 1;
    pthread_mutex_unlock(&uct_dcx_stats_lock);
}

#else

void uct_dcx_stats_update(void)
{
}

#endif
