/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * dcx on an unordered fabric, or unordered PCIe (SOFTHCA_ORDER): a flag after
 * data, by put, atomic, get and message, contiguous and strided. Data and flag
 * of a pair share bytes, which show which of them was written last. On an
 * endpoint to its own interface. Also the choice of the service level.
 * DCX_ORDER_PAIRS: pairs of each kind; DCX_ORDER_KEPT: set in modes that keep
 * the order without a fence.
 */
#include "dcx_end.h"
#include "dcx_loop.h"
#include "ucx_log.h"

namespace {

class dcx_order : public testing::TestWithParam<int> {
protected:
    /* Strided data: enough pieces of enough bytes to use a key */
    static constexpr unsigned pieces = 70, piece = 72, stride = 80;
    static constexpr size_t plain = 64, strided = pieces * piece;
    static constexpr unsigned in_flight = 32;

    dcx_order()
    {
        const char *pairs = getenv("DCX_ORDER_PAIRS");
        std::vector<uint8_t> packed(64);
        uct_rkey_bundle_t bundle;

        m_pairs = (pairs != NULL) ? atoi(pairs) : 3000;
        UCT_CALL(uct_md_mkey_pack(m_dcx.md(), m_dcx.memh, packed.data()));
        UCT_CALL(uct_rkey_unpack(m_dcx.component(), packed.data(), &bundle));
        m_rkey = bundle.rkey;
    }

    ~dcx_order()
    {
        m_dcx.flush();
        EXPECT_EQ("", m_log.take()) << "the device complained";
    }

    uint8_t *near() { return m_dcx.mem.data(); }
    uint8_t *far() { return m_dcx.mem.data() + pieces * stride + 64; }
    uint64_t raddr(size_t at) { return (uintptr_t)(far() + at); }

    template <typename F> void post(F op)
    {
        dcx_deadline deadline;
        ucs_status_t status;

        while ((status = op()) == UCS_ERR_NO_RESOURCE) {
            deadline.check("resources for an operation");
            uct_worker_progress(m_dcx.worker);
        }
        ASSERT_TRUE((status == UCS_OK) || (status == UCS_INPROGRESS)) << status;
    }

    /* Puts @length bytes of @value to far(). */
    void put(size_t length, uint8_t value)
    {
        uct_iov_t iov = {.buffer = near(),
                         .length = length,
                         .memh   = m_dcx.memh,
                         .stride = 0,
                         .count  = 1};

        memset(near(), value, pieces * stride);
        if (length == strided) {
            iov.length = piece;
            iov.stride = stride;
            iov.count  = pieces;
        }
        post([&] {
            return uct_ep_put_zcopy(m_ep, &iov, 1, raddr(0), m_rkey, NULL);
        });
    }

    void fence(unsigned i)
    {
        ASSERT_EQ(UCS_OK, (i % 2) ? uct_ep_fence(m_ep, 0) :
                                    uct_iface_fence(m_dcx.iface, 0));
    }

    /* Posts pairs of data and @behind, with a fence between them or without.
     * @behind gets the offset of the last 8 bytes and their value, and returns
     * true if it was last. Returns the number of pairs out of order. */
    template <typename F> unsigned count(size_t length, bool fenced, F behind)
    {
        unsigned wrong = 0;

        for (unsigned i = 0; (i < m_pairs) && !HasFailure(); i++) {
            memset(far() + length - 8, 0xee, 8);
            put(length, i % 128);
            if (fenced) {
                fence(i);
            }
            wrong += !behind(length - 8, i % 128);
        }
        return wrong;
    }

    /* Checks that all pairs are ordered with a fence, and some are not without,
     * if the mode may reorder them. */
    template <typename F> void expect_order(F behind, bool reorders)
    {
        for (size_t length : {plain, strided}) {
            EXPECT_EQ(0u, count(length, true, behind)) << length << " bytes";
            EXPECT_EQ(reorders, count(length, false, behind) > m_pairs / 20)
                << length << " bytes";
        }
    }

    static bool is_kept() { return getenv("DCX_ORDER_KEPT") != NULL; }

