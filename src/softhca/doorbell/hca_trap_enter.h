/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Entry from a storing instruction into the device, without a signal frame.
 * Internal to hca_trap; hca_patch, whose trampolines call all but
 * hca_trap_bounce, gets their addresses at init.
 */
#ifndef HCA_TRAP_ENTER_H
#define HCA_TRAP_ENTER_H

#include <stddef.h>

/*
 * Assembly. In: rax = address that the instruction stores to; the stack, from
 * rsp upwards: return address, struct hca_insn_src, rflags, rax, address of
 * the next instruction, then the red zone (128 bytes) of the interrupted code.
 * Out: rax = 0 if the device took the store, 1 if no range holds the address.
 * Everything else is preserved except the arithmetic flags; DF is clear. The
 * device leaves x87 and MXCSR alone.
 */
extern const char hca_trap_enter[] __attribute__((visibility("hidden")));

/*
 * Like hca_trap_enter, for a store that can be made elsewhere. In: below the
 * return address, in the red zone, the first eight bytes of a value of 64. Out:
 * rax may also be the place for the value, from hca_push_store(). The device
 * has not been called then; the caller stores the value there.
 */
extern const char hca_trap_enter_push[] __attribute__((visibility("hidden")));

/* Assembly, jumped to, with rax and the stack as for hca_trap_enter but without
 * a return address. Calls that, then goes on at the next instruction. */
extern const char hca_trap_bounce[] __attribute__((visibility("hidden")));

/*
 * Replaces a call of memcpy() or memmove(): a copy into a range is stores of 64
 * bytes to the device, the last one may be shorter.
 *
 * @param native  callee of the call, for any other copy
 */
void *hca_trap_copy(void *dst, const void *src, size_t length,
                    void *(*native)(void *dst, const void *src, size_t length));

#endif
