/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Ports that go down and come up while programs run: events, queries, and
 * messages meanwhile
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
                                                 IBV_PORT_ACTIVE,
                  state(ctx));
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

/* Two messages are lost: one that is never retried, as its timeout is infinite,
 * and the first try of another, whose second try finds the port up. */
class verbs_port_change : public verbs_port {};

TEST_P(verbs_port_change, is_reported_to_every_context)
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
            hca_device late; /* opened while it is down: no event */

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

/* The fault counts writes; a port that is down stops everything. */
class verbs_port_down : public verbs_port {};

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
    EXPECT_FALSE(verbs_readable(dev.ctx->async_fd, 0)) << "a second event";
}

INSTANTIATE_TEST_SUITE_P(ib_down, verbs_port_down, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(roce_down, verbs_port_down, testing::Values(0));

/* --- the process that keeps a port down ----------------------------------- */

class verbs_port_kept : public verbs_port {};

/* Puts the port down with its third write and waits to be killed. */
void keep_down(int fd)
{
    hca_device dev;
    strict_mem src(dev.pd, ACCESS_ALL, 0x11), dst(dev.pd, ACCESS_ALL, 0);
    verbs_pair pair(dev);

    for (int i = 0; i < 3; i++) {
        verbs_op write = verbs_op(IBV_WR_RDMA_WRITE)
                             .local(src, 64)
                             .remote((uintptr_t)dst.addr, dst.mr->rkey);

        HCA_CHECK_CALL(write.post(pair.a.qp) == 0);
        verbs_wait(pair.a.send_cq);
    }
    peer_meet(fd);
    peer_wait_for_the_end(fd);
}

TEST_P(verbs_port_kept, comes_up_when_its_keeper_is_killed)
{
    peer_process peer(keep_down);

    peer_meet(peer.fd);
    expect_event(dev.ctx, IBV_EVENT_PORT_ERR);
    kill(peer.pid, SIGKILL);
    expect_event(dev.ctx, IBV_EVENT_PORT_ACTIVE);
}

/* On a fabric without this process, so that nothing else is affected */
void keep_down_elsewhere(int fd)
{
    setenv("SOFTHCA_FABRIC", "elsewhere", 1);
    keep_down(fd);
}

void come_late_elsewhere(int fd)
{
    setenv("SOFTHCA_FABRIC", "elsewhere", 1);
    peer_meet(fd);
    hca_device dev;
    EXPECT_EQ(IBV_PORT_DOWN, dev.port.state);
    peer_meet(fd);
    EXPECT_EQ(IBV_EVENT_PORT_ACTIVE, verbs_event(dev.ctx).event_type);
}

TEST_P(verbs_port_kept, comes_up_for_later_processes)
{
    peer_process late(come_late_elsewhere), peer(keep_down_elsewhere);

    peer_meet(peer.fd);
    peer_meet(late.fd);
    peer_meet(late.fd);
    kill(peer.pid, SIGKILL);
    EXPECT_EQ(0, late.wait());
    EXPECT_FALSE(verbs_readable(dev.ctx->async_fd, 0));
}

INSTANTIATE_TEST_SUITE_P(ib_kept, verbs_port_kept, testing::Values(0));

/* A message of the first device is lost; the next one, of the second device,
 * ends the fault. */
class verbs_port_two : public verbs_port {};

TEST_P(verbs_port_two, comes_up_though_another_device_sends_next)
{
    hca_device second(1);
    strict_mem mem(second.pd, ACCESS_ALL, 0);
    verbs_options options;

    options.timeout = 0; /* not retried */
    verbs_pair lost(dev, options), next(second);
    ASSERT_EQ(0, write().post(lost.a.qp));
    expect_event(dev.ctx, IBV_EVENT_PORT_ERR);
    EXPECT_EQ(IBV_PORT_ACTIVE, state(second.ctx));
    EXPECT_EQ(IBV_WC_SUCCESS,
              run(next.a, verbs_op(IBV_WR_RDMA_WRITE)
                              .local(mem, 64)
                              .remote((uintptr_t)mem.addr, mem.mr->rkey)));
    expect_event(dev.ctx, IBV_EVENT_PORT_ACTIVE);
    EXPECT_FALSE(verbs_readable(second.ctx->async_fd, 0));
}

INSTANTIATE_TEST_SUITE_P(ib_two, verbs_port_two, testing::Values(0));

} /* namespace */

int main(int argc, char **argv)
{
    const char *change = "port_down:op=write:nth=2:count=2";
    const char *down   = "port_down:op=write:nth=3:count=0";

    return hca_test_main(
        argc, argv,
        {
            {"ib_change", {{"SOFTHCA_FAULT", change}}},
            {"roce_change",
             {{"SOFTHCA_FAULT", change}, {"SOFTHCA_LINK", "roce"}}},
            {"ib_down", {{"SOFTHCA_FAULT", down}}},
            {"roce_down", {{"SOFTHCA_FAULT", down}, {"SOFTHCA_LINK", "roce"}}},
            {"ib_kept", {{"SOFTHCA_FAULT", down}}},
            {"ib_two",
             {{"SOFTHCA_FAULT", "port_down:op=write"},
              {"SOFTHCA_DEVICES", "2"}}},
        });
}
