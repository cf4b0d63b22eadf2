/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Decodes store instructions: the operand that each opcode stores. hca_trap
 * calls it for the instruction that faulted, hca_patch relies on the length.
 * hca_insn_enc decodes prefixes, opcode and memory operand. No state, no locks,
 * no libc. Specification: Intel SDM volume 2, the opcode pages.
 */
#include "hca_insn.h"
#include "hca_insn_enc.h"

#include <errno.h>

/* Sizes in the table below that depend on the encoding. */
enum { SIZE_OPERAND = 0, SIZE_VECTOR = 0xff };

/* An instruction whose modrm.reg names the vector register stored. */
struct vec_op {
    uint8_t map, opcode;
    uint8_t pps;  /* bit per PP_* */
    uint8_t encs; /* ENC_* */
    uint8_t size;
    uint8_t lane;
    bool imm; /* an immediate selects the lane, of .size bytes */
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
    /* vextractf128, vextracti128 and their EVEX forms */
    {MAP_0F3A, 0x19, BIT(PP_66), ENC_VEX | ENC_EVEX, 16, 0, 1},
    {MAP_0F3A, 0x39, BIT(PP_66), ENC_VEX | ENC_EVEX, 16, 0, 1},
    {MAP_0F3A, 0x1b, BIT(PP_66), ENC_EVEX, 32, 0, 1},
    {MAP_0F3A, 0x3b, BIT(PP_66), ENC_EVEX, 32, 0, 1},
};

static unsigned operand_size(const struct insn_prefix *pfx)
{
    return (pfx->rex & REX_W) ? 8 : pfx->opsize ? 2 : 4;
}

/* movs and stos: the address is rdi, there is no modrm. */
static int decode_string(const struct insn_prefix *pfx, uint8_t opcode,
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

static int decode_gpr(struct insn_cursor *c, const struct insn_prefix *pfx,
                      unsigned size, struct hca_insn *out)
{
    int reg = hca_insn_mem_decode(c, pfx, size, out);

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

static int decode_imm(struct insn_cursor *c, const struct insn_prefix *pfx,
                      unsigned size, struct hca_insn *out)
{
    int reg = hca_insn_mem_decode(c, pfx, size, out);

    if ((reg < 0) || (reg & 7)) {
        return (reg < 0) ? reg : -EINVAL; /* the group has one member, /0 */
    }

    out->src.kind = HCA_INSN_IMM;
    out->src.imm  = hca_insn_int(c, (size == 8) ? 4 : size);
    return 0;
}

static int decode_one_byte(struct insn_cursor *c, const struct insn_prefix *pfx,
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
static int decode_gpr_0f(struct insn_cursor *c, const struct insn_prefix *pfx,
                         uint8_t opcode, struct hca_insn *out)
{
    unsigned size = operand_size(pfx);
    int ret;

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

static const struct vec_op *vec_op_find(const struct insn_prefix *pfx,
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

static int decode_vec(struct insn_cursor *c, const struct insn_prefix *pfx,
                      uint8_t opcode, struct hca_insn *out)
{
    const struct vec_op *op = vec_op_find(pfx, opcode);
    unsigned size;
    int reg;

    if (op == NULL) {
        return -EINVAL;
    }

    size = (op->size == SIZE_VECTOR)  ? pfx->veclen :
           (op->size == SIZE_OPERAND) ? ((pfx->rex & REX_W) ? 8 : 4) :
                                        op->size;
    reg  = hca_insn_mem_decode(c, pfx, size, out);
    if (reg < 0) {
        return reg;
    }

    out->src.kind = HCA_INSN_VEC;
    out->src.lane = op->lane;
    out->src.reg  = reg | (pfx->reg_hi ? 16 : 0);
    if (op->imm) {
        out->src.lane = op->size *
                        (hca_insn_u8(c) & (pfx->veclen / op->size - 1));
    }
    return 0;
}

int hca_insn_decode(const uint8_t *code, size_t len, struct hca_insn *out)
{
    struct insn_cursor c   = {.p = code, .left = len};
    struct insn_prefix pfx = {.enc = ENC_LEGACY, .veclen = 16};
    struct hca_insn insn   = {.base = HCA_INSN_NO_REG};
    uint8_t opcode;
    int ret;

    if (c.left > HCA_INSN_MAX_LEN) {
        c.left = HCA_INSN_MAX_LEN;
    }

    ret = hca_insn_prefix_decode(&c, &pfx, &opcode);
    if ((ret == 0) && (pfx.map == MAP_ONE_BYTE)) {
        ret = (pfx.enc == ENC_LEGACY) ?
                  decode_one_byte(&c, &pfx, opcode, &insn) :
                  -EINVAL;
    } else if (ret == 0) {
        ret = decode_gpr_0f(&c, &pfx, opcode, &insn);
        ret = (ret == -ENOENT) ? decode_vec(&c, &pfx, opcode, &insn) : ret;
    }

    /* beyond the legal length, more bytes would not help */
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

static bool insn_is_octoword(const struct hca_insn *insn)
{
    return (insn->src.kind == HCA_INSN_VEC) && (insn->src.size == 16) &&
           (insn->src.lane == 0) && (insn->src.reg < 16) &&
           (insn->base != HCA_INSN_RIP);
}

unsigned hca_insn_join(const uint8_t *code, size_t len, struct hca_insn *insn)
{
    struct hca_insn_src row = {.kind = HCA_INSN_ROW};
    struct hca_insn next    = *insn;
    unsigned num = 0, used = 0;

    while ((num < HCA_INSN_MAX_ROW) && insn_is_octoword(&next) &&
           (next.base == insn->base) && (next.index == insn->index) &&
           (next.scale == insn->scale) &&
           (next.disp == insn->disp + 16 * (int)num)) {
        row.regs[num++] = next.src.reg;
        used += next.len;
        if (hca_insn_decode(code + used, len - used, &next) < 0) {
            break;
        }
    }

    if (num < 2) {
        return insn->len;
    }
    row.size  = 16 * num;
    insn->src = row;
    return used;
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
