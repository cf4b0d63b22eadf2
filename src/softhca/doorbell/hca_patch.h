/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Rewrites storing instructions, and calls of copies, so that they reach the
 * device without a fault. The trap calls it after the first fault at a site. If
 * it refuses, the site goes on trapping.
 */
#ifndef HCA_PATCH_H
#define HCA_PATCH_H

#include "hca_insn.h"

#include <stdbool.h>
#include <stdint.h>

/**
 * Call it once, after hca_cpu_init() and before the other functions, which do
 * nothing until then.
 *
 * @param on     false: never rewrite anything. Ignored without XSAVE, under
 *               valgrind, and if membarrier(2) lacks SYNC_CORE. A debugger, or
 *               text that cannot be made writable, ends rewriting later
 * @param enter  hca_trap_enter, which the trampolines call
 * @param push   hca_trap_enter_push, for trampolines of stores that may be part
 *               of a push
 * @param copy   hca_trap_copy, for trampolines of calls
 */
void hca_patch_init(bool on, const void *enter, const void *push,
                    const void *copy);

/**
 * Rewrites an instruction, if that is safe. Call it from any context, such as
 * the handler of a fault there; other threads may be executing the instruction.
 *
 * @param rip   address of the instruction
 * @param insn  the decoded instruction
 * @param code  the insn->len bytes that were decoded
 *
 * @return true if the instruction goes on trapping, though others may be
 *         rewritten.
 */
bool hca_patch_site(uintptr_t rip, const struct hca_insn *insn,
                    const uint8_t *code);

/**
 * Finds where to continue after a fault at @rip.
 *
 * @return The trampoline, if @rip is a site that has been or is being
 *         rewritten. 0 otherwise: bytes at @rip that were read before the call
 *         are then those of the program.
 */
uintptr_t hca_patch_find(uintptr_t rip);

/* Returns the address of the instruction that was moved to @rip, which is in a
 * trampoline; 0 if @rip is none such. */
uintptr_t hca_patch_origin(uintptr_t rip);

#endif
