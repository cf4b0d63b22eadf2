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
 * Once, before the other functions; they do nothing until then.
 *
 * @param on     false: never rewrite anything. Off as well without XSAVE,
 *               under valgrind or a debugger, and where membarrier(2) lacks
 *               SYNC_CORE or text may not be made writable
 * @param enter  hca_trap_enter, which the trampolines call
 * @param push   hca_trap_enter_push, which those call whose stores may be part
 *               of a push
 */
void hca_patch_init(bool on, const void *enter, const void *push);

/**
 * Rewrites the instruction, if that is safe. From a fault at it, or from any
 * other context in which it may be executed by other threads.
 *
 * @param rip   address of the instruction
 * @param insn  as decoded from there
 * @param code  the bytes that were decoded, insn->len of them
 */
void hca_patch_site(uintptr_t rip, const struct hca_insn *insn,
                    const uint8_t *code);

/**
 * Where to continue after a fault at rip, if that is a site that has been or
 * is being rewritten; 0 otherwise. Bytes at rip read before the call were
 * those of the program if it returns 0.
 */
uintptr_t hca_patch_find(uintptr_t rip);

/* The site whose store a trampoline executes at rip; 0 if it is none. */
uintptr_t hca_patch_origin(uintptr_t rip);

#endif
