/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Fairness and deadlocks. 1,000 endpoints that always have something to send
 * share 4 initiators: none starves. Two sides with one initiator each, which
 * does one read at a time: no endpoint holds one resource while it waits for
 * another. Policy "dcs" is only fair if flow control makes endpoints pause: an
 * endpoint that never pauses keeps its initiator.
 */
#include "dcx_crowd.h"

#include <memory>

namespace {

class dcx_fair_base : public testing::Test {
protected:
    static constexpr unsigned num_eps = 1000;

    dcx_fair_base(const char *policy) :
        m_is_shared(!strcmp(policy, "rand") || !strcmp(policy, "hw_dcs"))
    {
        setenv("UCX_DCX_TX_POLICY", policy, 1);
        m_live.reset(new live_peer);
        open();
    }

    ~dcx_fair_base()
    {
        m_crowd.reset();
        unsetenv("UCX_DCX_TX_POLICY");
    }

    void open()
    {
        m_crowd.reset();
        m_dcx.reset(new dcx_loop);
        m_crowd.reset(new dcx_crowd(*m_dcx, *m_live));
    }

    /* Runs endpoints with these operations, in each manner @count per endpoint
     * on average, and checks that they are fair. If @receive_every is more than
     * 1, the receiver is slow. Then, with flow control, messages wait for
     * credits, so that each kind of operation is only fair in itself. Without,
     * a message that meets no buffer blocks its initiator until the device's
     * timer ends, and endpoints on it are behind the others: if endpoints share
     * initiators, each initiator is fair in itself; otherwise the endpoints
     * without an initiator are. */
    void run(const std::vector<enum dcx_crowd_op> &ops, unsigned count = 100,
             unsigned receive_every = 1)
    {
        for (unsigned i = 0; i < num_eps; i++) {
            m_crowd->add(ops[i % ops.size()]);
        }
        for (auto manner : {DCX_CROWD_STAYS, DCX_CROWD_LEAVES}) {
            SCOPED_TRACE(manner);
            m_crowd->run(num_eps * count, manner, receive_every);
        }
        if (receive_every == 1) {
            m_crowd->expect_fair_kinds();
            m_crowd->expect_fair();
        } else if (m_is_shared) {
            m_crowd->expect_fair_places();
        } else if (!dcx_peek_has_fc(m_dcx->iface)) {
            m_crowd->expect_fair_waiting();
        } else {
            m_crowd->expect_fair_kinds();
        }
        m_crowd->drain();
        m_crowd->expect_received();
    }

