/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Registers, flags, red zone and stack of code whose store is a doorbell:
 * unchanged, for each way in which the device is called:
 *
 * - by the handler of the fault, on the thread's stack;
 * - by a trampoline, which the rewritten store jumps to;
 * - by a bounce: a handler on the alternate stack returns to code that calls
 *   the device on the thread's stack.
 */
#include "test_hca_trap.h"

#include <cerrno>
#include <cpuid.h>
#include <cstddef>
#include <random>

SITE(site_clean, "mov %rsi, (%rdi)")
SITE(site_bounce, "mov %rsi, (%rdi)\nnop")
SITE(site_bounce_vec, "vmovq %rsi, %xmm15\nvmovdqu %xmm15, (%rdi)\nnop")

/* Registers, flags and red zone before and after a store */
struct regs {
    uint64_t gpr[16]; /* in the order of encoding: rsp is number 4 */
    uint64_t flags;
    uint64_t red[16];
    uint8_t ymm[16][32];
};
static_assert(offsetof(regs, flags) == 128, "REGS_SITE");
static_assert(offsetof(regs, red) == 136, "REGS_SITE");
static_assert(offsetof(regs, ymm) == 264, "REGS_SITE");
extern "C" regs regs_in, regs_out;
regs regs_in, regs_out;

#define EACH_GPR(_op) \
    _op("rcx", "8") _op("rdx", "16") _op("rbx", "24") _op("rbp", "40") \
        _op("rsi", "48") _op("rdi", "56") _op("r8", "64") _op("r9", "72") \
            _op("r10", "80") _op("r11", "88") _op("r12", "96") \
                _op("r13", "104") _op("r14", "112") _op("r15", "120")
#define EACH_YMM(_op) \
    _op("0") _op("1") _op("2") _op("3") _op("4") _op("5") _op("6") _op("7") \
        _op("8") _op("9") _op("10") _op("11") _op("12") _op("13") _op("14") \
            _op("15")
#define EACH_RED(_op)     EACH_YMM(_op)
#define LOAD_GPR(_r, _o)  "mov " _o "+regs_in(%rip), %" _r "\n"
#define STORE_GPR(_r, _o) "mov %" _r ", " _o "+regs_out(%rip)\n"
#define LOAD_YMM(_n)      "vmovdqu 264+32*" _n "+regs_in(%rip), %ymm" _n "\n"
#define STORE_YMM(_n)     "vmovdqu %ymm" _n ", 264+32*" _n "+regs_out(%rip)\n"
#define LOAD_RED(_n) \
    "mov 136+8*" _n "+regs_in(%rip), %rax\nmov %rax, -128+8*" _n "(%rsp)\n"
#define STORE_RED(_n) \
    "mov -128+8*" _n "(%rsp), %rax\nmov %rax, 136+8*" _n "+regs_out(%rip)\n"

/* Defines @_name(): loads registers, flags and red zone from regs_in, executes
 * @_insn, and writes them to regs_out. rsp is not loaded: its value is written
 * to both. */
/* clang-format off */
#define REGS_SITE(_name, _insn) \
    __asm__(".text\n.globl " #_name "\n" #_name ":\n" \
            "push %rbx\npush %rbp\npush %r12\npush %r13\npush %r14\n" \
            "push %r15\npush 128+regs_in(%rip)\npopfq\n" \
            EACH_RED(LOAD_RED) EACH_YMM(LOAD_YMM) EACH_GPR(LOAD_GPR) \
            "mov regs_in(%rip), %rax\nmov %rsp, 32+regs_in(%rip)\n" \
            _insn "\nsfence\n" \
            "mov %rsp, 32+regs_out(%rip)\nmov %rax, regs_out(%rip)\n" \
            EACH_GPR(STORE_GPR) EACH_YMM(STORE_YMM) EACH_RED(STORE_RED) \
            "pushfq\npop 128+regs_out(%rip)\ncld\nvzeroupper\n" \
            "pop %r15\npop %r14\npop %r13\npop %r12\npop %rbp\npop %rbx\n" \
            "ret\n"); \
    extern "C" void _name(void);
