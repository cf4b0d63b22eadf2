/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Decoder of store instructions. hca_trap calls it on the instruction that
 * faulted, hca_patch relies on its length. The bytes are read once, through a
 * cursor that cannot leave them: after running off the end every byte reads
 * as zero and the result is discarded. No state, no locks, no libc.
 * Specification: Intel SDM volume 2, chapter 2 and the opcode pages.
 */
#include "hca_insn.h"

#include <errno.h>

/* The mandatory prefix as VEX and EVEX number it. */
enum { PP_NONE, PP_66, PP_F3, PP_F2 };

enum { ENC_LEGACY = 1, ENC_VEX = 2, ENC_EVEX = 4, ENC_ANY = 7 };

enum { MAP_ONE_BYTE, MAP_0F, MAP_0F38, MAP_0F3A };

/* Sizes in the table below that depend on the encoding. */
enum { SIZE_OPERAND = 0, SIZE_VECTOR = 0xff };

#define REX_W 8
#define REX_R 4
#define REX_X 2
#define REX_B 1

struct cursor {
    const uint8_t *p;
    size_t         left;
    unsigned       used;
    bool           over;
};

/* What the prefixes said, in one form for all encodings. */
struct prefix {
    uint8_t enc;    /* one of ENC_* */
    uint8_t map;
    uint8_t pp;
    uint8_t rex;    /* REX_* bits, positive logic */
    bool    has_rex;
    bool    opsize; /* 66 seen */
    bool    reg_hi; /* EVEX: bit 4 of the register number */
    uint8_t veclen; /* bytes */
};

/* An instruction whose modrm.reg names the vector register stored. */
struct vec_op {
    uint8_t map, opcode;
    uint8_t pps;    /* bit per PP_* */
    uint8_t encs;   /* ENC_* */
    uint8_t size;
    uint8_t lane;
    bool    imm;    /* an immediate selects the lane of that size */
};

#define BIT(_n) (1u << (_n))

static const struct vec_op vec_ops[] = {
    /* movups, movupd, movss, movsd */
    {MAP_0F, 0x11, BIT(PP_NONE) | BIT(PP_66), ENC_ANY, SIZE_VECTOR, 0, 0},
    {MAP_0F, 0x11, BIT(PP_F3), ENC_ANY, 4, 0, 0},
    {MAP_0F, 0x11, BIT(PP_F2), ENC_ANY, 8, 0, 0},
    /* movlps, movlpd, movhps, movhpd */
    {MAP_0F, 0x13, BIT(PP_NONE) | BIT(PP_66), ENC_ANY, 8, 0, 0},
    {MAP_0F, 0x17, BIT(PP_NONE) | BIT(PP_66), ENC_ANY, 8, 8, 0},
    /* movaps, movapd, movntps, movntpd */
    {MAP_0F, 0x29, BIT(PP_NONE) | BIT(PP_66), ENC_ANY, SIZE_VECTOR, 0, 0},
    {MAP_0F, 0x2b, BIT(PP_NONE) | BIT(PP_66), ENC_ANY, SIZE_VECTOR, 0, 0},
    /* movd, movq */
    {MAP_0F, 0x7e, BIT(PP_66), ENC_ANY, SIZE_OPERAND, 0, 0},
    {MAP_0F, 0xd6, BIT(PP_66), ENC_ANY, 8, 0, 0},
    /* movdqa and movdqu with their EVEX forms of 8 to 64 bits, movntdq */
    {MAP_0F, 0x7f, BIT(PP_66) | BIT(PP_F3), ENC_ANY, SIZE_VECTOR, 0, 0},
    {MAP_0F, 0x7f, BIT(PP_F2), ENC_EVEX, SIZE_VECTOR, 0, 0},
    {MAP_0F, 0xe7, BIT(PP_66), ENC_ANY, SIZE_VECTOR, 0, 0},
    /* vextractf128, vextracti128 and the EVEX forms: halves of a copy */
    {MAP_0F3A, 0x19, BIT(PP_66), ENC_VEX | ENC_EVEX, 16, 0, 1},
    {MAP_0F3A, 0x39, BIT(PP_66), ENC_VEX | ENC_EVEX, 16, 0, 1},
    {MAP_0F3A, 0x1b, BIT(PP_66), ENC_EVEX, 32, 0, 1},
    {MAP_0F3A, 0x3b, BIT(PP_66), ENC_EVEX, 32, 0, 1},
};

static uint8_t cursor_peek(const struct cursor *c)
{
    return (c->left > 0) ? *c->p : 0;
}

