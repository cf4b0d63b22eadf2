/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Requests that stand in line: nobody overtakes those of his own endpoint, not
 * in a callback either, and none is forgotten.
 */
#include "dcx_shared_bench.h"

namespace {

/* A request that does what the test says */
struct request : dcx_request {
    request(uct_ep_h ep, uint64_t header)
    {
        req       = {};
        req.func  = send;
        this->ep  = ep;
        this->header = header;
    }

    request(uct_ep_h ep, const std::function<ucs_status_t()> &call) :
        request(ep, 0)
    {
        req.func   = run;
        this->call = call;
    }

    static ucs_status_t run(uct_pending_req_t *req)
    {
        return ((request*)req)->call(); /* its first base's first member */
    }

    void add()
    {
        EXPECT_EQ(UCS_OK, uct_ep_pending_add(ep, &req, 0));
    }

    std::function<ucs_status_t()> call;
};

class dcx_pending : public dcx_shared {
protected:
    /* Posts puts on `ep` until there is no room; each one's end calls `then` */
    void fill(uct_ep_h ep, const std::function<void()> &then = nullptr)
    {
        do {
            m_ends.emplace_back(then);
        } while (try_put(ep, m_live_a, m_ends.back()) == UCS_INPROGRESS);
        m_ends.pop_back();
    }

    /* Headers from 1000 on, in the order in which they have arrived */
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
};

/* Completions are taken before those in line are served: the room that the
 * first of them make is not for whoever comes in the callback of another. */
TEST_P(dcx_pending, callback_does_not_overtake)
{
    request first(m_a, 1000);
    bool sent = false;

    fill(m_a, [&] {
        sent = sent || (uct_ep_am_short(m_a, 6, 2000, NULL, 0) == UCS_OK);
    });
    first.add();
    flush();
    EXPECT_EQ((std::vector<uint64_t>{1000, 2000}), marked());
}

INSTANTIATE_TEST_SUITE_P(pending, dcx_pending,
                         testing::Values("dcs", "dcs_quota", "rand", "hw_dcs",
                                         "dcs_hybrid"), dcx_policy_name);

/* --- what waits for a grant ------------------------------------------------ */

class dcx_pending_fc : public dcx_pending {
};

/* The endpoint has an initiator, for a put, when the grant comes; a message
 * that is received right behind it is answered in its handler. */
TEST_P(dcx_pending_fc, handler_does_not_overtake)
{
    uct_ep_h back = m_live_a.loop.make_ep(*m_dcx);
    std::list<request> line;
    dcx_end end;

    auto answer = [](void *arg, void*, size_t, unsigned) {
        uct_ep_am_short((uct_ep_h)arg, 6, 2000, NULL, 0);
        return UCS_OK;
    };
    UCT_CALL(uct_iface_set_am_handler(m_dcx->iface, 6, answer, m_a, 0));

    while (uct_ep_am_short(m_a, 6, 1, NULL, 0) == UCS_OK);
    for (int i = 0; i < 10; i++) {
        uct_worker_progress(m_dcx->worker);
    }
    for (uint64_t header : {1000, 1001, 1002}) {
        line.emplace_back(m_a, header).add();
    }

    m_live_a.progress(); /* grants */
    EXPECT_EQ(UCS_OK, uct_ep_am_short(back, 6, 0, NULL, 0));
    EXPECT_EQ(UCS_INPROGRESS, try_put(m_a, m_live_a, end));
    flush();
    uct_ep_destroy(back);
    EXPECT_EQ((std::vector<uint64_t>{1000, 1001, 1002}), marked());
}

INSTANTIATE_TEST_SUITE_P(fc, dcx_pending_fc,
                         testing::Values("dcs", "dcs_quota", "rand", "hw_dcs",
                                         "dcs_hybrid"), dcx_policy_name);

} /* namespace */

int main(int argc, char **argv)
{
    auto env = dcx_shared_env(), fc = env;

    fc.push_back({"UCX_DCX_FC_ENABLE", "y"});
    fc.push_back({"UCX_DCX_FC_WINDOW", "16"});
    fc.push_back({"UCX_DCX_FC_INITIAL", "4"});
    return hca_test_main(argc, argv, {{"pending", env}, {"fc", fc}});
}
