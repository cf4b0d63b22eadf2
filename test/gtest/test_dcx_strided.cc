/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Zero-copy operations on strided memory, and with more entries than fit in a
 * WQE. The result is compared with a plain loop over all bytes, and no other
 * byte may change. test_dcx_sgl.cc tests how layouts are built and how the form
 * of an operation is chosen.
 */
#include "dcx_match_bench.h"
#include "forged_profile.h"

#include <random>

namespace {

class dcx_strided : public testing::TestWithParam<int> {
protected:
    enum { SIZE = 1 << 18, AM_ID = 7 };

    dcx_strided() :
        m_ep(m_dcx.make_ep()), m_a(m_dcx, SIZE, 1), m_b(m_dcx, SIZE, 2),
        m_remote(m_dcx, SIZE, 3), m_rkey(dcx_peek_rkey(m_remote.memh))
    {
        m_dcx.survives_errors = true;
        UCT_CALL(
            uct_iface_set_am_handler(m_dcx.iface, AM_ID, receive, this, 0));
    }

    ~dcx_strided()
    {
        if (m_ep != NULL) {
            uct_ep_destroy(m_ep);
        }
        m_dcx.flush();
        EXPECT_EQ("", m_log.take());
    }

    /* A strided get as a pending request */
    struct request {
        explicit request(dcx_strided *owner) :
            test(owner), iov{owner->m_a.at(0, 8, 64, 100)}
        {
            req.func = called;
        }

        static ucs_status_t called(uct_pending_req_t *req)
        {
            request *self       = (request *)req; /* its first member */
            ucs_status_t status = self->test->get(self->iov, &self->end.comp);

            return (status == UCS_ERR_NO_RESOURCE) ? status : UCS_OK;
        }

        uct_pending_req_t req = {};
        dcx_strided *test;
        iovs iov;
        dcx_end end;
    };

    static ucs_status_t receive(void *arg, void *data, size_t length, unsigned)
    {
        dcx_strided *self = (dcx_strided *)arg;

        self->m_messages.emplace_back((uint8_t *)data,
                                      (uint8_t *)data + length);
        return UCS_OK;
    }

    ucs_status_t put(const iovs &iov, uct_completion_t *comp)
    {
        return uct_ep_put_zcopy(m_ep, iov.data(), iov.size(),
                                (uintptr_t)m_remote.bytes.data(), m_rkey, comp);
    }

    ucs_status_t get(const iovs &iov, uct_completion_t *comp)
    {
        return uct_ep_get_zcopy(m_ep, iov.data(), iov.size(),
                                (uintptr_t)m_remote.bytes.data(), m_rkey, comp);
    }

    ucs_status_t am(const iovs &iov, uct_completion_t *comp)
    {
        return uct_ep_am_zcopy(m_ep, AM_ID, "head", 4, iov.data(), iov.size(),
                               0, comp);
    }

    template <typename F> void progress_until(F done)
    {
        dcx_deadline deadline;

        while (!done()) {
            deadline.check("progress");
            uct_worker_progress(m_dcx.worker);
        }
    }

    /* Posts as soon as there is room, and waits for the completion. */
    template <typename F> void run(F post)
    {
        ucs_status_t status;
        dcx_end end;

        progress_until([&] {
            status = post(&end.comp);
            return status != UCS_ERR_NO_RESOURCE;
        });
        ASSERT_EQ(UCS_INPROGRESS, status) << m_log.take();
        progress_until([&] { return end.count > 0; });
        ASSERT_EQ(UCS_OK, end.status);
    }

    void check_put(const iovs &iov)
    {
        auto local = m_a.bytes, expected = m_remote.bytes;
        auto data = gathered(iov);

        std::copy(data.begin(), data.end(), expected.begin());
        run([&](uct_completion_t *comp) { return put(iov, comp); });
        ASSERT_EQ(expected, m_remote.bytes);
        ASSERT_EQ(local, m_a.bytes);
    }

