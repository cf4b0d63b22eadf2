/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Requests to valgrind's memcheck, off the data path. Not inlined: UCX's
 * headers are compiled with requests to valgrind switched off.
 */
#ifndef UCT_DCX_MEMCHECK_H
#define UCT_DCX_MEMCHECK_H

#include <stddef.h>

/* Marks memory that the device writes as initialised: memcheck does not see the
 * device's writes. */
void uct_dcx_memcheck_device_writes(const void *address, size_t length);

#endif
