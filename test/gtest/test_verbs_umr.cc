/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Layouts of keys by UMR, as libmlx5's builders post them: what the device
 * gathers and scatters through such a key, against a plain loop.
 */
#include "umr_bench.h"

namespace {

class verbs_umr : public verbs_test {
protected:
    umr_layout matrix() const
    {
        return umr_layout::rows(4).block(dst.addr + 8, dst.mr->lkey, 16, 48);
    }

    umr_pair pair{dev};
    umr_key  key{dev.pd};
};

TEST_P(verbs_umr, rows_of_one_block)
{
    ASSERT_EQ(IBV_WC_SUCCESS, pair.set(key, matrix()));
    EXPECT_EQ(IBV_WC_DRIVER1, pair.last.opcode);
    ASSERT_EQ(IBV_WC_SUCCESS, pair.run(write().remote(0, key.rkey())));
    for (unsigned i = 0; i < 256; i++) {
        EXPECT_EQ(((i % 64 >= 8) && (i % 64 < 24)) ? 0x11 : 0x22, dst.addr[i])
                << i;
    }
}

TEST_P(verbs_umr, list_of_ranges)
{
    umr_layout layout;

    layout.range(dst.addr + 100, 60, dst.mr->lkey);
    layout.range(dst.addr, 3, dst.mr->lkey);
    layout.range(dst.addr + 50, 1, dst.mr->lkey);
    ASSERT_EQ(IBV_WC_SUCCESS, pair.set(key, layout));
    ASSERT_EQ(IBV_WC_SUCCESS, pair.run(write().remote(0, key.rkey())));
    EXPECT_EQ(0x22, dst.addr[99]);
    EXPECT_EQ(0x11, dst.addr[100]);
    EXPECT_EQ(0x11, dst.addr[159]);
    EXPECT_EQ(0x22, dst.addr[160]);
    EXPECT_EQ(0x11, dst.addr[2]);
    EXPECT_EQ(0x22, dst.addr[3]);
    EXPECT_EQ(0x11, dst.addr[50]);
}

INSTANTIATE_TEST_SUITE_P(ib, verbs_umr, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(roce, verbs_umr, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(strict, verbs_umr, testing::Values(0));

} /* namespace */

int main(int argc, char **argv)
{
    return hca_test_main(argc, argv, {
        {"ib", {}},
        {"roce", {{"SOFTHCA_LINK", "roce"}}},
        {"strict", {{"SOFTHCA_STRICT", "1"}}},
    });
}