    hca_log_reader m_log;
    dcx_loop m_dcx;
    uct_ep_h m_ep = m_dcx.ep;
    uct_rkey_t m_rkey;
    unsigned m_pairs;
};

TEST_P(dcx_order, put_behind_a_fence_comes_last)
{
    expect_order(
        [&](size_t at, uint8_t) {
            const uint64_t flag = 0xf1a6;

            post([&] {
                return uct_ep_put_short(m_ep, &flag, sizeof(flag), raddr(at),
                                        m_rkey);
            });
            m_dcx.flush();
            return !memcmp(far() + at, &flag, sizeof(flag));
        },
        !is_kept());
}

/* A fence orders any number of operations that follow. */
TEST_P(dcx_order, puts_behind_a_fence_come_last)
{
    for (unsigned i = 0; (i < m_pairs / in_flight) && !HasFailure(); i++) {
        for (unsigned j = 0; j < in_flight; j++) {
            post([&] {
                return uct_ep_put_short(m_ep, "the data", 8, raddr(8 * j),
                                        m_rkey);
            });
        }
        fence(i);
        for (unsigned j = 0; j < in_flight; j++) {
            post([&] {
                return uct_ep_put_short(m_ep, "the flag", 8, raddr(8 * j),
                                        m_rkey);
            });
        }
        m_dcx.flush();
        for (unsigned j = 0; j < in_flight; j++) {
            ASSERT_EQ(0, memcmp(far() + 8 * j, "the flag", 8)) << i << " " << j;
        }
    }
}

TEST_P(dcx_order, atomic_behind_a_fence_finds_the_data)
{
    expect_order(
        [&](size_t at, uint8_t value) {
            uint64_t result = 0, data;
            dcx_end end;

            post([&] {
                return uct_ep_atomic64_fetch(m_ep, UCT_ATOMIC_OP_ADD, 1,
                                             &result, raddr(at), m_rkey,
                                             &end.comp);
            });
            m_dcx.flush();
            memset(&data, value, sizeof(data));
            return (result == data) && (*(uint64_t *)(far() + at) == data + 1);
        },
        !is_kept());
}

TEST_P(dcx_order, get_behind_a_fence_finds_the_data)
{
    expect_order(
        [&](size_t at, uint8_t value) {
            uint8_t *to   = near() + pieces * stride;
            uct_iov_t iov = {.buffer = to,
                             .length = 8,
                             .memh   = m_dcx.memh,
                             .stride = 0,
                             .count  = 1};
            dcx_end end;

            post([&] {
                return uct_ep_get_zcopy(m_ep, &iov, 1, raddr(at), m_rkey,
                                        &end.comp);
            });
            m_dcx.flush();
            return (to[0] == value) && (to[7] == value);
        },
        !is_kept());
}

/* Before a message no fence is needed: when it arrives, the data of earlier
 * puts is there. */
TEST_P(dcx_order, message_finds_the_data)
{
    for (size_t length : {plain, strided}) {
        EXPECT_EQ(0u, count(length, false,
                            [&](size_t at, uint8_t value) {
                                const unsigned received = m_dcx.received;
                                dcx_deadline deadline;

                                post([&] {
                                    return uct_ep_am_short(m_ep, 5, 0, NULL, 0);
                                });
                                while (m_dcx.received == received) {
                                    deadline.check("the message");
                                    uct_worker_progress(m_dcx.worker);
                                }
                                return (far()[at] == value) &&
                                       (far()[at + 7] == value);
                            }))
            << length << " bytes";
    }
}

/* The data of a completed operation has arrived. */
TEST_P(dcx_order, flush_ends_with_the_data)
{
    EXPECT_EQ(0u, count(plain, false, [&](size_t at, uint8_t value) {
                  m_dcx.flush();
                  return (far()[at] == value) && (far()[at + 7] == value);
              }));
}

/* --- choice of the service level ------------------------------------------ */

/* Level for UCX_DCX_SL and UCX_DCX_AR_ENABLE; -1: the interface does not
 * open */
struct sl_choice {
    const char *sl, *ar;
    int expected;
};

using sl_choices = std::vector<sl_choice>;

class dcx_sl : public testing::TestWithParam<sl_choices> {
protected:
    static int open(const sl_choice &choice)
    {
        setenv("UCX_DCX_SL", choice.sl, 1);
        setenv("UCX_DCX_AR_ENABLE", choice.ar, 1);
        try {
            dcx_loop dcx;
            uint8_t av[48];

            dcx_peek_av(dcx.ep, av);
            return av[12] & 0xf;
        } catch (const std::runtime_error &) {
            return -1;
        }
    }
};

TEST_P(dcx_sl, follows_from_options)
{
    for (const auto &choice : GetParam()) {
        SCOPED_TRACE(std::string(choice.sl) + " " + choice.ar);
        ucx_log_reader log;

        EXPECT_EQ(choice.expected, open(choice));
        std::string text = log.take();
        EXPECT_EQ(choice.expected < 0,
                  text.find("UCX_DCX_AR_ENABLE=") != std::string::npos)
            << text;
    }
}

/* Levels with adaptive routing: 0 to 7 in mode ooo, none in kept; in blind dcx
 * cannot query them. */
INSTANTIATE_TEST_SUITE_P(ooo, dcx_sl,
                         testing::Values(sl_choices{{"auto", "auto", 0},
                                                    {"auto", "y", 0},
                                                    {"auto", "try", 0},
                                                    {"auto", "n", 8},
                                                    {"9", "auto", 9},
                                                    {"9", "n", 9},
                                                    {"9", "try", 9},
                                                    {"9", "y", -1},
                                                    {"5", "y", 5},
                                                    {"5", "n", -1}}));
INSTANTIATE_TEST_SUITE_P(kept, dcx_sl,
                         testing::Values(sl_choices{{"auto", "auto", 0},
                                                    {"auto", "n", 0},
                                                    {"auto", "try", 0},
                                                    {"auto", "y", -1},
                                                    {"5", "n", 5}}));
INSTANTIATE_TEST_SUITE_P(blind, dcx_sl,
                         testing::Values(sl_choices{{"auto", "auto", 0},
                                                    {"auto", "try", 0},
                                                    {"5", "try", 5},
                                                    {"auto", "y", -1},
                                                    {"auto", "n", -1}}));
INSTANTIATE_TEST_SUITE_P(roce, dcx_sl,
                         testing::Values(sl_choices{{"auto", "auto", 0},
                                                    {"auto", "try", 0},
                                                    {"auto", "n", 0},
                                                    {"auto", "y", 0}}));
INSTANTIATE_TEST_SUITE_P(roce_ooo, dcx_sl,
                         testing::Values(sl_choices{{"auto", "auto", 0},
                                                    {"auto", "y", 0},
                                                    {"auto", "n", 0}}));

/* The NOP that ends the flush carries the fence. */
TEST_P(dcx_order, flush_behind_a_fence)
{
    for (unsigned i = 0; i < in_flight; i++) {
        const uint64_t data = i;

        for (size_t at : {0, 8}) { /* only the first is signaled */
            post([&] {
                return uct_ep_put_short(m_ep, &data, sizeof(data), raddr(at),
                                        m_rkey);
            });
        }
        fence(i);
        m_dcx.flush();
        ASSERT_EQ(0, memcmp(far() + 8, &data, sizeof(data)));
    }
}

INSTANTIATE_TEST_SUITE_P(ooo, dcx_order, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(seed, dcx_order, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(rand, dcx_order, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(streams, dcx_order, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(streams_relaxed, dcx_order, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(plain_sl, dcx_order, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(relaxed, dcx_order, testing::Values(0));

} /* namespace */

int main(int argc, char **argv)
{
    return hca_test_main(
        argc, argv,
        {
            {"ooo", {{"SOFTHCA_ORDER", "ooo"}}},
            {"seed",
             {{"SOFTHCA_ORDER", "ooo:2"}, {"UCX_DCX_TX_CQ_MODERATION", "1"}}},
            {"rand",
             {{"SOFTHCA_ORDER", "ooo:3"},
              {"UCX_DCX_TX_POLICY", "rand"},
              {"UCX_DCX_NUM_DCI", "1"}}},
            {"streams",
             {{"SOFTHCA_ORDER", "ooo"}, {"UCX_DCX_TX_POLICY", "hw_dcs"}}},
            {"streams_relaxed",
             {{"SOFTHCA_ORDER", "relaxed"},
              {"DCX_ORDER_KEPT", "y"},
              {"UCX_DCX_TX_POLICY", "hw_dcs"},
              {"UCX_DCX_PCI_RELAXED_ORDERING", "y"}}},
            {"plain_sl",
             {{"SOFTHCA_ORDER", "ooo"},
              {"DCX_ORDER_KEPT", "y"},
              {"UCX_DCX_AR_ENABLE", "n"}}},
            {"relaxed",
             {{"SOFTHCA_ORDER", "relaxed"},
              {"DCX_ORDER_KEPT", "y"},
              {"UCX_DCX_PCI_RELAXED_ORDERING", "y"}}},
            {"kept", {}},
            {"blind", {{"SOFTHCA_LACKS", "devx"}}},
            {"roce", {{"SOFTHCA_LINK", "roce"}}},
            {"roce_ooo", {{"SOFTHCA_LINK", "roce"}, {"SOFTHCA_ORDER", "ooo"}}},
        });
}
