/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Assignment of initiators to endpoints: the pool and the policies alone,
 * called as the interface does, without a device or UCX
 */
#include <stdint.h>

extern "C" {
#include "uct/dcx/base/dcx_policy.h"
}

#include <climits>
#include <cstring>
#include <gtest/gtest.h>
#include <string>
#include <vector>

namespace {

const uint64_t seed = 20170919;

class policy_test : public testing::TestWithParam<std::string> {
protected:
    enum { num_dci = 5, quota = 32, num_streams = 4 };

    policy_test() { init(seed); }

    void init(uint64_t a_seed)
    {
        uct_dcx_pool_params_t params = {};

        while (GetParam() != uct_dcx_policy_names[params.policy]) {
            params.policy++;
        }
        params.num_dci     = num_dci;
        params.quota       = quota;
        params.num_streams = num_streams;
        params.seed        = a_seed;
        uct_dcx_pool_init(&m_pool, &params);
    }

    std::vector<uct_dcx_binding_t> bind(unsigned count)
    {
        std::vector<uct_dcx_binding_t> places;

        while (places.size() < count) {
            places.push_back(uct_dcx_pool_bind(&m_pool));
        }
        return places;
    }

    uct_dcx_pool_t m_pool;
};

/* --- any policy ----------------------------------------------------------- */

class any_policy : public policy_test {};

/* Policies with shared initiators assign one from the start. */
TEST_P(any_policy, shared_initiators_are_bound_at_once)
{
    uct_dcx_binding_t place = uct_dcx_pool_bind(&m_pool);

    EXPECT_EQ(!m_pool.policy->is_shared, place.dci == UCT_DCX_NO_DCI);
    EXPECT_EQ(!m_pool.policy->is_shared, !!uct_dcx_pool_has_idle(&m_pool));
    EXPECT_LE(1u, m_pool.num_dci);
}

TEST_P(any_policy, numbers_and_streams_are_in_range)
{
    for (unsigned i = 0; i < 1000; i++) {
        uct_dcx_binding_t place = uct_dcx_pool_bind(&m_pool);

        if (place.dci != UCT_DCX_NO_DCI) {
            EXPECT_LT(place.dci, m_pool.num_dci);
        }
        EXPECT_LT(place.stream, m_pool.policy->has_streams ? num_streams : 1);
    }
}

std::vector<std::string> all_policies()
{
    std::vector<std::string> names;

    for (const char **name = uct_dcx_policy_names; *name != NULL; name++) {
        names.push_back(*name);
    }
    return names;
}

std::string name_of(const testing::TestParamInfo<std::string> &info)
{
    return info.param;
}

INSTANTIATE_TEST_SUITE_P(all, any_policy, testing::ValuesIn(all_policies()),
                         name_of);

/* --- exclusive initiators ------------------------------------------------- */

class exclusive_policy : public policy_test {};

TEST_P(exclusive_policy, quota_is_a_limit)
{
    EXPECT_EQ((GetParam() == "dcs_quota") ? (unsigned)quota : UINT_MAX,
              m_pool.share);
}

/* Number 2 cannot be created, and number 0 is in use: 1 is idle. */
TEST_P(exclusive_policy, truncated)
{
    m_pool.num_idle--;
    uct_dcx_pool_truncate(&m_pool, 2);
    EXPECT_EQ(2u, m_pool.num_dci);
    EXPECT_EQ(1u, m_pool.num_idle);
}

/* Twice as many each time, up to a limit */
TEST_P(exclusive_policy, grows)
{
    unsigned num = num_dci;

    m_pool.num_idle = 0;
    while (num < 16 * num_dci) {
        uct_dcx_pool_grow(&m_pool);
        num *= 2;
        ASSERT_EQ(num, m_pool.num_dci);
        EXPECT_EQ(num - num_dci, m_pool.num_idle);
    }
    uct_dcx_pool_grow(&m_pool);
    EXPECT_EQ(num, m_pool.num_dci);
    EXPECT_EQ(num - num_dci, m_pool.num_idle);
}

INSTANTIATE_TEST_SUITE_P(all, exclusive_policy,
                         testing::Values("dcs", "dcs_quota"), name_of);

/* --- shared initiators ---------------------------------------------------- */

class rand_policy : public policy_test {
protected:
    static std::vector<unsigned>
    numbers(const std::vector<uct_dcx_binding_t> &places)
    {
        std::vector<unsigned> list;

        for (const auto &place : places) {
            list.push_back(place.dci);
        }
        return list;
    }
};

/* The same seed gives the same choices, another seed others. */
TEST_P(rand_policy, follows_from_the_seed)
{
    auto first = numbers(bind(100));

    init(seed);
    EXPECT_EQ(first, numbers(bind(100)));

    init(seed + 1);
    EXPECT_NE(first, numbers(bind(100)));
}

/* Each within a tenth of the mean, which holds for this seed */
TEST_P(rand_policy, is_even)
{
    std::vector<unsigned> count(num_dci);

    for (unsigned number : numbers(bind(10000))) {
        count[number]++;
    }
    for (unsigned i = 0; i < num_dci; i++) {
        EXPECT_NEAR(10000 / num_dci, count[i], 10000 / num_dci / 10) << i;
    }
}

INSTANTIATE_TEST_SUITE_P(all, rand_policy, testing::Values("rand"), name_of);

/* --- streams -------------------------------------------------------------- */

class stream_policy : public policy_test {};

TEST_P(stream_policy, are_of_one_initiator_in_turn)
{
    for (unsigned i = 0; i < 100; i++) {
        uct_dcx_binding_t place = uct_dcx_pool_bind(&m_pool);

        EXPECT_EQ(m_pool.num_dci - 1, place.dci);
        EXPECT_EQ(i % num_streams, place.stream);
    }
}

INSTANTIATE_TEST_SUITE_P(all, stream_policy, testing::Values("hw_dcs"),
                         name_of);

class any_size : public policy_test {};

TEST_P(any_size, of_the_pool)
{
    static const struct {
        std::string name;
        unsigned count, num_idle;
    } rows[] = {
        {"dcs", num_dci, num_dci},
        {"dcs_quota", num_dci, num_dci},
        {"rand", num_dci, 0},
        {"hw_dcs", 1, 0},
    };
    unsigned count = 0;

    for (const auto &row : rows) {
        if (row.name == GetParam()) {
            EXPECT_EQ(row.count, m_pool.num_dci);
            EXPECT_EQ(row.num_idle, m_pool.num_idle);
            count++;
        }
    }
    EXPECT_EQ(1u, count) << "a policy needs a row";
}

INSTANTIATE_TEST_SUITE_P(all, any_size, testing::ValuesIn(all_policies()),
                         name_of);

} /* namespace */
