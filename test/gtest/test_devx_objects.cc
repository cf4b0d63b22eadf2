/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Objects made with DEVX commands: capabilities, queue pairs and targets with
 * rings that the program has allocated, their states, order and events,
 * reserved QP numbers, and errors of all these. Umems, keys, completion queues
 * and XRQs have files of their own.
 */
#include "devx_qp.h"
#include "streams_bench.h"

#include <atomic>
#include <set>
#include <sys/wait.h>
#include <thread>

namespace {

class devx_objects : public verbs_test {
protected:
    /* Returns the response to a command; expects success. */
    devx_mailbox ask(const devx_mailbox &in, size_t out_size)
    {
        devx_mailbox out(out_size);

        EXPECT_EQ(0, mlx5dv_devx_general_cmd(dev.ctx, in.bytes.data(),
                                             in.bytes.size(), out.bytes.data(),
                                             out_size));
        return out;
    }

    devx_mailbox caps(unsigned page)
    {
        return ask(devx_mailbox(16, 0x100).put(4, (page << 1) | 1), 4112);
    }

    void expect_refused(const devx_mailbox &in, uint8_t status,
                        uint32_t syndrome, const char *what)
    {
        devx_object object(dev.ctx, in);

        EXPECT_EQ(nullptr, object.obj) << what;
        EXPECT_EQ(EREMOTEIO, object.error) << what;
        EXPECT_EQ(status, object.out.status()) << what;
        EXPECT_EQ(syndrome, object.out.syndrome()) << what;
    }
};

/* --- capabilities --------------------------------------------------------- */

TEST_P(devx_objects, capabilities_are_those_of_the_device)
{
    devx_mailbox general = caps(0), atomic = caps(3);

    EXPECT_EQ(30u, general.get(0x10 + 0x38, 28, 24)) << "log_max_msg";
    EXPECT_EQ(1u, general.get(0x10 + 0x40, 31, 31)) << "compact addresses";
    EXPECT_EQ(1u, general.get(0x10 + 0x40, 5, 5)) << "dct";
    EXPECT_EQ(dev.is_roce(), general.get(0x10 + 0x34, 9, 8)) << "port_type";
    EXPECT_EQ(7u, general.get(0x10 + 0xbc, 15, 13)) << "tag matching, rndv";
    EXPECT_EQ(10u, general.get(0x10 + 0xbc, 12, 8))
        << "log2 of the list's entries";
    EXPECT_EQ(16u, general.get(0x10 + 0x20, 5, 0)) << "log2 of a key's entries";
    EXPECT_EQ(0xfu, atomic.get(0x10 + 0x10, 15, 0)) << "operations";
    EXPECT_EQ(0xcu, atomic.get(0x10 + 0x14, 15, 0)) << "sizes";
    EXPECT_EQ(0xcu, atomic.get(0x10 + 0x18, 15, 0)) << "sizes of dc";
    EXPECT_EQ(0u, ask(devx_mailbox(16, 0x842), 16).get(8, 2, 0)) << "lag";
}

/* Pages that rdma-core and DPDK query; pages that the device does not have are
 * zero. */
TEST_P(devx_objects, capability_pages_without_capabilities_are_zeroes)
{
    devx_mailbox memory = caps(0x0f);

    EXPECT_EQ(1u, memory.get(0x10, 31, 31)) << "memic";
    EXPECT_EQ(6u, memory.get(0x10 + 0x04, 20, 16))
        << "log_min_memic_alloc_size";
    EXPECT_EQ(128u << 10, memory.get(0x10 + 0x14, 31, 0)) << "max_memic_size";
    for (unsigned page : {0x01, 0x05, 0x07, 0x0c, 0x21, 0x3f}) {
        devx_mailbox out = caps(page);

        for (unsigned at = 0x10; at < 4112; at += 4) {
            ASSERT_EQ(0u, out.get(at, 31, 0)) << "page " << page;
        }
    }
}

TEST_P(devx_objects, unknown_capabilities_and_commands_are_refused)
{
    struct {
        devx_mailbox in;
        size_t out_size;
        uint8_t status;
        uint32_t syndrome;
    } cases[] = {
        {devx_mailbox(16, 0x100).put(4, 0x80), 4112, DEVX_BAD_PARAM, 4},
        {devx_mailbox(16, 0x100).put(8, 1), 4112, DEVX_BAD_PARAM, 8},
        {devx_mailbox(16, 0x100), 128, DEVX_BAD_OUTP_LEN, 0},
        {devx_mailbox(20, 0x842).put(16, 1), 16, DEVX_BAD_INP_LEN, 19},
        {devx_mailbox(16, 0x84f), 16, DEVX_BAD_OP, 0},
    };

    for (auto &c : cases) {
        devx_mailbox out(c.out_size);

        EXPECT_EQ(EREMOTEIO, mlx5dv_devx_general_cmd(
                                 dev.ctx, c.in.bytes.data(), c.in.bytes.size(),
                                 out.bytes.data(), c.out_size));
        EXPECT_EQ(c.status, out.status());
        EXPECT_EQ(c.syndrome, out.syndrome());
    }
}

TEST_P(devx_objects, numbers_are_reserved_until_they_are_given_back)
{
    devx_mailbox good = devx_mailbox(32, 0xa00).put(4, 0x2c).set(12, 28, 24, 5);
    std::set<uint32_t> numbers;
    uint32_t qpn;

    EXPECT_EQ(1u << 12, caps(0).word(0x10 + 0x80)) << "general_obj_types";
    EXPECT_EQ(5u, caps(0x20).get(0x10 + 0x10, 12, 8)) << "log of a block";
    for (unsigned i = 0; i < 70; i++) { /* in three blocks */
        ASSERT_EQ(0, mlx5dv_reserved_qpn_alloc(dev.ctx, &qpn));
        EXPECT_TRUE(numbers.insert(qpn).second) << qpn;
        EXPECT_GT(qpn, 1u);
    }
    {
        hca_device other;
        devx_object block(other.ctx, good);
        verbs_ep ep(dev);

        ASSERT_NE(nullptr, block.obj);
        EXPECT_EQ(0u, numbers.count(block.out.word(8)));
        EXPECT_EQ(0u, numbers.count(ep.qp->qp_num));
    }
    for (uint32_t number : numbers) {
        EXPECT_EQ(0, mlx5dv_reserved_qpn_dealloc(dev.ctx, number));
    }
    EXPECT_EQ(EINVAL, mlx5dv_reserved_qpn_dealloc(dev.ctx, qpn));
    expect_refused(devx_mailbox(good).put(4, 0x2d), DEVX_BAD_PARAM, 4, "type");
    expect_refused(devx_mailbox(good).set(12, 28, 24, 6), DEVX_BAD_PARAM, 12,
                   "another range");
}

/* --- queues --------------------------------------------------------------- */

/* Sends, and an RDMA read, between two QPs with an RMP */
void exchange(const hca_device &dev, const strict_mem &src, strict_mem &dst,
              unsigned wq_type)
{
    devx_rmp rmp(dev, wq_type);
    devx_qp a(dev, rmp), b(dev, rmp);
    struct mlx5_err_cqe cqe;

    a.connect(b);
    b.connect(a);
    for (unsigned i = 0; i < 40;
         i++) { /* more than twice around the RMP's ring */
        uint8_t *to = dst.addr + i * 64;

        rmp.post_recv(to, 64, dst.mr->lkey);
        a.post(raw_wqe(MLX5_OPCODE_SEND).data(src.addr, 64, src.mr->lkey));
        ASSERT_TRUE(a.wait(&cqe));
        ASSERT_EQ(MLX5_CQE_REQ, cqe.op_own >> 4);
        ASSERT_TRUE(b.wait(&cqe));
        ASSERT_EQ(MLX5_CQE_RESP_SEND, cqe.op_own >> 4);
        ASSERT_EQ(devx_qp::uidx, be32toh(cqe.srqn) & 0xffffff);
        EXPECT_EQ((wq_type == devx_rmp::LIST) ? i % rmp.count : i,
                  be16toh(cqe.wqe_counter));
        EXPECT_EQ(0x11, to[63]);
        EXPECT_EQ(0x22, to[64]);
    }
    b.post(raw_wqe(MLX5_OPCODE_RDMA_READ)
               .raddr(src.addr, src.mr->rkey)
               .data(dst.addr + 8192, 64, dst.mr->lkey));
    ASSERT_TRUE(b.wait(&cqe));
    EXPECT_EQ(0x11, dst.addr[8192 + 63]);
}

TEST_P(devx_objects, messages_over_a_linked_rmp)
{
    exchange(dev, src, dst, devx_rmp::LIST);
}

TEST_P(devx_objects, messages_over_a_cyclic_rmp)
{
    exchange(dev, src, dst, devx_rmp::CYCLIC);
}

TEST_P(devx_objects, what_is_in_use_stays)
{
    devx_rmp rmp(dev, devx_rmp::LIST);
    devx_qp qp(dev, rmp);

    EXPECT_EQ(EBUSY, mlx5dv_devx_umem_dereg(qp.ring.umem));
    EXPECT_EQ(EBUSY, mlx5dv_devx_obj_destroy(rmp.object->obj));
    EXPECT_EQ(EBUSY, ibv_destroy_cq(qp.cq.cq));
}

TEST_P(devx_objects, states_follow_each_other_and_can_be_asked_for)
{
    devx_rmp rmp(dev, devx_rmp::LIST);
    devx_qp a(dev, rmp), b(dev, rmp);
    devx_mailbox out(272);

    EXPECT_EQ(EREMOTEIO, a.modify(a.to_rtr(b), &out)) << "from RESET";
    EXPECT_EQ(DEVX_BAD_QP_STATE, out.status());
    a.connect(b);
    EXPECT_EQ(0, a.query(&out));
    EXPECT_EQ(3u, out.get(0x18, 31, 28)) << "RTS";
    EXPECT_EQ(b.qpn, out.get(0x18 + 0x14, 23, 0)) << "remote_qpn";
    EXPECT_EQ(0, a.modify(devx_mailbox(16, 0x507).put(8, a.qpn), &out));
    EXPECT_EQ(0, a.query(&out));
    EXPECT_EQ(6u, out.get(0x18, 31, 28)) << "ERR";
    EXPECT_EQ(0, a.modify(devx_mailbox(16, 0x50a).put(8, a.qpn), &out));
    EXPECT_EQ(0, a.query(&out));
    EXPECT_EQ(0u, out.get(0x18, 31, 28)) << "RST";
    EXPECT_EQ(EINVAL, a.modify(devx_mailbox(16, 0x507).put(8, b.qpn), &out))
        << "another's number";
}

/* rdma-core's tests set the port in RTR2RTS (tests/mlx5_base.py, to_rts()). */
TEST_P(devx_objects, port_may_be_named_on_the_way_to_rts)
{
    devx_rmp rmp(dev, devx_rmp::LIST);
    devx_qp a(dev, rmp), b(dev, rmp);
    devx_mailbox out(16), rts(0x110, 0x504);

    a.connect(b, {.rts_port = 1});
    rts.put(8, a.qpn).set(devx_qp::PATH + 0x24, 23, 16, 2);
    EXPECT_EQ(EREMOTEIO, a.modify(rts, &out))
        << "port 2, but the device has one";
    EXPECT_EQ(DEVX_BAD_PARAM, out.status());
}

TEST_P(devx_objects, longest_message_is_that_of_the_context)
{
    devx_rmp rmp(dev, devx_rmp::LIST);
    devx_qp a(dev, rmp), b(dev, rmp);
    struct mlx5_err_cqe cqe;
    devx_mailbox out(272);
    auto write = [&](uint32_t length) {
        return raw_wqe(MLX5_OPCODE_RDMA_WRITE)
            .raddr(dst.addr, dst.mr->rkey)
            .data(src.addr, length, src.mr->lkey);
    };

    a.connect(b, {.log_msg_max = 6});
    b.connect(a);
    EXPECT_EQ(0, a.query(&out));
    EXPECT_EQ(6u, out.get(0x18 + 0x08, 28, 24));
    a.post(write(64));
    ASSERT_TRUE(a.wait(&cqe));
    EXPECT_EQ(MLX5_CQE_REQ, cqe.op_own >> 4);
    a.post(write(65));
    ASSERT_TRUE(a.wait(&cqe));
    EXPECT_EQ(MLX5_CQE_REQ_ERR, cqe.op_own >> 4);
    EXPECT_EQ(MLX5_CQE_SYNDROME_LOCAL_LENGTH_ERR, cqe.syndrome);
    EXPECT_EQ(0x22, dst.addr[64]);
}

/* The access right is not enough: mode 0 is none (MLX5_ATOMIC_MODE_NONE). */
TEST_P(devx_objects, atomics_need_a_mode)
{
    for (unsigned mode : {3, 0}) {
        devx_rmp rmp(dev, devx_rmp::LIST);
        devx_qp a(dev, rmp), b(dev, rmp);
        struct mlx5_err_cqe cqe;

        a.connect(b);
        b.connect(a, {.atomic_mode = mode});
        a.post(raw_wqe(MLX5_OPCODE_ATOMIC_FA)
                   .raddr(dst.addr, dst.mr->rkey)
                   .atomic(1, 0)
                   .data(src.addr, 8, src.mr->lkey));
        ASSERT_TRUE(a.wait(&cqe));
        EXPECT_EQ(mode ? MLX5_CQE_REQ : MLX5_CQE_REQ_ERR, cqe.op_own >> 4);
        EXPECT_EQ(0x23, dst.addr[0]);
    }
}

/* Stores that are not combined are a doorbell, followed by stores without
 * meaning: the device logs this once, and reads the WQE. */
TEST_P(devx_objects, push_to_a_page_that_is_not_combining_rings)
{
    devx_rmp rmp(dev, devx_rmp::LIST);
    devx_qp a(dev, rmp, 0, MLX5DV_UAR_ALLOC_TYPE_NC), b(dev, rmp);
    struct mlx5_err_cqe cqe;
    hca_log_reader log;
    std::string text;

    a.connect(b);
    b.connect(a);
    for (unsigned width : {64, 16, 8, 16, 64}) {
        memset(dst.addr, 0, 64);
        a.push(raw_wqe(MLX5_OPCODE_RDMA_WRITE)
                   .raddr(dst.addr, dst.mr->rkey)
                   .data(src.addr, 64, src.mr->lkey),
               width);
        ASSERT_TRUE(a.wait(&cqe)) << width;
        EXPECT_EQ(MLX5_CQE_REQ, cqe.op_own >> 4);
        EXPECT_EQ(0, memcmp(src.addr, dst.addr, 64));
        EXPECT_FALSE(a.cq.poll(&cqe)) << "executed twice";
        text += log.take();
        EXPECT_EQ(1, std::count(text.begin(), text.end(), '\n')) << text;
    }

    EXPECT_NE(std::string::npos, text.find("is not write-combining")) << text;
    b.push(raw_wqe(MLX5_OPCODE_RDMA_WRITE)
               .raddr(dst.addr, dst.mr->rkey)
               .data(src.addr, 64, src.mr->lkey),
           16);
    ASSERT_TRUE(b.wait(&cqe));
    EXPECT_EQ(MLX5_CQE_REQ, cqe.op_own >> 4);
    EXPECT_EQ("", log.take());
}

TEST_P(devx_objects, queue_that_was_reset_begins_anew)
{
    devx_rmp rmp(dev, devx_rmp::LIST);
    devx_qp a(dev, rmp), b(dev, rmp);
    struct mlx5_err_cqe cqe;

    for (unsigned life = 0; life < 3; life++) {
        a.connect(b);
        b.connect(a);
        a.touch_doorbell();
        for (unsigned i = 0; i < 5; i++) {
            a.post(raw_wqe(MLX5_OPCODE_RDMA_WRITE)
                       .raddr(dst.addr, dst.mr->rkey)
                       .data(src.addr, 64, src.mr->lkey));
            ASSERT_TRUE(a.wait(&cqe));
            ASSERT_EQ(MLX5_CQE_REQ, cqe.op_own >> 4);
            ASSERT_EQ(i, be16toh(cqe.wqe_counter));
        }
        a.restart();
        b.restart();
    }
}

TEST_P(devx_objects, commands_reach_queue_pairs_of_verbs)
{
    verbs_pair pair(dev);
    devx_mailbox in = devx_mailbox(16, 0x50b).put(8, pair.a.qp->qp_num);
    devx_mailbox out(272);

    EXPECT_EQ(0, mlx5dv_devx_qp_query(pair.a.qp, in.bytes.data(), 16,
                                      out.bytes.data(), 272));
    EXPECT_EQ(pair.b.qp->qp_num, out.get(0x18 + 0x14, 23, 0));
    in = devx_mailbox(16, 0x507).put(8, pair.a.qp->qp_num);
    EXPECT_EQ(0, mlx5dv_devx_qp_modify(pair.a.qp, in.bytes.data(), 16,
                                       out.bytes.data(), 16));
    EXPECT_EQ(IBV_QPS_ERR, pair.a.state());
}

/* A longer mailbox may be of a later version: its additional bytes must be
 * zero. */
TEST_P(devx_objects, mailbox_longer_than_its_layout)
{
    constexpr size_t layout = 0x110;
    verbs_ep ep(dev);
    devx_mailbox in(UINT16_MAX - 3, 0x502), out(16);
    auto modify = [&] {
        return mlx5dv_devx_qp_modify(ep.qp, in.bytes.data(), in.bytes.size(),
                                     out.bytes.data(), out.bytes.size());
    };

    in.put(8, ep.qp->qp_num).set(devx_qp::PATH + 0x24, 23, 16, 1);
    in.bytes.back() = 1;
    EXPECT_EQ(EREMOTEIO, modify());
    EXPECT_EQ(DEVX_BAD_INP_LEN, out.status());
    EXPECT_EQ(in.bytes.size() - 1, out.syndrome());
    in.bytes.back() = 0;
    EXPECT_EQ(0, modify());
    EXPECT_EQ(IBV_QPS_INIT, ep.state());
    in.set(0, 31, 16, 0x505); /* RTS2RTS may have an extension; absent here */
    in.set(devx_qp::PATH + 0x24, 23, 16, 0).put(layout, 1);
    EXPECT_EQ(EREMOTEIO, modify());
    EXPECT_EQ(DEVX_BAD_INP_LEN, out.status());
    EXPECT_EQ(layout + 3, out.syndrome());
}

TEST_P(devx_objects, last_wqe_is_an_event_with_its_cookie)
{
    const auto omit = MLX5DV_DEVX_CREATE_EVENT_CHANNEL_FLAGS_OMIT_EV_DATA;
    struct mlx5dv_devx_event_channel *channel =
        mlx5dv_devx_create_event_channel(dev.ctx, omit);
    uint16_t types[] = {0x13};

    ASSERT_NE(nullptr, channel);
    {
        devx_rmp rmp(dev, devx_rmp::LIST);
        devx_qp a(dev, rmp), b(dev, rmp);
        struct mlx5dv_devx_async_event_hdr event = {};
        devx_mailbox out(16);
        uint16_t wrong = 0x77;

        EXPECT_EQ(EINVAL, mlx5dv_devx_subscribe_devx_event(
                              channel, a.object->obj, 2, &wrong, 0));
        ASSERT_EQ(0, mlx5dv_devx_subscribe_devx_event(channel, a.object->obj,
                                                      sizeof(types), types,
                                                      0x123456789a));
        a.connect(b);
        EXPECT_FALSE(verbs_readable(channel->fd, 0));
        EXPECT_EQ(0, a.modify(devx_mailbox(16, 0x507).put(8, a.qpn), &out));
        ASSERT_TRUE(verbs_readable(channel->fd));
        EXPECT_EQ((ssize_t)sizeof(event),
                  mlx5dv_devx_get_event(channel, &event, sizeof(event)));
        EXPECT_EQ(0x123456789au, event.cookie);
    }
    mlx5dv_devx_destroy_event_channel(channel);
}

TEST_P(devx_objects, queue_pair_refuses_what_cannot_be)
{
    devx_rmp rmp(dev, devx_rmp::LIST);
    devx_qp qp(dev, rmp);
    const devx_mailbox good = qp.create_in(rmp);
    auto with               = [&] { return devx_mailbox(good); };
    constexpr size_t ctx    = devx_qp::CTX;

    expect_refused(with().put(0x10, 2), DEVX_BAD_PARAM, 0x10,
                   "optional parameters at creation");
    expect_refused(with().set(ctx, 23, 16, 3), DEVX_BAD_PARAM, ctx, "st");
    expect_refused(with().set(ctx, 7, 4, 1), DEVX_BAD_PARAM, ctx,
                   "offload_type");
    expect_refused(with().set(ctx + 8, 7, 6, 2), DEVX_BAD_PARAM, ctx + 8,
                   "ts_format: the device has no time of day");
    expect_refused(with().set(ctx + 4, 23, 0, 0xfffff0), DEVX_BAD_RES, ctx + 4,
                   "unknown pd");
    expect_refused(with().set(ctx + 0xc, 23, 0, 0xfff0), DEVX_BAD_RES,
                   ctx + 0xc, "unknown uar");
    expect_refused(with().set(ctx + 0x7c, 23, 0, 0xfffff0), DEVX_BAD_RES,
                   ctx + 0x7c, "unknown cq");
    expect_refused(with().set(ctx + 0xac, 23, 0, 0xfffff0), DEVX_BAD_RES,
                   ctx + 0xac, "unknown srq");
    expect_refused(with().put(0x108, 0), DEVX_BAD_RES, 0x108, "unknown umem");
    expect_refused(with().set(ctx + 8, 14, 11, 15), DEVX_BAD_PARAM, 0x108,
                   "a ring larger than its umem");
    expect_refused(with().put64(ctx + 0xa0, 4092), DEVX_BAD_PARAM, ctx + 0xe4,
                   "a doorbell record beyond its umem");
}

/* UCX sets ts_format in CREATE_QP since 1.18. */
TEST_P(devx_objects, queue_pair_has_timestamps_of_the_default_format)
{
    devx_rmp rmp(dev, devx_rmp::LIST);
    devx_qp qp(dev, rmp);
    devx_mailbox in = qp.create_in(rmp);

    in.set(devx_qp::CTX + 8, 7, 6, 1);
    EXPECT_NE(nullptr, devx_object(dev.ctx, in).obj);
}

/* dp_ordering (UCX's dv/ib_mlx5_ifc.h) allows data out of order. Without the
 * capability it is refused. UCX 1.18.0 sometimes sets it, from memory that it
 * did not initialise. */
TEST_P(devx_objects, order_is_not_given_up)
{
    const size_t ctx = devx_qp::CTX, dctc = 0x10;
    devx_rmp rmp(dev, devx_rmp::LIST);
    devx_qp a(dev, rmp), b(dev, rmp);
    devx_mailbox general      = caps(0), out(16);
    const devx_mailbox target = devx_dct_in(dev, a.cq.cq,
                                            rmp.object->out.number());
    struct {
        size_t at;
        unsigned bit;
    } qpc[] = {{0x04, 25}, {0x04, 24}, {0x90, 3}},
      dct[] = {{0x0c, 12}, {0x0c, 11}, {0x04, 24}};

    EXPECT_EQ(0u, general.get(0x10 + 0x38, 23, 21)) << "dp_ordering_ooo_rw";
    EXPECT_EQ(0u, general.get(0x10 + 0x64, 15, 11)) << "dp_ordering_ooo_all";
    for (auto &field : qpc) {
        devx_mailbox in = a.to_rtr(b).set(ctx + field.at, field.bit, field.bit,
                                          1);

        EXPECT_EQ(EREMOTEIO, a.modify(in, &out));
        EXPECT_EQ(DEVX_BAD_PARAM, out.status());
        EXPECT_EQ(ctx + field.at, out.syndrome());
    }
    for (auto &field : dct) {
        expect_refused(
            devx_mailbox(target).set(dctc + field.at, field.bit, field.bit, 1),
            DEVX_BAD_PARAM, dctc + field.at, "dp_ordering");
    }
    a.connect(b);
}

/* A device that may place received data out of order */
class devx_order : public devx_objects {
protected:
    static constexpr unsigned PAIRS = 100;
    enum { IBTA, OOO_RW, OOO_ALL };

