/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * A copy that returns an error where memcpy() would crash, and a compare and
 * exchange. The device calls them in any thread, also within a trap. No state:
 * the handler of hca_trap recognizes a fault by its rip, which is between two
 * labels, and continues at a third, like the kernel's exception tables. So they
 * nest, and a fault of other code is never mistaken for theirs. They keep
 * nothing on the stack and use no callee-saved registers. When a fault has been
 * resolved, the copy begins anew: under valgrind a handler does not see the
 * registers within a loop as they are.
 */
#include "hca_trap_guard.h"
#include "hca_cpu.h"
#include "hca_trap.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static_assert(offsetof(struct hca_cpu_save, mask) == 0, "for assembly");

extern const char hca_trap_guard_begin[] __attribute__((visibility("hidden")));
extern const char hca_trap_guard_end[] __attribute__((visibility("hidden")));
extern const char hca_trap_guard_fault[] __attribute__((visibility("hidden")));
extern const char hca_trap_guard_again[] __attribute__((visibility("hidden")));

/* Copies 4 to 64 bytes by two or four moves that may overlap, up to 4 KiB by a
 * loop of 64 bytes and the last 64 again, more by rep movsb, whose microcode
 * moves whole cache lines. rep movsb may store them in any order, but all
 * before the stores that follow (Intel SDM, "Fast-String Operation and
 * Out-of-Order Stores"). A program may wait for the last byte: so the last 64
 * are stored last, by moves. Bit 2 of hca_cpu_save.mask: AVX. */
__asm__(".text\n"
        ".p2align 4\n"
        ".globl hca_trap_guard_memcpy\n"
        ".hidden hca_trap_guard_memcpy\n"
        ".type hca_trap_guard_memcpy, @function\n"
        "hca_trap_guard_memcpy:\n"
        ".cfi_startproc\n"
        ".globl hca_trap_guard_begin, hca_trap_guard_end\n"
        ".globl hca_trap_guard_fault, hca_trap_guard_again\n"
        ".hidden hca_trap_guard_begin, hca_trap_guard_end\n"
        ".hidden hca_trap_guard_fault, hca_trap_guard_again\n"
        ".hidden hca_cpu_save\n"
        "hca_trap_guard_begin:\n"
        "    movq %rdi, %r8\n"
        "    movq %rsi, %r9\n"
        "    movq %rdx, %r10\n"
        "0:  xorl %eax, %eax\n"
        "    cmpq $16, %rdx\n"
        "    jb 4f\n"
        "    cmpq $32, %rdx\n"
        "    ja 1f\n"
        "    movups (%rsi), %xmm0\n"
        "    movups -16(%rsi,%rdx), %xmm1\n"
        "    movups %xmm0, (%rdi)\n"
        "    movups %xmm1, -16(%rdi,%rdx)\n"
        "    ret\n"
        "1:  cmpq $64, %rdx\n"
        "    ja 2f\n"
        "    movups (%rsi), %xmm0\n"
        "    movups 16(%rsi), %xmm1\n"
        "    movups -32(%rsi,%rdx), %xmm2\n"
        "    movups -16(%rsi,%rdx), %xmm3\n"
        "    movups %xmm0, (%rdi)\n"
        "    movups %xmm1, 16(%rdi)\n"
        "    movups %xmm2, -32(%rdi,%rdx)\n"
        "    movups %xmm3, -16(%rdi,%rdx)\n"
        "    ret\n"
        "2:  cmpq $4096, %rdx\n"
        "    ja 9f\n"
        "    testb $4, hca_cpu_save(%rip)\n"
        "    jz 7f\n"
        "    vmovdqu -64(%rsi,%rdx), %ymm2\n"
        "    vmovdqu -32(%rsi,%rdx), %ymm3\n"
        "    leaq -64(%rdi,%rdx), %rcx\n"
        "8:  vmovdqu (%rsi), %ymm0\n"
        "    vmovdqu 32(%rsi), %ymm1\n"
        "    vmovdqu %ymm0, (%rdi)\n"
        "    vmovdqu %ymm1, 32(%rdi)\n"
        "    addq $64, %rsi\n"
        "    addq $64, %rdi\n"
        "    cmpq %rcx, %rdi\n"
        "    jb 8b\n"
        "    vmovdqu %ymm2, (%rcx)\n"
        "    vmovdqu %ymm3, 32(%rcx)\n"
        "    vzeroupper\n"
        "    ret\n"
        "7:\n"
        "    movups -64(%rsi,%rdx), %xmm4\n"
        "    movups -48(%rsi,%rdx), %xmm5\n"
        "    movups -32(%rsi,%rdx), %xmm6\n"
        "    movups -16(%rsi,%rdx), %xmm7\n"
        "    leaq -64(%rdi,%rdx), %rcx\n"
        "3:  movups (%rsi), %xmm0\n"
        "    movups 16(%rsi), %xmm1\n"
        "    movups 32(%rsi), %xmm2\n"
        "    movups 48(%rsi), %xmm3\n"
        "    movups %xmm0, (%rdi)\n"
        "    movups %xmm1, 16(%rdi)\n"
        "    movups %xmm2, 32(%rdi)\n"
        "    movups %xmm3, 48(%rdi)\n"
        "    addq $64, %rsi\n"
        "    addq $64, %rdi\n"
        "    cmpq %rcx, %rdi\n"
        "    jb 3b\n"
        "    movups %xmm4, (%rcx)\n"
        "    movups %xmm5, 16(%rcx)\n"
        "    movups %xmm6, 32(%rcx)\n"
        "    movups %xmm7, 48(%rcx)\n"
        "    ret\n"
        "4:  cmpq $8, %rdx\n"
        "    jb 5f\n"
        "    movq (%rsi), %rcx\n"
        "    movq -8(%rsi,%rdx), %rsi\n"
        "    movq %rcx, (%rdi)\n"
        "    movq %rsi, -8(%rdi,%rdx)\n"
        "    ret\n"
        "5:  cmpq $4, %rdx\n"
        "    jb 6f\n"
        "    movl (%rsi), %ecx\n"
        "    movl -4(%rsi,%rdx), %esi\n"
        "    movl %ecx, (%rdi)\n"
        "    movl %esi, -4(%rdi,%rdx)\n"
        "    ret\n"
        "6:  movq %rdx, %rcx\n"
        "    rep movsb\n"
        "    ret\n"
        "9:  leaq -64(%rdx), %rcx\n"
        "    rep movsb\n"
        "    movl $64, %edx\n"
        "    jmp 1b\n"
        "hca_trap_guard_end:\n"
        "hca_trap_guard_again:\n"
        "    movq %r8, %rdi\n"
        "    movq %r9, %rsi\n"
        "    movq %r10, %rdx\n"
        "    jmp 0b\n"
        "hca_trap_guard_fault:\n"
        "    testb $4, hca_cpu_save(%rip)\n"
        "    jz 9f\n"
        "    vzeroupper\n"
        "9:  movl $-14, %eax\n" /* -EFAULT */
        "    ret\n"
        ".cfi_endproc\n"
        ".size hca_trap_guard_memcpy, .-hca_trap_guard_memcpy\n");

