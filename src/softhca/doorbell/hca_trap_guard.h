/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Recovery of hca_trap_guard_memcpy() and its like, which are declared in
 * hca_trap.h. Internal to hca_trap.
 */
#ifndef HCA_TRAP_GUARD_H
#define HCA_TRAP_GUARD_H

#include <stdint.h>

/* Returns where to continue after a fault at @rip; 0 if not the copy's. */
uintptr_t hca_trap_guard_give_up(uintptr_t rip);

/* Returns where to continue if the memory is accessible now; @rip itself if the
 * fault is not the copy's. */
uintptr_t hca_trap_guard_restart(uintptr_t rip);

#endif
