/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * An initiator with streams: they do not wait for each other, and after an
 * error the initiator drains, during which the user may make any call. Also a
 * device on which no stream fails alone, and one without streams.
 */
#include "dcx_shared_bench.h"
#include "ucx_log.h"

namespace {

/* A peer has no receive buffer left and makes no progress, while another does
 * not answer: the initiator drains until the first one continues. */
class dcx_streams : public dcx_shared {
protected:
    /* Fills the queue of m_b's peer; returns the number of messages. */
    uint64_t fill()
    {
        const uint64_t count = 512; /* RX_QUEUE_LEN, in main() */

        dcx_deadline deadline;

        for (uint64_t sent = 0; sent < count;) {
            if (uct_ep_am_short(m_b, 6, sent, NULL, 0) == UCS_OK) {
                sent++;
            } else {
                deadline.check("resources for a message");
                uct_worker_progress(m_dcx->worker);
            }
        }
        m_dcx->flush();
        return count;
    }

    bool drains()
    {
        struct dcx_dci_count count;

        dcx_peek_dcis(m_dcx->iface, &count);
        return count.num_draining > 0;
    }

    /* Makes progress up to the dead peer's error, and no further. */
    void await_drain()
    {
        dcx_deadline deadline;

        while (!drains()) {
            deadline.check("an initiator that drains");
            uct_worker_progress(m_dcx->worker);
        }
    }

    enum victim { ACKNOWLEDGED, WAITING, FAILED };

