/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Mutexes in memory that processes share: exclusion, and owners that die, are
 * stopped, or fork
 */
#include "test_hca_fabric.h"

#include "softhca/base/hca_mutex.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <thread>

class hca_mutex_test : public hca_fabric_test {
protected:
    enum { NUM_THREADS = 4, NUM_LOCKS = 200000 };

    struct shared {
        struct hca_mutex first, second;
        uint64_t count; /* guarded by `first` */
        std::atomic<uint32_t> num_broken, num_ready;
    };

    void SetUp() override
    {
        void *mem = mmap(NULL, sizeof(*m_shared), PROT_READ | PROT_WRITE,
                         MAP_SHARED | MAP_ANONYMOUS, -1, 0);

        hca_fabric_test::SetUp();
        ASSERT_NE(MAP_FAILED, mem);
        m_shared = new (mem) shared();
    }

    void TearDown() override
    {
        munmap(m_shared, sizeof(*m_shared));
        hca_fabric_test::TearDown();
    }

    static pid_t spawn(const std::function<void()> &body)
    {
        return hca_fabric_test::spawn([&] {
            hca_task_forked();
            body();
        });
    }

    /* Spawns a process that locks both mutexes and waits to be killed. */
    pid_t spawn_victim()
    {
        pid_t pid = spawn([this] {
            hca_mutex_lock(&m_shared->first);
            hca_mutex_lock(&m_shared->second);
            m_shared->num_ready++;
            pause();
        });

        EXPECT_TRUE(
            hca_eventually([this] { return m_shared->num_ready == 1; }));
        return pid;
    }

    /* Locks and unlocks the first mutex, and counts if it was broken. */
    void visit()
    {
        m_shared->num_broken += hca_mutex_lock(&m_shared->first);
        m_shared->count++;
        hca_mutex_unlock(&m_shared->first);
    }

    static void expect_exit(pid_t pid)
    {
        int status;

        ASSERT_EQ(pid, waitpid(pid, &status, 0));
        EXPECT_EQ(0, status);
    }

    static struct timespec soon()
    {
        struct timespec deadline;

        clock_gettime(CLOCK_MONOTONIC, &deadline);
        deadline.tv_nsec += QUIET_LOCK * 1000000;
        deadline.tv_sec += deadline.tv_nsec / 1000000000;
        deadline.tv_nsec %= 1000000000;
        return deadline;
    }

    bool is_locked(struct hca_mutex *mutex)
    {
        struct timespec deadline = soon();
        bool is_broken;

        return !hca_mutex_lock_until(mutex, &deadline, &is_broken);
    }

    struct shared *m_shared = nullptr;
};

TEST_F(hca_mutex_test, excludes_threads_of_two_processes)
{
    const auto all = [this] {
        std::vector<std::thread> threads;

        for (unsigned i = 0; i < NUM_THREADS; i++) {
            threads.emplace_back([this] {
                for (unsigned n = 0; n < NUM_LOCKS; n++) {
                    visit();
                }
            });
        }
        for (std::thread &thread : threads) {
            thread.join();
        }
    };
    pid_t pid = spawn(all);

    all();
    expect_exit(pid);
    EXPECT_EQ(2u * NUM_THREADS * NUM_LOCKS, m_shared->count);
    EXPECT_EQ(0u, m_shared->num_broken);
    EXPECT_EQ(0u, m_shared->first.word);
}

/* The first mutex is taken from a zombie, the second one after waitpid(). */
TEST_F(hca_mutex_test, killed_owner_of_two_is_replaced)
{
    pid_t pid = spawn_victim();

    EXPECT_TRUE(is_locked(&m_shared->first));
    kill(pid, SIGKILL);
    EXPECT_TRUE(hca_mutex_lock(&m_shared->first));
    hca_mutex_unlock(&m_shared->first);
    EXPECT_FALSE(hca_mutex_lock(&m_shared->first)) << "broken twice";
    hca_mutex_unlock(&m_shared->first);
    EXPECT_EQ(pid, waitpid(pid, NULL, 0));
    EXPECT_TRUE(hca_mutex_lock(&m_shared->second));
    hca_mutex_unlock(&m_shared->second);
}

/* Signals end each sleep before it is over. */
TEST_F(hca_mutex_test, killed_owner_is_replaced_under_signals)
{
    const struct itimerval often = {{0, 2000}, {0, 2000}}, never = {};
    struct sigaction action = {}, before;
    pid_t pid               = spawn_victim();
    int status;

    kill(pid, SIGKILL);
    ASSERT_EQ(pid, waitpid(pid, &status, 0));

    action.sa_handler = [](int) {};
    sigaction(SIGALRM, &action, &before);
    setitimer(ITIMER_REAL, &often, NULL);
    EXPECT_TRUE(hca_mutex_lock(&m_shared->first));
    EXPECT_TRUE(hca_mutex_lock(&m_shared->second));
    setitimer(ITIMER_REAL, &never, NULL);
    sigaction(SIGALRM, &before, NULL);
}

/* Neither a file nor a descriptor is needed to see a death. */
TEST_F(hca_mutex_test, killed_owner_is_replaced_without_descriptors)
{
    struct rlimit before, none;
    pid_t pid = spawn_victim();
    int status;

    kill(pid, SIGKILL);
    ASSERT_EQ(pid, waitpid(pid, &status, 0));

    getrlimit(RLIMIT_NOFILE, &before);
    none          = before;
    none.rlim_cur = 0;
    setrlimit(RLIMIT_NOFILE, &none);
    EXPECT_TRUE(hca_mutex_lock(&m_shared->first));
    EXPECT_TRUE(hca_mutex_lock(&m_shared->second));
    setrlimit(RLIMIT_NOFILE, &before);
}

