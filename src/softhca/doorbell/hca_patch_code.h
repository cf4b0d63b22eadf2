/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Trampolines: code that replaces a storing instruction, and the jump that
 * leads there. Internal to hca_patch.
 */
#ifndef HCA_PATCH_CODE_H
#define HCA_PATCH_CODE_H

#include "hca_insn.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HCA_PATCH_JUMP 5 /* bytes of jmp rel32 */

/* A store to be replaced. */
struct hca_patch_store {
    uintptr_t rip;
    const struct hca_insn *insn;
    uint8_t bytes[HCA_INSN_MAX_LEN]; /* of it and beyond */
};

struct hca_patch_code {
    uintptr_t entry;
    uintptr_t native;             /* address of its original store */
    uint8_t jump[HCA_PATCH_JUMP]; /* from the store to entry */
};

/**
 * Make the trampoline of a store. It stays for the life of the process.
 *
 * @param store  at least the longer of the instruction and of a jump is valid
 *               in bytes
 * @param enter  hca_trap_enter, or hca_trap_enter_push if
 *               hca_patch_code_pushes()
 * @param out    filled on success only. If the store is shorter than the jump,
 *               the jump's last bytes are those that follow the store
 *
 * @return 0, -ENOTSUP if store or successor do not allow it, -ENOMEM if there
 *         is no room within reach, or -errno of mprotect.
 */
int hca_patch_code_create(const struct hca_patch_store *store,
                          const void *enter, struct hca_patch_code *out);

/* Returns true if a trampoline can store the instruction's value elsewhere: it
 * calls hca_trap_enter_push then. */
bool hca_patch_code_pushes(const struct hca_insn *insn);

/* mprotect() of the pages that hold a range, not seen by interposed functions.
 * @return 0 or -errno. */
int hca_patch_code_protect(uintptr_t addr, size_t len, int prot);

#endif
