/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * SOFTHCA_ORDER=relaxed: writes to regions with relaxed ordering may be
 * acknowledged before they reach memory. The seed and the number of a
 * message decide which ones are late: tests of one process check that some were
 * not in memory at once.
 */
#include "asan.h"
#include "streams_bench.h"
#include "verbs_peer.h"

#include <algorithm>
#include <malloc.h>

namespace {

constexpr int RELAXED   = ACCESS_ALL | IBV_ACCESS_RELAXED_ORDERING;
constexpr unsigned PUTS = 200;

/* Memory that a test registers itself */
struct verbs_page {
    static constexpr size_t size = 4096;

    verbs_page() :
        addr((uint8_t *)mmap(NULL, size, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))
    {
        HCA_CHECK_CALL(addr != MAP_FAILED);
    }

    ~verbs_page() { munmap(addr, size); }

    uint8_t *addr;
};

class verbs_posted : public testing::TestWithParam<strict_service> {
protected:
    raw_wqe write(const void *raddr, uint32_t rkey) const
    {
        return m_bench.wqe(MLX5_OPCODE_RDMA_WRITE)
            .raddr(raddr, rkey)
            .data(m_bench.src->addr, 64, m_bench.src->mr->lkey);
    }

    raw_wqe read(const void *raddr, uint32_t rkey) const
    {
        return m_bench.wqe(MLX5_OPCODE_RDMA_READ)
            .raddr(raddr, rkey)
            .data(m_bench.src->addr + 64, 64, m_bench.src->mr->lkey);
    }

    static bool is_there(const uint8_t *addr, uint8_t value)
    {
        return (addr[0] == value) && (addr[63] == value);
    }

    /* Writes 64 bytes of `value` to `raddr`, which leads to `addr`.
     * @return true if they are not in memory when the write is acknowledged */
    bool put(const void *raddr, uint32_t rkey, const uint8_t *addr,
             uint8_t value)
    {
        memset(m_bench.src->addr, value, 64);
        m_bench.post_good(write(raddr, rkey));
        return !is_there(addr, value);
    }

    bool put(const strict_mem &to, size_t at, uint8_t value)
    {
        return put(to.addr + at, to.mr->rkey, to.addr + at, value);
    }

    /* Runs @post after each of @puts late writes. Returns how many of these are
     * not in memory when it has completed. */
    template <typename F> unsigned count(F post, unsigned puts = PUTS)
    {
        unsigned late = 0;

        for (unsigned i = 0; (i < puts) && !HasFailure(); i++) {
            put_late(m_mem, 0, 1 + i % 100);
            post();
            late += !is_there(m_mem.addr, 1 + i % 100);
        }
        return late;
    }

    /* Reads other bytes from the same target. */
    void push() { m_bench.post_good(read(m_mem.addr + 8192, m_mem.mr->rkey)); }

    /* Puts `value` until a write is late. */
    void put_late(const strict_mem &to, size_t at, uint8_t value)
    {
        unsigned tries = 0;

        do {
            push();
            memset(to.addr + at, 0, 64);
            ASSERT_LT(tries++, PUTS);
        } while (!put(to, at, value));
    }

