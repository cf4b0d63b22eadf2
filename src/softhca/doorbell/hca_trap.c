/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The handler of SIGSEGV and SIGBUS. It runs in the faulting thread, takes no
 * lock and allocates nothing. hca_insn decodes stores, hca_trap_table knows the
 * doorbells, and hca_trap_sig passes on faults that are not ours.
 */
#define _GNU_SOURCE
#include "hca_trap.h"
#include "hca_call.h"
#include "hca_cpu.h"
#include "hca_insn.h"
#include "softhca/base/hca_log.h"
#include "hca_patch.h"
#include "hca_text.h"
#include "hca_trap_enter.h"
#include "hca_trap_freeze.h"
#include "hca_trap_guard.h"
#include "hca_trap_sig.h"
#include "hca_trap_table.h"
#include "softhca/base/hca_valgrind.h"

#include <errno.h>
#include <string.h>
#include <ucontext.h>

#define TRAP_PAGE   4096
#define OPCODE_INT3 0xcc
#define RFLAGS_DF   0x400
#define RED_ZONE    128

/* Index in uc_mcontext.gregs of each register, in the order of encoding */
static const int trap_gregs[16] = {
    REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
    REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15,
};

static bool (*_Atomic trap_bus_fn)(const void *addr);

/* One faulting store. */
struct trap_store {
    ucontext_t *uc;
    uintptr_t rip;
    uint64_t gpr[16];
    uintptr_t addr;
    struct hca_insn insn;
    uint8_t code[HCA_INSN_MAX_LEN];
    struct hca_trap_hit hit;
};

/* Decodes the instruction that faulted. The next page may be inaccessible:
 * bytes in it are read only if needed. A debugger that steps or stops here may
 * have put a breakpoint on the instruction. */
static int trap_decode(struct trap_store *s)
{
    size_t here = TRAP_PAGE - s->rip % TRAP_PAGE;
    int ret;

    here = (here < sizeof(s->code)) ? here : sizeof(s->code);
    if (hca_trap_guard_memcpy(s->code, (const void *)s->rip, here)) {
        return -EFAULT;
    }

    if (s->code[0] == OPCODE_INT3) {
        here = hca_text_original(s->rip, s->code, sizeof(s->code));
    }

    ret = hca_insn_decode(s->code, here, &s->insn);
    if ((ret != -ENODATA) ||
        hca_trap_guard_memcpy(s->code + here, (const char *)s->rip + here,
                              sizeof(s->code) - here)) {
        return ret;
    }

    return hca_insn_decode(s->code, sizeof(s->code), &s->insn);
}

static void trap_ring(const struct trap_store *s, size_t done,
                      const void *value, unsigned size)
{
    s->hit.fn(s->hit.arg, s->addr - s->hit.start + done, value, size);
}

/* Returns how many elements of a string instruction are executed: those within
 * the range. The instruction is repeated for the others. */
static size_t trap_string_count(const struct trap_store *s)
{
    size_t count = s->insn.rep ? s->gpr[1] : 1;
    size_t room  = (s->hit.start + s->hit.len - s->addr) / s->insn.src.size;

    return (count < room) ? count : room;
}

/* Reads the source of movs behind @done bytes. If not all of *piece bytes can
 * be read, reads one element, and sets *piece. @return false if that fails. */
static bool trap_string_read(const struct trap_store *s, size_t done,
                             uint8_t *value, unsigned *piece)
{
    const char *from = (const char *)s->gpr[6] + done;

    if (!hca_trap_guard_memcpy(value, from, *piece)) {
        return true;
    }
    *piece = s->insn.src.size;
    return !hca_trap_guard_memcpy(value, from, *piece);
}

/* Executes movs and stos, in pieces of at most 64 bytes, as write combining
 * would, up to an element whose source cannot be read: there the instruction
 * faults when it is repeated. @return false if it has executed nothing: DF is
 * set, no element is within the range, or the first one cannot be read. */
