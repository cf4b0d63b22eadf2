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

/* Where an image has the vector registers. */
struct hca_cpu_layout {
    uint32_t flat;      /* bytes per register, one after the other; 0: XSAVE */
    uint32_t offset[8]; /* XSAVE: of the components, 0: not there */
};

/*
 * How trampolines save what a C function may overwrite beside the general
 * registers: by plain stores and loads of all vector registers, sixteen with AVX
 * and thirty-two with AVX-512, which take 10 to 15 ns, where XSAVEC with XRSTOR
 * takes 110 to 200. x87 and MMX registers are never saved. Read by assembly,
 * which asserts the offsets.
 */
struct hca_cpu_save {
    uint32_t mask;    /* components of XCR0 to save, for XSAVE */
    uint32_t size;    /* bytes of the image, multiple of 64 */
    uint32_t compact; /* XSAVEC exists: skips what is in its initial state */
    uint32_t mxcsr;   /* the ABI's initial value */
    uint32_t plain;   /* bytes of a register, stored one after the other: 32 if
                       * ymm0 to ymm15 are all, 64 if zmm0 to zmm31 are, with
                       * k0 to k7 behind them; 0: XSAVE */
    uint32_t usable;  /* one of the ways exists */
};

extern struct hca_cpu_save hca_cpu_save;

/* Vector registers as saved in memory. */
struct hca_cpu_vec {
    const uint8_t               *image;  /* 512 bytes of FXSAVE first */
    const struct hca_cpu_layout *layout; /* NULL: nothing beyond FXSAVE */
};

/* Asks CPUID. Idempotent; before any other function of this file. */
void hca_cpu_init(void);

/* The image that a trampoline made as hca_cpu_save says. */
struct hca_cpu_vec hca_cpu_vec_saved(const void *image);

/* The image that the kernel put in a signal frame.
 * @param fpregs  uc_mcontext.fpregs, may be NULL */
struct hca_cpu_vec hca_cpu_vec_signal(const void *fpregs);

/**
 * Value of a store, as the bytes it would write.
 *
 * @param gpr   general registers in the order of encoding
 * @param vec   vector registers; what it lacks reads as zero
 * @param out   src->size bytes are written, at most HCA_INSN_MAX_STORE
 */
void hca_cpu_value(const struct hca_insn_src *src, const uint64_t *gpr,
                   struct hca_cpu_vec vec, void *out);

#endif
