/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The device is strict. For each check of hca_check.h there is a request that
 * is wrong in one field only. It is refused with the right completion, state of
 * the queues, async event and line in the log, and without any change to
 * memory. The same request without the change works, on the same queues. The
 * rows are in strict_rows_*.cc.
 */
#include "devx_xrq.h"
#include "strict_rows.h"
#include "umr_bench.h"

#include <regex>
#include <set>
#include <thread>

namespace {

std::vector<strict_row> all_rows()
{
    std::vector<strict_row> rows;

    for (const auto &more :
         {strict_rows_wqe(), strict_rows_key(), strict_rows_umr(),
          strict_rows_layout(), strict_rows_tm(), strict_rows_responder(),
          strict_rows_wire()}) {
        rows.insert(rows.end(), more.begin(), more.end());
    }
    return rows;
}

class strict_device : public testing::TestWithParam<strict_row> {
protected:
    /* Runs the valid request: no error, event or line in the log. */
    void run_good()
    {
        m_bench.reset(new strict_bench(row.service, row.options));
        m_bench->post_good(row.good(*m_bench));
        ASSERT_FALSE(HasFailure()) << "while it is right";
        drain();
        EXPECT_EQ("", m_log.take());
        EXPECT_EQ("", m_bench->take_events());
        if (row.fresh) {
            m_bench.reset(new strict_bench(row.service, row.bad_options));
        }
    }

    void run_bad()
    {
        raw_wqe wqe = row.good(*m_bench);

        m_bench->finish(wqe);
        row.spoil(*m_bench, wqe);
        ASSERT_FALSE(HasFailure()) << "before it is wrong";
        drain();
        m_log.take();
        m_memory = m_bench->memory();
        m_index  = m_bench->sq->pi;
        m_bench->post(wqe, row.num_bb);
    }

    void drain()
    {
        struct mlx5_err_cqe cqe;

        while (row.check != HCA_CHECK_CQ && m_bench->recv_cq->poll(&cqe)) {
            EXPECT_NE(MLX5_CQE_RESP_ERR, cqe.op_own >> 4);
        }
    }

    bool peer_fails() const
    {
        return ((row.outcome == OUTCOME_REMOTE) ||
                (row.outcome == OUTCOME_RECV) ||
                (row.events == std::string(OVERRUN_OF_ALL))) &&
               (row.service != SERVICE_DC);
    }

    /* The kernel passes no events of a DC target on. */
    std::string expected_events() const
    {
        static const std::regex target("(^|, )[^,]* of receiver");

        return (row.service != SERVICE_DC) ?
                   row.events :
                   std::regex_replace(row.events, target, "");
    }

    bool is_acked() const
    {
        return (row.service != SERVICE_UC) && (row.service != SERVICE_UD);
    }

    bool sender_fails() const
    {
        return (row.outcome != OUTCOME_DROP) &&
               ((row.outcome != OUTCOME_RECV) || is_acked());
    }

    /* An unreliable QP has only its send queue in error. An error without a
     * completion is fatal for the whole QP. */
    enum ibv_qp_state error_state() const
    {
        return (is_acked() || (row.outcome == OUTCOME_EVENT)) ? IBV_QPS_ERR :
                                                                IBV_QPS_SQE;
    }

    void expect_send_cqe()
    {
        struct mlx5_err_cqe cqe = {};

        if (row.outcome == OUTCOME_EVENT) {
            EXPECT_TRUE(m_bench->wait_error(m_bench->sender));
            return;
        }
        ASSERT_TRUE(m_bench->wait(*m_bench->send_cq, &cqe)) << "no completion";
        EXPECT_EQ(m_index, be16toh(cqe.wqe_counter));
        EXPECT_EQ(m_bench->sender->qp_num,
                  be32toh(cqe.s_wqe_opcode_qpn) & 0xffffff);
        if (!sender_fails()) {
            EXPECT_EQ(MLX5_CQE_REQ, cqe.op_own >> 4);
            return;
        }
        EXPECT_EQ(MLX5_CQE_REQ_ERR, cqe.op_own >> 4);
        EXPECT_EQ(row.syndrome, cqe.syndrome);
        EXPECT_EQ((int)row.check, cqe.vendor_err_synd);
    }

