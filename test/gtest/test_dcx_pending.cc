/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Pending requests: no operation overtakes a pending one of its endpoint, not
 * in a callback either, and none is forgotten.
 */
#include "dcx_shared_bench.h"

namespace {

class dcx_pending : public dcx_shared {
protected:
    ~dcx_pending()
    {
        for (uct_ep_h ep : m_eps) {
            uct_ep_pending_purge(ep, NULL, NULL);
        }
    }

    void add(uct_ep_h ep, const std::function<ucs_status_t()> &call)
    {
        m_line.emplace_back(call);
        EXPECT_EQ(UCS_OK, uct_ep_pending_add(ep, &m_line.back().req, 0));
    }

    /* A message */
    void add(uct_ep_h ep, uint64_t header)
    {
        add(ep, [=] { return uct_ep_am_short(ep, 6, header, NULL, 0); });
    }

    /* Posts puts on @ep until there is no room; each completion calls @then. */
    void fill(uct_ep_h ep, const std::function<void()> &then = nullptr)
    {
        do {
            m_ends.emplace_back(then);
        } while (try_put(ep, m_live_a, m_ends.back()) == UCS_INPROGRESS);
        m_ends.pop_back();
    }

    /* Returns the headers from 1000 on, in order of arrival. */
    std::vector<uint64_t> marked() const
    {
        std::vector<uint64_t> list;

        for (uint64_t header : m_live_a.headers) {
            if (header >= 1000) {
                list.push_back(header);
            }
        }
        return list;
    }

