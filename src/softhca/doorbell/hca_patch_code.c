/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Builds trampolines. Called by hca_patch, in one thread at a time.
 *
 * A jump has five bytes, a doorbell store three or four, and only the store's
 * own bytes may change, as other code may jump to the next instruction. So the
 * last bytes of the jump are the first ones of that instruction, unchanged, and
 * the trampoline is mapped where the jump then leads: with three own bytes into
 * a window of 64 KiB within +-2 GiB, with four into one of 16 MiB. (A short
 * jump to a longer one in the padding between functions is no alternative: at
 * the doorbells of libmlx5 and UCX, the padding is out of its reach.)
 *
 * A debugger's breakpoint on the next instruction changes the target of such a
 * jump. At that target a second page, the twin, jumps to the trampoline. This
 * returns to the breakpoint; only a row continues behind its last store.
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
#define CODE_TRIES   256 /* most places tried within a window */
#define CODE_DATA    192 /* offset of a trampoline's constants */
#define CODE_PAGE    4096ul
#define OPCODE_JMP   0xe9
#define OPCODE_CALL  0xe8
#define OPCODE_INT3  0xcc
#define REG_RSP      4

/* Possible targets of a jump, given the bytes of the next instruction */
struct window {
    uintptr_t low;
    size_t size;
    intptr_t twin; /* distance of the twin, 0: none is needed */
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

    page_unmap(page); /* a kernel before 4.17 ignores NOREPLACE */
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

/* Adds an instruction whose operand is constant @which of the trampoline,
 * relative to rip. */
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

/* Allows whole words of 8 bytes, from registers that code_store() can
 * encode. */
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

/* Adds the code that stores the value where hca_trap_enter_push says (rax > 1),
 * and continues behind the store. */
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

/* Builds code that prepares the stack for hca_trap_enter and calls it. Then it
 * either continues behind the store, or executes the original store (the first
 * one of a row). @return the offset of the original store. */
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

/* Builds code that calls @copy with a fourth argument: the callee of the
 * replaced call. The site calls the second half. A thread that faults at the
 * site jumps to the first half, which calls the second. @return the offset of
 * the second half. */
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

/* Returns where the jump may lead. If all of its bytes are the store's, that is
 * anywhere: any window of 16 MiB will do. */
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

/* Maps a page that jumps to @page: jmp *0(%rip), with the address behind it. */
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

/* Returns true if an instruction with this first byte has two bytes or more:
 * two-byte opcodes, REX, VEX, prefixes. */
static bool is_long(uint8_t byte)
{
    return (byte == 0x0f) || ((byte & 0xf0) == 0x40) || (byte == 0xc4) ||
           (byte == 0xc5) || (byte == 0x66) || (byte == 0xf2) || (byte == 0xf3);
}

/* Returns true if the bytes behind the store that the jump covers are of one
 * instruction (int3 is padding): only a breakpoint on this can change them. */
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

/* Refuses stores relative to rsp, which differs in the trampoline: doorbells
 * are not on the stack. */
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
