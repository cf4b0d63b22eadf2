/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Killed and stopped processes of the fabric: how others learn of a death, the
 * objects, memory and unfinished operations that it leaves, and how long others
 * wait for a process that is stopped
 */
#include <infiniband/mlx5dv.h>

#include "no_descriptors.h"
#include "test_hca_fabric.h"

#include <atomic>
#include <endian.h>
#include <fcntl.h>
#include <rdma/ib_user_verbs.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <thread>

static void kill_and_wait(pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

/* A process to be killed: attached, with memory and a CQ, and about to run
 * @body, if there is one */
class victim {
public:
    explicit victim(const std::function<void()> &body = nullptr)
    {
        int ready[2];

        EXPECT_EQ(0, pipe(ready));
        m_pid = hca_fork();
        if (m_pid == 0) {
            EXPECT_EQ(0, hca_fabric_attach(hca_nic_kinds, nullptr));
            hca_arena_alloc(8 << 20);
            if (body) {
                EXPECT_EQ(0, hca_helper_start());
            }
            num = hca_obj_publish(HCA_KIND_CQ, hca_obj_alloc(HCA_KIND_CQ, 0));
            EXPECT_EQ((ssize_t)sizeof(num), write(ready[1], &num, sizeof(num)));
            if (body) {
                body();
            }
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

    bool has(int fd) const
    {
        char path[64];

        snprintf(path, sizeof(path), "/proc/%d/fd/%d", m_pid, fd);
        return access(path, F_OK) == 0;
    }

    uint32_t num  = 0; /* number of its CQ */
    unsigned slot = 0;

private:
    pid_t m_pid;
};

/* A child that has an object, its lock and arena memory is killed. */
TEST_F(hca_fabric_test, killed_process_leaves_nothing)
{
    run([] {
        int ready[2];
        uint32_t num = 0;
        pid_t pid;

        ASSERT_EQ(0, pipe(ready));
        pid = hca_fork();
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
            << "the helper does not see the end";
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

/* The peer dies before anything asked if it lives: that question releases what
 * it has left. */
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
                pid = hca_fork();
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

/* Closes the pipe that peers watch, as a program may do by system calls. */
static void close_asks()
{
    ino_t inode = hca_fabric->procs[hca_self].asks_inode;
    struct stat st;

    for (int fd = 0; fd < 1024; fd++) {
        if ((fstat(fd, &st) == 0) && (st.st_ino == inode)) {
            syscall(SYS_close, fd);
        }
    }
}

/* Expects that a process whose @body loses the pipe keeps its objects until it
 * ends. @is_watched: this process watches the pipe before that. */
static void expect_lives_without_pipe(const std::function<void()> &body,
                                      bool is_watched)
{
    int go[2];
    char byte;

    ASSERT_EQ(0, pipe(go));
    victim peer([&] {
        EXPECT_EQ(1, read(go[0], &byte, 1));
        body();
    });
    if (is_watched) {
        EXPECT_TRUE(hca_proc_alive(peer.slot));
    }
    EXPECT_EQ(1, write(go[1], "", 1));
    EXPECT_TRUE(hca_eventually(
        [&] { return !peer.has(hca_fabric->procs[peer.slot].asks_fd); }));
    time_quiet(QUIET_LOCK);
    EXPECT_TRUE(hca_proc_alive(peer.slot)) << is_watched;
    EXPECT_NE(nullptr, peer.cq()) << is_watched;

    peer.die();
    EXPECT_TRUE(hca_eventually([&] { return peer.cq() == nullptr; }));
    close(go[0]);
    close(go[1]);
}

TEST_F(hca_fabric_test, process_that_closed_its_pipe_lives)
{
    run([] {
        attach();
        expect_lives_without_pipe(close_asks, false);
        expect_lives_without_pipe(close_asks, true);
        hca_fabric_detach();
    });
}

/* When the first thread has ended, /proc shows no descriptors. */
TEST_F(hca_fabric_test, process_without_its_first_thread_lives)
{
    run([] {
        const auto end = [] {
            std::thread(pause).detach();
            syscall(SYS_exit, 0);
        };

        attach();
        expect_lives_without_pipe(end, false);
        expect_lives_without_pipe(end, true);
        hca_fabric_detach();
    });
}

TEST_F(hca_fabric_test, process_ends_by_exec)
{
    run([] {
        attach();
        for (unsigned round = 0; round < 10; round++) {
            int go[2];
            char byte;

            ASSERT_EQ(0, pipe(go));
            victim peer([&] {
                EXPECT_EQ(1, read(go[0], &byte, 1));
                execlp("sleep", "sleep", "1000", NULL);
            });
            EXPECT_TRUE(hca_proc_alive(peer.slot));
            EXPECT_EQ(1, write(go[1], "", 1));
            EXPECT_TRUE(hca_eventually([&] { return peer.cq() == nullptr; }));
            peer.die();
            close(go[0]);
            close(go[1]);
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
        EXPECT_EQ(-ESRCH, hca_proc_open_fd(peer.slot, 0, O_RDWR));
        peer.die();
        hca_fabric_detach();
    });
}

/* --- accesses to memory -------------------------------------------------- */

/* A process that attaches, begins an access to mkeys of this one, and may leave
 * the fabric in the middle of it. */
class accessor {
public:
    accessor(bool leaves)
    {
        unsigned owner = hca_self, turn;

        EXPECT_EQ(0, pipe(m_to));
        EXPECT_EQ(0, pipe(m_from));
        m_pid = hca_fork();
        if (m_pid == 0) {
            EXPECT_EQ(0, hca_fabric_attach(hca_nic_kinds, nullptr));
            slot = hca_self;
            turn = hca_mkeys_enter(owner);
            if (leaves) {
                hca_fabric_detach();
            }
            answer();
            wait();
            hca_mkeys_leave(owner, turn);
            answer();
            wait();
            hca_fabric_detach();
            _exit(testing::Test::HasFailure());
        }
        hear();
    }

    ~accessor()
    {
        int status = 0;

        EXPECT_EQ(1, write(m_to[1], "", 1));
        EXPECT_EQ(m_pid, waitpid(m_pid, &status, 0));
        EXPECT_TRUE(m_is_killed || (status == 0));
        for (int fd : {m_to[0], m_to[1], m_from[0], m_from[1]}) {
            close(fd);
        }
    }

    void end_access()
    {
        EXPECT_EQ(1, write(m_to[1], "", 1));
        hear();
    }

    /* Kills it; the destructor waits for it. */
    void die()
    {
        m_is_killed = true;
        kill(m_pid, SIGKILL);
    }

    void stop()
    {
        kill(m_pid, SIGSTOP);
        EXPECT_EQ(m_pid, waitpid(m_pid, NULL, WUNTRACED));
    }

    void go_on() { kill(m_pid, SIGCONT); }

    unsigned slot = 0;

private:
    void answer()
    {
        EXPECT_EQ((ssize_t)sizeof(slot), write(m_from[1], &slot, sizeof(slot)));
    }

    void hear()
    {
        EXPECT_EQ((ssize_t)sizeof(slot), read(m_from[0], &slot, sizeof(slot)));
    }

    void wait()
    {
        char byte;

        EXPECT_EQ(1, read(m_to[0], &byte, 1));
    }

    pid_t m_pid;
    int m_to[2], m_from[2];
    bool m_is_killed = false;
};

static struct hca_mkey *make_mkey()
{
    struct hca_mkey_spec spec = {};
    struct hca_mkey *mkey     = nullptr;

    spec.type   = HCA_MKEY_MR;
    spec.qpn    = HCA_ANY_QPN;
    spec.length = 4096;
    EXPECT_EQ(0, hca_mkey_create(&spec, &mkey));
    return mkey;
}

/* Its other threads may go on with copies until it ends. */
TEST_F(hca_fabric_test, process_that_left_keeps_its_slot_until_its_end)
{
    run([] {
        attach();
        unsigned slot;
        {
            accessor first(true);
            accessor next(false);

            slot = first.slot;
            EXPECT_NE(slot, next.slot);
            first.end_access();
            next.end_access();
            EXPECT_EQ(0u, hca_fabric->accesses[slot].of[hca_self][0]);
            EXPECT_EQ(0u, hca_fabric->accesses[next.slot].of[hca_self][0]);
        }
        accessor last(false);
        EXPECT_EQ(slot, last.slot);
        last.end_access();
        hca_fabric_detach();
    });
}

TEST_F(hca_fabric_test, deregistration_waits_for_a_process_that_left)
{
    run([] {
        attach();
        struct hca_mkey *mkey = make_mkey();
        std::atomic<bool> is_done{false};
        accessor peer(true);

        std::thread thread([&] {
            EXPECT_TRUE(hca_mkey_destroy(mkey));
            is_done = true;
        });
        EXPECT_TRUE(hca_eventually([=] { return mkey->is_free; }));
        time_quiet(QUIET_LOCK);
        EXPECT_FALSE(is_done);
        peer.end_access();
        thread.join();
        hca_fabric_detach();
    });
}

/* A zombie is dead: this process has not waited for it. */
TEST_F(hca_fabric_test, deregistration_does_not_wait_for_a_killed_process)
{
    run([] {
        attach();
        struct hca_mkey *mkey = make_mkey();
        accessor peer(false);
        uint64_t start = time_now_us();

        peer.die();
        EXPECT_TRUE(hca_mkey_destroy(mkey));
        EXPECT_LT(time_now_us() - start, time_slow(TIME_PROMPT) * 1000ull);
        hca_fabric_detach();
    });
}

/* The change fails, and the key stays usable as it was. */
TEST_F(hca_fabric_test, region_in_use_by_a_stopped_process_is_not_changed)
{
    run([] {
        attach();
        struct hca_mkey_spec spec = {};
        struct hca_mkey *mkey     = make_mkey();

        spec.length = 8192;
        {
            accessor peer(false);

            peer.stop();
            EXPECT_FALSE(hca_mkey_modify(mkey, &spec));
            EXPECT_EQ(4096u, mkey->length);
            EXPECT_FALSE(mkey->is_free);
            peer.go_on();
            peer.end_access();
        }
        EXPECT_TRUE(hca_mkey_modify(mkey, &spec));
        EXPECT_EQ(8192u, mkey->length);
        EXPECT_TRUE(hca_mkey_destroy(mkey));
        hca_fabric_detach();
    });
}

/* A process that cannot find out if a peer lives must not treat it as dead. */
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
            EXPECT_NE(-ESRCH,
                      hca_proc_open_fd(peer.slot, STDIN_FILENO, O_RDWR));
        }
        log = testing::internal::GetCapturedStderr();
        EXPECT_NE(nullptr, peer.cq());
        EXPECT_NE(std::string::npos, log.find("will not be noticed")) << log;
        EXPECT_EQ(log.find('\n'), log.rfind('\n')) << "not once: " << log;

        peer.die();
        ASSERT_TRUE(hca_eventually([&] { return !hca_proc_alive(peer.slot); }))
            << "the death is not seen though descriptors are free again";
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
    pid_t pid = hca_fork();

    if (pid == 0) {
        hca_fabric_attach(hca_nic_kinds, nullptr);
        body();
        raise(SIGKILL);
    }
    waitpid(pid, NULL, 0);
}

/* The writer of a completion was killed before it counted the entry, which the
 * program may have polled already. */
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

/* A process was killed between putting a QP in error and flushing its
 * receives. */
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

/* A process was killed while it removed an entry from the list of tags, when
 * only the entry's neighbours still linked to it. */
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

/* A process that stops itself in @body. It ends when it is continued, at the
 * latest by the destructor. */
class stopped_process {
public:
    explicit stopped_process(const std::function<void()> &body) :
        m_pid(hca_fork())
    {
        if (m_pid == 0) {
            body();
            _exit(testing::Test::HasFailure());
        }
        EXPECT_EQ(m_pid, waitpid(m_pid, NULL, WUNTRACED));
    }

    ~stopped_process()
    {
        int status = 0;

        go_on();
        EXPECT_EQ(m_pid, waitpid(m_pid, &status, 0));
        EXPECT_EQ(0, status);
    }

    void go_on() { kill(m_pid, SIGCONT); }

protected:
    const pid_t m_pid;
};

/* A process that is stopped while it has an object locked */
class stopped_holder : public stopped_process {
public:
    stopped_holder(enum hca_kind kind, uint32_t num) :
        stopped_process([kind, num] {
            EXPECT_EQ(0, hca_fabric_attach(hca_nic_kinds, nullptr));
            void *obj = hca_obj_lock(kind, num);
            raise(SIGSTOP);
            hca_obj_unlock(obj);
        })
    {
    }
};

/* Adds a completion while another process has the queue locked. */
class waiting_writer {
public:
    explicit waiting_writer(const queues &q) :
        m_thread([this, q] {
            struct hca_cqe cqe = {};

            cqe.opcode = MLX5_CQE_REQ;
            m_is_going = true;
            EXPECT_EQ(HCA_OK, hca_cq_post(q.cq->obj.num, &cqe));
            m_is_done = true;
        })
    {
        EXPECT_TRUE(hca_eventually([this] { return m_is_going.load(); }));
        time_quiet(QUIET_LOCK);
        EXPECT_FALSE(m_is_done);
    }

    ~waiting_writer() { m_thread.join(); }

private:
    std::atomic<bool> m_is_going{false}, m_is_done{false};
    std::thread m_thread;
};

TEST_F(hca_fabric_test, writer_waits_for_a_stopped_holder)
{
    run([] {
        attach();
        queues q = make_queues();
        {
            stopped_holder holder(HCA_KIND_CQ, q.cq->obj.num);
            waiting_writer writer(q);

            holder.go_on();
        }
        EXPECT_EQ(1u, q.cq->pi);
        EXPECT_FALSE(q.cq->overrun);
        hca_fabric_detach();
    });
}

/* The destruction of an object waits only for a limited time, and then leaves
 * the object unchanged. */
TEST_F(hca_fabric_test, object_of_a_stopped_holder_is_not_destroyed)
{
    run([] {
        attach();
        struct hca_cq_events events;
        queues q     = make_queues();
        uint32_t num = q.cq->obj.num;
        int64_t chan;
        int fd;

        chan = hca_chan_create(0, false, &fd);
        ASSERT_LT(0, chan);
        {
            stopped_holder writer(HCA_KIND_CQ, num);
            stopped_holder user(HCA_KIND_CHAN, chan);

            EXPECT_EQ(-ETIMEDOUT, hca_cq_destroy(q.cq, &events));
            EXPECT_EQ(q.cq, hca_obj_peek(HCA_KIND_CQ, num));
            hca_chan_destroy(chan);
            EXPECT_NE(nullptr, hca_obj_peek(HCA_KIND_CHAN, chan));
        }
        EXPECT_EQ(0, hca_cq_destroy(q.cq, &events));
        hca_chan_destroy(chan);
        EXPECT_EQ(nullptr, hca_obj_peek(HCA_KIND_CHAN, chan));
        close(fd);
        hca_fabric_detach();
    });
}

/* The end of a process waits only for a limited time, too. */
TEST_F(hca_fabric_test, process_leaves_objects_of_a_stopped_holder)
{
    run([] {
        attach();
        queues q      = make_queues();
        unsigned self = hca_self;
        std::string log;
        {
            stopped_holder holder(HCA_KIND_CQ, q.cq->obj.num);

            testing::internal::CaptureStderr();
            hca_fabric_detach();
            log = testing::internal::GetCapturedStderr();
            EXPECT_NE(std::string::npos, log.find("some of its objects stay"))
                << log;
            EXPECT_EQ(HCA_PROC_DEAD, hca_fabric->procs[self].state);
        }
    });
    run([] {
        attach(); /* removes the folder of the holder */
        hca_fabric_detach();
    });
}

/* Unread events that cannot be removed would name a queue that is gone. */
TEST_F(hca_fabric_test, queue_with_events_of_a_stopped_holder_is_not_destroyed)
{
    run([] {
        struct ib_uverbs_comp_event_desc desc = {};
        struct hca_cq_events events;
        queues q;
        int64_t chan;
        int fd;

        attach();
        q    = make_queues();
        chan = hca_chan_create(0, false, &fd);
        ASSERT_LT(0, chan);
        q.cq->chan           = chan;
        q.cq->obj.async_chan = chan;
        for (unsigned i = 0; i < 3; i++) {
            hca_chan_write(chan, &desc, sizeof(desc), &q.cq->comp_events);
        }
        ASSERT_EQ((ssize_t)sizeof(desc), read(fd, &desc, sizeof(desc)));
        {
            stopped_holder user(HCA_KIND_CHAN, chan);

            EXPECT_EQ(-ETIMEDOUT, hca_cq_destroy(q.cq, &events));
            EXPECT_EQ((uint32_t)chan, q.cq->obj.async_chan);
        }
        EXPECT_EQ(0, hca_cq_destroy(q.cq, &events));
        EXPECT_EQ(1u, events.comp);
        hca_chan_destroy(chan);
        close(fd);
        hca_fabric_detach();
    });
}

TEST_F(hca_fabric_test, port_goes_down_beside_a_stopped_holder)
{
    run([] {
        struct ib_uverbs_async_event_desc desc = {};
        int64_t chan;
        int fd;

        attach();
        chan = hca_chan_create(0, true, &fd);
        ASSERT_LT(0, chan);
        {
            stopped_holder user(HCA_KIND_CHAN, chan);
            uint64_t start = time_now_us();

            hca_port_keep(0);
            EXPECT_LT(time_now_us() - start, time_slow(TIME_PROMPT) * 1000ull);
        }
        hca_port_up(0);
        ASSERT_EQ((ssize_t)sizeof(desc), read(fd, &desc, sizeof(desc)));
        EXPECT_EQ((uint32_t)IBV_EVENT_PORT_ACTIVE, desc.event_type);
        hca_chan_destroy(chan);
        close(fd);
        hca_fabric_detach();
    });
}

/* A process that is stopped while it has the run-time folder locked */
class stopped_locker : public stopped_process {
public:
    explicit stopped_locker(const std::string &folder) :
        stopped_process([&folder] {
            int fd = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);

            EXPECT_EQ(0, flock(fd, LOCK_EX));
            raise(SIGSTOP);
        })
    {
    }

    /* Reads a line that names the process. */
    void expect_line(int fd)
    {
        struct pollfd readable = {fd, POLLIN, 0};
        char text[512]         = {};

        ASSERT_EQ(1, poll(&readable, 1, time_slow(TIME_WAIT)));
        EXPECT_LT(0, read(fd, text, sizeof(text) - 1));
        EXPECT_NE(nullptr,
                  strstr(text, ("process " + std::to_string(m_pid)).c_str()))
            << text;
    }
};

TEST_F(hca_fabric_test, folder_that_a_stopped_process_has_locked)
{
    const std::string folder = m_dir + "/run";

    ASSERT_EQ(0, mkdir(folder.c_str(), 0700));
    run([&] {
        int log[2];

        ASSERT_EQ(0, pipe2(log, O_CLOEXEC));
        dup2(log[1], STDERR_FILENO);
        {
            stopped_locker locker(folder);

            std::thread thread([&] {
                locker.expect_line(log[0]);
                locker.go_on();
            });
            attach();
            thread.join();
        }
        stopped_locker locker(folder);
        uint64_t start = time_now_us();

        hca_fabric_detach();
        EXPECT_LT(time_now_us() - start, time_slow(TIME_PROMPT) * 1000ull);
        locker.expect_line(log[0]);
    });
    run([] {
        attach(); /* removes the folder of the other */
        hca_fabric_detach();
    });
}

static uint32_t lock_num;
static std::atomic<bool> lock_begun, lock_done;

static void lock_fn(struct hca_timer *)
{
    lock_begun = true;
    hca_obj_unlock(hca_obj_lock(HCA_KIND_CQ, lock_num));
    lock_done = true;
}

TEST_F(hca_fabric_test, helper_that_waits_for_a_stopped_process)
{
    run([] {
        struct hca_timer timer = {};
        uint64_t start;

        attach();
        queues q = make_queues();
        timer.fn = lock_fn;
        lock_num = q.cq->obj.num;
        {
            stopped_holder holder(HCA_KIND_CQ, lock_num);

            hca_timer_arm(&timer, hca_time_ns());
            ASSERT_TRUE(hca_eventually([] { return lock_begun.load(); }));
            start = time_now_us();
            run([] {
                attach();
                hca_fabric_detach();
            });
            EXPECT_FALSE(hca_timer_cancel(&timer));
            EXPECT_LT(time_now_us() - start, time_slow(TIME_PROMPT) * 1000ull);
            EXPECT_FALSE(lock_done);
        }
        EXPECT_TRUE(hca_timer_cancel(&timer));
        EXPECT_TRUE(lock_done);
        hca_fabric_detach();
    });
}
