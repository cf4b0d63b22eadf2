/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The fabric below the device: run-time folder, arena, numbered objects, event
 * channels, timers, forked children, failed starts. test_hca_fabric_death.cc
 * tests it with killed and stopped processes.
 */
#include "asan.h"
#include "test_hca_fabric.h"

#include <atomic>
#include <fcntl.h>
#include <fstream>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

TEST_F(hca_fabric_test, attaches_once_and_leaves_nothing)
{
    run([] {
        attach();
        EXPECT_EQ(0, hca_fabric_attach(hca_nic_kinds, nullptr));
        EXPECT_NE(0u, hca_self);
        hca_fabric_detach();
        hca_fabric_detach();
    });
}

TEST_F(hca_fabric_test, refuses_a_folder_that_others_may_enter)
{
    std::string run_dir = m_dir + "/run";

    ASSERT_EQ(0, mkdir(run_dir.c_str(), 0755));
    run([] {
        testing::internal::CaptureStderr();
        EXPECT_EQ(-EPERM, hca_fabric_attach(hca_nic_kinds, nullptr));
        EXPECT_NE(std::string::npos,
                  testing::internal::GetCapturedStderr().find("chmod 700"));
    });
    rmdir(run_dir.c_str());
}

TEST_F(hca_fabric_test, refuses_a_wrong_name)
{
    setenv("SOFTHCA_FABRIC", "a/b", 1);
    run([] {
        testing::internal::CaptureStderr();
        EXPECT_EQ(-EINVAL, hca_fabric_attach(hca_nic_kinds, nullptr));
        EXPECT_NE(
            std::string::npos,
            testing::internal::GetCapturedStderr().find("SOFTHCA_FABRIC=a/b"));
    });
    unsetenv("SOFTHCA_FABRIC");
}

TEST_F(hca_fabric_test, refuses_that_of_another_build)
{
    run([] {
        attach();
        hca_fabric->source++;
        run([] {
            testing::internal::CaptureStderr();
            EXPECT_EQ(-EPROTO, hca_fabric_attach(hca_nic_kinds, nullptr));
            EXPECT_NE(std::string::npos,
                      testing::internal::GetCapturedStderr().find(
                          "from another build of softhca"));
        });
        hca_fabric->source--;
        run([] {
            EXPECT_EQ(0, hca_fabric_attach(hca_nic_kinds, nullptr));
            hca_fabric_detach();
        });
        hca_fabric_detach();
    });
}

TEST_F(hca_fabric_test, arena_gives_back_what_it_gave)
{
    run([] {
        std::vector<char *> blocks;

        attach();
        for (size_t size = 1; size < (16u << 20); size = size * 3 + 4096) {
            char *p = (char *)hca_arena_alloc(size);
            ASSERT_NE(nullptr, p);
            EXPECT_EQ(0u, (uintptr_t)p % 4096);
            EXPECT_EQ(0, p[0] | p[size - 1]) << "not zeroed";
            memset(p, 0xa5, size);
            EXPECT_TRUE(hca_arena_contains(p, size));
            EXPECT_FALSE(hca_arena_contains(p, size + 8192));
            blocks.push_back(p);
        }
        for (size_t i = 0; i < blocks.size(); i += 2) {
            hca_arena_free(blocks[i]);
            EXPECT_FALSE(hca_arena_contains(blocks[i], 1));
        }
        for (size_t i = 1; i < blocks.size(); i += 2) {
            hca_arena_free(blocks[i]);
        }
        for (unsigned i = 0; i < HCA_MAX_CHUNKS; i++) {
            EXPECT_EQ(0, hca_fabric->chunk_owner[i]);
        }
        hca_fabric_detach();
    });
}

TEST_F(hca_fabric_test, arena_keeps_nothing_that_it_cannot_fill)
{
    run([] {
        attach();
        char *p = (char *)hca_arena_alloc(4096);
        ASSERT_NE(nullptr, p);
        hca_arena_free(p);
        ASSERT_EQ(0, munmap(p, 4096)); /* the next one would be there */
        if ((madvise(p, 4096, MADV_POPULATE_WRITE) == 0) || (errno != EINVAL)) {
            EXPECT_EQ(nullptr, hca_arena_alloc(4096));
            EXPECT_EQ(ENOMEM, errno);
        } /* EINVAL: Linux before 5.14 does not notice */
        for (unsigned i = 0; i < HCA_MAX_CHUNKS; i++) {
            EXPECT_EQ(0, hca_fabric->chunk_owner[i]);
        }
        hca_fabric_detach();
    });
}

