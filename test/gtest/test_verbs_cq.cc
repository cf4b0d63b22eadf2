/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Completion queues: resized, with events, with moderated events, and extended
 * ones with time stamps. Part of the program of test_verbs_objects.cc.
 */
#include "verbs_peer.h"

#include <algorithm>

namespace {

class verbs_cqs : public verbs_test {};

TEST_P(verbs_cqs, resized_cq_keeps_what_is_pending)
{
    verbs_pair pair(dev);
    uint64_t wr_id = 1;

    for (int cqe : {15, 255, 31, 1023, 7}) {
        for (uint64_t i = 0; i < 5; i++) {
            ASSERT_EQ(0, write(wr_id + i).post(pair.a.qp));
        }
        ASSERT_EQ(0, ibv_resize_cq(pair.a.send_cq, cqe));
        EXPECT_EQ(cqe, pair.a.send_cq->cqe);
        verbs_expect_wcs(pair.a.send_cq, IBV_WC_SUCCESS, wr_id, wr_id + 4);
        EXPECT_TRUE(verbs_is_empty(pair.a.send_cq));
        wr_id += 5;
    }
}

TEST_P(verbs_cqs, solicited_event_waits_for_a_solicited_message)
{
    struct ibv_comp_channel *channel = ibv_create_comp_channel(dev.ctx);
    verbs_options options;

    options.channel = channel;
    {
        verbs_pair pair(dev, options);
        for (uint64_t i = 0; i < 4; i++) {
            ASSERT_EQ(0, verbs_recv(pair.b.qp, dst, 64, i));
        }
        ASSERT_EQ(0, ibv_req_notify_cq(pair.b.recv_cq, 1));
        EXPECT_EQ(IBV_WC_SUCCESS, run(pair.a, send()));
        EXPECT_FALSE(verbs_readable(channel->fd, 0));
        EXPECT_EQ(
            IBV_WC_SUCCESS,
            run(pair.a, send().flags(IBV_SEND_SIGNALED | IBV_SEND_SOLICITED)));
        verbs_expect_event(channel, pair.b.recv_cq);
        EXPECT_EQ(IBV_WC_SUCCESS, run(pair.a, send()));
        EXPECT_FALSE(verbs_readable(channel->fd, 0)) << "not armed again";
        ASSERT_EQ(0, ibv_req_notify_cq(pair.b.recv_cq, 0));
        verbs_expect_event(channel, pair.b.recv_cq); /* it came before */
    }
    EXPECT_EQ(0, ibv_destroy_comp_channel(channel));
}

/* Writes the same as mlx5_arm_cq(), to any page and with any number. */
void store_arm(void *page, uint32_t cqn)
{
    const uint64_t value = htobe64((1ull << 60) | cqn);

    *(volatile uint64_t *)((char *)page + 0x20) = value;
}

TEST_P(verbs_cqs, event_request_that_names_no_queue_of_its_page_is_void)
{
    struct ibv_comp_channel *channel = ibv_create_comp_channel(dev.ctx);
    struct mlx5dv_devx_uar *other    = mlx5dv_devx_alloc_uar(dev.ctx, 0);
    struct mlx5dv_obj obj            = {};
    struct mlx5dv_cq cq              = {};
    verbs_options options;
    hca_log_reader log;

    ASSERT_NE(nullptr, other);
    options.channel = channel;
    {
        verbs_pair pair(dev, {}, options);
        obj.cq.in  = pair.b.recv_cq;
        obj.cq.out = &cq;
        ASSERT_EQ(0, mlx5dv_init_obj(&obj, MLX5DV_OBJ_CQ));
        ASSERT_EQ(0, verbs_recv(pair.b.qp, dst, 64));
        cq.dbrec[1] = htobe32(1u << 28);
        store_arm(cq.cq_uar, cq.cqn ^ 0x800000);
        store_arm(other->base_addr, cq.cqn);
        EXPECT_EQ(IBV_WC_SUCCESS, run(pair.a, send()));
        EXPECT_FALSE(verbs_readable(channel->fd, 0));
        std::string text = log.take();
        EXPECT_EQ(2, std::count(text.begin(), text.end(), '\n')) << text;
        EXPECT_NE(std::string::npos, text.find("register: cqn is 0x")) << text;

        store_arm(cq.cq_uar, cq.cqn);
        EXPECT_TRUE(verbs_readable(channel->fd, 0)) << "it came before";
        verbs_expect_event(channel, pair.b.recv_cq);
        EXPECT_EQ("", log.take());
    }
    mlx5dv_devx_free_uar(other);
    EXPECT_EQ(0, ibv_destroy_comp_channel(channel));
}

/* A CQ whose events are delayed for 4 messages or 4 ms */
class verbs_moderation : public verbs_cqs {
protected:
    static constexpr uint16_t count = 4, period_us = 4000;
    static constexpr uint16_t max_period_us = 4095; /* of the PRM's field */