static uint8_t cursor_u8(struct cursor *c)
{
    uint8_t byte = cursor_peek(c);

    if (c->left == 0) {
        c->over = true;
        return 0;
    }

    ++c->p;
    --c->left;
    ++c->used;
    return byte;
}

/* Little endian and sign extended, as displacements and immediates are. */
static int32_t cursor_int(struct cursor *c, unsigned bytes)
{
    uint32_t value = 0;
    unsigned i;

    for (i = 0; i < bytes; ++i) {
        value |= (uint32_t)cursor_u8(c) << (8 * i);
    }

    switch (bytes) {
    case 1:
        return (int8_t)value;
    case 2:
        return (int16_t)value;
    default:
        return (int32_t)value;
    }
}

/* Prefixes of the old kind. In 64-bit mode the segments cs, ds, es and ss
 * mean nothing; they serve as padding. */
static int prefix_legacy(struct cursor *c, struct prefix *pfx)
{
    for (;;) {
        switch (cursor_peek(c)) {
        case 0x66:
            pfx->opsize = true;
            break;
        case 0xf2:
            pfx->pp = PP_F2;
            break;
        case 0xf3:
            pfx->pp = PP_F3;
            break;
        case 0x26:
        case 0x2e:
        case 0x36:
        case 0x3e:
            break;
        case 0x64: /* fs */
        case 0x65: /* gs */
        case 0x67: /* 32-bit address */
        case 0xf0: /* lock */
            return -EINVAL;
        default:
            return 0;
        }
        if (cursor_u8(c) == 0 || c->over) {
            return -ENODATA;
        }
    }
}

static uint8_t prefix_vex2(struct cursor *c, struct prefix *pfx)
{
    uint8_t p = cursor_u8(c);

    pfx->enc    = ENC_VEX;
    pfx->map    = MAP_0F;
    pfx->rex    = (p & 0x80) ? 0 : REX_R;
    pfx->pp     = p & 3;
    pfx->veclen = (p & 4) ? 32 : 16;
    return p & 0x78; /* vvvv, all ones when unused */
}

static uint8_t prefix_vex3(struct cursor *c, struct prefix *pfx)
{
    uint8_t p0 = cursor_u8(c), p1 = cursor_u8(c);

    pfx->enc    = ENC_VEX;
    pfx->map    = p0 & 0x1f;
    pfx->rex    = (~p0 >> 5 & 7) | (p1 >> 7 << 3);
    pfx->pp     = p1 & 3;
    pfx->veclen = (p1 & 4) ? 32 : 16;
    return p1 & 0x78;
}

/* Returns as vvvv what is legal for a store only when it is all ones: no
 * mask, no zeroing, no broadcast, the reserved bits as the SDM fixes them. */
static uint8_t prefix_evex(struct cursor *c, struct prefix *pfx)
{
    uint8_t p0 = cursor_u8(c), p1 = cursor_u8(c), p2 = cursor_u8(c);

    pfx->enc    = ENC_EVEX;
    pfx->map    = p0 & 7;
    pfx->rex    = (~p0 >> 5 & 7) | (p1 >> 7 << 3);
    pfx->reg_hi = !(p0 & 0x10);
    pfx->pp     = p1 & 3;
    pfx->veclen = 16 << (p2 >> 5 & 3);
    if ((p0 & 8) || !(p1 & 4) || ((p2 & 0x9f) != 8) || (pfx->veclen > 64)) {
        return 0;
    }

    return p1 & 0x78;
}

static int prefix_vector(struct cursor *c, struct prefix *pfx, uint8_t first)
{
    uint8_t vvvv;

    /* any of these before it makes the instruction invalid */
    if (pfx->opsize || pfx->pp || pfx->has_rex) {
        return -EINVAL;
    }

    vvvv = (first == 0xc5) ? prefix_vex2(c, pfx) :
           (first == 0xc4) ? prefix_vex3(c, pfx) : prefix_evex(c, pfx);
    return (vvvv == 0x78) ? 0 : c->over ? -ENODATA : -EINVAL;
}

/* Everything up to the opcode, which is stored through the pointer. */
static int prefix_decode(struct cursor *c, struct prefix *pfx, uint8_t *opcode)
{
    int     ret = prefix_legacy(c, pfx);
    uint8_t byte;

    if (ret < 0) {
        return ret;
    }

    byte = cursor_u8(c);
    if ((byte & 0xf0) == 0x40) {
        pfx->has_rex = true;
        pfx->rex     = byte & 0xf;
        byte         = cursor_u8(c);
    }

    if ((byte == 0xc4) || (byte == 0xc5) || (byte == 0x62)) {
        ret  = prefix_vector(c, pfx, byte);
        byte = cursor_u8(c);
    } else {
        pfx->pp = pfx->pp ? pfx->pp : pfx->opsize ? PP_66 : PP_NONE;
        if (byte == 0x0f) {
            pfx->map = MAP_0F;
            byte     = cursor_u8(c);
            if ((byte == 0x38) || (byte == 0x3a)) {
                pfx->map = (byte == 0x38) ? MAP_0F38 : MAP_0F3A;
                byte     = cursor_u8(c);
            }
        }
    }

    *opcode = byte;
    return ret;
}

