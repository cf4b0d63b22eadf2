/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Recovery from faults of hca_trap_guard_memcpy(), hca_trap_guard_rows() and
 * hca_trap_guard_swap*(), which hca_trap.h declares. Internal to hca_trap.
 */
#ifndef HCA_TRAP_GUARD_H
#define HCA_TRAP_GUARD_H

#include <stdint.h>

/* Instructions of hca_trap_guard_rows() that may fault, and its beginning. */
extern const char hca_trap_guard_rows_again[]
    __attribute__((visibility("hidden")));
extern const char hca_trap_guard_rows_end[]
    __attribute__((visibility("hidden")));

/* Returns where to continue after a fault at @rip, so that the function returns
 * -EFAULT; 0 if @rip is in none of these functions. */
uintptr_t hca_trap_guard_give_up(uintptr_t rip);

/* Returns where to continue after a fault at @rip if the memory is accessible
 * now: the beginning of the copy, or @rip itself if it is in no copy. */
uintptr_t hca_trap_guard_restart(uintptr_t rip);

#endif
