/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Unsignaled WQEs: which WQEs of a burst are signaled, and that all complete
 * nevertheless: by a NOP, by the next signaled one, at once for a flush, or by
 * an error among them. One initiator, whose ring shows the posted WQEs; with
 * every policy.
 */
#include "dc_twin.h"
#include "dcx_end.h"
#include "dcx_loop.h"

#include <memory>

namespace {

constexpr unsigned moderation = 8;
constexpr unsigned no_dci     = 0xffff;

/* A WQE in the ring; @asks: it is signaled */
struct posted {
    unsigned opcode;
    bool asks;
    unsigned num_bb;
};

class dcx_tail : public testing::TestWithParam<const char *> {
protected:
    dcx_tail()
    {
        setenv("UCX_DCX_TX_POLICY", GetParam(), 1);
        open("8");
    }

    ~dcx_tail()
    {
        m_dcx.reset();
        unsetenv("UCX_DCX_TX_POLICY");
        unsetenv("UCX_DCX_TX_CQ_MODERATION");
    }

    void open(const char *blocks)
    {
        m_dcx.reset();
        setenv("UCX_DCX_TX_CQ_MODERATION", blocks, 1);
        m_dcx.reset(new dcx_loop);
        m_dcx->survives_errors = true;
        m_at                   = m_dcx->view().pi;
    }

    /* With other policies each WQE is signaled. */
    bool is_moderated() const { return !strcmp(GetParam(), "dcs_quota"); }

    /* Returns the status of a canceling flush: a shared initiator is not
     * stopped. */
    ucs_status_t canceled_status() const
    {
        return strcmp(GetParam(), "rand") ? UCS_ERR_CANCELED : UCS_OK;
    }

    uct_rkey_t rkey() const { return dcx_peek_rkey(m_dcx->memh); }

    uint64_t remote(size_t offset) const
    {
        return (uintptr_t)m_dcx->mem.data() + 8192 + offset;
    }

    /* Posts a WQE of one block. */
    ucs_status_t put(uct_ep_h ep, uct_rkey_t rkey, uint8_t value = 1)
    {
        return uct_ep_put_short(ep, &value, sizeof(value), remote(value), rkey);
    }

    void put(unsigned count)
    {
        for (unsigned i = 0; i < count; i++) {
            ASSERT_EQ(UCS_OK, put(m_dcx->ep, rkey()));
        }
    }

    static size_t pack(void *dest, void *arg)
    {
        memset(dest, *(uint8_t *)arg, 200);
        return 200;
    }

    static void unpack(void *arg, const void *data, size_t length)
    {
        memcpy(arg, data, length);
    }

    ssize_t put_copied(uint8_t value, size_t offset)
    {
        return uct_ep_put_bcopy(m_dcx->ep, pack, &value, remote(offset),
                                rkey());
    }

    /* Returns the WQEs since the last call. */
    std::vector<posted> wqes()
    {
        struct dcx_view view = m_dcx->view();
        std::vector<posted> list;

        while (m_at != view.pi) {
            wqe_bytes wqe = dc_twin::wqe_at(view.ring, view.num_bb, m_at);
            posted one    = {wqe[3], (wqe[11] & MLX5_WQE_CTRL_CQ_UPDATE) != 0,
                             (unsigned)((wqe.size() + 63) / 64)};

            list.push_back(one);
            m_at += one.num_bb;
        }
        return list;
    }

    /* Returns a letter for each WQE: 'N' for a NOP, 'a' for a signaled WQE, '.'
     * for an unsignaled one. */
    static std::string asking(const std::vector<posted> &list)
    {
        std::string text;

        for (const posted &one : list) {
            text += (one.opcode == MLX5_OPCODE_NOP) ? 'N' :
                    one.asks                        ? 'a' :
                                                      '.';
        }
        return text;
    }

    unsigned progress() { return uct_worker_progress(m_dcx->worker); }

    bool is_at_rest() const
    {
        return !is_moderated() || (dcx_peek_place(m_dcx->ep) == no_dci);
    }

