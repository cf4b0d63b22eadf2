/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Copies that return -EFAULT for inaccessible memory (hca_trap_guard_memcpy(),
 * hca_trap_guard_rows()): outside the device and within it, with and without
 * AVX, and with bus errors that can be resolved
 */
#include "test_hca_trap.h"

#include <atomic>
#include <cerrno>
#include <csignal>
#include <functional>
#include <vector>

#include <ucontext.h>
#include <unistd.h>
#include <x86intrin.h>

SITE(site_guard, "mov %rsi, (%rdi)")
SITE(site_guard_bounce, "mov %rsi, (%rdi)\nnop")

namespace {

using hca_trap_guard          = hca_trap;
using hca_trap_guard_altstack = hca_trap_altstack;

TEST_F(hca_trap_guard, copies)
{
    std::vector<uint8_t> from(100000), to(100000);
    std::vector<size_t> sizes;

    for (size_t i = 0; i < from.size(); ++i) {
        from[i] = i * 7 + i / 256;
    }
    for (size_t n = 0; n < 300; ++n) {
        sizes.push_back(n);
    }
    for (size_t n : {1000, 4031, 4095, 4096, 4097, 65536, 99990}) {
        sizes.push_back(n);
    }
    for (bool avx : {true, false}) {
        if (!avx) {
            hca_cpu_save.mask &= ~4u; /* as without AVX */
        }
        for (size_t n : sizes) {
            std::fill(to.begin(), to.end(), 0xee);
            ASSERT_EQ(0, hca_trap_guard_memcpy(&to[3], &from[1], n)) << n;
            ASSERT_EQ(0, memcmp(&to[3], &from[1], n)) << n;
            ASSERT_EQ(0xee, to[2]) << n;
            ASSERT_EQ(0xee, to[3 + n]) << n;
        }
    }
    hca_trap_init(false);
}

/* The last byte of a copy, and the instruction that is about to be executed,
 * in single steps */
struct {
    const uint8_t *last;
    const uint8_t *rip;
    bool is_there, is_string;
} guard_step;

void guard_on_step(int, siginfo_t *, void *context)
{
    const mcontext_t &regs = ((ucontext_t *)context)->uc_mcontext;

    if ((*guard_step.last != 0) && !guard_step.is_there) {
        guard_step.is_there  = true;
        guard_step.is_string = (guard_step.rip[0] == 0xf3);
    }
    guard_step.rip = (const uint8_t *)regs.gregs[REG_RIP];
}

/* Returns true if rep movsb stores the last byte of `to`. */
bool guard_is_string(const std::vector<uint8_t> &to,
                     const std::function<void()> &copy)
{
    struct sigaction action = {}, saved;

    guard_step          = {};
    guard_step.last     = &to.back();
    action.sa_sigaction = guard_on_step;
    action.sa_flags     = SA_SIGINFO;
    sigaction(SIGTRAP, &action, &saved);
    __writeeflags(__readeflags() | 0x100);
    copy();
    __writeeflags(__readeflags() & ~0x100ull);
    sigaction(SIGTRAP, &saved, nullptr);
    EXPECT_TRUE(guard_step.is_there);
    return guard_step.is_string;
}

/* A processor may store the bytes of rep movsb in any order, and a program may
 * wait for the last one. */
TEST_F(hca_trap_guard, stores_the_last_byte_last)
{
    std::vector<uint8_t> from(4200, 'x'), to(4200), rows(4200);
    const hca_trap_rows all = {
        (char *)rows.data(), (const char *)from.data(), 0, 0, 4200, 1};

    EXPECT_FALSE(guard_is_string(
        to, [&] { hca_trap_guard_memcpy(to.data(), from.data(), 4200); }));
    EXPECT_FALSE(guard_is_string(rows, [&] { hca_trap_guard_rows(&all); }));
    EXPECT_TRUE(from == to);
    EXPECT_TRUE(from == rows);
}

TEST_F(hca_trap_guard, survives)
{
    char *area = (char *)mmap(nullptr, 3 * PAGE, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    std::vector<char> other(3 * PAGE);

    mprotect(area + PAGE, PAGE, PROT_NONE);
    munmap(area + 2 * PAGE, PAGE);
    for (size_t n : {1, 2, 3, 4, 7, 8, 15, 16, 17, 31, 33, 64, 65, 200, 4000}) {
        /* ends with the good page; one byte more; wholly outside */
        EXPECT_EQ(0, hca_trap_guard_memcpy(&other[0], area + PAGE - n, n));
        EXPECT_EQ(0, hca_trap_guard_memcpy(area + PAGE - n, &other[0], n));
        EXPECT_EQ(-EFAULT,
                  hca_trap_guard_memcpy(&other[0], area + PAGE - n + 1, n));
        EXPECT_EQ(-EFAULT,
                  hca_trap_guard_memcpy(area + PAGE - n + 1, &other[0], n));
        EXPECT_EQ(-EFAULT,
                  hca_trap_guard_memcpy(&other[0], area + 2 * PAGE, n));
        EXPECT_EQ(-EFAULT, hca_trap_guard_memcpy(&other[0], nullptr, n));
        EXPECT_EQ(-EFAULT, hca_trap_guard_memcpy((void *)0x8000000000000000,
                                                 &other[0], n));
    }
    EXPECT_EQ(-EFAULT, hca_trap_guard_memcpy(&other[0], area, 2 * PAGE));
    EXPECT_EQ(-EFAULT, hca_trap_guard_memcpy(area, &other[0], 2 * PAGE));
    EXPECT_EQ(0u, count);
    munmap(area, 2 * PAGE);
}

/* Copies rows, and compares them and the bytes between them with a loop's. */
void guard_rows(size_t length, size_t count, size_t to_skip, size_t from_skip)
{
    const size_t to_stride = length + to_skip, from_stride = length + from_skip;
    std::vector<uint8_t> from(from_stride * count + 1);
    std::vector<uint8_t> to(to_stride * count + 3, 0xee), want = to;

    for (size_t i = 0; i < from.size(); ++i) {
        from[i] = i * 7 + i / 256;
    }
    for (size_t i = 0; i < count; ++i) {
        memcpy(&want[3 + i * to_stride], &from[1 + i * from_stride], length);
    }
    const hca_trap_rows rows = {(char *)&to[3], (const char *)&from[1],
                                to_stride,      from_stride,
                                length,         count};
    EXPECT_EQ(0, hca_trap_guard_rows(&rows));
    EXPECT_TRUE(want == to)
        << length << " " << count << " " << to_skip << " " << from_skip;
}

TEST_F(hca_trap_guard, copies_rows)
{
    std::vector<size_t> sizes = {1000, 4095, 4096, 4097, 9999};

    for (size_t n = 1; n < 300; ++n) {
        sizes.push_back(n);
    }
    for (bool avx : {true, false}) {
        if (!avx) {
            hca_cpu_save.mask &= ~4u; /* as without AVX */
        }
        for (size_t n : sizes) {
            guard_rows(n, 1, 0, 0);
            guard_rows(n, 2, 9, 0);
            guard_rows(n, 5, 0, 31);
            guard_rows(n, 4, 8, n);
        }
    }
    hca_trap_init(false);
}

TEST_F(hca_trap_guard, repeats_a_row)
{
    std::vector<char> to(3 * 40);
    char from[40];
    const hca_trap_rows rows = {to.data(), from, 40, 0, 40, 3};

    memset(from, 5, sizeof(from));
    EXPECT_EQ(0, hca_trap_guard_rows(&rows));
    EXPECT_TRUE(to == std::vector<char>(to.size(), 5));
}

/* Rows that end with the last accessible byte, and one byte behind it */
TEST_F(hca_trap_guard, rows_survive)
{
    constexpr size_t area_size = 8 * PAGE, num = 3, skip = 5;
    char *area = (char *)mmap(nullptr, area_size + PAGE, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    std::vector<char> other(area_size);

    mprotect(area + area_size, PAGE, PROT_NONE);
    for (bool avx : {true, false}) {
        if (!avx) {
            hca_cpu_save.mask &= ~4u; /* as without AVX */
        }
        for (size_t n :
             {1, 2, 3, 4, 7, 8, 15, 16, 17, 32, 33, 64, 65, 200, 4000, 5000}) {
            size_t stride     = n + skip;
            char *tail        = area + area_size - stride * num + skip;
            hca_trap_rows in  = {&other[0], tail, n, stride, n, num};
            hca_trap_rows out = {tail, &other[0], stride, n, n, num};

            EXPECT_EQ(0, hca_trap_guard_rows(&in)) << n;
            EXPECT_EQ(0, hca_trap_guard_rows(&out)) << n;
            in.from++;
            out.to++;
            EXPECT_EQ(-EFAULT, hca_trap_guard_rows(&in)) << n;
            EXPECT_EQ(-EFAULT, hca_trap_guard_rows(&out)) << n;
        }
    }
    hca_trap_init(false);
    munmap(area, area_size + PAGE);
}

TEST_F(hca_trap_guard, survives_the_end_of_a_file)
{
    int fd     = memfd_create("short", 0);
    char *file = (char *)mmap(nullptr, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED,
                              fd, 0);
    char byte;

    EXPECT_EQ(-EFAULT, hca_trap_guard_memcpy(&byte, file, 1));
    ASSERT_EQ(0, ftruncate(fd, PAGE));
    EXPECT_EQ(0, hca_trap_guard_memcpy(&byte, file, 1));
    munmap(file, PAGE);
    close(fd);
}

void guard_nested(hca_trap *)
{
    char byte;

    EXPECT_EQ(-EFAULT, hca_trap_guard_memcpy(&byte, (void *)64, 1));
    EXPECT_EQ(-EFAULT, hca_trap_guard_memcpy((void *)64, &byte, 1));
}

TEST_F(hca_trap_guard, within_the_device)
{
    then = guard_nested;
    for (unsigned pass = 0; pass < 4; ++pass) {
        hca_trap_init(pass > 0);
        site_guard(page, pass);
        EXPECT_EQ(pass + 1, count);
    }
}

TEST_F(hca_trap_guard_altstack, within_the_device)
{
    then = guard_nested;
    site_guard_bounce(page, 1);
    EXPECT_EQ(1u, count);
}

/* File that gets its page when a bus error asks for it */
std::atomic<int> late_fd;

bool late_file(const void *)
{
    int fd = late_fd.exchange(-1);

    return (fd >= 0) && (ftruncate(fd, PAGE) == 0);
}

TEST_F(hca_trap_guard, bus_errors_that_can_be_resolved)
{
    int fd     = memfd_create("late", 0);
    char *file = (char *)mmap(nullptr, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED,
                              fd, 0);
    char byte  = 1;

    late_fd = -1;
    ASSERT_EQ(0, hca_trap_bus(late_file));
    EXPECT_EQ(-EFAULT, hca_trap_guard_memcpy(&byte, file, 1));
    late_fd = fd;
    EXPECT_EQ(0, hca_trap_guard_memcpy(&byte, file, 1));
    EXPECT_EQ(0, byte);
    for (size_t n : {2, 8, 16, 30, 60, 100, 1000}) {
        std::vector<char> to(n, 1);
        const hca_trap_rows rows = {to.data(), file, n / 2, 2 * n, n / 2, 2};

        ASSERT_EQ(0, ftruncate(fd, 0));
        EXPECT_EQ(-EFAULT, hca_trap_guard_rows(&rows));
        late_fd = fd;
        EXPECT_EQ(0, hca_trap_guard_rows(&rows));
        EXPECT_TRUE(to == std::vector<char>(n / 2 * 2, 0)) << n;
    }
    ASSERT_EQ(0, ftruncate(fd, 0));
    late_fd = fd;
    *file   = 5;
    EXPECT_EQ(5, *file);
    ASSERT_EQ(0, hca_trap_bus(nullptr));
    munmap(file, PAGE);
    close(fd);
}

} /* namespace */
