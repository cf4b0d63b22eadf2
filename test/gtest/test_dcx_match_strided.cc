/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Tagged messages and strided memory: posted receives with strided buffers or
 * many pieces, and rendezvous of such memory. Data is compared with a plain
 * loop over all bytes, and no other byte may change. Most tests end by checking
 * that receives and rendezvous have released their keys.
 */
#include "dcx_layout_bench.h"
#include "dcx_match_bench.h"
#include "dcx_shared_bench.h"
#include "devx_bench.h"

#include <algorithm>
#include <list>

namespace {

class dcx_match_strided : public dcx_tag_bench {
protected:
    enum { SIZE = 1 << 18, UMR_SLOTS = 8 };

    dcx_match_strided() : m_a(m_dcx, SIZE, 1), m_b(m_dcx, SIZE, 2) {}

    /* Completes operations that use its memory. */
    ~dcx_match_strided()
    {
        if (m_dcx.iface != NULL) {
            m_dcx.flush();
        }
    }

    /* Creates a receive into @iov; the receive's own memory is not used. */
    std::unique_ptr<dcx_tag_recv> make_recv(const iovs &iov)
    {
        auto recv = std::make_unique<dcx_tag_recv>(m_dcx, (size_t)1);

        recv->iov = iov;
        return recv;
    }

    ucs_status_t post(dcx_tag_recv &recv, uct_tag_t tag)
    {
        ucs_status_t status = retry([&] { return recv.post(tag); });

        if (status == UCS_OK) {
            dcx_wait_told(m_dcx);
        }
        return status;
    }

    ucs_status_ptr_t try_rndv(uct_tag_t tag, const iovs &iov, dcx_end &end,
                              uct_ep_h ep = NULL)
    {
        return uct_ep_tag_rndv_zcopy((ep != NULL) ? ep : m_dcx.ep, tag, "head",
                                     4, iov.data(), iov.size(), 0, &end.comp);
    }

    ucs_status_ptr_t rndv(uct_tag_t tag, const iovs &iov, dcx_end &end,
                          uct_ep_h ep = NULL)
    {
        return retry([&] { return try_rndv(tag, iov, end, ep); });
    }

    ucs_status_t eager(uct_tag_t tag, const iovs &iov, dcx_end &end)
    {
        return retry([&] {
            return uct_ep_tag_eager_zcopy(m_dcx.ep, tag, 0, iov.data(),
                                          iov.size(), 0, &end.comp);
        });
    }

    /* Sends all bytes of @from to a receive into @to. Checks that they have
     * arrived, and that no other byte has changed. */
    void check(bool is_rndv, const iovs &from, const iovs &to)
    {
        check(is_rndv, from, gathered(from), to, places_of(to));
    }

    void check(bool is_rndv, const iovs &from, const std::vector<uint8_t> &data,
               const iovs &to, const std::vector<uint8_t *> &list)
    {
        auto expected = std::make_pair(m_a.bytes, m_b.bytes);
        auto recv     = make_recv(to);
        dcx_end end;

        recv->where = list;
        ASSERT_LE(data.size(), list.size());
        for (size_t i = 0; i < data.size(); i++) {
            *place_in(expected, list[i]) = data[i];
        }
        ASSERT_EQ(UCS_OK, post(*recv, 5)) << m_log.take();
        if (is_rndv) {
            auto op = rndv(5, from, end);
            ASSERT_FALSE(UCS_PTR_IS_ERR(op)) << m_log.take();
        } else {
            ASSERT_EQ(UCS_INPROGRESS, eager(5, from, end)) << m_log.take();
        }
        progress_until([&] { return recv->has_ended() && (end.count > 0); });
        ASSERT_EQ(UCS_OK, recv->status);
        ASSERT_EQ(UCS_OK, end.status);
        ASSERT_EQ(1u, recv->num_consumed);
        ASSERT_EQ(data.size(), recv->length);
        ASSERT_TRUE(m_a.bytes == expected.first) << "of the sender";
        ASSERT_TRUE(m_b.bytes == expected.second) << "of the receiver";
        ASSERT_TRUE(m_unexpected.empty());
    }

    uint8_t *place_in(std::pair<std::vector<uint8_t>, std::vector<uint8_t>> &to,
                      uint8_t *place)
    {
        bool is_a = (place >= m_a.bytes.data()) &&
                    (place < m_a.bytes.data() + SIZE);

        return is_a ? &to.first[place - m_a.bytes.data()] :
                      &to.second[place - m_b.bytes.data()];
    }

    /* Layout number `i`, of 2,400 bytes, with a start of its own */
    static iovs nth(region &mem, unsigned i)
    {
        return {mem.at(8 * i, 20, 400, 60), mem.at(100000 + (8 * i), 1200)};
    }

