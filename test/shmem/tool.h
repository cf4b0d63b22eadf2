/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
#ifndef DCX_TEST_SHMEM_TOOL_H
#define DCX_TEST_SHMEM_TOOL_H

#include <shmem.h>

/* Counts of the tool: calls of shmem_int_iget(), of shmem_ctx_double_iput() */
extern int tool_gets, tool_puts;

#endif
