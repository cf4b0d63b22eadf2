/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Shapes of datatypes (shape_build.h): the nests that a builder makes of
 * blocks. Each shape must name the same bytes as a list of all of them, in the
 * same order.
 *
 *   DCX_SHAPE_SEED, DCX_SHAPE_ROUNDS   of random shapes
 */
extern "C" {
#include "views/shape/shape_build.h"
}

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <gtest/gtest.h>
#include <memory>
#include <random>
#include <vector>

namespace {

using dims    = std::vector<shape_dim_t>;
using offsets = std::vector<ptrdiff_t>; /* offsets of all bytes, in order of
                                         * transfer */

struct by_free {
    void operator()(shape_t *shape) const { free(shape); }
};
using shape_ptr = std::unique_ptr<shape_t, by_free>;

const ptrdiff_t FAR = (ptrdiff_t)1 << 61;


/* A builder, and a list of its blocks */
class building {
public:
    explicit building(size_t max_nests = 1000) :
        m_builder(shape_build_begin(max_nests))
    {
    }
    building(const building &)            = delete;
    building &operator=(const building &) = delete;

    building &add(ptrdiff_t offset, size_t bytes, const dims &list = {})
    {
        shape_nest_t nest = {};

        nest.offset   = offset;
        nest.bytes    = bytes;
        nest.num_dims = list.size();
        std::copy(list.begin(), list.end(), nest.dims);
        shape_build_add(m_builder, &nest);
        return *this;
    }

    building &add(const shape_ptr &shape, ptrdiff_t offset,
                  const dims &list = {})
    {
        shape_build_add_shape(m_builder, shape.get(), offset, list.data(),
                              list.size());
        return *this;
    }

