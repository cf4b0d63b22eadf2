/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Doorbells without a device: stores to a read-only page, trapped and
 * rewritten. test_hca_trap_regs.cc checks that the interrupted code does not
 * notice, test_hca_trap_signal.cc has SIGSEGV of the program itself.
 */
#include "test_hca_trap.h"

#include <atomic>
#include <vector>

#include <ucontext.h>

SITE(site_mov64, "mov %rsi, (%rdi)")
SITE(site_mov64_disp8, "mov %rsi, 0x20(%rdi)")
SITE(site_mov64_disp32, "mov %rsi, 0x800(%rdi)")
SITE(site_mov32, "mov %esi, 4(%rdi)")
SITE(site_mov32_short, "mov %esi, (%rdi)")
SITE(site_mov16, "mov %si, 6(%rdi)")
SITE(site_mov8, "mov %sil, 7(%rdi)")
SITE(site_mov_ah, "mov %rsi, %rax\nmov %ah, 0x10(%rdi)")
SITE(site_mov_sib, "mov $5, %ecx\nmov %rsi, 8(%rdi,%rcx,8)")
SITE(site_mov_r12, "push %r12\nmov %rdi, %r12\nmov %rsi, (%r12)\npop %r12")
SITE(site_mov_rax_base, "mov %rdi, %rax\nmov %rsi, 0x18(%rax)")
SITE(site_mov_rax_value, "mov %rsi, %rax\nmov %rax, (%rdi)")
SITE(site_imm64, "movq $-2, 0x40(%rdi)")
SITE(site_imm8, "movb $0x5a, 0x41(%rdi)")
SITE(site_movnti, "movnti %rsi, 0x48(%rdi)")
SITE(site_movq, "movq %rsi, %xmm3\nmovq %xmm3, 0x50(%rdi)")
SITE(site_movd, "movq %rsi, %xmm3\nmovd %xmm3, 0x50(%rdi)")
SITE(site_movhps, "movq %rsi, %xmm9\npslldq $8, %xmm9\nmovhps %xmm9, (%rdi)")
SITE(site_movups, "movq %rsi, %xmm4\nmovups %xmm4, 0x60(%rdi)")
SITE(site_movntdq, "movq %rsi, %xmm12\nmovntdq %xmm12, 0x70(%rdi)")
SITE(site_vmovdqu, "vmovq %rsi, %xmm5\nvinserti128 $1, %xmm5, %ymm5, %ymm5\n"
                   "vmovdqu %ymm5, 0x80(%rdi)\nvzeroupper")
SITE(site_evex,
     "vpbroadcastq %rsi, %zmm17\nvmovdqu64 %zmm17, 0xc0(%rdi)\nvzeroupper")
SITE(site_row, "vmovq %rsi, %xmm5\nvmovdqu %ymm5, (%rdi)\n"
               "vmovdqu %ymm5, 0x20(%rdi)\nvzeroupper")
SITE(site_native, "mov %rsi, 8(%rdi)")
SITE(site_break3, "mov %rsi, (%rdi)")
SITE(site_break4, "mov %rsi, 8(%rdi)")

__asm__(".text\n.globl site_movs, site_stos, site_no_sfence\n"
        "site_movs: mov $192, %ecx\nrep movsb\nmov %rdi, %rax\nret\n"
        "site_stos: mov %rsi, %rax\nstosl\nmov %rdi, %rax\nret\n"
        "site_no_sfence: nop\nmov %rsi, (%rdi)\nret\n");
extern "C" char *site_movs(void *page, const void *from);
extern "C" char *site_stos(void *page, uint64_t value);
extern "C" void site_no_sfence(void *page, uint64_t value);

/* Many sites of 16 bytes each, so that threads reach some while they are
 * rewritten. */
constexpr unsigned MANY = 128;
__asm__(".text\n.p2align 4\n.globl site_many\nsite_many:\n"
        ".rept 128\nnop\nmov %rsi, 8(%rdi)\nsfence\nret\n.p2align 4\n.endr\n");
extern "C" char site_many[];

