/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/* The memory of endpoints, without a device */
#include <gtest/gtest.h>
#include <malloc.h>
#include <set>
#include <vector>

extern "C" {
#include "uct/dcx/base/dcx_slab.h"
}

namespace {

class dcx_slab : public testing::TestWithParam<size_t> {
protected:
    dcx_slab() { uct_dcx_slab_init(&m_slab, GetParam()); }

    ~dcx_slab() { EXPECT_EQ(m_objs.size(), uct_dcx_slab_cleanup(&m_slab)); }

    void get(size_t count)
    {
        while (m_objs.size() < count) {
            char *obj = (char *)uct_dcx_slab_get(&m_slab);

            ASSERT_NE(nullptr, obj);
            EXPECT_EQ(0u, (uintptr_t)obj % 16);
            memset(obj, m_objs.size(), GetParam());
            m_objs.push_back(obj);
        }
    }

    void put()
    {
        uct_dcx_slab_put(&m_slab, m_objs.back());
        m_objs.pop_back();
    }

    uct_dcx_slab_t m_slab;
    std::vector<char *> m_objs;
};

TEST_P(dcx_slab, objects_do_not_overlap)
{
    get(5000);
    for (size_t i = 0; i < m_objs.size(); i++) {
        EXPECT_EQ(std::string(GetParam(), (char)i),
                  std::string(m_objs[i], GetParam()));
    }
}

TEST_P(dcx_slab, freed_memory_is_used_first)
{
    get(1000);
    std::set<char *> before(m_objs.begin(), m_objs.end());

    while (!m_objs.empty()) {
        put();
    }
    get(1000);
    EXPECT_EQ(before, std::set<char *>(m_objs.begin(), m_objs.end()));
}

std::set<void *> visited;

void visit(void *obj)
{
    EXPECT_TRUE(visited.insert(obj).second);
}

/* An object in use begins with a pointer, as an endpoint does. */
TEST_P(dcx_slab, objects_in_use_are_visited)
{
    for (size_t num : {0u, 1u, 170u, 1000u}) {
        get(num + 500);
        for (char *obj : m_objs) {
            *(void **)obj = this;
        }
        while (m_objs.size() > num) {
            std::swap(m_objs[m_objs.size() / 3], m_objs.back());
            put();
        }
        visited.clear();
        uct_dcx_slab_visit(&m_slab, visit);
        EXPECT_EQ(std::set<void *>(m_objs.begin(), m_objs.end()), visited);
    }
}

TEST_P(dcx_slab, costs_the_size_of_its_objects)
{
    size_t before;

    m_objs.reserve(100000);
    before = mallinfo2().uordblks;
    get(100000);
    EXPECT_EQ(GetParam(), (mallinfo2().uordblks - before) / m_objs.size());
}

/* A slab without any allocation has no memory. */
TEST_P(dcx_slab, never_used)
{
    size_t before = mallinfo2().uordblks;
    uct_dcx_slab_t slab;

    uct_dcx_slab_init(&slab, GetParam());
    EXPECT_EQ(0u, uct_dcx_slab_cleanup(&slab));
    EXPECT_EQ(before, mallinfo2().uordblks);
}

/* Endpoints without and with route header, of UCX without and with asserts */
INSTANTIATE_TEST_SUITE_P(sizes, dcx_slab, testing::Values(48, 64, 80, 96));

} /* namespace */
