/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Requests to valgrind; see dcx_memcheck.h.
 */
#include "dcx_memcheck.h"

#undef NVALGRIND
#if __has_include(<valgrind/memcheck.h>)
#include <valgrind/memcheck.h>
#else
#define VALGRIND_MAKE_MEM_DEFINED(_addr, _size)
#endif


void uct_dcx_memcheck_device_writes(const void *address, size_t length)
{
    VALGRIND_MAKE_MEM_DEFINED(address, length);
}