    verbs_moderation()
    {
        verbs_options options;

        options.channel = channel;
        pair            = std::make_unique<verbs_pair>(dev, options);
        moderate(count, period_us);
    }

    ~verbs_moderation()
    {
        pair.reset();
        EXPECT_EQ(0, ibv_destroy_comp_channel(channel));
    }

    void moderate(uint16_t after, uint16_t us)
    {
        struct ibv_modify_cq_attr attr = {IBV_CQ_ATTR_MODERATE, {after, us}};

        EXPECT_EQ(0, ibv_modify_cq(pair->b.recv_cq, &attr));
    }

    /* Requests an event and sends @num messages.
     * @return the time at which the first one was posted */
    uint64_t messages(unsigned num)
    {
        uint64_t start;

        for (unsigned i = 0; i < num; i++) {
            EXPECT_EQ(0, verbs_recv(pair->b.qp, dst, 64));
        }
        EXPECT_EQ(0, ibv_req_notify_cq(pair->b.recv_cq, 0));
        start = time_now_us();
        for (unsigned i = 0; i < num; i++) {
            EXPECT_EQ(IBV_WC_SUCCESS, run(pair->a, send()));
        }
        return start;
    }

    void take_event()
    {
        verbs_expect_event(channel, pair->b.recv_cq);
        EXPECT_TRUE(hca_until([&] { return verbs_is_empty(pair->b.recv_cq); }));
    }

    struct ibv_comp_channel *channel = ibv_create_comp_channel(dev.ctx);
    std::unique_ptr<verbs_pair> pair;
};

TEST_P(verbs_moderation, event_comes_with_the_last_of_the_count)
{
    /* a round that took a whole period proves nothing */
    EXPECT_TRUE(hca_until([&] {
        uint64_t start = messages(count);
        bool came      = verbs_readable(channel->fd, 0);
        bool in_time   = time_now_us() - start < period_us;

        take_event();
        return (came && in_time) || HasFailure();
    }));
}

TEST_P(verbs_moderation, event_comes_after_the_period)
{
    uint64_t start = messages(count - 1);

    take_event();
    EXPECT_LE(period_us, time_now_us() - start);
}

/* The fixture in a forked child */
class moderation_in_child : public verbs_moderation {
public:
    void TestBody() override
    {
        moderate(2, max_period_us);
        EXPECT_TRUE(hca_until([&] {
            messages(1);
            bool came = verbs_readable(channel->fd, 0);

            take_event();
            return !came || HasFailure();
        }));
    }
};

void moderate_in_child(int)
{
    moderation_in_child().TestBody();
}

/* Each event that comes before its period leaves a timer behind for that long.
 * The parent uses as many as the device of a process has. */
TEST_P(verbs_moderation, timers_of_the_parent_are_not_the_childs)
{
    moderate(2, max_period_us);
    for (int round = 0; round < 100; round++) {
        uint64_t start = time_now_us();

        for (int i = 0; i < 64; i++) {
            messages(2);
            take_event();
        }
        if (time_now_us() - start < max_period_us / 2) {
            break;
        }
    }
    EXPECT_EQ(0, peer_process(moderate_in_child).wait());
}

/* An extended CQ with length and time, and a pair that uses it */
class verbs_extended_cq : public verbs_cqs {
protected:
    verbs_extended_cq()
    {
        struct ibv_cq_init_attr_ex attr = {};
        verbs_options options;

        attr.cqe      = 16;
        attr.wc_flags = IBV_WC_EX_WITH_BYTE_LEN |
                        IBV_WC_EX_WITH_COMPLETION_TIMESTAMP;
        HCA_CHECK_CALL((cq = ibv_create_cq_ex(dev.ctx, &attr)) != NULL);
        options.send_cq = ibv_cq_ex_to_cq(cq);
        pair = std::make_unique<verbs_pair>(dev, options, verbs_options());
    }