    void check_get(const iovs &iov)
    {
        auto a = m_a.bytes, b = m_b.bytes;
        unsigned pos = 0;

        run([&](uct_completion_t *comp) { return get(iov, comp); });
        a.swap(m_a.bytes);
        b.swap(m_b.bytes);
        /* entries now point into a and b */
        for (uint8_t *place : places_of(iov)) {
            bool is_a    = (place >= a.data()) && (place < a.data() + SIZE);
            auto &there  = is_a ? a : b;
            auto &before = is_a ? m_a.bytes : m_b.bytes;

            before[place - there.data()] = m_remote.bytes[pos++];
        }
        bool is_same = (a == m_a.bytes) && (b == m_b.bytes);
        a.swap(m_a.bytes);
        b.swap(m_b.bytes);
        ASSERT_TRUE(is_same) << "bytes of the blocks, or of holes, differ";
    }

    void check_am(const iovs &iov)
    {
        auto expected = gathered(iov);

        for (char c : {'d', 'a', 'e', 'h'}) {
            expected.insert(expected.begin(), c);
        }
        m_messages.clear();
        run([&](uct_completion_t *comp) { return am(iov, comp); });
        progress_until([&] { return !m_messages.empty(); });
        ASSERT_EQ(1u, m_messages.size());
        ASSERT_EQ(expected, m_messages[0]);
    }

    void check_all(const iovs &iov)
    {
        check_put(iov);
        check_get(iov);
        check_am(iov);
    }

    /* After this, operations that use a key find it with its layout. */
    void warm_up(const iovs &iov)
    {
        check_all(iov);
        m_messages.clear();
    }

    /* Expects that @post is refused, with the reason in the log. */
    template <typename F>
    void expect_refused(F post, const std::string &why,
                        ucs_status_t status = UCS_ERR_INVALID_PARAM)
    {
        dcx_end end;

        EXPECT_EQ(status, post(&end.comp));
        m_dcx.flush();
        EXPECT_EQ(0u, end.count);

        auto text = m_log.take();
        EXPECT_NE(std::string::npos, text.find(why)) << text;
    }

    void expect_refused(const iovs &iov, const std::string &why)
    {
        auto a = m_a.bytes, remote = m_remote.bytes;

        expect_refused([&](uct_completion_t *c) { return put(iov, c); }, why);
        expect_refused([&](uct_completion_t *c) { return get(iov, c); }, why);
        expect_refused([&](uct_completion_t *c) { return am(iov, c); }, why);
        EXPECT_EQ(a, m_a.bytes);
        EXPECT_EQ(remote, m_remote.bytes);
    }