    /* Checks that no key is in use: receives get half of all keys. */
    void expect_none_held()
    {
        std::vector<std::unique_ptr<dcx_tag_recv>> recvs;

        for (unsigned i = 0; i < UMR_SLOTS / 2; i++) {
            recvs.push_back(make_recv(nth(m_b, 1000 + i)));
            ASSERT_EQ(UCS_OK, post(*recvs.back(), 100 + i)) << i;
        }
        auto more = make_recv(nth(m_b, 2000));
        EXPECT_EQ(UCS_ERR_EXCEEDS_LIMIT, post(*more, 99));
        for (auto &recv : recvs) {
            EXPECT_EQ(UCS_OK, recv->cancel(false));
        }
        progress_until([&] {
            return std::all_of(recvs.begin(), recvs.end(),
                               [](auto &recv) { return recv->has_ended(); });
        });
        for (auto &recv : recvs) {
            EXPECT_EQ(UCS_ERR_CANCELED, recv->status);
        }
    }

    region m_a, m_b; /* sender's, receiver's */
};

/* --- data ----------------------------------------------------------------- */

TEST_P(dcx_match_strided, eager)
{
    /* up to 64 bytes are in the completion, unless RX_INLINE is 0, and the
     * user copies them */
    for (size_t length : {1, 3, 63, 64, 65, 100, 1000, 4000, 8000}) {
        SCOPED_TRACE(length);
        check(false, {m_a.at(7, length)}, {m_b.at(3, 20, 100, 400)});
        check(false, {m_a.at(7, length)},
              {m_b.at(5, 1, 100000, 2), m_b.at(9, 8192)});
    }
}

TEST_P(dcx_match_strided, eager_of_strided)
{
    check(false, {m_a.at(1, 20, 100, 200)}, {m_b.at(3, 7, 14, 600)});
    check(false, {m_a.at(1, 20, 100, 2)}, {m_b.at(3, 7, 14, 6)});
}

TEST_P(dcx_match_strided, rndv)
{
    const iovs one_a = {m_a.at(5, 40000)}, one_b = {m_b.at(9, 50000)},
               run_a = {m_a.at(1, 100, 300, 400)},
               run_b = {m_b.at(2, 50, 200, 1000)},
               few_a = {m_a.at(3, 7), m_a.at(100, 30000), m_a.at(50000, 1)},
               few_b = {m_b.at(100000, 40000), m_b.at(0, 11, 13, 900)};

    for (auto &from : {one_a, run_a, few_a}) {
        for (auto &to : {one_b, run_b, few_b}) {
            check(true, from, to);
        }
    }
}

/* Adjacent blocks, which are one piece; and no bytes at all */
TEST_P(dcx_match_strided, one_piece)
{
    check(true, {m_a.at(8, 1000, 1000, 30)},
          {m_b.at(16, 500, 500, 50), {}, m_b.at(25016, 5000)});
    check(true, {m_a.at(8, 0, 8, 5)}, {m_b.at(16, 500, 1000, 50)});
    check(false, {m_a.at(8, 0, 8, 5), {}}, {m_b.at(0, 8, 8, 0)});
    check(false, {m_a.at(8, 8, 8, 0)}, {{}, m_b.at(0, 0)});
}

/* The maximum number of entries, and one more */
TEST_P(dcx_match_strided, entries)
{
    iovs from, to;
    dcx_end end;

    while (to.size() < 1024) {
        from.push_back(m_a.at(to.size() * 100, 11 + (to.size() % 5)));
        to.push_back(m_b.at(SIZE - 200 - (to.size() * 200), 17));
    }
    check(true, from, to);
    check(false, {m_a.at(0, 8000)}, to);

    from.push_back(m_a.at(0, 1));
    to.push_back(m_b.at(0, 1));
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, post(*make_recv(to), 5));
    EXPECT_NE(std::string::npos,
              m_log.take().find("tag_recv_zcopy: iovcnt is 1025"));
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, UCS_PTR_STATUS(rndv(5, from, end)));
    EXPECT_NE(std::string::npos,
              m_log.take().find("tag_rndv_zcopy: iovcnt is 1025"));
}

TEST_P(dcx_match_strided, random)
{
    const char *text = getenv("DCX_STRIDED_SEED");
    uint32_t seed    = (text != NULL) ? strtoul(text, NULL, 0) :
                                        std::random_device()();
    std::mt19937 random(seed);
    auto draw = [&](unsigned min, unsigned max) {
        return min + (random() % (max - min + 1));
    };
    auto layout = [&](region &mem, size_t left) {
        size_t pos = draw(0, 100);
        iovs iov;

        for (unsigned j = draw(1, 12); j > 0; j--) {
            unsigned length = draw(1, 60), count = draw(0, 2) ? draw(0, 40) : 1;
            unsigned stride = length + (draw(0, 1) ? draw(0, 300) : 0);

            if (length * count <= left) {
                iov.push_back(mem.at(pos, length, stride, count));
                pos += (stride * count) + draw(0, 20);
                left -= length * count;
            }
        }
        std::shuffle(iov.begin(), iov.end(), random);
        return iov;
    };

    printf("DCX_STRIDED_SEED=%u\n", seed);
    for (unsigned i = 0; i < 150; i++) {
        SCOPED_TRACE("seed " + std::to_string(seed) + ", layout " +
                     std::to_string(i));
        bool is_rndv = draw(0, 1);
        iovs from    = layout(m_a, is_rndv ? SIZE : 8000), to;

        /* room for all of it, in some cases for more */
        size_t length = gathered(from).size();
        do {
            to = layout(m_b, SIZE);
        } while (gathered(to).size() > length + 2000);
        size_t room = gathered(to).size();
        if (room < length) {
            to.push_back(m_b.at(200000, length - room + draw(0, 1)));
        }
        ASSERT_NO_FATAL_FAILURE(check(is_rndv, from, to));
    }
}