    strict_bench m_bench{GetParam(), {}};
    strict_mem m_mem{m_bench.dev.pd, RELAXED, 0};
};

TEST_P(verbs_posted, write_comes_after_its_answer)
{
    unsigned late = 0;

    for (unsigned i = 0; i < PUTS; i++) {
        late += put(m_mem, i * 64, 1 + i % 100);
    }
    EXPECT_GT(late, PUTS / 8);
    EXPECT_LT(late, PUTS * 3 / 4);
    for (unsigned i = 0; i < PUTS; i++) {
        ASSERT_TRUE(hca_until([&] {
            return is_there(m_mem.addr + i * 64, 1 + i % 100);
        })) << i;
    }
}

/* A doorbell may ring in a signal handler that interrupts malloc(). */
TEST_P(verbs_posted, data_is_kept_without_the_heap)
{
    unsigned late, tries = 0;

    do {
        push();
        size_t heap = mallinfo2().uordblks;
        late        = 0;
        for (unsigned i = 0; i < 28; i++) {
            late += put(m_mem, i * 64, 1 + tries);
        }
        EXPECT_EQ(heap, mallinfo2().uordblks);
    } while ((late <= 7) && (++tries < 10));
    EXPECT_LT(7u, late) << "too few: malloc()'s cache keeps 7 chunks of a size";
}

TEST_P(verbs_posted, strict_region_has_it_at_once)
{
    for (unsigned i = 0; i < PUTS; i++) {
        ASSERT_FALSE(put(*m_bench.dst, 0, 1 + i % 100));
    }
}

TEST_P(verbs_posted, two_change_places)
{
    unsigned swapped = 0;

    for (unsigned i = 0; i < PUTS; i++) {
        put(m_mem, 0, 1);
        put(m_mem, 0, 2);
        push();
        swapped += is_there(m_mem.addr, 1);
    }
    EXPECT_GT(swapped, PUTS / 8);
    EXPECT_LT(swapped, PUTS);
}

TEST_P(verbs_posted, read_pushes)
{
    EXPECT_EQ(0u, count([&] {
                  m_bench.post_good(read(m_mem.addr, m_mem.mr->rkey));
                  EXPECT_EQ(
                      0, memcmp(m_bench.src->addr, m_bench.src->addr + 64, 64));
              }));
}

TEST_P(verbs_posted, atomic_pushes)
{
    EXPECT_EQ(0u, count([&] { m_bench.post_good(m_bench.fetch_add()); }));
}

TEST_P(verbs_posted, strict_write_pushes)
{
    EXPECT_EQ(0u, count([&] { m_bench.post_good(m_bench.write()); }));
}

TEST_P(verbs_posted, messages_push)
{
    EXPECT_EQ(0u, count(
                      [&] {
                          m_bench.post_recv();
                          m_bench.post_good(m_bench.send());
                      },
                      7));
    EXPECT_EQ(0u, count(
                      [&] {
                          m_bench.post_recv();
                          m_bench.post_good(
                              m_bench.wqe(MLX5_OPCODE_RDMA_WRITE_IMM)
                                  .raddr(m_mem.addr + 4096, m_mem.mr->rkey)
                                  .data(m_bench.src->addr, 64,
                                        m_bench.src->mr->lkey));
                      },
                      7));
}

TEST_P(verbs_posted, umr_pushes)
{
    if (GetParam() == SERVICE_DC) {
        GTEST_SKIP() << "a DC initiator has no UMR";
    }
    EXPECT_EQ(0u, count(
                      [&] {
                          m_bench.post_good(m_bench.bind(
                              m_bench.window(m_bench.dev.pd, IBV_MW_TYPE_2)));
                      },
                      16));
}

/* Neither the completion of a NOP nor that of another relaxed write implies
 * that the data is in memory. */
TEST_P(verbs_posted, completions_do_not_push)
{
    EXPECT_GT(count([&] { m_bench.post_good(raw_wqe(MLX5_OPCODE_NOP)); }),
              PUTS / 4);
    EXPECT_GT(count([&] {
                  m_bench.post_good(write(m_mem.addr + 4096, m_mem.mr->rkey));
              }),
              PUTS / 4);
}

/* A write that is too long to be delayed comes after delayed ones. */
TEST_P(verbs_posted, long_write_pushes)
{
    const size_t length = 65536 + 64;
    std::vector<uint8_t> from(length, 0x5a), to(length);
    struct ibv_mr *source, *target;

    source = ibv_reg_mr(m_bench.dev.pd, from.data(), length,
                        IBV_ACCESS_LOCAL_WRITE);
    target = ibv_reg_mr(m_bench.dev.pd, to.data(), length, RELAXED);
    ASSERT_TRUE((source != NULL) && (target != NULL));
    EXPECT_EQ(0u, count([&] {
                  to.assign(length, 0);
                  m_bench.post_good(
                      m_bench.wqe(MLX5_OPCODE_RDMA_WRITE)
                          .raddr(to.data(), target->rkey)
                          .data(from.data(), length, source->lkey));
                  EXPECT_EQ(from, to);
              }));
    EXPECT_EQ(0, ibv_dereg_mr(target));
    EXPECT_EQ(0, ibv_dereg_mr(source));
}

/* The last delayed write is executed first: the write by a destroyed key has
 * ended when the one before it is in memory. */
TEST_P(verbs_posted, nothing_comes_to_a_key_that_is_gone)
{
    unsigned late = 0;

    for (unsigned i = 0; (i < 20) && !HasFailure(); i++) {
        verbs_page page;
        struct ibv_mr *mr = ibv_reg_mr(m_bench.dev.pd, page.addr, page.size,
                                       RELAXED);

        ASSERT_NE(nullptr, mr);
        put_late(m_mem, 0, 1);
        late += put(page.addr, mr->rkey, page.addr, 2);
        ASSERT_EQ(0, ibv_dereg_mr(mr));
        memset(page.addr, 3, 64);
        ASSERT_TRUE(hca_until([&] { return is_there(m_mem.addr, 1); }));
        EXPECT_TRUE(is_there(page.addr, 3)) << i;
    }
    EXPECT_GT(late, 0u);
}

/* A key that keeps its number but gets other memory */
TEST_P(verbs_posted, nothing_comes_to_where_a_key_leads_later)
{
    unsigned late = 0;

    for (unsigned i = 0; (i < 20) && !HasFailure(); i++) {
        verbs_page first, second;
        struct ibv_mr *mr = ibv_reg_mr_iova(m_bench.dev.pd, first.addr,
                                            first.size, (uintptr_t)second.addr,
                                            RELAXED);

        ASSERT_NE(nullptr, mr);
        put_late(m_mem, 0, 1);
        late += put(second.addr, mr->rkey, first.addr, 2);
        ASSERT_EQ(0, ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION,
                                  m_bench.dev.pd, second.addr, second.size, 0));
        ASSERT_TRUE(hca_until([&] { return is_there(m_mem.addr, 1); }));
        EXPECT_TRUE(is_there(second.addr, 0)) << i;
        EXPECT_EQ(0, ibv_dereg_mr(mr));
    }
    EXPECT_GT(late, 0u);
}

