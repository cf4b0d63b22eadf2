/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Zero-copy operations whose memory is not plain (dcx_iov.h): entries with
 * blocks in them, or more entries than a WQE takes. UCT's operation of the name
 * comes here with all that it was given, and is called again with memory that is
 * plain. Called in the interface's thread. Which way is taken when:
 * docs/strided.md.
 */
#ifndef UCT_DCX_STRIDED_H
#define UCT_DCX_STRIDED_H

#include "dcx_ep.h"


/* They take and return what UCT's function of the name does. */
#define UCT_DCX_STRIDED_OP(_name) \
    __typeof__(uct_ep_##_name) uct_dcx_strided_##_name __attribute__((cold))

UCT_DCX_STRIDED_OP(am_zcopy);
UCT_DCX_STRIDED_OP(put_zcopy);
UCT_DCX_STRIDED_OP(get_zcopy);
UCT_DCX_STRIDED_OP(tag_eager_zcopy);
UCT_DCX_STRIDED_OP(tag_rndv_zcopy);

/* A rendezvous was canceled, whose completion would have been this one, or NULL:
 * what was held for it is let go. */
void uct_dcx_strided_canceled(uct_completion_t *comp);

#endif
