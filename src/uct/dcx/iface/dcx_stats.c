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


/* Names in the order of the members of uct_dcx_figures_block_t */
#define UCT_DCX_STATS_OP(_op, _name) _name, _name "_bytes", _name "_no_room"

#define UCT_DCX_STATS_OTHER(_figure, _name, _text) _name

static ucs_stats_class_t uct_dcx_stats_class = {
    .name          = "dcx",
    .num_counters  = UCT_DCX_FIGURES_COUNTS,
    .class_id      = UCS_STATS_CLASS_ID_INVALID,
    .counter_names = {UCT_DCX_FIGURES_OPS(UCT_DCX_STATS_OP),
                      UCT_DCX_FIGURES_OTHERS(UCT_DCX_STATS_OTHER)},
};

_Static_assert(UCT_DCX_FIGURES_COUNTS <= 64, "UCX prints the first 64");

static ucs_stats_node_t *uct_dcx_stats_node;
static int uct_dcx_stats_has_ended;

/* protects both */
static pthread_mutex_t uct_dcx_stats_lock = PTHREAD_MUTEX_INITIALIZER;


void uct_dcx_stats_update(void)
{
    uct_dcx_figures_block_t sum = {};

    if (!uct_dcx_stats_is_on() || (uct_dcx_figures == NULL)) {
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
