/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Calls the device from the middle of interrupted code, as the kernel would
 * call a signal handler: red zone respected, flags and all registers saved but
 * those of x87, and, unless by XSAVE, MXCSR. The device computes nothing in
 * floating point (test/lint/no-float), and storing MXCSR alone would take 5 ns.
 * Trampolines of patched sites call it, and the handler sends a thread through
 * it that would otherwise run the device on a small alternate signal stack.
 * Runs in the storing thread, owns nothing but its stack. Specification:
 * System V ABI x86-64, Intel SDM volume 1 chapter 13 (XSAVE).
 */
#define _GNU_SOURCE
#include "hca_trap_enter.h"
#include "hca_cpu.h"
#include "hca_trap_table.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

/* The frame that the assembly builds on the stack, from the lowest address. */
struct enter_frame {
    uint64_t gpr[16]; /* in the order of encoding */
    uint64_t ret;
    struct hca_insn_src src;
    uint64_t rflags;
    uint64_t rax;
    uint64_t next;
};
static_assert(sizeof(struct enter_frame) == 21 * 8, "built by assembly");

static_assert(offsetof(struct enter_frame, src.kind) == 136, "for assembly");
static_assert((HCA_INSN_VEC == 4) && (HCA_INSN_ROW == 5), "for assembly");
static_assert(offsetof(struct hca_cpu_save, mask) == 0, "for assembly");
static_assert(offsetof(struct hca_cpu_save, size) == 4, "for assembly");
static_assert(offsetof(struct hca_cpu_save, compact) == 8, "for assembly");
static_assert(offsetof(struct hca_cpu_save, plain) == 12, "for assembly");

/* The unwinder is told that the caller is the interrupted code itself, so that
 * a backtrace from within the device shows the code that rang: the frame before
 * ours has the address of the next instruction 136 bytes below its stack
 * pointer. */
