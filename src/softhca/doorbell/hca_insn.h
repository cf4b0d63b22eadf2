/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Decoder of the store instructions that can ring a doorbell. No state, no
 * allocation; safe in a signal handler and on arbitrary bytes. Encodings follow
 * the Intel SDM volume 2 (chapter 2 for the prefixes and EVEX disp8*N).
 */
#ifndef HCA_INSN_H
#define HCA_INSN_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HCA_INSN_MAX_LEN   15 /* SDM: longest legal instruction */
#define HCA_INSN_MAX_STORE 64 /* bytes of one store: a ZMM register */
#define HCA_INSN_MAX_ROW   4  /* stores of a row */
#define HCA_INSN_NO_REG    0xff
#define HCA_INSN_RIP       16 /* value of base: relative to the next RIP */

/* Source of the stored value. */
enum hca_insn_kind {
    HCA_INSN_GPR,      /* low bytes of general register reg */
    HCA_INSN_GPR_HIGH, /* bits 15..8 of register reg: ah, ch, dh, bh */
    HCA_INSN_GPR_SWAP, /* movbe: register reg in big endian */
    HCA_INSN_IMM,      /* imm, sign extended to the size of the store */
    HCA_INSN_VEC,      /* register xmm/ymm/zmm reg from byte lane on */
    HCA_INSN_ROW,      /* registers xmm regs, size / 16 of them, one behind the
                        * other: hca_insn_join() */
    HCA_INSN_MOVS,     /* string: memory at rsi */
    HCA_INSN_STOS,     /* string: low bytes of rax */
    HCA_INSN_CALL      /* no store: the call of a copy; never decoded */
};

/* Eight bytes, so that a trampoline can carry it as one stack word. */
struct hca_insn_src {
    uint8_t kind; /* enum hca_insn_kind */
    uint8_t reg;  /* 0..15, vector 0..31, in the order of encoding */
    uint8_t size; /* bytes stored (of one element of a string) */
    uint8_t lane; /* HCA_INSN_VEC: first byte of the register */
    union {
        int32_t imm;
        uint8_t regs[HCA_INSN_MAX_ROW]; /* 0..15 */
    };
};
static_assert(sizeof(struct hca_insn_src) == 8, "one stack word");

struct hca_insn {
    struct hca_insn_src src;
    uint8_t len;   /* bytes of the instruction */
    uint8_t base;  /* register, HCA_INSN_RIP or HCA_INSN_NO_REG */
    uint8_t index; /* register or HCA_INSN_NO_REG */
    uint8_t scale; /* log2: 0..3 */
    int32_t disp;
    bool rep; /* string instruction with F3: rcx elements */
};

/**
 * Decode one store to memory.
 *
 * @param code  bytes at the instruction
 * @param len   how many of them may be read; 15 always suffice
 * @param out   filled on success only
 *
 * @return Length of the instruction in bytes, -ENODATA if it goes on beyond
 *         @a len, -EINVAL if it is not a store that this decoder knows (other
 *         instructions, fs/gs, 32-bit addresses, masked or MMX stores).
 */
int hca_insn_decode(const uint8_t *code, size_t len, struct hca_insn *out);

/**
 * Joins a store of 16 bytes with the stores right behind it, at most
 * HCA_INSN_MAX_ROW in all, that continue at the next 16 bytes. Their registers
 * do not change in between, so that they can be made as one store.
 *
 * @param code  bytes at the instruction
 * @param len   how many of them may be read
 * @param insn  the decoded store; its source becomes HCA_INSN_ROW if there are
 *              others, the rest stays
 *
 * @return Length of all of the instructions in bytes; insn->len if there are no
 *         others.
 */
unsigned hca_insn_join(const uint8_t *code, size_t len, struct hca_insn *insn);

/**
 * Address that the store writes to.
 *
 * @param gpr   the 16 general registers in the order of encoding
 * @param rip   address of the instruction itself
 */
uintptr_t hca_insn_ea(const struct hca_insn *insn, const uint64_t *gpr,
                      uintptr_t rip);

#endif
