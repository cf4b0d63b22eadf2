/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * What dcx does beside its operations: endpoints that end in a callback of
 * their own operations, sizes that it announces, peers that it refuses. One
 * initiator and long WQEs, see main(): two endpoints get the same queue.
 */
#include "dcx_end.h"
#include "dcx_loop.h"

namespace {

class dcx_iface : public testing::Test {
protected:
    static constexpr size_t size = 1024;

    dcx_iface() : m_a(m_dcx.make_ep()), m_b(m_dcx.ep)
    {
        m_dcx.survives_errors = true;
        m_remote              = (uintptr_t)m_dcx.mem.data() + 8192;
        m_rkey                = dcx_peek_rkey(m_dcx.memh);
        m_iov.buffer          = m_dcx.mem.data();
        m_iov.length          = size;
        m_iov.memh            = m_dcx.memh;
        m_iov.count           = 1;
    }

    ucs_status_t put_short(uct_ep_h ep)
    {
        return uct_ep_put_short(ep, m_dcx.mem.data(), 8, m_remote, m_rkey);
    }

    ucs_status_t put_zcopy(uct_ep_h ep, dcx_end &end, uct_rkey_t rkey)
    {
        return uct_ep_put_zcopy(ep, &m_iov, 1, m_remote, rkey, &end.comp);
    }

    void expect_works(uct_ep_h ep)
    {
        dcx_end end;

        EXPECT_EQ(UCS_INPROGRESS, put_zcopy(ep, end, m_rkey));
        m_dcx.flush();
        EXPECT_EQ(UCS_OK, end.status);
        EXPECT_EQ(1u, end.count);
    }

    dcx_loop   m_dcx;
    uct_ep_h   m_a, m_b;
    uct_iov_t  m_iov = {};
    uint64_t   m_remote;
    uct_rkey_t m_rkey;
};

/* --- endpoints that end in a callback ------------------------------------- */

/* More of A is outstanding, from the user's memory: the queue is reset, and B
 * posts on it before A's completion returns. What becomes of B's operations is
 * told of B's, not guessed from where the queue stood before. */
TEST_F(dcx_iface, destroy_in_completion)
{
    dcx_end last_of_b, behind;
    dcx_end first([&] {
        uct_ep_destroy(m_a);
        EXPECT_EQ(UCS_OK, put_short(m_b));
        EXPECT_EQ(UCS_INPROGRESS, put_zcopy(m_b, last_of_b, m_rkey ^ ~0xffu));
    });

    EXPECT_EQ(UCS_OK, put_short(m_a));
    EXPECT_EQ(UCS_INPROGRESS, put_zcopy(m_a, first, m_rkey));
    EXPECT_EQ(UCS_INPROGRESS, put_zcopy(m_a, behind, m_rkey));
    m_dcx.flush();

    EXPECT_EQ(UCS_OK, first.status);
    EXPECT_EQ(UCS_ERR_CANCELED, behind.status);
    EXPECT_EQ(UCS_ERR_CONNECTION_RESET, last_of_b.status);
    EXPECT_EQ(1u, first.count);
    EXPECT_EQ(1u, behind.count);
    EXPECT_EQ(1u, last_of_b.count);
    ASSERT_EQ(1u, m_dcx.errors.size());
    EXPECT_EQ(UCS_ERR_CONNECTION_RESET, m_dcx.errors[0]);
}

/* ... and A's own error, which then is nobody's any more */
TEST_F(dcx_iface, destroy_before_failure)
{
    dcx_end failed, first([&] { uct_ep_destroy(m_a); });

    EXPECT_EQ(UCS_INPROGRESS, put_zcopy(m_a, first, m_rkey));
    EXPECT_EQ(UCS_INPROGRESS, put_zcopy(m_a, failed, m_rkey ^ ~0xffu));
    m_dcx.flush();
    EXPECT_EQ(UCS_OK, first.status);
    EXPECT_EQ(UCS_ERR_CANCELED, failed.status);
    EXPECT_EQ(0u, m_dcx.errors.size());
    expect_works(m_b);
}

/* Nothing is outstanding when a flush ends: the initiator goes back once. */
TEST_F(dcx_iface, destroy_in_flush)
{
    dcx_end flushed([&] { uct_ep_destroy(m_a); });
    uct_ep_h other = m_dcx.make_ep();

    EXPECT_EQ(UCS_OK, put_short(m_a));
    EXPECT_EQ(UCS_INPROGRESS, uct_ep_flush(m_a, 0, &flushed.comp));
    m_dcx.flush();
    EXPECT_EQ(UCS_OK, flushed.status);

    /* there is one initiator to be had, not two */
    EXPECT_EQ(UCS_OK, put_short(m_b));
    EXPECT_EQ(UCS_ERR_NO_RESOURCE, put_short(other));
    m_dcx.flush();
    expect_works(other);
    uct_ep_destroy(other);
}

/* --- what is announced and what is refused -------------------------------- */

TEST_F(dcx_iface, sizes)
{
    /* a WQE of a get ends at 512 bytes, however long others are */
    EXPECT_GT(m_dcx.attr.cap.put.max_iov, m_dcx.attr.cap.get.max_iov);
    EXPECT_EQ((512u - 64 - 16) / 16, m_dcx.attr.cap.get.max_iov);
    EXPECT_LE(m_dcx.attr.cap.am.max_hdr, m_dcx.attr.cap.am.max_zcopy);

    std::vector<uct_iov_t> iov(m_dcx.attr.cap.get.max_iov, m_iov);
    dcx_end end;

    for (auto &piece : iov) {
        piece.length = 8;
    }
    EXPECT_EQ(UCS_INPROGRESS,
              uct_ep_get_zcopy(m_b, iov.data(), iov.size(), m_remote, m_rkey,
                               &end.comp));
    m_dcx.flush();
    EXPECT_EQ(UCS_OK, end.status);
    uct_ep_destroy(m_a);
}

/* Full member of the default partition, as the port is: bytes 4 and 5 of the
 * address. A limited member of it hears the port, others do not. */
TEST_F(dcx_iface, partition)
{
    auto addr = m_dcx.dev_addr();

    EXPECT_EQ(0xff, addr[4]);
    EXPECT_EQ(0xff, addr[5]);
    EXPECT_TRUE(m_dcx.is_reachable(addr));
    addr[4] = 0x7f;
    EXPECT_TRUE(m_dcx.is_reachable(addr));
    addr[5] = 0xfe;
    EXPECT_FALSE(m_dcx.is_reachable(addr));
    addr[4] = 0xff;
    EXPECT_FALSE(m_dcx.is_reachable(addr));
    uct_ep_destroy(m_a);
}

} /* namespace */

int main(int argc, char **argv)
{
    return hca_test_main(argc, argv, {{"long", {
        {"UCX_DCX_NUM_DCI", "1"}, {"UCX_DCX_TX_QUEUE_LEN", "16"},
        {"UCX_DCX_RX_QUEUE_LEN", "64"}, {"UCX_DCX_TX_MIN_INLINE", "512"},
        {"UCX_DCX_SEG_SIZE", "1024"}
    }}});
}
