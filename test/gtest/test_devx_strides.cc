/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Receives in strides, which only DEVX can create: the completion and the place
 * of each packet of a message, messages over several receives and with too few
 * of them, and errors
 */
#include "devx_xrq.h"

namespace {

constexpr uint32_t FIRST = PRM_CQE_MP_FIRST, LAST = PRM_CQE_MP_LAST,
                   FILLER = PRM_CQE_MP_FILLER;

/* A queue pair connected to itself, with packets of 1024 bytes */
class devx_strides : public verbs_test {
protected:
    static constexpr uint32_t MTU = 1024, NUMBER = 8, WQE = NUMBER * MTU;

    void make(unsigned type = devx_rq::LIST_STRIDES, unsigned log_size = 10)
    {
        m_log_size = log_size;
        xrq.reset(new devx_xrq(dev, {.type        = type,
                                     .log_stride  = 6,
                                     .log_strides = 3,
                                     .log_size    = log_size}));
        qp.reset(new devx_qp(dev, *xrq));
        qp->connect(*qp, {.retry_cnt = 7, .rnr_retry = 7});
    }

    ~devx_strides()
    {
        qp.reset();
        xrq.reset();
    }

    /* Posts the next receive, in the next part of dst. */
    void recv()
    {
        uint32_t length = NUMBER << m_log_size;

        xrq->post_recv(dst.addr + m_num_wqes++ * length % dst.size, length,
                       dst.mr->lkey);
    }

    /* Fills src with a message of @length bytes, including its tag header. */
    void fill(uint8_t tmh_opcode, uint32_t length)
    {
        struct ibv_tmh tmh = {};

        for (uint32_t i = 0; i < length; i++) {
            src.addr[i] = (length + i) * 11;
        }
        tmh.opcode = tmh_opcode;
        tmh.tag    = htobe64(5);
        memcpy(src.addr, &tmh, sizeof(tmh));
    }

    /* Sends such a message. */
    void send(uint8_t tmh_opcode, uint32_t length,
              uint8_t opcode = MLX5_OPCODE_SEND)
    {
        fill(tmh_opcode, length);
        qp->post(raw_wqe(opcode)
                     .imm((opcode == MLX5_OPCODE_SEND) ? 0 : 0x77)
                     .data(src.addr, length, src.mr->lkey));
    }

    void expect_sent(int opcode = MLX5_CQE_REQ)
    {
        struct mlx5_err_cqe cqe = {};

        ASSERT_TRUE(qp->wait(&cqe));
        EXPECT_EQ(opcode, cqe.op_own >> 4);
    }

    /* Expects a completion of a packet with @bytes bytes from @at of the
     * message on, in stride @stride of WQE @wqe. */
    struct mlx5_cqe64 expect(uint8_t app_op, uint16_t wqe, uint16_t stride,
                             uint32_t bytes, uint32_t flags, uint32_t at = 0,
                             uint32_t count = 1)
    {
        struct mlx5_cqe64 cqe = xrq->expect(app_op);
        size_t to             = (wqe * NUMBER + stride) << m_log_size;
        uint16_t got;

        memcpy(&got, &cqe.rsvd20[2], sizeof(got));
        EXPECT_EQ(wqe, be16toh(cqe.wqe_counter));
        EXPECT_EQ(stride, be16toh(got));
        EXPECT_EQ(bytes | flags | (count << 16), be32toh(cqe.byte_cnt));
        EXPECT_EQ(0, memcmp(src.addr + at, dst.addr + to % dst.size, bytes));
        if (!(flags & LAST)) {
            EXPECT_EQ(MLX5_CQE_RESP_SEND, cqe.op_own >> 4);
            EXPECT_EQ(0u, cqe.imm_inval_pkey);
        }
        return cqe;
    }

    void expect_nothing()
    {
        struct mlx5_err_cqe cqe;

        EXPECT_FALSE(xrq->cq.poll(&cqe));
    }

    unsigned num_unexpected()
    {
        return xrq->query().get(devx_xrq::CTX + 0x24, 15, 0);
    }

    void expect_refused(const devx_mailbox &in, uint32_t syndrome,
                        const char *what)
    {
        devx_object object(dev.ctx, in);

        EXPECT_EQ(nullptr, object.obj) << what;
        EXPECT_EQ(DEVX_BAD_PARAM, object.out.status()) << what;
        EXPECT_EQ(syndrome, object.out.syndrome()) << what;
    }