/* --- done by the user ----------------------------------------------------- */

/* No receive is posted: the user reads the data by the key in the request. */
TEST_P(dcx_match_strided, rndv_unexpected)
{
    const iovs from = {m_a.at(1, 100, 300, 400), m_a.at(200000, 7)};
    dcx_tag_mem to(m_dcx, 40007, 4);
    uct_rkey_bundle_t rkey;
    dcx_end end, got_end;

    auto op = rndv(5, from, end);
    ASSERT_FALSE(UCS_PTR_IS_ERR(op));
    dcx_tag_unexpected got = wait_unexpected();
    EXPECT_TRUE(got.is_rndv);
    EXPECT_EQ(0u, got.remote) << "an offset";
    EXPECT_EQ(40007u, got.size);
    ASSERT_EQ(8u, got.rkey.size());
    UCT_CALL(uct_rkey_unpack(m_dcx.component(), got.rkey.data(), &rkey));
    EXPECT_EQ(UCS_INPROGRESS, uct_ep_get_zcopy(m_dcx.ep, &to.iov, 1, got.remote,
                                               rkey.rkey, &got_end.comp));
    progress_until([&] { return got_end.count > 0; });
    EXPECT_EQ(UCS_OK, got_end.status);
    EXPECT_EQ(gathered(from), to.bytes);
    uct_rkey_release(m_dcx.component(), &rkey);
    EXPECT_EQ(UCS_OK, uct_ep_tag_rndv_cancel(m_dcx.ep, op));
    EXPECT_EQ(0u, end.count);
    expect_none_held();
}

/* Rendezvous of software: a request that is not in the completion is in the
 * first blocks of the buffer. */
TEST_P(dcx_match_strided, request)
{
    for (size_t length : {(size_t)0, (size_t)10, (size_t)64, (size_t)65,
                          m_dcx.attr.cap.tag.eager.max_short}) {
        SCOPED_TRACE(length);
        auto recv = make_recv({m_b.at(3, 7, 100, 100)});
        std::string hdr;

        for (size_t i = 0; i < length; i++) {
            hdr.push_back('0' + (i % 64));
        }
        ASSERT_EQ(UCS_OK, post(*recv, 5));
        EXPECT_EQ(UCS_OK, send_request(5, hdr));
        progress_until([&] { return recv->has_ended(); });
        EXPECT_EQ(1u, recv->num_rndv);
        EXPECT_EQ(1u, recv->num_consumed);
        EXPECT_EQ(UCS_OK, recv->status);
        EXPECT_EQ(bytes(hdr.data(), hdr.size()), recv->header);
    }
    expect_none_held();
}

/* A rendezvous whose data is too long is reported as unexpected. Its receive
 * ends as truncated, unless it is canceled by then. */
TEST_P(dcx_match_strided, rndv_too_long)
{
    const iovs from = {m_a.at(1, 100, 300, 60)};
    auto recv       = make_recv({m_b.at(3, 7, 100, 100)}),
         other      = make_recv(recv->iov);
    dcx_end end;

    on_request = [&] { EXPECT_EQ(UCS_OK, recv->cancel(true)); };
    ASSERT_EQ(UCS_OK, post(*recv, 5));
    auto op                = rndv(5, from, end);
    dcx_tag_unexpected got = wait_unexpected();
    EXPECT_TRUE(got.is_rndv);
    EXPECT_EQ(6000u, got.size);
    EXPECT_EQ(bytes("head", 4), got.data);
    EXPECT_FALSE(recv->has_ended());
    EXPECT_EQ(UCS_OK, uct_ep_tag_rndv_cancel(m_dcx.ep, op));

    on_request = nullptr;
    ASSERT_EQ(UCS_OK, post(*other, 5));
    op = rndv(5, from, end);
    progress_until([&] { return other->has_ended(); });
    EXPECT_EQ(UCS_ERR_MESSAGE_TRUNCATED, other->status);
    EXPECT_EQ(6000u, wait_unexpected().size);
    EXPECT_EQ(UCS_OK, uct_ep_tag_rndv_cancel(m_dcx.ep, op));
    expect_none_held();
}

/* --- canceled ------------------------------------------------------------- */