TEST_F(hca_fabric_test, stale_numbers_find_nothing)
{
    run([] {
        attach();
        for (unsigned kind = 0; kind < HCA_NUM_KINDS; kind++) {
            void *obj = hca_obj_alloc((enum hca_kind)kind, 0);
            uint32_t num, again;

            ASSERT_NE(nullptr, obj);
            num = hca_obj_publish((enum hca_kind)kind, obj);
            EXPECT_LT(num, 1u << 24);
            EXPECT_EQ(obj, hca_obj_peek((enum hca_kind)kind, num));
            ASSERT_EQ(obj, hca_obj_lock((enum hca_kind)kind, num));
            hca_obj_unlock(obj);
            hca_obj_free((enum hca_kind)kind, obj);
            EXPECT_EQ(nullptr, hca_obj_lock((enum hca_kind)kind, num));
            obj   = hca_obj_alloc((enum hca_kind)kind, 0);
            again = hca_obj_publish((enum hca_kind)kind, obj);
            EXPECT_NE(num, again);
            EXPECT_EQ(nullptr, hca_obj_peek((enum hca_kind)kind, num));
            EXPECT_EQ(nullptr, hca_obj_peek((enum hca_kind)kind, 0));
        }
        hca_fabric_detach();
    });
}

static bool is_odd(const void *record, void *arg)
{
    (void)arg;
    return *(const uint64_t *)record & 1;
}

TEST_F(hca_fabric_test, channel_keeps_order_and_can_be_purged)
{
    run([] {
        int fd;
        int64_t chan;
        uint64_t record;
        uint32_t count = 0;

        attach();
        chan = hca_chan_create(0, false, &fd);
        ASSERT_GT(chan, 0);
        for (record = 0; record < 10; record++) {
            ASSERT_EQ(0, hca_chan_write(chan, &record, sizeof(record), &count));
        }
        EXPECT_EQ(10u, count);
        EXPECT_EQ(0,
                  hca_chan_purge(chan, sizeof(record), is_odd, NULL, &count));
        EXPECT_EQ(5u, count);
        for (uint64_t i = 0; i < 10; i += 2) {
            ASSERT_EQ((ssize_t)sizeof(record),
                      read(fd, &record, sizeof(record)));
            EXPECT_EQ(i, record);
        }
        hca_chan_destroy(chan);
        EXPECT_EQ(-ESRCH,
                  hca_chan_write(chan, &record, sizeof(record), &count));
        EXPECT_EQ(5u, count);
        close(fd);
        hca_fabric_detach();
    });
}

static uint64_t timer_log[3];
static std::atomic<int> timer_count;

static void timer_fn(struct hca_timer *timer)
{
    (void)timer;
    timer_log[timer_count] = hca_time_ns();
    timer_count++;
}

TEST_F(hca_fabric_test, timers_run_in_order_and_not_after_cancel)
{
    run([] {
        struct hca_timer timers[4] = {};
        uint64_t now;

        attach();
        now = hca_time_ns();
        for (int i = 0; i < 4; i++) {
            timers[i].fn = timer_fn;
        }
        hca_timer_arm(&timers[2], now + 3000000);
        hca_timer_arm(&timers[0], now + 1000000);
        hca_timer_arm(&timers[3], now + 2500000);
        hca_timer_arm(&timers[1], now + 2000000);
        hca_timer_cancel(&timers[3]);
        ASSERT_TRUE(hca_eventually([] { return timer_count >= 3; }));
        for (int i = 0; i < 3; i++) {
            EXPECT_GE(timer_log[i], now + (i + 1) * 1000000ull);
        }
        hca_fabric_detach();
    });
}

TEST_F(hca_fabric_test, forked_child_is_not_attached)
{
    run([] {
        attach();
        void *p = hca_arena_alloc(4096);
        run([p] {
            EXPECT_FALSE(hca_fabric_is_attached());
            hca_arena_free(p);
            hca_fabric_detach();
        });
        EXPECT_TRUE(hca_arena_contains(p, 4096));
        hca_fabric_detach();
    });
}

/* A forked child may attach, and then counts as another process. */
TEST_F(hca_fabric_test, forked_child_may_attach)
{
    run([] {
        attach();
        void *parents = hca_arena_alloc(4096);
        unsigned slot = hca_self;
        run([slot] {
            attach();
            EXPECT_NE(slot, hca_self);
            EXPECT_TRUE(hca_proc_alive(slot));
            void *p = hca_arena_alloc(4096);
            EXPECT_NE(nullptr, p);
            hca_fabric_detach();
        });
        EXPECT_TRUE(hca_arena_contains(parents, 4096));
        EXPECT_EQ((uint32_t)HCA_PROC_ALIVE, hca_fabric->procs[slot].state);
        hca_fabric_detach();
    });
}

static size_t num_descriptors()
{
    size_t num = 0;

    for (int fd = 0; fd < 128; fd++) {
        num += fcntl(fd, F_GETFD) >= 0;
    }
    return num;
}

/* The helper's thread gets no address space for its stack. */
TEST_F(hca_fabric_test, helper_that_cannot_start_keeps_no_descriptor)
{
    if (asan_is_on()) {
        GTEST_SKIP() << "AddressSanitizer ends a process without memory";
    }
    run([] {
        struct rlimit limit, none = {1, RLIM_INFINITY};
        size_t before;
        int ret;

        ASSERT_EQ(0, hca_fabric_attach(hca_nic_kinds, nullptr));
        before = num_descriptors();
        ASSERT_EQ(0, getrlimit(RLIMIT_AS, &limit));
        ASSERT_EQ(0, setrlimit(RLIMIT_AS, &none));
        ret = hca_helper_start();
        ASSERT_EQ(0, setrlimit(RLIMIT_AS, &limit));
        EXPECT_EQ(-EAGAIN, ret);
        EXPECT_EQ(0, hca_fabric->procs[hca_self].asks_fd);
        EXPECT_EQ(before, num_descriptors());
        EXPECT_EQ(0, hca_helper_start());
        EXPECT_EQ(before + 4, num_descriptors());
        hca_fabric_detach();
    });
}