extern const char hca_trap_guard_swap_begin[]
    __attribute__((visibility("hidden")));
extern const char hca_trap_guard_swap_end[]
    __attribute__((visibility("hidden")));

/* Only the cmpxchg may fault; it can be executed again. */
#define GUARD_SWAP(_name, _suffix, _old, _new) \
    ".p2align 4\n" \
    ".globl " _name "\n" \
    ".hidden " _name "\n" \
    ".type " _name ", @function\n" _name ":\n" \
    ".cfi_startproc\n" \
    "    mov" _suffix " (%rsi), %" _old "\n" \
    "    lock cmpxchg" _suffix " %" _new ", (%rdi)\n" \
    "    jne 1f\n" \
    "    xorl %eax, %eax\n" \
    "    ret\n" \
    "1:  mov" _suffix " %" _old ", (%rsi)\n" \
    "    movl $-11, %eax\n" /* -EAGAIN */ \
    "    ret\n" \
    ".cfi_endproc\n" \
    ".size " _name ", .-" _name "\n"

__asm__(".text\n"
        ".globl hca_trap_guard_swap_begin, hca_trap_guard_swap_end\n"
        ".hidden hca_trap_guard_swap_begin, hca_trap_guard_swap_end\n"
        "hca_trap_guard_swap_begin:\n" GUARD_SWAP("hca_trap_guard_swap4", "l",
                                                  "eax", "edx")
            GUARD_SWAP("hca_trap_guard_swap8", "q", "rax",
                       "rdx") "hca_trap_guard_swap_end:\n");

static bool guard_copies(uintptr_t rip)
{
    return (rip >= (uintptr_t)hca_trap_guard_begin) &&
           (rip < (uintptr_t)hca_trap_guard_end);
}

static bool guard_copies_rows(uintptr_t rip)
{
    return (rip >= (uintptr_t)hca_trap_guard_rows_again) &&
           (rip < (uintptr_t)hca_trap_guard_rows_end);
}

static bool guard_swaps(uintptr_t rip)
{
    return (rip >= (uintptr_t)hca_trap_guard_swap_begin) &&
           (rip < (uintptr_t)hca_trap_guard_swap_end);
}

uintptr_t hca_trap_guard_give_up(uintptr_t rip)
{
    return (guard_copies(rip) || guard_copies_rows(rip) || guard_swaps(rip)) ?
               (uintptr_t)hca_trap_guard_fault :
               0;
}

uintptr_t hca_trap_guard_restart(uintptr_t rip)
{
    if (guard_copies_rows(rip)) {
        return (uintptr_t)hca_trap_guard_rows_again;
    }
    return guard_copies(rip) ? (uintptr_t)hca_trap_guard_again : rip;
}