TEST_P(dcx_match_strided, cancel)
{
    for (bool force : {false, true}) {
        for (unsigned i = 0; i < 3 * UMR_SLOTS; i++) {
            auto recv = make_recv(nth(m_b, i));

            ASSERT_EQ(UCS_OK, post(*recv, 5));
            EXPECT_EQ(UCS_OK, recv->cancel(force));
            if (force) { /* the buffer is free, the key not yet */
                auto next = make_recv(recv->iov);
                ASSERT_EQ(UCS_OK, post(*next, 6));
                EXPECT_EQ(UCS_OK, next->cancel(true));
                progress_until(
                    [&] { return dcx_peek_num_posted(m_dcx.iface) == 0; });
                EXPECT_FALSE(recv->has_ended());
                EXPECT_FALSE(next->has_ended());
            } else {
                progress_until([&] { return recv->has_ended(); });
                EXPECT_EQ(UCS_ERR_CANCELED, recv->status);
            }
            EXPECT_EQ(0u, recv->num_consumed);
        }
    }
    expect_none_held();
}

/* A message usually matches first; the receive completes unless the cancel is
 * by force. */
TEST_P(dcx_match_strided, cancel_of_a_match)
{
    for (bool force : {false, true}) {
        auto recv = make_recv(nth(m_b, force));
        dcx_end end;

        ASSERT_EQ(UCS_OK, post(*recv, 5));
        ASSERT_EQ(UCS_INPROGRESS, eager(5, {m_a.at(0, 2000)}, end));
        dcx_wait_told(m_dcx);
        EXPECT_EQ(UCS_OK, recv->cancel(force));
        progress_until([&] {
            return (end.count > 0) && (dcx_peek_num_posted(m_dcx.iface) == 0);
        });
        EXPECT_EQ(!force, recv->has_ended());
        if (!force) { /* on a late device the removal may be first */
            EXPECT_TRUE((recv->status == UCS_OK) ||
                        (recv->status == UCS_ERR_CANCELED));
        }
        m_unexpected.clear();
    }
    expect_none_held();
}

/* --- refused -------------------------------------------------------------- */

/* Two receives cannot start at the same byte: the device would write their
 * rendezvous requests there. */
TEST_P(dcx_match_strided, same_buffer)
{
    auto run  = make_recv({m_b.at(8, 20, 100, 50)});
    auto list = make_recv({m_b.at(8, 1), m_b.at(500, 100)});
    auto one  = make_recv({m_b.at(8, 1000)});
    auto next = make_recv({m_b.at(9, 20, 100, 50)});

    ASSERT_EQ(UCS_OK, post(*run, 5));
    EXPECT_EQ(UCS_ERR_ALREADY_EXISTS, post(*list, 6));
    EXPECT_EQ(UCS_ERR_ALREADY_EXISTS, post(*one, 6));
    EXPECT_EQ(UCS_OK, post(*next, 6));
    EXPECT_EQ(UCS_OK, run->cancel(true));
    ASSERT_EQ(UCS_OK, post(*one, 7));
    EXPECT_EQ(UCS_ERR_ALREADY_EXISTS, post(*run, 5));
    EXPECT_EQ(UCS_OK, one->cancel(true));
    EXPECT_EQ(UCS_OK, next->cancel(true));
    progress_until([&] { return dcx_peek_num_posted(m_dcx.iface) == 0; });
    expect_none_held();
}

TEST_P(dcx_match_strided, refused)
{
    dcx_end end;

    EXPECT_EQ(UCS_ERR_INVALID_PARAM,
              post(*make_recv({m_b.at(0, 8, 64, 10), m_b.at(135, 8)}), 5));
    EXPECT_NE(std::string::npos,
              m_log.take().find("tag_recv_zcopy: iov: blocks of the "
                                "destination overlap"));
    EXPECT_EQ(UCS_ERR_INVALID_PARAM,
              post(*make_recv({m_b.at(0, 8, 7, 10)}), 5));
    EXPECT_NE(std::string::npos,
              m_log.take().find("stride is smaller than length"));
    EXPECT_EQ(UCS_ERR_INVALID_PARAM,
              UCS_PTR_STATUS(rndv(5, {m_a.at(0, 8, 7, 10)}, end)));
    EXPECT_NE(std::string::npos,
              m_log.take().find("stride is smaller than length"));
    EXPECT_EQ(UCS_ERR_UNSUPPORTED,
              post(*make_recv({m_b.at(0, 1), m_b.at(5, 2, 4, 9000)}), 5));
    EXPECT_NE(std::string::npos,
              m_log.take().find("tag_recv_zcopy: 18001 bytes in 9001 pieces"));
    EXPECT_EQ(
        UCS_ERR_UNSUPPORTED,
        UCS_PTR_STATUS(rndv(5, {m_a.at(0, 1), m_a.at(5, 2, 4, 9000)}, end)));
    EXPECT_NE(std::string::npos,
              m_log.take().find("tag_rndv_zcopy: 18001 bytes in 9001 pieces"));
    EXPECT_EQ(0u, end.count);
    expect_none_held();
}

/* UCP is told of one entry only: it takes a request with address 0, as of
 * several pieces, for a request of software. */
