/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Lets stores wait while their page is exchanged. Internal to hca_trap;
 * hca_trap_freeze() and hca_trap_thaw() are in hca_trap.h.
 */
#ifndef HCA_TRAP_FREEZE_H
#define HCA_TRAP_FREEZE_H

#include <signal.h>
#include <stdbool.h>

/* Returns true if a SIGSEGV was at a frozen page, after waiting until that is
 * thawed: the store can be made again. False in the thread that froze it. */
bool hca_trap_frozen(const siginfo_t *info);

#endif
