/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Finds calls of memcpy() and memmove() in the program's code. libc's copies
 * are not rewritten (hca_patch.c), so the trap rewrites the call of a copy that
 * stores to a doorbell.
 */
#ifndef HCA_CALL_H
#define HCA_CALL_H

#include "hca_insn.h"

#include <stdbool.h>
#include <stdint.h>

#define HCA_CALL_LEN 5 /* bytes of call rel32 */

struct hca_call {
    uintptr_t rip;
    struct hca_insn insn; /* kind HCA_INSN_CALL; its address is the callee's */
    uint8_t code[HCA_CALL_LEN];
};

/**
 * Finds the call that a function returns to. Call it from any context; memory
 * may be inaccessible. Needs the handlers (hca_trap_install()).
 *
 * @param rsp  stack pointer in the function, at its return address
 * @param out  undefined after a failure
 *
 * @return true if a return address is there, and the instruction before it
 *         calls memcpy() or memmove() through a PLT. The function itself may be
 *         another: such a call may be rewritten in any case.
 */
bool hca_call_find(uintptr_t rsp, struct hca_call *out);

#endif
