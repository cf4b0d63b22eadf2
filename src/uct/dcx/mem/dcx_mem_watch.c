/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * What a thread opens; see dcx_mem_watch.h.
 */
#include "dcx_mem_watch.h"


enum {
    UCT_DCX_MEM_WATCH_MAX = 64 /* UCP has no more domains (UCP_MAX_MDS) */
};


static __thread struct {
    int      is_on;
    unsigned num;
    unsigned copy_eps;
    uct_md_h mds[UCT_DCX_MEM_WATCH_MAX];
} uct_dcx_mem_watch;


void uct_dcx_mem_watch_begin(void)
{
    uct_dcx_mem_watch.is_on    = 1;
    uct_dcx_mem_watch.num      = 0;
    uct_dcx_mem_watch.copy_eps = 0;
}


unsigned uct_dcx_mem_watch_end(void **mds, unsigned max, unsigned *copy_eps_p)
{
    unsigned i;

    uct_dcx_mem_watch.is_on = 0;
    for (i = 0; (i < uct_dcx_mem_watch.num) && (i < max); ++i) {
        mds[i] = uct_dcx_mem_watch.mds[i];
    }
    *copy_eps_p = uct_dcx_mem_watch.copy_eps;
    return uct_dcx_mem_watch.num;
}


void uct_dcx_mem_watch_open(uct_md_h md)
{
    if (uct_dcx_mem_watch.is_on &&
        (uct_dcx_mem_watch.num < UCT_DCX_MEM_WATCH_MAX)) {
        uct_dcx_mem_watch.mds[uct_dcx_mem_watch.num++] = md;
    }
}


void uct_dcx_mem_watch_close(uct_md_h md)
{
    unsigned i;

    for (i = 0; i < uct_dcx_mem_watch.num; ++i) {
        if (uct_dcx_mem_watch.mds[i] == md) {
            uct_dcx_mem_watch.mds[i] =
                    uct_dcx_mem_watch.mds[--uct_dcx_mem_watch.num];
            return;
        }
    }
}


void uct_dcx_mem_watch_copy_ep(void)
{
    uct_dcx_mem_watch.copy_eps += uct_dcx_mem_watch.is_on;
}
