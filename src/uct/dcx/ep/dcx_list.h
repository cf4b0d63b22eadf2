/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Limits of lists: puts and gets of many pieces, uct_dcx_ep_put_sgl_zcopy() and
 * uct_dcx_ep_get_sgl_zcopy().
 */
#ifndef UCT_DCX_LIST_H
#define UCT_DCX_LIST_H

#include "dcx_ep.h"


/* Returns the number of blocks that a list of @ep always has room for. */
size_t uct_dcx_list_max_ep(uct_ep_h ep);

/* Returns the least such number of all endpoints. */
size_t uct_dcx_list_max_any(uct_iface_h iface);

#endif
