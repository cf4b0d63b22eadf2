/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Calls the device from the middle of interrupted code, as the kernel would
 * call a signal handler: red zone respected, all registers and flags saved,
 * the floating point environment as the ABI wants it on entry. Trampolines of
 * patched sites call it, and the handler sends a thread through it that would
 * otherwise run the device on a small alternate signal stack. Runs in the
 * storing thread, owns nothing but its stack. Specification: System V ABI
 * x86-64, Intel SDM volume 1 chapter 13 (XSAVE).
 */
#define _GNU_SOURCE
#include "hca_trap_enter.h"
#include "hca_cpu.h"

#include <errno.h>
#include <stddef.h>

/* What the assembly builds on the stack, from the lowest address. */
struct enter_frame {
    uint64_t            gpr[16]; /* in the order of encoding */
    uint64_t            ret;
    struct hca_insn_src src;
    uint64_t            rflags;
    uint64_t            rax;
    uint64_t            next;
};
static_assert(sizeof(struct enter_frame) == 21 * 8, "built by assembly");

static_assert(offsetof(struct hca_cpu_save, mask) == 0, "for assembly");
static_assert(offsetof(struct hca_cpu_save, size) == 4, "for assembly");
static_assert(offsetof(struct hca_cpu_save, compact) == 8, "for assembly");
static_assert(offsetof(struct hca_cpu_save, mxcsr) == 12, "for assembly");

/* The unwinder is told that the caller is the interrupted code itself, so that
 * a backtrace from within the device shows who rang: the frame before ours has
 * the address of the next instruction 136 bytes below its stack pointer. */