    std::list<dcx_end> m_ends;
    std::list<dcx_pending_call> m_line;
};

/* The room that a completion frees is for pending requests, not for operations
 * that the callback of another completion posts. */
TEST_P(dcx_pending, callback_does_not_overtake)
{
    bool sent = false;

    fill(m_a, [&] {
        sent = sent || (uct_ep_am_short(m_a, 6, 2000, NULL, 0) == UCS_OK);
    });
    add(m_a, 1000);
    flush();
    EXPECT_EQ((std::vector<uint64_t>{1000, 2000}), marked());
}

/* A request posts nothing and adds another one, while another endpoint waits
 * for the initiator. */
TEST_P(dcx_pending, request_adds_another)
{
    fill(make_ep(m_live_a.loop));
    add(m_a, [&] {
        add(m_a, 1);
        return UCS_OK;
    });
    add(m_b, 2);
    flush();
    EXPECT_EQ(std::vector<uint64_t>{1}, m_live_a.headers);
    EXPECT_EQ(std::vector<uint64_t>{2}, m_live_b.headers);
}

/* A request posts nothing and adds another one: later operations of its
 * endpoint wait for that. */
TEST_P(dcx_pending, request_does_not_overtake_itself)
{
    ucs_status_t beside = UCS_OK;

    fill(m_a);
    add(m_a, [&] {
        add(m_a, 1000);
        beside = uct_ep_am_short(m_a, 6, 2000, NULL, 0);
        return UCS_OK;
    });
    flush();
    EXPECT_EQ(UCS_ERR_NO_RESOURCE, beside);
    EXPECT_EQ(std::vector<uint64_t>{1000}, marked());
}

/* A request posts several operations and a flush. */
TEST_P(dcx_pending, request_sends_all)
{
    dcx_end flushed;

    fill(m_a);
    add(m_a, [&] {
        EXPECT_EQ(UCS_OK, uct_ep_am_short(m_a, 6, 1000, NULL, 0));
        EXPECT_EQ(UCS_OK, uct_ep_am_short(m_a, 6, 1001, NULL, 0));
        EXPECT_EQ(UCS_INPROGRESS, uct_ep_flush(m_a, 0, &flushed.comp));
        return UCS_OK;
    });
    add(m_b, 1);
    dcx_deadline deadline;
    while (flushed.count == 0) {
        deadline.check("the end of a flush");
        progress();
    }
    flush();
    EXPECT_EQ((std::vector<uint64_t>{1000, 1001}), marked());
    EXPECT_EQ(std::vector<uint64_t>{1}, m_live_b.headers);
}

/* A request fails because a resource is missing that no completion announces,
 * with and without outstanding operations of its endpoint: it is called again.
 * Later requests stay after it. */
TEST_P(dcx_pending, refused_is_called_again)
{
    for (unsigned times : {1, 3, 100}) {
        SCOPED_TRACE(times);
        unsigned calls = 0;

        fill(m_a);
        add(m_a,
            [&] { return (calls++ < times) ? UCS_ERR_NO_RESOURCE : UCS_OK; });
        add(m_a, 1);
        add(m_a, 2);
        for (int i = 0; i < 10; i++) {
            flush();
        }
        EXPECT_EQ(times + 1, calls);
        EXPECT_EQ((std::vector<uint64_t>{1, 2}), m_live_a.headers);
        m_live_a.headers.clear();
    }
}

INSTANTIATE_TEST_SUITE_P(pending, dcx_pending,
                         testing::Values("dcs", "dcs_quota", "rand", "hw_dcs"),
                         dcx_policy_name);

/* --- all initiators have dead peers --------------------------------------- */

class dcx_pending_dead : public dcx_pending {};

/* The only initiator waits for a dead peer. A second initiator is created and
 * serves the live peer, before the retries to the dead peer are exhausted. */
TEST_P(dcx_pending_dead, live_peer_is_served)
{
    uct_ep_h dead = make_dead_eps(1)[0];
    dcx_end lost, kept;
    dcx_deadline deadline;

    put(dead, m_live_a, lost);
    add(m_a, [&] {
        ucs_status_t status = try_put(m_a, m_live_a, kept);

        return (status == UCS_INPROGRESS) ? UCS_OK : status; /* posted */
    });
    while (kept.count == 0) {
        deadline.check("a put to the live peer");
        progress();
    }
    EXPECT_EQ(UCS_OK, kept.status);
    EXPECT_EQ(0u, lost.count);

    flush();
    EXPECT_EQ(UCS_ERR_ENDPOINT_TIMEOUT, lost.status);
    expect_works(m_a);
}

INSTANTIATE_TEST_SUITE_P(dead, dcx_pending_dead,
                         testing::Values("dcs", "dcs_quota"), dcx_policy_name);

/* --- shared initiators ---------------------------------------------------- */

class dcx_pending_shared : public dcx_pending {};

/* A request posts, and then calls other endpoints: one has requests pending
 * after it, one has none. */
TEST_P(dcx_pending_shared, request_does_not_overtake)
{
    uct_ep_h second = make_ep(m_live_a.loop), third = make_ep(m_live_a.loop);
    std::vector<ucs_status_t> beside;

    fill(m_a);
    add(m_a, [&] {
        ucs_status_t status = uct_ep_am_short(m_a, 6, 1000, NULL, 0);

        if (status == UCS_OK) {
            beside.push_back(uct_ep_am_short(second, 6, 2001, NULL, 0));
            beside.push_back(uct_ep_flush(second, 0, NULL));
            beside.push_back(uct_ep_am_short(third, 6, 2002, NULL, 0));
            add(third, 2000);
        }
        return status;
    });
    add(second, 1001);
    add(second, 1002);
    flush();
    EXPECT_EQ(std::vector<ucs_status_t>(3, UCS_ERR_NO_RESOURCE), beside);
    EXPECT_EQ((std::vector<uint64_t>{1000, 1001, 2000, 1002}), marked());
}

INSTANTIATE_TEST_SUITE_P(pending, dcx_pending_shared,
                         testing::Values("rand", "hw_dcs"), dcx_policy_name);

/* --- waiting for a grant -------------------------------------------------- */

class dcx_pending_fc : public dcx_pending {};

/* The endpoint has an initiator, for a put, when the grant arrives; the handler
 * of the next message posts an answer. */
TEST_P(dcx_pending_fc, handler_does_not_overtake)
{
    uct_ep_h back = m_live_a.loop.make_ep(*m_dcx);
    dcx_end end;

    auto answer = [](void *arg, void *, size_t, unsigned) {
        uct_ep_am_short((uct_ep_h)arg, 6, 2000, NULL, 0);
        return UCS_OK;
    };
    UCT_CALL(uct_iface_set_am_handler(m_dcx->iface, 6, answer, m_a, 0));

    while (uct_ep_am_short(m_a, 6, 1, NULL, 0) == UCS_OK)
        ;
    for (int i = 0; i < 10; i++) {
        uct_worker_progress(m_dcx->worker);
    }
    for (uint64_t header : {1000, 1001, 1002}) {
        add(m_a, header);
    }

    m_live_a.progress(); /* grants credits */
    EXPECT_EQ(UCS_OK, uct_ep_am_short(back, 6, 0, NULL, 0));
    EXPECT_EQ(UCS_INPROGRESS, try_put(m_a, m_live_a, end));
    flush();
    uct_ep_destroy(back);
    EXPECT_EQ((std::vector<uint64_t>{1000, 1001, 1002}), marked());
}

INSTANTIATE_TEST_SUITE_P(fc, dcx_pending_fc,
                         testing::Values("dcs", "dcs_quota", "rand", "hw_dcs"),
                         dcx_policy_name);

} /* namespace */

int main(int argc, char **argv)
{
    auto env = dcx_shared_env(), fc = env, dead = env;

    fc.push_back({"UCX_DCX_FC_ENABLE", "y"});
    fc.push_back({"UCX_DCX_FC_WINDOW", "16"});
    fc.push_back({"UCX_DCX_FC_INITIAL", "4"});
    /* eight tries of 134 ms */
    dead.push_back({"UCX_DCX_TIMEOUT", "0.1s"});
    dead.push_back({"UCX_DCX_RETRY_COUNT", "7"});
    /* the report keeps an entry for each initiator, also for additional ones */
    dead.push_back({"UCX_DCX_REPORT", "y"});
    return hca_test_main(argc, argv,
                         {{"pending", env}, {"fc", fc}, {"dead", dead}});
}