    static devx_rtr rtr(unsigned dp_ordering, bool dp_force, unsigned sl = 0)
    {
        devx_rtr rtr;

        rtr.dp_ordering = dp_ordering;
        rtr.dp_force    = dp_force;
        rtr.sl          = sl;
        return rtr;
    }

    /* Posts pairs of a write and an operation @opcode to the same bytes,
     * between queues with these attributes. Returns true if some of the writes
     * are executed last. */
    bool loses(const devx_rtr &from, const devx_rtr &to, uint8_t opcode)
    {
        devx_rmp rmp(dev, devx_rmp::LIST);
        devx_qp a(dev, rmp), b(dev, rmp);
        unsigned lost = 0;

        a.connect(b, from);
        b.connect(a, to);
        memset(src.addr, 1, 8);
        memset(m_other.addr, 2, 8);
        for (unsigned i = 0; i < PAIRS; i++) {
            raw_wqe second(opcode);
            struct mlx5_err_cqe cqe;

            if (opcode == MLX5_OPCODE_RDMA_WRITE) {
                second.raddr(dst.addr, dst.mr->rkey);
            } else {
                rmp.post_recv(dst.addr, 64, dst.mr->lkey);
            }
            second.data(m_other.addr, 8, m_other.mr->lkey);
            a.post(raw_wqe(MLX5_OPCODE_RDMA_WRITE)
                       .raddr(dst.addr, dst.mr->rkey)
                       .data(src.addr, 8, src.mr->lkey),
                   second);
            for (unsigned j = 0; j < 2; j++) {
                EXPECT_TRUE(a.wait(&cqe));
                EXPECT_EQ(MLX5_CQE_REQ, cqe.op_own >> 4);
            }
            if (opcode != MLX5_OPCODE_RDMA_WRITE) {
                EXPECT_TRUE(b.wait(&cqe));
            }
            lost += (dst.addr[0] == 1);
        }
        return lost > 0;
    }

