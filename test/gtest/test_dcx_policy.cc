/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Which initiator serves which endpoint: the pool and the policies alone, as
 * the interface drives them, with no device and no UCX.
 */
#include <assert.h>
#include <stdint.h>

extern "C" {
#include "uct/dcx/dcx_policy.h"
}

#include <algorithm>
#include <climits>
#include <cstring>
#include <gtest/gtest.h>
#include <random>
#include <vector>

class DcxPolicy : public testing::TestWithParam<unsigned> {
protected:
    enum { NUM_DCI = 5, QUOTA = 32 };

    void SetUp() override
    {
        ASSERT_EQ(0, uct_dcx_pool_init(&m_pool, GetParam(), NUM_DCI, QUOTA));
    }

    void TearDown() override
    {
        uct_dcx_pool_cleanup(&m_pool);
    }

    bool is_dcs() const
    {
        return !strcmp(uct_dcx_policy_names[GetParam()], "dcs");
    }

    uct_dcx_pool_t m_pool;
};

TEST_P(DcxPolicy, HandsOutEachOnceFromZero)
{
    for (unsigned i = 0; i < NUM_DCI; i++) {
        EXPECT_TRUE(uct_dcx_pool_has_idle(&m_pool));
        EXPECT_EQ(i, uct_dcx_pool_take(&m_pool));
    }
    EXPECT_FALSE(uct_dcx_pool_has_idle(&m_pool));
    EXPECT_EQ(UCT_DCX_NO_DCI, uct_dcx_pool_take(&m_pool));
}

TEST_P(DcxPolicy, KeepsAnInitiatorThatHasWork)
{
    uint16_t dci = uct_dcx_pool_take(&m_pool);

    EXPECT_FALSE(uct_dcx_pool_settle(&m_pool, dci, 1));
    EXPECT_EQ(NUM_DCI - 1u, m_pool.num_idle);
    EXPECT_TRUE(uct_dcx_pool_settle(&m_pool, dci, 0));
    EXPECT_EQ((unsigned)NUM_DCI, m_pool.num_idle);
}

TEST_P(DcxPolicy, ReusesTheWarmestFirst)
{
    uint16_t a = uct_dcx_pool_take(&m_pool), b = uct_dcx_pool_take(&m_pool);

    uct_dcx_pool_settle(&m_pool, a, 0);
    uct_dcx_pool_settle(&m_pool, b, 0);
    EXPECT_EQ(b, uct_dcx_pool_take(&m_pool));
    EXPECT_EQ(a, uct_dcx_pool_take(&m_pool));
}

TEST_P(DcxPolicy, QuotaLimitsOnlyWhereThePolicyHasOne)
{
    EXPECT_EQ(is_dcs() ? UINT_MAX : (unsigned)QUOTA,
              m_pool.policy->share(&m_pool));
}

/* A long run of takes and settles: never the same number to two, none lost. */
TEST_P(DcxPolicy, NoneIsLostOrHandedOutTwice)
{
    const unsigned seed = 20170919;
    std::mt19937 random(seed);
    std::vector<uint16_t> taken;

    SCOPED_TRACE(seed);
    for (int i = 0; i < 100000; i++) {
        if (random() % 2) {
            uint16_t dci = uct_dcx_pool_take(&m_pool);

            ASSERT_EQ(taken.size() == NUM_DCI, dci == UCT_DCX_NO_DCI);
            if (dci != UCT_DCX_NO_DCI) {
                ASSERT_LT(dci, NUM_DCI);
                ASSERT_EQ(0, std::count(taken.begin(), taken.end(), dci));
                taken.push_back(dci);
            }
        } else if (!taken.empty()) {
            unsigned at = random() % taken.size();

            ASSERT_TRUE(uct_dcx_pool_settle(&m_pool, taken[at], 0));
            taken.erase(taken.begin() + at);
        }
        ASSERT_EQ(NUM_DCI - taken.size(), m_pool.num_idle);
    }
}

static unsigned num_policies()
{
    unsigned count = 0;

    while (uct_dcx_policy_names[count] != NULL) {
        count++;
    }
    return count;
}

INSTANTIATE_TEST_SUITE_P(all, DcxPolicy, testing::Range(0u, num_policies()),
                         [](const testing::TestParamInfo<unsigned> &info) {
                             return uct_dcx_policy_names[info.param];
                         });
