/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The fabric below the device: run-time folder, arena, numbered objects,
 * channels, timers, and what is left of a process that is killed. Each test
 * that needs a fresh fabric runs its body in a forked child.
 */
#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>
#include <stdatomic.h>

extern "C" {
#include "softhca/fabric/hca_dev.h"
#include "softhca/fabric/hca_log.h"
#include "softhca/fabric/hca_proc.h"
}

#include "no_descriptors.h"

#include <dirent.h>
#include <endian.h>
#include <functional>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <string>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

class HcaFabric : public testing::Test {
protected:
    void SetUp() override
    {
        char dir[] = "/dev/shm/dcx-test-XXXXXX";

        ASSERT_NE(nullptr, mkdtemp(dir));
        m_dir = dir;
        setenv("SOFTHCA_DIR", (m_dir + "/run").c_str(), 1);
    }

    void TearDown() override
    {
        EXPECT_TRUE(entries(m_dir).empty()) << "left in the run-time folder";
        rmdir(m_dir.c_str());
    }

    static std::vector<std::string> entries(const std::string &path)
    {
        std::vector<std::string> names;
        DIR *dir = opendir(path.c_str());

        for (struct dirent *e; dir && (e = readdir(dir));) {
            if (e->d_name[0] != '.') {
                names.push_back(e->d_name);
            }
        }
        if (dir) {
            closedir(dir);
        }
        return names;
    }

    static pid_t spawn(const std::function<void()> &body)
    {
        pid_t pid = fork();

        if (pid == 0) {
            body();
            _exit(testing::Test::HasFailure());
        }
        return pid;
    }

    /* Runs body as a process of its own; its failures are this test's. */
    static void run(const std::function<void()> &body)
    {
        int status;
        pid_t pid = spawn(body);

        ASSERT_EQ(pid, waitpid(pid, &status, 0));
        ASSERT_TRUE(WIFEXITED(status));
        ASSERT_EQ(0, WEXITSTATUS(status));
    }

    static void attach()
    {
        ASSERT_EQ(0, hca_fabric_attach());
        ASSERT_EQ(0, hca_helper_start());
    }

    std::string m_dir;
};

TEST_F(HcaFabric, AttachesOnceAndLeavesNothing)
{
    run([] {
        attach();
        EXPECT_EQ(0, hca_fabric_attach());
        EXPECT_NE(0u, hca_self);
        hca_fabric_detach();
        hca_fabric_detach();
    });
}

TEST_F(HcaFabric, RefusesAFolderThatOthersMayEnter)
{
    std::string run_dir = m_dir + "/run";

    ASSERT_EQ(0, mkdir(run_dir.c_str(), 0755));
    run([] {
        testing::internal::CaptureStderr();
        EXPECT_EQ(-EPERM, hca_fabric_attach());
        EXPECT_NE(std::string::npos,
                  testing::internal::GetCapturedStderr().find("chmod 700"));
    });
    rmdir(run_dir.c_str());
}

TEST_F(HcaFabric, RefusesAWrongName)
{
    setenv("SOFTHCA_FABRIC", "a/b", 1);
    run([] {
        testing::internal::CaptureStderr();
        EXPECT_EQ(-EINVAL, hca_fabric_attach());
        EXPECT_NE(std::string::npos, testing::internal::GetCapturedStderr()
                                             .find("SOFTHCA_FABRIC=a/b"));
    });
    unsetenv("SOFTHCA_FABRIC");
}

