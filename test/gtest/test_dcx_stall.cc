/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * A peer that blocks its sender, with any policy: it is stopped without free
 * receive buffers, or dead. Other endpoints continue, except those on the same
 * initiator; these continue when the peer is given up.
 */
#include "dcx_child.h"
#include "dcx_crowd.h"
#include "dcx_end.h"

#include <memory>
#include <poll.h>

namespace {

class dcx_stall : public testing::TestWithParam<const char *> {
protected:
    static constexpr unsigned num_others = 20, num_ops = 5000;

    dcx_stall() { setenv("UCX_DCX_TX_POLICY", GetParam(), 1); }

    ~dcx_stall()
    {
        m_others.reset();
        for (uct_ep_h ep : m_eps) {
            uct_ep_destroy(ep);
        }
        for (const auto &name : m_env) {
            unsetenv(name.c_str());
        }
        unsetenv("UCX_DCX_TX_POLICY");
    }

    void set(const char *name, const char *value)
    {
        setenv(name, value, 1);
        m_env.push_back(name);
    }

    bool is_shared() const { return !strcmp(GetParam(), "rand"); }

    /* The peer is a process that makes no progress. */
    void open()
    {
        m_peer.reset(new dcx_child);
        m_live.reset(new live_peer);
        m_dcx.reset(new dcx_loop);
        m_dcx->survives_errors = true;
        UCT_CALL(
            m_dcx->create_ep(m_peer->dev_addr, m_peer->iface_addr, 0, &m_bad));
        m_eps.push_back(m_bad);
    }

    /* Adds endpoints to the live peer, for messages, puts and gets in turn. On
     * the initiator of the bad peer, if that is shared, each only posts a put,
     * which waits for the bad peer. */
    void add_others()
    {
        static const enum dcx_crowd_op ops[] = {DCX_CROWD_AM, DCX_CROWD_PUT,
                                                DCX_CROWD_GET};
        unsigned count                       = 0;

        m_others.reset(new dcx_crowd(*m_dcx, *m_live));
        dcx_deadline deadline;

        while (count < num_others) {
            deadline.check("an endpoint on another initiator");
            uct_ep_h ep = m_dcx->make_ep(m_live->loop);

            if (is_shared() && m_has_behind &&
                (dcx_peek_place(ep) == dcx_peek_place(m_bad))) {
                m_eps.push_back(ep);
                put(ep, m_behind);
            } else {
                m_others->add(ep, ops[count++ % 3]);
            }
        }
        EXPECT_EQ(is_shared() && m_has_behind, !m_behind.empty());
    }

    void put(uct_ep_h ep, std::list<dcx_end> &ends)
    {
        uct_iov_t iov = {};

        iov.buffer = m_dcx->mem.data();
        iov.length = 512;
        iov.memh   = m_dcx->memh;
        iov.count  = 1;
        ends.emplace_back();
        EXPECT_EQ(UCS_INPROGRESS,
                  uct_ep_put_zcopy(
                      ep, &iov, 1, (uintptr_t)m_live->loop.mem.data(),
                      dcx_peek_rkey(m_live->loop.memh), &ends.back().comp));
    }

    /* Sends more messages than the peer has buffers for. */
    void overrun()
    {
        dcx_deadline deadline;

        ASSERT_EQ(0, kill(m_peer->pid, SIGSTOP));
        for (unsigned sent = 0; sent < 70;) {
            if (uct_ep_am_short(m_bad, 6, 0, NULL, 0) == UCS_OK) {
                sent++;
            } else {
                deadline.check("resources for a message");
                uct_worker_progress(m_dcx->worker);
            }
        }
        while (uct_worker_progress(m_dcx->worker) > 0) {
            deadline.check("an idle interface");
        }
    }

    /* Runs @count operations of the other endpoints. Checks that all end before
     * the bad peer fails. */
    void expect_others_go_on(unsigned count = num_ops)
    {
        m_others->run(count, DCX_CROWD_LEAVES);
        m_others->drain();
        m_others->expect_received();
        EXPECT_LE(count, m_others->total());
        EXPECT_EQ(0u, m_dcx->errors.size());
        for (const auto &end : m_behind) {
            EXPECT_EQ(0u, end.count);
        }
    }

    void expect_error()
    {
        struct pollfd fd = {.fd = 0, .events = POLLIN, .revents = 0};

        dcx_deadline deadline;

        UCT_CALL(uct_iface_event_fd_get(m_dcx->iface, &fd.fd));
        while (m_dcx->errors.empty()) {
            deadline.check("the error");
            if (uct_worker_progress(m_dcx->worker) == 0 &&
                (uct_iface_event_arm(m_dcx->iface, UCT_EVENT_SEND_COMP) ==
                 UCS_OK)) {
                ASSERT_LT(0, poll(&fd, 1, time_slow(TIME_WAIT)));
            }
        }
        m_dcx->flush();
        EXPECT_EQ(std::vector<ucs_status_t>{UCS_ERR_ENDPOINT_TIMEOUT},
                  m_dcx->errors);
        for (const auto &end : m_behind) {
            EXPECT_EQ(1u, end.count);
            EXPECT_EQ(UCS_OK, end.status);
        }
    }

