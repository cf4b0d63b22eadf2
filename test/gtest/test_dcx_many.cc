/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Initiators that are created on demand, and many endpoints that all make
 * progress, with every policy.
 */
#include "dcx_end.h"
#include "dcx_live_peer.h"

#include <memory>

namespace {

class dcx_many : public testing::TestWithParam<const char *> {
protected:
    dcx_many() { setenv("UCX_DCX_TX_POLICY", GetParam(), 1); }

    ~dcx_many()
    {
        for (uct_ep_h ep : m_eps) {
            uct_ep_destroy(ep);
        }
        m_dcx.reset();
        unsetenv("UCX_DCX_TX_POLICY");
        unsetenv("UCX_DCX_NUM_DCI");
    }

    void open(const char *num_dci)
    {
        setenv("UCX_DCX_NUM_DCI", num_dci, 1);
        m_dcx.reset(new dcx_loop);
        m_dcx->survives_errors = true;
    }

    bool is_exclusive() const { return !strncmp(GetParam(), "dcs", 3); }

    bool is_one() const { return !strcmp(GetParam(), "hw_dcs"); }

    void make_eps(unsigned count)
    {
        while (m_eps.size() < count) {
            m_eps.push_back(m_dcx->make_ep(m_live.loop));
        }
    }

    struct dcx_dci_count dcis()
    {
        struct dcx_dci_count count;

        dcx_peek_dcis(m_dcx->iface, &count);
        return count;
    }

    ucs_status_t send(unsigned i)
    {
        return uct_ep_am_short(m_eps[i], 6, i, NULL, 0);
    }

    /* A message that becomes a pending request if needed */
    struct request {
        void init(uct_ep_h to, uint64_t number)
        {
            ep       = to;
            header   = number;
            req.func = resume;
        }

        ucs_status_t post() { return uct_ep_am_short(ep, 6, header, NULL, 0); }

        static ucs_status_t resume(uct_pending_req_t *req)
        {
            return ((request *)req)->post(); /* its first member */
        }

        uct_pending_req_t req = {};
        uct_ep_h ep;
        uint64_t header;
    };

    void progress()
    {
        uct_worker_progress(m_dcx->worker);
        m_live.progress();
    }

    void flush()
    {
        dcx_deadline deadline;

        while (uct_iface_flush(m_dcx->iface, 0, NULL) == UCS_INPROGRESS) {
            deadline.check("a flushed interface");
            progress();
        }
        for (int i = 0; i < 100; i++) {
            progress();
        }
    }