    /* Destroys one of three endpoints in a completion, while the initiator
     * drains. */
    void destroy_one(enum victim which)
    {
        uint64_t sent = fill(), result = -1;
        uct_ep_h dead  = make_dead_eps(1)[0];
        uct_ep_h eps[] = {make_ep(m_live_a.loop), make_ep(m_live_b.loop), dead};
        dcx_end failed, got([&] { destroy_ep(eps[which]); });

        put(dead, m_live_a, failed);
        get(eps[ACKNOWLEDGED], m_live_a, &result, got);
        send(m_b, sent++);
        send_bcopy(eps[WAITING], sent++);
        await_drain();
        EXPECT_EQ(UCS_OK, got.status);
        EXPECT_EQ(0u, result);
        flush();
        EXPECT_EQ((which == FAILED) ? UCS_ERR_CANCELED :
                                      UCS_ERR_ENDPOINT_TIMEOUT,
                  failed.status);
        EXPECT_EQ((which == FAILED) ? 0u : 1u, m_dcx->errors.size());
        EXPECT_EQ(sent, m_live_b.headers.size());
        expect_works(m_a);
    }
};

/* A message does not wait in the device for one to a peer that does not
 * answer. */
TEST_P(dcx_streams, do_not_wait)
{
    uct_ep_h dead = make_dead_eps(1)[0];
    dcx_end failed;

    put(dead, m_live_a, failed);
    send(m_a, 0);
    send_bcopy(m_a, 1);
    for (unsigned i = 0; i < 10; i++) {
        m_live_a.progress();
    }
    EXPECT_EQ(numbers(2), m_live_a.headers);
    EXPECT_EQ(0u, failed.count);
    flush();
    EXPECT_EQ(UCS_ERR_ENDPOINT_TIMEOUT, failed.status);
}

/* No operation is posted, pending requests stay, and acknowledged operations
 * end. */
TEST_P(dcx_streams, drain)
{
    uint64_t sent = fill();
    uct_ep_h dead = make_dead_eps(1)[0];
    dcx_request request;
    dcx_end failed, behind, flushed;

    put(dead, m_live_a, failed);
    put(m_a, m_live_a, behind);
    EXPECT_EQ(UCS_INPROGRESS, uct_ep_flush(m_a, 0, &flushed.comp));
    send(m_b, sent++);
    await_drain();
    EXPECT_EQ(UCS_OK, behind.status);
    EXPECT_EQ(UCS_OK, flushed.status);
    EXPECT_EQ(0u, failed.count);
    EXPECT_EQ(UCS_ERR_NO_RESOURCE, uct_ep_am_short(m_a, 6, 0, NULL, 0));
    EXPECT_EQ(UCS_ERR_NO_RESOURCE, uct_ep_flush(m_b, 0, NULL));
    EXPECT_EQ(UCS_INPROGRESS, uct_iface_flush(m_dcx->iface, 0, NULL));
    request.req.func = dcx_request::send;
    request.ep       = m_a;
    request.header   = 0;
    EXPECT_EQ(UCS_OK, uct_ep_pending_add(m_a, &request.req, 0));

    flush();
    EXPECT_FALSE(drains());
    EXPECT_EQ(UCS_ERR_ENDPOINT_TIMEOUT, failed.status);
    EXPECT_EQ(1u, m_dcx->errors.size());
    EXPECT_EQ(numbers(1), m_live_a.headers);
    EXPECT_EQ(numbers(sent), m_live_b.headers);
    expect_works(m_b);
}

/* An acknowledged operation has its result, and its callback may destroy any
 * endpoint. */
TEST_P(dcx_streams, destroy_acknowledged)
{
    destroy_one(ACKNOWLEDGED);
}

TEST_P(dcx_streams, destroy_waiting)
{
    destroy_one(WAITING);
}

TEST_P(dcx_streams, destroy_failed)
{
    destroy_one(FAILED);
}

/* An endpoint is invalidated, and the dead one canceled. */
TEST_P(dcx_streams, invalidate_while_it_drains)
{
    uint64_t sent = fill();
    uct_ep_h dead = make_dead_eps(1)[0];
    dcx_end failed, flushed;

    put(dead, m_live_a, failed);
    send(m_b, sent++);
    await_drain();
    EXPECT_EQ(UCS_OK, uct_ep_invalidate(m_a, 0));
    EXPECT_EQ(UCS_INPROGRESS,
              uct_ep_flush(dead, UCT_FLUSH_FLAG_CANCEL, &flushed.comp));
    flush();
    EXPECT_EQ(UCS_ERR_CANCELED, failed.status);
    EXPECT_EQ(1u, flushed.count);
    EXPECT_EQ(std::vector<ucs_status_t>{UCS_ERR_CANCELED}, m_dcx->errors);
    EXPECT_EQ(numbers(sent), m_live_b.headers);
    expect_works(m_b);
}

/* The endpoint was canceled before, and the operations that the flush waits for
 * are acknowledged. */
TEST_P(dcx_streams, flush_while_it_drains)
{
    uint64_t sent = fill();
    uct_ep_h dead = make_dead_eps(1)[0];
    dcx_end failed, put_end, first, second;

    put(dead, m_live_a, failed);
    put(m_a, m_live_a, put_end);
    EXPECT_EQ(UCS_INPROGRESS,
              uct_ep_flush(m_a, UCT_FLUSH_FLAG_CANCEL, &first.comp));
    send(m_b, sent++);
    await_drain();
    EXPECT_EQ(UCS_ERR_CANCELED, put_end.status);
    EXPECT_EQ(1u, first.count);
    EXPECT_EQ(UCS_INPROGRESS,
              uct_ep_flush(m_a, UCT_FLUSH_FLAG_CANCEL, &second.comp));
    flush();
    EXPECT_EQ(1u, second.count);
    EXPECT_EQ(numbers(sent), m_live_b.headers);
    expect_works(m_b);
}

/* The interface is closed: no completion is called. */
TEST_P(dcx_streams, close_while_it_drains)
{
    dcx_end failed, behind;

    fill();
    put(make_dead_eps(1)[0], m_live_a, failed);
    put(m_a, m_live_a, behind);
    send_bcopy(m_b, 0);
    await_drain();
    EXPECT_EQ(UCS_OK, behind.status);
    while (!m_eps.empty()) {
        destroy_ep(m_eps.front());
    }
    m_dcx.reset();
    EXPECT_EQ(0u, failed.count);
}

INSTANTIATE_TEST_SUITE_P(any, dcx_streams, testing::Values("hw_dcs"),
                         dcx_policy_name);

/* Firmware that fails all waiting streams together */
class dcx_streams_one : public dcx_streams {};

/* A message to a peer without buffers may have arrived: its endpoint fails,
 * too. */
TEST_P(dcx_streams_one, waiting_endpoint_fails)
{
    uint64_t sent = fill();
    uct_ep_h dead = make_dead_eps(1)[0];
    dcx_end failed;

    send(m_b, sent);
    send(m_a, 0);
    put(dead, m_live_a, failed);
    m_dcx->flush(); /* m_b's peer makes no progress */
    flush();
    EXPECT_EQ(UCS_ERR_ENDPOINT_TIMEOUT, failed.status);
    EXPECT_EQ(
        std::vector<ucs_status_t>({UCS_ERR_IO_ERROR, UCS_ERR_ENDPOINT_TIMEOUT}),
        m_dcx->errors);
    EXPECT_EQ(numbers(1), m_live_a.headers);
    EXPECT_EQ(numbers(sent), m_live_b.headers);
}

/* Another endpoint's messages before, during and after the failure: none
 * arrives twice, and a loss is reported. */
TEST_P(dcx_streams_one, no_message_arrives_twice)
{
    const unsigned count = 10;

    for (unsigned round = 0; round < 2 * count; round++) {
        uct_ep_h dead = make_dead_eps(1)[0], other = make_ep(m_live_a.loop);
        dcx_end failed, flushed;

        SCOPED_TRACE(round);
        m_live_a.headers.clear();
        for (unsigned i = 0; i < count; i++) {
            if (i == round % count) {
                put(dead, m_live_a, failed);
            }
            EXPECT_EQ(UCS_OK, uct_ep_am_short(other, 6, i, NULL, 0));
        }
        EXPECT_EQ(UCS_INPROGRESS, uct_ep_flush(other, 0, &flushed.comp));
        flush();
        EXPECT_EQ(UCS_ERR_ENDPOINT_TIMEOUT, failed.status);
        EXPECT_EQ(numbers(m_live_a.headers.size()), m_live_a.headers);
        EXPECT_EQ((m_live_a.headers.size() == count) ? UCS_OK :
                                                       UCS_ERR_IO_ERROR,
                  flushed.status);
        destroy_ep(other);
        destroy_ep(dead);
    }
}

/* A put and a check of the peer are posted again. */
TEST_P(dcx_streams_one, put_and_check_are_posted_again)
{
    dcx_end failed, put_end, check_end;

    put(m_a, m_live_a, failed, ~0xffu);
    put(m_b, m_live_b, put_end);
    EXPECT_EQ(UCS_INPROGRESS, uct_ep_check(m_b, 0, &check_end.comp));
    flush();
    EXPECT_EQ(UCS_ERR_CONNECTION_RESET, failed.status);
    EXPECT_EQ(UCS_OK, put_end.status);
    EXPECT_EQ(1u, put_end.count);
    EXPECT_EQ(UCS_OK, check_end.status);
    EXPECT_EQ(1u, check_end.count);
    EXPECT_EQ(1u, m_dcx->errors.size());
    expect_works(m_b);
}

INSTANTIATE_TEST_SUITE_P(one, dcx_streams_one, testing::Values("hw_dcs"),
                         dcx_policy_name);

/* --- without streams ------------------------------------------------------ */

class dcx_streams_none : public testing::TestWithParam<const char *> {};

TEST_P(dcx_streams_none, are_needed)
{
    ucx_log_reader log;

    setenv("UCX_DCX_TX_POLICY", GetParam(), 1);
    EXPECT_THROW(dcx_loop(), std::runtime_error);
    unsetenv("UCX_DCX_TX_POLICY");
    std::string line = log.take();

    EXPECT_NE(std::string::npos,
              line.find(std::string("UCX_DCX_TX_POLICY=") + GetParam()))
        << line;
    EXPECT_NE(std::string::npos, line.find("needs DCI streams")) << line;
}

INSTANTIATE_TEST_SUITE_P(none, dcx_streams_none, testing::Values("hw_dcs"),
                         dcx_policy_name);

} /* namespace */

int main(int argc, char **argv)
{
    auto env = dcx_shared_env();

    /* answers of a live peer must come before a dead one's timeout, also on a
     * busy machine */
    env.push_back({"UCX_DCX_TIMEOUT", "8ms"});

    auto one = env, none = env;

    one.push_back({"SOFTHCA_DCI_ERRORED", "0"});
    none.push_back({"SOFTHCA_DCI_STREAMS", "0"});
    return hca_test_main(argc, argv,
                         {{"any", env}, {"one", one}, {"none", none}});
}