    void expect_caps(unsigned has)
    {
        devx_mailbox in(16, 0x100), out(0x110);

        in.set(4, 15, 0, 1);
        ASSERT_EQ(0,
                  mlx5dv_devx_general_cmd(dev.ctx, in.bytes.data(), 16,
                                          out.bytes.data(), out.bytes.size()));
        EXPECT_EQ(has, out.get(0x10 + 0x40, 26, 26)) << "ib_striding_wq";
        EXPECT_EQ(has, out.get(0x10 + 0x44, 26, 26)) << "first_indication";
        EXPECT_EQ(has, out.get(0x10 + 0x74, 31, 31)) << "ext_stride_num_range";
        EXPECT_EQ(0u, out.get(0x10 + 0x40, 30, 30)) << "striding_rq";
    }

    std::unique_ptr<devx_xrq> xrq;
    std::unique_ptr<devx_qp> qp;
    struct mlx5_err_cqe m_none;

private:
    unsigned m_log_size = 10, m_num_wqes = 0;
};

constexpr uint8_t UNEXPECTED = PRM_CQE_TM_UNEXPECTED,
                  NO_TAG     = PRM_CQE_TM_NO_TAG;

/* A query returns the attributes of the creation. */
TEST_P(devx_strides, query)
{
    constexpr size_t wq = devx_xrq::WQ;

    for (unsigned type : {devx_rq::LIST_STRIDES, devx_rq::CYCLIC_STRIDES}) {
        for (unsigned log_size : {6u, 10u}) {
            qp.reset();
            make(type, log_size);
            devx_mailbox out = xrq->query();

            EXPECT_EQ(type, out.get(wq, 31, 28));
            for (size_t at : {wq + 0x08, wq + 0x20}) {
                EXPECT_EQ(xrq->good.word(at), out.word(at)) << at;
            }
            EXPECT_EQ(xrq->good.get(wq + 0x24, 11, 0),
                      out.get(wq + 0x24, 11, 0));
        }
    }
}

TEST_P(devx_strides, have_a_packet_each)
{
    make();
    recv();
    send(IBV_TMH_EAGER, 2 * MTU + 10, MLX5_OPCODE_SEND_IMM);
    expect_sent();
    expect(UNEXPECTED, 0, 0, MTU, FIRST);
    expect(UNEXPECTED, 0, 1, MTU, 0, MTU);
    struct mlx5_cqe64 cqe = expect(UNEXPECTED, 0, 2, 10, LAST, 2 * MTU);
    EXPECT_EQ(MLX5_CQE_RESP_SEND_IMM, cqe.op_own >> 4);
    EXPECT_EQ(htobe32(0x77), cqe.imm_inval_pkey);
    EXPECT_EQ(1u, num_unexpected());

    send(IBV_TMH_NO_TAG, 100);
    expect_sent();
    expect(NO_TAG, 0, 3, 100, FIRST | LAST);
    send(IBV_TMH_FIN, 32);
    expect_sent();
    expect(NO_TAG, 0, 4, 32, FIRST | LAST);
    send(IBV_TMH_RNDV, 64);
    expect_sent();
    expect(UNEXPECTED, 0, 5, 64, FIRST | LAST);
    EXPECT_EQ(2u, num_unexpected());
    expect_nothing();
}

/* From a key with one byte per entry to one with four bytes per entry */
TEST_P(devx_strides, packets_of_a_long_list)
{
    constexpr uint32_t length = 3 * MTU - 100;
    std::vector<devx_klm> from, to;

    for (uint32_t i = 0; i < length; i++) {
        from.push_back({(uintptr_t)src.addr + i, 1, src.mr->lkey});
    }
    for (uint32_t i = 0; i < WQE / 4; i++) {
        to.push_back({(uintptr_t)dst.addr + i * 4, 4, dst.mr->lkey});
    }
    make();
    {
        devx_mkey from_key(dev.ctx, devx_mkey_in(dev.pd, 0, length, from));
        devx_mkey to_key(dev.ctx, devx_mkey_in(dev.pd, 0, WQE, to));

        ASSERT_NE(nullptr, from_key.obj);
        ASSERT_NE(nullptr, to_key.obj);
        xrq->post_recv(NULL, WQE, to_key.key);
        fill(IBV_TMH_EAGER, length);
        qp->post(raw_wqe(MLX5_OPCODE_SEND).data(NULL, length, from_key.key));
        expect_sent();
        expect(UNEXPECTED, 0, 0, MTU, FIRST);
        expect(UNEXPECTED, 0, 1, MTU, 0, MTU);
        expect(UNEXPECTED, 0, 2, MTU - 100, LAST, 2 * MTU);
    }
    EXPECT_EQ(0x22, dst.addr[length]);
}

/* A message that matches is written to its tagged buffer, without strides. */
TEST_P(devx_strides, are_not_for_tagged_buffers)
{
    make();
    recv();
    xrq->append(*qp, 5, dst, 5 * MTU);
    send(IBV_TMH_EAGER, 5 * MTU);
    expect_sent();
    xrq->expect(PRM_CQE_TM_CONSUMED);
    EXPECT_EQ(5 * MTU - 16, be32toh(xrq->expect(PRM_CQE_TM_EXPECTED).byte_cnt));
    EXPECT_EQ(0, memcmp(src.addr + 16, dst.addr, 5 * MTU - 16));
    send(IBV_TMH_EAGER, 20);
    expect_sent();
    expect(UNEXPECTED, 0, 0, 20, FIRST | LAST);
}

/* 150 packets in 19 receives, more than once around a ring of 16. The WQE index
 * in completions is an entry of a list, but counts up on a cyclic queue. */
class devx_strides_ring : public devx_strides {
protected:
    void run(unsigned type)
    {
        unsigned at = 0, ring = (type == devx_rq::LIST_STRIDES) ? 16 : 0x10000;

        make(type);
        for (unsigned i = 0; i < 30; i++) {
            for (; (at + 5) / NUMBER >= posted; posted++) {
                recv();
            }
            send(IBV_TMH_EAGER, 5 * MTU);
            expect_sent();
            for (unsigned k = 0; k < 5; k++, at++) {
                expect(UNEXPECTED, at / NUMBER % ring, at % NUMBER, MTU,
                       ((k == 0) ? FIRST : 0) | ((k == 4) ? LAST : 0), k * MTU);
            }
            ASSERT_FALSE(HasFailure()) << i;
        }
    }

private:
    unsigned posted = 0;
};

TEST_P(devx_strides_ring, of_a_list_goes_around)
{
    run(devx_rq::LIST_STRIDES);
}

TEST_P(devx_strides_ring, of_a_ring_goes_around)
{
    run(devx_rq::CYCLIC_STRIDES);
}

/* The receiver is not ready in the middle; packets that have arrived stay. */
TEST_P(devx_strides, take_the_rest_when_there_are_more)
{
    make();
    recv();
    send(IBV_TMH_EAGER, 10 * MTU, MLX5_OPCODE_SEND_IMM);
    for (unsigned k = 0; k < NUMBER; k++) {
        expect(UNEXPECTED, 0, k, MTU, (k == 0) ? FIRST : 0, k * MTU);
    }
    EXPECT_EQ(1u, num_unexpected());
    time_quiet(QUIET_RNR);
    expect_nothing();
    EXPECT_FALSE(qp->cq.poll(&m_none)) << "sent";
    recv();
    expect(UNEXPECTED, 1, 0, MTU, 0, 8 * MTU);
    expect(UNEXPECTED, 1, 1, MTU, LAST, 9 * MTU);
    expect_sent();
    EXPECT_EQ(1u, num_unexpected());
    expect_nothing();
}

/* 700 bytes in strides of 256: three strides of one WQE */
TEST_P(devx_strides, are_passed_over_when_too_few)
{
    make(devx_rq::CYCLIC_STRIDES, 8);
    recv();
    recv();
    for (unsigned i = 0; i < 2; i++) {
        send(IBV_TMH_NO_TAG, 700);
        expect_sent();
        expect(NO_TAG, 0, 3 * i, 700, FIRST | LAST, 0, 3);
    }
    send(IBV_TMH_EAGER, MTU + 200);
    expect_sent();
    expect(0, 0, 6, 0, FILLER, 0, 2);
    expect(UNEXPECTED, 1, 0, MTU, FIRST, 0, 4);
    expect(UNEXPECTED, 1, 4, 200, LAST, MTU);
    expect_nothing();
}

/* Segments may begin anywhere in the strides; each of UCX's is one stride. */
TEST_P(devx_strides, lie_behind_each_other)
{
    const uint32_t cuts[] = {0, 100, 2 * MTU + 7, WQE};
    std::vector<struct ibv_sge> sges;

    make();
    for (unsigned i = 0; i < 3; i++) {
        sges.push_back({(uintptr_t)dst.addr + cuts[i], cuts[i + 1] - cuts[i],
                        dst.mr->lkey});
    }
    xrq->post_recv(sges);
    send(IBV_TMH_EAGER, 3 * MTU);
    expect_sent();
    for (unsigned k = 0; k < 3; k++) {
        expect(UNEXPECTED, 0, k, MTU,
               ((k == 0) ? FIRST : 0) | ((k == 2) ? LAST : 0), k * MTU);
    }
    EXPECT_EQ(0x22, dst.addr[3 * MTU]);
}

/* The third packet has no memory: two have arrived. */
TEST_P(devx_strides, end_where_the_key_is_wrong)
{
    struct mlx5_err_cqe cqe;
    uintptr_t at = (uintptr_t)dst.addr;

    make();
    xrq->post_recv({{at, 2 * MTU, dst.mr->lkey}, {at, WQE, 0xffff00}});
    send(IBV_TMH_EAGER, 3 * MTU);
    expect_sent(MLX5_CQE_REQ_ERR);
    expect(UNEXPECTED, 0, 0, MTU, FIRST);
    expect(UNEXPECTED, 0, 1, MTU, 0, MTU);
    ASSERT_TRUE(hca_until([&] { return xrq->cq.poll(&cqe); }));
    EXPECT_EQ(MLX5_CQE_RESP_ERR, cqe.op_own >> 4);
    EXPECT_EQ(MLX5_CQE_SYNDROME_LOCAL_PROT_ERR, cqe.syndrome);
    EXPECT_EQ(0, be16toh(cqe.wqe_counter));
}

TEST_P(devx_strides, are_refused_where_they_cannot_be)
{
    constexpr size_t wq = devx_xrq::WQ, rmp_wq = devx_rmp::WQ;

    make();
    devx_rmp rmp(dev, devx_rmp::LIST);
    auto with = [&] { return devx_mailbox(xrq->good); };

    expect_refused(with().set(wq + 0x24, 11, 8, 8), wq + 0x24, "2 strides");
    expect_refused(with().set(wq + 0x24, 11, 8, 9), wq + 0x24, "4 strides");
    expect_refused(with().set(wq + 0x24, 3, 3, 1), wq + 0x24, "of 16384");
    expect_refused(with().set(wq + 0x24, 7, 7, 1), wq + 0x24,
                   "two bytes to shift by");
    expect_refused(with().set(wq, 31, 28, 1), wq + 0x24, "a wq without");
    expect_refused(rmp.good.set(rmp_wq, 31, 28, 2), rmp_wq, "an rmp");
    EXPECT_NE(
        nullptr,
        devx_object(dev.ctx,
                    with().set(wq + 0x24, 11, 8, 7).set(wq + 0x24, 2, 0, 7))
            .obj);
}

TEST_P(devx_strides, are_announced)
{
    expect_caps(1);
}

/* A device without strides */
class devx_no_strides : public devx_strides {};

TEST_P(devx_no_strides, are_announced_or_made)
{
    devx_xrq plain(dev);

    expect_caps(0);
    expect_refused(plain.good.set(devx_xrq::WQ, 31, 28, 2), devx_xrq::WQ,
                   "strides");
}

/* The acknowledgment is lost, with too little room or enough: no packet is
 * received twice. */
class devx_strides_lost : public devx_strides {};

TEST_P(devx_strides_lost, have_each_packet_once)
{
    make();
    recv();
    send(IBV_TMH_EAGER, 10 * MTU);
    for (unsigned k = 0; k < NUMBER; k++) {
        expect(UNEXPECTED, 0, k, MTU, (k == 0) ? FIRST : 0, k * MTU);
    }
    time_quiet(QUIET_RNR);
    expect_nothing();
    recv();
    expect(UNEXPECTED, 1, 0, MTU, 0, 8 * MTU);
    expect(UNEXPECTED, 1, 1, MTU, LAST, 9 * MTU);
    expect_sent();
    expect_nothing();
}

INSTANTIATE_TEST_SUITE_P(ib, devx_strides, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(roce, devx_strides, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(ib, devx_strides_ring, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(no_strides, devx_no_strides, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(lost_twice, devx_strides_lost, testing::Values(0));

} /* namespace */
