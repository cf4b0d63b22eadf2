/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Layouts as handles of memory (<uct/dcx/dcx.h>): put to and got from by peers,
 * and named by operations of the own side.
 */
#include "dcx_layout_bench.h"

namespace {

class dcx_mem_layout : public dcx_layout_test {};

/* Columns: one entry, repeated */
TEST_P(dcx_mem_layout, column)
{
    layout_handle column(m_dcx, 2);

    EXPECT_EQ(UCS_ERR_NO_ELEM, column.api.test(column.memh));
    EXPECT_EQ(0u, column.api.length(column.memh));
    column.set(100, {m_a.at(40, 8, 120)});
    check(column);
}

/* ... several, of memory of several handles: interleaved */
TEST_P(dcx_mem_layout, interleaved)
{
    layout_handle layout(m_dcx, 5);

    layout.set(50, {m_a.at(0, 8, 56), m_b.at(1000, 3, 0), m_a.at(16, 13, 51),
                    m_b.at(60000, 0, 1), m_a.at(100000, 1000, 17)});
    check(layout);
}

/* A list of pieces, some adjacent */
TEST_P(dcx_mem_layout, composite)
{
    layout_handle layout(m_dcx, 6);

    layout.set(1, {m_b.at(7, 100), m_a.at(5000, 70000), m_a.at(0, 1),
                   m_a.at(1, 6), m_b.at(SIZE - 33, 33), m_b.at(200, 1)});
    check(layout);
}

/* Blocks and distances that have more than 16 bits: a list */
TEST_P(dcx_mem_layout, expanded)
{
    layout_handle layout(m_dcx, 6);
    uct_dcx_block_t wide[] = {m_a.at(0, 10, 70000), m_b.at(3, 66000, 20000)};
    uct_dcx_layout_params_t params = {0, 3, 2, wide};

    EXPECT_EQ(6u, m_api.pieces(&params));
    layout.set(3, {wide[0], wide[1]});
    check(layout);
}

/* A face of a box: rows of rows */
TEST_P(dcx_mem_layout, nested)
{
    layout_handle row(m_dcx, 2), face(m_dcx, 2), box(m_dcx, 2), part(m_dcx, 3);

    row.set(8, {m_a.at(16, 4, 12)});
    face.set(1, {row.at(0, 32)}, &row);
    check(face);

    /* 8 x 8 elements of 4 bytes at every other row of 128 bytes */
    layout_handle rows(m_dcx, 2);

    rows.set(64, {m_a.at(0, 4, 12)});
    face.set(4, {rows.at(0, 32, 32)}, &rows);
    check(face);
    box.set(3, {face.at(8, 16, 24)}, &face);
    check(box);
    part.set(2, {box.at(3, 5, 7), m_b.at(0, 1, 3)}, &box);
    check(part);
}

/* The remote key stays; the bytes are those of the new place. */
TEST_P(dcx_mem_layout, set_again)
{
    layout_handle layout(m_dcx, 8);
    uct_rkey_t rkey = layout.rkey();

    for (unsigned i = 1; i < 20; i++) {
        layout.set(i, {m_a.at(i * 100, i, 2 * i), m_b.at(i, 4, i)});
        EXPECT_EQ(rkey, layout.rkey());
        check(layout);
    }
    EXPECT_EQ(19u, stats().sets);
    EXPECT_EQ(1u, stats().num_layouts);
}

/* A part of a layout, beginning in a block */
TEST_P(dcx_mem_layout, offsets)
{
    layout_handle layout(m_dcx, 2);

    layout.set(10, {m_a.at(0, 10, 20)});
    ASSERT_EQ(UCS_OK, put(layout.rkey(), 20, 15));
    for (unsigned i = 0; i < 20; i++) {
        EXPECT_EQ(m_flat.bytes[i], *layout.where[15 + i]) << i;
    }
    EXPECT_NE(UCS_OK, put(layout.rkey(), 20, 81)) << "one byte too many";
    m_log.take();
}

INSTANTIATE_TEST_SUITE_P(cached, dcx_mem_layout, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(strict, dcx_mem_layout, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(roce, dcx_mem_layout, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(shared, dcx_mem_layout, testing::Values(0));

} /* namespace */

int main(int argc, char **argv)
{
    std::vector<std::pair<const char*, const char*>> env = {
        {"UCX_DCX_FAILURE", "error"}, {"SOFTHCA_LOG", "error"}
    };
    auto cached = env, strict = env, roce = env, shared = env;

    cached.push_back({"UCX_DCX_RCACHE", "y"});
    strict.push_back({"UCX_DCX_RCACHE", "n"});
    strict.push_back({"SOFTHCA_STRICT", "1"});
    roce.push_back({"SOFTHCA_LINK", "roce"});
    shared.push_back({"UCX_DCX_TX_POLICY", "rand"});
    return hca_test_main(argc, argv, {
        {"cached", cached}, {"strict", strict}, {"roce", roce},
        {"shared", shared}
    });
}