    bool loses_writes(const devx_rtr &from, const devx_rtr &to)
    {
        return loses(from, to, MLX5_OPCODE_RDMA_WRITE);
    }

    bool loses_messages(const devx_rtr &from, const devx_rtr &to)
    {
        return loses(from, to, MLX5_OPCODE_SEND);
    }

    strict_mem m_other{dev.pd, ACCESS_ALL, 0};
};

TEST_P(devx_order, is_announced)
{
    EXPECT_EQ(3u, caps(0).get(0x10 + 0x38, 22, 21)) << "dp_ordering_ooo_rw";
    EXPECT_EQ(3u, caps(0).get(0x10 + 0x64, 12, 11)) << "dp_ordering_ooo_all";
    EXPECT_EQ(1u, caps(0x20).get(0x10 + 0x10, 23, 23)) << "..._force";
}

/* By default the device may reorder on service levels 0 to 7, unless order is
 * forced. */
TEST_P(devx_order, of_writes_is_lost_where_both_sides_say_so)
{
    const devx_rtr def = rtr(IBTA, false), kept = rtr(IBTA, true);
    const devx_rtr lost = rtr(OOO_RW, true), sl8 = rtr(IBTA, false, 8);

    EXPECT_TRUE(loses_writes(def, def));
    EXPECT_TRUE(loses_writes(lost, def));
    EXPECT_TRUE(loses_writes(lost, lost));
    EXPECT_FALSE(loses_writes(kept, def));
    EXPECT_FALSE(loses_writes(def, kept));
    EXPECT_FALSE(loses_writes(lost, kept));
    EXPECT_FALSE(loses_writes(sl8, sl8));
    EXPECT_TRUE(loses_writes(rtr(OOO_RW, true, 8), sl8));
    EXPECT_TRUE(loses_writes(rtr(OOO_RW, false, 8), sl8));
}

TEST_P(devx_order, of_messages_is_lost_where_both_sides_say_so)
{
    const devx_rtr all = rtr(OOO_ALL, true), rw = rtr(OOO_RW, true);

    EXPECT_TRUE(loses_messages(all, all));
    EXPECT_FALSE(loses_messages(all, rw));
    EXPECT_FALSE(loses_messages(rw, all));
    EXPECT_FALSE(loses_messages(all, rtr(IBTA, false)));
}

TEST_P(devx_order, of_a_target_may_be_kept)
{
    devx_rmp rmp(dev, devx_rmp::LIST);
    raw_cq cq(dev.ctx, 63);
    const devx_mailbox target = devx_dct_in(dev, cq.cq,
                                            rmp.object->out.number());
    streams_dci dci(dev, {.has_streams = false});

    memset(src.addr, 1, 64);
    memset(m_other.addr, 2, 64);
    for (bool is_kept : {false, true}) {
        devx_object dct(dev.ctx,
                        devx_mailbox(target).set(0x14, 24, 24, is_kept));
        unsigned lost = 0;

        ASSERT_NE(nullptr, dct.obj);
        for (unsigned i = 0; i < PAIRS; i++) {
            dci.together([&] {
                for (const auto *from : {&src, &m_other}) {
                    dci.write(0, dct.out.number(), *from, dst.mr->rkey,
                              dst.addr);
                }
            });
            dci.expect(dci.next_id - 2);
            dci.expect(dci.next_id - 1);
            lost += (dst.addr[0] == 1);
        }
        EXPECT_EQ(is_kept, lost == 0);
    }
}

/* A queue pair and a target return the values that they were given. */
TEST_P(devx_order, is_read_back)
{
    devx_rmp rmp(dev, devx_rmp::LIST);
    devx_qp a(dev, rmp), b(dev, rmp);
    devx_mailbox out(0x110), bad(16), dct_out(128);
    constexpr size_t ctx = devx_qp::CTX;

    EXPECT_NE(0, b.modify(b.to_rtr(a, rtr(3, true)), &bad));
    a.connect(b, rtr(OOO_ALL, true));
    b.connect(a, rtr(OOO_RW, false));
    ASSERT_EQ(0, a.query(&out));
    EXPECT_EQ(1u, out.get(ctx + 0x04, 25, 24)) << "dp_ordering_0, ..._force";
    EXPECT_EQ(1u, out.get(ctx + 0x90, 3, 3)) << "dp_ordering_1";
    ASSERT_EQ(0, b.query(&out));
    EXPECT_EQ(2u, out.get(ctx + 0x04, 25, 24));
    EXPECT_EQ(0u, out.get(ctx + 0x90, 3, 3));

    devx_mailbox target = devx_dct_in(dev, a.cq.cq, rmp.object->out.number());
    target.set(0x1c, 12, 11, 3);
    expect_refused(target, DEVX_BAD_PARAM, 0x1c, "dp_ordering");
    target.set(0x1c, 12, 11, 2).set(0x14, 24, 24, 1);
    devx_object dct(dev.ctx, target);
    ASSERT_NE(nullptr, dct.obj);
    devx_mailbox query = devx_mailbox(16, 0x713).put(8, dct.out.number());
    EXPECT_EQ(0, mlx5dv_devx_obj_query(dct.obj, query.bytes.data(), 16,
                                       dct_out.bytes.data(), 128));
    EXPECT_EQ(2u, dct_out.get(0x1c, 12, 11)) << "dp_ordering_0, dp_ordering_1";
    EXPECT_EQ(1u, dct_out.get(0x14, 24, 24)) << "dp_ordering_force";
}

/* --- targets -------------------------------------------------------------- */

TEST_P(devx_objects, target_lives_is_drained_and_ends)
{
    devx_rmp rmp(dev, devx_rmp::LIST);
    raw_cq cq(dev.ctx, 63);
    const devx_mailbox good = devx_dct_in(dev, cq.cq, rmp.object->out.number());
    devx_mailbox out(128);
    devx_object dct(dev.ctx, good);
    devx_mailbox query = devx_mailbox(16, 0x713).put(8, dct.out.number());
    devx_mailbox drain = devx_mailbox(16, 0x712).put(8, dct.out.number());
    hca_log_reader log;

    ASSERT_NE(nullptr, dct.obj);
    EXPECT_EQ(0, mlx5dv_devx_obj_query(dct.obj, query.bytes.data(), 16,
                                       out.bytes.data(), 128));
    EXPECT_EQ(0u, out.get(0x10, 27, 24)) << "active";
    EXPECT_EQ(0x1122334455667788u,
              ((uint64_t)out.word(0x30) << 32) | out.word(0x34));
    EXPECT_EQ(0, mlx5dv_devx_obj_modify(dct.obj, drain.bytes.data(), 16,
                                        out.bytes.data(), 16));
    EXPECT_EQ(0, mlx5dv_devx_obj_query(dct.obj, query.bytes.data(), 16,
                                       out.bytes.data(), 128));
    EXPECT_EQ(2u, out.get(0x10, 27, 24)) << "drained";
    EXPECT_NE(0, mlx5dv_devx_obj_modify(dct.obj, drain.bytes.data(), 16,
                                        out.bytes.data(), 16));
    EXPECT_NE(std::string::npos, log.take().find("that is not active"));
    EXPECT_EQ(EBUSY, ibv_destroy_cq(cq.cq));

    expect_refused(devx_mailbox(good).set(0x38, 26, 24, 0), DEVX_BAD_PARAM,
                   0x38, "no mtu");
    expect_refused(devx_mailbox(good).set(0x38, 23, 16, 2), DEVX_BAD_PARAM,
                   0x38, "port 2");
    expect_refused(devx_mailbox(good).set(0x10, 7, 4, 1), DEVX_BAD_PARAM, 0x10,
                   "tag matching");
    expect_refused(devx_mailbox(good).set(0x24, 23, 0, 0xfffff0), DEVX_BAD_RES,
                   0x24, "unknown srq");
}

/* A CQ with entries of 64 bytes has no room for cs_res 2. */
TEST_P(devx_objects, target_is_read_back)
{
    for (const char *cqe_size : {"64", "128"}) {
        setenv("MLX5_CQE_SIZE", cqe_size, 1);
        devx_rmp rmp(dev, devx_rmp::LIST);
        raw_cq cq(dev.ctx, 63);
        unsetenv("MLX5_CQE_SIZE");

        devx_mailbox in = devx_dct_in(dev, cq.cq, rmp.object->out.number());
        in.set(0x20, 23, 16, 2).set(0x2c, 31, 24, 33).set(0x2c, 19, 0, 0x54321);
        devx_object dct(dev.ctx, in);
        devx_mailbox query = devx_mailbox(16, 0x713).put(8, dct.out.number());
        devx_mailbox out(128);

        ASSERT_NE(nullptr, dct.obj);
        EXPECT_EQ(0, mlx5dv_devx_obj_query(dct.obj, query.bytes.data(), 16,
                                           out.bytes.data(), 128));
        EXPECT_EQ(strcmp(cqe_size, "64") ? 2u : 0u, out.get(0x20, 23, 16))
            << "cs_res";
        EXPECT_EQ(33u, out.get(0x2c, 31, 24)) << "tclass";
        EXPECT_EQ(0x54321u, out.get(0x2c, 19, 0)) << "flow_label";
    }
}

/* A command that the device lacks is logged with its opcode. */
class devx_lacks : public testing::TestWithParam<int> {};

TEST_P(devx_lacks, commands)
{
    hca_device dev;
    hca_log_reader log;

    for (auto row : {std::make_pair(0x710, "0x710"), {0x717, "0x717"}}) {
        devx_object object(dev.ctx, devx_mailbox(0x200, row.first));

        EXPECT_EQ(DEVX_BAD_OP, object.out.status()) << row.second;
        EXPECT_NE(std::string::npos, log.take().find(row.second)) << row.second;
    }
}

class devx_no_memory : public devx_objects {};

TEST_P(devx_no_memory, has_no_capabilities)
{
    devx_mailbox general = caps(0), memory = caps(0x0f);

    EXPECT_EQ(0u, general.get(0x10 + 0x34, 23, 23)) << "device_memory";
    for (unsigned at = 0x10; at < 4112; at += 4) {
        EXPECT_EQ(0u, memory.word(at)) << at;
    }
}

INSTANTIATE_TEST_SUITE_P(lacks, devx_no_memory, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(lacks, devx_lacks, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(ooo, devx_order, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(ib, devx_objects, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(roce, devx_objects, testing::Values(0));

} /* namespace */

/* Has the variants of all test_devx_*.cc: this program is linked of them. */
int main(int argc, char **argv)
{
    return hca_test_main(
        argc, argv,
        {{"ib", {}},
         {"roce", {{"SOFTHCA_LINK", "roce"}, {"SOFTHCA_HAS", "tm_roce"}}},
         {"late", {{"SOFTHCA_DELAY", "20"}}},
         {"slow", {{"SOFTHCA_DELAY", "100000"}}},
         {"lost", {{"SOFTHCA_FAULT", "drop:op=read"}}},
         {"no_rndv", {{"SOFTHCA_LACKS", "tm_rndv_dc"}}},
         {"lacks", {{"SOFTHCA_LACKS", "dc,dm,tm"}}},
         {"ooo", {{"SOFTHCA_ORDER", "ooo"}}},
         {"own_key", {{"SOFTHCA_HAS", "tm_own_key"}}},
         {"no_strides", {{"SOFTHCA_LACKS", "strides"}}},
         {"lost_twice", {{"SOFTHCA_FAULT", "drop_ack:op=send:count=2"}}}});
}
