/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Finds calls of memcpy() and memmove(); see hca_call.h. The trap calls it in
 * the thread that stores. No state. Specification: System V ABI x86-64,
 * Procedure Linkage Table, with and without IBT.
 */
#include "hca_call.h"
#include "hca_trap.h"

#include <string.h>

#define OPCODE_CALL 0xe8

/* Reads @size bytes at @addr. @return false if they cannot be accessed. */
static bool call_read(uintptr_t addr, void *out, size_t size)
{
    return hca_trap_guard_memcpy(out, (const void *)addr, size) == 0;
}

/* Skips @code if it is at @addr. @return the address behind it. */
static uintptr_t call_skip(uintptr_t addr, const char *code, size_t size)
{
    uint8_t bytes[4];

    return (call_read(addr, bytes, size) && (memcmp(bytes, code, size) == 0)) ?
               addr + size :
               addr;
}

/* Reads the address that a PLT entry jumps to. The entry is jmp *disp(%rip);
 * some linkers put endbr64 before it, or the prefix bnd. @return 0 if it is no
 * such entry. */
static uintptr_t call_callee(uintptr_t plt)
{
    uint8_t jump[6];
    uintptr_t callee;
    int32_t disp;

    plt = call_skip(plt, "\xf3\x0f\x1e\xfa", 4);
    plt = call_skip(plt, "\xf2", 1);
    if (!call_read(plt, jump, sizeof(jump)) ||
        (memcmp(jump, "\xff\x25", 2) != 0)) {
        return 0;
    }

    memcpy(&disp, jump + 2, sizeof(disp));
    plt += sizeof(jump) + (intptr_t)disp;
    return call_read(plt, &callee, sizeof(callee)) ? callee : 0;
}

bool hca_call_find(uintptr_t rsp, struct hca_call *out)
{
    uintptr_t next, callee;

    if (!call_read(rsp, &next, sizeof(next)) ||
        !call_read(next - HCA_CALL_LEN, out->code, HCA_CALL_LEN) ||
        (out->code[0] != OPCODE_CALL)) {
        return false;
    }

    out->rip  = next - HCA_CALL_LEN;
    out->insn = (struct hca_insn){
        .src   = {.kind = HCA_INSN_CALL},
        .len   = HCA_CALL_LEN,
        .base  = HCA_INSN_RIP,
        .index = HCA_INSN_NO_REG,
    };
    memcpy(&out->insn.disp, out->code + 1, sizeof(out->insn.disp));
    callee = call_callee(hca_insn_ea(&out->insn, NULL, out->rip));
    return (callee == (uintptr_t)memcpy) || (callee == (uintptr_t)memmove);
}
