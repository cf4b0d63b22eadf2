/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * One call of progress polls many completions, while callbacks cause more: the
 * completion queues do not overflow.
 */
#include "dcx_shared_bench.h"

#include <algorithm>

namespace {

class dcx_max_poll_tx : public dcx_shared {};

/* Each completion posts another operation, which a fast device completes
 * during the same call of progress. */
TEST_P(dcx_max_poll_tx, callbacks_post_again)
{
    std::list<dcx_end> ends;
    hca_log_reader log;

    std::function<void()> again = [&] {
        if (ends.size() < 1000) {
            ends.emplace_back(again);
            EXPECT_EQ(UCS_INPROGRESS, try_put(m_a, m_live_a, ends.back()));
        }
    };
    for (int i = 0; i < 20; i++) {
        again();
    }
    for (int i = 0; i < 10000; i++) {
        progress();
    }
    EXPECT_EQ(1000, std::count_if(ends.begin(), ends.end(), [](auto &end) {
                  return end.status == UCS_OK;
              }));
    EXPECT_EQ("", log.take());
}

INSTANTIATE_TEST_SUITE_P(tx, dcx_max_poll_tx, testing::Values("dcs", "rand"),
                         dcx_policy_name);

/* Receive completions: main() sets RX_MAX_POLL slightly above the number of
 * receive buffers. */
class dcx_max_poll_rx : public dcx_shared {
protected:
    dcx_max_poll_rx()
    {
        UCT_CALL(
            uct_iface_set_am_handler(m_live_a.loop.iface, 5, receive, this, 0));
    }

    unsigned send_all(uct_ep_h ep)
    {
        unsigned count = 0;

        while (uct_ep_am_short(ep, 5, 0, NULL, 0) == UCS_OK) {
            count++;
        }
        return count;
    }

    unsigned m_received = 0;
    uct_ep_h m_more     = make_ep(m_live_a.loop);
    unsigned m_sent     = 0;

private:
    static ucs_status_t receive(void *arg, void *, size_t, unsigned)
    {
        dcx_max_poll_rx *self = (dcx_max_poll_rx *)arg;

        if (++self->m_received == 48) {
            self->m_sent += self->send_all(self->m_more);
        }
        return UCS_OK;
    }
};

/* A request for credits follows the messages. Handling it posts their buffers
 * again, which messages of another endpoint fill at once. */
TEST_P(dcx_max_poll_rx, buffers_are_posted_meanwhile)
{
    hca_log_reader log;

    m_sent = send_all(m_a);
    EXPECT_LE(48u, m_sent);
    flush();
    EXPECT_EQ(m_sent, m_received);
    EXPECT_EQ("", log.take());
}

INSTANTIATE_TEST_SUITE_P(rx, dcx_max_poll_rx, testing::Values("dcs", "rand"),
                         dcx_policy_name);

} /* namespace */

int main(int argc, char **argv)
{
    auto env = dcx_shared_env(), tx = env, rx = env;

    tx.push_back({"UCX_DCX_TX_MAX_POLL", "65536"});
    rx.push_back({"UCX_DCX_FC_ENABLE", "y"});
    rx.push_back({"UCX_DCX_NUM_DCI", "2"});
    rx.push_back({"UCX_DCX_TX_QUEUE_LEN", "128"});
    rx.push_back({"UCX_DCX_RX_QUEUE_LEN", "62"});
    rx.push_back({"UCX_DCX_RX_MAX_POLL", "64"});
    rx.push_back({"UCX_DCX_FC_WINDOW", "62"});
    rx.push_back({"UCX_DCX_FC_INITIAL", "62"});
    return hca_test_main(argc, argv, {{"tx", tx}, {"rx", rx}});
}