__asm__(".text\n"
        ".p2align 4\n"
        ".globl hca_trap_enter, hca_trap_bounce\n"
        ".hidden hca_trap_enter, hca_trap_bounce\n"
        ".hidden hca_trap_regions, hca_trap_regions_end\n"
        ".hidden hca_trap_enter_run, hca_cpu_save\n"
        ".type hca_trap_enter, @function\n"
        ".type hca_trap_bounce, @function\n"
        "hca_trap_enter:\n"
        "    .cfi_startproc\n"
        "    .cfi_signal_frame\n"
        "    .cfi_def_cfa %rsp, 168\n"
        "    .cfi_offset %rip, -136\n"
        "    .cfi_offset %rax, -144\n"
        "    cld\n"
        "    pushq %rcx\n"
        "    .cfi_adjust_cfa_offset 8\n"
        "    pushq %rdx\n"
        "    .cfi_adjust_cfa_offset 8\n"
        "    leaq hca_trap_regions(%rip), %rcx\n"
        "1:  movq %rax, %rdx\n"
        "    subq (%rcx), %rdx\n"
        "    cmpq 8(%rcx), %rdx\n"
        "    jb 2f\n"
        "    addq $64, %rcx\n"
        "    cmpq hca_trap_regions_end(%rip), %rcx\n"
        "    jb 1b\n"
        "    popq %rdx\n"
        "    popq %rcx\n"
        "    movl $1, %eax\n"
        "    ret\n"
        "2:  popq %rdx\n"
        "    popq %rcx\n"
        "    .cfi_adjust_cfa_offset -16\n"
        "    pushq %r15\n"
        "    pushq %r14\n"
        "    pushq %r13\n"
        "    pushq %r12\n"
        "    pushq %r11\n"
        "    pushq %r10\n"
        "    pushq %r9\n"
        "    pushq %r8\n"
        "    pushq %rdi\n"
        "    pushq %rsi\n"
        "    pushq %rbp\n"
        "    .cfi_adjust_cfa_offset 88\n"
        "    leaq 256(%rsp), %rbp\n" /* rsp of the interrupted code */
        "    pushq %rbp\n"
        "    pushq %rbx\n"
        "    pushq %rdx\n"
        "    pushq %rcx\n"
        "    pushq 144(%rsp)\n"
        "    movq %rsp, %rbx\n"
        "    .cfi_def_cfa %rbx, 296\n"
        "    .cfi_offset %rbx, -272\n"
        "    .cfi_offset %rbp, -256\n"
        "    .cfi_offset %r12, -200\n"
        "    .cfi_offset %r13, -192\n"
        "    .cfi_offset %r14, -184\n"
        "    .cfi_offset %r15, -176\n"
        "    movq %rax, %rsi\n"
        "    movl 4+hca_cpu_save(%rip), %eax\n"
        "    subq %rax, %rsp\n"
        "    andq $-64, %rsp\n"
        "    xorl %eax, %eax\n" /* the header of the image must be zero */
        "    movq %rax, 512(%rsp)\n"
        "    movq %rax, 520(%rsp)\n"
        "    movq %rax, 528(%rsp)\n"
        "    movq %rax, 536(%rsp)\n"
        "    movq %rax, 544(%rsp)\n"
        "    movq %rax, 552(%rsp)\n"
        "    movq %rax, 560(%rsp)\n"
        "    movq %rax, 568(%rsp)\n"
        "    movl hca_cpu_save(%rip), %eax\n"
        "    xorl %edx, %edx\n"
        "    cmpl $0, 8+hca_cpu_save(%rip)\n"
        "    je 3f\n"
        "    xsavec (%rsp)\n"
        "    jmp 4f\n"
        "3:  xsave (%rsp)\n"
        "4:  ldmxcsr 12+hca_cpu_save(%rip)\n"
        "    testb $1, 512(%rsp)\n" /* x87 or MMX in use */
        "    jz 5f\n"
        "    fninit\n"
        "5:  testb $4, 512(%rsp)\n" /* upper halves in use */
        "    jz 6f\n"
        "    vzeroupper\n"
        "6:  movq %rbx, %rdi\n"
        "    movq %rsp, %rdx\n"
        "    call hca_trap_enter_run\n"
        "    movq %rax, (%rbx)\n"
        "    movl hca_cpu_save(%rip), %eax\n"
        "    xorl %edx, %edx\n"
        "    xrstor (%rsp)\n"
        "    movq %rbx, %rsp\n"
        "    popq %rax\n"
        "    popq %rcx\n"
        "    popq %rdx\n"
        "    popq %rbx\n"
        "    .cfi_def_cfa %rsp, 264\n"
        "    .cfi_same_value %rbx\n"
        "    leaq 8(%rsp), %rsp\n"
        "    popq %rbp\n"
        "    .cfi_def_cfa %rsp, 248\n"
        "    .cfi_same_value %rbp\n"
        "    popq %rsi\n"
        "    popq %rdi\n"
        "    popq %r8\n"
        "    popq %r9\n"
        "    popq %r10\n"
        "    popq %r11\n"
        "    popq %r12\n"
        "    popq %r13\n"
        "    popq %r14\n"
        "    popq %r15\n"
        "    .cfi_def_cfa %rsp, 168\n"
        "    .cfi_same_value %r12\n"
        "    .cfi_same_value %r13\n"
        "    .cfi_same_value %r14\n"
        "    .cfi_same_value %r15\n"
        "    ret\n"
        "    .cfi_endproc\n"
        ".size hca_trap_enter, .-hca_trap_enter\n"
        /* Everything to be put back lies above the red zone's lower end only
         * after the return, hence a return that also drops the red zone. */
        "hca_trap_bounce:\n"
        "    .cfi_startproc\n"
        "    .cfi_signal_frame\n"
        "    .cfi_def_cfa %rsp, 160\n"
        "    .cfi_offset %rip, -136\n"
        "    .cfi_offset %rax, -144\n"
        "    call hca_trap_enter\n"
        "    leaq 8(%rsp), %rsp\n"
        "    .cfi_adjust_cfa_offset -8\n"
        "    popfq\n"
        "    .cfi_adjust_cfa_offset -8\n"
        "    popq %rax\n"
        "    .cfi_adjust_cfa_offset -8\n"
        "    .cfi_same_value %rax\n"
        "    ret $128\n"
        "    .cfi_endproc\n"
        ".size hca_trap_bounce, .-hca_trap_bounce\n");

__attribute__((visibility("hidden"), used)) uint64_t
hca_trap_enter_run(const struct enter_frame *frame, uintptr_t addr,
                   const void *image);

/* Returns 1 if the range has gone meanwhile. */
uint64_t hca_trap_enter_run(const struct enter_frame *frame, uintptr_t addr,
                            const void *image)
{
    int                 saved_errno = errno;
    uint8_t             value[HCA_INSN_MAX_STORE];
    struct hca_trap_hit hit;

    if (!hca_trap_find(addr, &hit)) {
        return 1;
    }

    hca_cpu_value(&frame->src, frame->gpr, hca_cpu_vec_saved(image), value);
    hit.fn(hit.arg, addr - hit.start, value, frame->src.size);
    errno = saved_errno;
    return 0;
}
