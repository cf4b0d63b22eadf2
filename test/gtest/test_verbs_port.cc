/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Ports that go down and come up while programs run: who is told, what a
 * query says, and what passes meanwhile.
 */
#include "verbs_peer.h"

namespace {

class verbs_port : public verbs_test {
protected:
    static enum ibv_port_state state(struct ibv_context *ctx)
    {
        struct ibv_port_attr attr;

        HCA_CHECK_CALL(ibv_query_port(ctx, 1, &attr) == 0);
        return attr.state;
    }

    static void expect_event(struct ibv_context *ctx, enum ibv_event_type type)
    {
        struct ibv_async_event event = verbs_event(ctx);

        EXPECT_EQ(type, event.event_type);
        EXPECT_EQ(1, event.element.port_num);
        EXPECT_EQ((type == IBV_EVENT_PORT_ERR) ? IBV_PORT_DOWN :
                                                 IBV_PORT_ACTIVE, state(ctx));
    }
};

/* Another process with the device open */
void listen(int fd)
{
    hca_device dev;

    peer_meet(fd);
    EXPECT_EQ(IBV_EVENT_PORT_ERR, verbs_event(dev.ctx).event_type);
    peer_meet(fd);
    EXPECT_EQ(IBV_EVENT_PORT_ACTIVE, verbs_event(dev.ctx).event_type);
    EXPECT_FALSE(verbs_readable(dev.ctx->async_fd, 0));
}

/* Two messages are lost: one that nobody repeats (its timeout is for ever) and
 * the first try of another, whose second finds the port up. */
class verbs_port_change : public verbs_port {
};

TEST_P(verbs_port_change, is_told_to_every_context)
{
    verbs_options patient, stubborn;
    peer_process peer(listen);

    {
        hca_device other;

        patient.timeout    = 0;
        stubborn.retry_cnt = 7;
        verbs_pair waits(dev, patient), tries(dev, stubborn);
        peer_meet(peer.fd);
        EXPECT_EQ(IBV_WC_SUCCESS, run(tries.a, write()));
        EXPECT_EQ(IBV_PORT_ACTIVE, state(dev.ctx));

        ASSERT_EQ(0, write().post(waits.a.qp));
        expect_event(dev.ctx, IBV_EVENT_PORT_ERR);
        expect_event(other.ctx, IBV_EVENT_PORT_ERR);
        peer_meet(peer.fd);
        {
            hca_device late; /* opens while it is down, hears of no change */

            EXPECT_EQ(IBV_PORT_DOWN, state(late.ctx));
            EXPECT_FALSE(verbs_readable(late.ctx->async_fd, 0));
        }

        EXPECT_EQ(IBV_WC_SUCCESS, run(tries.a, write()));
        expect_event(dev.ctx, IBV_EVENT_PORT_ACTIVE);
        expect_event(other.ctx, IBV_EVENT_PORT_ACTIVE);
        EXPECT_TRUE(verbs_is_empty(waits.a.send_cq));
    }
    EXPECT_EQ(0, peer.wait());
}

INSTANTIATE_TEST_SUITE_P(ib_change, verbs_port_change, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(roce_change, verbs_port_change, testing::Values(0));

/* The rule is about writes; the port is closed to everything. */
class verbs_port_down : public verbs_port {
};

TEST_P(verbs_port_down, lets_nothing_pass)
{
    verbs_pair known(dev), other(dev), back(dev);

    EXPECT_EQ(IBV_WC_SUCCESS, run(known.a, write()));
    EXPECT_EQ(IBV_WC_SUCCESS, run(back.b, write()));
    ASSERT_EQ(0, verbs_recv(known.b.qp, dst, 64));
    EXPECT_EQ(IBV_WC_RETRY_EXC_ERR, run(other.a, write()));
    expect_event(dev.ctx, IBV_EVENT_PORT_ERR);
    EXPECT_EQ(IBV_WC_RETRY_EXC_ERR, run(known.a, send()));
    EXPECT_EQ(IBV_WC_RETRY_EXC_ERR, run(back.b, write()));
    EXPECT_TRUE(verbs_is_empty(known.b.recv_cq));
    EXPECT_FALSE(verbs_readable(dev.ctx->async_fd, 0)) << "it was told once";
}

INSTANTIATE_TEST_SUITE_P(ib_down, verbs_port_down, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(roce_down, verbs_port_down, testing::Values(0));

} /* namespace */

int main(int argc, char **argv)
{
    const char *change = "port_down:op=write:nth=2:count=2";
    const char *down   = "port_down:op=write:nth=3:count=0";

    return hca_test_main(argc, argv, {
        {"ib_change", {{"SOFTHCA_FAULT", change}}},
        {"roce_change", {{"SOFTHCA_FAULT", change}, {"SOFTHCA_LINK", "roce"}}},
        {"ib_down", {{"SOFTHCA_FAULT", down}}},
        {"roce_down", {{"SOFTHCA_FAULT", down}, {"SOFTHCA_LINK", "roce"}}},
    });
}
