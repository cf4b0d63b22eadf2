/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Endpoints that are destroyed in a callback of their own operations, reported
 * limits, refused peers, and peers with smaller receive buffers. One initiator
 * and long WQEs, see main(): two endpoints use the same queue.
 */
#include "dcx_end.h"
#include "dcx_live_peer.h"
#include "ucx_log.h"

#include <memory>

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

    dcx_loop m_dcx;
    uct_ep_h m_a, m_b;
    uct_iov_t m_iov = {};
    uint64_t m_remote;
    uct_rkey_t m_rkey;
};

/* --- endpoints that are destroyed in a callback --------------------------- */

/* A further zero-copy operation of A is outstanding: it ends at once, and B
 * gets the initiator. */
TEST_F(dcx_iface, destroy_in_completion)
{
    dcx_end behind, of_b;
    dcx_end first([&] {
        uct_ep_destroy(m_a);
        EXPECT_EQ(UCS_ERR_CANCELED, behind.status);
        EXPECT_EQ(UCS_OK, put_short(m_b));
    });

    EXPECT_EQ(UCS_OK, put_short(m_a));
    EXPECT_EQ(UCS_INPROGRESS, put_zcopy(m_a, first, m_rkey));
    EXPECT_EQ(UCS_INPROGRESS, put_zcopy(m_a, behind, m_rkey));
    m_dcx.flush();

    EXPECT_EQ(UCS_OK, first.status);
    EXPECT_EQ(UCS_ERR_CANCELED, behind.status);
    EXPECT_EQ(1u, first.count);
    EXPECT_EQ(1u, behind.count);

    EXPECT_EQ(UCS_OK, put_short(m_b));
    EXPECT_EQ(UCS_INPROGRESS, put_zcopy(m_b, of_b, m_rkey ^ ~0xffu));
    m_dcx.flush();
    EXPECT_EQ(UCS_ERR_CONNECTION_RESET, of_b.status);
    EXPECT_EQ(1u, of_b.count);
    ASSERT_EQ(1u, m_dcx.errors.size());
    EXPECT_EQ(UCS_ERR_CONNECTION_RESET, m_dcx.errors[0]);
}

/* A further operation of A fails after A was destroyed: it affects no other
 * endpoint. */
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

/* Nothing is outstanding when a flush ends: both the end and the destruction
 * could release the initiator, which must happen once. */
TEST_F(dcx_iface, destroy_in_flush)
{
    dcx_end flushed([&] { uct_ep_destroy(m_a); });
    uct_ep_h other = m_dcx.make_ep();

    EXPECT_EQ(UCS_OK, put_short(m_a));
    EXPECT_EQ(UCS_INPROGRESS, uct_ep_flush(m_a, 0, &flushed.comp));
    m_dcx.flush();
    EXPECT_EQ(UCS_OK, flushed.status);

    /* one initiator is available, not two */
    EXPECT_EQ(UCS_OK, put_short(m_b));
    EXPECT_EQ(UCS_ERR_NO_RESOURCE, put_short(other));
    m_dcx.flush();
    expect_works(other);
    uct_ep_destroy(other);
}

/* --- reported sizes, refused input ---------------------------------------- */

TEST_F(dcx_iface, sizes)
{
    /* a WQE of a get has at most 512 bytes; others can be longer here */
    const unsigned max_plain = (512 - 64 - 16) / 16;
    EXPECT_GT(m_dcx.view().rma_iov, max_plain);
    EXPECT_LE(m_dcx.attr.cap.am.max_hdr, m_dcx.attr.cap.am.max_zcopy);

    std::vector<uct_iov_t> iov(max_plain, m_iov);
    dcx_end end;

    for (auto &piece : iov) {
        piece.length = 8;
    }
    EXPECT_EQ(UCS_INPROGRESS, uct_ep_get_zcopy(m_b, iov.data(), iov.size(),
                                               m_remote, m_rkey, &end.comp));
    m_dcx.flush();
    EXPECT_EQ(UCS_OK, end.status);
    uct_ep_destroy(m_a);
}

/* UCP connects to other nodes only by interfaces that have these flags. */
TEST_F(dcx_iface, of_a_network)
{
    EXPECT_EQ(dcx_peek_network_flags(),
              m_dcx.attr.cap.flags & dcx_peek_network_flags());
    uct_ep_destroy(m_a);
}

/* Bytes 4 and 5 of the device address are the P_Key, here that of a full member
 * of the default partition. Such a port also reaches limited members of it, but
 * no other partition. */
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

/* --- a peer whose receive buffers are smaller ----------------------------- */

