/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Builds trampolines. Called by hca_patch, one thread at a time.
 *
 * A jump has five bytes, doorbell stores three or four, and only the store's
 * own bytes may change, as anything may jump to its successor. So the jump's
 * last bytes are the successor's first ones, which stay as they are, and the
 * trampoline is mapped where the jump then leads: with three bytes of our own
 * that is a window of 64 KiB within +-2 GiB, with four one of 16 MiB. (Padding
 * between functions, the other place for a longer jump, is out of reach of a
 * short jump at the doorbells of libmlx5 and UCX.) A debugger's breakpoint on
 * the successor would bend such a jump: where it would then lead, a second
 * page jumps back to the trampoline, which returns to the breakpoint; that of a
 * row goes on behind the whole row.
 */
#define _GNU_SOURCE
#include "hca_patch_code.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CODE_MIN_LEN 3   /* fewer leave a window of 256 bytes */
#define CODE_TRIES   256 /* places tried within a window */
#define CODE_DATA    192 /* constants of a trampoline, offset */
#define CODE_PAGE    4096ul
#define OPCODE_JMP   0xe9
#define OPCODE_CALL  0xe8
#define OPCODE_INT3  0xcc
#define REG_RSP      4

/* Possible targets of a jump, given the bytes of the successor. */
struct window {
    uintptr_t low;
    size_t size;
    intptr_t twin; /* distance to where a breakpoint would bend it, or 0 */
};

/* A trampoline under construction. */
struct code {
    uintptr_t page;
    uint8_t bytes[256];
    unsigned used;
};

static uintptr_t page_up(uintptr_t addr)
{
    return (addr + CODE_PAGE - 1) & ~(CODE_PAGE - 1);
}

int hca_patch_code_protect(uintptr_t addr, size_t len, int prot)
{
    uintptr_t low = addr & ~(CODE_PAGE - 1);

    return syscall(SYS_mprotect, low, page_up(addr + len) - low, prot) ?
               -errno :
               0;
}

static void page_unmap(uintptr_t page)
{
    syscall(SYS_munmap, page, CODE_PAGE);
}

static bool page_map(uintptr_t addr)
{
    uintptr_t page = syscall(SYS_mmap, addr, CODE_PAGE, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE,
                             -1, 0);

    if ((page == (uintptr_t)MAP_FAILED) || (page == addr)) {
        return page == addr;
    }

    page_unmap(page); /* a kernel that takes the flag for a hint */
    return false;
}

static int page_seal(uintptr_t page)
{
    return hca_patch_code_protect(page, CODE_PAGE, PROT_READ | PROT_EXEC);
}

static void code_add(struct code *c, const void *bytes, unsigned size)
{
    memcpy(c->bytes + c->used, bytes, size);
    c->used += size;
}

static void code_int(struct code *c, int32_t value)
{
    code_add(c, &value, sizeof(value));
}

/* Adds an instruction that ends in a reference to the trampoline's constant
 * number @which. */
static void code_constant(struct code *c, const void *opcode, int which)
{
    code_add(c, opcode, 2);
    code_int(c, CODE_DATA + 8 * which - (int)(c->used + 4));
}

static void code_jump(struct code *c, uintptr_t to)
{
    code_add(c, "\xe9", 1);
    code_int(c, to - (c->page + c->used + 4));
}

static bool insn_is_call(const struct hca_insn *insn)
{
    return insn->src.kind == HCA_INSN_CALL;
}

/* Adds lea of the store's address into rax, with a 32-bit displacement. */
static void code_lea(struct code *c, const struct hca_insn *insn)
{
    uint8_t index = (insn->index == HCA_INSN_NO_REG) ? 4 : insn->index;
    uint8_t bytes[4];

    bytes[0] = 0x48 | (index >> 3 << 1) | (insn->base >> 3);
    bytes[1] = 0x8d;
    bytes[2] = 0x84; /* rax, SIB, 32-bit displacement */
    bytes[3] = (insn->scale << 6) | ((index & 7) << 3) | (insn->base & 7);
    code_add(c, bytes, sizeof(bytes));
    code_int(c, insn->disp);
}

/* popfq; pop %rax; lea 136(%rsp), %rsp */
static void code_restore(struct code *c)
{
    code_add(c, "\x9d\x58\x48\x8d\xa4\x24\x88\x00\x00\x00", 10);
}

/* Only whole words in registers that code_store() can name. */
bool hca_patch_code_pushes(const struct hca_insn *insn)
{
    const struct hca_insn_src *src = &insn->src;

    return ((src->kind == HCA_INSN_GPR) && (src->size == 8) &&
            (src->reg != REG_RSP)) ||
           (src->kind == HCA_INSN_ROW) ||
           ((src->kind == HCA_INSN_VEC) && (src->reg < 16) &&
            (src->lane == 0) && ((src->size == 16) || (src->size == 32)));
}