TEST_P(verbs_posted, reset_queue_pair_has_written)
{
    put_late(m_mem, 0, 1);
    hca_modify(m_bench.sender, {}, IBV_QPS_RESET, 0);
    EXPECT_TRUE(is_there(m_mem.addr, 1));
}

TEST_P(verbs_posted, queue_pair_in_error_has_written)
{
    put_late(m_mem, 0, 1);
    hca_modify(m_bench.sender, {}, IBV_QPS_ERR, 0);
    EXPECT_TRUE(is_there(m_mem.addr, 1));
}

TEST_P(verbs_posted, destroyed_queue_pair_has_written)
{
    put_late(m_mem, 0, 1);
    m_bench.destroy_sender();
    EXPECT_TRUE(is_there(m_mem.addr, 1));
}

/* The answer reports an error of a write. */
TEST_P(verbs_posted, write_beyond_the_region_fails)
{
    for (unsigned i = 0; (i < 8) && !HasFailure(); i++) {
        struct mlx5_err_cqe cqe = {};
        raw_wqe wqe = write(m_mem.addr + m_mem.size - 32, m_mem.mr->rkey);

        for (unsigned j = 0; j < i; j++) {
            put(m_mem, 0, 1);
        }
        m_bench.finish(wqe);
        m_bench.post(wqe);
        ASSERT_TRUE(m_bench.wait(*m_bench.send_cq, &cqe));
        EXPECT_EQ(MLX5_CQE_SYNDROME_REMOTE_ACCESS_ERR, cqe.syndrome);
        if (GetParam() == SERVICE_RC) {
            return; /* its peer is in error */
        }
        m_bench.reconnect();
    }
}

/* --- DC ------------------------------------------------------------------- */

class verbs_posted_dc : public verbs_posted {};

TEST_P(verbs_posted_dc, another_target_does_not_push)
{
    struct ibv_qp *other = hca_create_dct(m_bench.dev, m_bench.recv_cq->cq,
                                          m_bench.srq, m_bench.dc_key,
                                          ACCESS_QP_ALL);
    unsigned late        = count([&] {
        raw_wqe wqe = m_bench.read();

        wqe.set32(wqe.at_av + offsetof(struct mlx5_wqe_av, dqp_dct),
                         other->qp_num | (1u << 31));
        m_bench.post_good(wqe);
    });

    EXPECT_GT(late, PUTS / 4);
    EXPECT_EQ(0, ibv_destroy_qp(other));
}