TEST_P(dcx_match_strided, announced)
{
    EXPECT_EQ(1u, m_dcx.attr.cap.tag.rndv.max_iov);
    EXPECT_EQ(1u, m_dcx.attr.cap.tag.recv.max_iov);
}

/* --- keys ----------------------------------------------------------------- */

/* Receives and rendezvous hold half of the keys. Other operations that these
 * wait for get the rest. */
TEST_P(dcx_match_strided, half_of_the_keys)
{
    std::vector<std::unique_ptr<dcx_tag_recv>> recvs;
    std::list<dcx_end> ends;
    std::vector<void *> ops;
    dcx_end end;

    for (unsigned i = 0; i < UMR_SLOTS / 4; i++) {
        recvs.push_back(make_recv(nth(m_b, i)));
        ASSERT_EQ(UCS_OK, post(*recvs.back(), i));
        ends.emplace_back();
        ops.push_back(rndv(1000, nth(m_a, i), ends.back()));
        ASSERT_FALSE(UCS_PTR_IS_ERR(ops.back()));
        EXPECT_EQ(1000u, wait_unexpected().tag);
    }
    auto more = make_recv(nth(m_b, 100));
    EXPECT_EQ(UCS_ERR_EXCEEDS_LIMIT, more->post(99));
    EXPECT_EQ(UCS_ERR_EXCEEDS_LIMIT,
              UCS_PTR_STATUS(try_rndv(1000, nth(m_a, 100), end)));
    ops.push_back(rndv(1000, nth(m_a, 0), end)); /* the same key */
    ASSERT_FALSE(UCS_PTR_IS_ERR(ops.back()));
    EXPECT_EQ(1000u, wait_unexpected().tag);
    EXPECT_EQ(UCS_OK, uct_ep_tag_rndv_cancel(m_dcx.ep, ops.back()));

    for (unsigned i = 0; i < 3 * UMR_SLOTS; i++) {
        const uct_iov_t iov = m_a.at(i, 300, 1000, 60);
        dcx_end put;

        ASSERT_EQ(UCS_INPROGRESS, retry([&] {
                      return uct_ep_put_zcopy(
                          m_dcx.ep, &iov, 1,
                          (uintptr_t)m_b.bytes.data() + 150000,
                          dcx_peek_rkey(m_b.memh), &put.comp);
                  }));
        progress_until([&] { return put.count > 0; });
        ASSERT_EQ(UCS_OK, put.status);
    }

    for (unsigned i = 0; i < recvs.size(); i++) {
        dcx_end sent;

        ASSERT_EQ(UCS_INPROGRESS, eager(i, {m_a.at(0, 2400)}, sent));
        progress_until(
            [&] { return recvs[i]->has_ended() && (sent.count > 0); });
        EXPECT_EQ(UCS_OK, recvs[i]->status);
        EXPECT_EQ(UCS_OK, uct_ep_tag_rndv_cancel(m_dcx.ep, ops[i]));
    }
    expect_none_held();
}

/* The same layout uses one key, for any number of sends. */
TEST_P(dcx_match_strided, shared_key)
{
    std::list<dcx_end> ends;
    std::vector<void *> ops;

    for (unsigned i = 0; i < 4 * UMR_SLOTS; i++) {
        ends.emplace_back();
        ops.push_back(rndv(1000, nth(m_a, 1), ends.back()));
        ASSERT_FALSE(UCS_PTR_IS_ERR(ops.back())) << i;
        EXPECT_EQ(1000u, wait_unexpected().tag);
    }
    for (void *op : ops) {
        EXPECT_EQ(UCS_OK, uct_ep_tag_rndv_cancel(m_dcx.ep, op));
    }
    expect_none_held();
}

TEST_P(dcx_match_strided, list_is_full)
{
    std::vector<std::unique_ptr<dcx_tag_recv>> recvs;
    const unsigned max = m_dcx.attr.cap.tag.recv.max_outstanding;

    for (unsigned i = 0; i < max; i++) {
        recvs.emplace_back(new dcx_tag_recv(m_dcx, 64));
        ASSERT_EQ(UCS_OK, recvs.back()->post(5)) << i;
    }
    for (unsigned i = 0; i < 3 * UMR_SLOTS; i++) {
        EXPECT_EQ(UCS_ERR_EXCEEDS_LIMIT, post(*make_recv(nth(m_b, i)), 6));
    }
    for (auto &recv : recvs) {
        EXPECT_EQ(UCS_OK, recv->cancel(true));
    }
    progress_until([&] { return dcx_peek_num_posted(m_dcx.iface) == 0; });
    expect_none_held();
}

