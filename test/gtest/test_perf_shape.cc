/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The shapes of dcx_perf, and its checks, which must find each wrong byte in
 * pieces and between them.
 */
extern "C" {
#include "tools/perf_shape.h"
}

#include <cstdlib>
#include <gtest/gtest.h>
#include <string>
#include <tuple>
#include <vector>

namespace {

using bytes = std::vector<uint8_t>;

struct shape {
    shape(perf_form form, size_t size, size_t block, size_t stride = 0)
    {
        EXPECT_TRUE(perf_shape_init(&m_shape, form, size, block, stride));
    }
    ~shape() { perf_shape_cleanup(&m_shape); }
    shape(const shape &)            = delete;
    shape &operator=(const shape &) = delete;

    const perf_shape *get() const { return &m_shape; }
    const perf_shape *operator->() const { return &m_shape; }

    bytes filled(uint64_t seed) const
    {
        bytes buffer(m_shape.extent);
        perf_shape_fill(&m_shape, buffer.data(), seed);
        return buffer;
    }

    bytes cleared(uint64_t seed) const
    {
        bytes buffer(m_shape.extent);
        perf_shape_clear(&m_shape, buffer.data(), seed);
        return buffer;
    }

    bool check(const bytes &buffer, uint64_t seed, perf_wrong *wrong) const
    {
        return perf_shape_check(&m_shape, buffer.data(), seed, wrong);
    }

    /* Returns for each byte the number of pieces that contain it. */
    std::vector<unsigned> owners() const
    {
        std::vector<unsigned> count(m_shape.extent);
        for (size_t i = 0; i < m_shape.num; i++) {
            for (size_t j = 0; j < m_shape.pieces[i].length; j++) {
                count.at(m_shape.pieces[i].offset + j)++;
            }
        }
        return count;
    }

