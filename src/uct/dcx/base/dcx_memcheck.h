/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * A request to valgrind's memcheck. It is a function, not a macro, because
 * ucx_config.h, which every file includes, may define NVALGRIND, which makes
 * requests empty; dcx_memcheck.c undefines it. Does nothing if valgrind's
 * headers were missing at build time.
 */
#ifndef UCT_DCX_MEMCHECK_H
#define UCT_DCX_MEMCHECK_H

#include <stddef.h>

/* Marks the memory of a receive buffer as initialized: memcheck does not see
 * the device's writes. Reads beyond the end of a message are then not found.
 * Call it before the buffer is posted. */
void uct_dcx_memcheck_device_writes(const void *address, size_t length);

#endif
