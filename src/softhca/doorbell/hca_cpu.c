/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Reads saved registers. hca_trap and the trampolines call it in the storing
 * thread; its state is constant after hca_cpu_init(). Vector registers are in
 * one of three layouts: one behind the other (plain stores); the standard
 * format of XSAVE and of the kernel's signal frames, whose offsets CPUID lists;
 * the compacted format of XSAVEC, where the saved components follow each other.
 * Specification: Intel SDM volume 1, 13.4.2 and 13.4.3; struct _fpx_sw_bytes of
 * <asm/sigcontext.h>.
 */
#include "hca_cpu.h"

#include <asm/sigcontext.h>
#include <cpuid.h>
#include <string.h>

#define FXSAVE_XMM   160 /* offset: the low halves, 16 bytes each */
#define XSAVE_HEADER 512 /* offset: XSTATE_BV, XCOMP_BV */
#define XSAVE_FIRST  576 /* offset of the first component */

/* Numbers of the components that are saved. The device's code does not touch
 * the others: x87 (no long double), MPX, the protection keys, AMX tiles. */
enum { SSE = 1, AVX = 2, OPMASK = 5, ZMM_HIGH = 6, ZMM_16 = 7 };

#define BIT(_n)    (1u << (_n))
#define YMM_MASK   (BIT(SSE) | BIT(AVX))
#define SAVED_MASK (YMM_MASK | BIT(OPMASK) | BIT(ZMM_HIGH) | BIT(ZMM_16))

/* Bytes of plain stores: of a register; of an image with masks */
enum { YMM_SIZE = 32, ZMM_SIZE = 64, ZMM_IMAGE = 32 * ZMM_SIZE + 8 * 8 };

struct hca_cpu_save hca_cpu_save;

static struct hca_cpu_layout hca_cpu_standard = {.offset[SSE] = FXSAVE_XMM};
static struct hca_cpu_layout hca_cpu_compact  = {.offset[SSE] = FXSAVE_XMM};

static const struct hca_cpu_layout hca_cpu_ymm = {.flat = YMM_SIZE};
static const struct hca_cpu_layout hca_cpu_zmm = {.flat = ZMM_SIZE};

static uint32_t xcr0_low(void)
{
    uint32_t low, high;

    __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low;
}

/* Fills in the standard and the compacted layout for the components in @mask.
 * @return the size of the larger one. */
static uint32_t layout_scan(uint32_t mask)
{
    uint32_t size, offset, flags, edx, next = XSAVE_FIRST, end = XSAVE_FIRST;
    int i;

    for (i = AVX; i <= ZMM_16; ++i) {
        if (!(mask & BIT(i))) {
            continue;
        }

        __cpuid_count(0xd, i, size, offset, flags, edx);
        if (flags & 2) { /* starts at a multiple of 64 when compact */
            next = (next + 63) & ~63u;
        }
        hca_cpu_standard.offset[i] = offset;
        hca_cpu_compact.offset[i]  = next;
        next += size;
        end = (offset + size > end) ? offset + size : end;
    }

    return (next > end) ? next : end;
}

/* Returns hca_cpu_save.plain. Masks have 64 bits only with AVX-512BW. */
static uint32_t plain_size(uint32_t mask)
{
    uint32_t eax, ebx = 0, ecx, edx;

    if (mask == YMM_MASK) {
        return YMM_SIZE;
    }
    __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx);
    return ((mask == SAVED_MASK) && (ebx & bit_AVX512BW)) ? ZMM_SIZE : 0;
}

void hca_cpu_init(void)
{
    uint32_t eax, ebx, ecx, edx;

    __cpuid(1, eax, ebx, ecx, edx);
    if (!(ecx & bit_OSXSAVE)) {
        return;
    }

    hca_cpu_save.mask  = xcr0_low() & SAVED_MASK;
    hca_cpu_save.plain = plain_size(hca_cpu_save.mask);
    hca_cpu_save.size  = layout_scan(hca_cpu_save.mask);
    if ((hca_cpu_save.plain == ZMM_SIZE) && (hca_cpu_save.size < ZMM_IMAGE)) {
        hca_cpu_save.size = ZMM_IMAGE;
    }
    hca_cpu_save.size = (hca_cpu_save.size + 63) & ~63u;
    __cpuid_count(0xd, 1, eax, ebx, ecx, edx);
    hca_cpu_save.compact = (eax >> 1) & 1;
    hca_cpu_save.usable  = 1;
}