    std::unique_ptr<dcx_loop> m_dcx;
    uint16_t m_at;
};

/* The first one is signaled, and one in eight blocks; a NOP completes the
 * rest. */
TEST_P(dcx_tail, burst)
{
    std::string expected(22, 'a');

    put(22);
    std::vector<posted> list = wqes();

    for (size_t i = 0; i < expected.size(); i++) {
        if (is_moderated() && (i % (moderation / list[0].num_bb) != 0)) {
            expected[i] = '.';
        }
    }
    ASSERT_EQ('.', is_moderated() ? expected[21] : '.');
    EXPECT_EQ(expected, asking(list));
    EXPECT_FALSE(is_moderated() && is_at_rest());

    for (int i = 0; i < 3; i++) {
        progress();
    }
    EXPECT_EQ(is_moderated() ? "N" : "", asking(wqes()));
    EXPECT_TRUE(is_at_rest());
    EXPECT_EQ(UCS_OK, uct_iface_flush(m_dcx->iface, 0, NULL));
}

/* Nothing else is posted if each completes before the next one. */
TEST_P(dcx_tail, one_at_a_time)
{
    for (unsigned i = 0; i < 3 * moderation; i++) {
        put(1);
        EXPECT_EQ(1u, progress());
        EXPECT_TRUE(is_at_rest());
        EXPECT_EQ(0u, progress());
    }
    EXPECT_EQ(std::string(3 * moderation, 'a'), asking(wqes()));
}

/* The next operation completes the ones before it, without a NOP. */
TEST_P(dcx_tail, goes_on)
{
    put(3);
    EXPECT_LT(0u, progress());
    put(1);
    EXPECT_LT(0u, progress());
    EXPECT_TRUE(is_at_rest());
    EXPECT_EQ(0u, progress());
    EXPECT_EQ(is_moderated() ? "a..a" : "aaaa", asking(wqes()));
}

/* The queue never becomes empty. */
TEST_P(dcx_tail, stream)
{
    for (unsigned i = 0; i < 1000; i++) {
        put(2);
        ASSERT_EQ(is_moderated() ? "a." : "aa", asking(wqes())) << i;
        progress();
    }
    m_dcx->flush();
    EXPECT_TRUE(is_at_rest());
}

TEST_P(dcx_tail, every_one)
{
    open("1");
    put(5);
    m_dcx->flush();
    EXPECT_EQ("aaaaa", asking(wqes()));
}

TEST_P(dcx_tail, flush)
{
    dcx_end end;

    put(3);
    ASSERT_EQ(UCS_INPROGRESS, uct_ep_flush(m_dcx->ep, 0, &end.comp));
    EXPECT_EQ(is_moderated() ? "a..N" : "aaa", asking(wqes())) << "at once";
    EXPECT_EQ(UCS_INPROGRESS, uct_ep_flush(m_dcx->ep, 0, NULL));
    EXPECT_EQ("", asking(wqes())) << "only once";
    put(1);

    dcx_deadline deadline;
    while (end.count == 0) {
        deadline.check("the end of the flush");
        ASSERT_LT(0u, progress());
    }
    EXPECT_EQ(UCS_OK, end.status);
    m_dcx->flush();
    EXPECT_EQ(1u, end.count);
    EXPECT_TRUE(is_at_rest());
}

TEST_P(dcx_tail, flush_interface)
{
    put(3);
    EXPECT_EQ(UCS_INPROGRESS, uct_iface_flush(m_dcx->iface, 0, NULL));
    EXPECT_EQ(is_moderated() ? "a..N" : "aaa", asking(wqes()));
    progress();
    EXPECT_EQ(UCS_OK, uct_iface_flush(m_dcx->iface, 0, NULL));
}

/* Arming the event posts the NOP that will wake the process. */
TEST_P(dcx_tail, sleeps)
{
    put(3);
    progress();
    wqes();
    EXPECT_EQ(is_moderated() ? UCS_ERR_BUSY : UCS_OK,
              uct_iface_event_arm(m_dcx->iface, UCT_EVENT_SEND_COMP));
    EXPECT_EQ(is_moderated() ? "N" : "", asking(wqes()));
}

/* Operations with a completion are always signaled. */
TEST_P(dcx_tail, awaited)
{
    uint64_t result = 0;
    dcx_end get, fetch, zcopy;
    uct_iov_t iov = {};
    std::vector<uint8_t> copy(8);

    iov.buffer = m_dcx->mem.data();
    iov.length = 8;
    iov.memh   = m_dcx->memh;
    iov.count  = 1;
    put(2);
    ASSERT_EQ(UCS_INPROGRESS,
              uct_ep_get_bcopy(m_dcx->ep, unpack, copy.data(), copy.size(),
                               remote(0), rkey(), &get.comp));
    ASSERT_EQ(UCS_INPROGRESS,
              uct_ep_atomic64_fetch(m_dcx->ep, UCT_ATOMIC_OP_ADD, 1, &result,
                                    remote(0), rkey(), &fetch.comp));
    ASSERT_EQ(UCS_INPROGRESS, uct_ep_put_zcopy(m_dcx->ep, &iov, 1, remote(8),
                                               rkey(), &zcopy.comp));
    EXPECT_EQ(is_moderated() ? "a.aaa" : "aaaaa", asking(wqes()));
    progress();
    EXPECT_EQ(1u, get.count);
    EXPECT_EQ(1u, fetch.count);
    EXPECT_EQ(1u, zcopy.count);
    EXPECT_TRUE(is_at_rest());
}

/* Others wait for the initiator no longer than necessary. */
TEST_P(dcx_tail, others_wait)
{
    struct request : uct_pending_req_t {
        std::function<ucs_status_t()> post;
        bool is_sent = false;
    } req;
    uct_ep_h ep = m_dcx->make_ep();

    put(3);
    req.post = [=, this] { return put(ep, rkey()); };
    req.func = [](uct_pending_req_t *self) {
        request *called     = (request *)self;
        ucs_status_t status = called->post();

        called->is_sent = (status == UCS_OK);
        return status;
    };
    if (is_moderated()) {
        ASSERT_EQ(UCS_ERR_NO_RESOURCE, put(ep, rkey()));
        ASSERT_EQ(UCS_OK, uct_ep_pending_add(ep, &req, 0));
        progress();
        EXPECT_EQ("a..N", asking(wqes())) << "in the same call";
        progress();
        EXPECT_TRUE(req.is_sent);
    }
    m_dcx->flush();
    uct_ep_destroy(ep);
}

/* Copied data of a destroyed endpoint is sent, and its initiator is
 * released. */
TEST_P(dcx_tail, destroy)
{
    uct_ep_h ep = m_dcx->make_ep();

    for (uint8_t i = 0; i < 4; i++) {
        ASSERT_EQ(200, put_copied(i + 1, i * 200));
    }
    uct_ep_destroy(m_dcx->ep);
    m_dcx->ep = ep;
    for (int i = 0; i < 3; i++) {
        progress();
    }
    EXPECT_EQ(is_moderated() ? "a...N" : "aaaa", asking(wqes()));
    for (uint8_t i = 0; i < 4; i++) {
        EXPECT_EQ(i + 1, *(uint8_t *)remote(i * 200 + 199));
    }
    put(1); /* uses the same initiator */
    EXPECT_EQ(1u, progress());
    EXPECT_EQ("a", asking(wqes()));
}

/* The interface is closed with outstanding WQEs. */
TEST_P(dcx_tail, close)
{
    for (uint8_t i = 0; i < 4; i++) {
        ASSERT_EQ(200, put_copied(i, i * 200));
    }
}

/* An error among unsignaled WQEs is found: earlier ones were executed, later
 * ones were not. */
TEST_P(dcx_tail, error)
{
    uct_ep_h other = m_dcx->make_ep();
    dcx_end end;

    ASSERT_EQ(200, put_copied(1, 0));
    ASSERT_EQ(200, put_copied(2, 200));
    ASSERT_EQ(UCS_OK, put(m_dcx->ep, rkey() ^ 0x500));
    ASSERT_EQ(200, put_copied(3, 400));
    EXPECT_EQ(is_moderated() ? "a..." : "aaaa", asking(wqes()));
    ASSERT_EQ(UCS_INPROGRESS, uct_ep_flush(m_dcx->ep, 0, &end.comp));

    dcx_deadline deadline;
    while (end.count == 0) {
        deadline.check("the end of the flush");
        progress();
    }
    EXPECT_EQ(UCS_ERR_CONNECTION_RESET, end.status);
    ASSERT_EQ(1u, m_dcx->errors.size());
    EXPECT_EQ(UCS_ERR_CONNECTION_RESET, m_dcx->errors[0]);
    EXPECT_EQ(1, *(uint8_t *)remote(199));
    EXPECT_EQ(2, *(uint8_t *)remote(399));
    EXPECT_EQ(0x11, *(uint8_t *)remote(599));

    /* the initiator continues, for others */
    m_at = m_dcx->view().pi;
    std::swap(m_dcx->ep, other);
    put(3);
    EXPECT_EQ(is_moderated() ? "a.." : "aaa", asking(wqes()));
    m_dcx->flush();
    EXPECT_TRUE(is_at_rest());
    EXPECT_EQ(1u, m_dcx->errors.size());
    uct_ep_destroy(other);
}

TEST_P(dcx_tail, cancel)
{
    dcx_end end;

    put(3);
    ASSERT_EQ(UCS_INPROGRESS,
              uct_ep_flush(m_dcx->ep, UCT_FLUSH_FLAG_CANCEL, &end.comp));

    dcx_deadline deadline;
    while (end.count == 0) {
        deadline.check("the end of the cancel");
        progress();
    }
    EXPECT_EQ(canceled_status(), end.status);
    EXPECT_EQ(UCS_OK, uct_iface_flush(m_dcx->iface, 0, NULL));
    EXPECT_EQ(0u, m_dcx->errors.size());
}

/* Posted from a callback, when the queue has just become idle */
TEST_P(dcx_tail, posted_from_callback)
{
    uct_iov_t iov = {};
    dcx_end end([this] { put(3); });

    iov.buffer = m_dcx->mem.data();
    iov.length = 8;
    iov.memh   = m_dcx->memh;
    iov.count  = 1;
    put(1); /* the first operation on an initiator is not on the fast path */
    EXPECT_EQ(1u, progress());
    wqes();
    ASSERT_EQ(UCS_INPROGRESS, uct_ep_put_zcopy(m_dcx->ep, &iov, 1, remote(8),
                                               rkey(), &end.comp));
    EXPECT_LE(1u, progress());
    EXPECT_EQ(is_moderated() ? "aa.." : "aaaa", asking(wqes()));
    m_dcx->flush();
    EXPECT_TRUE(is_at_rest());
}

/* Posted from a callback, when other operations end in the same call */
TEST_P(dcx_tail, posted_from_callback_of_many)
{
    dcx_end flushed([this] { put(3); });

    put(3);
    ASSERT_EQ(UCS_INPROGRESS, uct_ep_flush(m_dcx->ep, 0, &flushed.comp));
    for (int i = 0; i < 5; i++) {
        progress();
    }
    EXPECT_EQ(1u, flushed.count);
    EXPECT_TRUE(is_at_rest());
    EXPECT_EQ(UCS_OK, uct_iface_flush(m_dcx->iface, 0, NULL));
}

/* A full ring has room for the NOPs of a flush and of a cancel. */
TEST_P(dcx_tail, full)
{
    unsigned count = 0;
    dcx_end canceled;

    while (put(m_dcx->ep, rkey()) == UCS_OK) {
        ASSERT_GT(1000u, ++count);
    }
    EXPECT_EQ(UCS_INPROGRESS, uct_iface_flush(m_dcx->iface, 0, NULL));
    ASSERT_EQ(UCS_INPROGRESS,
              uct_ep_flush(m_dcx->ep, UCT_FLUSH_FLAG_CANCEL, &canceled.comp));
    std::string asked = asking(wqes());

    EXPECT_EQ(count + (is_moderated() ? 2 : 1), asked.size());
    EXPECT_EQ('N', asked.back());

    dcx_deadline deadline;
    while (canceled.count == 0) {
        deadline.check("the end of the cancel");
        progress();
    }
    EXPECT_EQ(canceled_status(), canceled.status);
    m_dcx->flush();
}

std::string policy_name(const testing::TestParamInfo<const char *> &info)
{
    return info.param;
}

INSTANTIATE_TEST_SUITE_P(compact, dcx_tail,
                         testing::Values("dcs", "dcs_quota", "rand"),
                         policy_name);
INSTANTIATE_TEST_SUITE_P(grh, dcx_tail, testing::Values("dcs_quota", "rand"),
                         policy_name);

} /* namespace */

int main(int argc, char **argv)
{
    std::vector<std::pair<const char *, const char *>> env = {
        {"UCX_DCX_NUM_DCI", "1"},       {"UCX_DCX_TX_QUEUE_LEN", "16"},
        {"UCX_DCX_RX_QUEUE_LEN", "64"}, {"UCX_DCX_SEG_SIZE", "512"},
        {"UCX_DCX_FAILURE", "debug"},
    };
    auto grh = env;

    grh.push_back({"UCX_DCX_IS_GLOBAL", "y"});
    return hca_test_main(argc, argv, {{"compact", env}, {"grh", grh}});
}