static unsigned operand_size(const struct prefix *pfx)
{
    return (pfx->rex & REX_W) ? 8 : pfx->opsize ? 2 : 4;
}

static void mem_sib(struct cursor *c, const struct prefix *pfx, uint8_t mod,
                    struct hca_insn *out)
{
    uint8_t sib   = cursor_u8(c);
    uint8_t index = (sib >> 3 & 7) | ((pfx->rex & REX_X) ? 8 : 0);

    out->scale = sib >> 6;
    out->index = (index == 4) ? HCA_INSN_NO_REG : index;
    out->base  = (sib & 7) | ((pfx->rex & REX_B) ? 8 : 0);
    if ((mod == 0) && ((sib & 7) == 5)) {
        out->base = HCA_INSN_NO_REG;
        out->disp = cursor_int(c, 4);
    }
}

/* The memory operand. The size of the store must be known: with EVEX an 8-bit
 * displacement counts in units of it (SDM 2.7.5; for plain stores the tuple
 * is the whole store). Returns modrm.reg extended by REX.R, or an error. */
static int mem_decode(struct cursor *c, const struct prefix *pfx,
                      struct hca_insn *out)
{
    uint8_t modrm = cursor_u8(c);
    uint8_t mod = modrm >> 6, rm = modrm & 7;

    if (mod == 3) {
        return c->over ? -ENODATA : -EINVAL;
    }

    out->index = HCA_INSN_NO_REG;
    if (rm == 4) {
        mem_sib(c, pfx, mod, out);
    } else if ((mod == 0) && (rm == 5)) {
        out->base = HCA_INSN_RIP;
        out->disp = cursor_int(c, 4);
    } else {
        out->base = rm | ((pfx->rex & REX_B) ? 8 : 0);
    }

    if (mod == 1) {
        out->disp = cursor_int(c, 1) *
                    ((pfx->enc == ENC_EVEX) ? out->src.size : 1);
    } else if (mod == 2) {
        out->disp = cursor_int(c, 4);
    }

    return (modrm >> 3 & 7) | ((pfx->rex & REX_R) ? 8 : 0);
}

/* movs and stos: the address is rdi, there is no modrm. */
static int decode_string(const struct prefix *pfx, uint8_t opcode,
                         struct hca_insn *out)
{
    if (pfx->pp == PP_F2) {
        return -EINVAL;
    }

    out->src.kind = (opcode < 0xa8) ? HCA_INSN_MOVS : HCA_INSN_STOS;
    out->src.size = (opcode & 1) ? operand_size(pfx) : 1;
    out->base     = 7;
    out->index    = HCA_INSN_NO_REG;
    out->rep      = (pfx->pp == PP_F3);
    return 0;
}

static int decode_gpr(struct cursor *c, const struct prefix *pfx, unsigned size,
                      struct hca_insn *out)
{
    int reg;

    out->src.size = size;
    reg           = mem_decode(c, pfx, out);
    if (reg < 0) {
        return reg;
    }

    out->src.kind = HCA_INSN_GPR;
    out->src.reg  = reg;
    if ((size == 1) && !pfx->has_rex && (reg >= 4)) {
        out->src.kind = HCA_INSN_GPR_HIGH;
        out->src.reg  = reg - 4;
    }
    return 0;
}

static int decode_imm(struct cursor *c, const struct prefix *pfx, unsigned size,
                      struct hca_insn *out)
{
    int reg;

    out->src.size = size;
    reg           = mem_decode(c, pfx, out);
    if ((reg < 0) || (reg & 7)) {
        return (reg < 0) ? reg : -EINVAL; /* the group has one member, /0 */
    }

    out->src.kind = HCA_INSN_IMM;
    out->src.imm  = cursor_int(c, (size == 8) ? 4 : size);
    return 0;
}