    perf_shape m_shape;
};

/* Moves the bytes as dcx_perf does: from one non-contiguous buffer to
 * another. */
bytes moved(const shape &s, const bytes &from, bytes to)
{
    bytes packed(s->size);

    perf_shape_pack(s.get(), from.data(), packed.data());
    perf_shape_unpack(s.get(), to.data(), packed.data());
    return to;
}

class perf_shape_test
    : public testing::TestWithParam<std::tuple<perf_form, size_t, size_t>> {
protected:
    perf_shape_test() :
        m_form(std::get<0>(GetParam())), m_size(std::get<1>(GetParam())),
        m_block(std::get<2>(GetParam())), m_shape(m_form, m_size, m_block)
    {
    }

    perf_form m_form;
    size_t m_size, m_block;
    shape m_shape;
};

TEST_P(perf_shape_test, pieces_have_all_bytes_once)
{
    auto owners  = m_shape.owners();
    size_t owned = 0;

    for (size_t i = 0; i < owners.size(); i++) {
        EXPECT_LE(owners[i], 1u) << i;
        owned += owners[i];
    }
    EXPECT_EQ(owned, m_shape->size);
    EXPECT_EQ(m_shape->size, perf_shape_size(m_form, m_size, m_block));
    EXPECT_LE(m_shape->size, m_size);
    EXPECT_GT(m_shape->size, m_size / 2);
}

TEST_P(perf_shape_test, size_that_was_cut_stays)
{
    EXPECT_EQ(m_shape->size, perf_shape_size(m_form, m_shape->size, m_block));
}

TEST_P(perf_shape_test, guards_lie_around_all_pieces)
{
    auto owners = m_shape.owners();

    for (int i = 0; i < PERF_GUARD; i++) {
        EXPECT_EQ(owners[i], 0u);
        EXPECT_EQ(owners[owners.size() - 1 - i], 0u);
    }
    EXPECT_EQ(owners[owners.size() - 1 - PERF_GUARD], 1u);
}

TEST_P(perf_shape_test, moved_bytes_pass)
{
    perf_wrong wrong;

    EXPECT_TRUE(m_shape.check(
        moved(m_shape, m_shape.filled(7), m_shape.cleared(7)), 7, &wrong));
}

TEST_P(perf_shape_test, nothing_moved_fails_at_the_first_byte_of_data)
{
    auto owners = m_shape.owners();
    perf_wrong wrong;

    EXPECT_FALSE(m_shape.check(m_shape.cleared(7), 7, &wrong));
    EXPECT_EQ(owners.at(wrong.offset + PERF_GUARD), 1u);
    EXPECT_FALSE(wrong.is_hole);
}

/* A transfer also copies one byte between the blocks. */
TEST_P(perf_shape_test, any_byte_of_a_hole_of_the_source_is_found)
{
    auto source = m_shape.filled(7);
    auto good   = moved(m_shape, source, m_shape.cleared(7));
    auto owners = m_shape.owners();
    size_t step = (good.size() < 4096) ? 1 : 61;

    for (size_t i = 0; i < good.size(); i += step) {
        auto bad = good;
        perf_wrong wrong;

        bad[i] = source[i];
        ASSERT_EQ(owners[i] > 0, m_shape.check(bad, 7, &wrong)) << i;
        if (owners[i] == 0) {
            EXPECT_EQ(wrong.offset, int64_t(i) - PERF_GUARD);
            EXPECT_TRUE(wrong.is_hole);
        }
    }
}

/* Each byte of the buffer, one at a time */
TEST_P(perf_shape_test, any_wrong_byte_is_found)
{
    auto good   = moved(m_shape, m_shape.filled(7), m_shape.cleared(7));
    auto owners = m_shape.owners();
    size_t step = (good.size() < 4096) ? 1 : 61;

    for (size_t i = 0; i < good.size(); i += step) {
        auto bad = good;
        perf_wrong wrong;

        bad[i] ^= 1;
        ASSERT_FALSE(m_shape.check(bad, 7, &wrong)) << i;
        /* below 0 in the guard before the buffer */
        EXPECT_EQ(wrong.offset, int64_t(i) - PERF_GUARD);
        EXPECT_EQ(wrong.offset < 0, i < PERF_GUARD);
        EXPECT_EQ(wrong.is, bad[i]);
        EXPECT_EQ(wrong.expected, good[i]);
        EXPECT_EQ(wrong.is_hole, owners[i] == 0);
    }
}

std::string
shape_name(const testing::TestParamInfo<perf_shape_test::ParamType> &info)
{
    return std::string(perf_form_names[std::get<0>(info.param)]) + "_" +
           std::to_string(std::get<1>(info.param)) + "_" +
           std::to_string(std::get<2>(info.param));
}

INSTANTIATE_TEST_SUITE_P(
    all, perf_shape_test,
    testing::Combine(testing::Values(PERF_CONTIGUOUS, PERF_STRIDED,
                                     PERF_COMPOSITE, PERF_BOX),
                     testing::Values(64, 1000, 16384),
                     testing::Values(1, 7, 64)),
    shape_name);

/* --- patterns ------------------------------------------------------------- */
TEST(perf_pattern, no_byte_of_data_is_one_that_is_none)
{
    bytes data(1 << 16), none(1 << 16);

    for (uint64_t seed = 0; seed < 16; seed++) {
        perf_data_fill(data.data(), data.size(), seed);
        perf_data_clear(none.data(), none.size(), seed);
        for (size_t i = 0; i < data.size(); i++) {
            ASSERT_LT(data[i], 0x80);
            ASSERT_GE(none[i], 0x80);
        }
    }
}

TEST(perf_pattern, another_seed_is_another_pattern)
{
    bytes data(4096);
    perf_wrong wrong;

    perf_data_fill(data.data(), data.size(), 1);
    EXPECT_TRUE(perf_data_check(data.data(), data.size(), 1, &wrong));
    EXPECT_FALSE(perf_data_check(data.data(), data.size(), 2, &wrong));
    EXPECT_LT(wrong.offset, 8);
}

/* Two blocks change places, as by a wrong stride. */
TEST(perf_pattern, blocks_that_are_exchanged_are_found)
{
    shape s(PERF_STRIDED, 4096, 64);
    auto good = moved(s, s.filled(3), s.cleared(3));
    perf_wrong wrong;

    for (size_t i = 0; i + 1 < s->num; i++) {
        auto bad = good;
        std::swap_ranges(bad.begin() + s->pieces[i].offset,
                         bad.begin() + s->pieces[i].offset + 64,
                         bad.begin() + s->pieces[i + 1].offset);
        EXPECT_FALSE(s.check(bad, 3, &wrong));
        EXPECT_GE(wrong.offset + PERF_GUARD, int64_t(s->pieces[i].offset));
    }
}

/* --- forms ---------------------------------------------------------------- */
TEST(perf_form, strided_has_its_stride)
{
    shape s(PERF_STRIDED, 1000, 100, 300);

    ASSERT_EQ(s->num, 10u);
    for (size_t i = 0; i < s->num; i++) {
        EXPECT_EQ(s->pieces[i].offset, PERF_GUARD + i * 300);
        EXPECT_EQ(s->pieces[i].length, 100u);
    }
}

TEST(perf_form, box_has_planes_of_rows)
{
    shape s(PERF_BOX, 16 * 64, 64);

    EXPECT_EQ(s->planes, 4u);
    EXPECT_EQ(s->rows, 4u);
    EXPECT_EQ(s->pitch, 8u);
    EXPECT_EQ(s->pieces[1].offset - s->pieces[0].offset, 128u);
    EXPECT_EQ(s->pieces[4].offset - s->pieces[0].offset, 8 * 128u);
}

TEST(perf_form, composite_is_irregular_and_in_no_order)
{
    shape s(PERF_COMPOSITE, 4096, 64);

    EXPECT_EQ(s->pieces[1].length, 32u);
    EXPECT_EQ(s->pieces[0].length, 64u);
    EXPECT_EQ(s->pieces[3].length, 96u);
    EXPECT_GT(s->pieces[0].offset, s->pieces[1].offset);
    EXPECT_LT(s->pieces[1].offset, s->pieces[2].offset);
}

} // namespace