/* clang-format on */

/* Registers of AVX-512 before and after a store */
struct wide_regs {
    uint8_t zmm[32][64];
    uint64_t k[8];
};
static_assert(offsetof(wide_regs, k) == 2048, "LOAD_K, STORE_K");
extern "C" wide_regs wide_in, wide_out;
wide_regs wide_in, wide_out;

#define EACH_ZMM(_op) \
    EACH_YMM(_op) \
    _op("16") _op("17") _op("18") _op("19") _op("20") _op("21") _op("22") \
        _op("23") _op("24") _op("25") _op("26") _op("27") _op("28") _op("29") \
            _op("30") _op("31")
#define EACH_K(_op) \
    _op("1") _op("2") _op("3") _op("4") _op("5") _op("6") _op("7")
#define LOAD_ZMM(_n)  "vmovdqu64 64*" _n "+wide_in(%rip), %zmm" _n "\n"
#define STORE_ZMM(_n) "vmovdqu64 %zmm" _n ", 64*" _n "+wide_out(%rip)\n"
#define LOAD_K(_n)    "kmovq 2048+8*" _n "+wide_in(%rip), %k" _n "\n"
#define STORE_K(_n)   "kmovq %k" _n ", 2048+8*" _n "+wide_out(%rip)\n"

/* Defines @_name(): loads zmm0 to zmm31 and k1 to k7 from wide_in, executes
 * @_insn, and writes them to wide_out. */
#define WIDE_SITE(_name, _insn) \
    __asm__(".text\n.globl " #_name "\n" #_name ":\n" EACH_ZMM(LOAD_ZMM) \
                EACH_K(LOAD_K) _insn "\nsfence\n" EACH_ZMM(STORE_ZMM) \
                    EACH_K(STORE_K) "vzeroupper\nret\n"); \
    extern "C" void _name(void *page, uint64_t value);

WIDE_SITE(wide_store, "mov %rsi, (%rdi)")
WIDE_SITE(wide_store_zmm, "vmovdqu64 %zmm20, 0x40(%rdi)")
WIDE_SITE(wide_store_low, "vmovdqu64 %zmm3, 0x40(%rdi)")
WIDE_SITE(wide_store_row,
          "vmovdqu %xmm3, 0x40(%rdi)\nvmovdqu %xmm9, 0x50(%rdi)")

REGS_SITE(regs_store, "mov %rax, (%rdx)")
REGS_SITE(regs_store_bounce, "nop\nmov %rax, (%rdx)\nnop")
REGS_SITE(regs_store_ymm, "vmovdqu %ymm7, 0x20(%rdx)")

