/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Rewrites storing instructions into jumps to trampolines, and calls of
 * memcpy() and memmove() into calls of trampolines. The handler of hca_trap
 * calls it in the thread that stored. One thread at a time rewrites
 * (patch_busy, for which no thread waits); all others read patch_sites[], which
 * only grows. A rewritten site is never restored: its module may have been
 * unloaded, and its trampoline also executes stores to other memory.
 *
 * Other threads may be about to execute the bytes. So the first byte is written
 * first, as hlt; a thread that executes it faults, and the handler sends it to
 * the trampoline. When membarrier(2) has made each core discard the
 * instructions that it had fetched, the other bytes follow, and then the first
 * one. This is the kernel's text_poke_bp() with hlt for int3: hlt raises
 * SIGSEGV, which is ours and never blocked, while int3 belongs to debuggers.
 */
#define _GNU_SOURCE
#include "hca_patch.h"
#include "hca_cpu.h"
#include "softhca/base/hca_log.h"
#include "hca_patch_code.h"
#include "hca_text.h"
#include "softhca/base/hca_valgrind.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/membarrier.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PATCH_MAX_SITES 256
#define OPCODE_HLT      0xf4

struct site {
    _Atomic(uintptr_t) addr;    /* written last; 0: module unloaded */
    struct hca_patch_code code; /* entry 0: not rewritten */
    uint8_t own;                /* bytes that change, at most the store's */
    uint8_t old;                /* first byte before the change */
    atomic_bool done;
};

static struct site patch_sites[PATCH_MAX_SITES];
static atomic_uint patch_count;
static atomic_bool patch_on;
static atomic_flag patch_busy = ATOMIC_FLAG_INIT;
static const void *patch_enter, *patch_push, *patch_copy;

/* Makes all threads of the process drop instructions fetched earlier. */
static int patch_sync_cores(void)
{
    const int sync = MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE;
    const int reg  = MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_SYNC_CORE;

    if (syscall(SYS_membarrier, sync, 0, 0) == 0) {
        return 0;
    }

    if ((errno == EPERM) && (syscall(SYS_membarrier, reg, 0, 0) == 0) &&
        (syscall(SYS_membarrier, sync, 0, 0) == 0)) {
        return 0;
    }
    return -errno;
}

void hca_patch_init(bool on, const void *enter, const void *push,
                    const void *copy)
{
    patch_enter = enter;
    patch_push  = push;
    patch_copy  = copy;
    if (on && (hca_valgrind_active() || !hca_cpu_save.usable ||
               (patch_sync_cores() < 0))) {
        hca_debug("patch: off, every doorbell traps");
        on = false;
    }
    atomic_store(&patch_on, on);
}

static struct site *site_find(uintptr_t rip)
{
    unsigned i,
        count = atomic_load_explicit(&patch_count, memory_order_acquire);

    for (i = 0; i < count; ++i) {
        if (atomic_load_explicit(&patch_sites[i].addr, memory_order_acquire) ==
            rip) {
            return &patch_sites[i];
        }
    }
    return NULL;
}

/* Forgets a site if another module has been loaded there: its bytes differ. */
uintptr_t hca_patch_find(uintptr_t rip)
{
    struct site *site;

    atomic_thread_fence(memory_order_acquire); /* pairs with byte_store() */
    site = site_find(rip);
    if ((site == NULL) || (site->code.entry == 0)) {
        return 0;
    }

    if (atomic_load(&site->done) &&
        (memcmp((const void *)rip, site->code.jump, site->own) != 0)) {
        atomic_store(&site->addr, 0);
        return 0;
    }
    return site->code.entry;
}

uintptr_t hca_patch_origin(uintptr_t rip)
{
    unsigned i, count = atomic_load(&patch_count);

    for (i = 0; i < count; ++i) {
        if ((patch_sites[i].code.native == rip) && (rip != 0)) {
            return atomic_load(&patch_sites[i].addr);
        }
    }
    return 0;
}

/* Returns true if a jump at @rip would share bytes with another site's. */
static bool site_overlaps(uintptr_t rip)
{
    unsigned i;

    for (i = 0; i < atomic_load(&patch_count); ++i) {
        if ((patch_sites[i].code.entry != 0) &&
            (rip - atomic_load(&patch_sites[i].addr) + HCA_PATCH_JUMP - 1 <
             2 * HCA_PATCH_JUMP - 1)) {
            return true;
        }
    }
    return false;
}

/* Returns false for libc, as the detour would slow down every caller of its
 * copies, and for the loader and the vDSO. */
static bool module_usable(const char *path)
{
    static const char *const others[] = {"libc.so", "libc-", "ld-", "linux-"};
    const char *name                  = strrchr(path, '/');
    unsigned i;

    name = (name == NULL) ? path : name + 1;
    for (i = 0; i < sizeof(others) / sizeof(others[0]); ++i) {
        if (strncmp(name, others[i], strlen(others[i])) == 0) {
            return false;
        }
    }
    return true;
}

static void byte_store(uintptr_t addr, uint8_t byte)
{
    __atomic_store_n((uint8_t *)addr, byte, __ATOMIC_RELEASE);
}

/* Writes the jump in the steps that the head of this file describes. The text
 * is r-x before and after. */