    shape_ptr end(ptrdiff_t extent = 0)
    {
        return shape_ptr(shape_build_end(m_builder, extent));
    }

private:
    shape_builder_t *m_builder;
};


std::string text_of(const shape_nest_t &nest)
{
    std::string text = std::to_string(nest.offset) + "+" +
                       std::to_string(nest.bytes);

    for (unsigned i = 0; i < nest.num_dims; i++) {
        text += " " + std::to_string(nest.dims[i].count) + "x" +
                std::to_string(nest.dims[i].stride);
    }

    return text;
}

/* Returns "2@300: 0+16 5x48, 8+4" for 2 rounds, 300 bytes apart, of 5 blocks of
 * 16 bytes at 0, 48 bytes apart, and of 4 bytes at 8. */
std::string text_of(const shape_ptr &shape)
{
    std::string text;

    if (shape == nullptr) {
        return "none";
    }

    if (shape->repeat > 1) {
        text = std::to_string(shape->repeat) + "@" +
               std::to_string(shape->stride) + ": ";
    }

    for (unsigned i = 0; i < shape->num; i++) {
        text += (i ? ", " : "") + text_of(shape->nests[i]);
    }

    return text;
}

std::string nest_of(const shape_ptr &shape, size_t count)
{
    shape_data_t data = {shape.get(), nullptr, count};
    shape_nest_t nest;

    return shape_as_nest(&data, &nest) ? text_of(nest) : "none";
}


offsets bytes_of(ptrdiff_t offset, size_t bytes)
{
    offsets result;

    for (size_t i = 0; i < bytes; i++) {
        result.push_back(offset + i);
    }

    return result;
}

void append(offsets *bytes, const offsets &more, ptrdiff_t offset = 0)
{
    for (ptrdiff_t at : more) {
        bytes->push_back(at + offset);
    }
}

offsets repeated(offsets bytes, const dims &list)
{
    for (const shape_dim_t &dim : list) {
        offsets all;
        for (size_t i = 0; i < dim.count; i++) {
            append(&all, bytes, (ptrdiff_t)i * dim.stride);
        }
        bytes = all;
    }

    return bytes;
}


TEST(shape_build, blocks_that_are_equidistant_are_a_dimension)
{
    building rows, vector;

    for (int i = 0; i < 5; i++) {
        rows.add(i * 48, 16);
    }
    vector.add(0, 16, {{5, 48}});

    shape_ptr shape = rows.end(240);
    EXPECT_EQ("0+16 5x48", text_of(shape));
    EXPECT_EQ(text_of(shape), text_of(vector.end(240)));
    EXPECT_EQ(80u, shape->size);
    EXPECT_EQ(240, shape->extent);
    EXPECT_EQ(0, shape->begin);
    EXPECT_EQ(4 * 48 + 16, shape->end);
    EXPECT_EQ(5u, shape->num_blocks);
}

TEST(shape_build, what_is_adjacent_is_one_block)
{
    EXPECT_EQ("8+24", text_of(building().add(8, 8).add(16, 16).end()));
    EXPECT_EQ("0+64", text_of(building().add(0, 8, {{4, 8}, {2, 32}}).end()));
    EXPECT_EQ("0+16 6x24",
              text_of(building().add(0, 8, {{2, 8}, {2, 24}, {3, 48}}).end()));
}

TEST(shape_build, dimensions_are_found_in_a_list)
{
    building face, pieces;

    for (int i = 0; i < 3 * 4 * 5; i++) {
        int at = (i % 5) * 20 + (i / 5 % 4) * 200 + (i / 20) * 3000;
        face.add(at, 8);
        pieces.add(at, 4).add(at + 4, 4);
    }

    EXPECT_EQ("0+8 5x20 4x200 3x3000", text_of(face.end()));
    EXPECT_EQ("0+8 5x20 4x200 3x3000", text_of(pieces.end()));
}

TEST(shape_build, a_list_may_go_down)
{
    building rows;

    for (int i = 0; i < 6; i++) {
        rows.add(-100 * (i / 3) - 10 * (i % 3), 8);
    }

    shape_ptr shape = rows.end(-200);
    EXPECT_EQ("0+8 3x-10 2x-100", text_of(shape));
    EXPECT_EQ(-120, shape->begin);
    EXPECT_EQ(8, shape->end);
}

TEST(shape_build, nest_continues_another)
{
    EXPECT_EQ(
        "0+8 7x16",
        text_of(building().add(0, 8, {{3, 16}}).add(48, 8, {{4, 16}}).end()));
    EXPECT_EQ("0+8 4x16",
              text_of(building().add(0, 8).add(16, 8, {{3, 16}}).end()));
    EXPECT_EQ(
        "0+8 9x16, 144+8 9x20",
        text_of(building().add(0, 8, {{9, 16}}).add(144, 8, {{9, 20}}).end()));
}

TEST(shape_build, what_is_equidistant_by_accident_is_a_list)
{
    EXPECT_EQ(
        "0+8, 20+8, 50+8, 130+8",
        text_of(building().add(0, 8).add(20, 8).add(50, 8).add(130, 8).end()));

    /* also if it hides a period: 0, 24, 64 */
    building periods;
    for (int i = 0; i < 5; i++) {
        periods.add(i * 128, 8).add(i * 128 + 24, 8).add(i * 128 + 64, 8);
    }
    EXPECT_EQ("5@128: 0+8, 24+8, 64+8", text_of(periods.end()));
}

TEST(shape_build, a_last_block_grows)
{
    building rows;

    rows.add(0, 8);
    for (int i = 1; i < 13; i++) {
        rows.add(i * 48, 8).add(i * 48 + 8, 8);
    }

    EXPECT_EQ("0+8, 48+16 12x48", text_of(rows.end()));
}

TEST(shape_build, records_are_rounds)
{
    shape_ptr record = building().add(0, 8).add(12, 1).end(16);
    building list;

    EXPECT_EQ("0+8, 12+1", text_of(record));
    for (int i = 0; i < 7; i++) {
        list.add(i * 16, 8).add(i * 16 + 12, 1);
    }
    EXPECT_EQ("7@16: 0+8, 12+1", text_of(list.end()));

    /* two nests are enough */
    building array(2);
    shape_ptr shape = array.add(record, 4, {{1000000, 16}}).end();
    EXPECT_EQ("1000000@16: 4+8, 16+1", text_of(shape));
    EXPECT_EQ(9000000u, shape->size);
    EXPECT_EQ(2000000u, shape->num_blocks);
    EXPECT_EQ(4, shape->begin);
    EXPECT_EQ(4 + 999999 * 16 + 13, shape->end);

    /* rounds of rounds that continue each other, and others */
    shape_ptr few = building().add(record, 0, {{3, 16}}).end();
    EXPECT_EQ("12@16: 0+8, 12+1",
              text_of(building().add(few, 0, {{4, 48}}).end()));
    shape_ptr list3 = building().add(0, 8).add(20, 8).add(50, 8).end();
    EXPECT_EQ("4@100: 0+8, 20+8, 50+8",
              text_of(building().add(list3, 0, {{4, 100}}).end()));
    EXPECT_EQ("4@100: 0+8, 12+1, 16+8, 28+1, 32+8, 44+1",
              text_of(building().add(few, 0, {{4, 100}}).end()));
}

TEST(shape_build, rounds_end_where_something_follows)
{
    shape_ptr record = building().add(0, 8).add(12, 1).end(16);

    EXPECT_EQ("0+8, 12+1, 16+8, 28+1, 40+2",
              text_of(building().add(record, 0, {{2, 16}}).add(40, 2).end()));
    EXPECT_EQ(
        "3@16: 0+8, 12+1",
        text_of(building().add(record, 0, {{2, 16}}).add(record, 32).end()));
    EXPECT_EQ("none", text_of(building(4)
                                  .add(record, 0, {{1 << 30, 16}})
                                  .add(1l << 40, 2)
                                  .end()));
}

TEST(shape_build, a_shape_of_one_nest_gets_more_dimensions)
{
    shape_ptr row = building().add(4, 8, {{3, 16}}).end(64);

    EXPECT_EQ("14+8 3x16 5x64 2x1000",
              text_of(building().add(row, 10, {{5, 64}, {2, 1000}}).end()));
    EXPECT_EQ("4+8 15x16", text_of(building().add(row, 0, {{5, 48}}).end()));

    /* a fifth one becomes rounds, and is unfolded if another block follows */
    dims many = {{3, 100}, {3, 1000}, {3, 10000}, {3, 100000}};
    EXPECT_EQ("3@100000: 4+8 3x16 3x100 3x1000 3x10000",
              text_of(building().add(row, 0, many).end()));
    EXPECT_EQ(4u, building().add(row, 0, many).add(0, 1).end()->num);
}

TEST(shape_build, no_bytes)
{
    shape_ptr none = building().end(16);

    EXPECT_EQ("", text_of(none));
    EXPECT_EQ(0u, none->size);
    EXPECT_EQ(0u, none->num_blocks);
    EXPECT_EQ("0+1", text_of(building()
                                 .add(5, 0)
                                 .add(5, 8, {{4, 8}, {0, 8}})
                                 .add(none, 5, {{4, 4}})
                                 .add(0, 1, {{1, 99}})
                                 .add(building().add(7, 7).end(), 1, {{0, 9}})
                                 .end()));
}

TEST(shape_build, too_many_nests)
{
    for (size_t max_nests : {20, 21}) {
        building list(max_nests);
        for (int i = 0; i < 21; i++) {
            list.add(i * 100, i + 1);
        }
        EXPECT_EQ(max_nests == 21, list.end() != nullptr);
    }

    building endless(100);
    for (ptrdiff_t i = 0; i < 100000; i++) {
        endless.add(i * i, (i % 7) + 1);
    }
    EXPECT_EQ(nullptr, endless.end());
}

TEST(shape_build, sums_that_overflow)
{
    size_t huge     = (size_t)1 << 62;
    shape_ptr block = building().add(0, 8).end(8);

    EXPECT_EQ(nullptr, building().add(0, huge).end());
    EXPECT_EQ(nullptr, building().add(0, SIZE_MAX).end());
    EXPECT_EQ(nullptr, building().add(0, 8, {{SIZE_MAX, 8}}).end());
    EXPECT_EQ(nullptr, building().add(0, 8, {{SIZE_MAX / 8, 0}}).end());
    EXPECT_EQ(nullptr, building().add(0, 8, {{3, FAR}}).end());
    EXPECT_EQ(nullptr, building().add(0, 8, {{4, -FAR}}).end());
    EXPECT_EQ(nullptr, building().add(PTRDIFF_MAX, 8).end());
    EXPECT_EQ(nullptr, building().add(PTRDIFF_MIN, 8).end());
    EXPECT_EQ(nullptr, building().add(block, PTRDIFF_MAX).end());
    EXPECT_EQ(nullptr, building().add(block, 0, {{huge, 8}}).end());
    EXPECT_EQ(nullptr, building().add(block, 0, {{2, PTRDIFF_MIN}}).end());
    EXPECT_EQ(nullptr, building().add(0, huge / 2, {{2, 0}, {2, 0}}).end());

    /* each block is valid */
    building blocks;
    for (int i = 0; i < 6; i++) {
        blocks.add(-i, huge / 2);
    }
    EXPECT_EQ(nullptr, blocks.end());
}

TEST(shape_build, far_offsets_are_no_overflow)
{
    EXPECT_EQ("none", text_of(building().add(0, 8, {{3, FAR}}).end()));

    shape_ptr shape = building().add(-FAR, 8).add(FAR, 8).add(0, 8).end();
    ASSERT_NE(nullptr, shape);
    EXPECT_EQ(-FAR, shape->begin);
    EXPECT_EQ(FAR + 8, shape->end);
}

TEST(shape_build, an_id_is_of_one_shape)
{
    uint64_t id = building().add(0, 8).end()->id;

    EXPECT_NE(id, building().add(0, 8).end()->id);
}


TEST(shape, elements_become_dimensions)
{
    shape_ptr row = building().add(4, 8, {{3, 16}}).end(64);

    EXPECT_EQ("none", nest_of(row, 0));
    EXPECT_EQ("4+8 3x16", nest_of(row, 1));
    EXPECT_EQ("4+8 3x16 5x64", nest_of(row, 5));
    EXPECT_EQ("0+8 15x16", nest_of(building().add(0, 8, {{3, 16}}).end(48), 5));
    EXPECT_EQ("4+40", nest_of(building().add(4, 8).end(8), 5));
    EXPECT_EQ("4+8 5x-8", nest_of(building().add(4, 8).end(-8), 5));
}

TEST(shape, what_is_not_one_nest)
{
    dims four      = {{2, 10}, {2, 100}, {2, 1000}, {2, 10000}};
    shape_ptr deep = building().add(0, 8, four).end(100000);

    EXPECT_EQ("0+8 2x10 2x100 2x1000 2x10000", nest_of(deep, 1));
    EXPECT_EQ("none", nest_of(deep, 2));
    EXPECT_EQ("none", nest_of(building().add(0, 8).add(9, 9).end(18), 1));
    EXPECT_EQ("none", nest_of(building().end(18), 1));

    /* it may continue where the fourth ends */
    EXPECT_EQ("0+8 2x10 2x100 2x1000 4x10000",
              nest_of(building().add(0, 8, four).end(20000), 2));
}

TEST(shape, span_of_elements)
{
    char buffer[1000], *begin, *end;
    shape_ptr up      = building().add(4, 8).add(-10, 1).end(50);
    shape_ptr down    = building().add(4, 8).end(-50);
    shape_data_t data = {up.get(), buffer + 500, 3};

    shape_span(&data, &begin, &end);
    EXPECT_EQ(buffer + 490, begin);
    EXPECT_EQ(buffer + 612, end);

    data.shape = down.get();
    shape_span(&data, &begin, &end);
    EXPECT_EQ(buffer + 404, begin);
    EXPECT_EQ(buffer + 512, end);
}

struct told {
    std::vector<std::pair<char *, size_t>> blocks;
    size_t max = SIZE_MAX;