static int decode_one_byte(struct cursor *c, const struct prefix *pfx,
                           uint8_t opcode, struct hca_insn *out)
{
    unsigned size = (opcode & 1) ? operand_size(pfx) : 1;

    if ((opcode == 0xa4) || (opcode == 0xa5) || (opcode == 0xaa) ||
        (opcode == 0xab)) {
        return decode_string(pfx, opcode, out);
    }

    if (pfx->pp >= PP_F3) { /* xacquire, xrelease */
        return -EINVAL;
    }

    switch (opcode) {
    case 0x88:
    case 0x89:
        return decode_gpr(c, pfx, size, out);
    case 0xc6:
    case 0xc7:
        return decode_imm(c, pfx, size, out);
    default:
        return -EINVAL;
    }
}

/* movnti, movbe and movdiri; -ENOENT if it is none of them. */
static int decode_gpr_0f(struct cursor *c, const struct prefix *pfx,
                         uint8_t opcode, struct hca_insn *out)
{
    unsigned size = operand_size(pfx);
    int      ret;

    if ((pfx->enc != ENC_LEGACY) || (pfx->pp >= PP_F3)) {
        return -ENOENT;
    }

    if ((pfx->pp == PP_NONE) &&
        (((pfx->map == MAP_0F) && (opcode == 0xc3)) ||
         ((pfx->map == MAP_0F38) && (opcode == 0xf9)))) {
        return decode_gpr(c, pfx, size, out);
    }

    if ((pfx->map == MAP_0F38) && (opcode == 0xf1)) {
        ret           = decode_gpr(c, pfx, size, out);
        out->src.kind = HCA_INSN_GPR_SWAP;
        return ret;
    }
    return -ENOENT;
}

static const struct vec_op *vec_op_find(const struct prefix *pfx,
                                        uint8_t opcode)
{
    const struct vec_op *op;

    for (op = vec_ops; op < &vec_ops[sizeof(vec_ops) / sizeof(*op)]; ++op) {
        if ((op->map == pfx->map) && (op->opcode == opcode) &&
            (op->encs & pfx->enc) && (op->pps & BIT(pfx->pp))) {
            return op;
        }
    }

    return NULL;
}

static int decode_vec(struct cursor *c, const struct prefix *pfx,
                      uint8_t opcode, struct hca_insn *out)
{
    const struct vec_op *op = vec_op_find(pfx, opcode);
    int                  reg;

    if (op == NULL) {
        return -EINVAL;
    }

    out->src.kind = HCA_INSN_VEC;
    out->src.lane = op->lane;
    out->src.size = (op->size == SIZE_VECTOR)  ? pfx->veclen :
                    (op->size == SIZE_OPERAND) ? ((pfx->rex & REX_W) ? 8 : 4) :
                                                 op->size;
    reg           = mem_decode(c, pfx, out);
    if (reg < 0) {
        return reg;
    }

    out->src.reg = reg | (pfx->reg_hi ? 16 : 0);
    if (op->imm) {
        out->src.lane = op->size * (cursor_u8(c) &
                                    (pfx->veclen / op->size - 1));
    }
    return 0;
}

int hca_insn_decode(const uint8_t *code, size_t len, struct hca_insn *out)
{
    struct cursor   c    = {.p = code, .left = len};
    struct prefix   pfx  = {.enc = ENC_LEGACY, .veclen = 16};
    struct hca_insn insn = {.base = HCA_INSN_NO_REG};
    uint8_t         opcode;
    int             ret;

    if (c.left > HCA_INSN_MAX_LEN) {
        c.left = HCA_INSN_MAX_LEN;
    }

    ret = prefix_decode(&c, &pfx, &opcode);
    if ((ret == 0) && (pfx.map == MAP_ONE_BYTE)) {
        ret = (pfx.enc == ENC_LEGACY) ?
              decode_one_byte(&c, &pfx, opcode, &insn) : -EINVAL;
    } else if (ret == 0) {
        ret = decode_gpr_0f(&c, &pfx, opcode, &insn);
        ret = (ret == -ENOENT) ? decode_vec(&c, &pfx, opcode, &insn) : ret;
    }

    /* longer than legal is not "needs more bytes" */
    if (c.over) {
        return (len < HCA_INSN_MAX_LEN) ? -ENODATA : -EINVAL;
    }

    if (ret < 0) {
        return ret;
    }

    insn.len = c.used;
    *out     = insn;
    return insn.len;
}

uintptr_t hca_insn_ea(const struct hca_insn *insn, const uint64_t *gpr,
                      uintptr_t rip)
{
    uintptr_t ea = (uintptr_t)(intptr_t)insn->disp;

    if (insn->base == HCA_INSN_RIP) {
        ea += rip + insn->len;
    } else if (insn->base != HCA_INSN_NO_REG) {
        ea += gpr[insn->base];
    }

    if (insn->index != HCA_INSN_NO_REG) {
        ea += gpr[insn->index] << insn->scale;
    }
    return ea;
}