    std::unique_ptr<dcx_child> m_peer;
    std::unique_ptr<live_peer> m_live;
    std::unique_ptr<dcx_loop> m_dcx;
    std::unique_ptr<dcx_crowd> m_others;
    std::list<uct_ep_h> m_eps;
    std::list<dcx_end> m_behind;
    uct_ep_h m_bad    = NULL;
    bool m_has_behind = true;
    std::vector<std::string> m_env;
};

/* The device retries without limit until the peer is killed. */
TEST_P(dcx_stall, no_receive_buffers)
{
    set("UCX_DCX_NUM_DCI", "2");
    set("UCX_DCX_FC_ENABLE", "n");
    set("UCX_DCX_TIMEOUT", "1ms");
    open();
    overrun();
    add_others();
    expect_others_go_on();
    m_peer->kill();
    expect_error();
}

/* The error takes about a second, in which the others have to finish work of
 * some milliseconds. */
TEST_P(dcx_stall, killed)
{
    std::list<dcx_end> ends;

    set("UCX_DCX_NUM_DCI", "2");
    set("UCX_DCX_TIMEOUT", "500ms");
    open();
    m_peer->kill();
    put(m_bad, ends);
    add_others();
    expect_others_go_on(num_ops / 10);
    EXPECT_EQ(0u, ends.back().count);
    expect_error();
    EXPECT_EQ(UCS_ERR_ENDPOINT_TIMEOUT, ends.back().status);
}

class dcx_stall_fc : public dcx_stall {};

/* With flow control the peer occupies no initiator: one is enough for all. */
TEST_P(dcx_stall_fc, stopped)
{
    uct_pending_req_t request = {};

    set("UCX_DCX_NUM_DCI", "1");
    set("UCX_DCX_TIMEOUT", "1ms");
    set("UCX_DCX_FC_RESEND_TIMEOUT", "10ms");
    open();
    ASSERT_EQ(0, kill(m_peer->pid, SIGSTOP));
    while (uct_ep_am_short(m_bad, 6, 0, NULL, 0) == UCS_OK) {
    }
    request.func = [](uct_pending_req_t *) { return UCS_ERR_NO_RESOURCE; };
    ASSERT_EQ(UCS_OK, uct_ep_pending_add(m_bad, &request, 0));
    m_has_behind = false;
    add_others();
    expect_others_go_on();
    m_peer->kill();
    expect_error(); /* asleep, except for the timer of flow control */
    uct_ep_pending_purge(m_bad, NULL, NULL);
}

/* Others continue before, during and after the time until the death is
 * found. */
TEST_P(dcx_stall_fc, killed_in_the_middle)
{
    std::list<dcx_end> ends;

    set("UCX_DCX_NUM_DCI", "2");
    set("UCX_DCX_TIMEOUT", "1ms");
    open();
    m_has_behind = false;
    add_others();
    m_others->run(num_ops, DCX_CROWD_LEAVES);
    m_others->drain();
    m_peer->kill();
    put(m_bad, ends);
    put(m_bad, ends);
    m_others->run(num_ops, DCX_CROWD_STAYS);
    m_others->drain();
    m_dcx->flush();
    EXPECT_EQ(std::vector<ucs_status_t>{UCS_ERR_ENDPOINT_TIMEOUT},
              m_dcx->errors);
    for (const auto &end : ends) {
        EXPECT_EQ(1u, end.count);
        EXPECT_EQ(UCS_ERR_ENDPOINT_TIMEOUT, end.status);
    }
    m_others->expect_received();
}

std::string name_of(const testing::TestParamInfo<const char *> &info)
{
    return info.param;
}

/* Without "hw_dcs": all of its endpoints share one initiator */
INSTANTIATE_TEST_SUITE_P(any, dcx_stall,
                         testing::Values("dcs", "dcs_quota", "rand"), name_of);
INSTANTIATE_TEST_SUITE_P(any, dcx_stall_fc,
                         testing::Values("dcs", "dcs_quota", "rand", "hw_dcs"),
                         name_of);

} /* namespace */

int main(int argc, char **argv)
{
    return hca_test_main(argc, argv,
                         {{"any",
                           {{"UCX_DCX_TX_QUEUE_LEN", "16"},
                            {"UCX_DCX_RX_QUEUE_LEN", "64"},
                            {"UCX_DCX_SEG_SIZE", "512"},
                            {"UCX_DCX_RETRY_COUNT", "1"},
                            {"UCX_DCX_RAND_SEED", "1"},
                            {"UCX_LOG_LEVEL", "fatal"}}}});
}