    static int add(void *arg, char *address, size_t bytes)
    {
        told *self = static_cast<told *>(arg);

        self->blocks.push_back({address, bytes});
        return (self->blocks.size() == self->max) ? 77 : 0;
    }
};

TEST(shape, adjacent_blocks_are_one)
{
    char buffer[100];
    shape_ptr shape   = building().add(0, 4).add(8, 8).end(16);
    shape_data_t data = {shape.get(), buffer, 2};
    told result;

    EXPECT_EQ(0, shape_for_each(&data, told::add, &result));
    ASSERT_EQ(3u, result.blocks.size());
    EXPECT_EQ(buffer + 8, result.blocks[1].first);
    EXPECT_EQ(12u, result.blocks[1].second);

    result     = told();
    result.max = 2;
    EXPECT_EQ(77, shape_for_each(&data, told::add, &result));
    EXPECT_EQ(2u, result.blocks.size());

    result     = told();
    data.count = 0;
    EXPECT_EQ(0, shape_for_each(&data, told::add, &result));
    EXPECT_EQ(0u, result.blocks.size());
}

TEST(shape, nothing_is_copied)
{
    shape_ptr none    = building().end(16);
    shape_data_t data = {none.get(), nullptr, 3};
    char byte         = 'x';

    shape_gather(&data, 0, &byte, 0);
    shape_scatter(&data, 0, &byte, 0);
    EXPECT_EQ('x', byte);
}


/* Compares shapes with lists of their bytes. */
class shape_random : public testing::Test {
protected:
    void run(unsigned seed);
    void run_rows(size_t block, ptrdiff_t stride);

private:
    struct model {
        offsets bytes;
        shape_ptr shape;
    };

