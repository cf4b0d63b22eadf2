/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/* Counts of the profiling library of shmem_tool.c */
#ifndef DCX_TEST_SHMEM_TOOL_H
#define DCX_TEST_SHMEM_TOOL_H

#include <shmem.h>

/* calls of shmem_int_iget(), of shmem_ctx_double_iput() */
extern int tool_gets, tool_puts;

#endif