struct hca_cpu_vec hca_cpu_vec_saved(const void *image)
{
    return (struct hca_cpu_vec){
        .image  = image,
        .layout = (hca_cpu_save.plain == YMM_SIZE) ? &hca_cpu_ymm :
                  (hca_cpu_save.plain == ZMM_SIZE) ? &hca_cpu_zmm :
                  hca_cpu_save.compact             ? &hca_cpu_compact :
                                                     &hca_cpu_standard,
    };
}

struct hca_cpu_vec hca_cpu_vec_signal(const void *fpregs)
{
    struct hca_cpu_vec vec = {.image = fpregs};
    struct _fpx_sw_bytes sw;

    if (fpregs != NULL) {
        memcpy(&sw, vec.image + XSAVE_HEADER - sizeof(sw), sizeof(sw));
        if ((sw.magic1 == FP_XSTATE_MAGIC1) && hca_cpu_save.usable) {
            vec.layout = &hca_cpu_standard;
        }
    }
    return vec;
}

/* Copies the @n-th piece of @size bytes of a component. Leaves @out, which is
 * zero, alone if the component is not in XSTATE_BV: XSAVE does not write it in
 * its initial state. */
static void vec_piece(struct hca_cpu_vec vec, int component, unsigned n,
                      void *out, size_t size)
{
    uint32_t offset = vec.layout->offset[component];
    uint64_t saved;

    memcpy(&saved, vec.image + XSAVE_HEADER, sizeof(saved));
    if ((offset != 0) && (saved & BIT(component))) {
        memcpy(out, vec.image + offset + n * size, size);
    }
}

static void vec_read(struct hca_cpu_vec vec, unsigned reg, uint8_t *out)
{
    memset(out, 0, HCA_INSN_MAX_STORE);
    if (vec.image == NULL) {
        return;
    }

    if (vec.layout == NULL) {
        if (reg < 16) {
            memcpy(out, vec.image + FXSAVE_XMM + 16 * reg, 16);
        }
    } else if (vec.layout->flat != 0) {
        memcpy(out, vec.image + vec.layout->flat * reg, vec.layout->flat);
    } else if (reg < 16) {
        vec_piece(vec, SSE, reg, out, 16);
        vec_piece(vec, AVX, reg, out + 16, 16);
        vec_piece(vec, ZMM_HIGH, reg, out + 32, 32);
    } else {
        vec_piece(vec, ZMM_16, reg - 16, out, 64);
    }
}

/* Copies the lowest 16 bytes of @num registers, one behind the other. */
static void vec_read_row(struct hca_cpu_vec vec, const uint8_t *regs,
                         unsigned num, uint8_t *out)
{
    uint32_t flat = (vec.layout == NULL) ? 0 : vec.layout->flat;
    uint8_t bytes[HCA_INSN_MAX_STORE];
    unsigned i;

    if (flat != 0) {
        for (i = 0; i < num; ++i) {
            memcpy(out + 16 * i, vec.image + flat * regs[i], 16);
        }
        return;
    }
    for (i = 0; i < num; ++i) {
        vec_read(vec, regs[i], bytes);
        memcpy(out + 16 * i, bytes, 16);
    }
}

/* Swaps the low @size bytes of @value, as movbe does. */
static uint64_t value_swap(uint64_t value, unsigned size)
{
    return __builtin_bswap64(value) >> (64 - 8 * size);
}

void hca_cpu_value(const struct hca_insn_src *src, const uint64_t *gpr,
                   struct hca_cpu_vec vec, void *out)
{
    uint8_t bytes[HCA_INSN_MAX_STORE];
    uint64_t value = 0;

    switch (src->kind) {
    case HCA_INSN_GPR:
        value = gpr[src->reg];
        break;
    case HCA_INSN_GPR_HIGH:
        value = gpr[src->reg] >> 8;
        break;
    case HCA_INSN_GPR_SWAP:
        value = value_swap(gpr[src->reg], src->size);
        break;
    case HCA_INSN_IMM:
        value = (uint64_t)(int64_t)src->imm;
        break;
    case HCA_INSN_STOS:
        value = gpr[0];
        break;
    case HCA_INSN_VEC:
        vec_read(vec, src->reg, bytes);
        memcpy(out, bytes + src->lane, src->size);
        return;
    case HCA_INSN_ROW:
        vec_read_row(vec, src->regs, src->size / 16, out);
        return;
    }

    if (src->size == sizeof(value)) { /* a copy of constant size is one move */
        memcpy(out, &value, sizeof(value));
    } else {
        memcpy(out, &value, src->size);
    }
}