    live_peer m_live;
    std::unique_ptr<dcx_loop> m_dcx;
    std::vector<uct_ep_h> m_eps;
};

/* --- creation of initiators ----------------------------------------------- */

TEST_P(dcx_many, created_when_needed)
{
    const unsigned count = 200;

    open("1024");
    make_eps(1);
    EXPECT_EQ(UCS_OK, send(0));
    flush();
    EXPECT_LE(dcis().num_dci, is_exclusive() ? 1u : 3u)
        << "more than the first and one for each endpoint";
    EXPECT_EQ(1u, dcis().num_cqs);

    make_eps(count);
    for (unsigned i = 0; i < count; i++) {
        EXPECT_EQ(UCS_OK, send(i));
        if (is_one()) {
            flush(); /* its ring is short */
        }
    }
    if (is_exclusive()) {
        EXPECT_EQ(count, dcis().num_dci);
    } else if (is_one()) {
        EXPECT_EQ(1u, dcis().num_dci);
    } else {
        EXPECT_LT(128u, dcis().num_dci);
    }
    EXPECT_EQ((dcis().num_dci + 63) / 64, dcis().num_cqs);

    flush();
    EXPECT_EQ(count + 1, m_live.headers.size());

    /* completions of all queues are polled, also after a wait for events */
    unsigned before = dcis().num_dci;
    dcx_end end;
    dcx_deadline deadline;
    uct_iov_t iov = {};

    iov.buffer = m_dcx->mem.data();
    iov.length = 8;
    iov.memh   = m_dcx->memh;
    iov.count  = 1;
    while (uct_iface_event_arm(m_dcx->iface, UCT_EVENT_SEND_COMP) ==
           UCS_ERR_BUSY) {
        deadline.check("an idle interface");
        progress();
    }
    EXPECT_EQ(UCS_INPROGRESS,
              uct_ep_put_zcopy(m_eps[count - 1], &iov, 1,
                               (uintptr_t)m_live.loop.mem.data(),
                               dcx_peek_rkey(m_live.loop.memh), &end.comp));
    while (uct_iface_event_arm(m_dcx->iface, UCT_EVENT_SEND_COMP) !=
           UCS_ERR_BUSY) {
        deadline.check("a completion");
        sched_yield(); /* a late device has not completed it yet */
    }
    flush();
    EXPECT_EQ(UCS_OK, end.status);
    EXPECT_EQ(before, dcis().num_dci) << "idle initiators were destroyed";
}

/* 1,000 endpoints with several messages each, without progress: most of them
 * become pending. All messages arrive, once, and those of one endpoint in
 * order. */
TEST_P(dcx_many, thousand_endpoints_in_order)
{
    const unsigned count = 1000, each = 3;
    std::vector<request> requests(count * each);
    unsigned in_line = 0;
    std::vector<unsigned> next(count);

    open("4");
    make_eps(count);
    for (unsigned i = 0; i < requests.size(); i++) {
        requests[i].init(m_eps[i % count], i);
        if (requests[i].post() != UCS_OK) {
            ASSERT_EQ(UCS_OK,
                      uct_ep_pending_add(requests[i].ep, &requests[i].req, 0));
            in_line++;
        }
    }
    EXPECT_LT(requests.size() / 2, in_line);
    EXPECT_EQ(is_one() ? 1u : 4u, dcis().num_dci);
    dcx_deadline deadline;

    while (m_live.headers.size() < requests.size()) {
        deadline.check("the last message");
        progress();
    }
    flush();
    EXPECT_EQ(requests.size(), m_live.headers.size());
    for (uint64_t header : m_live.headers) {
        EXPECT_EQ(next[header % count]++, header / count);
    }
}

/* Creation fails after the first initiators: all endpoints use these. */
TEST_P(dcx_many, no_more_can_be_created)
{
    const unsigned count = 50;
    unsigned sent        = 0;

    open("1024");
    make_eps(3);
    for (unsigned i = 0; i < 3; i++) {
        EXPECT_EQ(UCS_OK, send(i));
    }
    unsigned before = dcis().num_dci;

    EXPECT_LE(is_one() ? 1u : 3u, before);
    dcx_peek_no_more_dcis(m_dcx->iface);
    make_eps(count);

    dcx_deadline deadline;
    while (sent < count) {
        deadline.check("resources for a message");
        if (send(sent) == UCS_OK) {
            sent++;
        } else {
            progress();
        }
    }
    flush();
    EXPECT_EQ(before, dcis().num_dci);
    EXPECT_EQ(count + 3, m_live.headers.size());
}

/* Completion queues of this device have room for seven send queues of 64 blocks
 * and 16 more entries; eight do not fit into one. */
class dcx_many_small : public dcx_many {};

TEST_P(dcx_many_small, share_completion_queues)
{
    open("8");
    make_eps(8);
    for (unsigned i = 0; i < 8; i++) {
        EXPECT_EQ(UCS_OK, send(i));
    }
    EXPECT_EQ(8u, dcis().num_dci);
    EXPECT_EQ(2u, dcis().num_cqs);
    flush();
    EXPECT_EQ(8u, m_live.headers.size());
}

INSTANTIATE_TEST_SUITE_P(small, dcx_many_small, testing::Values("dcs"));

std::string policy_name(const testing::TestParamInfo<const char *> &info)
{
    return info.param;
}

INSTANTIATE_TEST_SUITE_P(any, dcx_many,
                         testing::Values("dcs", "dcs_quota", "rand", "hw_dcs"),
                         policy_name);
INSTANTIATE_TEST_SUITE_P(late, dcx_many, testing::Values("dcs", "rand"),
                         policy_name);

} /* namespace */

int main(int argc, char **argv)
{
    std::vector<std::pair<const char *, const char *>>
        env =
            {
                {"UCX_DCX_TX_QUEUE_LEN", "16"},
                {"UCX_DCX_RX_QUEUE_LEN", "4096"},
                {"UCX_DCX_SEG_SIZE", "512"},
                {"UCX_DCX_FC_ENABLE", "n"},
            },
        late = env, small = env;

    late.push_back({"SOFTHCA_DELAY", "50"});
    small.push_back({"UCX_DCX_RX_QUEUE_LEN", "200"});
    small.push_back({"SOFTHCA_LIMITS", "max_cqe=511"});
    return hca_test_main(argc, argv,
                         {{"any", env}, {"late", late}, {"small", small}});
}