__asm__(".text\n"
        ".p2align 4\n"
        ".globl hca_trap_enter, hca_trap_enter_push, hca_trap_bounce\n"
        ".hidden hca_trap_enter, hca_trap_enter_push, hca_trap_bounce\n"
        ".hidden hca_trap_regions, hca_trap_regions_end\n"
        ".hidden hca_trap_enter_run, hca_push_store, hca_cpu_save\n"
        ".type hca_trap_enter_push, @function\n"
        "hca_trap_enter_push:\n"
        "    .cfi_startproc\n"
        "    .cfi_signal_frame\n"
        "    .cfi_def_cfa %rsp, 168\n"
        "    .cfi_offset %rip, -136\n"
        "    .cfi_offset %rax, -144\n"
        /* Eight bytes to the beginning of a half are a doorbell. */
        "    testb %al, %al\n"
        "    jnz 1f\n"
        "    cmpb $8, 10(%rsp)\n"
        "    je hca_trap_enter\n"
        /* So is a row of a whole WQE of one block, whose first bytes have its
         * size in units of 16 bytes. */
        "    cmpb $5, 8(%rsp)\n" /* HCA_INSN_ROW */
        "    jne 1f\n"
        "    cmpb $64, 10(%rsp)\n"
        "    jne 1f\n"
        "    cmpb $4, -1(%rsp)\n"
        "    jbe hca_trap_enter\n"
        "1:  cld\n"
        "    leaq -8(%rsp), %rsp\n" /* first bytes of the value */
        "    pushq %rax\n"
        "    pushq %rcx\n"
        "    pushq %rdx\n"
        "    pushq %rsi\n"
        "    pushq %rdi\n"
        "    pushq %r8\n"
        "    pushq %r9\n"
        "    pushq %r10\n"
        "    pushq %r11\n"
        "    .cfi_adjust_cfa_offset 80\n"
        "    movq %rax, %rdi\n"
        "    movzbl 90(%rsp), %esi\n"
        "    movq 72(%rsp), %rdx\n"
        "    call hca_push_store\n"
        "    popq %r11\n"
        "    popq %r10\n"
        "    popq %r9\n"
        "    popq %r8\n"
        "    popq %rdi\n"
        "    popq %rsi\n"
        "    popq %rdx\n"
        "    popq %rcx\n"
        "    .cfi_adjust_cfa_offset -64\n"
        "    testq %rax, %rax\n"
        "    jz 2f\n"
        "    leaq 16(%rsp), %rsp\n"
        "    .cfi_adjust_cfa_offset -16\n"
        "    ret\n"
        "    .cfi_adjust_cfa_offset 16\n"
        "2:  popq %rax\n"
        "    leaq 8(%rsp), %rsp\n"
        "    .cfi_adjust_cfa_offset -16\n"
        "    jmp hca_trap_enter\n"
        "    .cfi_endproc\n"
        ".size hca_trap_enter_push, .-hca_trap_enter_push\n"
        ".p2align 4\n"
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
        "    subq $64, %rsp\n"
        "    andq $-64, %rsp\n"
        "    movq %rbx, %rdi\n"
        "    movq %rsp, %rdx\n"
        "    cmpl $32, 12+hca_cpu_save(%rip)\n"
        "    jne 6f\n"
        /* Sixteen registers. If their upper halves are zero, vzeroupper sets
         * them in the end: the program's SSE code then runs at full speed,
         * which it would not after a load of all 32 bytes. */
        "    .irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n"
        "    vmovdqa %ymm\\n, 32*\\n(%rsp)\n"
        "    .endr\n"
        "    .irp n, 1,2,3,4,5,6,7\n"
        "    vorps %ymm\\n, %ymm0, %ymm0\n"
        "    .endr\n"
        "    .irp n, 9,10,11,12,13,14,15\n"
        "    vorps %ymm\\n, %ymm8, %ymm8\n"
        "    .endr\n"
        "    vorps %ymm8, %ymm0, %ymm0\n"
        "    vextractf128 $1, %ymm0, %xmm0\n"
        "    xorl %r12d, %r12d\n"
        "    vptest %xmm0, %xmm0\n"
        "    setz %r12b\n"
        "    vzeroupper\n"
        "    call hca_trap_enter_run\n"
        "    testl %r12d, %r12d\n"
        "    jz 4f\n"
        "    vzeroupper\n"
        "    .irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n"
        "    vmovdqa 32*\\n(%rsp), %xmm\\n\n"
        "    .endr\n"
        "    jmp 9f\n"
        "4:  .irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n"
        "    vmovdqa 32*\\n(%rsp), %ymm\\n\n"
        "    .endr\n"
        "    jmp 9f\n"
        "6:  jb 10f\n"
        /* Thirty-two registers of 64 bytes, and the masks. Of the first sixteen
         * only the low parts are stored if all upper ones are zero; not for a
         * vector store, as the device finds its value in the image. */
        "    vmovdqa64 %zmm31, 64*31(%rsp)\n"
        "    .irp n, 0,1,2,3,4,5,6,7\n"
        "    kmovq %k\\n, 2048+8*\\n(%rsp)\n"
        "    .endr\n"
        "    .irp n, 16,17,18,19,20,21,22,23,24,25,26,27,28,29,30\n"
        "    vmovdqa64 %zmm\\n, 64*\\n(%rsp)\n"
        "    .endr\n"
        "    vporq %zmm0, %zmm1, %zmm31\n"
        "    .irp n, 2,3,4,5,6,7,8,9,10,11,12,13,14,15\n"
        "    vporq %zmm\\n, %zmm31, %zmm31\n"
        "    .endr\n"
        "    vptestmq %zmm31, %zmm31, %k1\n" /* a bit for each eight bytes */
        "    kmovw %k1, %r12d\n"
        "    andl $0xfc, %r12d\n"
        "    jnz 12f\n"
        "    cmpb $4, 136(%rbx)\n" /* HCA_INSN_VEC */
        "    je 12f\n"
        "    .irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n"
        "    vmovdqa %xmm\\n, 64*\\n(%rsp)\n"
        "    .endr\n"
        "    jmp 13f\n"
        "12: .irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n"
        "    vmovdqa64 %zmm\\n, 64*\\n(%rsp)\n"
        "    .endr\n"
        "13: vzeroupper\n"
        "    call hca_trap_enter_run\n"
        "    .irp n, 0,1,2,3,4,5,6,7\n"
        "    kmovq 2048+8*\\n(%rsp), %k\\n\n"
        "    .endr\n"
        "    .irp n, 16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31\n"
        "    vmovdqa64 64*\\n(%rsp), %zmm\\n\n"
        "    .endr\n"
        "    testl %r12d, %r12d\n"
        "    jnz 11f\n"
        "    vzeroupper\n"
        "    .irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n"
        "    vmovdqa 64*\\n(%rsp), %xmm\\n\n"
        "    .endr\n"
        "    jmp 9f\n"
        "11: .irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n"
        "    vmovdqa64 64*\\n(%rsp), %zmm\\n\n"
        "    .endr\n"
        "    jmp 9f\n"
        "10: xorl %eax, %eax\n" /* the header of the image must be zero */
        "    .irp n, 0,1,2,3,4,5,6,7\n"
        "    movq %rax, 512+8*\\n(%rsp)\n"
        "    .endr\n"
        "    xorl %edx, %edx\n"
        "    movl hca_cpu_save(%rip), %eax\n"
        "    cmpl $0, 8+hca_cpu_save(%rip)\n"
        "    je 7f\n"
        "    xsavec (%rsp)\n"
        "    jmp 8f\n"
        "7:  xsave (%rsp)\n"
        "8:  movq %rsp, %rdx\n"
        "    testb $4, 512(%rsp)\n" /* upper halves in use */
        "    jz 5f\n"
        "    vzeroupper\n"
        "5:  call hca_trap_enter_run\n"
        "    movq %rax, %rcx\n"
        "    movl hca_cpu_save(%rip), %eax\n"
        "    xorl %edx, %edx\n"
        "    xrstor (%rsp)\n"
        "    movq %rcx, %rax\n"
        "9:  movq %rax, (%rbx)\n"
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
        /* The saved registers lie above the red zone's lower end only after
         * the return, hence a return that also drops the red zone. */
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
    int saved_errno = errno;
    uint8_t value[HCA_INSN_MAX_STORE];
    struct hca_trap_hit hit;

    if (!hca_trap_table_find(addr, &hit)) {
        return 1;
    }

    hca_cpu_value(&frame->src, frame->gpr, hca_cpu_vec_saved(image), value);
    hit.fn(hit.arg, addr - hit.start, value, frame->src.size);
    errno = saved_errno;
    return 0;
}

/* A copy that goes on beyond the range traps. The device reads a value more
 * than once: it must not change meanwhile. */
void *hca_trap_copy(void *dst, const void *src, size_t length,
                    void *(*native)(void *dst, const void *src, size_t length))
{
    const uint8_t *from = src;
    uint8_t value[HCA_INSN_MAX_STORE];
    struct hca_trap_hit hit;
    size_t offset, done, piece;
    int saved_errno;

    if (!hca_trap_table_find((uintptr_t)dst, &hit) ||
        (length > hit.len - ((uintptr_t)dst - hit.start))) {
        return native(dst, src, length);
    }

    saved_errno = errno;
    offset      = (uintptr_t)dst - hit.start;
    for (done = 0; done < length; done += piece) {
        piece = length - done;
        piece = (piece < HCA_INSN_MAX_STORE) ? piece : HCA_INSN_MAX_STORE;
        memcpy(value, from + done, piece);
        hit.fn(hit.arg, offset + done, value, piece);
    }
    errno = saved_errno;
    return dst;
}
