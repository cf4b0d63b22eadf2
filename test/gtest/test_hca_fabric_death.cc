/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Remains of killed processes: their objects and memory, operations that they
 * had begun, and how others learn of their end
 */
#include <infiniband/mlx5dv.h>

#include "no_descriptors.h"
#include "test_hca_fabric.h"

#include <endian.h>
#include <fcntl.h>
#include <memory>
#include <signal.h>
#include <sys/stat.h>

static void kill_and_wait(pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

/* A process to be killed: attached, with memory and a CQ */
class victim {
public:
    victim()
    {
        int ready[2];

        EXPECT_EQ(0, pipe(ready));
        m_pid = fork();
        if (m_pid == 0) {
            EXPECT_EQ(0, hca_fabric_attach(hca_nic_kinds, nullptr));
            hca_arena_alloc(8 << 20);
            num = hca_obj_publish(HCA_KIND_CQ, hca_obj_alloc(HCA_KIND_CQ, 0));
            EXPECT_EQ((ssize_t)sizeof(num), write(ready[1], &num, sizeof(num)));
            pause();
        }
        EXPECT_EQ((ssize_t)sizeof(num), read(ready[0], &num, sizeof(num)));
        close(ready[0]);
        close(ready[1]);
        EXPECT_NE(nullptr, cq());
        slot = cq()->proc;
    }

    /* Returns NULL once the CQ has been released. */
    struct hca_obj *cq() const
    {
        return (struct hca_obj *)hca_obj_peek(HCA_KIND_CQ, num);
    }

    void die() { kill_and_wait(m_pid); }

    uint32_t num  = 0; /* number of its CQ */
    unsigned slot = 0;

private:
    pid_t m_pid;
};

/* A child that holds an object, arena memory and its lock is killed. */
TEST_F(hca_fabric_test, killed_process_leaves_nothing)
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
        struct hca_obj *obj = (struct hca_obj *)hca_obj_peek(HCA_KIND_CQ, num);
        ASSERT_NE(nullptr, obj);
        unsigned slot = obj->proc;
        EXPECT_TRUE(hca_proc_alive(slot));

        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
        ASSERT_TRUE(hca_eventually([=] { return !hca_proc_alive(slot); }))
            << "the helper does not see the pidfd";
        ASSERT_TRUE(hca_eventually(
            [=] { return hca_fabric->procs[slot].state == HCA_PROC_FREE; }));
        EXPECT_EQ(nullptr, hca_obj_lock(HCA_KIND_CQ, num));
        for (unsigned i = 0; i < HCA_MAX_CHUNKS; i++) {
            EXPECT_NE(slot + 1, hca_fabric->chunk_owner[i]);
        }
        hca_fabric_detach();
    });
}

/* All processes are killed: the next one finds no remains. */
TEST_F(hca_fabric_test, next_run_sweeps_after_all_were_killed)
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

/* It died before the first question: the answer itself releases everything. */
TEST_F(hca_fabric_test, first_question_after_the_death)
{
    run([] {
        attach();
        victim peer;

        peer.die();
        EXPECT_FALSE(hca_proc_alive(peer.slot));
        EXPECT_EQ(nullptr, peer.cq());
        hca_fabric_detach();
    });
}

/* Several processes see one death at once. Its remains are released once:
 * memory that another process has allocated meanwhile keeps its contents. */
