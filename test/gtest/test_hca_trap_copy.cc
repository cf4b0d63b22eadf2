/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Copies to a page of doorbells by libc's memcpy() and memmove(): the calls are
 * rewritten
 */
#include "asan.h"
#include "test_hca_trap.h"

#include <atomic>
#include <cerrno>

extern "C" {
#include "softhca/doorbell/hca_patch.h"
}

/* A function that calls another with its own arguments. */
#define CALL_TEXT(_callee) \
    "sub $8, %rsp\ncall " _callee "@PLT\nadd $8, %rsp\nret\n"

#define CALL_SITE(_name, _callee) \
    __asm__(".text\n.p2align 4\n.globl " #_name "\n" #_name \
            ":\n" CALL_TEXT(_callee)); \
    extern "C" void *_name(void *to, const void *from, size_t length);

CALL_SITE(site_memcpy, "memcpy")
CALL_SITE(site_memmove, "memmove")
CALL_SITE(site_beyond, "memmove")
CALL_SITE(site_other, "memcpy")
CALL_SITE(site_errno, "memcpy")
CALL_SITE(site_mempcpy, "mempcpy")
CALL_SITE(site_faulted, "memmove")

/* Goes on as a site whose call has faulted. */
__asm__(".text\n.globl site_resume\nsite_resume: sub $8, %rsp\njmp *%rcx\n");
extern "C" void *site_resume(void *to, const void *from, size_t length,
                             uintptr_t trampoline);

/* Many calls of 16 bytes each, for threads that reach some while they are
 * rewritten. */
constexpr unsigned MANY_CALLS = 32;
__asm__(".text\n.p2align 4\n.globl site_calls\nsite_calls:\n"
        ".rept 32\n" CALL_TEXT("memmove") ".p2align 4\n.endr\n");
extern "C" char site_calls[];

namespace {

using copy_fn = void *(*)(void *, const void *, size_t);

/* Returns true if the call of a site has been rewritten: trampolines are far
 * from all modules. */
bool is_rewritten(const void *site)
{
    int32_t rel;

    EXPECT_EQ(0xe8, ((const uint8_t *)site)[4]);
    memcpy(&rel, (const char *)site + 5, sizeof(rel));
    return labs(rel) > 0x8000000;
}

class hca_trap_copy : public hca_trap {
protected:
    void SetUp() override
    {
        hca_trap::SetUp();
        if (hca_valgrind_active()) {
            GTEST_SKIP() << "valgrind: nothing is rewritten";
        }
        if (asan_is_on()) {
            GTEST_SKIP() << "AddressSanitizer copies by functions of its own";
        }
        hca_trap_init(true);
        for (size_t i = 0; i < sizeof(from); ++i) {
            from[i] = i;
        }
    }

    /* Later stores do not trap: only a rewritten call reaches the device. */
    void make_writable()
    {
        ASSERT_EQ(0, mprotect(page, PAGE, PROT_READ | PROT_WRITE));
    }