    void expect_recv_cqe()
    {
        struct mlx5_err_cqe cqe = {};

        if (row.outcome == OUTCOME_RECV) {
            ASSERT_TRUE(m_bench->wait(*m_bench->recv_cq, &cqe))
                << "no completion of the receive";
            EXPECT_EQ(MLX5_CQE_RESP_ERR, cqe.op_own >> 4);
            EXPECT_EQ(row.recv_syndrome, cqe.syndrome);
            EXPECT_EQ((int)row.check, cqe.vendor_err_synd);
        }
        /* other receives are flushed, if the peer fails */
        while ((row.check != HCA_CHECK_CQ) && m_bench->recv_cq->poll(&cqe)) {
            EXPECT_TRUE(peer_fails());
            EXPECT_EQ(MLX5_CQE_RESP_ERR, cqe.op_own >> 4);
            EXPECT_EQ(MLX5_CQE_SYNDROME_WR_FLUSH_ERR, cqe.syndrome);
        }
    }

    void expect_state(struct ibv_qp *qp, enum ibv_qp_state state,
                      const char *who)
    {
        EXPECT_EQ(state, m_bench->state(qp)) << who;
    }

    /* Nothing is executed after the error: later requests are flushed. */
    void expect_flush()
    {
        struct mlx5_err_cqe cqe = {};
        raw_wqe wqe(MLX5_OPCODE_NOP);
        uint16_t index = m_bench->sq->pi;

        if (!sender_fails() || (row.outcome == OUTCOME_EVENT)) {
            return;
        }
        m_bench->finish(wqe);
        m_bench->post(wqe);
        ASSERT_TRUE(m_bench->wait(*m_bench->send_cq, &cqe));
        EXPECT_EQ(index, be16toh(cqe.wqe_counter));
        EXPECT_EQ(MLX5_CQE_REQ_ERR, cqe.op_own >> 4);
        EXPECT_EQ(MLX5_CQE_SYNDROME_WR_FLUSH_ERR, cqe.syndrome);
        EXPECT_EQ((int)HCA_CHECK_FLUSH, cqe.vendor_err_synd);
    }

    /* One line, of the object that refused, with the name of the field */
    void expect_log()
    {
        bool is_remote = (row.outcome != OUTCOME_LOCAL) &&
                         (row.outcome != OUTCOME_EVENT);
        std::string log = m_log.take();
        char prefix[64];

        if (*row.field == '\0') {
            EXPECT_EQ("", log);
            return;
        }
        snprintf(prefix, sizeof(prefix), "qp 0x%x: %s",
                 is_remote ? m_bench->receiver->qp_num :
                             m_bench->sender->qp_num,
                 is_remote ? "responder: " : "wqe ");
        EXPECT_EQ(1, std::count(log.begin(), log.end(), '\n')) << log;
        EXPECT_NE(std::string::npos, log.find(" warn ")) << log;
        EXPECT_NE(std::string::npos, log.find(row.field)) << log;
        if (row.check != HCA_CHECK_CQ) {
            EXPECT_NE(std::string::npos, log.find(prefix)) << log;
        }
    }