    size_t upto(size_t max) { return m_random() % (max + 1); }
    bool one_in(size_t n) { return upto(n - 1) == 0; }

    size_t any_block();
    dims any_dims(size_t bytes, size_t max, ptrdiff_t max_stride);
    void add_nests(building *building, offsets *bytes);
    void add_shape(building *building, offsets *bytes);
    model any_simple();
    model any();
    void check(const model &model, size_t count);
    void check_told(const shape_data_t &data, const offsets &bytes);
    void check_nest(const shape_data_t &data, const offsets &bytes);
    void check_copies(shape_data_t data, const offsets &bytes);
    void gather(const shape_data_t &data, std::vector<char> *packed);
    void scatter(const shape_data_t &data, const std::vector<char> &packed);
    void scatter_some(const shape_data_t &data, const offsets &bytes,
                      std::vector<char> *packed, char *expected);
    template <typename F> void in_fragments(size_t length, F copy);

    std::mt19937 m_random;
};

size_t shape_random::any_block()
{
    static const size_t usual[] = {1, 4, 8, 12, 16, 24, 32, 48, 64};

    return one_in(3) ? usual[upto(8)] : upto(one_in(10) ? 100 : 20);
}

/* One in four strides starts where the inner dimension ends, or is adjacent. */
dims shape_random::any_dims(size_t bytes, size_t max, ptrdiff_t max_stride)
{
    ptrdiff_t next = bytes;
    dims result;

    for (size_t i = upto(max); i > 0; i--) {
        ptrdiff_t stride = one_in(4) ?
                               next :
                               (ptrdiff_t)upto(max_stride) - max_stride / 4;
        size_t count     = one_in(30) ? 0 : 1 + upto(3);
        result.push_back({count, stride});
        next = stride * count;
    }

    return result;
}

/* Adds the same nest several times, mostly at equal distances. */
void shape_random::add_nests(building *building, offsets *bytes)
{
    size_t block     = any_block();
    dims list        = any_dims(block, SHAPE_MAX_DIMS, 100);
    ptrdiff_t offset = upto(64);
    ptrdiff_t stride = upto(200);

    for (size_t i = upto(5); i > 0; i--) {
        building->add(offset, block, list);
        append(bytes, repeated(bytes_of(offset, block), list));
        offset += one_in(8) ? (ptrdiff_t)upto(300) - 100 : stride;
    }
}

void shape_random::add_shape(building *building, offsets *bytes)
{
    model inner      = any_simple();
    dims list        = any_dims(inner.bytes.size(), 3, 200);
    ptrdiff_t offset = (ptrdiff_t)upto(60) - 30;

    building->add(inner.shape, offset, list);
    append(bytes, repeated(inner.bytes, list), offset);
}

shape_random::model shape_random::any_simple()
{
    building building;
    model result;

    for (size_t i = upto(2) + 1; i > 0; i--) {
        size_t block     = any_block();
        dims list        = any_dims(block, 2, 50);
        ptrdiff_t offset = upto(80);
        building.add(offset, block, list);
        append(&result.bytes, repeated(bytes_of(offset, block), list));
    }

    result.shape = building.end();
    return result;
}

shape_random::model shape_random::any()
{
    building building(100000);
    model result;

    for (size_t i = upto(3); i > 0; i--) {
        if (one_in(2)) {
            add_nests(&building, &result.bytes);
        } else {
            add_shape(&building, &result.bytes);
        }
    }

    result.shape = building.end((ptrdiff_t)upto(400) - 100);
    return result;
}

void shape_random::check_told(const shape_data_t &data, const offsets &bytes)
{
    char *begin, *end;
    offsets all;
    told result;

    EXPECT_EQ(0, shape_for_each(&data, told::add, &result));
    for (const auto &block : result.blocks) {
        append(&all, bytes_of(block.first - data.buffer, block.second));
    }
    ASSERT_EQ(bytes, all);

    shape_span(&data, &begin, &end);
    EXPECT_EQ(*std::min_element(bytes.begin(), bytes.end()),
              begin - data.buffer);
    EXPECT_EQ(*std::max_element(bytes.begin(), bytes.end()) + 1,
              end - data.buffer);
}

void shape_random::check_nest(const shape_data_t &data, const offsets &bytes)
{
    shape_nest_t nest;

    if (!shape_as_nest(&data, &nest)) {
        return;
    }

    EXPECT_EQ(bytes.size(), nest.length);
    EXPECT_EQ(bytes, repeated(bytes_of(nest.offset, nest.bytes),
                              dims(nest.dims, nest.dims + nest.num_dims)));
}

template <typename F> void shape_random::in_fragments(size_t length, F copy)
{
    size_t max = one_in(2) ? 40 : 2000;
    size_t part;

    for (size_t at = 0; at < length; at += part) {
        part = std::min(length - at, upto(max));
        copy(at, part);
    }
}

/* Gathers in fragments, and checks that no byte after one is written. */
void shape_random::gather(const shape_data_t &data, std::vector<char> *packed)
{
    in_fragments(packed->size(), [&](size_t at, size_t length) {
        std::vector<char> part(length + 1, 'x');
        shape_gather(&data, at, part.data(), length);
        ASSERT_EQ('x', part[length]);
        std::copy_n(part.begin(), length, packed->begin() + at);
    });
}

void shape_random::scatter(const shape_data_t &data,
                           const std::vector<char> &packed)
{
    in_fragments(packed.size(), [&](size_t at, size_t length) {
        std::vector<char> part(packed.begin() + at,
                               packed.begin() + at + length);
        shape_scatter(&data, at, part.data(), length);
    });
}

void shape_random::scatter_some(const shape_data_t &data, const offsets &bytes,
                                std::vector<char> *packed, char *expected)
{
    size_t at     = upto(bytes.size());
    size_t length = upto(bytes.size() - at);

    for (size_t i = at; i < at + length; i++) {
        (*packed)[i]       = m_random();
        expected[bytes[i]] = (*packed)[i];
    }

    shape_scatter(&data, at, packed->data() + at, length);
}

/* Checks that bytes between the blocks are unchanged, and that of duplicate
 * bytes the last one counts. */
void shape_random::check_copies(shape_data_t data, const offsets &bytes)
{
    ptrdiff_t low  = *std::min_element(bytes.begin(), bytes.end());
    ptrdiff_t high = *std::max_element(bytes.begin(), bytes.end());
    std::vector<char> memory(high + 1 - low), packed(bytes.size());

    std::generate(memory.begin(), memory.end(), std::ref(m_random));
    data.buffer = memory.data() - low;
    gather(data, &packed);
    for (size_t i = 0; i < bytes.size(); i++) {
        ASSERT_EQ(data.buffer[bytes[i]], packed[i]) << "gathered, byte " << i;
        packed[i] = m_random();
    }

    std::vector<char> expected = memory;
    for (size_t i = 0; i < bytes.size(); i++) {
        expected[bytes[i] - low] = packed[i];
    }
    scatter(data, packed);
    ASSERT_EQ(expected, memory);

    scatter_some(data, bytes, &packed, expected.data() - low);
    ASSERT_EQ(expected, memory);
}

void shape_random::check(const model &type, size_t count)
{
    static char base;
    shape_data_t data = {type.shape.get(), &base, count};
    offsets bytes     = repeated(type.bytes, {{count, type.shape->extent}});

    ASSERT_EQ(bytes.size(), shape_length(&data));
    if (!bytes.empty()) {
        check_told(data, bytes);
        check_nest(data, bytes);
        check_copies(data, bytes);
    }
}

void shape_random::run(unsigned seed)
{
    m_random.seed(seed);
    model type = any();
    ASSERT_NE(nullptr, type.shape);
    check(type, 1);
    check(type, 1 + upto(4));
}

/* More blocks in a row than are loaded at once, in one row and in two */
void shape_random::run_rows(size_t block, ptrdiff_t stride)
{
    for (const dims &list :
         {dims{{30, stride}}, dims{{30, stride}, {2, 31 * stride}}}) {
        building building;
        model type;

        building.add(0, block, list);
        type.bytes = repeated(bytes_of(0, block), list);
        type.shape = building.end(64 * stride);
        check(type, 1);
    }
}

TEST_F(shape_random, rows_of_blocks_of_all_lengths)
{
    for (ptrdiff_t block = 1; (block < 130) && !HasFailure(); block++) {
        SCOPED_TRACE("blocks of " + std::to_string(block));
        run_rows(block, block + 3);
        run_rows(block, -block - 3);
        run_rows(block, 4096);
    }
}

unsigned number_from_env(const char *name, unsigned otherwise)
{
    const char *value = getenv(name);

    return value ? strtoul(value, NULL, 0) : otherwise;
}

TEST_F(shape_random, names_the_bytes_of_a_list)
{
    unsigned seed = number_from_env("DCX_SHAPE_SEED", std::random_device()());
    unsigned num  = number_from_env("DCX_SHAPE_ROUNDS", 3000);

    printf("DCX_SHAPE_SEED=%u\n", seed);
    for (unsigned i = 0; (i < num) && !HasFailure(); i++) {
        SCOPED_TRACE("DCX_SHAPE_SEED=" + std::to_string(seed + i));
        run(seed + i);
    }
}

} // namespace