static bool trap_string(struct trap_store *s)
{
    static const struct hca_cpu_vec none;
    greg_t *gregs = s->uc->uc_mcontext.gregs;
    unsigned size = s->insn.src.size;
    size_t bytes  = trap_string_count(s) * size, done;
    uint8_t value[HCA_INSN_MAX_STORE];
    unsigned i, piece;

    if (gregs[REG_EFL] & RFLAGS_DF) {
        return false;
    }

    for (i = 0; i < sizeof(value); i += size) {
        hca_cpu_value(&s->insn.src, s->gpr, none, value + i);
    }

    for (done = 0; done < bytes; done += piece) {
        piece = (bytes - done < sizeof(value)) ? bytes - done : sizeof(value);
        if ((s->insn.src.kind == HCA_INSN_MOVS) &&
            !trap_string_read(s, done, value, &piece)) {
            break;
        }
        trap_ring(s, done, value, piece);
    }

    if (done == 0) {
        return false;
    }

    gregs[REG_RDI] += done;
    gregs[REG_RSI] += (s->insn.src.kind == HCA_INSN_MOVS) ? done : 0;
    gregs[REG_RCX] -= s->insn.rep ? done / size : 0;
    if (!s->insn.rep || (gregs[REG_RCX] == 0)) {
        gregs[REG_RIP] += s->insn.len;
    }
    return true;
}

/* Returns true if the handler runs on an alternate signal stack, which is often
 * small, and the interrupted code does not. */
static bool trap_on_altstack(const ucontext_t *uc)
{
    uintptr_t base = (uintptr_t)uc->uc_stack.ss_sp;
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    uintptr_t from = uc->uc_mcontext.gregs[REG_RSP];

    return (here - base < uc->uc_stack.ss_size) &&
           (from - base >= uc->uc_stack.ss_size);
}

/* Makes the thread call the device on the interrupted stack, after our return.
 * That stack is free below its red zone, as the signal frame is on the
 * other. */
static void trap_bounce(const struct trap_store *s)
{
    greg_t *gregs  = s->uc->uc_mcontext.gregs;
    uint64_t *slot = (uint64_t *)(gregs[REG_RSP] - RED_ZONE);

    *--slot = s->rip + s->insn.len;
    *--slot = gregs[REG_RAX];
    *--slot = gregs[REG_EFL];
    memcpy(--slot, &s->insn.src, sizeof(s->insn.src));
    gregs[REG_RSP] = (uintptr_t)slot;
    gregs[REG_RAX] = s->addr;
    gregs[REG_RIP] = (uintptr_t)hca_trap_bounce;
}

static void trap_direct(const struct trap_store *s)
{
    mcontext_t *mc         = &s->uc->uc_mcontext;
    struct hca_cpu_vec vec = hca_cpu_vec_signal(mc->fpregs);
    uint8_t value[HCA_INSN_MAX_STORE];

    memset(value, 0, sizeof(value));
    if (!hca_valgrind_active()) {
        hca_cpu_value(&s->insn.src, s->gpr, vec, value);
    }
    trap_ring(s, 0, value, s->insn.src.size);
    mc->gregs[REG_RIP] += s->insn.len;
}

static bool trap_is_string(const struct trap_store *s)
{
    return (s->insn.src.kind == HCA_INSN_MOVS) ||
           (s->insn.src.kind == HCA_INSN_STOS);
}

/* Executes the stores to the same range that follow directly. A copy to a
 * BlueFlame register is a row of vector stores, each of which would trap. */
static void trap_follow(struct trap_store *s)
{
    while (!hca_valgrind_active()) {
        s->rip = s->uc->uc_mcontext.gregs[REG_RIP];
        if ((trap_decode(s) < 0) || trap_is_string(s) ||
            (hca_patch_find(s->rip) != 0)) {
            return;
        }

        s->addr = hca_insn_ea(&s->insn, s->gpr, s->rip);
        if (s->addr - s->hit.start >= s->hit.len) {
            return;
        }
        trap_direct(s);
    }
}

