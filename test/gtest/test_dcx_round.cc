/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * A shared initiator after long use: its 16-bit counters have wrapped around,
 * and endpoints that once posted on it are idle or destroyed.
 */
#include "dcx_shared_bench.h"

namespace {

class dcx_round : public dcx_shared {
protected:
    /* Posts a put that is copied into the WQE: 8 bytes fit into one block, 60
     * take two. */
    ucs_status_t put_short(uct_ep_h ep, const live_peer &peer, unsigned length)
    {
        return uct_ep_put_short(ep, m_dcx->mem.data(), length,
                                (uintptr_t)peer.loop.mem.data() + 8192,
                                dcx_peek_rkey(peer.loop.memh));
    }

    /* Posts WQEs of two blocks to m_a's peer until the next one starts at @end.
     * Checks that @at_rest has nothing outstanding meanwhile. */
    void go_round(unsigned end, uct_ep_h at_rest)
    {
        dcx_deadline deadline;

        while (m_dcx->view().pi != end) {
            deadline.check("the end of the round");
            if (put_short(m_a, m_live_a, 60) != UCS_OK) {
                uct_worker_progress(m_dcx->worker);
            }
            ASSERT_EQ(UCS_OK, uct_ep_flush(at_rest, 0, NULL))
                << m_dcx->view().pi;
        }
    }
};

/* The last WQE of an idle endpoint was at a position that is now inside a WQE
 * to a peer that does not answer: its flush does not wait for that. The flush
 * of an endpoint with a later WQE does. */
TEST_P(dcx_round, at_rest)
{
    uct_ep_h rest = make_ep(m_live_a.loop);
    dcx_end end, flushed;

    for (int i = 0; i < 2; i++) {
        EXPECT_EQ(UCS_OK, put_short(rest, m_live_a, 8));
        m_dcx->flush();
    }
    ASSERT_EQ(2u, m_dcx->view().pi);
    ASSERT_NO_FATAL_FAILURE(go_round(0, rest));
    m_dcx->flush();

    EXPECT_EQ(UCS_OK, put_short(make_dead_eps(1)[0], m_live_a, 60));
    EXPECT_EQ(UCS_OK, uct_ep_flush(rest, 0, NULL));
    put(m_a, m_live_a, end);
    EXPECT_EQ(UCS_INPROGRESS, uct_ep_flush(m_a, 0, &flushed.comp));
    flush();
    EXPECT_EQ(UCS_OK, end.status);
    EXPECT_EQ(UCS_OK, flushed.status);
    EXPECT_EQ(1u, m_dcx->errors.size());
    expect_works(rest);
}

/* Canceled endpoints post a mark on the queue and nothing else. After 33,000 of
 * them (a position has 16 bits) the endpoints of later WQEs must still be
 * found. */
TEST_P(dcx_round, marks)
{
    uct_ep_h dead = make_dead_eps(1)[0];
    dcx_end end, failed;

    for (unsigned i = 0; i < 33000; i++) {
        uct_ep_h ep = m_dcx->make_ep(m_live_a.loop);

        EXPECT_EQ(UCS_OK, uct_ep_invalidate(ep, 0));
        m_dcx->flush();
        uct_ep_destroy(ep);
    }
    m_dcx->errors.clear();

    put(m_a, m_live_a, end);
    EXPECT_EQ(UCS_INPROGRESS, uct_ep_flush(m_a, 0, NULL));
    put(dead, m_live_a, failed);
    flush();
    EXPECT_EQ(UCS_OK, end.status);
    EXPECT_EQ(UCS_ERR_ENDPOINT_TIMEOUT, failed.status);
    EXPECT_EQ(std::vector<ucs_status_t>{UCS_ERR_ENDPOINT_TIMEOUT},
              m_dcx->errors);
}

INSTANTIATE_TEST_SUITE_P(any, dcx_round, testing::Values("rand", "hw_dcs"),
                         dcx_policy_name);

} /* namespace */

int main(int argc, char **argv)
{
    return hca_test_main(argc, argv, {{"any", dcx_shared_env()}});
}
