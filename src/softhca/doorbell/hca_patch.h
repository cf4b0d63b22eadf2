/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Rewrites storing instructions so that they reach the device without a fault.
 * The trap calls it after the first fault at a site. Every refusal is silent
 * for the program: the site goes on trapping.
 */
#ifndef HCA_PATCH_H
#define HCA_PATCH_H

#include "hca_insn.h"

#include <stdbool.h>
#include <stdint.h>

/**
 * Call once, before the other functions; they do nothing until then.
 *
 * @param on     false: never rewrite anything. Off as well without XSAVE,
 *               under valgrind or a debugger, and where membarrier(2) lacks
 *               SYNC_CORE or text may not be made writable
 * @param enter  hca_trap_enter, which the trampolines call
 * @param push   hca_trap_enter_push, for trampolines of stores that may be part
 *               of a push
 */
void hca_patch_init(bool on, const void *enter, const void *push);

/**
 * Rewrites the instruction, if that is safe. Called from a fault at it, or from
 * any other context; other threads may be executing it.
 *
 * @param rip   address of the instruction
 * @param insn  as decoded from there
 * @param code  the insn->len bytes that were decoded
 */
void hca_patch_site(uintptr_t rip, const struct hca_insn *insn,
                    const uint8_t *code);

/**
 * Finds where to continue after a fault at @rip.
 *
 * @return The address, if @rip is a site that has been or is being rewritten.
 *         0 otherwise: then bytes at @rip read before the call were those of
 *         the program.
 */
uintptr_t hca_patch_find(uintptr_t rip);

/* Returns the site whose store a trampoline executes at @rip; 0 if none. */
uintptr_t hca_patch_origin(uintptr_t rip);

#endif