/* Rewrites the store, or, if that is refused, the call of memcpy() or memmove()
 * that it belongs to: libc's code is not rewritten. */
static void trap_patch(const struct trap_store *s)
{
    struct hca_call call;

    if (hca_patch_site(s->rip, &s->insn, s->code) &&
        hca_call_find(s->uc->uc_mcontext.gregs[REG_RSP], &call)) {
        hca_patch_site(call.rip, &call.insn, call.code);
    }
}

static bool trap_execute(struct trap_store *s)
{
    bool bounce = trap_on_altstack(s->uc) && hca_cpu_save.usable &&
                  !hca_valgrind_active();

    if (trap_is_string(s)) {
        return trap_string(s);
    }

    if (bounce) {
        trap_bounce(s);
    } else {
        trap_direct(s);
    }

    if (!bounce && (s->insn.src.kind == HCA_INSN_VEC)) {
        trap_follow(s);
    }
    return true;
}

static void trap_explain(const struct trap_store *s)
{
    hca_error("trap: instruction %02x %02x %02x %02x %02x %02x at %p stores to "
              "a doorbell but is not understood%s",
              s->code[0], s->code[1], s->code[2], s->code[3], s->code[4],
              s->code[5], (void *)s->rip,
              hca_valgrind_active() ? "; give valgrind the options "
                                      "--px-default=allregs-at-mem-access and "
                                      "--px-file-backed=allregs-at-mem-access" :
                                      "");
}

/* Finds the address of a store. Under valgrind the general registers in a fault
 * may be old, but for some tools rip and rsp: the address is that of the fault,
 * and the value remains unknown.
 * @return false if the store is not the one that faulted. */
static bool trap_locate(struct trap_store *s, uintptr_t fault)
{
    s->addr = hca_valgrind_active() ? fault :
                                      hca_insn_ea(&s->insn, s->gpr, s->rip);
    return (fault - s->addr < s->insn.src.size) &&
           (s->addr - s->hit.start < s->hit.len);
}

/* Sends the thread to the trampoline of the instruction, if it has one. */
static bool trap_detour(ucontext_t *uc)
{
    greg_t *rip  = &uc->uc_mcontext.gregs[REG_RIP];
    uintptr_t to = hca_patch_find(*rip);

    if (to == 0) {
        return false;
    }

    *rip = to;
    return true;
}

/* Handles a store to one of our ranges. It decodes the instruction before it
 * searches the sites: if none is there, the decoded bytes were the
 * program's. A store that has just been rewritten is made by its trampoline,
 * which makes a row as one: the others of the row never trap. */
static bool trap_doorbell(const siginfo_t *info, ucontext_t *uc)
{
    uintptr_t fault = (uintptr_t)info->si_addr;
    struct trap_store s;
    int i, decoded;

    if (!hca_trap_table_find(fault, &s.hit)) {
        return false;
    }

    s.uc  = uc;
    s.rip = uc->uc_mcontext.gregs[REG_RIP];
    memset(s.code, 0, sizeof(s.code));
    for (i = 0; i < 16; ++i) {
        s.gpr[i] = uc->uc_mcontext.gregs[trap_gregs[i]];
    }

    decoded = trap_decode(&s);
    if (trap_detour(uc)) {
        return true;
    }

    if ((decoded < 0) || !trap_locate(&s, fault)) {
        trap_explain(&s);
        return false;
    }
    trap_patch(&s);
    return trap_detour(uc) || trap_execute(&s);
}

/* Resumes after a fault of our own: in a guarded copy, or of the hlt at a site
 * being rewritten. */
