/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * A tool's library that a program is linked with. It defines some functions by
 * their usual names, counts their calls, and passes them to the profiling
 * interface.
 */
#include "test/shmem/tool.h"

int tool_gets, tool_puts;

void pshmem_int_iget(int *dest, const int *source, ptrdiff_t dst, ptrdiff_t sst,
                     size_t nelems, int pe);
void pshmem_ctx_double_iput(shmem_ctx_t ctx, double *dest, const double *source,
                            ptrdiff_t dst, ptrdiff_t sst, size_t nelems,
                            int pe);

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