/* Adds the stores of a row to where rax points: movups %xmm, disp8(%rax) */
static void code_store_row(struct code *c, const struct hca_insn_src *src)
{
    unsigned i;

    for (i = 0; i < src->size / 16u; ++i) {
        const uint8_t movups[] = {(src->regs[i] >= 8) ? 0x44 : 0x40, 0x0f, 0x11,
                                  0x40 | (src->regs[i] & 7) << 3, 16 * i};

        code_add(c, movups, sizeof(movups));
    }
}

/* movq %xmm, -16(%rsp): the first bytes of a row for hca_trap_enter_push */
static void code_ctrl(struct code *c, const struct hca_insn_src *src)
{
    const uint8_t movq[] = {0x66, (src->regs[0] >= 8) ? 0x44 : 0x40, 0x0f,
                            0xd6, 0x44 | (src->regs[0] & 7) << 3,    0x24,
                            0xf0};

    code_add(c, movq, sizeof(movq));
}

/* Adds a store of the source to where rax points. If rax itself is the source,
 * it is on the stack, above the flags. */
static void code_store(struct code *c, const struct hca_insn_src *src)
{
    const bool is_high      = (src->reg >= 8);
    const uint8_t modrm     = (src->reg & 7) << 3;
    const uint8_t gpr[]     = {is_high ? 0x4c : 0x48, 0x89, modrm};
    const uint8_t movups[]  = {is_high ? 0x44 : 0x40, 0x0f, 0x11, modrm};
    const uint8_t vmovups[] = {0xc5, is_high ? 0x7c : 0xfc, 0x11, modrm};

    if (src->kind == HCA_INSN_ROW) {
        code_store_row(c, src);
    } else if (src->kind == HCA_INSN_VEC) {
        code_add(c, (src->size == 32) ? vmovups : movups, 4);
    } else if (src->reg == 0) {
        /* push 8(%rsp); pop (%rax) */
        code_add(c, "\xff\x74\x24\x08\x8f\x00", 6);
    } else {
        code_add(c, gpr, sizeof(gpr));
    }
}

/* Adds the code behind the call if hca_trap_enter_push may return a place. */
static void code_push(struct code *c, const struct hca_patch_store *store)
{
    unsigned jbe;

    code_add(c, "\x48\x83\xf8\x01\x76\x00", 6); /* cmp $1, %rax; jbe 2f */
    jbe = c->used;
    code_store(c, &store->insn->src);
    code_restore(c);
    code_jump(c, store->rip + store->len);
    c->bytes[jbe - 1] = c->used - jbe; /* 2: */
}

/* Builds code that prepares the stack for hca_trap_enter, calls it, and either
 * goes on behind the store or executes the original, only the first of a row.
 * Returns the offset of the original. */
static unsigned code_build(struct code *c, const struct hca_patch_store *store,
                           const void *enter)
{
    const bool is_row = (store->insn->src.kind == HCA_INSN_ROW);
    uintptr_t next    = store->rip + store->len;
    unsigned jnz, native;

    code_add(c, "\x48\x8d\x64\x24\x80", 5); /* lea -128(%rsp), %rsp */
    code_constant(c, "\xff\x35", 0);        /* push next */
    code_add(c, "\x50\x9c", 2);             /* push %rax; pushfq */
    code_lea(c, store->insn);
    code_constant(c, "\xff\x35", 1); /* push source */
    if (is_row) {
        code_ctrl(c, &store->insn->src);
    }
    code_constant(c, "\xff\x15", 2);        /* call hca_trap_enter */
    code_add(c, "\x48\x8d\x64\x24\x08", 5); /* lea 8(%rsp), %rsp */
    if (hca_patch_code_pushes(store->insn)) {
        code_push(c, store);
    }
    code_add(c, "\x84\xc0\x75\x00", 4); /* test %al, %al; jnz 1f */
    jnz = c->used;
    code_restore(c);
    code_jump(c, next);
    c->bytes[jnz - 1] = c->used - jnz; /* 1: */
    code_restore(c);
    native = c->used;
    code_add(c, store->bytes, store->insn->len);
    code_jump(c, store->rip + store->insn->len);

    c->used = CODE_DATA;
    code_add(c, &next, 8);
    code_add(c, &store->insn->src, 8);
    code_add(c, &enter, 8);
    return native;
}

/* Builds code that calls a copy with its fourth argument, the callee of the
 * call that it replaces. That has become a call of the second half; a thread
 * that faulted at it begins with the first half. Returns the offset of the
 * second half. */