namespace {

/* Overwrites vector registers and errno, as a C function may. */
void clobber(hca_trap *)
{
    __asm__ volatile("vpcmpeqd %%ymm0, %%ymm0, %%ymm0\n"
                     "vmovdqa %%ymm0, %%ymm7\nvmovdqa %%ymm0, %%ymm15\n"
                     "vzeroupper\n"
                     "pxor %%xmm1, %%xmm1\npxor %%xmm9, %%xmm9"
                     :
                     :
                     : "xmm0", "xmm1", "xmm7", "xmm9", "xmm15");
    errno = EBADMSG;
}

void check_regs(void (*store)(void), void *page)
{
    std::mt19937_64 random(4711);
    uint32_t mxcsr = 0x1f80 | 0x2000, after;

    for (uint64_t &word : regs_in.gpr) {
        word = random();
    }
    for (uint64_t &word : regs_in.red) {
        word = random();
    }
    for (auto &ymm : regs_in.ymm) {
        for (uint8_t &byte : ymm) {
            byte = random();
        }
    }
    regs_in.gpr[2] = (uintptr_t)page;
    memset(&regs_out, 0, sizeof(regs_out));
    errno = EXDEV;
    __asm__ volatile("ldmxcsr %0" : : "m"(mxcsr));
    store();
    __asm__ volatile("stmxcsr %0" : "=m"(after));
    mxcsr = 0x1f80;
    __asm__ volatile("ldmxcsr %0" : : "m"(mxcsr));
    EXPECT_EQ(EXDEV, errno);
    EXPECT_EQ(0x1f80u | 0x2000, after);
    for (int i = 0; i < 16; ++i) {
        EXPECT_EQ(regs_in.gpr[i], regs_out.gpr[i]) << "register " << i;
        EXPECT_EQ(regs_in.red[i], regs_out.red[i]) << "red zone " << i;
        EXPECT_EQ(0, memcmp(regs_in.ymm[i], regs_out.ymm[i], 32)) << "ymm" << i;
    }
    EXPECT_EQ(regs_in.flags & 0xcd5, regs_out.flags & 0xcd5);
}

/* All arithmetic flags; none; direction, overflow and carry */
const uint64_t flag_sets[] = {0x202 | 0x8d5, 0x202, 0x202 | 0x400 | 0x801};

/* The ways to save vector registers on this CPU, the best one first */
enum { WAY_BEST, WAY_XSAVEC, WAY_XSAVE, WAYS };

void set_way(int way)
{
    hca_trap_init(true);
    if (way != WAY_BEST) {
        hca_cpu_save.plain = 0;
    }
    if (way == WAY_XSAVE) {
        hca_cpu_save.compact = 0;
    }
}

void skip_without_avx2()
{
    if (!__builtin_cpu_supports("avx2")) {
        GTEST_SKIP() << "this CPU has no AVX2";
    }
}

class hca_trap_registers : public hca_trap {
protected:
    void SetUp() override
    {
        hca_trap::SetUp();
        then = clobber;
        skip_without_avx2();
    }

    void check()
    {
        for (uint64_t flags : flag_sets) {
            regs_in.flags = flags;
            count         = 0;
            check_regs(regs_store, page);
            EXPECT_TRUE(stored(regs_in.gpr[0]));
            check_regs(regs_store_ymm, page);
            EXPECT_TRUE(stored(regs_in.ymm[7], 32));
            EXPECT_EQ(2u, count);
        }
    }
};

TEST_F(hca_trap_registers, survive)
{
    check();
    hca_trap_init(true);
    check();
    for (int way = WAY_BEST; way < WAYS; ++way) {
        SCOPED_TRACE(way);
        set_way(way);
        check();
    }
}

/* Overwrites registers of AVX-512, as functions of libc do that the device
 * calls. */
__attribute__((target("avx512bw"))) void clobber_wide(hca_trap *self)
{
    __asm__ volatile("vpternlogd $0xff, %%zmm0, %%zmm0, %%zmm0\n"
                     "vmovdqa64 %%zmm0, %%zmm15\nvmovdqa64 %%zmm0, %%zmm16\n"
                     "vmovdqa64 %%zmm0, %%zmm20\nvmovdqa64 %%zmm0, %%zmm31\n"
                     "kxnorq %%k1, %%k1, %%k1\nkxnorq %%k7, %%k7, %%k7\n"
                     :
                     :
                     : "xmm0", "xmm15", "xmm16", "xmm20", "xmm31", "k1", "k7");
    clobber(self);
}

class hca_trap_wide : public hca_trap {
protected:
    void SetUp() override
    {
        hca_trap::SetUp();
        then = clobber_wide;
        if (!__builtin_cpu_supports("avx512bw")) {
            GTEST_SKIP() << "this CPU has no AVX-512BW";
        }
    }