/* At first the layout is not set: the request is pending. */
TEST_P(dcx_match_strided, rndv_pending)
{
    auto recv = make_recv(nth(m_b, 0));
    dcx_end end;
    dcx_pending_call waiting([&] {
        auto status = UCS_PTR_RAW_STATUS(try_rndv(5, nth(m_a, 0), end));

        return (status == UCS_ERR_NO_RESOURCE) ? status : UCS_OK;
    });

    EXPECT_EQ(UCS_ERR_NO_RESOURCE, recv->post(5));
    ASSERT_EQ(UCS_OK, post(*recv, 5));
    EXPECT_EQ(UCS_ERR_NO_RESOURCE, waiting.call());
    EXPECT_EQ(UCS_OK, uct_ep_pending_add(m_dcx.ep, &waiting.req, 0));
    progress_until([&] { return end.count > 0; });
    progress_until([&] { return recv->has_ended(); });
    EXPECT_EQ(UCS_OK, waiting.status);
    EXPECT_EQ(UCS_OK, end.status);
    EXPECT_EQ(UCS_OK, recv->status);
    EXPECT_EQ(gathered(nth(m_a, 0)), gathered(recv->iov));
}

/* --- ends ----------------------------------------------------------------- */

/* Endpoints that fail or are destroyed while the peer has not fetched the
 * data */
TEST_P(dcx_match_strided, endpoint_ends)
{
    for (unsigned i = 0; i < 4 * UMR_SLOTS; i++) {
        uct_ep_h ep = m_dcx.make_ep();
        dcx_end end;

        ASSERT_FALSE(UCS_PTR_IS_ERR(rndv(1000, nth(m_a, i), end, ep)));
        EXPECT_EQ(1000u, wait_unexpected().tag);
        if (i % 2) {
            EXPECT_EQ(UCS_OK, uct_ep_invalidate(ep, 0));
            progress_until([&] { return end.count > 0; });
        }
        uct_ep_destroy(ep);
        progress_until([&] { return end.count > 0; });
        EXPECT_EQ(UCS_ERR_CANCELED, end.status);
    }
    progress_until([&] { return m_dcx.errors.size() == 2 * UMR_SLOTS; });
    expect_none_held();
}

/* The command queue of the list fails: receives in the list still match, others
 * end, and the device may have those canceled by force: these keep their
 * keys. */
TEST_P(dcx_match_strided, list_fails)
{
    auto in_list = make_recv(nth(m_b, 0)), canceled = make_recv(nth(m_b, 1));
    auto not_appended = make_recv(nth(m_b, 2)), forced = make_recv(nth(m_b, 3));
    devx_mailbox in(16, 0x507), out(16); /* 2ERR_QP */
    dcx_devx_objects objects;
    std::string text;
    dcx_end end;

    /* sets their layouts */
    for (auto recv : {not_appended.get(), forced.get()}) {
        ASSERT_EQ(UCS_OK, post(*recv, 9));
        EXPECT_EQ(UCS_OK, recv->cancel(true));
        progress_until([&] { return dcx_peek_num_posted(m_dcx.iface) == 0; });
    }
    ASSERT_EQ(UCS_OK, post(*in_list, 5));
    ASSERT_EQ(UCS_OK, post(*canceled, 6));
    dcx_peek_devx(m_dcx.iface, &objects);
    in.put(8, objects.cmd_qpn);
    ASSERT_EQ(0, mlx5dv_devx_obj_modify(objects.cmd, in.bytes.data(), 16,
                                        out.bytes.data(), 16));
    EXPECT_EQ(UCS_OK, not_appended->post(7)) << "dcx has not seen it";
    EXPECT_EQ(UCS_OK, forced->post(8));
    EXPECT_EQ(UCS_OK, forced->cancel(true));
    EXPECT_EQ(UCS_OK, canceled->cancel(false));
    progress_until([&] {
        text += m_log.take();
        return not_appended->has_ended() && canceled->has_ended();
    });
    EXPECT_NE("", text);
    EXPECT_EQ(UCS_ERR_IO_ERROR, not_appended->status);
    EXPECT_EQ(UCS_ERR_CANCELED, canceled->status);
    EXPECT_FALSE(forced->has_ended());

    ASSERT_EQ(UCS_INPROGRESS, eager(5, {m_a.at(0, 2400)}, end));
    progress_until([&] { return in_list->has_ended() && (end.count > 0); });
    EXPECT_EQ(UCS_OK, in_list->status);
    EXPECT_EQ(gathered({m_a.at(0, 2400)}), gathered(in_list->iov));
    EXPECT_EQ(UCS_ERR_EXCEEDS_LIMIT, in_list->post(5));
}

/* A receive and a rendezvous are in progress; the memory domain stays open. */
TEST_P(dcx_match_strided, interface_closed)
{
    auto recv = make_recv(nth(m_b, 0));
    dcx_end end;

    ASSERT_EQ(UCS_OK, post(*recv, 5));
    ASSERT_FALSE(UCS_PTR_IS_ERR(rndv(1000, nth(m_a, 0), end)));
    EXPECT_EQ(1000u, wait_unexpected().tag);
    m_dcx.flush();
    m_dcx.close_iface();
    EXPECT_EQ(1u, end.count);
    EXPECT_EQ(UCS_ERR_CANCELED, end.status);
    EXPECT_FALSE(recv->has_ended());
}