static bool trap_resume(const siginfo_t *info, ucontext_t *uc)
{
    uintptr_t rip = uc->uc_mcontext.gregs[REG_RIP];
    uintptr_t to  = hca_trap_guard_give_up(rip);

    if (to == 0) {
        return (info->si_code == SI_KERNEL) && trap_detour(uc);
    }

    uc->uc_mcontext.gregs[REG_RIP] = to;
    return true;
}

/* Passes the fault on. If it was in a trampoline, which executes the original
 * store, the program sees it at the address of its own instruction. */
static void trap_foreign(int sig, siginfo_t *info, ucontext_t *uc)
{
    uintptr_t site = hca_trap_sig_is_fault(info) ?
                         hca_patch_origin(uc->uc_mcontext.gregs[REG_RIP]) :
                         0;

    if (site != 0) {
        uc->uc_mcontext.gregs[REG_RIP] = site;
    }
    hca_trap_sig_chain(sig, info, uc);
}

/* Asks the function of hca_trap_bus() whether to repeat the access. A guarded
 * copy begins anew. */
static bool trap_bus(const siginfo_t *info, ucontext_t *uc)
{
    bool (*fn)(const void *addr) = atomic_load(&trap_bus_fn);
    greg_t *rip                  = &uc->uc_mcontext.gregs[REG_RIP];

    if ((fn == NULL) || !fn(info->si_addr)) {
        return false;
    }

    *rip = hca_trap_guard_restart(*rip);
    return true;
}

/* Repeats a store to a frozen page. A guarded copy begins anew. */
static bool trap_frozen(const siginfo_t *info, ucontext_t *uc)
{
    greg_t *rip = &uc->uc_mcontext.gregs[REG_RIP];

    if (!hca_trap_frozen(info)) {
        return false;
    }

    *rip = hca_trap_guard_restart(*rip);
    return true;
}

static bool trap_is_ours(int sig, const siginfo_t *info, ucontext_t *uc)
{
    return ((sig == SIGBUS) && trap_bus(info, uc)) ||
           ((sig == SIGSEGV) && trap_frozen(info, uc)) ||
           trap_resume(info, uc) ||
           ((sig == SIGSEGV) && trap_doorbell(info, uc));
}

static void trap_handler(int sig, siginfo_t *info, void *context)
{
    int saved_errno = errno;

    if (!hca_trap_sig_is_fault(info) || !trap_is_ours(sig, info, context)) {
        trap_foreign(sig, info, context);
    }
    errno = saved_errno;
}

void hca_trap_init(bool patch)
{
    hca_cpu_init();
    (void)hca_valgrind_active(); /* the first call, not in a handler */
    hca_patch_init(patch, hca_trap_enter, hca_trap_enter_push, hca_trap_copy);
}

static int trap_add(const struct hca_trap_hit *new)
{
    int ret;

    if ((new->len == 0) || (new->start + new->len < new->start)) {
        return -EINVAL;
    }

    if (hca_trap_table_overlaps(new->start, new->len)) {
        return -EEXIST;
    }

    ret = hca_trap_sig_install(trap_handler);
    return (ret < 0) ? ret : hca_trap_table_add(*new);
}

int hca_trap_add(void *page, size_t len, hca_trap_fn fn, void *arg)
{
    return trap_add(
        &(struct hca_trap_hit){(uintptr_t)page, len, fn, arg, NULL});
}

int hca_trap_add_push(void *page, hca_trap_fn fn, void *arg,
                      struct hca_push *push)
{
    return trap_add(
        &(struct hca_trap_hit){(uintptr_t)page, TRAP_PAGE, fn, arg, push});
}

int hca_trap_del(void *page)
{
    return hca_trap_table_del((uintptr_t)page);
}

int hca_trap_install(void)
{
    return hca_trap_sig_install(trap_handler);
}

int hca_trap_bus(bool (*fn)(const void *addr))
{
    int ret = hca_trap_sig_install(trap_handler);

    if (ret == 0) {
        atomic_store(&trap_bus_fn, fn);
    }
    return ret;
}