    ~verbs_extended_cq()
    {
        pair.reset();
        EXPECT_EQ(0, ibv_destroy_cq(ibv_cq_ex_to_cq(cq)));
    }

    /* Runs a read, and returns the time of its completion. */
    uint64_t read_at(uint64_t wr_id)
    {
        struct ibv_poll_cq_attr attr = {};
        uint64_t ticks;

        EXPECT_EQ(0, verbs_op(IBV_WR_RDMA_READ, wr_id)
                         .local(src, 64)
                         .remote(dst)
                         .post(pair->a.qp));
        if (!hca_until([&] { return ibv_start_poll(cq, &attr) == 0; })) {
            ADD_FAILURE() << "no completion";
            return 0;
        }
        EXPECT_EQ(wr_id, cq->wr_id);
        EXPECT_EQ(IBV_WC_SUCCESS, cq->status);
        EXPECT_EQ(IBV_WC_RDMA_READ, ibv_wc_read_opcode(cq));
        EXPECT_EQ(64u, ibv_wc_read_byte_len(cq));
        ticks = ibv_wc_read_completion_ts(cq);
        EXPECT_EQ(ENOENT, ibv_next_poll(cq));
        ibv_end_poll(cq);
        return ticks;
    }

    struct ibv_cq_ex *cq;
    std::unique_ptr<verbs_pair> pair;
};

TEST_P(verbs_extended_cq, timestamps_run_at_the_rate_of_the_device)
{
    struct ibv_device_attr_ex attr;
    uint64_t outer, inner, ticks, us;

    ASSERT_EQ(0, ibv_query_device_ex(dev.ctx, NULL, &attr));
    outer = time_now_us();
    ticks = read_at(1);
    inner = time_now_us();
    EXPECT_TRUE(hca_until([&] { return time_now_us() - inner > 5000; }));
    inner = time_now_us() - inner;
    ticks = read_at(2) - ticks;
    outer = time_now_us() - outer;
    /* within one percent, as clocks differ */
    us = ticks * 1000 / attr.hca_core_clock;
    EXPECT_LE(inner - inner / 100, us);
    EXPECT_GE(outer + outer / 100 + 1, us);
}

TEST_P(verbs_extended_cq, timestamps_are_of_the_clock_that_can_be_queried)
{
    const auto clock = [this] {
        struct ibv_values_ex values = {IBV_VALUES_MASK_RAW_CLOCK, {}};

        EXPECT_EQ(0, ibv_query_rt_values_ex(dev.ctx, &values));
        EXPECT_EQ((uint32_t)IBV_VALUES_MASK_RAW_CLOCK, values.comp_mask);
        return (uint64_t)values.raw_clock.tv_nsec;
    };
    uint64_t before = clock(), ticks = read_at(1), after = clock();

    EXPECT_LT(before, ticks);
    EXPECT_LT(ticks, after);
}

INSTANTIATE_TEST_SUITE_P(ib, verbs_cqs, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(roce, verbs_cqs, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(ib, verbs_moderation, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(ib, verbs_extended_cq, testing::Values(0));

} /* namespace */
