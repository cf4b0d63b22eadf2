/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Endpoints that use the same DCI: one after another (dcs, dcs_quota), or at
 * the same time (rand, hw_dcs). One peer does not answer, or refuses an access,
 * while others live. Each operation to a live peer is executed exactly once, in
 * order, without an error.
 */
#include "dcx_shared_bench.h"

namespace {

/* --- a peer that does not answer ------------------------------------------ */

/* Posts all kinds of operations before, between and after failing ones, at each
 * position in the ring. */
TEST_P(dcx_shared, dead_beside_live)
{
    const unsigned rounds = 40, count = 16;
    unsigned sent = 0;

    for (unsigned round = 0; round < rounds; round++) {
        uct_ep_h dead = make_dead_eps(1)[0];
        dcx_end first, second, put_end, get_end;
        uint64_t value = -1;

        SCOPED_TRACE(round);
        m_dcx->errors.clear();
        for (unsigned i = 0; i < count; i++, sent++) {
            (sent % 3) ? send(m_a, sent) : send_bcopy(m_a, sent);
            add(m_b, m_live_b);
            if (i == round % count) {
                put(dead, m_live_a, first);
                put(m_a, m_live_a, put_end);
                if (m_dcx->errors.empty()) {
                    put(dead, m_live_a, second);
                }
                get(m_b, m_live_b, &value, get_end);
            }
            send(m_b, sent);
        }
        flush();

        EXPECT_EQ(UCS_ERR_ENDPOINT_TIMEOUT, first.status);
        EXPECT_EQ(1u, first.count);
        /* An exclusive DCI reports the first failure before m_a gets the DCI:
         * then the second put was not posted. */
        EXPECT_EQ(!is_exclusive(), second.count == 1u);
        EXPECT_NE(UCS_OK, second.status);
        ASSERT_EQ(1u, m_dcx->errors.size());
        EXPECT_EQ(UCS_ERR_ENDPOINT_TIMEOUT, m_dcx->errors[0]);
        EXPECT_EQ(UCS_OK, put_end.status);
        EXPECT_EQ(1u, put_end.count);
        EXPECT_EQ(UCS_OK, get_end.status);
        EXPECT_EQ(1u, get_end.count);
        EXPECT_EQ(round * count + round % count + 1, value)
            << "the get returns the counter after all earlier adds";
        EXPECT_EQ(sent, m_live_b.counter());
        EXPECT_EQ(numbers(sent), m_live_a.headers);
        EXPECT_EQ(numbers(sent), m_live_b.headers);
        destroy_ep(dead);
    }
}

/* Completes the operations of a failed endpoint in order, with the error, and
 * its flush after them. */
TEST_P(dcx_shared, completion_order)
{
    uct_ep_h dead = make_dead_eps(1)[0];
    std::vector<int> order;
    dcx_end first([&] { order.push_back(1); });
    dcx_end second([&] { order.push_back(2); });
    dcx_end flushed([&] { order.push_back(3); });
    dcx_end live_flushed;

    put(dead, m_live_a, first);
    send_bcopy(dead, 1);
    put(dead, m_live_a, second);
    EXPECT_EQ(UCS_INPROGRESS, uct_ep_flush(dead, 0, &flushed.comp));
    send(m_a, 0);
    if (is_shared()) {
        EXPECT_EQ(UCS_INPROGRESS, uct_ep_flush(m_a, 0, &live_flushed.comp));
        EXPECT_EQ(0u, first.count) << "has not failed yet";
    } else {
        live_flushed.status = UCS_OK;
    }
    flush();

    EXPECT_EQ(std::vector<int>({1, 2, 3}), order);
    EXPECT_EQ(UCS_ERR_ENDPOINT_TIMEOUT, second.status);
    EXPECT_EQ(UCS_ERR_ENDPOINT_TIMEOUT, flushed.status);
    EXPECT_EQ(UCS_OK, live_flushed.status);
    EXPECT_EQ(numbers(1), m_live_a.headers);
    EXPECT_EQ(1u, m_dcx->errors.size());
}

/* All three endpoints to a dead peer fail. On a shared DCI, recovery posts the
 * second put again, which then fails by itself. The active message is not
 * posted again: the peer may have received it. */
TEST_P(dcx_shared, three_to_one_dead_peer)
{
    auto dead = make_dead_eps(3);
    dcx_end first, second;

    put(dead[0], m_live_a, first);
    put(dead[1], m_live_a, second);
    send(dead[2], 1);
    send(m_a, 0);
    flush();

    EXPECT_EQ(UCS_ERR_ENDPOINT_TIMEOUT, first.status);
    EXPECT_EQ(UCS_ERR_ENDPOINT_TIMEOUT, second.status);
    EXPECT_EQ(1u, first.count);
    EXPECT_EQ(1u, second.count);
    EXPECT_EQ(3u, m_dcx->errors.size());
    EXPECT_EQ(numbers(1), m_live_a.headers);
}

/* Each of two dead peers fails separately, also if both fail at the same
 * time. */
TEST_P(dcx_shared, two_dead_peers)
{
    uct_ep_h first = make_dead_eps(1)[0], second = make_dead_eps(1)[0];
    dcx_end first_end, second_end, live_end;

    put(first, m_live_a, first_end);
    send(m_a, 0);
    put(second, m_live_a, second_end);
    put(m_b, m_live_b, live_end);
    send(m_a, 1);
    flush();

    EXPECT_EQ(UCS_ERR_ENDPOINT_TIMEOUT, first_end.status);
    EXPECT_EQ(UCS_ERR_ENDPOINT_TIMEOUT, second_end.status);
    EXPECT_EQ(UCS_OK, live_end.status);
    EXPECT_EQ(std::vector<ucs_status_t>(2, UCS_ERR_ENDPOINT_TIMEOUT),
              m_dcx->errors);
    EXPECT_EQ(numbers(2), m_live_a.headers);
}

/* Sends all pending requests that were added after the failing put, in
 * order. */
TEST_P(dcx_shared, pending_requests)
{
    uct_ep_h dead = make_dead_eps(1)[0];
    std::vector<dcx_request> requests(40);
    uint64_t sent[2] = {};
    dcx_end failed;

    put(dead, m_live_a, failed);
    for (unsigned i = 0; i < 2; i++) {
        uct_ep_h ep = i ? m_b : m_a;

        while (uct_ep_am_short(ep, 6, sent[i], NULL, 0) == UCS_OK) {
            sent[i]++;
        }
    }
    for (unsigned i = 0; i < requests.size(); i++) {
        requests[i].req.func = dcx_request::send;
        requests[i].ep       = (i % 2) ? m_b : m_a;
        requests[i].header   = sent[i % 2]++;
        ASSERT_EQ(UCS_OK,
                  uct_ep_pending_add(requests[i].ep, &requests[i].req, 0));
    }
    EXPECT_EQ(0u, failed.count);
    dcx_deadline deadline;
    while (m_live_b.headers.size() < sent[1]) {
        deadline.check("the last message");
        progress();
    }
    flush();
    EXPECT_EQ(numbers(sent[0]), m_live_a.headers);
    EXPECT_EQ(numbers(sent[1]), m_live_b.headers);
    EXPECT_EQ(UCS_ERR_ENDPOINT_TIMEOUT, failed.status);
}

/* --- a peer that refuses -------------------------------------------------- */

/* Posts again the operations of another endpoint to the same peer that follow
 * the refused put: the device has flushed them. */
TEST_P(dcx_shared, refused_beside_accepted)
{
    uct_ep_h other = make_ep(m_live_a.loop);
    dcx_end failed, put_end;

    send(m_a, 0);
    put(m_a, m_live_a, failed, ~0xffu);
    send(other, 1);
    add(other, m_live_a);
    put(other, m_live_a, put_end);
    send(m_b, 0);
    flush();

    EXPECT_EQ(UCS_ERR_CONNECTION_RESET, failed.status);
    EXPECT_EQ(UCS_OK, put_end.status);
    EXPECT_EQ(1u, m_live_a.counter());
    EXPECT_EQ(numbers(2), m_live_a.headers);
    EXPECT_EQ(numbers(1), m_live_b.headers);
    EXPECT_EQ(1u, m_dcx->errors.size());
    expect_works(other);
}

/* --- destroyed endpoints -------------------------------------------------- */

/* Destroys the failed endpoint in its first completion: the other operations
 * end with the error, and the error handler is not called. */
TEST_P(dcx_shared, destroy_failed_in_its_completion)
{
    uct_ep_h dead = make_dead_eps(1)[0];
    dcx_end first([&] { destroy_ep(dead); }), second, flushed;

    put(dead, m_live_a, first);
    put(dead, m_live_a, second);
    EXPECT_EQ(UCS_INPROGRESS, uct_ep_flush(dead, 0, &flushed.comp));
    send(m_a, 0);
    flush();

    EXPECT_EQ(UCS_ERR_ENDPOINT_TIMEOUT, first.status);
    EXPECT_EQ(UCS_ERR_ENDPOINT_TIMEOUT, second.status);
    EXPECT_EQ(UCS_ERR_ENDPOINT_TIMEOUT, flushed.status);
    EXPECT_EQ(0u, m_dcx->errors.size());
    EXPECT_EQ(numbers(1), m_live_a.headers);
}

/* Destroys an endpoint that has not failed, in a completion of one that has:
 * its operations are executed. With rand they are outstanding by then, and the
 * put reports UCS_ERR_CANCELED. */
TEST_P(dcx_shared, destroy_live_in_a_completion)
{
    uct_ep_h dead  = make_dead_eps(1)[0];
    uct_ep_h other = make_ep(m_live_a.loop);
    dcx_end failed([&] { destroy_ep(other); }), put_end;

    put(dead, m_live_a, failed);
    if (is_shared()) {
        send_bcopy(other, 0);
        put(other, m_live_a, put_end);
        send(other, 1);
    }
    send(m_b, 0);
    flush();

    EXPECT_EQ(UCS_ERR_ENDPOINT_TIMEOUT, failed.status);
    EXPECT_EQ(1u, m_dcx->errors.size());
    EXPECT_EQ(numbers(1), m_live_b.headers);
    if (is_shared()) {
        EXPECT_EQ(!strcmp(GetParam(), "rand") ? UCS_ERR_CANCELED : UCS_OK,
                  put_end.status);
        EXPECT_EQ(1u, put_end.count);
        EXPECT_EQ(numbers(2), m_live_a.headers);
    }
    expect_works(m_a);
}

/* An endpoint is destroyed before its peer is known to be dead: no error is
 * reported for its copied messages. */
TEST_P(dcx_shared, destroy_dying)
{
    uct_ep_h dead = make_dead_eps(1)[0];

    send_bcopy(dead, 1);
    send(dead, 2);
    destroy_ep(dead);
    send(m_a, 0);
    flush();
    EXPECT_EQ(numbers(1), m_live_a.headers);
    EXPECT_EQ(0u, m_dcx->errors.size());
    expect_works(m_b);
}

/* --- canceled endpoints --------------------------------------------------- */

/* Cancels the operations to a dead peer: they end with UCS_ERR_CANCELED, the
 * error handler is not called, and the live endpoint works. */
TEST_P(dcx_shared, flush_cancel)
{
    uct_ep_h dead = make_dead_eps(1)[0];
    dcx_end failed, flushed;

    put(dead, m_live_a, failed);
    if (is_shared()) {
        send(m_a, 0);
    }
    EXPECT_EQ(UCS_INPROGRESS,
              uct_ep_flush(dead, UCT_FLUSH_FLAG_CANCEL, &flushed.comp));
    flush();
    EXPECT_EQ(UCS_ERR_CANCELED, failed.status);
    EXPECT_EQ(1u, failed.count);
    EXPECT_EQ(1u, flushed.count);
    EXPECT_EQ(0u, m_dcx->errors.size());
    expect_works(m_a);
    EXPECT_EQ(numbers(is_shared() ? 1 : 0), m_live_a.headers);
}

/* Invalidates an endpoint whose message has arrived but is not completed yet:
 * the error handler is called once, with UCS_ERR_CANCELED. On an exclusive DCI
 * a put that was posted after that ends with UCS_ERR_CANCELED, too. */
TEST_P(dcx_shared, invalidate)
{
    dcx_end end;

    send(m_a, 0);
    dcx_deadline deadline;
    while (m_live_a.headers.empty()) {
        deadline.check("the message");
        m_live_a.progress(); /* m_dcx polls its completion later */
    }
    EXPECT_EQ(UCS_OK, uct_ep_invalidate(m_a, 0));
    if (!is_shared()) {
        put(m_a, m_live_a, end);
    }
    flush();
    if (!is_shared()) {
        EXPECT_EQ(1u, end.count);
        EXPECT_EQ(UCS_ERR_CANCELED, end.status);
    }
    ASSERT_EQ(1u, m_dcx->errors.size());
    EXPECT_EQ(UCS_ERR_CANCELED, m_dcx->errors[0]);
    EXPECT_EQ(numbers(1), m_live_a.headers);
    expect_works(m_b);
}

INSTANTIATE_TEST_SUITE_P(any, dcx_shared,
                         testing::Values("dcs", "dcs_quota", "rand", "hw_dcs"),
                         dcx_policy_name);
INSTANTIATE_TEST_SUITE_P(late, dcx_shared, testing::Values("dcs", "rand"),
                         dcx_policy_name);

} /* namespace */

int main(int argc, char **argv)
{
    auto late = dcx_shared_env();

    late.push_back({"SOFTHCA_DELAY", "50"});
    return hca_test_main(argc, argv,
                         {{"any", dcx_shared_env()}, {"late", late}});
}