namespace {

struct form {
    const char *text;
    site_fn site;
    const char *end;
    uintptr_t offset;
    unsigned size;
    bool patchable;
};

/* clang-format off */
#define FORM(_name, _offset, _size, _patchable) \
    {#_name, _name, _name##_end, _offset, _size, _patchable}
/* clang-format on */

const form forms[] = {
    FORM(site_mov64, 0, 8, true),
    FORM(site_mov64_disp8, 0x20, 8, true),
    FORM(site_mov64_disp32, 0x800, 8, true),
    FORM(site_mov32, 4, 4, true),
    FORM(site_mov32_short, 0, 4, false),
    FORM(site_mov16, 6, 2, true),
    FORM(site_mov8, 7, 1, true),
    FORM(site_mov_sib, 0x30, 8, true),
    FORM(site_mov_r12, 0, 8, true),
    FORM(site_mov_rax_base, 0x18, 8, true),
    FORM(site_mov_rax_value, 0, 8, true),
    FORM(site_movnti, 0x48, 8, true),
    FORM(site_movq, 0x50, 8, true),
    FORM(site_movd, 0x50, 4, true),
    FORM(site_movhps, 0, 8, true),
    FORM(site_movups, 0x60, 16, true),
    FORM(site_movntdq, 0x70, 16, true),
    FORM(site_vmovdqu, 0x80, 32, true),
};

/* Trapped twice (the second time with rewriting on), rewritten for two more
 * passes. */
TEST_F(hca_trap, forms)
{
    uint64_t value = 0x1122334455667788;

    for (const form &f : forms) {
        SCOPED_TRACE(f.text);
        for (int pass = 0; pass < 4; ++pass, value += 0x0101010101010101) {
            count = 0;
            hca_trap_init(pass > 0);
            f.site(page, value);
            ASSERT_EQ(1u, count) << "pass " << pass;
            EXPECT_EQ(f.offset, last.offset);
            EXPECT_EQ(f.size, last.size);
            EXPECT_TRUE(stored(value)) << "pass " << pass;
        }
        if (!hca_valgrind_active()) {
            EXPECT_EQ(f.patchable, jumps_within(f.site, f.end));
        }
    }
}

TEST_F(hca_trap, forms_with_own_value)
{
    for (int pass = 0; pass < 4; ++pass) {
        hca_trap_init(pass > 0);
        site_imm64(page, 0);
        EXPECT_TRUE(stored((uint64_t)-2));
        EXPECT_EQ(0x40u, last.offset);
        site_imm8(page, 0);
        EXPECT_TRUE(stored(0x5a));
        EXPECT_EQ(1u, last.size);
        site_mov_ah(page, 0x1234);
        EXPECT_TRUE(stored(0x12));
        EXPECT_EQ(0x10u, last.offset);
        EXPECT_EQ(1u, last.size);
    }
}

TEST_F(hca_trap, upper_half_of_ymm)
{
    const uint64_t both[] = {0xabcdef, 0, 0xabcdef, 0};

    for (int pass = 0; pass < 4; ++pass) {
        hca_trap_init(pass > 0);
        site_vmovdqu(page, 0xabcdef);
        EXPECT_EQ(32u, last.size);
        EXPECT_TRUE(stored(both, sizeof(both)));
    }
}

char *row_page;

/* One trap executes both stores: the callback of the first makes the page
 * writable, so that a second trap is impossible. */
TEST_F(hca_trap, row_of_stores_traps_once)
{
    if (hca_valgrind_active()) {
        GTEST_SKIP() << "valgrind: addresses are not known beforehand";
    }

    row_page = page;
    then = [](hca_trap *) { mprotect(row_page, PAGE, PROT_READ | PROT_WRITE); };
    site_row(page, 0x1234);
    EXPECT_EQ(2u, count);
    EXPECT_EQ(0x20u, last.offset);
    EXPECT_TRUE(stored(0x1234));
}

TEST_F(hca_trap, zmm)
{
    if (!__builtin_cpu_supports("avx512f")) {
        GTEST_SKIP() << "this CPU has no AVX-512";
    }

    for (int pass = 0; pass < 4; ++pass) {
        hca_trap_init(pass > 0);
        site_evex(page, 77);
        EXPECT_EQ(64u, last.size);
        EXPECT_EQ(0xc0u, last.offset);
        for (int i = 0; i < 8; ++i) {
            EXPECT_EQ(77u, ((uint64_t *)last.value)[i]);
        }
    }
}

TEST_F(hca_trap, string_instructions)
{
    std::vector<uint8_t> from(192);

    if (hca_valgrind_active()) {
        GTEST_SKIP() << "valgrind counts rcx down before it stores";
    }

    for (size_t i = 0; i < from.size(); ++i) {
        from[i] = i;
    }

    EXPECT_EQ(page + 256 + 192, site_movs(page + 256, from.data()));
    EXPECT_EQ(3u, count) << "pieces of 64 bytes";
    EXPECT_EQ(256u + 128, last.offset);
    EXPECT_EQ(64u, last.size);
    EXPECT_EQ(0, memcmp(from.data() + 128, last.value, 64));
    EXPECT_EQ(page + 4, site_stos(page, 0x99));
    EXPECT_EQ(4u, last.size);
    EXPECT_EQ(0x99u, *(uint32_t *)last.value);
}

/* The code ends with its page, and the next page is not mapped. */
TEST_F(hca_trap, last_bytes_of_a_page)
{
    const uint8_t code[] = {0x48, 0x89, 0x37, 0xc3}; /* mov %rsi,(%rdi); ret */
    char *text = (char *)mmap(nullptr, 2 * PAGE, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *site = text + PAGE - sizeof(code);

    if (hca_valgrind_active()) {
        munmap(text, 2 * PAGE);
        GTEST_SKIP() << "valgrind itself reads beyond the end of code";
    }

    memcpy(site, code, sizeof(code));
    mprotect(text, PAGE, PROT_READ | PROT_EXEC);
    munmap(text + PAGE, PAGE);
    hca_trap_init(true);
    for (unsigned pass = 1; pass <= 3; ++pass) {
        ((site_fn)site)(page, pass);
        EXPECT_EQ(pass, count);
        EXPECT_TRUE(stored(pass));
    }
    EXPECT_EQ(0, memcmp(code, site, sizeof(code))) << "not a module's text";
    munmap(text, PAGE);
}

std::atomic<unsigned> many_count;

void on_many(void *, uintptr_t, const void *, unsigned)
{
    many_count.fetch_add(1, std::memory_order_relaxed);
}

/* Sites are rewritten while four threads execute them; all threads start with
 * the same site. */
TEST_F(hca_trap, threads_while_rewriting)
{
    const unsigned rounds = 10000;
    char *pages           = (char *)mmap(nullptr, PAGE, PROT_READ,
                                         MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    unsigned rewritten    = 0;

    if (hca_valgrind_active()) {
        GTEST_SKIP() << "valgrind: nothing is rewritten";
    }

    hca_trap_init(true);
    ASSERT_EQ(0, hca_trap_add(pages, PAGE, on_many, nullptr));
    many_count = 0;
    in_four_threads(MANY, rounds, [&](unsigned n) {
        ((site_fn)(site_many + 16 * n))(pages, 1);
    });
    for (unsigned n = 0; n < MANY; ++n) {
        rewritten += patched(site_many + 16 * n);
    }
    EXPECT_EQ(4u * rounds * MANY, many_count.load());
    EXPECT_EQ(MANY, rewritten);
    EXPECT_EQ(0, hca_trap_del(pages));
    munmap(pages, PAGE);
}

/* The rewritten instruction works for other memory, too. */
TEST_F(hca_trap, other_memory)
{
    uint64_t memory[2] = {};

    hca_trap_init(true);
    for (int pass = 0; pass < 3; ++pass) {
        site_native(page, 1);
        site_native(memory, 5 + pass);
        EXPECT_EQ(5u + pass, memory[1]);
        EXPECT_EQ(pass + 1u, count);
    }
    EXPECT_TRUE(patched(site_native) || hca_valgrind_active());
}

/* --- a debugger's breakpoint behind a rewritten store --------------------- */

char *break_at;
uint8_t break_over;
volatile int breaks;

void break_write(uint8_t byte)
{
    char *low = (char *)((uintptr_t)break_at & -PAGE);

    mprotect(low, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC);
    *break_at = byte;
    mprotect(low, PAGE, PROT_READ | PROT_EXEC);
}

void on_break(int, siginfo_t *, void *context)
{
    greg_t *gregs = ((ucontext_t *)context)->uc_mcontext.gregs;

    breaks = breaks + (--gregs[REG_RIP] == (greg_t)break_at);
    break_write(break_over);
}

class hca_trap_break : public hca_trap {
protected:
    void check(site_fn site, unsigned len)
    {
        struct sigaction act = {}, old;

        if (hca_valgrind_active()) {
            GTEST_SKIP() << "valgrind: nothing is rewritten";
        }

        hca_trap_init(true);
        site(page, 1);
        site(page, 2);
        ASSERT_TRUE(patched(site));
        break_at         = (char *)site + 1 + len;
        break_over       = *break_at;
        act.sa_sigaction = on_break;
        act.sa_flags     = SA_SIGINFO;
        sigaction(SIGTRAP, &act, &old);
        for (int pass = 1; pass <= 2; ++pass) {
            breaks = 0;
            break_write(0xcc);
            site(page, 3);
            EXPECT_EQ(1, breaks);
            EXPECT_EQ(2u + pass, count);
            EXPECT_EQ(3, last.value[0]);
        }
        sigaction(SIGTRAP, &old, nullptr);
    }
};

TEST_F(hca_trap_break, behind_three_bytes)
{
    check(site_break3, 3);
}

TEST_F(hca_trap_break, behind_four_bytes)
{
    check(site_break4, 4);
}

TEST_F(hca_trap, no_jump_without_a_long_successor)
{
    hca_trap_init(true);
    for (unsigned i = 1; i <= 3; ++i) {
        site_no_sfence(page, i);
        EXPECT_EQ(i, count);
    }
    EXPECT_FALSE(patched(site_no_sfence));
}

TEST_F(hca_trap, table)
{
    char *two = (char *)mmap(nullptr, 2 * PAGE, PROT_READ,
                             MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    EXPECT_EQ(-EINVAL, hca_trap_add(two, 0, on_store, this));
    EXPECT_EQ(-EEXIST, hca_trap_add(page, PAGE, on_store, this));
    EXPECT_EQ(-EEXIST, hca_trap_add(page + 8, 8, on_store, this));
    EXPECT_EQ(-ENOENT, hca_trap_del(two));
    for (int pass = 0; pass < 3; ++pass) {
        EXPECT_EQ(0, hca_trap_add(two, 2 * PAGE, on_store, this));
        count = 0;
        site_mov64(two + PAGE + 64, 3);
        EXPECT_EQ(1u, count);
        EXPECT_EQ(PAGE + 64, last.offset);
        EXPECT_EQ(0, hca_trap_del(two));
    }
    EXPECT_EQ(-ENOENT, hca_trap_del(two));
    munmap(two, 2 * PAGE);
}

} /* namespace */
