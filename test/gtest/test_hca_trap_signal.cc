/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * SIGSEGV and SIGBUS of the program itself, signals that arrive in the middle
 * of the device, forked children, backtraces
 */
#include "test_hca_trap.h"

#include <atomic>
#include <cerrno>
#include <csetjmp>
#include <thread>

#include <execinfo.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

SITE(site_foreign, "mov %rsi, (%rdi)")
SITE(site_string, "mov $192, %ecx\nrep movsb")
SITE(site_own, "mov %rsi, (%rdi)")
SITE(site_ring, "mov %rsi, 0x20(%rdi)")
SITE(site_signal, "mov %rsi, 8(%rdi)")
SITE(site_fork, "mov %rsi, (%rdi)")
SITE(site_unwind, "mov %rsi, 8(%rdi)")

namespace {

using hca_trap_signals          = hca_trap;
using hca_trap_signals_altstack = hca_trap_altstack;

sigjmp_buf escape;
siginfo_t seen_info;
void *seen_rip;
sigset_t seen_mask;
bool seen_altstack;
volatile int seen;

void on_fault(int sig, siginfo_t *info, void *context)
{
    ucontext_t *uc = (ucontext_t *)context;
    char here      = 0;

    ++seen;
    seen_info     = *info;
    seen_rip      = (void *)uc->uc_mcontext.gregs[REG_RIP];
    seen_altstack = on_altstack(&here);
    hca_trap_pthread_sigmask(SIG_BLOCK, nullptr, &seen_mask);
    EXPECT_EQ(sig, info->si_signo);
    siglongjmp(escape, 1);
}

/* A plain handler gets only the number. */
void on_fault_plain(int sig)
{
    ++seen;
    EXPECT_EQ(SIGSEGV, sig);
    siglongjmp(escape, 1);
}

void set_action(int sig, void (*handler)(int, siginfo_t *, void *), int flags)
{
    struct sigaction act = {};

    act.sa_sigaction = handler;
    act.sa_flags     = flags | SA_SIGINFO;
    sigaddset(&act.sa_mask, SIGUSR1);
    ASSERT_EQ(0, hca_trap_sigaction(sig, &act, nullptr));
}

/* Returns true if the handler ran. siglongjmp() restores the signal mask. */
bool fault(site_fn site, void *addr)
{
    seen = 0;
    if (sigsetjmp(escape, 1) == 0) {
        site(addr, 1);
    }
    return seen > 0;
}

void *const nowhere = (void *)0x1230;

TEST_F(hca_trap_signals, foreign_fault)
{
    set_action(SIGSEGV, on_fault, 0);
    for (int pass = 0; pass < 4; ++pass) {
        hca_trap_init(pass > 1);
        ASSERT_TRUE(fault(site_foreign, nowhere)) << pass;
        EXPECT_EQ(nowhere, seen_info.si_addr);
        EXPECT_EQ(SEGV_MAPERR, seen_info.si_code);
        EXPECT_EQ((char *)site_foreign + 1, seen_rip) << pass;
        EXPECT_TRUE(sigismember(&seen_mask, SIGUSR1));
        EXPECT_TRUE(sigismember(&seen_mask, SIGSEGV));
        EXPECT_FALSE(sigismember(&seen_mask, SIGBUS));
        hca_trap_pthread_sigmask(SIG_BLOCK, nullptr, &seen_mask);
        EXPECT_FALSE(sigismember(&seen_mask, SIGUSR1));
        EXPECT_FALSE(sigismember(&seen_mask, SIGSEGV));
        site_foreign(page, 1);
        EXPECT_EQ(pass + 1u, count);
    }
    EXPECT_TRUE(patched(site_foreign) || hca_valgrind_active());
}

TEST_F(hca_trap_signals, foreign_fault_of_a_protected_page)
{
    char *other = (char *)mmap(nullptr, PAGE, PROT_READ,
                               MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    set_action(SIGSEGV, on_fault, 0);
    ASSERT_TRUE(fault(site_foreign, other));
    EXPECT_EQ(other, seen_info.si_addr);
    EXPECT_EQ(SEGV_ACCERR, seen_info.si_code);
    munmap(other, PAGE);
}

/* The source of a string is shorter than the string: the bytes that are there
 * are stored, and the program gets the fault of the next one. */
TEST_F(hca_trap_signals, string_from_a_page_that_ends)
{
    char *from = (char *)mmap(nullptr, 2 * PAGE, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (hca_valgrind_active()) {
        munmap(from, 2 * PAGE);
        GTEST_SKIP() << "valgrind counts rcx down before it stores";
    }

    memset(from, 0x77, PAGE);
    mprotect(from + PAGE, PAGE, PROT_NONE);
    set_action(SIGSEGV, on_fault, 0);
    seen = 0;
    if (sigsetjmp(escape, 1) == 0) {
        site_string(page, (uint64_t)from + PAGE - 70);
    }
    EXPECT_EQ(1, seen);
    EXPECT_EQ(from + PAGE, seen_info.si_addr);
    EXPECT_EQ(1u + 6, count) << "64 bytes, and 6 alone";
    EXPECT_EQ(69u, last.offset);
    EXPECT_EQ(0x77, last.value[0]);
    munmap(from, 2 * PAGE);
}

TEST_F(hca_trap_signals, foreign_sigbus)
{
    int fd     = memfd_create("short", 0);
    char *file = (char *)mmap(nullptr, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED,
                              fd, 0);

    set_action(SIGBUS, on_fault, 0);
    ASSERT_TRUE(fault(site_foreign, file));
    EXPECT_EQ(SIGBUS, seen_info.si_signo);
    EXPECT_EQ(file, seen_info.si_addr);
    munmap(file, PAGE);
    close(fd);
}

TEST_F(hca_trap_signals, actions_are_virtual)
{
    struct sigaction act = {}, old;

    set_action(SIGSEGV, on_fault, SA_ONSTACK);
    ASSERT_EQ(0, hca_trap_sigaction(SIGSEGV, nullptr, &old));
    EXPECT_EQ(on_fault, old.sa_sigaction);
    EXPECT_EQ(SA_ONSTACK | SA_SIGINFO, old.sa_flags);
    EXPECT_TRUE(sigismember(&old.sa_mask, SIGUSR1));
    EXPECT_FALSE(sigismember(&old.sa_mask, SIGSEGV));
    site_own(page, 1);
    EXPECT_EQ(1u, count);

    EXPECT_EQ((void *)on_fault,
              (void *)hca_trap_signal(SIGSEGV, on_fault_plain));
    ASSERT_TRUE(fault(site_foreign, nowhere));
    ASSERT_TRUE(fault(site_foreign, nowhere));
    ASSERT_EQ(0, hca_trap_sigaction(SIGSEGV, nullptr, &old));
    EXPECT_EQ(on_fault_plain, old.sa_handler);
    EXPECT_EQ(SA_RESTART, old.sa_flags);

    EXPECT_EQ(on_fault_plain, hca_trap_sysv_signal(SIGSEGV, on_fault_plain));
    ASSERT_TRUE(fault(site_foreign, nowhere));
    ASSERT_EQ(0, hca_trap_sigaction(SIGSEGV, &act, &act));
    EXPECT_EQ(SIG_DFL, act.sa_handler) << "reset before the handler ran";
    EXPECT_EQ(SIG_ERR, hca_trap_signal(SIGSEGV, SIG_ERR));
    EXPECT_EQ(EINVAL, errno);
    act.sa_handler = on_fault_plain;
    EXPECT_EQ(-1, hca_trap_sigaction(SIGKILL, &act, nullptr));
    EXPECT_EQ(EINVAL, errno);
}

TEST_F(hca_trap_signals, mask_of_other_actions)
{
    struct sigaction act = {}, old;

    act.sa_handler = on_fault_plain;
    sigfillset(&act.sa_mask);
    ASSERT_EQ(0, hca_trap_sigaction(SIGUSR2, &act, nullptr));
    ASSERT_EQ(0, sigaction(SIGUSR2, nullptr, &old));
    EXPECT_FALSE(sigismember(&old.sa_mask, SIGSEGV)) << "in the kernel";
    ASSERT_EQ(0, hca_trap_sigaction(SIGUSR2, nullptr, &old));
    EXPECT_TRUE(sigismember(&old.sa_mask, SIGSEGV));
    EXPECT_TRUE(sigismember(&old.sa_mask, SIGBUS));
    EXPECT_EQ(on_fault_plain, hca_trap_signal(SIGUSR2, SIG_DFL));
}

TEST_F(hca_trap_signals_altstack, program_gets_the_stack_it_asked_for)
{
    set_action(SIGSEGV, on_fault, SA_ONSTACK);
    ASSERT_TRUE(fault(site_foreign, nowhere));
    EXPECT_TRUE(seen_altstack);
    set_action(SIGSEGV, on_fault, 0);
    ASSERT_TRUE(fault(site_foreign, nowhere));
    EXPECT_FALSE(seen_altstack);
}

TEST_F(hca_trap_signals, blocked)
{
    sigset_t all, old;

    sigfillset(&all);
    ASSERT_EQ(0, hca_trap_sigprocmask(SIG_BLOCK, &all, &old));
    EXPECT_FALSE(sigismember(&old, SIGSEGV));
    site_own(page, 1);
    EXPECT_EQ(1u, count);
    EXPECT_EQ(0, hca_trap_pthread_sigmask(SIG_SETMASK, &old, &all));
    EXPECT_TRUE(sigismember(&all, SIGSEGV));
    EXPECT_TRUE(sigismember(&all, SIGBUS));
    EXPECT_TRUE(sigismember(&all, SIGUSR1));
    EXPECT_EQ(0, hca_trap_pthread_sigmask(SIG_BLOCK, nullptr, &all));
    EXPECT_FALSE(sigismember(&all, SIGSEGV));
    EXPECT_FALSE(sigismember(&all, SIGUSR1));

    EXPECT_EQ(EINVAL, hca_trap_pthread_sigmask(99, &all, nullptr));
    EXPECT_EQ(-1, hca_trap_sigprocmask(99, &all, nullptr));
    EXPECT_EQ(EINVAL, errno);
}

TEST_F(hca_trap_signals, blocked_is_inherited_by_threads)
{
    sigset_t set, old, inherited;

    sigemptyset(&set);
    sigaddset(&set, SIGSEGV);
    ASSERT_EQ(0, hca_trap_pthread_sigmask(SIG_BLOCK, &set, &old));
    std::thread([&] {
        site_own(page, 1);
        hca_trap_pthread_sigmask(SIG_BLOCK, nullptr, &inherited);
    }).join();
    ASSERT_EQ(0, hca_trap_pthread_sigmask(SIG_UNBLOCK, &set, nullptr));
    EXPECT_EQ(1u, count);
    EXPECT_TRUE(sigismember(&inherited, SIGSEGV));
    EXPECT_FALSE(sigismember(&inherited, SIGBUS));
    ASSERT_EQ(0, hca_trap_pthread_sigmask(SIG_BLOCK, nullptr, &old));
    EXPECT_FALSE(sigismember(&old, SIGSEGV));
}

TEST_F(hca_trap_signals, sent_signal)
{
    sigset_t set;

    set_action(SIGSEGV, on_fault, 0);
    seen = 0;
    if (sigsetjmp(escape, 1) == 0) {
        raise(SIGSEGV);
    }
    EXPECT_EQ(1, seen);
    EXPECT_EQ(getpid(), seen_info.si_pid);

    /* delayed while blocked */
    sigemptyset(&set);
    sigaddset(&set, SIGSEGV);
    hca_trap_pthread_sigmask(SIG_BLOCK, &set, nullptr);
    raise(SIGSEGV);
    EXPECT_EQ(1, seen);
    if (sigsetjmp(escape, 1) == 0) {
        hca_trap_pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
    }
    EXPECT_EQ(2, seen);
    hca_trap_pthread_sigmask(SIG_UNBLOCK, &set, nullptr);

    hca_trap_signal(SIGSEGV, SIG_IGN);
    raise(SIGSEGV);
}

void die_of(hca_trap_sighandler action, site_fn site)
{
    hca_trap_signal(SIGSEGV, action);
    site(nowhere, 1);
    _exit(0);
}

void fault_again(int)
{
    write(STDERR_FILENO, "once ", 5);
    site_foreign(nowhere, 1);
    _exit(0);
}

void die_blocked(site_fn site)
{
    sigset_t set;

    hca_trap_signal(SIGSEGV, fault_again);
    sigfillset(&set);
    hca_trap_pthread_sigmask(SIG_BLOCK, &set, nullptr);
    site(nowhere, 1);
    _exit(0);
}

void die_raise()
{
    hca_trap_signal(SIGSEGV, SIG_DFL);
    raise(SIGSEGV);
    _exit(0);
}

using hca_trap_death = hca_trap;

TEST_F(hca_trap_death, default_and_ignored)
{
    for (int pass = 0; pass < 2; ++pass) {
        EXPECT_EXIT(die_of(SIG_DFL, site_foreign),
                    testing::KilledBySignal(SIGSEGV), "^$");
        EXPECT_EXIT(die_of(SIG_IGN, site_foreign),
                    testing::KilledBySignal(SIGSEGV), "^$");
        EXPECT_EXIT(die_blocked(site_foreign), testing::KilledBySignal(SIGSEGV),
                    "^$");
        EXPECT_EXIT(die_of(fault_again, site_foreign),
                    testing::KilledBySignal(SIGSEGV), "^once $");
        EXPECT_EXIT(die_raise(), testing::KilledBySignal(SIGSEGV), "^$");
        hca_trap_init(true);
        site_foreign(page, 1);
    }
}

TEST_F(hca_trap_death, store_that_is_not_understood)
{
    EXPECT_EXIT(__atomic_exchange_n((uint64_t *)page, 1, __ATOMIC_SEQ_CST),
                testing::KilledBySignal(SIGSEGV), "is not understood");
}

/* ---- interrupted from elsewhere ------------------------------------------ */

char *alarm_page;
std::atomic<unsigned> alarm_count, alarm_rings;

/* Adds one million for a store of the loop, one for a store of the handler. */
void on_alarm_store(void *, uintptr_t offset, const void *, unsigned)
{
    alarm_count += (offset == 0x20) ? 1000000 : 1;
}

void on_alarm(int)
{
    ++alarm_rings;
    site_signal(alarm_page, 1);
}

/* A handler of the program stores, also in the middle of the device. Goes on
 * until it has been called. */
void interrupted(char *page, unsigned rounds, std::atomic<unsigned> *sum)
{
    const int usec         = time_slow(SIGNAL_PERIOD);
    struct itimerval timer = {{0, usec}, {0, usec}};
    const uint64_t end     = time_now_us() + time_slow(TIME_WAIT) * 1000ull;
    unsigned i, before = *sum;

    hca_trap_signal(SIGALRM, on_alarm);
    setitimer(ITIMER_REAL, &timer, nullptr);
    for (i = 0; (i < rounds) || ((alarm_rings == 0) && (time_now_us() < end));
         ++i) {
        site_ring(page, i);
    }
    timer = {};
    setitimer(ITIMER_REAL, &timer, nullptr);
    hca_trap_signal(SIGALRM, SIG_DFL);
    EXPECT_LT(0u, alarm_rings);
    EXPECT_EQ(before + i * 1000000u + alarm_rings, *sum);
}

TEST_F(hca_trap_signals, interrupted_by_a_handler_that_stores)
{
    char *other   = (char *)mmap(nullptr, PAGE, PROT_READ,
                                 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    stack_t stack = {altstack, 0, sizeof(altstack)};
    stack_t off   = {nullptr, SS_DISABLE, 0};

    alarm_page = other;
    ASSERT_EQ(0, hca_trap_add(other, PAGE, on_alarm_store, nullptr));
    for (int pass = 0; pass < 4; ++pass) {
        alarm_count = alarm_rings = 0;
        hca_trap_init(pass > 2);
        ASSERT_EQ(0, sigaltstack((pass == 1) ? &stack : &off, nullptr));
        interrupted(other, 20000, &alarm_count);
    }
    sigaltstack(&off, nullptr);
    EXPECT_EQ(0, hca_trap_del(other));
    munmap(other, PAGE);
}

TEST_F(hca_trap_signals, forked_child)
{
    for (int pass = 0; pass < 4; ++pass) {
        int status;
        pid_t pid;

        hca_trap_init(pass > 1);
        count = 0;
        pid   = fork();
        if (pid == 0) {
            site_fork(page, 1);
            site_fork(page, 2);
            _exit((count == 2) && stored(2) ? 42 : 1);
        }
        ASSERT_EQ(pid, waitpid(pid, &status, 0));
        EXPECT_TRUE(WIFEXITED(status));
        EXPECT_EQ(42, WEXITSTATUS(status));
        site_fork(page, 3);
        EXPECT_EQ(1u, count);
    }
}

void *frames[32];
int frames_used;

void take_backtrace(hca_trap *)
{
    frames_used = backtrace(frames, 32);
}

/* A backtrace from within the device contains the storing function. */
TEST_F(hca_trap_signals, unwinding)
{
    then = take_backtrace;
    for (int pass = 0; pass < 4; ++pass) {
        bool found = false;

        hca_trap_init(pass > 1);
        site_unwind(page, 1);
        for (int i = 0; i < frames_used; ++i) {
            found |= (size_t)((char *)frames[i] - (char *)site_unwind) <= 5;
        }
        EXPECT_TRUE(found) << "pass " << pass;
        EXPECT_GT(frames_used, 6) << "pass " << pass;
    }
}

} /* namespace */