    /* @is_clean: the upper 48 bytes of zmm0 to zmm15 are zero */
    void check(bool is_clean)
    {
        std::mt19937_64 random(4712);
        uint8_t row[32];

        for (auto &zmm : wide_in.zmm) {
            for (uint8_t &byte : zmm) {
                byte = random();
            }
        }
        for (unsigned i = 0; is_clean && (i < 16); i++) {
            memset(&wide_in.zmm[i][16], 0, 48);
        }
        for (unsigned i = 1; i < 8; i++) {
            wide_in.k[i] = random();
        }
        memcpy(row, wide_in.zmm[3], 16);
        memcpy(row + 16, wide_in.zmm[9], 16);
        for (unsigned i = 0; i < 3; i++) { /* the first may trap */
            memset(&wide_out, 0, sizeof(wide_out));
            wide_store(page, i);
            EXPECT_TRUE(stored((uint64_t)i));
            EXPECT_EQ(0, memcmp(&wide_in, &wide_out, sizeof(wide_in)));
            memset(&wide_out, 0, sizeof(wide_out));
            wide_store_zmm(page, i);
            EXPECT_TRUE(stored(wide_in.zmm[20], 64));
            EXPECT_EQ(0, memcmp(&wide_in, &wide_out, sizeof(wide_in)));
            memset(&wide_out, 0, sizeof(wide_out));
            wide_store_low(page, i);
            EXPECT_TRUE(stored(wide_in.zmm[3], 64));
            EXPECT_EQ(0, memcmp(&wide_in, &wide_out, sizeof(wide_in)));
            memset(&wide_out, 0, sizeof(wide_out));
            wide_store_row(page, i);
            if (i > 0) { /* a row only once it is rewritten */
                EXPECT_TRUE(stored(row, sizeof(row)));
            }
            EXPECT_EQ(0, memcmp(&wide_in, &wide_out, sizeof(wide_in)));
        }
    }
};

TEST_F(hca_trap_wide, survive)
{
    for (int way = WAY_BEST; way < WAYS; ++way) {
        SCOPED_TRACE(way);
        set_way(way);
        check(false);
        check(true);
    }
}

/* Checks each bit above the lowest 16 bytes of zmm0 to zmm15, alone. */
TEST_F(hca_trap_wide, one_bit_of_an_upper_half)
{
    set_way(WAY_BEST);
    for (unsigned i = 0; i < 16; i++) {
        for (unsigned bit = 16 * 8; bit < 64 * 8; bit++) {
            memset(&wide_in, 0, sizeof(wide_in));
            wide_in.zmm[i][bit / 8] = 1 << (bit % 8);
            wide_store(page, i);
            EXPECT_EQ(0, memcmp(&wide_in, &wide_out, sizeof(wide_in)))
                << "bit " << bit << " of register " << i;
        }
    }
}

/* The program's SSE code must not become slow: clean upper halves stay
 * clean. */
TEST_F(hca_trap_registers, upper_halves_stay_clean)
{
    uint32_t in_use, high, eax = 0, ebx, ecx, edx;

    __get_cpuid_count(0xd, 1, &eax, &ebx, &ecx, &edx);
    if (!(eax & 4) || hca_valgrind_active()) {
        GTEST_SKIP() << "this CPU, or valgrind, has no xgetbv 1";
    }

    hca_trap_init(true);
    for (int i = 0; i < 3; ++i) {
        __asm__ volatile("vzeroupper");
        site_clean(page, i);
        __asm__ volatile("xgetbv" : "=a"(in_use), "=d"(high) : "c"(1));
        EXPECT_FALSE(in_use & 4);
    }
}

/* Needs more than the alternate stack has. */
void deep(hca_trap *self)
{
    volatile char room[65536];

    ASSERT_FALSE(on_altstack(__builtin_frame_address(0)));
    room[0] = room[sizeof(room) - 1] = 1;
    clobber(self);
}

class hca_trap_bounced : public hca_trap_altstack {
protected:
    void SetUp() override
    {
        hca_trap_altstack::SetUp();
        then = deep;
        skip_without_avx2();
    }
};

TEST_F(hca_trap_bounced, runs_on_the_threads_stack)
{
    for (unsigned i = 1; i <= 3; ++i) {
        count = 0;
        site_bounce(page, i);
        EXPECT_EQ(1u, count);
        EXPECT_EQ(i, last.value[0]);
        count = 0;
        site_bounce_vec(page, i);
        EXPECT_EQ(1u, count) << "vector";
        EXPECT_EQ(i, last.value[0]);
        EXPECT_EQ(16u, last.size);
    }
}

TEST_F(hca_trap_bounced, registers_survive)
{
    for (uint64_t flags : flag_sets) {
        regs_in.flags = flags;
        check_regs(regs_store_bounce, page);
        EXPECT_EQ(regs_in.gpr[0], *(uint64_t *)last.value);
    }
}

} /* namespace */
