/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Which handles there are, of all memory domains of the process: what is given
 * to a layout is looked up before it is looked into. Any thread.
 */
#ifndef UCT_DCX_MEM_LIVE_H
#define UCT_DCX_MEM_LIVE_H

#include "dcx_mem.h"


/* UCS_ERR_NO_MEMORY: it is not one of them. */
ucs_status_t uct_dcx_mem_live_add(const uct_dcx_mem_t *mem);
void uct_dcx_mem_live_remove(const uct_dcx_mem_t *mem);

/* Whether it is a handle of dcx that was not deregistered */
int uct_dcx_mem_live_has(uct_mem_h memh);

#endif
