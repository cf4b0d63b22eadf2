/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Register state of interrupted code: where the vector registers lie in an
 * image of XSAVE, and the value that a decoded store was about to write. Used
 * by the trap (image of the kernel's signal frame) and by the trampolines of
 * hca_patch (image of their own). Specification: Intel SDM volume 1, chapter
 * 13.
 */
#ifndef HCA_CPU_H
#define HCA_CPU_H

#include "hca_insn.h"

#include <stdbool.h>
#include <stdint.h>

/* Places of the vector registers in an image. */
struct hca_cpu_layout {
    uint32_t flat;      /* bytes per register, one after the other; 0: XSAVE */
    uint32_t offset[8]; /* XSAVE: of the components, 0: absent */
};

/*
 * How trampolines save the registers that a C function may overwrite, beside
 * the general ones: by plain stores and loads of all vector registers, sixteen
 * with AVX and thirty-two with AVX-512, which take 10 to 15 ns, where XSAVEC
 * with XRSTOR takes 110 to 200. x87 and MMX registers are never saved. Read by
 * assembly, which asserts the offsets.
 */
struct hca_cpu_save {
    uint32_t mask;    /* components of XCR0 to save, for XSAVE */
    uint32_t size;    /* bytes of the image, multiple of 64 */
    uint32_t compact; /* XSAVEC exists: skips components in initial state */
    uint32_t mxcsr;   /* the ABI's initial value */
    uint32_t plain;   /* bytes of a register, stored one after the other: 32 if
                       * ymm0 to ymm15 are all, 64 if zmm0 to zmm31 are, with
                       * k0 to k7 behind them; 0: XSAVE */
    uint32_t usable;  /* one of the ways exists */
};

extern struct hca_cpu_save hca_cpu_save;

/* Vector registers as saved in memory. */
struct hca_cpu_vec {
    const uint8_t *image;                /* 512 bytes of FXSAVE first */
    const struct hca_cpu_layout *layout; /* NULL: nothing beyond FXSAVE */
};

/* Asks CPUID. Idempotent; call it before any other function of this file. */
void hca_cpu_init(void);

/* Returns the image that a trampoline saved as hca_cpu_save directs. */
struct hca_cpu_vec hca_cpu_vec_saved(const void *image);

/* Returns the image that the kernel put in a signal frame.
 * @param fpregs  uc_mcontext.fpregs, may be NULL */
struct hca_cpu_vec hca_cpu_vec_signal(const void *fpregs);

/**
 * Value of a store, as the bytes it would write.
 *
 * @param gpr   general registers in the order of encoding
 * @param vec   vector registers; missing ones read as zero
 * @param out   src->size bytes are written, at most HCA_INSN_MAX_STORE
 */
void hca_cpu_value(const struct hca_insn_src *src, const uint64_t *gpr,
                   struct hca_cpu_vec vec, void *out);

#endif