TEST_P(verbs_posted_dc, write_of_a_stream_comes_after_its_answer)
{
    streams_target target(m_bench.dev, *m_bench.dst);
    streams_dci dci(m_bench.dev, {});
    unsigned late = 0;

    memset(m_bench.src->addr, 1, 64);
    for (unsigned i = 0; i < PUTS; i++) {
        uint8_t *to = m_mem.addr + i * 64;

        dci.write(i % 4, target.qp->qp_num, *m_bench.src, m_mem.mr->rkey, to);
        dci.expect(i);
        late += !is_there(to, 1);
    }
    EXPECT_GT(late, PUTS / 8);
    ASSERT_TRUE(hca_until([&] {
        return std::count(m_mem.addr, m_mem.addr + PUTS * 64, 1) == PUTS * 64;
    }));
}

/* --- another process ------------------------------------------------------ */

class verbs_posted_process : public testing::TestWithParam<int> {};

/* One of two processes, connected to the other */
struct posted_end {
    static constexpr size_t puts = 16, size = puts * 64;

    explicit posted_end(int fd) : card(peer_exchange(fd, ep, mem))
    {
        peer_connect(fd, ep, card);
    }

    /* Writes @value to the first @end bytes of the peer, 64 at a time. All are
     * acknowledged. */
    void put(uint8_t value = 1, size_t end = size)
    {
        memset(mem.addr, value, end);
        for (size_t at = 0; at < end; at += 64) {
            EXPECT_EQ(0, verbs_op(IBV_WR_RDMA_WRITE)
                             .local(mem, 64)
                             .remote(card.addr + at, card.rkey)
                             .post(ep.qp));
            verbs_expect_wcs(ep.send_cq, IBV_WC_SUCCESS, 0, 0);
        }
    }

    /* Reads the first bytes of the peer, which flushes the writes before.
     * Returns true if 64 bytes are @value. */
    bool has(uint8_t value)
    {
        EXPECT_EQ(0, verbs_op(IBV_WR_RDMA_READ)
                         .local(back, 64)
                         .remote(card.addr, card.rkey)
                         .post(ep.qp));
        verbs_expect_wcs(ep.send_cq, IBV_WC_SUCCESS, 0, 0);
        return (back.addr[0] == value) && (back.addr[63] == value);
    }

    hca_device dev;
    strict_mem mem{dev.pd, RELAXED, 0}, back{dev.pd, RELAXED, 0};
    verbs_ep ep{dev};
    peer_card card;
};

/* Ends the process in a fork(), when the device's handler has stopped its
 * timers: handlers run in the reverse order of their registration, and this one
 * was registered first. Before exit(), the peer looks for writes that are
 * late. */
int end_socket        = -1;
const int end_handler = pthread_atfork(
    [] {
        char byte = 0;

        if (end_socket >= 0) {
            EXPECT_EQ(1, ::write(end_socket, &byte, 1));
            EXPECT_EQ(1, ::read(end_socket, &byte, 1));
            exit(testing::Test::HasFailure());
        }
    },
    NULL, NULL);

/* Returns how many bytes are late when the peer exits. */
long late_at_exit()
{
    peer_process peer([](int fd) {
        posted_end end(fd);

        end.put();
        end_socket = (end_handler == 0) ? fd : -1;
        fork();
    });
    posted_end end(peer.fd);
    char byte = 0;
    long late;

    EXPECT_EQ(1, ::read(peer.fd, &byte, 1));
    late = std::count(end.mem.addr, end.mem.addr + end.size, 0);
    EXPECT_EQ(1, ::write(peer.fd, &byte, 1));
    /* LeakSanitizer may report memory that threads of the parent refer to. */
    int status = peer.wait();
    EXPECT_TRUE((status == 0) || asan_is_on()) << status;
    EXPECT_EQ(std::vector<uint8_t>(end.size, 1),
              std::vector<uint8_t>(end.mem.addr, end.mem.addr + end.size));
    return late;
}