INSTANTIATE_TEST_SUITE_P(base, dcx_match_strided, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(shared, dcx_match_strided, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(late, dcx_match_strided, testing::Values(0));

/* --- handles of layouts --------------------------------------------------- */

class dcx_match_layouts : public dcx_match_strided {
protected:
    /* Entries of an operation, and the places of their bytes */
    struct part {
        iovs iov;
        std::vector<uint8_t *> where;

        std::vector<uint8_t> data() const
        {
            std::vector<uint8_t> data;

            for (uint8_t *place : where) {
                data.push_back(*place);
            }
            return data;
        }
    };

    dcx_match_layouts() : m_inner(m_dcx, 100), m_outer(m_dcx, 100) {}

    static uct_dcx_block_t block(const region &mem, size_t offset,
                                 size_t length, size_t skip = 0)
    {
        return {(uintptr_t)mem.bytes.data() + offset, length, skip, mem.memh};
    }

    /* Sets the inner layout to rows in @mem, and the outer one to two parts of
     * it, with a piece of @mem in between. */
    void set(const region &mem)
    {
        m_inner.set(60, {block(mem, 100, 7, 93), block(mem, 150, 20, 80)});
        m_outer.set(
            1,
            {m_inner.at(3, 1000), block(mem, 20000, 11), m_inner.at(1200, 400)},
            &m_inner);
    }

    /* Returns @count blocks of a layout. */
    static part at(const layout_handle &layout, size_t offset, size_t length,
                   size_t stride = 0, unsigned count = 1)
    {
        part part = {{{(void *)offset, length, layout.memh, stride, count}},
                     {}};

        for (unsigned i = 0; i < count; i++) {
            for (size_t j = 0; j < length; j++) {
                part.where.push_back(
                    layout.where.at(offset + (i * stride) + j));
            }
        }
        return part;
    }

    static part both(const part &a, const part &b)
    {
        part sum = a;

        sum.iov.insert(sum.iov.end(), b.iov.begin(), b.iov.end());
        sum.where.insert(sum.where.end(), b.where.begin(), b.where.end());
        return sum;
    }

    std::vector<part> parts(region &mem)
    {
        return {at(m_inner, 0, 1620),
                at(m_outer, 0, 1411),
                at(m_inner, 5, 1600),
                at(m_outer, 990, 400),
                at(m_inner, 7, 8, 40, 40),
                at(m_outer, 3, 7, 30, 40),
                both(at(m_outer, 300, 100),
                     {{mem.at(100000, 33, 100, 9)},
                      places_of({mem.at(100000, 33, 100, 9)})})};
    }

    layout_handle m_inner, m_outer;
};

TEST_P(dcx_match_layouts, to_them)
{
    set(m_b);
    for (auto &to : parts(m_b)) {
        for (size_t length :
             {(size_t)20, to.where.size() / 2, to.where.size()}) {
            for (bool is_rndv : {false, true}) {
                const iovs from = {m_a.at(7, length)};

                check(is_rndv, from, gathered(from), to.iov, to.where);
            }
        }
    }
}

TEST_P(dcx_match_layouts, from_them)
{
    set(m_a);
    for (auto &from : parts(m_a)) {
        for (auto &to :
             {iovs{m_b.at(3, 5000)}, iovs{m_b.at(9, 10, 100, 500)}}) {
            for (bool is_rndv : {false, true}) {
                check(is_rndv, from.iov, from.data(), to, places_of(to));
            }
        }
    }
}

/* Requests are read through all levels of layouts. */
TEST_P(dcx_match_layouts, request)
{
    const std::string hdr(m_dcx.attr.cap.tag.eager.max_short, 'x');

    set(m_b);
    for (auto &to : parts(m_b)) {
        auto recv = make_recv(to.iov), next = make_recv(to.iov);
        dcx_end end;

        ASSERT_EQ(UCS_OK, post(*recv, 5));
        EXPECT_EQ(UCS_OK, send_request(5, hdr));
        progress_until([&] { return recv->has_ended(); });
        EXPECT_EQ(UCS_OK, recv->status);
        EXPECT_EQ(bytes(hdr.data(), hdr.size()), recv->header);

        on_request = [&] { EXPECT_EQ(UCS_OK, next->cancel(true)); };
        ASSERT_EQ(UCS_OK, post(*next, 5));
        auto op = rndv(5, {m_a.at(0, 2000)}, end);
        EXPECT_EQ(bytes("head", 4), wait_unexpected().data);
        EXPECT_EQ(UCS_OK, uct_ep_tag_rndv_cancel(m_dcx.ep, op));
        on_request = nullptr;
    }
    expect_none_held();
}

/* Offsets of layouts are resolved before they are compared. */
TEST_P(dcx_match_layouts, same_buffer)
{
    layout_handle other(m_dcx, 10), again(m_dcx, 10);

    set(m_b);
    other.set(1, {block(m_b, 30000, 100)});
    again.set(1, {block(m_b, 31000, 9), block(m_b, 30000, 100)});

    auto recv = make_recv(at(m_inner, 0, 1000).iov);
    auto far  = make_recv(at(other, 0, 100).iov);
    auto same = make_recv(at(again, 9, 100).iov);
    auto one  = make_recv({m_b.at(100, 50)});
    auto run  = make_recv({m_b.at(30000, 5, 10, 9)});

    ASSERT_EQ(UCS_OK, post(*recv, 5));
    ASSERT_EQ(UCS_OK, post(*far, 6));
    EXPECT_EQ(UCS_ERR_ALREADY_EXISTS, post(*same, 6));
    EXPECT_EQ(UCS_ERR_ALREADY_EXISTS, post(*one, 6));
    EXPECT_EQ(UCS_ERR_ALREADY_EXISTS, post(*run, 6));
    EXPECT_EQ(UCS_OK, recv->cancel(true));
    EXPECT_EQ(UCS_OK, far->cancel(true));
    for (auto next : {same.get(), one.get()}) {
        EXPECT_EQ(UCS_OK, post(*next, 6));
        EXPECT_EQ(UCS_OK, next->cancel(true));
    }
    progress_until([&] { return dcx_peek_num_posted(m_dcx.iface) == 0; });
    expect_none_held();
}

TEST_P(dcx_match_layouts, not_set)
{
    const iovs iov = {{(void *)0, 10, m_inner.memh, 0, 1}};

    EXPECT_EQ(UCS_ERR_INVALID_PARAM, post(*make_recv(iov), 5));
    EXPECT_NE(std::string::npos,
              m_log.take().find("the layout of a memory handle is not set"));
    set(m_b);
    EXPECT_EQ(UCS_ERR_INVALID_PARAM,
              post(*make_recv({{(void *)1620, 1, m_inner.memh, 0, 1}}), 5));
    EXPECT_NE(std::string::npos, m_log.take().find("ends before offset 1620"));
    layout_handle unset(m_dcx, 10);
    EXPECT_EQ(UCS_ERR_INVALID_PARAM,
              post(*make_recv({m_b.at(0, 20),
                               {(void *)3, 9, unset.memh, 0, 1},
                               m_b.at(50, 20)}),
                   5));
    EXPECT_NE(std::string::npos, m_log.take().find("ends before offset 3"));
    EXPECT_EQ(0u, dcx_peek_num_posted(m_dcx.iface));
}

INSTANTIATE_TEST_SUITE_P(base, dcx_match_layouts, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(late, dcx_match_layouts, testing::Values(0));

/* Memory that is deregistered at once */
class dcx_match_strided_memory : public dcx_match_strided {};

/* Layouts of the memory are invalidated; a message for such a receive fails, as
 * with plain memory. */
TEST_P(dcx_match_strided_memory, goes)
{
    for (bool is_plain : {true, false}) {
        auto mem             = std::make_unique<region>(m_dcx, (size_t)SIZE, 3);
        auto recv            = make_recv(is_plain ? iovs{mem->at(0, 20000)} :
                                                    nth(*mem, 0));
        uct_ep_h ep          = m_dcx.make_ep();
        const uct_iov_t from = m_a.at(0, 2000);
        dcx_end end;

        m_dcx.errors.clear();
        ASSERT_EQ(UCS_OK, post(*recv, 5));
        mem.reset();
        EXPECT_EQ(UCS_INPROGRESS, retry([&] {
                      return uct_ep_tag_eager_zcopy(ep, 5, 0, &from, 1, 0,
                                                    &end.comp);
                  }));
        progress_until([&] { return end.count > 0; });
        EXPECT_NE(UCS_OK, end.status);
        progress_until([&] { return !m_dcx.errors.empty(); });
        uct_ep_destroy(ep);
        EXPECT_EQ(UCS_OK, recv->cancel(true));
        progress_until([&] { return dcx_peek_num_posted(m_dcx.iface) == 0; });
        m_log.take();
    }
    expect_none_held();
}

INSTANTIATE_TEST_SUITE_P(no_rcache, dcx_match_strided_memory,
                         testing::Values(0));

} // namespace

int main(int argc, char **argv)
{
    const std::vector<std::pair<const char *, const char *>> env = {
        {"UCX_DCX_TM_ENABLE", "y"},     {"UCX_DCX_UMR_SLOTS", "8"},
        {"UCX_DCX_TM_LIST_SIZE", "64"}, {"SOFTHCA_LOG", "error"},
        {"UCX_DCX_FAILURE", "error"},
    };
    auto shared = env, late = env, no_rcache = env;

    shared.push_back({"UCX_DCX_TX_POLICY", "rand"});
    late.push_back({"SOFTHCA_DELAY", "50"});
    late.push_back({"UCX_DCX_RX_INLINE", "0"}); /* requests are in the buffer */
    no_rcache.push_back({"UCX_DCX_RCACHE", "n"});
    return hca_test_main(argc, argv,
                         {{"base", env},
                          {"shared", shared},
                          {"late", late},
                          {"no_rcache", no_rcache}});
}
