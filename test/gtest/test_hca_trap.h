/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Base of tests of doorbells: functions of a single store, and a page that
 * counts the stores to it and keeps the last one
 */
#ifndef TEST_HCA_TRAP_H
#define TEST_HCA_TRAP_H

#include "../times.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include <signal.h>
#include <sys/mman.h>

extern "C" {
#include "softhca/base/hca_valgrind.h"
#include "softhca/doorbell/hca_cpu.h"
#include "softhca/doorbell/hca_trap.h"
}

/* A function that executes one store, with rdi and rsi as its arguments. The
 * nop is for valgrind, which reports a fault in the first instruction of a
 * function at the caller. */
#define SITE(_name, _insn) \
    __asm__(".text\n.p2align 4\n.globl " #_name "\n" \
            ".type " #_name ", @function\n" #_name ":\n" \
            ".cfi_startproc\nnop\n" _insn "\nsfence\nret\n.cfi_endproc\n" \
            ".globl " #_name "_end\n" #_name "_end:\n"); \
    extern "C" void _name(void *page, uint64_t value); \
    extern "C" const char _name##_end[];

namespace {

using site_fn = void (*)(void *, uint64_t);

const size_t PAGE = 4096;

/* Returns true if the store was rewritten; it is the first instruction after
 * the nop. */
template <typename T> bool patched(T *site)
{
    return ((const uint8_t *)site)[1] == 0xe9;
}

/* Returns true if the site has a jump: the store may follow other
 * instructions. */
inline bool jumps_within(site_fn site, const char *end)
{
    return memchr((void *)site, 0xe9, end - (const char *)site) != nullptr;
}

/* Executes @run(n) @rounds times for each n below @num, in four threads. All
 * start with the same n. */
template <typename F> void in_four_threads(unsigned num, unsigned rounds, F run)
{
    std::vector<std::thread> threads;
    std::atomic<unsigned> there{0};

    for (int t = 0; t < 4; ++t) {
        threads.emplace_back([&] {
            for (unsigned n = 0; n < num; ++n) {
                ++there;
                while (there < 4 * (n + 1)) {
                    std::this_thread::yield();
                }
                for (unsigned round = 0; round < rounds; ++round) {
                    run(n);
                }
            }
        });
    }
    for (auto &thread : threads) {
        thread.join();
    }
}

struct call {
    uintptr_t offset;
    unsigned size;
    alignas(8) uint8_t value[64];
    const void *at; /* place of the value, as the device gets it */
};

class hca_trap : public ::testing::Test {
protected:
    void SetUp() override
    {
        hca_trap_init(false);
        page = (char *)mmap(nullptr, PAGE, PROT_READ,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        ASSERT_NE(MAP_FAILED, (void *)page);
        ASSERT_EQ(0, hca_trap_add(page, PAGE, on_store, this));
    }

    void TearDown() override
    {
        EXPECT_EQ(0, hca_trap_del(page));
        munmap(page, PAGE);
        struct sigaction act = {};
        EXPECT_EQ(0, hca_trap_sigaction(SIGSEGV, &act, nullptr));
        EXPECT_EQ(0, hca_trap_sigaction(SIGBUS, &act, nullptr));
    }

    /* Valgrind passes some registers to a handler late: the value is not
     * checked there. */
    bool stored(const void *value, unsigned size) const
    {
        return hca_valgrind_active() || (memcmp(value, last.value, size) == 0);
    }

    bool stored(uint64_t value) const
    {
        return stored(&value, (last.size < 8) ? last.size : 8);
    }

    static void on_store(void *arg, uintptr_t offset, const void *value,
                         unsigned size)
    {
        hca_trap *self = (hca_trap *)arg;

        self->last = {offset, size, {}, value};
        memcpy(self->last.value, value, size);
        ++self->count;
        if (self->then) {
            self->then(self);
        }
    }

    char *page;
    call last                    = {};
    unsigned count               = 0;
    void (*then)(hca_trap *self) = nullptr;
};

char altstack[16384];

inline bool on_altstack(const void *here)
{
    return (size_t)((const char *)here - altstack) < sizeof(altstack);
}

class hca_trap_altstack : public hca_trap {
protected:
    void SetUp() override
    {
        stack_t stack = {altstack, 0, sizeof(altstack)};

        hca_trap::SetUp();
        if (hca_valgrind_active()) {
            GTEST_SKIP() << "valgrind: the device uses the alternate stack";
        }
        ASSERT_EQ(0, sigaltstack(&stack, nullptr));
    }

    void TearDown() override
    {
        stack_t stack = {nullptr, SS_DISABLE, 0};

        sigaltstack(&stack, nullptr);
        hca_trap::TearDown();
    }
};

} /* namespace */

#endif