TEST_F(HcaFabric, ArenaGivesBackWhatItGave)
{
    run([] {
        std::vector<char*> blocks;

        attach();
        for (size_t size = 1; size < (16u << 20); size = size * 3 + 4096) {
            char *p = (char*)hca_arena_alloc(size);
            ASSERT_NE(nullptr, p);
            EXPECT_EQ(0u, (uintptr_t)p % 4096);
            EXPECT_EQ(0, p[0] | p[size - 1]) << "not zeroed";
            memset(p, 0xa5, size);
            EXPECT_TRUE(hca_arena_contains(p, size));
            EXPECT_FALSE(hca_arena_contains(p, (size + 4096) & ~4095ul) &&
                         hca_arena_contains(p, size + 8192));
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

TEST_F(HcaFabric, StaleNumbersFindNothing)
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
    return *(const uint64_t*)record & 1;
}

TEST_F(HcaFabric, ChannelKeepsOrderAndCanBePurged)
{
    run([] {
        int fd;
        int64_t chan;
        uint64_t record;
        uint32_t count = 0;

        attach();
        chan = hca_chan_create(0, &fd);
        ASSERT_GT(chan, 0);
        for (record = 0; record < 10; record++) {
            ASSERT_EQ(0, hca_chan_write(chan, &record, sizeof(record),
                                        &count));
        }
        EXPECT_EQ(10u, count);
        EXPECT_EQ(5u, hca_chan_purge(chan, sizeof(record), is_odd, NULL));
        for (uint64_t i = 0; i < 10; i += 2) {
            ASSERT_EQ((ssize_t)sizeof(record),
                      read(fd, &record, sizeof(record)));
            EXPECT_EQ(i, record);
        }
        hca_chan_destroy(chan);
        EXPECT_EQ(-ESRCH, hca_chan_write(chan, &record, sizeof(record),
                                         &count));
        EXPECT_EQ(10u, count);
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

TEST_F(HcaFabric, TimersRunInOrderAndNotAfterCancel)
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
        while (timer_count < 3) {
            poll(NULL, 0, 1);
        }
        for (int i = 0; i < 3; i++) {
            EXPECT_GE(timer_log[i], now + (i + 1) * 1000000ull);
        }
        hca_fabric_detach();
    });
}

/* A child that holds an object, arena memory and its lock, then is killed. */
TEST_F(HcaFabric, KilledProcessLeavesNothing)
{
    run([] {
        int ready[2];
        uint32_t num = 0;
        pid_t pid;

        ASSERT_EQ(0, pipe(ready));
        pid = fork();
        if (pid == 0) {
            attach();
            hca_arena_alloc(1 << 20);
            void *obj = hca_obj_alloc(HCA_KIND_CQ, 0);
            num       = hca_obj_publish(HCA_KIND_CQ, obj);
            hca_obj_lock(HCA_KIND_CQ, num);
            EXPECT_EQ((ssize_t)sizeof(num), write(ready[1], &num, sizeof(num)));
            pause();
        }
        ASSERT_EQ((ssize_t)sizeof(num), read(ready[0], &num, sizeof(num)));
        attach();
        struct hca_obj *obj =
                (struct hca_obj*)hca_obj_peek(HCA_KIND_CQ, num);
        ASSERT_NE(nullptr, obj);
        unsigned slot = obj->proc;
        EXPECT_TRUE(hca_proc_alive(slot));

        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
        while (hca_proc_alive(slot)) {
            poll(NULL, 0, 1); /* the helper sees the pidfd */
        }
        while (hca_fabric->procs[slot].state != HCA_PROC_FREE) {
            poll(NULL, 0, 1);
        }
        EXPECT_EQ(nullptr, hca_obj_lock(HCA_KIND_CQ, num));
        for (unsigned i = 0; i < HCA_MAX_CHUNKS; i++) {
            EXPECT_NE(slot + 1, hca_fabric->chunk_owner[i]);
        }
        hca_fabric_detach();
    });
}

/* All processes are killed: the next one finds a clean house. */
TEST_F(HcaFabric, NextRunSweepsAfterAllWereKilled)
{
    pid_t pid;
    int status;

    pid = spawn([] {
        attach();
        raise(SIGKILL);
    });
    ASSERT_EQ(pid, waitpid(pid, &status, 0));
    EXPECT_TRUE(WIFSIGNALED(status));
    EXPECT_EQ(1u, entries(m_dir + "/run").size());
    run([] {
        attach();
        EXPECT_EQ(1u, hca_self) << "a new fabric";
        hca_fabric_detach();
    });
}

TEST_F(HcaFabric, ForkedChildIsNotAttached)
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

/* ... but may attach for itself, and is then another process. */
TEST_F(HcaFabric, ForkedChildMayAttach)
{
    run([] {
        attach();
        void *parents  = hca_arena_alloc(4096);
        unsigned slot  = hca_self;
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

/* A process that is to be killed: attached, with memory and an object. */
static uint32_t run_victim(pid_t *pid)
{
    uint32_t num = 0;
    int ready[2];

    EXPECT_EQ(0, pipe(ready));
    *pid = fork();
    if (*pid == 0) {
        EXPECT_EQ(0, hca_fabric_attach());
        hca_arena_alloc(8 << 20);
        num = hca_obj_publish(HCA_KIND_CQ, hca_obj_alloc(HCA_KIND_CQ, 0));
        EXPECT_EQ((ssize_t)sizeof(num), write(ready[1], &num, sizeof(num)));
        pause();
    }
    EXPECT_EQ((ssize_t)sizeof(num), read(ready[0], &num, sizeof(num)));
    close(ready[0]);
    close(ready[1]);
    return num;
}

static void kill_and_wait(pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

static std::atomic<bool> helper_works;

static void work_fn(struct hca_timer *)
{
    helper_works = true;
    poll(NULL, 0, 20);
    helper_works = false;
}

/* The child has no helper to release what the parent's held. */
TEST_F(HcaFabric, ForkWaitsForTheHelper)
{
    run([] {
        struct hca_timer timer = {};
        int status;
        pid_t pid;

        attach();
        timer.fn = work_fn;
        hca_timer_arm(&timer, hca_time_ns());
        while (!helper_works) {
            sched_yield();
        }
        pid = fork();
        if (pid == 0) {
            _exit(helper_works);
        }
        waitpid(pid, &status, 0);
        EXPECT_EQ(0, status);
        hca_timer_cancel(&timer);
        hca_fabric_detach();
    });
}

/* It died before anyone asked: the answer itself takes everything back. */
TEST_F(HcaFabric, FirstQuestionAfterTheDeath)
{
    run([] {
        struct hca_obj *obj;
        uint32_t num;
        pid_t pid;

        attach();
        num = run_victim(&pid);
        obj = (struct hca_obj*)hca_obj_peek(HCA_KIND_CQ, num);
        ASSERT_NE(nullptr, obj);
        kill_and_wait(pid);
        EXPECT_FALSE(hca_proc_alive(obj->proc));
        EXPECT_EQ(nullptr, hca_obj_peek(HCA_KIND_CQ, num));
        hca_fabric_detach();
    });
}

/* Several processes see one death at once. What it leaves is given back once:
 * memory that another has taken meanwhile keeps its contents. */
TEST_F(HcaFabric, WatchersTakeBackOnce)
{
    run([] {
        enum { WATCHERS = 4, BLOCKS = 8 };
        attach();
        for (int round = 0; round < 10; round++) {
            char *blocks[BLOCKS];
            pid_t victim, watchers[WATCHERS];
            uint32_t num = run_victim(&victim);
            unsigned slot =
                    ((struct hca_obj*)hca_obj_peek(HCA_KIND_CQ, num))->proc;
            int ready[2];
            char byte;

            ASSERT_EQ(0, pipe(ready));
            for (pid_t &pid : watchers) {
                pid = fork();
                if (pid == 0) {
                    attach();
                    hca_proc_alive(slot);
                    EXPECT_EQ(1, write(ready[1], "", 1));
                    pause();
                }
            }
            for (int i = 0; i < WATCHERS; i++) {
                ASSERT_EQ(1, read(ready[0], &byte, 1));
            }
            kill_and_wait(victim);
            while (hca_obj_peek(HCA_KIND_CQ, num) != nullptr) {
                sched_yield();
            }
            for (char *&block : blocks) {
                block = (char*)hca_arena_alloc(1 << 20);
                memset(block, 0x5a, 1 << 20);
            }
            for (pid_t pid : watchers) {
                kill_and_wait(pid);
            }
            for (char *block : blocks) {
                EXPECT_EQ(nullptr, memchr(block, 0, 1 << 20));
                hca_arena_free(block);
            }
            close(ready[0]);
            close(ready[1]);
        }
        hca_fabric_detach();
    });
}

/* The pid of a dead process may be another's by now. */
TEST_F(HcaFabric, StrangerWithThePidIsNotTheProcess)
{
    run([] {
        pid_t pid;
        unsigned slot;
        uint32_t num;

        attach();
        num  = run_victim(&pid);
        slot = ((struct hca_obj*)hca_obj_peek(HCA_KIND_CQ, num))->proc;
        hca_fabric->procs[slot].start_time++;
        EXPECT_FALSE(hca_proc_alive(slot));
        EXPECT_EQ(-ESRCH, hca_proc_open_fd(slot, 0));
        kill_and_wait(pid);
        hca_fabric_detach();
    });
}

/* It cannot be asked about a peer, which is no reason to bury it. */
TEST_F(HcaFabric, ProcessWithoutDescriptorsTakesBackNobody)
{
    run([] {
        std::string log;
        struct hca_obj *obj;
        unsigned slot;
        uint32_t num;
        pid_t pid;

        attach();
        num = run_victim(&pid);
        obj = (struct hca_obj*)hca_obj_peek(HCA_KIND_CQ, num);
        ASSERT_NE(nullptr, obj);
        slot = obj->proc;
        testing::internal::CaptureStderr();
        for (unsigned left = 0; left < 3; left++) {
            no_descriptors fill(left);
            EXPECT_TRUE(hca_proc_alive(slot)) << left << " descriptors left";
            EXPECT_TRUE(hca_proc_alive(slot));
            EXPECT_NE(-ESRCH, hca_proc_open_fd(slot, STDIN_FILENO));
        }
        log = testing::internal::GetCapturedStderr();
        EXPECT_EQ(obj, hca_obj_peek(HCA_KIND_CQ, num));
        EXPECT_NE(std::string::npos, log.find("will go unnoticed")) << log;
        EXPECT_EQ(log.find('\n'), log.rfind('\n')) << "not once: " << log;

        kill_and_wait(pid);
        while (hca_proc_alive(slot)) {
            poll(NULL, 0, 1); /* there was a descriptor in the end */
        }
        hca_fabric_detach();
    });
}

/* A death that is certain needs no descriptor. */
TEST_F(HcaFabric, ProcessWithoutDescriptorsSeesADeath)
{
    run([] {
        uint32_t num;
        unsigned slot;
        pid_t pid;

        attach();
        num  = run_victim(&pid);
        slot = ((struct hca_obj*)hca_obj_peek(HCA_KIND_CQ, num))->proc;
        kill_and_wait(pid);
        {
            no_descriptors fill(0);
            EXPECT_FALSE(hca_proc_alive(slot));
        }
        EXPECT_EQ(nullptr, hca_obj_peek(HCA_KIND_CQ, num));
        hca_fabric_detach();
    });
}

/* A copy that was begun goes to the process that was meant, or nowhere. */
TEST_F(HcaFabric, CopyDoesNotGoToTheNextOwnerOfASlot)
{
    run([] {
        uint64_t word       = 1;
        struct iovec local  = {&word, sizeof(word)}, remote = local;
        struct hca_owner first;
        pid_t pid, next;

        attach();
        first = hca_owner(((struct hca_obj*)hca_obj_peek(
                HCA_KIND_CQ, run_victim(&pid)))->proc);
        EXPECT_EQ(0, hca_mem_write(first, &local, 1, &remote, 1));
        kill_and_wait(pid);
        EXPECT_FALSE(hca_proc_alive(first.proc));
        EXPECT_EQ(first.proc, ((struct hca_obj*)hca_obj_peek(
                HCA_KIND_CQ, run_victim(&next)))->proc);
        EXPECT_EQ(-ESRCH, hca_mem_write(first, &local, 1, &remote, 1));
        EXPECT_EQ(0, hca_mem_write(hca_owner(first.proc), &local, 1, &remote,
                                   1));
        kill_and_wait(next);
        hca_fabric_detach();
    });
}

/* A CQ of 4 entries and the receives of a QP that lead there */
struct queues {
    struct hca_cq *cq;
    struct hca_qp *qp;
    uint8_t       *ring;
    uint32_t      *dbrec; /* of the CQ, then of the QP */
};

static queues make_queues()
{
    queues q;

    q.ring  = (uint8_t*)hca_arena_alloc(8192);
    q.dbrec = (uint32_t*)(q.ring + 4096);
    for (unsigned i = 0; i < 4; i++) {
        q.ring[i * 64 + 63] = MLX5_CQE_INVALID << 4;
    }
    q.cq               = (struct hca_cq*)hca_obj_alloc(HCA_KIND_CQ, 0);
    q.cq->ring         = {hca_off(q.ring), 2, 6};
    q.cq->dbrec        = hca_off(q.dbrec);
    q.qp               = (struct hca_qp*)hca_obj_alloc(HCA_KIND_QP, 0);
    q.qp->rq           = {hca_off(q.ring + 2048), 2, 4};
    q.qp->dbrec        = hca_off(q.dbrec + 2);
    q.qp->rcqn         = hca_obj_publish(HCA_KIND_CQ, q.cq);
    hca_obj_publish(HCA_KIND_QP, q.qp);
    return q;
}

/* Runs body in a process that attaches and is killed. */
static void run_and_kill(const std::function<void()> &body)
{
    pid_t pid = fork();

    if (pid == 0) {
        hca_fabric_attach();
        body();
        raise(SIGKILL);
    }
    waitpid(pid, NULL, 0);
}

/* Its writer was killed before it counted the entry, which the program may
 * have taken already. */
TEST_F(HcaFabric, EntryOfAKilledWriterCounts)
{
    run([] {
        attach();
        queues q     = make_queues();
        uint32_t num = q.cq->obj.num;

        for (unsigned i = 0; i < 6; i++) {
            run_and_kill([&] {
                hca_obj_lock(HCA_KIND_CQ, num);
                q.ring[(i % 4) * 64 + 63] = (MLX5_CQE_REQ << 4) | (i / 4);
            });
            ASSERT_EQ(q.cq, hca_obj_lock(HCA_KIND_CQ, num));
            EXPECT_EQ(i + 1, q.cq->pi);
            hca_obj_unlock(q.cq);
        }
        run_and_kill([&] { hca_obj_lock(HCA_KIND_CQ, num); });
        ASSERT_EQ(q.cq, hca_obj_lock(HCA_KIND_CQ, num));
        EXPECT_EQ(6u, q.cq->pi) << "it had written nothing";
        hca_obj_unlock(q.cq);
        hca_fabric_detach();
    });
}

/* Who put a QP in error was killed before it flushed the receives. */
TEST_F(HcaFabric, ReceivesAreFlushedAfterADeath)
{
    run([] {
        attach();
        queues q     = make_queues();
        uint32_t num = q.qp->obj.num;

        q.dbrec[2] = htobe32(3);
        run_and_kill([&] {
            hca_obj_lock(HCA_KIND_QP, num);
            q.qp->state = IBV_QPS_ERR;
        });
        ASSERT_EQ(q.qp, hca_obj_lock(HCA_KIND_QP, num));
        EXPECT_EQ(3u, q.cq->pi);
        EXPECT_EQ(3u, q.qp->resp.ci);
        EXPECT_EQ(MLX5_CQE_RESP_ERR, q.ring[63] >> 4);
        hca_obj_unlock(q.qp);
        hca_fabric_detach();
    });
}
