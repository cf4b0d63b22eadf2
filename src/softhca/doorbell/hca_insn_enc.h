/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Decodes the parts of an instruction: legacy, VEX and EVEX prefixes into one
 * form, the opcode, and the memory operand. The bytes are read once, through a
 * cursor: beyond their end every byte reads as zero and sets over; the caller
 * then discards all results. Internal to hca_insn.
 * Specification: Intel SDM volume 2, chapter 2.
 */
#ifndef HCA_INSN_ENC_H
#define HCA_INSN_ENC_H

#include "hca_insn.h"

/* Mandatory prefix, as VEX and EVEX number it */
enum { PP_NONE, PP_66, PP_F3, PP_F2 };

enum { ENC_LEGACY = 1, ENC_VEX = 2, ENC_EVEX = 4, ENC_ANY = 7 };

enum { MAP_ONE_BYTE, MAP_0F, MAP_0F38, MAP_0F3A };

#define REX_W 8
#define REX_R 4
#define REX_X 2
#define REX_B 1

struct insn_cursor {
    const uint8_t *p;
    size_t left;
    unsigned used;
    bool over;
};

/* The prefixes, in one form for all encodings. */
struct insn_prefix {
    uint8_t enc; /* one of ENC_* */
    uint8_t map;
    uint8_t pp;
    uint8_t rex; /* REX_* bits, positive logic */
    bool has_rex;
    bool opsize;    /* 66 seen */
    bool reg_hi;    /* EVEX: bit 4 of the register number */
    uint8_t veclen; /* bytes */
};

/* Returns the next byte; 0, and sets over, if there is none. */
uint8_t hca_insn_u8(struct insn_cursor *c);

/* Reads a little-endian, signed number of 1, 2 or 4 bytes: a displacement or an
 * immediate. */
int32_t hca_insn_int(struct insn_cursor *c, unsigned bytes);

/**
 * Decode everything up to the opcode.
 *
 * @param pfx  starts as a legacy encoding without prefixes
 *
 * @return 0, -ENODATA (the bytes end), or -EINVAL: no store has these prefixes.
 */
int hca_insn_prefix_decode(struct insn_cursor *c, struct insn_prefix *pfx,
                           uint8_t *opcode);

/**
 * Decode the memory operand of a store.
 *
 * @param size  bytes stored: with EVEX an 8-bit displacement counts in units
 *              of it (SDM 2.7.5; for plain stores the tuple is the whole store)
 *
 * @return modrm.reg extended by REX.R, or -EINVAL: the operand is a register.
 */
int hca_insn_mem_decode(struct insn_cursor *c, const struct insn_prefix *pfx,
                        unsigned size, struct hca_insn *out);

#endif
