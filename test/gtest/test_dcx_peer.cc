/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Log of a failed peer: its name and the reason, in words; and the end of all
 * outstanding operations, in order
 */
#include "dcx_child.h"
#include "dcx_end.h"
#include "ucx_log.h"

#include <list>
#include <memory>

namespace {

class dcx_peer : public testing::TestWithParam<const char *> {
protected:
    /* Starts the peer first: see dcx_child. */
    void open(const char *node = "0")
    {
        m_child                = std::make_unique<dcx_child>(node);
        m_dcx                  = std::make_unique<dcx_loop>();
        m_dcx->survives_errors = true;
        UCT_CALL(
            m_dcx->create_ep(m_child->dev_addr, m_child->iface_addr, 0, &m_ep));
        m_iov.buffer = m_dcx->mem.data();
        m_iov.length = 64;
        m_iov.memh   = m_dcx->memh;
        m_iov.count  = 1;
    }

    ~dcx_peer()
    {
        if (m_ep != NULL) {
            uct_ep_destroy(m_ep);
        }
    }

    ucs_status_t put(dcx_end &end, uct_ep_h ep, uct_rkey_t rkey = 0x1234)
    {
        return uct_ep_put_zcopy(ep, &m_iov, 1, 0x1000, rkey, &end.comp);
    }

    /* Makes progress until an endpoint has failed. Returns the log. */
    std::string failure()
    {
        dcx_deadline deadline;

        while (m_dcx->errors.empty()) {
            if (deadline.is_over()) {
                ADD_FAILURE() << "no end";
                return "";
            }
            uct_worker_progress(m_dcx->worker);
        }
        return m_log.take();
    }

    static bool has(const std::string &text, const std::string &part)
    {
        return text.find(part) != std::string::npos;
    }

    static std::string host()
    {
        char name[256];

        EXPECT_EQ(0, gethostname(name, sizeof(name)));
        return name;
    }

    /* Checks that @text names DCT, port and process, and the host if it is
     * this one. */
    void expect_names_child(const std::string &text, bool is_here)
    {
        const auto &addr = m_child->iface_addr;
        char dct[32];

        snprintf(dct, sizeof(dct), "DCT 0x%x at ",
                 (addr[2] << 16) | (addr[3] << 8) | addr[4]);
        EXPECT_TRUE(has(text, dct)) << text;
        EXPECT_TRUE(has(text, GetParam())) << text;
        EXPECT_TRUE(has(text, "process " + std::to_string(m_child->pid)))
            << text;
        EXPECT_EQ(is_here, has(text, " on this host (" + host() + ")")) << text;
    }

