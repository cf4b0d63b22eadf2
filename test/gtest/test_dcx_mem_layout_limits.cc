/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Handles of layouts at their limits: very long ones, more changes than a key
 * has numbers, thousands of handles, many threads
 */
#include "dcx_layout_bench.h"

#include <sys/mman.h>
#include <thread>

namespace {

class dcx_mem_layout_limits : public dcx_layout_test {
protected:
    /* Sets a layout over memory that is registered again and again, more often
     * than a key has numbers. @is_told: a peer gets each number. */
    void come_and_go(bool is_told)
    {
        layout_handle layout(m_dcx, 2);
        uct_rkey_t before = 0;

        for (unsigned i = 0; i < 600; i++) {
            SCOPED_TRACE(i);
            uct_mem_h memh;

            UCT_CALL(uct_md_mem_reg(m_dcx.md(), m_a.bytes.data(), SIZE,
                                    UCT_MD_MEM_ACCESS_ALL, &memh));
            ASSERT_EQ(UCS_OK, layout.try_set(2, {{(uintptr_t)m_a.bytes.data(),
                                                  8, 8, memh}}))
                << m_log.take();
            ASSERT_EQ(UCS_OK, layout.wait());
            if (is_told) {
                ASSERT_NE(before, layout.rkey()) << "a peer has it";
                before = layout.rkey();
            }
            UCT_CALL(uct_md_mem_dereg(m_dcx.md(), memh));
            ASSERT_EQ(UCS_ERR_NO_ELEM, layout.wait());
        }
    }
};

/* Adjacent blocks are merged into pieces of 1 GiB. */
TEST_P(dcx_mem_layout_limits, three_gigabytes)
{
    const size_t size = 3ul << 30;
    const int flags   = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    void *bytes       = mmap(NULL, size, PROT_READ | PROT_WRITE, flags, -1, 0);
    uct_mem_h memh;

    ASSERT_NE(MAP_FAILED, bytes);
    UCT_CALL(
        uct_md_mem_reg(m_dcx.md(), bytes, size, UCT_MD_MEM_ACCESS_ALL, &memh));
    {
        uct_dcx_block_t block          = {(uintptr_t)bytes, 32768, 0, memh};
        uct_dcx_layout_params_t params = {UCT_MD_MEM_ACCESS_RMA, size / 32768,
                                          1, &block};
        layout_handle layout(m_dcx, m_api.pieces(&params));

        EXPECT_EQ(UCS_OK, m_api.set(layout.memh, &params)) << m_log.take();
        EXPECT_EQ(UCS_OK, layout.wait());
        EXPECT_EQ(size, m_api.length(layout.memh));
        EXPECT_EQ(UCS_OK, put(layout.rkey(), 8, size - 8));
        EXPECT_EQ(0, memcmp(m_flat.bytes.data(), (char *)bytes + size - 8, 8));
    }
    UCT_CALL(uct_md_mem_dereg(m_dcx.md(), memh));
    munmap(bytes, size);
}

TEST_P(dcx_mem_layout_limits, memory_comes_and_goes)
{
    come_and_go(false);
}

TEST_P(dcx_mem_layout_limits, memory_of_peers_comes_and_goes)
{
    come_and_go(true);
}

TEST_P(dcx_mem_layout_limits, handles_come_and_go)
{
    for (unsigned i = 0; i < 5000; i++) {
        uct_mem_h memh;

        ASSERT_EQ(UCS_OK, m_api.create(m_dcx.iface, 2, &memh))
            << i << " " << m_log.take();
        UCT_CALL(uct_md_mem_dereg(m_dcx.md(), memh));
    }
}

/* Each thread sets and frees its own handles, over one that all share. */
TEST_P(dcx_mem_layout_limits, threads)
{
    layout_handle shared(m_dcx, 2);
    std::vector<std::thread> threads;
    std::atomic<unsigned> wrong{0};

    shared.set(100, {m_a.at(0, 8, 8)});
    for (unsigned seed = 0; seed < 4; seed++) {
        threads.emplace_back([&, seed] {
            std::mt19937 random(seed);

            for (unsigned i = 0; i < 100; i++) {
                layout_handle outer(m_dcx, 3), above(m_dcx, 3);

                for (unsigned j = 0; j < 5; j++) {
                    wrong += outer.try_set(1 + (random() % 10),
                                           {shared.at(seed, 3, 5)}) != UCS_OK;
                    wrong += outer.wait() != UCS_OK;
                }
                wrong += above.try_set(1, {outer.at(0, 3),
                                           m_b.at(seed * 100, 50)}) != UCS_OK;
                wrong += above.wait() != UCS_OK;
                if (random() % 2) {
                    outer.release();
                    wrong += above.wait() != UCS_ERR_NO_ELEM;
                }
            }
        });
    }
    for (auto &thread : threads) {
        thread.join();
    }
    EXPECT_EQ(0u, wrong);
    check(shared);
    EXPECT_EQ(1u, stats().num_layouts);
}

INSTANTIATE_TEST_SUITE_P(cached, dcx_mem_layout_limits, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(single, dcx_mem_layout_limits, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(few, dcx_mem_layout_limits, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(late, dcx_mem_layout_limits, testing::Values(0));

} /* namespace */

int main(int argc, char **argv)
{
    std::vector<std::pair<const char *, const char *>> env = {
        {"UCX_DCX_FAILURE", "error"},
        {"SOFTHCA_LOG", "error"},
    };
    auto cached = env, single = env, few = env, late = env;

    cached.push_back({"UCX_DCX_RCACHE", "y"});
    single.push_back({"UCX_DCX_RCACHE", "n"});
    few.push_back({"UCX_DCX_UMR_LAYOUTS", "16"});
    late.push_back({"SOFTHCA_DELAY", "50"});
    return hca_test_main(
        argc, argv,
        {{"cached", cached}, {"single", single}, {"few", few}, {"late", late}});
}