    uint8_t from[256];
};

TEST_F(hca_trap_copy, traps_once)
{
    for (copy_fn site : {site_memcpy, site_memmove}) {
        ASSERT_EQ(0, mprotect(page, PAGE, PROT_READ));
        EXPECT_EQ(page + 64, site(page + 64, from, 64));
        EXPECT_EQ(0, memcmp(from + 64 - last.size, last.value, last.size));
        EXPECT_TRUE(is_rewritten((void *)site));

        make_writable();
        count = 0;
        EXPECT_EQ(page + 64, site(page + 64, from + 8, 64));
        EXPECT_EQ(1u, count);
        EXPECT_EQ(64u, last.offset);
        EXPECT_EQ(64u, last.size);
        EXPECT_TRUE(stored(from + 8, 64));
    }
}

TEST_F(hca_trap_copy, long_ones_are_pieces_of_64_bytes)
{
    site_memcpy(page, from, 64);
    make_writable();
    count = 0;
    EXPECT_EQ(page + 64, site_memcpy(page + 64, from, 200));
    EXPECT_EQ(4u, count);
    EXPECT_EQ(256u, last.offset);
    EXPECT_EQ(8u, last.size);
    EXPECT_TRUE(stored(from + 192, 8));
    site_memcpy(page, from, 0);
    EXPECT_EQ(4u, count);
}

/* The device reads a value more than once. */
TEST_F(hca_trap_copy, another_thread_cannot_change_the_value)
{
    site_memcpy(page, from, 64);
    make_writable();
    for (size_t size : {8, 64, 200}) {
        site_memcpy(page, from, size);
        EXPECT_TRUE((last.at < from) || (last.at >= from + sizeof(from)));
    }
}

/* Only a copy that is all within the range is the device's: libc's function
 * does another, and traps. */
TEST_F(hca_trap_copy, beyond_the_range_traps)
{
    char *two = (char *)mmap(nullptr, 2 * PAGE, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    ASSERT_EQ(0, mprotect(two, PAGE, PROT_READ));
    ASSERT_EQ(0, hca_trap_add(two, PAGE, on_store, this));
    site_beyond(two, from, 64);
    ASSERT_TRUE(is_rewritten((void *)site_beyond));

    for (unsigned size : {64u, 128u}) {
        count = 0;
        site_beyond(two + PAGE - 64, from, size);
        EXPECT_LT(0u, count) << size;
        EXPECT_EQ((size > 64) ? 64 : 0, two[PAGE]) << size;
    }
    EXPECT_EQ(0, hca_trap_del(two));
    munmap(two, 2 * PAGE);
}

TEST_F(hca_trap_copy, other_memory)
{
    uint8_t to[sizeof(from)] = {};

    site_other(page, from, 64);
    ASSERT_TRUE(is_rewritten((void *)site_other));
    count = 0;
    EXPECT_EQ(to, site_other(to, from, sizeof(to)));
    EXPECT_EQ(0, memcmp(from, to, sizeof(to)));
    EXPECT_EQ(0u, count);
}

TEST_F(hca_trap_copy, errno_is_kept)
{
    then = [](hca_trap *) { errno = EINVAL; };
    for (int pass = 0; pass < 3; ++pass) {
        errno = ENOENT;
        site_errno(page, from, 64);
        EXPECT_EQ(ENOENT, errno) << pass;
    }
    EXPECT_TRUE(is_rewritten((void *)site_errno));
}

/* mempcpy() has the same code as memcpy(), but another result. */
TEST_F(hca_trap_copy, of_another_function_is_not_rewritten)
{
    for (int pass = 0; pass < 3; ++pass) {
        EXPECT_EQ(page + 64, site_mempcpy(page, from, 64));
    }
    EXPECT_LT(0u, count);
    EXPECT_FALSE(is_rewritten((void *)site_mempcpy));
}

/* A thread that faults in a call which is being rewritten goes on at the
 * trampoline. */
TEST_F(hca_trap_copy, faulted_call)
{
    uintptr_t trampoline;

    site_faulted(page, from, 64);
    trampoline = hca_patch_find((uintptr_t)site_faulted + 4);
    ASSERT_NE(0u, trampoline);
    make_writable();
    count = 0;
    EXPECT_EQ(page + 64, site_resume(page + 64, from, 128, trampoline));
    EXPECT_EQ(2u, count);
    EXPECT_EQ(128u, last.offset);
}

std::atomic<unsigned> calls_bytes;

void on_call(void *, uintptr_t, const void *, unsigned size)
{
    calls_bytes += size;
}

/* Calls are rewritten while four threads execute them. libc may store some
 * bytes twice. */
TEST_F(hca_trap_copy, threads_while_rewriting)
{
    const unsigned rounds = 2000;
    char *pages           = (char *)mmap(nullptr, PAGE, PROT_READ,
                                         MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    ASSERT_EQ(0, hca_trap_add(pages, PAGE, on_call, nullptr));
    calls_bytes = 0;
    in_four_threads(MANY_CALLS, rounds, [&](unsigned n) {
        ((copy_fn)(site_calls + 16 * n))(pages, from, 64);
    });
    EXPECT_LE(4u * rounds * MANY_CALLS * 64, calls_bytes.load());
    for (unsigned n = 0; n < MANY_CALLS; ++n) {
        EXPECT_TRUE(is_rewritten(site_calls + 16 * n)) << n;
    }
    EXPECT_EQ(0, hca_trap_del(pages));
    munmap(pages, PAGE);
}

} /* namespace */