static unsigned code_build_call(struct code *c,
                                const struct hca_patch_store *store,
                                const void *copy)
{
    uintptr_t callee = hca_insn_ea(store->insn, NULL, store->rip);
    unsigned second;

    code_add(c, "\xe8\x05\x00\x00\x00", 5); /* call 1f */
    code_jump(c, store->rip + store->insn->len);
    second = c->used;
    code_constant(c, "\xff\x35", 0); /* 1: push callee */
    code_add(c, "\x59", 1);          /* pop %rcx */
    code_constant(c, "\xff\x25", 1); /* jmp hca_trap_copy */

    c->used = CODE_DATA;
    code_add(c, &callee, 8);
    code_add(c, &copy, 8);
    return second;
}

/* A jump of the store's own bytes only could use any window; that of a store of
 * four bytes serves as well. */
static struct window window_of(const struct hca_patch_store *store)
{
    const unsigned len  = store->insn->len;
    const uint32_t int3 = OPCODE_INT3;
    uint32_t high, bent;

    if (len == CODE_MIN_LEN) {
        bent = (uint32_t)store->bytes[4] << 24;
        high = bent | (uint32_t)store->bytes[3] << 16;
        bent = bent | int3 << 16;
    } else {
        high = (len < HCA_PATCH_JUMP) ? (uint32_t)store->bytes[4] << 24 :
                                        0x0f000000;
        bent = (len < HCA_PATCH_JUMP) ? int3 << 24 : high;
    }

    return (struct window){
        .low  = store->rip + HCA_PATCH_JUMP + (intptr_t)(int32_t)high,
        .size = (len == CODE_MIN_LEN) ? 1ul << 16 : 1ul << 24,
        .twin = (intptr_t)(int32_t)bent - (intptr_t)(int32_t)high,
    };
}

/* jmp *0(%rip), with the address behind it */
static bool twin_build(uintptr_t addr, uintptr_t page)
{
    if (!page_map(addr)) {
        return false;
    }

    memcpy((void *)addr, "\xff\x25\x00\x00\x00\x00", 6);
    memcpy((void *)(addr + 6), &page, sizeof(page));
    if (page_seal(addr) < 0) {
        page_unmap(addr);
        return false;
    }
    return true;
}

/* Maps a writable page that the jump can reach, with its twin in place.
 * @return 0 if there is none. */
static uintptr_t window_map(struct window w)
{
    size_t step    = page_up(w.size / CODE_TRIES);
    uintptr_t addr = page_up(w.low);

    for (; addr < w.low + w.size; addr += step) {
        if (!page_map(addr)) {
            continue;
        }

        if ((w.twin == 0) || twin_build(addr + w.twin, addr)) {
            return addr;
        }
        page_unmap(addr);
    }
    return 0;
}

/* Returns true for the first byte of instructions of two or more: two-byte
 * opcodes, REX, VEX, prefixes. */
static bool is_long(uint8_t byte)
{
    return (byte == 0x0f) || ((byte & 0xf0) == 0x40) || (byte == 0xc4) ||
           (byte == 0xc5) || (byte == 0x66) || (byte == 0xf2) || (byte == 0xf3);
}

/* The successor's bytes in the jump must be of one instruction, of the store's
 * function: then only a breakpoint on that one can change them. */
static bool successor_usable(const uint8_t *bytes, unsigned len)
{
    if (len >= HCA_PATCH_JUMP) {
        return true;
    }

    if (bytes[len] == OPCODE_INT3) {
        return false;
    }

    return (len == HCA_PATCH_JUMP - 1) || is_long(bytes[len]);
}

/* Doorbells are not on the stack, so the trampoline does not need to know that
 * rsp differs there. */
static bool insn_usable(const struct hca_insn *insn)
{
    return insn_is_call(insn) ||
           ((insn->len >= CODE_MIN_LEN) && (insn->base < HCA_INSN_RIP) &&
            (insn->base != REG_RSP) && (insn->src.kind != HCA_INSN_MOVS) &&
            (insn->src.kind != HCA_INSN_STOS));
}

int hca_patch_code_create(const struct hca_patch_store *store,
                          const void *enter, struct hca_patch_code *out)
{
    const bool is_call = insn_is_call(store->insn);
    struct code c      = {.used = 0};
    unsigned second;
    int32_t rel;
    int ret;

    if (!insn_usable(store->insn) ||
        !successor_usable(store->bytes, store->insn->len)) {
        return -ENOTSUP;
    }

    c.page = window_map(window_of(store));
    if (c.page == 0) {
        return -ENOMEM;
    }

    second = is_call ? code_build_call(&c, store, enter) :
                       code_build(&c, store, enter);
    memcpy((void *)c.page, c.bytes, c.used);
    ret = page_seal(c.page);
    if (ret < 0) {
        page_unmap(c.page);
        return ret;
    }

    rel = c.page - (store->rip + HCA_PATCH_JUMP);
    rel += is_call ? second : 0;
    out->entry   = c.page;
    out->native  = is_call ? 0 : c.page + second;
    out->jump[0] = is_call ? OPCODE_CALL : OPCODE_JMP;
    memcpy(out->jump + 1, &rel, sizeof(rel));
    return 0;
}