    ucx_log_reader m_log;
    dcx_loop m_dcx;
    uct_ep_h m_ep;
    region m_a, m_b, m_remote;
    uct_rkey_t m_rkey;
    std::vector<std::vector<uint8_t>> m_messages;
};

/* --- data ----------------------------------------------------------------- */

TEST_P(dcx_strided, few_blocks)
{
    check_all({m_a.at(100, 8, 64, 3)});
}

TEST_P(dcx_strided, many_blocks)
{
    check_all({m_a.at(0, 8, 1024, 200)});
    check_all({m_a.at(3, 7, 250, 1024)});
}

TEST_P(dcx_strided, rows_far_apart)
{
    check_all({m_a.at(5, 100, 80000, 3), m_b.at(6, 20, 66000, 3)});
}

TEST_P(dcx_strided, mixed_with_plain_entries)
{
    check_all({m_a.at(0, 40), m_b.at(16, 3, 7, 50), m_a.at(100, 1),
               m_b.at(4096, 100, 100, 5), m_a.at(8192, 16, 32, 2)});
}

TEST_P(dcx_strided, many_plain_entries)
{
    for (unsigned num : {100, 200, 1000}) {
        iovs iov;

        for (unsigned i = 0; i < num; i++) {
            iov.push_back(((i % 3) ? m_a : m_b).at(i * 50, 1 + (i % 13)));
        }
        check_all(iov);
    }
}

/* The maximum number of entries, although an active message announces fewer;
 * and one more */
TEST_P(dcx_strided, limit_of_entries)
{
    iovs iov;

    EXPECT_EQ(16u, m_dcx.attr.cap.am.max_iov);
    while (iov.size() < 1024) {
        iov.push_back(m_a.at(SIZE - 16 - (iov.size() * 16), 3));
    }
    check_all(iov);
    iov.push_back(m_a.at(0, 1));
    expect_refused(iov, "iovcnt is 1025");
}

TEST_P(dcx_strided, entries_without_bytes)
{
    uct_iov_t none = {};

    check_all({none, m_a.at(100, 8, 64, 3), m_a.at(0, 8, 0, 0), none,
               m_a.at(0, 0, 8, 9)});
}

TEST_P(dcx_strided, nothing)
{
    const iovs empty = {m_a.at(0, 8, 16, 0)}, two = {m_a.at(0, 0, 8, 9), {}};
    dcx_end end;

    for (auto &iov : {empty, two}) {
        EXPECT_EQ(UCS_OK, get(iov, &end.comp));
        check_put(iov);
        check_am(iov);
    }
}

/* Adjacent blocks are one piece of memory of any length. */
TEST_P(dcx_strided, adjacent_blocks)
{
    check_put({m_a.at(64, 1024, 1024, 100)});
    check_get({m_a.at(64, 1024, 1024, 100), m_a.at(64 + 102400, 4096)});
}

TEST_P(dcx_strided, long_pieces)
{
    check_put({m_a.at(64, 20000, 40000, 3)});
    check_get({m_a.at(64, 20000, 40000, 3), m_b.at(1, 50000)});
}

TEST_P(dcx_strided, random)
{
    const char *text = getenv("DCX_STRIDED_SEED");
    uint32_t seed    = (text != NULL) ? strtoul(text, NULL, 0) :
                                        std::random_device()();
    std::mt19937 random(seed);
    auto draw = [&](unsigned min, unsigned max) {
        return min + (random() % (max - min + 1));
    };

    printf("DCX_STRIDED_SEED=%u\n", seed);
    for (unsigned i = 0; i < 300; i++) {
        SCOPED_TRACE("seed " + std::to_string(seed) + ", layout " +
                     std::to_string(i));
        size_t pos = draw(0, 100), left = m_dcx.attr.cap.am.max_zcopy - 4;
        iovs iov;

        for (unsigned j = draw(1, 12); j > 0; j--) {
            unsigned length = draw(1, 40), count = draw(0, 2) ? draw(0, 30) : 1;
            unsigned stride = length + (draw(0, 1) ? draw(0, 200) : 0);
            region &mem     = draw(0, 1) ? m_a : m_b;

            if (length * count <= left) {
                iov.push_back(mem.at(pos, length, stride, count));
                pos += (stride * count) + draw(0, 20);
                left -= length * count;
            }
        }
        if (gathered(iov).empty()) {
            continue;
        }
        ASSERT_NO_FATAL_FAILURE(check_all(iov));
    }
}

/* --- refused -------------------------------------------------------------- */

TEST_P(dcx_strided, stride_smaller_than_length)
{
    expect_refused({m_a.at(0, 8), m_a.at(100, 8, 7, 2)},
                   "iov[1] (length 8, stride 7, count 2): stride is smaller "
                   "than length");
}

TEST_P(dcx_strided, beyond_64_bits)
{
    uct_iov_t far = m_a.at(0, 8);

    far.count  = 3;
    far.stride = SIZE_MAX / 2;
    expect_refused({far}, "exceed 64 bits");
    far.length = SIZE_MAX / 2;
    far.stride = SIZE_MAX / 2;
    expect_refused({far}, "exceed 64 bits");
}

TEST_P(dcx_strided, destination_overlaps)
{
    const iovs iov = {m_a.at(0, 8, 64, 10), m_a.at(135, 8)};
    auto before    = m_a.bytes;

    expect_refused([&](uct_completion_t *c) { return get(iov, c); },
                   "get_zcopy: iov: blocks of the destination overlap");
    EXPECT_EQ(before, m_a.bytes);
    check_put(iov); /* valid as a source */
    check_get({m_a.at(0, 8, 64, 10), m_a.at(136, 8)});
}

TEST_P(dcx_strided, too_long)
{
    const iovs iov = {m_a.at(0, m_dcx.attr.cap.am.max_zcopy / 20, 10000, 21)};

    expect_refused([&](uct_completion_t *c) { return am(iov, c); }, "am_zcopy");
}

/* --- ends ----------------------------------------------------------------- */

TEST_P(dcx_strided, without_completion)
{
    const iovs iov = {m_a.at(0, 8, 64, 100)};

    warm_up(iov);
    EXPECT_EQ(UCS_INPROGRESS, put(iov, NULL));
    EXPECT_EQ(UCS_INPROGRESS, get(iov, NULL));
    EXPECT_EQ(UCS_INPROGRESS, am(iov, NULL));
    m_dcx.flush();
    auto data = gathered(iov);
    EXPECT_TRUE(std::equal(data.begin(), data.end(), m_remote.bytes.begin()));
}

TEST_P(dcx_strided, one_completion_for_several)
{
    const iovs iov = {m_a.at(0, 8, 64, 100)}, few = {m_a.at(0, 8, 64, 2)};
    dcx_end end;

    warm_up(iov);
    warm_up(few);
    end.comp.count = 4;
    for (auto &each : {iov, few}) {
        EXPECT_EQ(UCS_INPROGRESS, put(each, &end.comp));
        EXPECT_EQ(UCS_INPROGRESS, get(each, &end.comp));
    }
    EXPECT_EQ(0u, end.count);
    progress_until([&] { return end.count > 0; });
    EXPECT_EQ(1u, end.count);
    EXPECT_EQ(UCS_OK, end.status);
}

/* When the flush ends, the blocks have arrived. */
TEST_P(dcx_strided, flush)
{
    const iovs iov = {m_a.at(0, 8, 64, 100)};
    dcx_end end, flushed([&] { EXPECT_EQ(1u, end.count); });

    warm_up(iov);
    EXPECT_EQ(UCS_INPROGRESS, get(iov, &end.comp));
    EXPECT_EQ(UCS_INPROGRESS, uct_ep_flush(m_ep, 0, &flushed.comp));
    progress_until([&] { return flushed.count > 0; });

    auto data = gathered(iov);
    EXPECT_TRUE(std::equal(data.begin(), data.end(), m_remote.bytes.begin()));
}

TEST_P(dcx_strided, pending)
{
    request waiting(this);
    const iovs &iov = waiting.iov;
    ucs_status_t status;
    unsigned posted = 0;
    dcx_end end;

    warm_up(iov);
    end.comp.count = 1000000;
    while ((status = put(iov, &end.comp)) == UCS_INPROGRESS) {
        posted++;
    }
    EXPECT_EQ(UCS_ERR_NO_RESOURCE, status);
    EXPECT_LT(0u, posted);
    EXPECT_EQ(UCS_ERR_NO_RESOURCE, get(iov, &end.comp));

    EXPECT_EQ(UCS_OK, uct_ep_pending_add(m_ep, &waiting.req, 0));
    progress_until([&] { return waiting.end.count > 0; });
    EXPECT_EQ(UCS_OK, waiting.end.status);
    EXPECT_EQ(1000000 - (int)posted, end.comp.count);
}

/* A strided active message needs a credit, too. */
TEST_P(dcx_strided, without_credits)
{
    const iovs iov = {m_a.at(0, 8, 64, 100)};
    ucs_status_t status;
    unsigned sent = 0;

    warm_up(iov);
    while ((status = am(iov, NULL)) == UCS_INPROGRESS) {
        sent++;
    }
    EXPECT_EQ(UCS_ERR_NO_RESOURCE, status);
    m_dcx.flush();
    progress_until([&] { return m_messages.size() == sent; });
    check_am(iov);
}

TEST_P(dcx_strided, failure)
{
    const iovs iov = {m_a.at(0, 8, 64, 100)}, few = {m_a.at(0, 8, 64, 2)};
    uct_rkey_t rkey = m_rkey;
    dcx_end ends[3];

    warm_up(few);
    warm_up(iov);
    auto before = m_a.bytes;
    m_rkey ^= ~0xffu;
    EXPECT_EQ(UCS_INPROGRESS, get(iov, &ends[0].comp));
    m_rkey = rkey;
    EXPECT_EQ(UCS_INPROGRESS, get(iov, &ends[1].comp));
    EXPECT_EQ(UCS_INPROGRESS, get(few, &ends[2].comp));
    progress_until([&] { return ends[2].count > 0; });
    for (auto &end : ends) {
        EXPECT_EQ(1u, end.count);
        EXPECT_EQ(UCS_ERR_CONNECTION_RESET, end.status);
    }
    EXPECT_TRUE(
        std::equal(before.begin() + 192, before.end(), m_a.bytes.begin() + 192))
        << "nothing is unpacked";
    progress_until([&] { return !m_dcx.errors.empty(); });
    EXPECT_EQ(UCS_ERR_CONNECTION_RESET, put(iov, NULL));
    EXPECT_EQ(UCS_ERR_CONNECTION_RESET, am(iov, NULL));
    m_log.take();
}

/* All operations end before uct_ep_destroy() returns, or later on a shared
 * queue. */
TEST_P(dcx_strided, endpoint_destroyed)
{
    const iovs iov = {m_a.at(0, 8, 64, 100)};
    dcx_end ends[3];

    warm_up(iov);
    EXPECT_EQ(UCS_INPROGRESS, get(iov, &ends[0].comp));
    EXPECT_EQ(UCS_INPROGRESS, put(iov, &ends[1].comp));
    EXPECT_EQ(UCS_INPROGRESS, am(iov, &ends[2].comp));
    uct_ep_destroy(m_ep);
    m_ep = NULL;
    m_dcx.flush();
    for (auto &end : ends) {
        EXPECT_EQ(1u, end.count);
        EXPECT_EQ(UCS_ERR_CANCELED, end.status);
    }
}

/* The operation ends with its endpoint on an exclusive initiator. On a shared
 * one its resources are freed, but its completion is not called, unless the
 * endpoint exists. */
TEST_P(dcx_strided, interface_closed)
{
    for (bool is_destroyed : {true, false}) {
        dcx_loop other;
        region mem(other, 8192, 4);
        uct_ep_h ep            = other.make_ep(m_dcx);
        const uct_iov_t blocks = mem.at(0, 8, 64, 100);
        dcx_deadline deadline;
        dcx_end end;

        while (uct_ep_put_zcopy(ep, &blocks, 1,
                                (uintptr_t)m_remote.bytes.data(), m_rkey,
                                &end.comp) == UCS_ERR_NO_RESOURCE) {
            deadline.check("an initiator and a layout");
            uct_worker_progress(other.worker);
        }
        if (is_destroyed) {
            uct_ep_destroy(ep);
        }
        unsigned ended = is_destroyed ? end.count : 1;
        other.close_iface();
        EXPECT_EQ(ended, end.count);
        EXPECT_EQ(ended ? UCS_ERR_CANCELED : UCS_INPROGRESS, end.status);
        EXPECT_EQ(is_destroyed, m_log.take().empty());
    }
}

INSTANTIATE_TEST_SUITE_P(exclusive, dcx_strided, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(shared, dcx_strided, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(keys, dcx_strided, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(keys_shared, dcx_strided, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(keys_hw_dcs, dcx_strided, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(keys_long, dcx_strided, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(hw_dcs, dcx_strided, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(roce, dcx_strided, testing::Values(0));

/* --- by keys -------------------------------------------------------------- */

class dcx_strided_keys : public dcx_strided {
protected:
    dcx_layout_stats stats()
    {
        dcx_layout_stats stats;

        dcx_peek_layouts(m_dcx.iface, &stats);
        return stats;
    }

    /* Pieces of one to four bytes that do not merge, and form no run */
    iovs irregular(unsigned num)
    {
        iovs iov;

        for (unsigned i = 0, pos = 5; i < num; i++) {
            iov.push_back(((i % 3) ? m_a : m_b).at(pos, 1 + (i % 4)));
            pos += 5 + (i % 11);
        }
        return iov;
    }
};

/* A profile in which a UMR takes as long as a copy of 4,500 bytes, and each of
 * its entries as long as one of 120 */
class dcx_strided_measured : private forged_profile, public dcx_strided_keys {
protected:
    dcx_strided_measured() :
        forged_profile("umr_us_4 1.50\numr_us_1024 42.3\ncopy_mbs 3000\n")
    {
    }

    /* Returns the number of layouts that a put of these blocks looks up. */
    uint64_t keys_of(size_t length, size_t count)
    {
        auto before = stats();

        check_put({m_a.at(0, length, 2 * length, count)});
        return stats().hits + stats().misses - before.hits - before.misses;
    }
};

TEST_P(dcx_strided_measured, put)
{
    const bool is_set = getenv("UCX_DCX_STRIDED_COPY") != NULL;

    EXPECT_EQ(0u, keys_of(100, 20)) << "the least thresholds";
    EXPECT_EQ(is_set, keys_of(140, 32)) << "4,480 bytes";
    EXPECT_EQ(1u, keys_of(141, 32)) << "4,512 bytes";
    EXPECT_EQ(is_set, keys_of(119, 60)) << "a copy of short pieces";
    EXPECT_EQ(1u, keys_of(121, 60)) << "of longer ones";
}

INSTANTIATE_TEST_SUITE_P(measured, dcx_strided_measured, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(set, dcx_strided_measured, testing::Values(0));

/* With 53 pieces and more the device reads the list from memory. Each operation
 * uses a key; an active message and a put use the same layout. */
TEST_P(dcx_strided_keys, lists)
{
    for (unsigned num : {12, 51, 52, 53, 64, 65, 200, 1023, 1024}) {
        SCOPED_TRACE(num);
        auto before = stats();

        check_all(irregular(num));
        EXPECT_EQ(before.misses + 2, stats().misses);
    }
}

/* Too long for any buffer; repeated operations need no further UMR. */
TEST_P(dcx_strided_keys, one_layout_stays)
{
    const iovs run  = {m_a.at(8, 2000, 4000, 60)};
    const iovs list = {m_a.at(8, 2000, 70000, 3), m_b.at(3, 999, 30000, 8)};

    for (auto &iov : {run, list}) {
        auto before = stats();

        check_put(iov);
        EXPECT_EQ(before.misses + 1, stats().misses);
        for (unsigned i = 0; i < 10; i++) {
            check_put(iov);
        }
        EXPECT_EQ(before.misses + 1, stats().misses);
        EXPECT_LE(before.hits + 10, stats().hits);
        check_get(iov);
        EXPECT_EQ(before.misses + 2, stats().misses);
    }
}

/* An operation returns UCS_ERR_NO_RESOURCE until its layout is set, then its
 * pending request is called. */
TEST_P(dcx_strided_keys, pending)
{
    request waiting(this);

    EXPECT_EQ(UCS_ERR_NO_RESOURCE, get(waiting.iov, &waiting.end.comp));
    EXPECT_EQ(UCS_OK, uct_ep_pending_add(m_ep, &waiting.req, 0));
    progress_until([&] { return waiting.end.count > 0; });
    EXPECT_EQ(UCS_OK, waiting.end.status);
    EXPECT_EQ(1u, stats().misses);
}

/* Others would overtake an active message that waits: it is copied, and later
 * ones use the layout that it has requested. */
TEST_P(dcx_strided_keys, message_does_not_wait)
{
    const iovs iov = irregular(200);
    dcx_end ends[2];

    for (auto &end : ends) {
        ASSERT_EQ(UCS_INPROGRESS, am(iov, &end.comp));
        progress_until([&] { return end.count > 0; });
        EXPECT_EQ(UCS_OK, end.status);
        check_put(iov);
        EXPECT_EQ(1u, stats().misses);
    }
    EXPECT_EQ(2u, stats().hits) << "a put, the second message";
}

/* More layouts at once than there are keys: keys are reused. */
TEST_P(dcx_strided_keys, more_layouts_than_keys)
{
    std::vector<dcx_end> ends(300);
    unsigned i = 0;

    for (auto &end : ends) {
        const iovs iov = {m_a.at(8 * i++, 2000, 4000, 60)};

        progress_until(
            [&] { return put(iov, &end.comp) != UCS_ERR_NO_RESOURCE; });
    }
    m_dcx.flush();
    for (auto &end : ends) {
        EXPECT_EQ(1u, end.count);
        EXPECT_EQ(UCS_OK, end.status);
    }
}

/* More layouts are requested than there are keys, but only the last is used. */
TEST_P(dcx_strided_keys, more_requested_than_keys)
{
    dcx_end end;
    iovs iov;

    for (unsigned i = 0; i < 300; i++) {
        iov = {m_a.at(8 * i, 2000, 4000, 60)};
        ASSERT_EQ(UCS_ERR_NO_RESOURCE, put(iov, &end.comp)) << i;
    }
    progress_until([&] { return put(iov, &end.comp) != UCS_ERR_NO_RESOURCE; });
    m_dcx.flush();
    EXPECT_EQ(1u, end.count);
    EXPECT_EQ(UCS_OK, end.status);
}

/* The layout queue is in error: operations that are too long for a copy are
 * refused. */
TEST_P(dcx_strided_keys, layout_queue_in_error)
{
    dcx_end end;

    check_put(irregular(12));
    dcx_peek_no_more_layouts(m_dcx.iface);
    EXPECT_EQ(UCS_ERR_IO_ERROR, put({m_a.at(0, 2000, 4000, 60)}, &end.comp));
    EXPECT_EQ("", m_log.take());
    check_put(irregular(13));
}

/* The handle is deregistered, and its number is used for other memory. */
TEST_P(dcx_strided_keys, memory_goes)
{
    for (unsigned i = 0; i < 5; i++) {
        region mem(m_dcx, 100000, 10 + i);

        check_put({mem.at(0, 2000, 4000, 20)});
    }
}

TEST_P(dcx_strided_keys, announced)
{
    EXPECT_EQ(1024u, m_dcx.attr.cap.put.max_iov);
    EXPECT_EQ(m_dcx.attr.cap.put.max_iov, m_dcx.attr.cap.get.max_iov);
}

/* UMR_MAX_ENTRIES limits the pieces of a list to 8,192: 1,024 entries of 8
 * blocks. */
class dcx_strided_long : public dcx_strided_keys {
protected:
    iovs blocks(unsigned num)
    {
        iovs iov;

        for (unsigned i = 0, pos = 5; i < num; i++) {
            iov.push_back(((i % 3) ? m_a : m_b).at(pos, 1, 3 + (i % 5), 8));
            pos += 60 + (i % 11);
        }
        return iov;
    }
};

TEST_P(dcx_strided_long, lists)
{
    for (unsigned num : {200, 1000, 1024}) {
        SCOPED_TRACE(num);
        auto before = stats();

        check_all(blocks(num));
        EXPECT_EQ(before.misses + 2, stats().misses);
    }
}

/* Without a key short data is copied, longer data is refused. */
TEST_P(dcx_strided_long, limit)
{
    auto before = stats();
    iovs iov    = blocks(1024);

    iov[1023] = m_a.at(SIZE - 100, 1, 3, 20);
    check_all(iov);
    EXPECT_EQ(before.misses, stats().misses);

    for (auto &entry : iov) {
        entry.length = 2;
    }
    expect_refused([&](uct_completion_t *c) { return put(iov, c); },
                   "16408 bytes in 8204 pieces", UCS_ERR_UNSUPPORTED);
}

INSTANTIATE_TEST_SUITE_P(keys_long, dcx_strided_long, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(keys, dcx_strided_keys, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(keys_shared, dcx_strided_keys, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(keys_hw_dcs, dcx_strided_keys, testing::Values(0));

/* A device without UMR: long data in many pieces is refused. */
class dcx_strided_lacks : public dcx_strided {};

TEST_P(dcx_strided_lacks, refused)
{
    const iovs iov = {m_a.at(8, 2000, 4000, 60)};

    EXPECT_EQ(11u, m_dcx.attr.cap.put.max_iov);
    expect_refused([&](uct_completion_t *c) { return put(iov, c); },
                   "put_zcopy: 120000 bytes in 60 pieces", UCS_ERR_UNSUPPORTED);
    check_all({m_a.at(0, 8, 64, 100)});
}

INSTANTIATE_TEST_SUITE_P(no_devx, dcx_strided_lacks, testing::Values(0));

/* --- tags ----------------------------------------------------------------- */

class dcx_strided_tag : public dcx_tag_bench {
protected:
    /* Returns pieces that do not merge. */
    static iovs many_pieces(region &a, region &b, unsigned num)
    {
        iovs iov;

        for (unsigned i = 0, pos = 5; i < num; i++) {
            iov.push_back(((i % 3) ? a : b).at(pos, 1 + (i % 4)));
            pos += 5 + (i % 11);
        }
        return iov;
    }

    ucs_status_t send(const iovs &iov, dcx_end &end)
    {
        return retry([&] {
            return uct_ep_tag_eager_zcopy(m_dcx.ep, 5, 77ull << 32, iov.data(),
                                          iov.size(), 0, &end.comp);
        });
    }
};

TEST_P(dcx_strided_tag, eager)
{
    region a(m_dcx, 65536, 1), b(m_dcx, 65536, 2);

    EXPECT_EQ(16u, m_dcx.attr.cap.tag.eager.max_iov);
    for (auto &iov :
         {iovs{a.at(1, 20, 100, 2)}, iovs{a.at(1, 20, 100, 200)},
          many_pieces(a, b, 200), many_pieces(b, a, 1024),
          iovs{a.at(3, 100, 60000, 2), b.at(0, 50), b.at(100, 9, 18, 3)}}) {
        dcx_tag_recv recv(m_dcx, 8192);
        auto data = gathered(iov);
        dcx_end end;

        EXPECT_EQ(UCS_OK, recv.post(5));
        EXPECT_EQ(UCS_INPROGRESS, send(iov, end));
        progress_until([&] { return recv.has_ended() && (end.count > 0); });
        EXPECT_EQ(UCS_OK, end.status);
        EXPECT_EQ(77ull << 32, recv.imm);
        ASSERT_EQ(data.size(), recv.length);
        EXPECT_TRUE(
            std::equal(data.begin(), data.end(), recv.mem.bytes.begin()));
    }
}

/* One piece of memory, in adjacent blocks */
TEST_P(dcx_strided_tag, adjacent_blocks)
{
    dcx_tag_mem mem(m_dcx, 40000);
    dcx_tag_recv recv(m_dcx, 40000);
    dcx_end end;

    mem.iov.length      = 1000;
    mem.iov.stride      = 1000;
    mem.iov.count       = 40;
    recv.mem.iov.length = 500;
    recv.mem.iov.stride = 500;
    recv.mem.iov.count  = 80;
    EXPECT_EQ(UCS_OK, recv.post(5));
    EXPECT_FALSE(UCS_PTR_IS_ERR(send_rndv(5, "head", mem, end)));
    progress_until([&] { return recv.has_ended() && (end.count > 0); });
    EXPECT_EQ(40000u, recv.length);
    EXPECT_EQ(mem.bytes, recv.mem.bytes);
}

INSTANTIATE_TEST_SUITE_P(tags, dcx_strided_tag, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(tags_keys, dcx_strided_tag, testing::Values(0));

} // namespace

int main(int argc, char **argv)
{
    std::vector<std::pair<const char *, const char *>> env = {
        {"UCX_DCX_TX_QUEUE_LEN", "16"},
        {"UCX_DCX_NUM_DCI", "2"},
        {"UCX_DCX_FAILURE", "error"},
        {"SOFTHCA_LOG", "error"},
    };
    auto shared = env, hw_dcs = env, roce = env, keys = env;

    shared.push_back({"UCX_DCX_TX_POLICY", "rand"});
    hw_dcs.push_back({"UCX_DCX_TX_POLICY", "hw_dcs"});
    roce.push_back({"SOFTHCA_LINK", "roce"});
    /* all memory of more than one piece uses a key */
    keys.push_back({"UCX_DCX_STRIDED_MAX_PLAIN", "1"});
    keys.push_back({"UCX_DCX_STRIDED_COPY", "0"});
    keys.push_back({"UCX_DCX_STRIDED_COPY_PIECE", "0"});

    auto keys_shared = keys, keys_hw_dcs = keys, keys_long = keys;
    auto no_devx = keys, tags_keys = keys, set = env;
    keys_long.push_back({"UCX_DCX_UMR_MAX_ENTRIES", "8192"});
    keys_hw_dcs.push_back({"UCX_DCX_TX_POLICY", "hw_dcs"});
    tags_keys.push_back({"UCX_DCX_TM_ENABLE", "y"});
    no_devx.push_back({"UCX_DCX_DEVX", "n"});
    set.push_back({"UCX_DCX_STRIDED_COPY", "2k"});
    set.push_back({"UCX_DCX_STRIDED_COPY_PIECE", "64"});
    keys_shared.push_back({"UCX_DCX_TX_POLICY", "rand"});
    return hca_test_main(argc, argv,
                         {{"exclusive", env},
                          {"shared", shared},
                          {"roce", roce},
                          {"keys", keys},
                          {"keys_shared", keys_shared},
                          {"keys_hw_dcs", keys_hw_dcs},
                          {"keys_long", keys_long},
                          {"hw_dcs", hw_dcs},
                          {"no_devx", no_devx},
                          {"measured", env},
                          {"set", set},
                          {"tags", {{"UCX_DCX_TM_ENABLE", "y"}}},
                          {"tags_keys", tags_keys}});
}