/* The interface of the fixture, and one with another UCX_DCX_SEG_SIZE */
class dcx_small_peer : public dcx_iface,
                       public testing::WithParamInterface<const char *> {
protected:
    ~dcx_small_peer() { uct_ep_destroy(m_a); }

    static std::unique_ptr<live_peer> peer(const char *seg_size)
    {
        std::string own_size   = getenv("UCX_DCX_SEG_SIZE");
        std::string own_inline = getenv("UCX_DCX_TX_MIN_INLINE");

        setenv("UCX_DCX_TX_MIN_INLINE", "0", 1);
        setenv("UCX_DCX_SEG_SIZE", seg_size, 1);
        auto opened = std::make_unique<live_peer>();
        setenv("UCX_DCX_SEG_SIZE", own_size.c_str(), 1);
        setenv("UCX_DCX_TX_MIN_INLINE", own_inline.c_str(), 1);
        return opened;
    }

    static size_t pack(void *dest, void *arg)
    {
        memset(dest, 0, *(size_t *)arg);
        return *(size_t *)arg;
    }

    static ssize_t am_bcopy(uct_ep_h ep, size_t length)
    {
        return uct_ep_am_bcopy(ep, 6, pack, &length, 0);
    }

    ucs_status_t am_zcopy(uct_ep_h ep, unsigned hdr, size_t length,
                          dcx_end &end)
    {
        m_iov.length = length;
        return uct_ep_am_zcopy(ep, 6, m_dcx.mem.data(), hdr, &m_iov, 1, 0,
                               &end.comp);
    }

    void expect_too_long(ssize_t status, size_t length, size_t max)
    {
        std::string said = m_log.take(), text;

        EXPECT_EQ(UCS_ERR_EXCEEDS_LIMIT, status);
        text = "message of " + std::to_string(length) + " bytes";
        EXPECT_NE(std::string::npos, said.find(text)) << said;
        text = "allows " + std::to_string(max);
        EXPECT_NE(std::string::npos, said.find(text)) << said;
    }

    void deliver(live_peer &to, size_t count)
    {
        m_dcx.flush(); /* the messages have arrived */
        for (size_t i = 0; i <= count; i++) {
            to.progress();
        }
        EXPECT_EQ(count, to.headers.size());
    }

    ucx_log_reader m_log;
};

/* Messages that fit are sent; others are refused without an effect on the only
 * initiator. */
TEST_P(dcx_small_peer, length)
{
    auto small  = peer("700");
    uct_ep_h ep = m_dcx.make_ep(small->loop);
    dcx_end end, never;

    EXPECT_EQ(698, am_bcopy(ep, 698));
    expect_too_long(am_bcopy(ep, 699), 699, 698);
    EXPECT_EQ(UCS_INPROGRESS, am_zcopy(ep, 8, 690, end));
    expect_too_long(am_zcopy(ep, 8, 691, never), 699, 698);
    deliver(*small, 2);
    EXPECT_EQ(UCS_OK, end.status);
    EXPECT_EQ(0u, never.count);

    expect_too_long(am_bcopy(ep, 1016), 1016, 698);
    expect_works(m_b); /* the initiator is available again */
    EXPECT_EQ(UCS_OK, uct_ep_flush(ep, 0, NULL));
    EXPECT_EQ(8, am_bcopy(ep, 8));
    deliver(*small, 3);
    EXPECT_EQ(0u, m_dcx.errors.size());
    uct_ep_destroy(ep);
}

/* If the peer has larger buffers, the limit of this interface applies. */
TEST_P(dcx_small_peer, greater)
{
    auto great  = peer("4000");
    uct_ep_h ep = m_dcx.make_ep(great->loop);

    EXPECT_EQ(1016u, m_dcx.attr.cap.am.max_bcopy);
    EXPECT_EQ(1016, am_bcopy(ep, 1016));
    deliver(*great, 1);
    EXPECT_EQ("", m_log.take());
    uct_ep_destroy(ep);
}

/* A peer whose buffers are too small for a short message is refused: short
 * messages are not compared with the peer's limit. */
TEST_P(dcx_small_peer, too_small_for_short)
{
    auto small  = peer("512");
    uct_ep_h ep = NULL;

    EXPECT_LT(512u - 2, m_dcx.attr.cap.am.max_short);
    EXPECT_FALSE(
        m_dcx.is_reachable(small->loop.dev_addr(), small->loop.iface_addr()));
    EXPECT_EQ("", m_log.take());
    EXPECT_EQ(UCS_ERR_INVALID_ADDR,
              m_dcx.create_ep(small->loop.dev_addr(), small->loop.iface_addr(),
                              0, &ep));
    EXPECT_NE(std::string::npos, m_log.take().find("UCX_DCX_TX_MIN_INLINE"));
}

INSTANTIATE_TEST_SUITE_P(local, dcx_small_peer, testing::Values("local"));
INSTANTIATE_TEST_SUITE_P(global, dcx_small_peer, testing::Values("global"));

} /* namespace */

int main(int argc, char **argv)
{
    std::vector<std::pair<const char *, const char *>> local = {
        {"UCX_DCX_NUM_DCI", "1"},       {"UCX_DCX_TX_QUEUE_LEN", "16"},
        {"UCX_DCX_RX_QUEUE_LEN", "64"}, {"UCX_DCX_TX_MIN_INLINE", "512"},
        {"UCX_DCX_SEG_SIZE", "1024"},   {"UCX_DCX_FC_INITIAL", "4"},
    };
    auto global = local;

    global.push_back({"UCX_DCX_IS_GLOBAL", "y"});
    return hca_test_main(argc, argv, {{"local", local}, {"global", global}});
}
