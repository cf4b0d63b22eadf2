/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Register state of interrupted code: where its vector registers are saved, and
 * the value that a decoded store was about to write. Used by the trap (the
 * kernel's signal frame) and for the trampolines of hca_patch (registers that
 * hca_trap_enter saved). Specification: Intel SDM volume 1, chapter 13.
 */
#ifndef HCA_CPU_H
#define HCA_CPU_H

#include "hca_insn.h"

#include <stdbool.h>
#include <stdint.h>

/* Places of the vector registers in a memory image */
struct hca_cpu_layout {
    uint32_t flat;      /* plain stores: bytes per register; 0: XSAVE */
    uint32_t offset[8]; /* XSAVE: of the components, 0: absent */
};

/*
 * How trampolines save the vector registers that a C function may overwrite.
 * Plain stores and loads of all of them (sixteen with AVX, thirty-two with
 * AVX-512) take 10 to 15 ns; XSAVEC with XRSTOR takes 110 to 200. x87 and MMX
 * registers are never saved. Read by assembly, which asserts the offsets.
 */
struct hca_cpu_save {
    uint32_t mask;    /* components of XCR0 to save, for XSAVE */
    uint32_t size;    /* bytes of the image, multiple of 64 */
    uint32_t compact; /* XSAVEC exists: skips components in initial state */
    uint32_t plain;   /* plain stores: bytes of a register, 32 for ymm0 to
                       * ymm15, 64 for zmm0 to zmm31 with k0 to k7 behind them;
                       * 0: XSAVE. With 64, only the lowest 16 bytes of zmm0 to
                       * zmm15 are valid if all others are zero, except for
                       * HCA_INSN_VEC. */
    uint32_t usable;  /* 0: the CPU or the system lacks XSAVE */
};

extern struct hca_cpu_save hca_cpu_save;

/* Vector registers as saved in memory. */
struct hca_cpu_vec {
    const uint8_t *image;                /* NULL: registers are unknown */
    const struct hca_cpu_layout *layout; /* NULL: 512 bytes of FXSAVE */
};

/* Asks CPUID. Idempotent; call it before any other function of this file. */
void hca_cpu_init(void);

/* Returns the registers that a trampoline saved at @image as hca_cpu_save
 * says. */
struct hca_cpu_vec hca_cpu_vec_saved(const void *image);

/* Returns the registers that the kernel saved in a signal frame.
 * @param fpregs  uc_mcontext.fpregs, may be NULL */
struct hca_cpu_vec hca_cpu_vec_signal(const void *fpregs);

/**
 * Gets the bytes that a store would write; for HCA_INSN_MOVS they are zero.
 *
 * @param gpr   general registers in the order of encoding
 * @param vec   vector registers; missing ones read as zero
 * @param out   src->size bytes are written, at most HCA_INSN_MAX_STORE
 */
void hca_cpu_value(const struct hca_insn_src *src, const uint64_t *gpr,
                   struct hca_cpu_vec vec, void *out);

#endif
