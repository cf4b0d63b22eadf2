/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Trampolines: code that replaces a storing instruction or the call of a copy,
 * and the jump or call that leads there. Internal to hca_patch.
 */
#ifndef HCA_PATCH_CODE_H
#define HCA_PATCH_CODE_H

#include "hca_insn.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HCA_PATCH_JUMP 5 /* bytes of jmp rel32 and of call rel32 */

/* A store, a row of stores (hca_insn_join()), or a call, to be replaced. */
struct hca_patch_store {
    uintptr_t rip;
    const struct hca_insn *insn;
    unsigned len;                    /* of all stores of a row */
    uint8_t bytes[HCA_INSN_MAX_LEN]; /* at rip */
};

struct hca_patch_code {
    uintptr_t entry;
    uintptr_t native;             /* its copy of the store; 0: a call */
    uint8_t jump[HCA_PATCH_JUMP]; /* the bytes that lead there */
};

/**
 * Makes the trampoline of a store. It stays until the process ends.
 *
 * @param store  in its bytes, the instruction must be valid, and at least
 *               HCA_PATCH_JUMP bytes
 * @param enter  hca_trap_enter, or hca_trap_enter_push if
 *               hca_patch_code_pushes(), or hca_trap_copy for a call
 * @param out    filled on success only. If the store is shorter than the jump,
 *               the jump's last bytes are those that follow the store
 *
 * @return 0, -ENOTSUP if the store or the instruction after it does not allow
 *         it, -ENOMEM if no page is free within reach, or -errno of mprotect().
 */
int hca_patch_code_create(const struct hca_patch_store *store,
                          const void *enter, struct hca_patch_code *out);

/* Returns true if a trampoline can store the instruction's value elsewhere. It
 * must then call hca_trap_enter_push. */
bool hca_patch_code_pushes(const struct hca_insn *insn);

/* Calls mprotect() for the pages of a range, past functions that interpose it.
 * @return 0 or -errno. */
int hca_patch_code_protect(uintptr_t addr, size_t len, int prot);

#endif
