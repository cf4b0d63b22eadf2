/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * dcx on a device that is as late as a NIC (SOFTHCA_DELAY): results have
 * arrived at the completion, a fence orders operations, and dcx does not reuse
 * the memory of an operation before its completion. The endpoint leads to its
 * own interface.
 */
#include "dcx_end.h"
#include "dcx_loop.h"

#include <memory>

namespace {

class dcx_late : public testing::TestWithParam<int> {
protected:
    static constexpr size_t size = 64, times = 64;

    /* Local and remote memory */
    uint8_t *near(size_t i = 0) { return m_dcx.mem.data() + i * size; }
    uint8_t *far(size_t i = 0) { return near(2 * times + i); }

    uint64_t raddr(const uint8_t *to) const { return (uintptr_t)to; }

    uct_iov_t iov(uint8_t *at) const
    {
        return {.buffer = at,
                .length = size,
                .memh   = m_dcx.memh,
                .stride = 0,
                .count  = 1};
    }

    /* Calls until there are resources; checks that the operation is in
     * progress. */
    template <typename F> ucs_status_t post(F op)
    {
        dcx_deadline deadline;
        ucs_status_t status;

        while ((status = op()) == UCS_ERR_NO_RESOURCE) {
            deadline.check("resources for an operation");
            uct_worker_progress(m_dcx.worker);
        }
        EXPECT_EQ(UCS_INPROGRESS, status);
        return status;
    }

    void get(uint8_t *from, uint8_t *to, dcx_end &end)
    {
        uct_iov_t vec = iov(to);

        post([&] {
            return uct_ep_get_zcopy(m_dcx.ep, &vec, 1, raddr(from), m_rkey,
                                    &end.comp);
        });
    }

    void put(uint8_t *from, uint8_t *to, dcx_end &end)
    {
        uct_iov_t vec = iov(from);

        post([&] {
            return uct_ep_put_zcopy(m_dcx.ep, &vec, 1, raddr(to), m_rkey,
                                    &end.comp);
        });
    }

    ~dcx_late()
    {
        m_dcx.flush();
        EXPECT_EQ("", m_log.take()) << "the device complained";
    }

    hca_log_reader m_log;
    dcx_loop m_dcx;
    uct_rkey_t m_rkey = dcx_peek_rkey(m_dcx.memh);
};

/* A put after a fence sends the data that a get has fetched. Without the fence
 * the device could send the previous data. */
TEST_P(dcx_late, put_after_a_fence_sends_data_of_a_get)
{
    for (unsigned i = 0; i < times; i++) {
        dcx_end got, sent;

        memset(near(), 0x11, size);
        memset(far(), i, size);
        memset(far(1), 0xee, size);
        get(far(), near(), got);
        EXPECT_EQ(UCS_OK, (i % 2) ? uct_ep_fence(m_dcx.ep, 0) :
                                    uct_iface_fence(m_dcx.iface, 0));
        put(near(), far(1), sent);
        m_dcx.flush();
        ASSERT_EQ(1u, got.count);
        ASSERT_EQ(1u, sent.count);
        EXPECT_EQ(i, far(1)[0]);
    }
}

TEST_P(dcx_late, results_arrive_before_completions)
{
    std::vector<std::unique_ptr<dcx_end>> ends;

    for (unsigned i = 0; i < times; i++) {
        memset(far(i), i + 1, size);
        ends.push_back(std::make_unique<dcx_end>(
            [=, this] { EXPECT_EQ(i + 1, near(i)[size - 1]); }));
        get(far(i), near(i), *ends.back());
    }
    m_dcx.flush();
    for (auto &end : ends) {
        EXPECT_EQ(1u, end->count);
    }
}

TEST_P(dcx_late, atomics_return_previous_values)
{
    uint64_t results[times] = {};
    std::vector<std::unique_ptr<dcx_end>> ends;

    memset(far(), 0, size);
    for (unsigned i = 0; i < times; i++) {
        ends.push_back(std::make_unique<dcx_end>(
            [&results, i] { EXPECT_EQ(i, results[i]); }));
        results[i] = ~0ull;
        post([&] {
            return uct_ep_atomic64_fetch(m_dcx.ep, UCT_ATOMIC_OP_ADD, 1,
                                         &results[i], raddr(far()), m_rkey,
                                         &ends.back()->comp);
        });
    }
    m_dcx.flush();
    for (auto &end : ends) {
        EXPECT_EQ(1u, end->count);
    }
    EXPECT_EQ(times, *(uint64_t *)far());
}

/* The completion of each put overwrites its source. */
TEST_P(dcx_late, sources_are_not_read_after_completion)
{
    std::vector<std::unique_ptr<dcx_end>> ends;

    for (unsigned i = 0; i < times; i++) {
        memset(near(i), i + 1, size);
        ends.push_back(std::make_unique<dcx_end>(
            [=, this] { memset(near(i), 0xee, size); }));
        put(near(i), far(i), *ends.back());
    }
    m_dcx.flush();
    for (unsigned i = 0; i < times; i++) {
        EXPECT_EQ(1u, ends[i]->count);
        EXPECT_EQ(i + 1, far(i)[0]);
        EXPECT_EQ(0xee, near(i)[0]);
    }
}

/* Buffers of dcx are not reused before their put has completed. */
TEST_P(dcx_late, buffers_are_not_reused_too_early)
{
    auto pack = [](void *to, void *arg) {
        memset(to, *(uint8_t *)arg, size);
        return (size_t)size;
    };

    for (unsigned round = 0; round < 40; round++) {
        dcx_deadline deadline;

        for (unsigned i = 0; i < times; i++) {
            uint8_t byte = round + i;
            ssize_t ret;

            while ((ret = uct_ep_put_bcopy(m_dcx.ep, pack, &byte, raddr(far(i)),
                                           m_rkey)) == UCS_ERR_NO_RESOURCE) {
                deadline.check("resources for an operation");
                uct_worker_progress(m_dcx.worker);
            }
            EXPECT_EQ((ssize_t)size, ret);
        }
        m_dcx.flush();
        for (unsigned i = 0; i < times; i++) {
            ASSERT_EQ((uint8_t)(round + i), far(i)[size - 1]);
        }
    }
}

INSTANTIATE_TEST_SUITE_P(own, dcx_late, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(rand, dcx_late, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(streams, dcx_late, testing::Values(0));

} /* namespace */

int main(int argc, char **argv)
{
    return hca_test_main(
        argc, argv,
        {
            {"own", {{"SOFTHCA_DELAY", "200"}}},
            {"rand",
             {{"SOFTHCA_DELAY", "200"},
              {"UCX_DCX_TX_POLICY", "rand"},
              {"UCX_DCX_NUM_DCI", "1"}}},
            {"streams",
             {{"SOFTHCA_DELAY", "200"}, {"UCX_DCX_TX_POLICY", "hw_dcs"}}},
        });
}
