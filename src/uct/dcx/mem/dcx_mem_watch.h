/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * What a thread opens for a while: memory domains, and endpoints of the transport
 * "dcx_view". So who stands before UCP knows what a context or a worker of it
 * has, of which UCP tells nothing. Each thread has its own.
 */
#ifndef UCT_DCX_MEM_WATCH_H
#define UCT_DCX_MEM_WATCH_H

#include <uct/api/uct.h>


/* Forgets what was counted before. */
void uct_dcx_mem_watch_begin(void);

/* Fills in up to 'max' of the domains that were opened since and are open still;
 * returns how many there are. */
unsigned
uct_dcx_mem_watch_end(void **mds, unsigned max, unsigned *copy_eps_p);

/* Of those that are opened and closed: nothing, unless the thread watches. */
void uct_dcx_mem_watch_open(uct_md_h md);
void uct_dcx_mem_watch_close(uct_md_h md);
void uct_dcx_mem_watch_copy_ep(void);

#endif