/* Repeats it if the machine was so slow that no write is late. */
TEST_P(verbs_posted_process, exit_leaves_nothing_behind)
{
    long late = 0;

    for (unsigned i = 0; (i < 20) && (late == 0) && !HasFailure(); i++) {
        late = late_at_exit();
    }
    EXPECT_GT(late, 0);
}

/* A child of fork() has a copy of the delayed writes; in about every second
 * round there is one. Only the parent may execute it. */
TEST_P(verbs_posted_process, child_writes_nothing)
{
    peer_process peer([](int fd) {
        posted_end end(fd);
        char byte;

        while (::read(fd, &byte, 1) == 1) {
            EXPECT_EQ(1, ::write(fd, end.mem.addr, 1));
        }
    });
    posted_end end(peer.fd);
    unsigned late = 0;
    char byte     = 0;
    int fds[2];
    pid_t pid;

    ASSERT_EQ(0, pipe(fds));
    for (unsigned i = 0; i < 20; i++) {
        end.put(1, 64);
        pid = fork();
        if (pid == 0) {
            exit(::read(fds[0], &byte, 1) != 1);
        }
        EXPECT_EQ(1, ::write(peer.fd, &byte, 1));
        EXPECT_EQ(1, ::read(peer.fd, &byte, 1));
        late += (byte != 1);
        EXPECT_TRUE(end.has(1));
        end.put(2, 64);
        EXPECT_TRUE(end.has(2));
        EXPECT_EQ(1, ::write(fds[1], &byte, 1));
        EXPECT_EQ(pid, waitpid(pid, NULL, 0));
        EXPECT_TRUE(end.has(2));
    }
    EXPECT_GT(late, 0u);
    close(fds[0]);
    close(fds[1]);
}

/* At most 32 writes of a queue are delayed (HCA_POSTED_MAX). Without the limit,
 * half of these, which are posted with one doorbell, would be. */
TEST_P(verbs_posted_process, few_are_late)
{
    constexpr unsigned puts = 128, most = 32;
    std::vector<verbs_op> ops(puts, verbs_op(IBV_WR_RDMA_WRITE));
    hca_device dev;
    strict_mem from(dev.pd, RELAXED, 1), to(dev.pd, RELAXED, 0);
    verbs_options options;

    options.send_wr = puts;
    verbs_pair pair(dev, options);
    long late = 0;

    for (unsigned i = 0; i < puts; i++) {
        ops[i].local(from, 64).remote((uintptr_t)to.addr + i * 64, to.mr->rkey);
        ops[i].attach();
        ops[i].wr.send_flags = (i + 1 < puts) ? 0 : IBV_SEND_SIGNALED;
        ops[i].wr.next       = (i + 1 < puts) ? &ops[i + 1].wr : NULL;
    }
    for (unsigned i = 0; (i < 20) && (late == 0); i++) {
        memset(to.addr, 0, puts * 64);
        ASSERT_EQ(0, ops[0].post(pair.a.qp));
        verbs_expect_wcs(pair.a.send_cq, IBV_WC_SUCCESS, 0, 0);
        late = std::count(to.addr, to.addr + puts * 64, 0);
        EXPECT_LE(late, most * 64);
        ASSERT_TRUE(hca_until([&] {
            return std::count(to.addr, to.addr + puts * 64, 1) == puts * 64;
        }));
    }
    EXPECT_GT(late, 0);
}

/* The data for a dead target is dropped, without a message. */
TEST_P(verbs_posted_process, target_may_die)
{
    peer_process peer([](int fd) {
        posted_end end(fd);

        peer_wait_for_the_end(fd);
    });
    hca_log_reader log;
    posted_end end(peer.fd);

    end.put();
    kill(peer.pid, SIGKILL);
    peer.wait();
    hca_modify(end.ep.qp, {}, IBV_QPS_ERR, 0);
    EXPECT_EQ("", log.take());
}

INSTANTIATE_TEST_SUITE_P(relaxed, verbs_posted,
                         testing::Values(SERVICE_RC, SERVICE_DC));
INSTANTIATE_TEST_SUITE_P(relaxed, verbs_posted_dc, testing::Values(SERVICE_DC));
INSTANTIATE_TEST_SUITE_P(relaxed, verbs_posted_process, testing::Values(0));

} /* namespace */
