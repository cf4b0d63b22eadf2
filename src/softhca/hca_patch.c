/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Rewrites storing instructions into jumps to trampolines. Called from the
 * handler of hca_trap in the thread that stored; one thread at a time rewrites
 * (an atomic flag that nobody waits for), all others read the array of sites,
 * which only grows.
 *
 * Only the store's own bytes change, as anything may jump to its successor. A
 * jump has five bytes, doorbell stores three or four. So the jump's last bytes
 * are the successor's first ones, which stay as they are, and the trampoline
 * is mapped where the jump then leads: with three bytes of our own that is a
 * window of 64 KiB within +-2 GiB, with four one of 16 MiB. (Padding between
 * functions, the other place for a longer jump, is out of reach of a short
 * jump at the doorbells of libmlx5 and UCX.) A debugger's breakpoint on the
 * successor would bend such a jump: where it would then lead, a second page
 * jumps back to the trampoline, which returns to the breakpoint.
 *
 * Other threads may be about to execute the bytes. First the first byte
 * becomes hlt, a change that cannot be seen half; who meets it faults, and the
 * handler sends him to the trampoline. When membarrier(2) has made each core
 * forget what it had fetched, the other bytes follow, then the first one. This
 * is the kernel's text_poke_bp() with hlt for int3: hlt raises SIGSEGV, which
 * is ours and never blocked, and which debuggers have been told to pass on.
 */
#define _GNU_SOURCE
#include "hca_patch.h"
#include "hca_cpu.h"
#include "hca_log.h"

#include <errno.h>
#include <link.h>
#include <linux/membarrier.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PATCH_MAX_SITES 256
#define PATCH_JUMP      5      /* bytes of jmp rel32 */
#define PATCH_MIN_LEN   3      /* fewer leave a window of 256 bytes */
#define PATCH_TRIES     256    /* places tried within a window */
#define PATCH_PAGE      4096ul
#define PATCH_DATA      192    /* constants of a trampoline, offset */
#define OPCODE_JMP      0xe9
#define OPCODE_HLT      0xf4
#define OPCODE_INT3     0xcc

struct site {
    _Atomic(uintptr_t) addr;       /* written last; 0 when its module went */
    uintptr_t          trampoline; /* 0: refused */
    uintptr_t          native;     /* the store itself in the trampoline */
    uint8_t            old[PATCH_JUMP];
    uint8_t            new[PATCH_JUMP];
    uint8_t            own;        /* bytes that change: the store's, if < 5 */
    atomic_bool        done;
};

/* Where a jump may lead, given the bytes of the successor. */
struct window {
    uintptr_t low;
    size_t    size;
    intptr_t  twin; /* distance to where a breakpoint would bend it, or 0 */
};

/* A trampoline under construction. */
struct code {
    uint8_t  bytes[256];
    unsigned used;
};

static struct site       patch_sites[PATCH_MAX_SITES];
static atomic_uint       patch_count;
static atomic_bool       patch_on;
static atomic_flag       patch_busy = ATOMIC_FLAG_INIT;
static const void       *patch_enter;

static uintptr_t page_up(uintptr_t addr)
{
    return (addr + PATCH_PAGE - 1) & ~(PATCH_PAGE - 1);
}

/* Memory hooks of the program's libraries need not see these calls. */
static void *patch_mmap(uintptr_t addr)
{
    return (void*)syscall(SYS_mmap, addr, PATCH_PAGE, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE,
                          -1, 0);
}

static void patch_munmap(const void *page)
{
    syscall(SYS_munmap, page, PATCH_PAGE);
}

static int patch_mprotect(uintptr_t addr, size_t len, int prot)
{
    uintptr_t low  = addr & ~(PATCH_PAGE - 1);
    uintptr_t high = page_up(addr + len);

    return syscall(SYS_mprotect, low, high - low, prot) ? -errno : 0;
}

/* All threads of the process execute nothing fetched before this call. */
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

void hca_patch_init(bool on, const void *enter)
{
    patch_enter = enter;
    if (on && (hca_cpu_valgrind() || !hca_cpu_save.usable ||
               (patch_sync_cores() < 0))) {
        hca_debug("patch: off, every doorbell traps");
        on = false;
    }
    atomic_store(&patch_on, on);
}

static struct site *site_find(uintptr_t rip)
{
    unsigned i, count = atomic_load_explicit(&patch_count,
                                             memory_order_acquire);