static int text_write(const struct site *site)
{
    uintptr_t rip = atomic_load(&site->addr);
    int i, ret;

    ret = hca_patch_code_protect(rip, site->own,
                                 PROT_READ | PROT_WRITE | PROT_EXEC);
    if (ret < 0) {
        return ret;
    }

    byte_store(rip, OPCODE_HLT);
    ret = patch_sync_cores();
    if (ret < 0) {
        byte_store(rip, site->old);
    } else {
        for (i = 1; i < site->own; ++i) {
            byte_store(rip + i, site->code.jump[i]);
        }
        patch_sync_cores();
        byte_store(rip, site->code.jump[0]);
        patch_sync_cores();
    }

    hca_patch_code_protect(rip, site->own, PROT_READ | PROT_EXEC);
    return ret;
}

/* Returns the function that the trampoline of an instruction calls. */
static const void *patch_callee(const struct hca_insn *insn)
{
    if (insn->src.kind == HCA_INSN_CALL) {
        return patch_copy;
    }
    return hca_patch_code_pushes(insn) ? patch_push : patch_enter;
}

static int site_prepare(struct site *site, const struct hca_insn *insn,
                        const uint8_t *code)
{
    const uintptr_t rip          = atomic_load(&site->addr);
    struct hca_insn whole        = *insn;
    struct hca_patch_store store = {.rip = rip, .insn = &whole};
    const bool fits              = (insn->len >= HCA_PATCH_JUMP);
    const size_t need            = fits ? insn->len : HCA_PATCH_JUMP;
    struct hca_text text;

    site->own = fits ? HCA_PATCH_JUMP : insn->len;
    site->old = code[0];
    if (site_overlaps(rip) || !hca_text_find(rip, &text) ||
        (text.left < need) || !module_usable(text.path)) {
        return -ENOTSUP;
    }

    memcpy(store.bytes, (const void *)rip, need);
    if (memcmp(store.bytes, code, insn->len) != 0) {
        return -ENOTSUP; /* something else has changed the code */
    }
    store.len = hca_insn_join((const uint8_t *)rip, text.left, &whole);
    return hca_patch_code_create(&store, patch_callee(&whole), &site->code);
}

/* Returns true if a debugger is attached: it could not step through
 * trampolines, which have no source lines. */
static bool patch_debugged(void)
{
    static const char name[] = "TracerPid:\t";
    char text[4096];
    const char *tracer;
    ssize_t n;
    int fd;

    fd = syscall(SYS_openat, AT_FDCWD, "/proc/self/status", O_RDONLY);
    if (fd < 0) {
        return false;
    }

    n = syscall(SYS_read, fd, text, sizeof(text) - 1);
    syscall(SYS_close, fd);
    text[(n < 0) ? 0 : n] = '\0';
    tracer                = strstr(text, name);
    return (tracer != NULL) && (tracer[sizeof(name) - 1] != '0');
}

/* Publishes a site. One that cannot be rewritten is published, too, so that it
 * is not tried again. */
static struct site *site_publish(const struct site *site)
{
    unsigned n       = atomic_load(&patch_count);
    struct site *new = &patch_sites[n];

    memcpy(new, site, sizeof(*site));
    atomic_store_explicit(&patch_count, n + 1, memory_order_release);
    return new;
}

/* Tries to rewrite a site, once. If the text cannot be written, threads that
 * fault there still go to the trampoline. */
static void patch_once(uintptr_t rip, const struct hca_insn *insn,
                       const uint8_t *code)
{
    struct site draft = {.addr = rip}, *site;
    const char *what  = (insn->src.kind == HCA_INSN_CALL) ? "call" : "store";
    int ret;

    if ((site_find(rip) != NULL) ||
        (atomic_load(&patch_count) == PATCH_MAX_SITES)) {
        return;
    }

    if (patch_debugged()) {
        hca_debug("patch: off under a debugger, every doorbell traps");
        atomic_store(&patch_on, false);
        return;
    }

    ret  = site_prepare(&draft, insn, code);
    site = site_publish(&draft);
    if (ret < 0) {
        hca_debug("patch: %s at %p is not patched and traps each time: %s",
                  what, (void *)rip, strerror(-ret));
        return;
    }

    ret = text_write(site);
    if (ret < 0) {
        hca_info("patch: off, failed to make code writable: %s",
                 strerror(-ret));
        atomic_store(&patch_on, false);
        return;
    }

    atomic_store(&site->done, true);
    hca_debug("patch: %s at %p goes to %p", what, (void *)rip,
              (void *)site->code.entry);
}

/* A child forked while another thread rewrites inherits patch_busy as set: it
 * rewrites no further sites. */
bool hca_patch_site(uintptr_t rip, const struct hca_insn *insn,
                    const uint8_t *code)
{
    struct site *site;

    if (!atomic_load_explicit(&patch_on, memory_order_relaxed)) {
        return false;
    }

    site = site_find(rip);
    if ((site == NULL) && !atomic_flag_test_and_set(&patch_busy)) {
        patch_once(rip, insn, code);
        atomic_flag_clear(&patch_busy);
        site = site_find(rip);
    }
    return (site != NULL) && (site->code.entry == 0);
}
