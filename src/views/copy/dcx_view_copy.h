/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Bytes moved by the processor where a view is on one side or on both. Called
 * by the copy transport, from any thread.
 */
#ifndef UCT_DCX_VIEW_COPY_H
#define UCT_DCX_VIEW_COPY_H

#include <ucs/type/status.h>

#include <stddef.h>
#include <stdint.h>


/* Either address is one of a view that is open, or of memory of this process.
 * An address that no view has, or bytes behind the end of one, are logged and
 * nothing is moved. */
ucs_status_t uct_dcx_view_copy(uint64_t dest, uint64_t src, size_t length);

#endif