    for (i = 0; i < count; ++i) {
        if (atomic_load_explicit(&patch_sites[i].addr, memory_order_acquire) ==
            rip) {
            return &patch_sites[i];
        }
    }
    return NULL;
}

/* Another module may have been loaded at the address of one that went. */
uintptr_t hca_patch_find(uintptr_t rip)
{
    struct site *site;

    atomic_thread_fence(memory_order_acquire); /* pairs with site_publish() */
    site = site_find(rip);
    if ((site == NULL) || (site->trampoline == 0)) {
        return 0;
    }

    if (atomic_load(&site->done) &&
        (memcmp((const void*)rip, site->new, site->own) != 0)) {
        atomic_store(&site->addr, 0);
        return 0;
    }
    return site->trampoline;
}

uintptr_t hca_patch_origin(uintptr_t rip)
{
    unsigned i, count = atomic_load(&patch_count);

    for (i = 0; i < count; ++i) {
        if ((patch_sites[i].native == rip) && (rip != 0)) {
            return atomic_load(&patch_sites[i].addr);
        }
    }
    return 0;
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

/* An instruction that ends in a reference to a constant of the trampoline. */
static void code_constant(struct code *c, const void *opcode, int which)
{
    code_add(c, opcode, 2);
    code_int(c, PATCH_DATA + 8 * which - (int)(c->used + 4));
}

static void code_jump(struct code *c, uintptr_t page, uintptr_t to)
{
    code_add(c, "\xe9", 1);
    code_int(c, to - (page + c->used + 4));
}

/* lea of the store's address into rax, with a 32-bit displacement. */
static void code_lea(struct code *c, const struct hca_insn *insn, int32_t disp)
{
    uint8_t index = (insn->index == HCA_INSN_NO_REG) ? 4 : insn->index;
    uint8_t bytes[4];

    bytes[0] = 0x48 | (index >> 3 << 1) | (insn->base >> 3);
    bytes[1] = 0x8d;
    bytes[2] = 0x84; /* rax, SIB, 32-bit displacement */
    bytes[3] = (insn->scale << 6) | ((index & 7) << 3) | (insn->base & 7);
    code_add(c, bytes, sizeof(bytes));
    code_int(c, disp);
}

/* popfq; pop %rax; lea 136(%rsp), %rsp */
static void code_restore(struct code *c)
{
    code_add(c, "\x9d\x58\x48\x8d\xa4\x24\x88\x00\x00\x00", 10);
}

/* Prepares the stack as hca_trap_enter wants it, calls it, and either goes on
 * behind the store or executes the original. */
static void trampoline_build(struct site *site, const struct hca_insn *insn,
                             const uint8_t *original, uintptr_t page)
{
    uintptr_t   rip  = atomic_load(&site->addr), next = rip + insn->len;
    int32_t     disp = insn->disp + ((insn->base == 4) ? 152 : 0);
    struct code c    = {.used = 0};
    unsigned    jnz;

    code_add(&c, "\x48\x8d\x64\x24\x80", 5); /* lea -128(%rsp), %rsp */
    code_constant(&c, "\xff\x35", 0);        /* push next */
    code_add(&c, "\x50\x9c", 2);             /* push %rax; pushfq */
    code_lea(&c, insn, disp);
    code_constant(&c, "\xff\x35", 1);        /* push source */
    code_constant(&c, "\xff\x15", 2);        /* call hca_trap_enter */
    code_add(&c, "\x48\x8d\x64\x24\x08", 5); /* lea 8(%rsp), %rsp */
    code_add(&c, "\x84\xc0\x75\x00", 4);     /* test %al, %al; jnz 1f */
    jnz = c.used;
    code_restore(&c);
    code_jump(&c, page, next);
    c.bytes[jnz - 1] = c.used - jnz;         /* 1: */
    code_restore(&c);
    site->native = page + c.used;
    code_add(&c, original, insn->len);
    code_jump(&c, page, next);

    c.used = PATCH_DATA;
    code_add(&c, &next, 8);
    code_add(&c, &insn->src, 8);
    code_add(&c, &patch_enter, 8);
    memcpy((void*)page, c.bytes, c.used);
}

/* Beyond the window of a full displacement anything would do; that of a store
 * of four bytes is as good. */
static struct window window_of(uintptr_t rip, const uint8_t *bytes,
                               unsigned len)
{
    uint32_t high = (len >= PATCH_JUMP) ? 0x0f000000 :
                    (uint32_t)bytes[4] << 24 |
                            ((len == 3) ? (uint32_t)bytes[3] << 16 : 0);
    uint32_t bent = (len == 3) ? (high & 0xff000000) | OPCODE_INT3 << 16 :
                                 (uint32_t)OPCODE_INT3 << 24;

    return (struct window){
        .low  = rip + PATCH_JUMP + (intptr_t)(int32_t)high,
        .size = (len == 3) ? 1ul << 16 : 1ul << 24,
        .twin = (len >= PATCH_JUMP) ? 0 :
                (intptr_t)(int32_t)bent - (intptr_t)(int32_t)high,
    };
}

static void *page_map(uintptr_t addr)
{
    void *page = patch_mmap(addr);

    if ((page == MAP_FAILED) || (page == (void*)addr)) {
        return (page == MAP_FAILED) ? NULL : page;
    }

    patch_munmap(page); /* a kernel that takes the flag for a hint */
    return NULL;
}

static int page_seal(const void *page)
{
    return patch_mprotect((uintptr_t)page, PATCH_PAGE, PROT_READ | PROT_EXEC);
}

/* jmp *0(%rip), with the address behind it */
static bool twin_build(uintptr_t addr, uintptr_t page)
{
    uint8_t *twin = page_map(addr);

    if (twin == NULL) {
        return false;
    }

    memcpy(twin, "\xff\x25\x00\x00\x00\x00", 6);
    memcpy(twin + 6, &page, sizeof(page));
    if (page_seal(twin) < 0) {
        patch_munmap(twin);
        return false;
    }
    return true;
}

/* A page, writable, that the jump can reach, with its twin in place. */
static void *window_map(struct window w)
{
    size_t    step = page_up(w.size / PATCH_TRIES);
    uintptr_t addr = page_up(w.low);
    void     *page;

    for (; addr < w.low + w.size; addr += step) {
        page = page_map(addr);
        if (page == NULL) {
            continue;
        }

        if ((w.twin == 0) || twin_build(addr + w.twin, addr)) {
            return page;
        }
        patch_munmap(page);
    }
    return NULL;
}

/* The bytes that the jump borrows must be of one instruction, of the function
 * of the store: then only a breakpoint on that one can change them. Two-byte
 * opcodes and instructions with REX have at least two bytes. */
static bool successor_usable(const uint8_t *bytes, unsigned len)
{
    if (len >= PATCH_JUMP) {
        return true;
    }

    if (bytes[len] == OPCODE_INT3) {
        return false;
    }

    return (len == PATCH_JUMP - 1) || (bytes[len] == 0x0f) ||
           ((bytes[len] & 0xf0) == 0x40);
}

static bool insn_usable(const struct hca_insn *insn)
{
    return (insn->len >= PATCH_MIN_LEN) && (insn->base < 16) &&
           (insn->disp < INT32_MAX - 152) &&
           (insn->src.kind != HCA_INSN_MOVS) &&
           (insn->src.kind != HCA_INSN_STOS);
}

/* A jump must not borrow from, or be borrowed from by, another. */
static bool site_overlaps(uintptr_t rip)
{
    unsigned i;

    for (i = 0; i < atomic_load(&patch_count); ++i) {
        if ((patch_sites[i].trampoline != 0) &&
            (rip - atomic_load(&patch_sites[i].addr) + PATCH_JUMP - 1 <
             2 * PATCH_JUMP - 1)) {
            return true;
        }
    }
    return false;
}

/* libc copies for everybody: a detour would slow down all of them. The code of
 * the kernel and of the loader is left alone. */
static bool module_usable(const char *path)
{
    static const char *const others[] = {"libc.so", "libc-", "ld-", "linux-"};
    const char *name = strrchr(path, '/');
    unsigned    i;

    name = (name == NULL) ? path : name + 1;
    for (i = 0; i < sizeof(others) / sizeof(others[0]); ++i) {
        if (strncmp(name, others[i], strlen(others[i])) == 0) {
            return false;
        }
    }
    return true;
}

/* Stops with 1 at the module whose pure text holds the address. */
static int module_has_text(struct dl_phdr_info *info, size_t size, void *arg)
{
    uintptr_t rip = *(uintptr_t*)arg;
    int       i;

    (void)size;
    for (i = 0; i < info->dlpi_phnum; ++i) {
        const ElfW(Phdr) *ph = &info->dlpi_phdr[i];

        if ((ph->p_type == PT_LOAD) && (ph->p_flags == (PF_R | PF_X)) &&
            (rip - (info->dlpi_addr + ph->p_vaddr) < ph->p_filesz) &&
            (rip + PATCH_JUMP - (info->dlpi_addr + ph->p_vaddr) <=
             ph->p_filesz)) {
            return module_usable(info->dlpi_name);
        }
    }
    return 0;
}

static void byte_store(uintptr_t addr, uint8_t byte)
{
    __atomic_store_n((uint8_t*)addr, byte, __ATOMIC_RELEASE);
}

/* The protocol of the head of this file. The text was and becomes r-x. */
static int text_write(const struct site *site)
{
    uintptr_t rip = atomic_load(&site->addr);
    int       i, ret;

    ret = patch_mprotect(rip, PATCH_JUMP, PROT_READ | PROT_WRITE | PROT_EXEC);
    if (ret < 0) {
        return ret;
    }

    byte_store(rip, OPCODE_HLT);
    ret = patch_sync_cores();
    if (ret < 0) {
        byte_store(rip, site->old[0]);
    } else {
        for (i = 1; i < site->own; ++i) {
            byte_store(rip + i, site->new[i]);
        }
        patch_sync_cores();
        byte_store(rip, site->new[0]);
        patch_sync_cores();
    }

    patch_mprotect(rip, PATCH_JUMP, PROT_READ | PROT_EXEC);
    return ret;
}

static const char *site_prepare(struct site *site, const struct hca_insn *insn,
                                const uint8_t *code)
{
    uintptr_t rip = atomic_load(&site->addr);
    int32_t   rel;
    void     *page;

    if (!insn_usable(insn) || site_overlaps(rip) ||
        !dl_iterate_phdr(module_has_text, &rip)) {
        return "not a site for a jump";
    }

    memcpy(site->old, (const void*)rip, PATCH_JUMP);
    site->own = (insn->len < PATCH_JUMP) ? insn->len : PATCH_JUMP;
    if (memcmp(site->old, code, site->own) ||
        !successor_usable(site->old, insn->len)) {
        return "successor not understood";
    }

    page = window_map(window_of(rip, site->old, insn->len));
    if (page == NULL) {
        return "no room for a trampoline";
    }

    trampoline_build(site, insn, code, (uintptr_t)page);
    if (page_seal(page) < 0) {
        return "executable memory is refused";
    }

    rel          = (uintptr_t)page - (rip + PATCH_JUMP);
    site->new[0] = OPCODE_JMP;
    memcpy(site->new + 1, &rel, sizeof(rel));
    site->trampoline = (uintptr_t)page;
    return NULL;
}

/* Known from here on, also when refused: no second attempt. */
static struct site *site_publish(const struct site *site)
{
    unsigned     n   = atomic_load(&patch_count);
    struct site *new = &patch_sites[n];

    memcpy(new, site, sizeof(*site));
    atomic_store_explicit(&patch_count, n + 1, memory_order_release);
    return new;
}

static void patch_once(uintptr_t rip, const struct hca_insn *insn,
                       const uint8_t *code)
{
    struct site  draft = {.addr = rip}, *site;
    const char  *why;
    int          ret;

    if ((site_find(rip) != NULL) ||
        (atomic_load(&patch_count) == PATCH_MAX_SITES)) {
        return;
    }

    why  = site_prepare(&draft, insn, code);
    site = site_publish(&draft);
    if (why != NULL) {
        hca_debug("patch: %p goes on trapping: %s", (void*)rip, why);
        return;
    }

    ret = text_write(site);
    if (ret < 0) {
        hca_info("patch: off, text cannot be written: %s", strerror(-ret));
        atomic_store(&patch_on, false);
        atomic_store(&site->addr, 0);
        return;
    }

    atomic_store(&site->done, true);
    hca_debug("patch: %p jumps to %p", (void*)rip, (void*)site->trampoline);
}

/* A child forked while another thread is at it inherits the flag: it only
 * loses further patches. */
void hca_patch_site(uintptr_t rip, const struct hca_insn *insn,
                    const uint8_t *code)
{
    if (!atomic_load_explicit(&patch_on, memory_order_relaxed) ||
        (site_find(rip) != NULL) || atomic_flag_test_and_set(&patch_busy)) {
        return;
    }

    patch_once(rip, insn, code);
    atomic_flag_clear(&patch_busy);
}
