/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Tag matching by the device, through UCT: messages that match a posted receive
 * and messages that do not, rendezvous, and canceled receives.
 */
#include "dcx_match_bench.h"

namespace {

class dcx_tag : public dcx_tag_bench {};

/* --- eager ---------------------------------------------------------------- */

TEST_P(dcx_tag, expected)
{
    const auto &cap = m_dcx.attr.cap.tag;
    uint64_t imm    = 0x123456789abcdef0ull;

    for (size_t length :
         {(size_t)0, (size_t)1, (size_t)32, (size_t)63, (size_t)64, (size_t)65,
          (size_t)1024, (size_t)4000, cap.eager.max_bcopy}) {
        SCOPED_TRACE(length);
        dcx_tag_mem mem(m_dcx, length, length);
        dcx_tag_recv first(m_dcx, length), second(m_dcx, length + 1000),
            third(m_dcx, cap.eager.max_bcopy);
        dcx_end end;

        EXPECT_EQ(UCS_OK, first.post(5));
        EXPECT_EQ(UCS_OK, second.post(6));
        EXPECT_EQ(UCS_OK, third.post(7));
        EXPECT_EQ(UCS_INPROGRESS, send_zcopy(7, 1, mem, end));
        expect_received(third, 7, 1, mem);
        EXPECT_EQ((ssize_t)length, send_bcopy(6, imm, mem));
        expect_received(second, 6, imm, mem);
        if (length <= cap.eager.max_short) {
            EXPECT_EQ(UCS_OK, send_short(5, mem));
        } else {
            EXPECT_EQ((ssize_t)length, send_bcopy(5, 0, mem));
        }
        expect_received(first, 5, 0, mem);
        progress_until([&] { return end.count == 1; });
    }
}

TEST_P(dcx_tag, unexpected)
{
    const auto &cap = m_dcx.attr.cap.tag;

    for (size_t length :
         {(size_t)0, (size_t)1, (size_t)16, (size_t)17, (size_t)48, (size_t)49,
          (size_t)1024, cap.eager.max_bcopy}) {
        for (uint64_t imm : {0ull, 1ull, 1ull << 32, ~0ull}) {
            SCOPED_TRACE(length);
            dcx_tag_mem mem(m_dcx, length, length);
            dcx_end end;

            EXPECT_EQ((ssize_t)length, send_bcopy(length, imm, mem));
            EXPECT_EQ(UCS_INPROGRESS, send_zcopy(3, imm, mem, end));
            dcx_tag_unexpected got = wait_unexpected();
            EXPECT_FALSE(got.is_rndv);
            EXPECT_EQ(length, got.tag);
            EXPECT_EQ(imm, got.imm);
            EXPECT_EQ(mem.bytes, got.data);
            got = wait_unexpected();
            EXPECT_EQ(3u, got.tag);
            EXPECT_EQ(mem.bytes, got.data);
            progress_until([&] { return end.count == 1; });
        }
    }
}

/* A receive buffer has room for a tagged message as long as two active
 * messages. */
TEST_P(dcx_tag, longer_than_active)
{
    const size_t max = m_dcx.attr.cap.tag.eager.max_bcopy;

    EXPECT_EQ((2 * 8250) - sizeof(struct ibv_tmh), max);
    EXPECT_EQ(max, m_dcx.attr.cap.tag.eager.max_zcopy);
    EXPECT_GT(8250u, m_dcx.attr.cap.am.max_bcopy);
    for (size_t length : {(size_t)8300, (size_t)16384, max}) {
        SCOPED_TRACE(length);
        dcx_tag_mem mem(m_dcx, length, length);
        dcx_tag_recv recv(m_dcx, length);
        dcx_end end;

        EXPECT_EQ(UCS_OK, recv.post(5));
        EXPECT_EQ(UCS_INPROGRESS, send_zcopy(5, 7, mem, end));
        expect_received(recv, 5, 7, mem);
        EXPECT_EQ((ssize_t)length, send_bcopy(6, 7, mem));
        dcx_tag_unexpected got = wait_unexpected();
        EXPECT_EQ(6u, got.tag);
        EXPECT_EQ(7u, got.imm);
        EXPECT_EQ(mem.bytes, got.data);
        progress_until([&] { return end.count == 1; });
    }
}

/* --- rendezvous ----------------------------------------------------------- */

TEST_P(dcx_tag, rndv_expected)
{
    for (size_t length :
         {(size_t)1, (size_t)64, (size_t)5000, (size_t)1 << 20}) {
        SCOPED_TRACE(length);
        dcx_tag_mem mem(m_dcx, length, 3);
        dcx_tag_recv recv(m_dcx, length + 100);
        dcx_end end;

        EXPECT_EQ(UCS_OK, recv.post(5));
        EXPECT_FALSE(UCS_PTR_IS_ERR(send_rndv(5, "header", mem, end)));
        expect_received(recv, 5, 0, mem);
        progress_until([&] { return end.count == 1; });
        EXPECT_EQ(UCS_OK, end.status);
    }
}

TEST_P(dcx_tag, rndv_unexpected)
{
    for (size_t length = 0; length <= m_dcx.attr.cap.tag.rndv.max_hdr;
         length++) {
        SCOPED_TRACE(length);
        std::string hdr = std::string("0123456789abcdefghijklm", length);
        dcx_tag_mem mem(m_dcx, 5000, 3), to(m_dcx, 5000, 4);
        uct_rkey_bundle_t rkey;
        dcx_end end, got_end;

        ucs_status_ptr_t op = send_rndv(5, hdr, mem, end);
        EXPECT_FALSE(UCS_PTR_IS_ERR(op));
        dcx_tag_unexpected got = wait_unexpected();
        EXPECT_TRUE(got.is_rndv);
        EXPECT_EQ(5u, got.tag);
        EXPECT_EQ(bytes(hdr.data(), length), got.data);
        EXPECT_EQ((uintptr_t)mem.bytes.data(), got.remote);
        EXPECT_EQ(mem.bytes.size(), got.size);

        UCT_CALL(uct_rkey_unpack(m_dcx.component(), got.rkey.data(), &rkey));
        EXPECT_EQ(UCS_INPROGRESS,
                  uct_ep_get_zcopy(m_dcx.ep, &to.iov, 1, got.remote, rkey.rkey,
                                   &got_end.comp));
        progress_until([&] { return got_end.count == 1; });
        EXPECT_EQ(mem.bytes, to.bytes);
        uct_rkey_release(m_dcx.component(), &rkey);
        EXPECT_EQ(UCS_OK, uct_ep_tag_rndv_cancel(m_dcx.ep, op));
        EXPECT_EQ(0u, end.count);
    }
}

TEST_P(dcx_tag, request)
{
    std::string hdr(m_dcx.attr.cap.tag.rndv.max_hdr, 'x');
    dcx_tag_recv recv(m_dcx, 1024);

    EXPECT_EQ(UCS_OK, send_request(4, hdr));
    dcx_tag_unexpected got = wait_unexpected();
    EXPECT_TRUE(got.is_rndv);
    EXPECT_EQ(4u, got.tag);
    EXPECT_EQ(0u, got.remote);
    EXPECT_EQ(bytes(hdr.data(), hdr.size()), got.data);

    EXPECT_EQ(UCS_OK, recv.post(5));
    EXPECT_EQ(UCS_OK, send_request(5, hdr));
    progress_until([&] { return recv.has_ended(); });
    EXPECT_EQ(1u, recv.num_rndv);
    EXPECT_EQ(1u, recv.num_consumed);
    EXPECT_EQ(5u, recv.tag);
    EXPECT_EQ(bytes(hdr.data(), hdr.size()), recv.header);
}

/* A rendezvous is longer than the buffer. The user gets its request as for an
 * unexpected message, and can cancel the receive that has matched; otherwise
 * that ends with UCS_ERR_MESSAGE_TRUNCATED. */
TEST_P(dcx_tag, rndv_too_long)
{
    dcx_tag_mem mem(m_dcx, 5000, 3);
    dcx_tag_recv recv(m_dcx, 100), other(m_dcx, 100);
    dcx_end end;

    on_request = [&] { EXPECT_EQ(UCS_OK, recv.cancel(true)); };
    EXPECT_EQ(UCS_OK, recv.post(5));
    ucs_status_ptr_t op    = send_rndv(5, "header", mem, end);
    dcx_tag_unexpected got = wait_unexpected();
    EXPECT_TRUE(got.is_rndv);
    EXPECT_EQ(5000u, got.size);
    EXPECT_EQ(bytes("header", 6), got.data);
    EXPECT_FALSE(recv.has_ended());
    EXPECT_EQ(0u, recv.num_consumed);
    EXPECT_EQ(UCS_OK, uct_ep_tag_rndv_cancel(m_dcx.ep, op));

    on_request = nullptr;
    EXPECT_EQ(UCS_OK, other.post(5));
    op = send_rndv(5, "header", mem, end);
    progress_until([&] { return other.has_ended(); });
    EXPECT_EQ(UCS_ERR_MESSAGE_TRUNCATED, other.status);
    EXPECT_EQ(UCS_OK, uct_ep_tag_rndv_cancel(m_dcx.ep, op));
}

/* --- the list ------------------------------------------------------------- */

/* A buffer cannot be posted twice at a time, but again after its receive has
 * ended. */
TEST_P(dcx_tag, same_buffer_twice)
{
    dcx_tag_mem mem(m_dcx, 100);
    dcx_tag_recv recv(m_dcx, 100);
    uct_tag_context_t other = recv.ctx;

    EXPECT_EQ(UCS_OK, recv.post(5));
    EXPECT_EQ(UCS_ERR_ALREADY_EXISTS,
              uct_iface_tag_recv_zcopy(m_dcx.iface, 6, ~0ull, &recv.mem.iov, 1,
                                       &other));
    EXPECT_EQ(UCS_OK, send_short(5, mem));
    expect_received(recv, 5, 0, mem);
    EXPECT_EQ(UCS_OK, uct_iface_tag_recv_zcopy(m_dcx.iface, 6, ~0ull,
                                               &recv.mem.iov, 1, &other));
    EXPECT_EQ(UCS_OK, uct_iface_tag_recv_cancel(m_dcx.iface, &other, 1));
}

TEST_P(dcx_tag, cancel)
{
    for (bool force : {false, true}) {
        dcx_tag_mem mem(m_dcx, 100);
        dcx_tag_recv recv(m_dcx, 100);

        EXPECT_EQ(UCS_OK, recv.post(5));
        EXPECT_EQ(UCS_OK, recv.cancel(force));
        EXPECT_EQ(UCS_OK, send_short(5, mem));
        EXPECT_EQ(mem.bytes, wait_unexpected().data);
        if (force) {
            EXPECT_FALSE(recv.has_ended());
        } else {
            progress_until([&] { return recv.has_ended(); });
            EXPECT_EQ(UCS_ERR_CANCELED, recv.status);
        }
        EXPECT_EQ(0u, recv.num_consumed);
    }
}

INSTANTIATE_TEST_SUITE_P(base, dcx_tag, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(roce, dcx_tag, testing::Values(0));

} // namespace

int main(int argc, char **argv)
{
    return hca_test_main(argc, argv,
                         {
                             {"base", {{"UCX_DCX_TM_ENABLE", "y"}}},
                             {"roce",
                              {{"UCX_DCX_TM_ENABLE", "y"},
                               {"SOFTHCA_LINK", "roce"},
                               {"SOFTHCA_HAS", "tm_roce"}}},
                         });
}