TEST_F(hca_mutex_test, killed_owner_is_replaced_by_one_of_many)
{
    std::vector<std::thread> threads;
    pid_t pid = spawn_victim();

    for (unsigned i = 0; i < NUM_THREADS; i++) {
        threads.emplace_back([this] { visit(); });
    }
    EXPECT_TRUE(hca_eventually(
        [this] { return (m_shared->first.word & HCA_MUTEX_WAITED) != 0; }));
    kill(pid, SIGKILL);
    for (std::thread &thread : threads) {
        thread.join();
    }
    EXPECT_EQ(pid, waitpid(pid, NULL, 0));
    EXPECT_EQ((uint64_t)NUM_THREADS, m_shared->count);
    EXPECT_EQ(1u, m_shared->num_broken);
}

/* As if the owner was killed in its unlock, before the system call that wakes
 * the waiting thread. */
TEST_F(hca_mutex_test, owner_may_end_before_it_wakes_another)
{
    hca_mutex_lock(&m_shared->first);
    std::thread thread([this] { visit(); });
    EXPECT_TRUE(hca_eventually(
        [this] { return (m_shared->first.word & HCA_MUTEX_WAITED) != 0; }));
    m_shared->first.word = 0;
    thread.join();
    EXPECT_EQ(1u, m_shared->count);
    EXPECT_EQ(0u, m_shared->num_broken);
}

TEST_F(hca_mutex_test, stopped_owner_is_waited_for)
{
    pid_t pid = spawn([this] {
        hca_mutex_lock(&m_shared->first);
        raise(SIGSTOP);
        hca_mutex_unlock(&m_shared->first);
    });

    ASSERT_EQ(pid, waitpid(pid, NULL, WUNTRACED));
    std::thread thread([this] { visit(); });
    EXPECT_TRUE(is_locked(&m_shared->first));
    EXPECT_EQ(0u, m_shared->count);
    kill(pid, SIGCONT);
    thread.join();
    expect_exit(pid);
    EXPECT_EQ(1u, m_shared->count);
    EXPECT_EQ(0u, m_shared->num_broken);
}

/* The process of the thread lives. */
TEST_F(hca_mutex_test, ended_thread_is_replaced)
{
    std::thread([this] { hca_mutex_lock(&m_shared->first); }).join();
    EXPECT_TRUE(hca_mutex_lock(&m_shared->first));
    hca_mutex_unlock(&m_shared->first);
}

/* exec() ends all threads of the program; the first one's number and start
 * time are those of the next program's. */
TEST_F(hca_mutex_test, owner_of_another_program_is_replaced)
{
    int program[2];
    char byte;

    ASSERT_EQ(0, pipe2(program, O_CLOEXEC));
    pid_t pid = spawn([this] {
        hca_mutex_lock(&m_shared->first);
        std::thread([this] {
            hca_mutex_lock(&m_shared->second);
            execl("/bin/sleep", "sleep", "1000", NULL);
        }).join();
    });

    close(program[1]);
    EXPECT_EQ(0, read(program[0], &byte, 1)) << "closed by exec()";
    close(program[0]);
    for (struct hca_mutex *mutex : {&m_shared->first, &m_shared->second}) {
        EXPECT_TRUE(hca_eventually([=] { return hca_mutex_try(mutex); }));
    }
    kill(pid, SIGKILL);
    EXPECT_EQ(pid, waitpid(pid, NULL, 0));
}

/* The number of a dead owner may be another thread's by now: here this
 * one's. */
TEST_F(hca_mutex_test, stranger_with_the_number_is_not_the_owner)
{
    m_shared->first.word = hca_task_self() + (1ull << 32);
    EXPECT_TRUE(hca_mutex_lock(&m_shared->first));
    hca_mutex_unlock(&m_shared->first);

    m_shared->first.word = (uint32_t)hca_task_self();
    EXPECT_TRUE(is_locked(&m_shared->first)) << "start unknown: may live";
}

TEST_F(hca_mutex_test, try_takes_what_is_free_or_broken)
{
    pid_t pid = spawn_victim();

    EXPECT_FALSE(hca_mutex_try(&m_shared->first));
    kill(pid, SIGKILL);
    EXPECT_EQ(pid, waitpid(pid, NULL, 0));
    EXPECT_TRUE(hca_mutex_try(&m_shared->first));
    hca_mutex_unlock(&m_shared->first);
    EXPECT_TRUE(hca_mutex_try(&m_shared->first));
    hca_mutex_unlock(&m_shared->first);
}

/* The child owns none of its parent's mutexes. */
TEST_F(hca_mutex_test, forked_child_is_another_owner)
{
    run([this] {
        attach();
        uint64_t id = hca_task_self();

        hca_mutex_lock(&m_shared->first);
        run([this, id] {
            EXPECT_NE(id, hca_task_self());
            EXPECT_EQ((uint32_t)getpid(), (uint32_t)hca_task_self());
            EXPECT_FALSE(hca_mutex_try(&m_shared->first));
            hca_mutex_lock(&m_shared->second); /* and ends */
        });
        EXPECT_TRUE(hca_mutex_lock(&m_shared->second));
        EXPECT_EQ(id, m_shared->first.word);
        hca_fabric_detach();
    });
}
