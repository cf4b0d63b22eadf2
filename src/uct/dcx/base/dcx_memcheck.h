/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Client requests to valgrind's memcheck. Not inlined: ucx_config.h, which all
 * sources include, defines NVALGRIND. Without valgrind's headers they do
 * nothing.
 */
#ifndef UCT_DCX_MEMCHECK_H
#define UCT_DCX_MEMCHECK_H

#include <stddef.h>

/* Marks a receive buffer as initialised before it is posted, as memcheck does
 * not see the device's writes. It does not find reads behind a message then. */
void uct_dcx_memcheck_device_writes(const void *address, size_t length);

#endif