/* A limit of 4 GiB is too low, as the segment has more than its arena. */
TEST_F(hca_fabric_test, limit_of_files_is_named)
{
    run([] {
        const struct rlimit limit = {4ul << 30, RLIM_INFINITY};

        ASSERT_EQ(0, setrlimit(RLIMIT_FSIZE, &limit));
        testing::internal::CaptureStderr();
        EXPECT_EQ(-EFBIG, hca_fabric_attach(hca_nic_kinds, nullptr));
        EXPECT_NE(std::string::npos,
                  testing::internal::GetCapturedStderr().find("below 5 GiB"));
    });
}

TEST_F(hca_fabric_test, segment_that_cannot_be_mapped)
{
    run([] {
        int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

        testing::internal::CaptureStderr();
        EXPECT_EQ(-EACCES, hca_segment_map(fd));
        EXPECT_EQ(std::string::npos,
                  testing::internal::GetCapturedStderr().find("ulimit"));
    });
}

static int fill_fails(const char *)
{
    return -EIO;
}

TEST_F(hca_fabric_test, failed_attach_keeps_neither_memory_nor_descriptors)
{
    run([] {
        size_t before = num_descriptors();

        EXPECT_EQ(-EIO, hca_fabric_attach(hca_nic_kinds, fill_fails));
        EXPECT_EQ(nullptr, hca_fabric);
        EXPECT_EQ(before, num_descriptors());
        EXPECT_FALSE(hca_fabric_is_attached());
        hca_fabric_detach();
    });
}

/* Processes open an XRC domain at the same moment. */
TEST_F(hca_fabric_test, domain_of_an_inode_has_one_number)
{
    enum { OPENERS = 4, ROUNDS = 300 };
    struct shared {
        std::atomic<uint32_t> num_ready, num_open[ROUNDS];
        uint32_t number[ROUNDS][OPENERS];
    };
    auto *shared = (struct shared *)mmap(NULL, sizeof(struct shared),
                                         PROT_READ | PROT_WRITE,
                                         MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    run([shared] {
        struct hca_xrcd_spec spec = {0, 1, 0, O_CREAT};
        struct hca_xrcd *xrcd;
        int status;

        attach();
        for (unsigned i = 0; i < OPENERS; i++) {
            if (fork() == 0) {
                attach();
                for (unsigned round = 0; round < ROUNDS; round++) {
                    shared->num_ready++;
                    while (shared->num_ready < (round + 1) * OPENERS) {
                        sched_yield();
                    }
                    spec.st_ino = round + 1;
                    EXPECT_EQ(0, hca_xrcd_open(&spec, &xrcd));
                    shared->number[round][i] = xrcd->obj.user_handle;
                    shared->num_open[round]++;
                    while (shared->num_open[round] < OPENERS) {
                        sched_yield();
                    }
                    hca_obj_free(HCA_KIND_XRCD, xrcd);
                }
                hca_fabric_detach();
                _exit(HasFailure());
            }
        }
        for (unsigned i = 0; i < OPENERS; i++) {
            wait(&status);
            EXPECT_EQ(0, status);
        }
        for (unsigned round = 0; round < ROUNDS; round++) {
            for (unsigned i = 1; i < OPENERS; i++) {
                EXPECT_EQ(shared->number[round][0], shared->number[round][i]);
            }
        }
        hca_fabric_detach();
    });
    munmap(shared, sizeof(*shared));
}

static std::atomic<bool> helper_works, forks;

/* Returns true if the first thread waits in a system call. */
static bool main_thread_waits()
{
    std::ifstream stat("/proc/self/stat");
    std::string line;

    std::getline(stat, line); /* PID (NAME) STATE ... */
    return line[line.rfind(')') + 2] == 'S';
}

/* Runs until fork() waits for it or, if it does not, until the caller waits for
 * its child. */
static void work_fn(struct hca_timer *)
{
    helper_works = true;
    EXPECT_TRUE(hca_eventually([] { return forks && main_thread_waits(); }));
    helper_works = false;
}

/* A child that is forked while the helper holds a lock would never get it. */
TEST_F(hca_fabric_test, fork_waits_for_the_helper)
{
    run([] {
        struct hca_timer timer = {};
        int status;
        pid_t pid;

        attach();
        timer.fn = work_fn;
        hca_timer_arm(&timer, hca_time_ns());
        ASSERT_TRUE(hca_eventually([] { return helper_works.load(); }));
        forks = true;
        pid   = fork();
        if (pid == 0) {
            _exit(helper_works);
        }
        waitpid(pid, &status, 0);
        EXPECT_EQ(0, status);
        hca_timer_cancel(&timer);
        hca_fabric_detach();
    });
}