    /* the first member: collects the messages of the others, too */
    ucx_log_reader m_log;
    std::unique_ptr<dcx_child> m_child;
    std::unique_ptr<dcx_loop> m_dcx;
    uct_ep_h m_ep   = NULL;
    uct_iov_t m_iov = {};
};

TEST_P(dcx_peer, is_killed)
{
    std::vector<int> order;
    std::list<dcx_end> ends;
    dcx_end flushed([&] { order.push_back(100); });

    open();
    m_child->kill();
    for (int i = 0; i < 5; i++) {
        ends.emplace_back([&order, i] { order.push_back(i); });
        EXPECT_EQ(UCS_INPROGRESS, put(ends.back(), m_ep));
    }
    EXPECT_EQ(UCS_INPROGRESS, uct_ep_flush(m_ep, 0, &flushed.comp));

    std::string text = failure();

    EXPECT_EQ((std::vector<int>{0, 1, 2, 3, 4, 100}), order);
    for (auto &end : ends) {
        EXPECT_EQ(UCS_ERR_ENDPOINT_TIMEOUT, end.status);
        EXPECT_EQ(1u, end.count);
    }
    EXPECT_EQ(UCS_ERR_ENDPOINT_TIMEOUT, flushed.status);
    EXPECT_EQ(std::vector<ucs_status_t>{UCS_ERR_ENDPOINT_TIMEOUT},
              m_dcx->errors);
    expect_names_child(text, true);
    EXPECT_TRUE(has(text, "the peer does not answer; check that it is alive "
                          "and its port is up"))
        << text;

    /* the other endpoints are not affected */
    EXPECT_EQ(UCS_OK, uct_ep_am_short(m_dcx->ep, 5, 0, NULL, 0));
    m_dcx->flush();
    EXPECT_EQ(1u, m_dcx->errors.size());
    EXPECT_EQ("", m_log.take());
}

/* The peer has received a request for credits and is killed: nothing is in
 * flight that would fail. */
TEST_P(dcx_peer, is_killed_when_asked)
{
    ucs_status_t status;

    open();
    while ((status = uct_ep_am_short(m_ep, 5, 0, NULL, 0)) == UCS_OK) {
    }
    EXPECT_EQ(UCS_ERR_NO_RESOURCE, status);
    m_dcx->flush();
    m_child->kill();

    std::string text = failure();

    expect_names_child(text, true);
    EXPECT_TRUE(has(text, "the peer does not answer; check that it is alive "
                          "and its port is up"))
        << text;
}

TEST_P(dcx_peer, does_not_allow)
{
    dcx_end end;

    open();
    EXPECT_EQ(UCS_INPROGRESS, put(end, m_ep));

    std::string text = failure();

    EXPECT_EQ(UCS_ERR_CONNECTION_RESET, end.status);
    expect_names_child(text, true);
    EXPECT_TRUE(has(text, "the peer does not allow the access")) << text;
}

/* An error of our memory, not of the peer */
TEST_P(dcx_peer, is_not_the_reason)
{
    dcx_end end;

    open();
    m_iov.buffer = m_dcx->mem.data() + m_dcx->mem.size();
    EXPECT_EQ(UCS_INPROGRESS, put(end, m_ep));

    std::string text = failure();

    EXPECT_EQ(UCS_ERR_IO_ERROR, end.status);
    EXPECT_TRUE(has(text, "memory of this process is not registered")) << text;
}

/* Canceled by the user: nothing is logged. */
TEST_P(dcx_peer, is_canceled)
{
    open();
    EXPECT_EQ(UCS_OK, uct_ep_am_short(m_ep, 5, 0, NULL, 0));
    EXPECT_EQ(UCS_OK, uct_ep_invalidate(m_ep, 0));
    EXPECT_EQ("", failure());
    EXPECT_EQ(std::vector<ucs_status_t>{UCS_ERR_CANCELED}, m_dcx->errors);
}

INSTANTIATE_TEST_SUITE_P(ib, dcx_peer, testing::Values("at lid 1, process"));
INSTANTIATE_TEST_SUITE_P(global, dcx_peer,
                         testing::Values("at lid 1, gid fe80::"));
INSTANTIATE_TEST_SUITE_P(roce, dcx_peer,
                         testing::Values("at gid ::ffff:198.18."));

/* --- other nodes, other reasons ------------------------------------------- */

class dcx_peer_far : public dcx_peer {};

TEST_P(dcx_peer_far, is_killed)
{
    dcx_end end;

    open("1");
    m_child->kill();
    EXPECT_EQ(UCS_INPROGRESS, put(end, m_ep));
    expect_names_child(failure(), false);
}

INSTANTIATE_TEST_SUITE_P(ib, dcx_peer_far, testing::Values("at lid 17,"));

class dcx_peer_full : public dcx_peer {};

TEST_P(dcx_peer_full, does_not_receive)
{
    open();
    for (unsigned i = 0; i < 9; i++) {
        EXPECT_EQ(UCS_OK, uct_ep_am_short(m_ep, 5, 0, NULL, 0));
    }

    std::string text = failure();

    EXPECT_EQ(UCS_ERR_ENDPOINT_TIMEOUT, m_dcx->errors[0]);
    EXPECT_TRUE(has(text, "the peer has no receive buffer")) << text;
}

INSTANTIATE_TEST_SUITE_P(full, dcx_peer_full, testing::Values(""));

class dcx_peer_broken : public dcx_peer {};

TEST_P(dcx_peer_broken, refuses)
{
    dcx_end end;

    open();
    EXPECT_EQ(UCS_INPROGRESS, put(end, m_ep));

    std::string text = failure();

    EXPECT_EQ(UCS_ERR_CONNECTION_RESET, m_dcx->errors[0]);
    EXPECT_TRUE(has(text, "the peer's device could not execute it")) << text;
}

INSTANTIATE_TEST_SUITE_P(broken, dcx_peer_broken, testing::Values(""));

} /* namespace */

int main(int argc, char **argv)
{
    std::vector<std::pair<const char *, const char *>> env = {
        {"UCX_DCX_RX_QUEUE_LEN", "64"},
        {"UCX_DCX_TX_QUEUE_LEN", "32"},
        {"UCX_DCX_FC_RESEND_TIMEOUT", "20ms"},
        {"UCX_DCX_SEG_SIZE", "512"},
        {"UCX_DCX_TIMEOUT", "1ms"},
        {"UCX_DCX_RETRY_COUNT", "2"},
        {"UCX_DCX_FAILURE", "error"},
        {"SOFTHCA_LOG", "error"},
    };
    auto global = env, roce = env, full = env, broken = env;

    global.push_back({"UCX_DCX_IS_GLOBAL", "y"});
    roce.push_back({"SOFTHCA_LINK", "roce"});
    full.push_back({"UCX_DCX_FC_ENABLE", "n"});
    full.push_back({"UCX_DCX_RX_QUEUE_LEN", "8"});
    full.push_back({"UCX_DCX_RNR_RETRY_COUNT", "0"});
    broken.push_back({"SOFTHCA_FAULT", "nak_op:op=write"});
    return hca_test_main(argc, argv,
                         {{"ib", env},
                          {"global", global},
                          {"roce", roce},
                          {"full", full},
                          {"broken", broken}});
}