    const strict_row &row = GetParam();
    std::unique_ptr<strict_bench> m_bench;
    hca_log_reader m_log;
    std::vector<uint8_t> m_memory;
    uint16_t m_index;
};

TEST_P(strict_device, refuses)
{
    run_good();
    ASSERT_FALSE(HasFatalFailure());
    run_bad();
    ASSERT_FALSE(HasFatalFailure());

    expect_send_cqe();
    expect_recv_cqe();
    expect_flush();
    expect_state(m_bench->sender, sender_fails() ? error_state() : IBV_QPS_RTS,
                 "sender");
    if ((row.service != SERVICE_DC) && !row.peer_reset) {
        expect_state(m_bench->receiver,
                     peer_fails() ? IBV_QPS_ERR : IBV_QPS_RTS, "receiver");
    }
    EXPECT_EQ(expected_events(), m_bench->take_events());
    EXPECT_EQ(row.written, m_memory != m_bench->memory())
        << "whether memory was written";
    expect_log();
}

std::vector<strict_row> rows_of(const std::string &mode)
{
    std::vector<strict_row> rows;

    for (const auto &row : all_rows()) {
        if (row.mode == mode) {
            rows.push_back(row);
        }
    }
    return rows;
}

std::string row_name(const testing::TestParamInfo<strict_row> &info)
{
    return info.param.name;
}

#define HCA_STRICT_MODE(_mode) \
    INSTANTIATE_TEST_SUITE_P(_mode, strict_device, \
                             testing::ValuesIn(rows_of(#_mode)), row_name)

HCA_STRICT_MODE(plain);
HCA_STRICT_MODE(strict);
HCA_STRICT_MODE(roce);
HCA_STRICT_MODE(nak_inval);
HCA_STRICT_MODE(nak_access);
HCA_STRICT_MODE(nak_op);
HCA_STRICT_MODE(less);
HCA_STRICT_MODE(least);

/* The same rows on a late device */
INSTANTIATE_TEST_SUITE_P(late, strict_device,
                         testing::ValuesIn(rows_of("plain")), row_name);

/* Checks that have no row of their own, with the reason */
const std::set<int> without_row = {
    /* the completion of requests after an error: expect_flush() */
    HCA_CHECK_FLUSH,
    /* about the register, not the WQE: strict_push */
    HCA_CHECK_BF_COPY,
    HCA_CHECK_BF_SHORT,
    /* libibverbs has no receives in strides: strict_strides */
    HCA_CHECK_STRIDES,
    /* two WQEs with one doorbell: strict_fence */
    HCA_CHECK_UMR_FENCE,
    /* libibverbs has no list of tags for DC: devx_tm_dc */
    HCA_CHECK_TMH_DC_KEY,
    /* memory on demand: verbs_odp */
    HCA_CHECK_LKEY_ODP,
    HCA_CHECK_RKEY_ODP,
    HCA_CHECK_RECV_LKEY_ODP,
};

/* The number that is stored to the register names the queue. A number that is
 * not of the page rings nothing; a later one rings all WQEs. */
class strict_doorbell : public testing::TestWithParam<uint32_t> {};

TEST_P(strict_doorbell, names_no_queue_of_the_page)
{
    strict_bench bench(SERVICE_RC, {});
    raw_wqe wqe = bench.write(), head = wqe;
    struct mlx5_err_cqe cqe = {};
    hca_log_reader log;

    bench.finish(wqe);
    head.finish(bench.sq->pi, bench.sender->qp_num ^ GetParam());
    bench.sq->write(wqe);
    bench.sq->ring(wqe.num_bb(), head.bytes.data());
    EXPECT_FALSE(bench.send_cq->poll(&cqe));
    EXPECT_NE(std::string::npos,
              log.take().find("doorbell register: qpn is 0x"));

    bench.sq->ring(0, wqe.bytes.data());
    ASSERT_TRUE(bench.wait(*bench.send_cq, &cqe));
    EXPECT_EQ(MLX5_CQE_REQ, cqe.op_own >> 4);
    EXPECT_EQ("", log.take());
}

/* Attributes that do not change the state do not ring either. */
TEST_P(strict_doorbell, is_not_replaced_by_new_attributes)
{
    strict_bench bench(SERVICE_RC, {});
    raw_wqe wqe = bench.write(), head = wqe;
    struct ibv_qp_attr attr = {};
    struct mlx5_err_cqe cqe = {};

    bench.finish(wqe);
    head.finish(bench.sq->pi, bench.sender->qp_num ^ GetParam());
    bench.sq->write(wqe);
    bench.sq->ring(wqe.num_bb(), head.bytes.data());
    attr.min_rnr_timer = 12;
    ASSERT_EQ(0, ibv_modify_qp(bench.sender, &attr, IBV_QP_MIN_RNR_TIMER));
    EXPECT_FALSE(bench.send_cq->poll(&cqe));

    bench.sq->ring(0, wqe.bytes.data());
    ASSERT_TRUE(bench.wait(*bench.send_cq, &cqe));
    EXPECT_EQ(MLX5_CQE_REQ, cqe.op_own >> 4);
}

INSTANTIATE_TEST_SUITE_P(plain, strict_doorbell,
                         testing::Values(0x800000, 0x010000));

/* A NIC executes pushed data: it must equal the ring, for the length of the
 * WQE. If the first eight bytes, as a doorbell, have it executed, an error is
 * reported only by an event. A wrong WQE that is stored in vectors is not
 * executed. */
class push_bench : public testing::Test {
protected:
    push_bench() : bench(SERVICE_RC, {}), wqe(bench.write())
    {
        bench.finish(wqe);
        bench.sq->write(wqe);
        copy = wqe.bytes;
        copy.resize(wqe.num_bb() * 64, 0xee);
    }

    void expect_completed(bool is_good)
    {
        struct mlx5_err_cqe cqe = {};

        ASSERT_TRUE(bench.wait(*bench.send_cq, &cqe));
        EXPECT_EQ(is_good ? MLX5_CQE_REQ : MLX5_CQE_REQ_ERR, cqe.op_own >> 4);
    }

    void expect_failed(const std::string &what)
    {
        std::string text = log.take();

        EXPECT_EQ("local work queue catastrophic error of sender",
                  bench.take_events());
        EXPECT_EQ(IBV_QPS_ERR, bench.state(bench.sender));
        EXPECT_NE(std::string::npos, text.find(what)) << text;
        EXPECT_EQ(1, std::count(text.begin(), text.end(), '\n')) << text;
    }

    strict_bench bench;
    hca_log_reader log;
    raw_wqe wqe;
    std::vector<uint8_t> copy;
};

class strict_push : public push_bench,
                    public testing::WithParamInterface<unsigned> {
protected:
    void push() { bench.sq->push(wqe.num_bb(), copy, GetParam()); }
};

TEST_P(strict_push, is_what_the_ring_holds)
{
    push();
    expect_completed(true);
    EXPECT_EQ("", bench.take_events());
    EXPECT_EQ(IBV_QPS_RTS, bench.state(bench.sender));
    EXPECT_EQ("", log.take());
}

TEST_P(strict_push, differs_from_what_the_ring_holds)
{
    copy[wqe.at_raddr + 7] ^= 1;
    push();
    expect_completed(GetParam() == 8);
    expect_failed("blueflame copy, first byte that differs is 0x10");
}

TEST_P(strict_push, differs_in_the_last_byte)
{
    copy[wqe.bytes.size() - 1] ^= 1;
    push();
    expect_completed(GetParam() == 8);
    expect_failed("blueflame copy, first byte that differs is 0x20");
}

INSTANTIATE_TEST_SUITE_P(plain, strict_push, testing::Values(8, 16, 64));

/* Pushes whose last 16 bytes come later or never, by width of the words and
 * half of a register */
class strict_short
    : public push_bench,
      public testing::WithParamInterface<std::tuple<unsigned, unsigned>> {
protected:
    strict_short() :
        rest(copy.end() - 16, copy.end()), width(std::get<0>(GetParam())),
        half(std::get<1>(GetParam()))
    {
        copy.resize(copy.size() - 16);
    }

    std::vector<uint8_t> rest;
    const unsigned width, half;
};

/* The next store finds it. */
TEST_P(strict_short, is_found)
{
    bench.sq->announce(wqe.num_bb());
    raw_store(bench.sq->half(half), copy, width);
    EXPECT_EQ("", log.take());
    wqe.bytes.resize(8);
    raw_store(bench.sq->half(half), wqe.bytes, 8);
    expect_completed(width == 8);
    expect_failed("blueflame copy cut short, wqe bytes is 0x");
}

/* The other register has one of a queue that does not exist. */
TEST_P(strict_short, is_found_in_its_register_only)
{
    raw_wqe other = bench.write();

    other.finish(0, bench.sq->qpn ^ 0x800000);
    other.bytes.resize(48);
    bench.sq->announce(wqe.num_bb());
    raw_store(bench.sq->half(half), copy, width);
    raw_store(bench.sq->half(half ^ 2), other.bytes, 16);
    other.bytes.resize(8);
    raw_store(bench.sq->half(half ^ 2), other.bytes, 8);
    raw_store(bench.sq->half(half) + copy.size(), rest, width);
    expect_completed(true);
    EXPECT_EQ("", bench.take_events());
    EXPECT_EQ(IBV_QPS_RTS, bench.state(bench.sender));
}

INSTANTIATE_TEST_SUITE_P(plain, strict_short,
                         testing::Combine(testing::Values(8, 16),
                                          testing::Range(0u, 4u)));

/* The answer of an atomic is lost, each time: the peer finds the repetition and
 * executes it once. */
class strict_lost : public testing::TestWithParam<strict_service> {};

TEST_P(strict_lost, answer_does_not_execute_it_again)
{
    strict_bench bench(GetParam(), {});
    raw_wqe wqe             = bench.fetch_add();
    struct mlx5_err_cqe cqe = {};

    bench.finish(wqe);
    bench.post(wqe);
    ASSERT_TRUE(bench.wait(*bench.send_cq, &cqe));
    EXPECT_EQ(MLX5_CQE_SYNDROME_TRANSPORT_RETRY_EXC_ERR, cqe.syndrome);
    EXPECT_EQ(0x23, bench.dst->addr[4096]);
    EXPECT_EQ(0x11, bench.src->addr[0]);
}

INSTANTIATE_TEST_SUITE_P(lost, strict_lost,
                         testing::Values(SERVICE_RC, SERVICE_XRC, SERVICE_DC));

/* Only the first answer is lost: the second one is the same. */
class strict_lost_once : public strict_lost {};

TEST_P(strict_lost_once, answer_comes_with_the_repetition)
{
    strict_bench bench(GetParam(), {});

    bench.post_good(bench.fetch_add());
    EXPECT_EQ(0x23, bench.dst->addr[4096]);
    EXPECT_EQ(0x22, bench.src->addr[0]);
    bench.post_good(bench.fetch_add());
    EXPECT_EQ(0x24, bench.dst->addr[4096]);
}

INSTANTIATE_TEST_SUITE_P(lost_once, strict_lost_once,
                         testing::Values(SERVICE_DC));

/* By DEVX, the right to atomics needs a mode of atomics (not
 * MLX5_ATOMIC_MODE_NONE); libibverbs cannot make such a target. */
class strict_target : public testing::TestWithParam<unsigned> {};

TEST_P(strict_target, atomics_need_a_mode)
{
    strict_bench bench(SERVICE_DC, {});
    devx_rmp rmp(bench.dev, devx_rmp::LIST);
    devx_object dct(bench.dev.ctx, devx_dct_in(bench.dev, bench.recv_cq->cq,
                                               rmp.object->out.number())
                                       .set(0x1c, 23, 20, GetParam()));
    raw_wqe wqe = bench.fetch_add();
    struct mlx5_err_cqe cqe;

    ASSERT_NE(nullptr, dct.obj);
    wqe.set32(wqe.at_av + 8, dct.out.number() | (1u << 31));
    bench.finish(wqe);
    bench.post(wqe);
    ASSERT_TRUE(bench.wait(*bench.send_cq, &cqe));
    EXPECT_EQ(GetParam() ? MLX5_CQE_REQ : MLX5_CQE_REQ_ERR, cqe.op_own >> 4);
    EXPECT_EQ(GetParam() ? 0x23 : 0x22, bench.dst->addr[4096]);
}

INSTANTIATE_TEST_SUITE_P(plain, strict_target, testing::Values(0, 3));

/* A receive WQE must have room for its 8 strides of 64 bytes, and for all bytes
 * of a packet; otherwise no byte is written. */
struct strides_case {
    const char *name;
    uint32_t wqe, message;
    enum hca_check check;
};

class strict_strides : public testing::TestWithParam<strides_case> {};

TEST_P(strict_strides, have_room)
{
    strict_bench bench(SERVICE_DC, {});
    devx_xrq xrq(
        bench.dev,
        {.type = devx_rq::CYCLIC_STRIDES, .log_strides = 3, .log_size = 6});
    devx_object dct(bench.dev.ctx,
                    devx_dct_in(bench.dev, bench.recv_cq->cq, xrq.number()));
    raw_wqe wqe             = bench.send(GetParam().message);
    struct mlx5_err_cqe cqe = {};
    hca_log_reader log;

    ASSERT_NE(nullptr, dct.obj);
    memset(bench.src->addr, 0, 1024); /* IBV_TMH_NO_TAG */
    xrq.post_recv(bench.dst->addr, GetParam().wqe, bench.dst->mr->lkey);
    wqe.set32(wqe.at_av + 8, dct.out.number() | (1u << 31));
    bench.finish(wqe);
    auto memory = bench.memory();
    bench.post(wqe);
    ASSERT_TRUE(bench.wait(*bench.send_cq, &cqe));
    ASSERT_TRUE(bench.wait(xrq.cq, &cqe) || (GetParam().check == HCA_OK));
    if (GetParam().check == HCA_OK) {
        EXPECT_EQ(MLX5_CQE_RESP_SEND, cqe.op_own >> 4);
        EXPECT_EQ("", log.take());
        return;
    }
    EXPECT_EQ(MLX5_CQE_RESP_ERR, cqe.op_own >> 4);
    EXPECT_EQ(MLX5_CQE_SYNDROME_LOCAL_LENGTH_ERR, cqe.syndrome);
    EXPECT_EQ((int)GetParam().check, cqe.vendor_err_synd);
    EXPECT_EQ(memory, bench.memory());
    EXPECT_NE(std::string::npos,
              log.take().find(hca_check_desc(GetParam().check)->what));
}

INSTANTIATE_TEST_SUITE_P(
    plain, strict_strides,
    testing::Values(strides_case{"right", 512, 512, HCA_OK},
                    strides_case{"wqe", 511, 64, HCA_CHECK_STRIDES},
                    strides_case{"packet", 513, 513, HCA_CHECK_RECV_LEN}),
    [](const auto &test) { return test.param.name; });

/* A device whose umr_fence is 0: a WQE that is rung before the UMR in front of
 * it has completed needs a fence mode, and only one mode is strong enough. */
class strict_fence : public testing::TestWithParam<uint8_t> {
protected:
    /* Writes the next WQE, a layout. */
    raw_wqe write_layout(uint8_t fm)
    {
        raw_wqe wqe = umr_wqe(
            key.lkey(), 64,
            umr_list({{(uintptr_t)bench.dst->addr, 64, bench.dst->mr->lkey}}));

        wqe.finish(bench.sq->pi, bench.sq->qpn);
        wqe.bytes[11] = MLX5_WQE_CTRL_CQ_UPDATE | (fm << 5);
        bench.sq->write(wqe);
        return wqe;
    }

    /* Expects the completion of a layout, and of one with the parameter's mode
     * behind it. */
    void expect_second()
    {
        const bool is_good = (GetParam() == 3);
        struct mlx5_err_cqe cqe;

        ASSERT_TRUE(bench.wait(*bench.send_cq, &cqe));
        EXPECT_EQ(MLX5_CQE_REQ, cqe.op_own >> 4);
        ASSERT_TRUE(bench.wait(*bench.send_cq, &cqe));
        EXPECT_EQ(is_good ? MLX5_CQE_REQ : MLX5_CQE_REQ_ERR, cqe.op_own >> 4);
        if (!is_good) {
            EXPECT_EQ(HCA_CHECK_UMR_FENCE, cqe.vendor_err_synd);
            EXPECT_EQ(MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR, cqe.syndrome);
            EXPECT_NE(std::string::npos, log.take().find("fence mode behind"));
        }
    }

    strict_bench bench{SERVICE_RC, {}};
    umr_key key{bench.dev.pd, 4};
    hca_log_reader log;
};

TEST_P(strict_fence, behind_a_layout)
{
    bench.sq->pi += write_layout(0).num_bb();
    raw_wqe second = write_layout(GetParam());

    bench.sq->ring(second.num_bb(), second.bytes.data());
    expect_second();
}

/* The second layout is rung while the device is in the middle of the WRITE in
 * front of both. On a busy machine it may come too late, and is tried again. */
TEST_P(strict_fence, rung_before_the_layout_is_executed)
{
    constexpr uint32_t length = 64 << 20;
    auto *mem = (uint8_t *)mmap(NULL, 2 * length, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    volatile uint8_t *to = mem + length;
    struct mlx5_err_cqe cqe;
    bool is_late;

    ASSERT_NE(MAP_FAILED, (void *)mem);
    memset(mem, 1, length);
    struct ibv_mr *mr = ibv_reg_mr(bench.dev.pd, mem, 2 * length, ACCESS_ALL);
    ASSERT_NE(nullptr, mr);

    const auto try_once = [&] {
        raw_wqe large = raw_wqe(MLX5_OPCODE_RDMA_WRITE)
                            .raddr(mem + length, mr->rkey)
                            .data(mem, length, mr->lkey);

        memset(mem + length, 0, length);
        large.finish(bench.sq->pi, bench.sq->qpn);
        large.bytes[11] = 0;
        bench.sq->write(large);
        bench.sq->pi += large.num_bb();
        raw_wqe first = write_layout(0);
        std::thread program([&] {
            EXPECT_TRUE(hca_until([&] { return to[0] != 0; }));
            bench.sq->announce(write_layout(GetParam()).num_bb());
            is_late = (to[length - 1] != 0);
        });
        bench.sq->ring(first.num_bb(), first.bytes.data());
        program.join();
        bench.sq->ring(0, first.bytes.data());
        return !is_late || !bench.wait(*bench.send_cq, &cqe) ||
               !bench.wait(*bench.send_cq, &cqe);
    };

    EXPECT_TRUE(hca_until(try_once));
    expect_second();
    EXPECT_EQ(0, ibv_dereg_mr(mr));
    munmap(mem, 2 * length);
}

INSTANTIATE_TEST_SUITE_P(fence, strict_fence, testing::Values(1, 2, 3, 4));

class strict_table : public testing::TestWithParam<int> {};

TEST_P(strict_table, every_check_has_a_row)
{
    std::set<int> hit = without_row;

    for (const auto &row : all_rows()) {
        hit.insert(row.check);
    }
    for (int check = 1; check < GetParam(); check++) {
        const char *what = hca_check_desc((enum hca_check)check)->what;

        if (what != NULL) {
            EXPECT_TRUE(hit.count(check))
                << "0x" << std::hex << check << ": " << what;
        }
    }
}

INSTANTIATE_TEST_SUITE_P(plain, strict_table,
                         testing::Values((int)HCA_NUM_CHECKS));

} /* namespace */

int main(int argc, char **argv)
{
    return hca_test_main(
        argc, argv,
        {{"plain", {}},
         {"strict", {{"SOFTHCA_STRICT", "1"}}},
         {"late", {{"SOFTHCA_DELAY", "200"}}},
         {"roce", {{"SOFTHCA_LINK", "roce"}}},
         {"less",
          {{"SOFTHCA_LACKS", "repeat_nest,tm_indirect"},
           {"SOFTHCA_LIMITS", "max_indirection=2,max_inline_klm=20"}}},
         {"least", {{"SOFTHCA_LACKS", "repeat,umr_atomic"}}},
         {"fence", {{"SOFTHCA_LACKS", "umr_fence"}}},
         {"nak_inval", {{"SOFTHCA_FAULT", "nak_inval:nth=2"}}},
         {"nak_access", {{"SOFTHCA_FAULT", "nak_access:nth=2"}}},
         {"nak_op", {{"SOFTHCA_FAULT", "nak_op:nth=2"}}},
         {"lost", {{"SOFTHCA_FAULT", "drop_ack:op=atomic:count=0"}}},
         {"lost_once", {{"SOFTHCA_FAULT", "drop_ack:op=atomic"}}}});
}
