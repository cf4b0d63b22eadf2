/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * A profiling library. Overrides shmem_int_iget() and shmem_ctx_double_iput(),
 * counts their calls, and forwards them to pshmem_*().
 */
#include "test/shmem/tool.h"

#include <pshmem.h>

int tool_gets, tool_puts;

void shmem_int_iget(int *dest, const int *source, ptrdiff_t dst, ptrdiff_t sst,
                    size_t nelems, int pe)
{
    tool_gets++;
    pshmem_int_iget(dest, source, dst, sst, nelems, pe);
}

void shmem_ctx_double_iput(shmem_ctx_t ctx, double *dest, const double *source,
                           ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe)
{
    tool_puts++;
    pshmem_ctx_double_iput(ctx, dest, source, dst, sst, nelems, pe);
}
