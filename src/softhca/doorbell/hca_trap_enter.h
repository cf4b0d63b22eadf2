/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The way from a storing instruction into the device without a signal frame.
 * Internal to hca_trap; hca_patch builds code that calls hca_trap_enter but
 * gets its address at init.
 */
#ifndef HCA_TRAP_ENTER_H
#define HCA_TRAP_ENTER_H

/*
 * Assembly. In: rax = address that the instruction stores to; the stack, from
 * rsp upwards: return address, struct hca_insn_src, rflags, rax, address of
 * the next instruction, then the red zone (128 bytes) of the interrupted code.
 * Out: rax = 0 if the device took the store, 1 if no range holds the address.
 * Everything else is preserved except the arithmetic flags; DF is clear.
 */
extern const char hca_trap_enter[] __attribute__((visibility("hidden")));

/*
 * hca_trap_enter for a store that can be made elsewhere. Out: additionally rax
 * = the place for the value, for the caller to store it there
 * (hca_push_store()); the device has not been called then.
 */
extern const char hca_trap_enter_push[] __attribute__((visibility("hidden")));

/* Assembly: calls hca_trap_enter with the stack prepared as above except for
 * the return address, then goes on at the next instruction. */
extern const char hca_trap_bounce[] __attribute__((visibility("hidden")));

#endif
