/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/* Decodes prefixes, opcode and memory operand: see hca_insn_enc.h. */
#include "hca_insn_enc.h"

#include <errno.h>

static uint8_t insn_peek(const struct insn_cursor *c)
{
    return (c->left > 0) ? *c->p : 0;
}

uint8_t hca_insn_u8(struct insn_cursor *c)
{
    uint8_t byte = insn_peek(c);

    if (c->left == 0) {
        c->over = true;
        return 0;
    }

    ++c->p;
    --c->left;
    ++c->used;
    return byte;
}

int32_t hca_insn_int(struct insn_cursor *c, unsigned bytes)
{
    uint32_t value = 0;
    unsigned i;

    for (i = 0; i < bytes; ++i) {
        value |= (uint32_t)hca_insn_u8(c) << (8 * i);
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

/* Reads legacy prefixes. Those of cs, ds, es and ss are ignored, as in 64-bit
 * mode they have no effect. */
static int prefix_legacy(struct insn_cursor *c, struct insn_prefix *pfx)
{
    for (;;) {
        switch (insn_peek(c)) {
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
        if (hca_insn_u8(c) == 0 || c->over) {
            return -ENODATA;
        }
    }
}

static uint8_t prefix_vex2(struct insn_cursor *c, struct insn_prefix *pfx)
{
    uint8_t p = hca_insn_u8(c);

    pfx->enc    = ENC_VEX;
    pfx->map    = MAP_0F;
    pfx->rex    = (p & 0x80) ? 0 : REX_R;
    pfx->pp     = p & 3;
    pfx->veclen = (p & 4) ? 32 : 16;
    return p & 0x78; /* vvvv; all ones: unused */
}

static uint8_t prefix_vex3(struct insn_cursor *c, struct insn_prefix *pfx)
{
    uint8_t p0 = hca_insn_u8(c), p1 = hca_insn_u8(c);

    pfx->enc    = ENC_VEX;
    pfx->map    = p0 & 0x1f;
    pfx->rex    = (~p0 >> 5 & 7) | (p1 >> 7 << 3);
    pfx->pp     = p1 & 3;
    pfx->veclen = (p1 & 4) ? 32 : 16;
    return p1 & 0x78;
}

/* Returns vvvv, which is all ones in a store; 0 also if a store cannot have
 * these bits: a mask, zeroing, broadcast, wrong reserved bits. */
static uint8_t prefix_evex(struct insn_cursor *c, struct insn_prefix *pfx)
{
    uint8_t p0 = hca_insn_u8(c), p1 = hca_insn_u8(c), p2 = hca_insn_u8(c);

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

static int prefix_vector(struct insn_cursor *c, struct insn_prefix *pfx,
                         uint8_t first)
{
    uint8_t vvvv;

    /* 66, f2, f3 or REX before VEX or EVEX: invalid */
    if (pfx->opsize || pfx->pp || pfx->has_rex) {
        return -EINVAL;
    }

    vvvv = (first == 0xc5) ? prefix_vex2(c, pfx) :
           (first == 0xc4) ? prefix_vex3(c, pfx) :
                             prefix_evex(c, pfx);
    return (vvvv == 0x78) ? 0 : c->over ? -ENODATA : -EINVAL;
}

int hca_insn_prefix_decode(struct insn_cursor *c, struct insn_prefix *pfx,
                           uint8_t *opcode)
{
    int ret = prefix_legacy(c, pfx);
    uint8_t byte;

    if (ret < 0) {
        return ret;
    }

    byte = hca_insn_u8(c);
    if ((byte & 0xf0) == 0x40) {
        pfx->has_rex = true;
        pfx->rex     = byte & 0xf;
        byte         = hca_insn_u8(c);
    }

    if ((byte == 0xc4) || (byte == 0xc5) || (byte == 0x62)) {
        ret  = prefix_vector(c, pfx, byte);
        byte = hca_insn_u8(c);
    } else {
        pfx->pp = pfx->pp ? pfx->pp : pfx->opsize ? PP_66 : PP_NONE;
        if (byte == 0x0f) {
            pfx->map = MAP_0F;
            byte     = hca_insn_u8(c);
            if ((byte == 0x38) || (byte == 0x3a)) {
                pfx->map = (byte == 0x38) ? MAP_0F38 : MAP_0F3A;
                byte     = hca_insn_u8(c);
            }
        }
    }

    *opcode = byte;
    return ret;
}

static void mem_sib(struct insn_cursor *c, const struct insn_prefix *pfx,
                    uint8_t mod, struct hca_insn *out)
{
    uint8_t sib   = hca_insn_u8(c);
    uint8_t index = (sib >> 3 & 7) | ((pfx->rex & REX_X) ? 8 : 0);

    out->scale = sib >> 6;
    out->index = (index == 4) ? HCA_INSN_NO_REG : index;
    out->base  = (sib & 7) | ((pfx->rex & REX_B) ? 8 : 0);
    if ((mod == 0) && ((sib & 7) == 5)) {
        out->base = HCA_INSN_NO_REG;
        out->disp = hca_insn_int(c, 4);
    }
}

int hca_insn_mem_decode(struct insn_cursor *c, const struct insn_prefix *pfx,
                        unsigned size, struct hca_insn *out)
{
    uint8_t modrm = hca_insn_u8(c);
    uint8_t mod = modrm >> 6, rm = modrm & 7;

    if (mod == 3) {
        return c->over ? -ENODATA : -EINVAL;
    }

    out->src.size = size;
    out->index    = HCA_INSN_NO_REG;
    if (rm == 4) {
        mem_sib(c, pfx, mod, out);
    } else if ((mod == 0) && (rm == 5)) {
        out->base = HCA_INSN_RIP;
        out->disp = hca_insn_int(c, 4);
    } else {
        out->base = rm | ((pfx->rex & REX_B) ? 8 : 0);
    }

    if (mod == 1) {
        out->disp = hca_insn_int(c, 1) * ((pfx->enc == ENC_EVEX) ? size : 1);
    } else if (mod == 2) {
        out->disp = hca_insn_int(c, 4);
    }

    return (modrm >> 3 & 7) | ((pfx->rex & REX_R) ? 8 : 0);
}
