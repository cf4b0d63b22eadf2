/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * A guarded copy of rows: one call for all of them, with a loop for each class
 * of lengths. The rules of hca_trap_guard.c apply here, too.
 */
#include "hca_cpu.h"
#include "hca_trap.h"
#include "hca_trap_guard.h"

#include <assert.h>

static_assert(offsetof(struct hca_cpu_save, mask) == 0, "for assembly");
static_assert(offsetof(struct hca_trap_rows, to) == 0, "for assembly");
static_assert(offsetof(struct hca_trap_rows, from) == 8, "for assembly");
static_assert(offsetof(struct hca_trap_rows, to_stride) == 16, "for assembly");
static_assert(offsetof(struct hca_trap_rows, from_stride) == 24,
              "for assembly");
static_assert(offsetof(struct hca_trap_rows, length) == 32, "for assembly");
static_assert(offsetof(struct hca_trap_rows, count) == 40, "for assembly");

/* Registers of all loops: rdi to, rsi from, r10 and r11 their strides, rdx
 * length, r9 rows left, r8 the argument. */
#define ROWS_NEXT \
    "    addq %r11, %rsi\n" \
    "    addq %r10, %rdi\n" \
    "    decq %r9\n" \
    "    jnz 0b\n"

#define ROWS_END \
    "    xorl %eax, %eax\n" \
    "    ret\n"

/* Rows of the size of the register */
#define ROWS_ONE(_mov, _register) \
    "0:  " _mov " (%rsi), %" _register "\n" \
    "    " _mov " %" _register ", (%rdi)\n" ROWS_NEXT

/* Rows of _bytes, the size of the registers, to twice as many: the moves of the
 * first and of the last _bytes may overlap. */
#define ROWS_TWO(_mov, _first, _last, _bytes) \
    "0:  " _mov " (%rsi), %" _first "\n" \
    "    " _mov " -" _bytes "(%rsi,%rdx), %" _last "\n" \
    "    " _mov " %" _first ", (%rdi)\n" \
    "    " _mov " %" _last ", -" _bytes "(%rdi,%rdx)\n" ROWS_NEXT

#define ROWS_BLOCK_MOVE(_mov, _register, _offset, _at) \
    "    " _mov " " _offset "(%rsi,%" _at "), %" _register "\n" \
    "    " _mov " %" _register ", " _offset "(%rdi,%" _at ")\n"

#define ROWS_BLOCK_16(_at) ROWS_BLOCK_MOVE("movups", "xmm0", "0", _at)

#define ROWS_BLOCK_64(_at) \
    ROWS_BLOCK_MOVE("vmovdqu", "ymm0", "0", _at) \
    ROWS_BLOCK_MOVE("vmovdqu", "ymm1", "32", _at)

/* The last 64 bytes, after rep movsb: see hca_trap_guard.c. */
#define ROWS_LAST \
    "    movups (%rsi), %xmm0\n" \
    "    movups 16(%rsi), %xmm1\n" \
    "    movups 32(%rsi), %xmm2\n" \
    "    movups 48(%rsi), %xmm3\n" \
    "    movups %xmm0, (%rdi)\n" \
    "    movups %xmm1, 16(%rdi)\n" \
    "    movups %xmm2, 32(%rdi)\n" \
    "    movups %xmm3, 48(%rdi)\n"

/* Rows of more than _bytes: blocks from the beginning, then the last _bytes,
 * which may overlap. rdx becomes the offset of the last block. */
#define ROWS_BLOCKS(_block, _bytes) \
    "    subq $" _bytes ", %rdx\n" \
    "0:  xorl %ecx, %ecx\n" \
    "1:\n" _block("rcx") "    addq $" _bytes ", %rcx\n" \
                         "    cmpq %rdx, %rcx\n" \
                         "    jb 1b\n" _block("rdx") ROWS_NEXT

/* Bit 2 of hca_cpu_save.mask: AVX. rep movsb pays for rows above 4 KiB. */
__asm__(
    ".text\n"
    ".p2align 4\n"
    ".globl hca_trap_guard_rows\n"
    ".hidden hca_trap_guard_rows\n"
    ".type hca_trap_guard_rows, @function\n"
    "hca_trap_guard_rows:\n"
    ".cfi_startproc\n"
    ".globl hca_trap_guard_rows_again, hca_trap_guard_rows_end\n"
    ".hidden hca_trap_guard_rows_again, hca_trap_guard_rows_end\n"
    ".hidden hca_cpu_save\n"
    "    movq %rdi, %r8\n"
    "hca_trap_guard_rows_again:\n"
    "    movq (%r8), %rdi\n"
    "    movq 8(%r8), %rsi\n"
    "    movq 16(%r8), %r10\n"
    "    movq 24(%r8), %r11\n"
    "    movq 32(%r8), %rdx\n"
    "    movq 40(%r8), %r9\n"
    "    cmpq $8, %rdx\n"
    "    ja 9f\n"
    "    je 8f\n"
    "    cmpq $4, %rdx\n"
    "    ja 5f\n"
    "    je 4f\n"
    "    cmpq $2, %rdx\n"
    "    jae 2f\n" ROWS_ONE("movb", "al") ROWS_END
    "2:\n" ROWS_TWO("movw", "ax", "cx", "2") ROWS_END
    "4:\n" ROWS_ONE("movl", "eax") ROWS_END
    "5:\n" ROWS_TWO("movl", "eax", "ecx", "4") ROWS_END
    ".p2align 4\n"
    "8:\n" ROWS_ONE("movq", "rax") ROWS_END
    "9:  cmpq $32, %rdx\n"
    "    ja 33f\n"
    "    cmpq $16, %rdx\n"
    "    ja 17f\n"
    "    je 16f\n" ROWS_TWO("movq", "rax", "rcx", "8") ROWS_END
    ".p2align 4\n"
    "16:\n" ROWS_ONE("movups", "xmm0") ROWS_END
    ".p2align 4\n"
    "17:\n" ROWS_TWO("movups", "xmm0", "xmm1", "16") ROWS_END
    "33: cmpq $4096, %rdx\n"
    "    ja 3f\n"
    "    testb $4, hca_cpu_save(%rip)\n"
    "    jnz 34f\n" ROWS_BLOCKS(ROWS_BLOCK_16, "16") ROWS_END
    "34: cmpq $64, %rdx\n"
    "    ja 65f\n" ROWS_TWO(
        "vmovdqu", "ymm0", "ymm1",
        "32") "    vzeroupper\n" ROWS_END ".p2align 4\n"
              "65:\n" ROWS_BLOCKS(
                  ROWS_BLOCK_64,
                  "64") "    vzeroupper\n" ROWS_END "3:  subq $64, %rdx\n"
                        "    subq %rdx, %r10\n" /* moved by rep movsb */
                        "    subq %rdx, %r11\n"
                        "0:  movq %rdx, %rcx\n"
                        "    rep movsb\n" ROWS_LAST ROWS_NEXT ROWS_END
                        "hca_trap_guard_rows_end:\n"
                        ".cfi_endproc\n"
                        ".size hca_trap_guard_rows, .-hca_trap_guard_rows\n");
