/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Finds calls of memcpy() and memmove() in the program's code. If a copy of
 * libc's stores to a doorbell, the trap rewrites the call: libc's own code is
 * never rewritten (hca_patch.c).
 */
#ifndef HCA_CALL_H
#define HCA_CALL_H

#include "hca_insn.h"

#include <stdbool.h>
#include <stdint.h>

#define HCA_CALL_LEN 5 /* bytes of call rel32 */

struct hca_call {
    uintptr_t rip;
    struct hca_insn insn; /* HCA_INSN_CALL; hca_insn_ea(): the PLT entry */
    uint8_t code[HCA_CALL_LEN];
};

/**
 * Finds the call whose return address is at @rsp. Call it from any context,
 * also with an address that cannot be read. Needs the handlers
 * (hca_trap_install()).
 *
 * @param rsp  stack pointer of a function that has pushed nothing
 * @param out  undefined after a failure
 *
 * @return true if the instruction before the return address calls memcpy() or
 *         memmove() through a PLT. The running function may be neither of them,
 *         if @rsp has an old return address. Such a call may be rewritten, too.
 */
bool hca_call_find(uintptr_t rsp, struct hca_call *out);

#endif