    std::unique_ptr<live_peer> m_live;
    std::unique_ptr<dcx_loop> m_dcx;
    std::unique_ptr<dcx_crowd> m_crowd;

private:
    const bool m_is_shared; /* endpoints share initiators, and keep theirs */
};

class dcx_fair : public dcx_fair_base,
                 public testing::WithParamInterface<const char *> {
protected:
    dcx_fair() : dcx_fair_base(GetParam()) {}
};

TEST_P(dcx_fair, messages)
{
    run({DCX_CROWD_AM});
}

TEST_P(dcx_fair, puts)
{
    run({DCX_CROWD_PUT});
}

TEST_P(dcx_fair, long_beside_short)
{
    run({DCX_CROWD_AM, DCX_CROWD_AM, DCX_CROWD_PUT, DCX_CROWD_AM,
         DCX_CROWD_GET});
}

/* Each endpoint has up to 8 operations outstanding, fewer than its quota, and
 * posts the next one as soon as one has completed. */
TEST_P(dcx_fair, windows)
{
    setenv("UCX_DCX_TX_MAX_POLL", "4", 1);
    open();
    unsetenv("UCX_DCX_TX_MAX_POLL");
    m_crowd->window = 8;
    run({DCX_CROWD_GET, DCX_CROWD_PUT});
}

/* Few endpoints with long operations beside many with short messages */
TEST_P(dcx_fair, few_long_beside_many_short)
{
    std::vector<enum dcx_crowd_op> ops(100, DCX_CROWD_AM);

    ops[7] = DCX_CROWD_PUT;
    ops[8] = DCX_CROWD_GET;
    run(ops);
}

INSTANTIATE_TEST_SUITE_P(fc, dcx_fair,
                         testing::Values("dcs_quota", "rand", "hw_dcs"));
INSTANTIATE_TEST_SUITE_P(no_fc, dcx_fair,
                         testing::Values("dcs_quota", "rand", "hw_dcs"));

/* A slow receiver. Without flow control, the device retries messages that meet
 * no buffer. */
class dcx_fair_slow : public dcx_fair {};

TEST_P(dcx_fair_slow, messages)
{
    run({DCX_CROWD_AM}, 100, 5);
}

INSTANTIATE_TEST_SUITE_P(fc, dcx_fair_slow,
                         testing::Values("dcs_quota", "rand"));
INSTANTIATE_TEST_SUITE_P(no_fc, dcx_fair_slow,
                         testing::Values("dcs_quota", "rand", "hw_dcs"));

/* --- defaults of flow control --------------------------------------------- */

/* Policy, operations per endpoint on average, and rounds of the senders for
 * each round of the receiver: more than 1 for a slow receiver */
using fair_case = std::tuple<const char *, unsigned, unsigned>;

class dcx_fair_defaults : public dcx_fair_base,
                          public testing::WithParamInterface<fair_case> {
protected:
    dcx_fair_defaults() : dcx_fair_base(std::get<0>(GetParam())) {}

    void run(const std::vector<enum dcx_crowd_op> &ops)
    {
        auto [policy, mean, receive_every] = GetParam();

        dcx_fair_base::run(ops, mean / 2, receive_every);
    }
};

TEST_P(dcx_fair_defaults, messages)
{
    run({DCX_CROWD_AM});
}

/* Fair even with "dcs": an endpoint without credits releases its initiator. */
INSTANTIATE_TEST_SUITE_P(defaults, dcx_fair_defaults,
                         testing::Combine(testing::Values("dcs", "dcs_quota"),
                                          testing::Values(50, 200),
                                          testing::Values(1, 5)));

class dcx_fair_defaults_rand : public dcx_fair_defaults {};

TEST_P(dcx_fair_defaults_rand, messages)
{
    run({DCX_CROWD_AM});
}

/* New endpoints can send far more without a grant than a slow receiver has
 * buffers for: the device retries their messages. */
INSTANTIATE_TEST_SUITE_P(defaults, dcx_fair_defaults_rand,
                         testing::Combine(testing::Values("rand"),
                                          testing::Values(50, 200),
                                          testing::Values(1, 5)));

class dcx_fair_defaults_rma : public dcx_fair_defaults {};

TEST_P(dcx_fair_defaults_rma, puts)
{
    run({DCX_CROWD_PUT});
}

TEST_P(dcx_fair_defaults_rma, gets)
{
    run({DCX_CROWD_GET});
}

INSTANTIATE_TEST_SUITE_P(defaults, dcx_fair_defaults_rma,
                         testing::Combine(testing::Values("dcs_quota", "rand"),
                                          testing::Values(50, 200),
                                          testing::Values(1)));

class dcx_fair_defaults_all : public dcx_fair_defaults {};

TEST_P(dcx_fair_defaults_all, kinds)
{
    run({DCX_CROWD_AM, DCX_CROWD_PUT, DCX_CROWD_GET});
}

INSTANTIATE_TEST_SUITE_P(defaults, dcx_fair_defaults_all,
                         testing::Combine(testing::Values("dcs_quota", "rand"),
                                          testing::Values(200),
                                          testing::Values(1, 5)));

/* --- one read at a time --------------------------------------------------- */

/* Both sides run all kinds of operations to each other over one initiator each,
 * which does one read or atomic at a time: see main() */
class dcx_fair_one : public testing::TestWithParam<const char *> {};

TEST_P(dcx_fair_one, no_deadlock)
{
    setenv("UCX_DCX_TX_POLICY", GetParam(), 1);
    {
        live_peer a, b;
        dcx_crowd from_a(a.loop, b), from_b(b.loop, a);

        for (unsigned i = 0; i < 60; i++) {
            from_a.add((enum dcx_crowd_op)(i % DCX_CROWD_NUM_OPS));
            from_b.add((enum dcx_crowd_op)(i % DCX_CROWD_NUM_OPS));
        }
        for (unsigned round = 0; round < 20; round++) {
            auto manner = (round % 2) ? DCX_CROWD_STAYS : DCX_CROWD_LEAVES;

            from_a.run(1000, manner, 10);
            from_b.run(1000, manner, 10);
        }
        from_a.drain();
        from_b.drain();
        from_a.expect_received();
        from_b.expect_received();
    }
    unsetenv("UCX_DCX_TX_POLICY");
}

INSTANTIATE_TEST_SUITE_P(one, dcx_fair_one,
                         testing::Values("dcs", "dcs_quota", "rand", "hw_dcs"));

} /* namespace */

int main(int argc, char **argv)
{
    std::vector<std::pair<const char *, const char *>> env = {
        {"UCX_DCX_NUM_DCI", "4"},          {"UCX_DCX_TX_QUEUE_LEN", "32"},
        {"UCX_DCX_RX_QUEUE_LEN", "16384"}, {"UCX_DCX_SEG_SIZE", "512"},
        {"UCX_DCX_RAND_SEED", "1"},        {"UCX_DCX_FC_INITIAL", "2"},
        {"UCX_DCX_FC_WINDOW", "32"},       {"UCX_DCX_RNR_TIMEOUT", "10us"},
    };
    auto no_fc = env, one = env;
    std::vector<std::pair<const char *, const char *>> defaults = {
        {"UCX_DCX_NUM_DCI", "4"},        {"UCX_DCX_TX_QUEUE_LEN", "32"},
        {"UCX_DCX_SEG_SIZE", "512"},     {"UCX_DCX_RAND_SEED", "1"},
        {"UCX_DCX_RNR_TIMEOUT", "10us"},
    };

    one.push_back({"UCX_DCX_NUM_DCI", "1"});
    one.push_back({"UCX_DCX_MAX_RD_ATOMIC", "1"});
    no_fc.push_back({"UCX_DCX_FC_ENABLE", "n"});
    return hca_test_main(
        argc, argv,
        {{"fc", env}, {"no_fc", no_fc}, {"defaults", defaults}, {"one", one}});
}