TEST_F(hca_fabric_test, watchers_take_back_once)
{
    run([] {
        enum { WATCHERS = 4, BLOCKS = 8 };
        attach();
        for (int round = 0; round < 10; round++) {
            char *blocks[BLOCKS];
            pid_t watchers[WATCHERS];
            victim peer;
            int ready[2];
            char byte;

            ASSERT_EQ(0, pipe(ready));
            for (pid_t &pid : watchers) {
                pid = fork();
                if (pid == 0) {
                    attach();
                    hca_proc_alive(peer.slot);
                    EXPECT_EQ(1, write(ready[1], "", 1));
                    pause();
                }
            }
            for (int i = 0; i < WATCHERS; i++) {
                ASSERT_EQ(1, read(ready[0], &byte, 1));
            }
            peer.die();
            ASSERT_TRUE(hca_eventually([&] { return peer.cq() == nullptr; }));
            for (char *&block : blocks) {
                block = (char *)hca_arena_alloc(1 << 20);
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

/* The pid of a dead process may belong to another by now. */
TEST_F(hca_fabric_test, stranger_with_the_pid_is_not_the_process)
{
    run([] {
        attach();
        victim peer;

        hca_fabric->procs[peer.slot].start_time++;
        EXPECT_FALSE(hca_proc_alive(peer.slot));
        EXPECT_EQ(-ESRCH, hca_proc_open_fd(peer.slot, 0));
        peer.die();
        hca_fabric_detach();
    });
}

/* This process cannot ask about a peer; it must not treat the peer as dead. */
TEST_F(hca_fabric_test, process_without_descriptors_takes_back_nobody)
{
    run([] {
        attach();
        std::string log;
        victim peer;

        testing::internal::CaptureStderr();
        for (unsigned left = 0; left < 3; left++) {
            no_descriptors fill(left);
            EXPECT_TRUE(hca_proc_alive(peer.slot)) << left << " are left";
            EXPECT_TRUE(hca_proc_alive(peer.slot));
            EXPECT_NE(-ESRCH, hca_proc_open_fd(peer.slot, STDIN_FILENO));
        }
        log = testing::internal::GetCapturedStderr();
        EXPECT_NE(nullptr, peer.cq());
        EXPECT_NE(std::string::npos, log.find("will not be noticed")) << log;
        EXPECT_EQ(log.find('\n'), log.rfind('\n')) << "not once: " << log;

        peer.die();
        ASSERT_TRUE(hca_eventually([&] { return !hca_proc_alive(peer.slot); }))
            << "there was a descriptor in the end";
        hca_fabric_detach();
    });
}

/* A certain death needs no descriptor. */
TEST_F(hca_fabric_test, process_without_descriptors_sees_a_death)
{
    run([] {
        attach();
        victim peer;

        peer.die();
        {
            no_descriptors fill(0);
            EXPECT_FALSE(hca_proc_alive(peer.slot));
        }
        EXPECT_EQ(nullptr, peer.cq());
        hca_fabric_detach();
    });
}

/* A copy that was begun goes to the intended process, or nowhere. */
TEST_F(hca_fabric_test, copy_does_not_go_to_the_next_owner_of_a_slot)
{
    run([] {
        uint64_t word      = 1;
        struct iovec local = {&word, sizeof(word)}, remote = local;

        attach();
        victim peer;
        struct hca_owner first = hca_owner(peer.slot);

        EXPECT_EQ(0, hca_mem_write(first, &local, 1, &remote, 1));
        peer.die();
        EXPECT_FALSE(hca_proc_alive(first.proc));

        victim next;

        EXPECT_EQ(first.proc, next.slot);
        EXPECT_EQ(-ESRCH, hca_mem_write(first, &local, 1, &remote, 1));
        EXPECT_EQ(0,
                  hca_mem_write(hca_owner(first.proc), &local, 1, &remote, 1));
        next.die();
        hca_fabric_detach();
    });
}

/* A CQ of 4 entries, and a QP whose receives use it */
struct queues {
    struct hca_cq *cq;
    struct hca_qp *qp;
    uint8_t *ring;
    uint32_t *dbrec; /* of the CQ, then of the QP */
};

static queues make_queues()
{
    struct hca_cq_spec spec = {};
    queues q;

    q.ring  = (uint8_t *)hca_arena_alloc(8192);
    q.dbrec = (uint32_t *)(q.ring + 4096);
    for (unsigned i = 0; i < 4; i++) {
        q.ring[i * 64 + 63] = MLX5_CQE_INVALID << 4;
    }
    spec.ring  = {hca_off(q.ring), 2, 6};
    spec.dbrec = hca_off(q.dbrec);
    EXPECT_EQ(0, hca_cq_create(&spec, &q.cq));
    q.qp        = (struct hca_qp *)hca_obj_alloc(HCA_KIND_QP, 0);
    q.qp->rq    = {hca_off(q.ring + 2048), 2, 4};
    q.qp->dbrec = hca_off(q.dbrec + 2);
    q.qp->rcqn  = q.cq->obj.num;
    hca_obj_publish(HCA_KIND_QP, q.qp);
    return q;
}

/* Runs body in a process that attaches and is killed. */
static void run_and_kill(const std::function<void()> &body)
{
    pid_t pid = fork();

    if (pid == 0) {
        hca_fabric_attach(hca_nic_kinds, nullptr);
        body();
        raise(SIGKILL);
    }
    waitpid(pid, NULL, 0);
}

/* Its writer was killed before it counted the entry, which the program may have
 * polled. */
TEST_F(hca_fabric_test, entry_of_a_killed_writer_counts)
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

/* The process that put a QP in error was killed before it flushed the receives.
 */
TEST_F(hca_fabric_test, receives_are_flushed_after_a_death)
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

/* The process that took an entry off the list of tags was killed when it could
 * not be found any more: its neighbors knew of it. */
TEST_F(hca_fabric_test, list_of_tags_is_whole_after_a_death)
{
    run([] {
        const struct hca_tm_entry fields = {};
        struct hca_srq_spec spec         = {};
        struct hca_srq *srq;
        struct hca_tm *tm;

        attach();
        spec.has_tm   = true;
        spec.log_tags = 2;
        ASSERT_EQ(0, hca_srq_create(&spec, &srq));
        tm = (struct hca_tm *)hca_ptr(srq->tm);
        hca_tm_append(tm, &fields, 1);
        hca_tm_append(tm, &fields, 2);
        run_and_kill([&] {
            hca_obj_lock(HCA_KIND_SRQ, srq->obj.num);
            tm->entries[0].next = HCA_TM_NONE;
        });
        ASSERT_EQ(srq, hca_obj_lock(HCA_KIND_SRQ, srq->obj.num));
        EXPECT_EQ(0u, tm->tail);
        EXPECT_EQ(HCA_OK, hca_tm_check_next(tm, 1));
        hca_tm_append(tm, &fields, 1);
        EXPECT_EQ(2u, tm->entries[0].next);
        hca_obj_unlock(srq);
        hca_fabric_detach();
    });
}

/* --- a process that is stopped -------------------------------------------- */

/* A process that calls the fabric and is stopped */
class stopped_process {
public:
    explicit stopped_process(const std::function<void()> &body)
    {
        pid = fork();
        if (pid == 0) {
            EXPECT_EQ(0, hca_fabric_attach(hca_nic_kinds, nullptr));
            body();
            raise(SIGSTOP);
            _exit(testing::Test::HasFailure());
        }
        EXPECT_EQ(pid, waitpid(pid, NULL, WUNTRACED));
    }

    ~stopped_process()
    {
        int status = 0;

        kill(pid, SIGCONT);
        EXPECT_EQ(pid, waitpid(pid, &status, 0));
        EXPECT_EQ(0, status);
    }

    pid_t pid;
};

/* The stopped process may still write: others that need the queue wait for it
 * once, and then find it in error. */
TEST_F(hca_fabric_test, cq_of_a_stopped_writer_is_in_error)
{
    run([] {
        attach();
        queues q                   = make_queues();
        uint32_t num               = q.cq->obj.num;
        struct hca_cqe cqe         = {};
        const uint64_t patience_us = 1000ull *
                                     hca_obj_kinds[HCA_KIND_CQ].patience_ms;
        const uint64_t limit_us = 1000ull * time_slow(TIME_PROMPT);
        uint64_t begin;

        cqe.opcode = MLX5_CQE_REQ;
        {
            stopped_process writer([num] { hca_obj_lock(HCA_KIND_CQ, num); });

            begin = time_now_us();
            EXPECT_NE(0, hca_cq_post(num, &cqe));
            EXPECT_LE(begin + patience_us, time_now_us());
            EXPECT_TRUE(q.cq->overrun);
            begin = time_now_us();
            for (uint64_t us = 0; us < 2 * limit_us; us += patience_us) {
                EXPECT_NE(0, hca_cq_post(num, &cqe));
            }
            EXPECT_GE(begin + limit_us, time_now_us()) << "asked anew";
        }
        ASSERT_EQ(q.cq, hca_obj_lock(HCA_KIND_CQ, num)) << "it went on";
        hca_obj_unlock(q.cq);
        EXPECT_EQ(-EOVERFLOW, hca_cq_post(num, &cqe));
        EXPECT_EQ(0u, q.cq->pi);
        hca_fabric_detach();
    });
}

/* A queue that goes leaves its ring to the writer. */
TEST_F(hca_fabric_test, cq_of_a_stopped_writer_keeps_its_ring)
{
    run([] {
        attach();
        queues q     = make_queues();
        uint32_t num = q.cq->obj.num;
        {
            stopped_process writer([num] { hca_obj_lock(HCA_KIND_CQ, num); });

            EXPECT_EQ(-ETIMEDOUT, hca_cq_destroy(q.cq, NULL));
            EXPECT_EQ(nullptr, hca_obj_peek(HCA_KIND_CQ, num));
        }
        EXPECT_EQ(0, hca_cq_destroy(make_queues().cq, NULL));
        hca_fabric_detach();
    });
}

/* An object that is not whole is kept: the process goes on in it. */
TEST_F(hca_fabric_test, what_a_stopped_process_holds_is_given_up)
{
    run([] {
        attach();
        void *chan   = hca_obj_alloc(HCA_KIND_CHAN, 0);
        uint32_t num = hca_obj_publish(HCA_KIND_CHAN, chan), count = 0;
        {
            stopped_process user([num] { hca_obj_lock(HCA_KIND_CHAN, num); });

            EXPECT_NE(0, hca_chan_write(num, &num, sizeof(num), &count));
            EXPECT_FALSE(hca_obj_free(HCA_KIND_CHAN, chan));
            EXPECT_EQ(nullptr, hca_obj_peek(HCA_KIND_CHAN, num));
        }
        hca_fabric_detach();
    });
}

/* Destroying what is another's does not wait, either. */
TEST_F(hca_fabric_test, object_of_another_that_is_held_is_not_given_up)
{
    run([] {
        attach();
        struct hca_name name = {1, 2};
        auto *mkey   = (struct hca_mkey *)hca_obj_alloc(HCA_KIND_MKEY, 0);
        mkey->name   = name;
        uint32_t num = hca_obj_publish(HCA_KIND_MKEY, mkey);
        {
            stopped_process user([num] { hca_obj_lock(HCA_KIND_MKEY, num); });

            EXPECT_EQ(-ETIMEDOUT, hca_obj_give_up(HCA_KIND_MKEY, mkey, &name));
            EXPECT_FALSE(hca_obj_is_given_up(HCA_KIND_MKEY, mkey));
        }
        EXPECT_FALSE(mkey->is_free);
        EXPECT_EQ(0, hca_obj_give_up(HCA_KIND_MKEY, mkey, &name));
        EXPECT_TRUE(mkey->is_free);
        EXPECT_EQ(-ENOENT, hca_obj_give_up(HCA_KIND_MKEY, mkey, &name));
        hca_fabric_detach();
    });
}

/* A cgroup of this process's own, of either version that the machine has, or
 * none */
class frozen_group {
public:
    frozen_group()
    {
        static const struct {
            const char *dir, *file, *on, *off;
        } kinds[] = {
            {"/sys/fs/cgroup/freezer", "freezer.state", "FROZEN", "THAWED"},
            {"/sys/fs/cgroup", "cgroup.freeze", "1", "0"},
            {"/sys/fs/cgroup/unified", "cgroup.freeze", "1", "0"},
        };

        for (const auto &kind : kinds) {
            m_dir  = std::string(kind.dir) + "/dcx-" + std::to_string(getpid());
            m_off  = kind.off;
            m_on   = kind.on;
            m_file = m_dir + "/" + kind.file;
            if (mkdir(m_dir.c_str(), 0700) != 0) {
                continue;
            }
            if (access(m_file.c_str(), W_OK) == 0) {
                return;
            }
            rmdir(m_dir.c_str());
        }
        m_dir.clear();
    }

    ~frozen_group()
    {
        hca_eventually([this] { return rmdir(m_dir.c_str()) == 0; });
    }

    bool is_there() const { return !m_dir.empty(); }

    bool add(pid_t pid)
    {
        return put(m_dir + "/cgroup.procs", std::to_string(pid));
    }

    void freeze(bool is_on) { EXPECT_TRUE(put(m_file, is_on ? m_on : m_off)); }

private:
    static bool put(const std::string &path, const std::string &text)
    {
        int fd   = open(path.c_str(), O_WRONLY);
        bool ret = (write(fd, text.c_str(), text.size()) > 0);

        close(fd);
        return ret;
    }

    std::string m_dir, m_file, m_on, m_off;
};

TEST_F(hca_fabric_test, frozen_process_is_stopped)
{
    auto group = std::make_unique<frozen_group>();
    int status;
    pid_t pid;

    if (!group->is_there()) {
        GTEST_SKIP() << "no cgroup that this user may freeze";
    }
    pid = spawn([] {
        for (;;) {
            poll(NULL, 0, 1);
        }
    });
    EXPECT_FALSE(hca_proc_is_stopped(pid));
    kill(pid, SIGSTOP);
    EXPECT_TRUE(hca_eventually([pid] { return hca_proc_is_stopped(pid); }));
    kill(pid, SIGCONT);
    EXPECT_TRUE(hca_eventually([pid] { return !hca_proc_is_stopped(pid); }));
    ASSERT_TRUE(group->add(pid));
    group->freeze(true);
    EXPECT_TRUE(hca_eventually([pid] { return hca_proc_is_stopped(pid); }));
    group->freeze(false);
    EXPECT_TRUE(hca_eventually([pid] { return !hca_proc_is_stopped(pid); }));
    kill(pid, SIGKILL);
    EXPECT_EQ(pid, waitpid(pid, &status, 0));
}
