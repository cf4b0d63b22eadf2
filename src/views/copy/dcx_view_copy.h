/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Copies bytes by the processor where one side or both are views. The copy
 * transport calls it, from any thread.
 */
#ifndef UCT_DCX_VIEW_COPY_H
#define UCT_DCX_VIEW_COPY_H

#include <ucs/type/status.h>

#include <stddef.h>
#include <stdint.h>


/* Copies @length bytes. Each address is one of a view, which stays open
 * meanwhile, or of memory of this process. Returns UCS_ERR_INVALID_ADDR,
 * logged, and copies nothing, if a view is not open, or ends before @length
 * bytes. */
ucs_status_t uct_dcx_view_copy(uint64_t dest, uint64_t src, size_t length);

#endif
