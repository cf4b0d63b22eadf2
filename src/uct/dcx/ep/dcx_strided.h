/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Zero-copy operations on memory that is not plain (dcx_iov.h): entries with
 * blocks in them, or more entries than a WQE takes. UCT's operation of the same
 * name passes on all its arguments, and is called again with plain memory.
 * Called in the interface's thread. docs/strided.md says which way is used
 * when.
 */
#ifndef UCT_DCX_STRIDED_H
#define UCT_DCX_STRIDED_H

#include "dcx_ep.h"


/* Arguments and results are those of UCT's function of the same name. */
#define UCT_DCX_STRIDED_OP(_name) \
    __typeof__(uct_ep_##_name) uct_dcx_strided_##_name __attribute__((cold))

UCT_DCX_STRIDED_OP(am_zcopy);
UCT_DCX_STRIDED_OP(put_zcopy);
UCT_DCX_STRIDED_OP(get_zcopy);
UCT_DCX_STRIDED_OP(tag_eager_zcopy);
UCT_DCX_STRIDED_OP(tag_rndv_zcopy);

/* Releases the resources of a canceled rendezvous; @comp is its completion, or
 * NULL. */
void uct_dcx_strided_canceled(uct_completion_t *comp);

/* Returns where @comp has the user's completion, if it is one of this file.
 * Returns NULL otherwise. */
uct_completion_t **uct_dcx_strided_user(uct_completion_t *comp);

#endif
