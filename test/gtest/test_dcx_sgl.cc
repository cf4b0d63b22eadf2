/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Layouts without a device: the forms they take, what is refused, and random
 * ones against plain loops over all bytes.
 */
#include "../times.h"

extern "C" {
#include "uct/dcx/strided/dcx_sgl.h"
}

#include <algorithm>
#include <cstdlib>
#include <gtest/gtest.h>
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace {

enum { MAX = 4096, RANDOM_LAYOUTS = 10000, MEMORY = 1 << 16 };

using run  = uct_dcx_sgl_run_t;
using runs = std::vector<run>;

struct layout_bench {
    layout_bench(unsigned max = MAX) : m_mem(uct_dcx_sgl_size(max))
    {
        uct_dcx_sgl_begin(get(), max, 0);
    }

    uct_dcx_sgl_t *get()
    {
        return reinterpret_cast<uct_dcx_sgl_t *>(m_mem.data());
    }

    uct_dcx_sgl_t *operator->() { return get(); }

    std::string add(const run &r)
    {
        const char *fault = uct_dcx_sgl_add(get(), &r);

        return (fault == nullptr) ? "" : fault;
    }

    /* Builds a layout of all these runs. Returns the first fault, or "". */
    std::string build(const runs &all)
    {
        for (const run &r : all) {
            std::string fault = add(r);

            if (!fault.empty()) {
                return fault;
            }
        }
        uct_dcx_sgl_end(get());
        return "";
    }

    /* Builds a layout of rounds: a block of each run in turn. Returns the
     * fault, or "". */
    std::string build_rounds(const runs &all)
    {
        const char *fault = uct_dcx_sgl_add_rounds(get(), all.data(),
                                                   all.size());

        uct_dcx_sgl_end(get());
        return (fault == nullptr) ? "" : fault;
    }

    uct_dcx_sgl_form_t pick(const uct_dcx_sgl_limits_t &limits)
    {
        return uct_dcx_sgl_pick(get(), &limits);
    }

private:
    std::vector<char> m_mem;
};

using byte  = std::pair<uint32_t, uint64_t>; /* key and address */
using bytes = std::vector<byte>;

/* Returns all bytes of the runs, in order. */
bytes bytes_of(const runs &all)
{
    bytes list;

    for (const run &r : all) {
        for (uint64_t i = 0; i < r.count * r.bytes; i++) {
            list.emplace_back(r.lkey, r.addr + (i / r.bytes * r.stride) +
                                          (i % r.bytes));
        }
    }
    return list;
}

/* Returns the bytes of block 0 of each run, then of block 1, and so on. */
bytes bytes_of_rounds(const runs &all)
{
    bytes list;

    for (uint64_t i = 0; i < all[0].count; i++) {
        for (const run &r : all) {
            for (uint64_t k = 0; k < r.bytes; k++) {
                list.emplace_back(r.lkey, r.addr + (i * r.stride) + k);
            }
        }
    }
    return list;
}

/* Returns the bytes of a layout in the order of the device. */
bytes bytes_of(const uct_dcx_sgl_t *layout)
{
    bytes list;

    for (uint32_t i = 0; i < layout->repeat; i++) {
        for (uint32_t j = 0; j < layout->num; j++) {
            const uct_dcx_sgl_entry_t &e = layout->entries[j];
            for (uint32_t k = 0; k < e.bytes; k++) {
                list.emplace_back(e.lkey,
                                  e.addr + (uint64_t(i) * e.stride) + k);
            }
        }
    }
    return list;
}

/* Returns the bytes of a layout by its pieces. */
bytes bytes_of_pieces(const uct_dcx_sgl_t *layout)
{
    bytes list;

    for (uint64_t i = 0; i < uct_dcx_sgl_num_pieces(layout); i++) {
        uct_dcx_sgl_entry_t piece = uct_dcx_sgl_piece(layout, i);
        for (uint32_t k = 0; k < piece.bytes; k++) {
            list.emplace_back(piece.lkey, piece.addr + k);
        }
    }
    return list;
}

/* --- forms ---------------------------------------------------------------- */

TEST(dcx_layout, contiguous)
{
    layout_bench layout;

    ASSERT_EQ("", layout.build({{0x1000, 100, 0, 1, 7}}));
    EXPECT_EQ(UCT_DCX_SGL_LIST, layout->kind);
    EXPECT_EQ(100, layout->length);
    EXPECT_EQ(1, layout->num);
    EXPECT_EQ(1, uct_dcx_sgl_num_pieces(layout.get()));
    EXPECT_EQ(4, uct_dcx_sgl_num_klm(layout.get()));
}

TEST(dcx_layout, adjacent_blocks_are_one_piece)
{
    layout_bench layout;

    ASSERT_EQ("", layout.build({{0x1000, 16, 16, 1000, 7},
                                {0x1000 + 16000, 8, 0, 1, 7}}));
    EXPECT_EQ(1, layout->num);
    EXPECT_EQ(16008, layout->entries[0].bytes);
}

TEST(dcx_layout, adjacent_in_other_memory)
{
    layout_bench layout;

    ASSERT_EQ("", layout.build({{0x1000, 16, 0, 1, 7}, {0x1010, 8, 0, 1, 8}}));
    EXPECT_EQ(2, layout->num);
}

TEST(dcx_layout, column_of_a_matrix)
{
    layout_bench layout(1);

    ASSERT_EQ("", layout.build({{0x1000, 8, 4096, 1000000, 7}}));
    EXPECT_EQ(UCT_DCX_SGL_INTERLEAVED, layout->kind);
    EXPECT_EQ(8000000, layout->length);
    EXPECT_EQ(1000000, layout->repeat);
    EXPECT_EQ(1, layout->num);
    EXPECT_EQ(4096, layout->entries[0].stride);
    EXPECT_EQ(4, uct_dcx_sgl_num_klm(layout.get()));
}

/* The stride of a repeated block has 16 bits. */
TEST(dcx_layout, rows_far_apart_are_a_list)
{
    layout_bench near, far;

    ASSERT_EQ("", near.build({{0x1000, 8, 65535, 100, 7}}));
    EXPECT_EQ(UCT_DCX_SGL_INTERLEAVED, near->kind);
    ASSERT_EQ("", far.build({{0x1000, 8, 65536, 100, 7}}));
    EXPECT_EQ(UCT_DCX_SGL_LIST, far->kind);
    EXPECT_EQ(100, far->num);
    EXPECT_EQ(100, uct_dcx_sgl_num_klm(far.get()));
}

TEST(dcx_layout, second_run_makes_it_a_list)
{
    const runs all = {{0x1000, 8, 64, 10, 7}, {0x9000, 4, 32, 3, 7}};
    layout_bench layout;

    ASSERT_EQ("", layout.build(all));
    EXPECT_EQ(UCT_DCX_SGL_LIST, layout->kind);
    EXPECT_EQ(13, layout->num);
    EXPECT_EQ(1, layout->repeat);
    EXPECT_EQ(16, uct_dcx_sgl_num_klm(layout.get()));
    EXPECT_EQ(bytes_of(all), bytes_of(layout.get()));
}

TEST(dcx_layout, regular_list_is_a_run)
{
    layout_bench listed, strided;
    runs all;

    for (unsigned i = 0; i < 100; i++) {
        all.push_back({0x1000 + (i * 256ul), 64, 0, 1, 7});
    }
    ASSERT_EQ("", listed.build(all));
    ASSERT_EQ("", strided.build({{0x1000, 64, 256, 100, 7}}));
    EXPECT_EQ(UCT_DCX_SGL_INTERLEAVED, listed->kind);
    EXPECT_TRUE(uct_dcx_sgl_is_equal(listed.get(), strided.get()));
}

TEST(dcx_layout, list_with_one_odd_piece_stays_a_list)
{
    runs all;

    for (unsigned i = 0; i < 10; i++) {
        all.push_back({0x1000 + (i * 256ul), 64, 0, 1, 7});
    }

    for (run odd : runs{{0x1a00, 63, 0, 1, 7},
                        {0x1a01, 64, 0, 1, 7},
                        {0x1a00, 64, 0, 1, 8}}) {
        layout_bench layout;
        runs with = all;

        with.push_back(odd);
        ASSERT_EQ("", layout.build(with));
        EXPECT_EQ(UCT_DCX_SGL_LIST, layout->kind);
        EXPECT_EQ(bytes_of(with), bytes_of(layout.get()));
    }
}

TEST(dcx_layout, backwards)
{
    layout_bench layout;

    ASSERT_EQ("", layout.build({{0x2000, 8, 0, 1, 7}, {0x1000, 8, 0, 1, 7}}));
    EXPECT_EQ(UCT_DCX_SGL_LIST, layout->kind);
    EXPECT_EQ(0, uct_dcx_sgl_overlaps(layout.get()));
}

TEST(dcx_layout, piece_of_many_gigabytes)
{
    const uint64_t gib = 1ul << 30;
    layout_bench layout;

    ASSERT_EQ("", layout.build({{0x1000, 5 * gib / 2, 0, 1, 7},
                                {0x1000 + (5 * gib / 2), gib, 0, 1, 7}}));
    EXPECT_EQ(7 * gib / 2, layout->length);
    ASSERT_EQ(4, layout->num);
    EXPECT_EQ(gib, layout->entries[2].bytes);
    EXPECT_EQ(gib / 2, layout->entries[3].bytes);
}

/* --- refused layouts ------------------------------------------------------ */

std::string fault_of(const run &r)
{
    return layout_bench().add(r);
}

TEST(dcx_layout_fault, zero)
{
    EXPECT_EQ("count is 0", fault_of({0x1000, 8, 8, 0, 7}));
    EXPECT_EQ("length is 0", fault_of({0x1000, 0, 8, 1, 7}));
}

TEST(dcx_layout_fault, stride)
{
    const std::string fault = "stride is smaller than length";

    EXPECT_EQ(fault, fault_of({0x1000, 8, 7, 2, 7}));
    EXPECT_EQ(fault, fault_of({0x1000, 8, 0, 2, 7}));
    EXPECT_EQ("", fault_of({0x1000, 8, 8, 2, 7}));
    EXPECT_EQ("", fault_of({0x1000, 8, 0, 1, 7})) << "one block has no stride";
}

TEST(dcx_layout_fault, overflow)
{
    const std::string end = "address, length, stride and count exceed 64 bits";

    EXPECT_EQ(end, fault_of({0x1000, 8, 1ul << 63, 3, 7}));
    EXPECT_EQ(end, fault_of({0x1000, 1ul << 62, 1ul << 62, 4, 7}));
    EXPECT_EQ(end, fault_of({UINT64_MAX - 6, 8, 0, 1, 7}));
    EXPECT_EQ("", fault_of({UINT64_MAX - 7, 8, 0, 1, 7}));
    EXPECT_EQ(end, fault_of({UINT64_MAX - 107, 8, 100, 3, 7}));
    EXPECT_EQ("", fault_of({UINT64_MAX - 107, 8, 100, 2, 7}));
}

TEST(dcx_layout_fault, sum_of_lengths)
{
    layout_bench layout(MAX);
    const run big = {0, UINT64_MAX / 2, 0, 1, 7};

    layout->length = UINT64_MAX - 7;
    EXPECT_EQ("the sum of lengths exceeds 64 bits",
              layout.add({0x1000, 8, 0, 1, 7}));
    EXPECT_EQ("too many pieces", fault_of(big));
}

TEST(dcx_layout_fault, too_many)
{
    layout_bench enough(10), short_of(9), none(0), mixed(2);

    EXPECT_EQ("", enough.build({{0x1000, 8, 70000, 10, 7}}));
    EXPECT_EQ("too many pieces", short_of.build({{0x1000, 8, 70000, 10, 7}}));
    EXPECT_EQ("too many pieces", none.build({{0x1000, 8, 16, 10, 7}}));
    EXPECT_EQ("", mixed.add({0x1000, 8, 16, 10, 7}));
    EXPECT_EQ("too many pieces", mixed.add({0x2000, 8, 0, 1, 7}));
}

/* --- rounds --------------------------------------------------------------- */

TEST(dcx_layout_rounds, one_entry_for_each_run)
{
    layout_bench layout;
    const runs all = {{0x1000, 8, 64, 50, 7},
                      {0x5000, 65535, 65535, 50, 8},
                      {0x1008, 4, 4, 50, 7}};

    ASSERT_TRUE(uct_dcx_sgl_has_rounds(all.data(), 3));
    ASSERT_EQ("", layout.build_rounds(all));
    EXPECT_EQ(UCT_DCX_SGL_INTERLEAVED, layout->kind);
    EXPECT_EQ(50u, layout->repeat);
    EXPECT_EQ(3u, layout->num);
    EXPECT_EQ(50u * (8 + 65535 + 4), layout->length);
    EXPECT_EQ(bytes_of_rounds(all), bytes_of(layout.get()));
}

/* Blocks or distances of more than 16 bits: a list, with adjacent blocks
 * merged */
TEST(dcx_layout_rounds, far_apart)
{
    for (const run &far :
         {run{0x100000, 8, 65536, 3, 7}, run{0x100000, 65536, 65536, 3, 7}}) {
        const runs all = {{0x1000, 8, 64, 3, 7},
                          far,
                          {0x100000 + far.bytes, 5, far.stride, 3, 7}};
        layout_bench layout;

        ASSERT_FALSE(uct_dcx_sgl_has_rounds(all.data(), 3));
        ASSERT_EQ("", layout.build_rounds(all));
        EXPECT_EQ(UCT_DCX_SGL_LIST, layout->kind);
        EXPECT_EQ(6u, layout->num);
        EXPECT_EQ(bytes_of_rounds(all).size(), layout->length);
        EXPECT_EQ(bytes_of_rounds(all), bytes_of(layout.get()));
    }
}

TEST(dcx_layout_rounds, one_round_is_a_list)
{
    layout_bench layout;

    ASSERT_EQ("", layout.build_rounds({{0x1000, 8, 0, 1, 7},
                                       {0x1008, 8, 0, 1, 7},
                                       {0x2000, 8, 0, 1, 7}}));
    EXPECT_EQ(UCT_DCX_SGL_LIST, layout->kind);
    EXPECT_EQ(2u, layout->num);
}

/* Adjacent blocks of up to 1 GiB are one piece; more of them are a repeated
 * block. */
TEST(dcx_layout_rounds, adjacent)
{
    layout_bench piece(1), blocks(1);

    ASSERT_EQ("", piece.build_rounds({{0x1000, 32768, 32768, 32768, 7}}));
    EXPECT_EQ(UCT_DCX_SGL_LIST, piece->kind);
    EXPECT_EQ(1u << 30, piece->length);
    ASSERT_EQ("", blocks.build_rounds({{0x1000, 32768, 32768, 100000, 7}}));
    EXPECT_EQ(UCT_DCX_SGL_INTERLEAVED, blocks->kind);
    EXPECT_EQ(100000u, blocks->repeat);
    EXPECT_EQ(32768ul * 100000, blocks->length);
}

TEST(dcx_layout_rounds, too_many)
{
    const runs all = {{0x1000, 8, 64, 5, 7}, {0x5000, 8, 64, 5, 7}};
    layout_bench none(1), list(9);

    EXPECT_EQ("too many pieces", none.build_rounds(all));
    EXPECT_EQ("too many pieces",
              list.build_rounds(
                  {{0x1000, 8, 1 << 20, 5, 7}, {0x5000, 8, 1 << 20, 5, 7}}));
}

/* --- overlap -------------------------------------------------------------- */

int overlap_of(const runs &all)
{
    layout_bench layout;

    EXPECT_EQ("", layout.build(all));
    return uct_dcx_sgl_overlaps(layout.get());
}

TEST(dcx_layout_overlap, pieces)
{
    EXPECT_EQ(0, overlap_of({{100, 8, 0, 1, 7}, {92, 8, 0, 1, 7}}));
    EXPECT_EQ(1, overlap_of({{100, 8, 0, 1, 7}, {93, 8, 0, 1, 7}}));
    EXPECT_EQ(1, overlap_of({{100, 8, 0, 1, 7}, {100, 8, 0, 1, 7}}));
    EXPECT_EQ(0, overlap_of({{100, 8, 0, 1, 7}, {100, 8, 0, 1, 8}}));
}

/* Columns of one matrix lie between each other. */
TEST(dcx_layout_overlap, columns)
{
    EXPECT_EQ(0, overlap_of({{100, 8, 64, 50, 7}, {108, 8, 64, 50, 7}}));
    EXPECT_EQ(1, overlap_of({{100, 8, 64, 50, 7}, {107, 8, 64, 50, 7}}));
    EXPECT_EQ(1, overlap_of({{100, 8, 64, 50, 7}, {3240, 1, 0, 1, 7}}));
    EXPECT_EQ(0, overlap_of({{100, 8, 64, 50, 7}, {3244, 1, 0, 1, 7}}));
}

/* Entries that are repeated, as a layout of the user has them */
TEST(dcx_layout_overlap, interleaved)
{
    layout_bench layout;

    layout->kind       = UCT_DCX_SGL_INTERLEAVED;
    layout->repeat     = 1000000;
    layout->num        = 2;
    layout->entries[0] = {100, 8, 64, 7, 0};
    layout->entries[1] = {108, 8, 64, 7, 0};
    EXPECT_EQ(0, uct_dcx_sgl_overlaps(layout.get()));
    layout->entries[1].stride = 63;
    EXPECT_EQ(1, uct_dcx_sgl_overlaps(layout.get()));
    layout->entries[1] = {100 + (64 * 999999) + 8, 8, 100, 7, 0};
    EXPECT_EQ(0, uct_dcx_sgl_overlaps(layout.get()));
    layout->entries[1].addr--;
    EXPECT_EQ(1, uct_dcx_sgl_overlaps(layout.get()));
}

uint64_t cpu_ns()
{
    return time_now_ns(CLOCK_THREAD_CPUTIME_ID);
}

/* The check for overlap is fast for many entries that are out of order: it need
 * not sort all blocks. */
TEST(dcx_layout_overlap, many_entries)
{
    static const struct {
        unsigned num, repeat, strides;
    } rows[] = {{3900, 2, 1},
                {1000, 1000, 1},
                {1000, 100, 4},
                {1000, 1000, 4},
                {3900, 1, 1}};

    for (const auto &row : rows) {
        SCOPED_TRACE(std::to_string(row.num) + " x " +
                     std::to_string(row.repeat));
        const uint32_t period = row.num * 8;
        layout_bench layout(row.num);
        std::vector<uint64_t> blocks;
        uint64_t least = UINT64_MAX, naive;

        layout->kind   = (row.repeat > 1) ? UCT_DCX_SGL_INTERLEAVED :
                                            UCT_DCX_SGL_LIST;
        layout->repeat = row.repeat;
        layout->num    = row.num;
        for (unsigned i = 0; i < row.num; i++) {
            uint32_t stride = (row.repeat > 1) ?
                                  period * (1 + (i % row.strides)) :
                                  0;
            uint64_t addr   = 4096 + (8 * ((i * 7ul) % row.num));

            layout->entries[i] = {addr, 8, stride, 7, 0};
            for (unsigned round = 0; round < row.repeat; round++) {
                blocks.push_back(addr + (round * (uint64_t)stride));
            }
        }

        naive = cpu_ns();
        std::sort(blocks.begin(), blocks.end());
        naive = cpu_ns() - naive;
        for (unsigned i = 0; i < 3; i++) {
            uint64_t since = cpu_ns();

            ASSERT_EQ(0, uct_dcx_sgl_overlaps(layout.get()));
            least = std::min(least, cpu_ns() - since);
        }
        printf("%u x %u: %lu us, %lu to sort\n", row.num, row.repeat,
               least / 1000, naive / 1000);
        EXPECT_LT(least, RATIO_OVERLAP * naive);

        layout->entries[row.num / 2].addr++;
        EXPECT_EQ(1, uct_dcx_sgl_overlaps(layout.get()));
        layout->entries[row.num / 2].lkey++;
        EXPECT_EQ(0, uct_dcx_sgl_overlaps(layout.get()));
    }
}

/* --- content -------------------------------------------------------------- */

TEST(dcx_layout_content, each_field_counts)
{
    const run same = {0x1000, 8, 64, 10, 7};
    layout_bench first, second;

    ASSERT_EQ("", first.build({same}));
    ASSERT_EQ("", second.build({same}));
    EXPECT_TRUE(uct_dcx_sgl_is_equal(first.get(), second.get()));

    for (run other : runs{{0x1001, 8, 64, 10, 7},
                          {0x1000, 9, 64, 10, 7},
                          {0x1000, 8, 65, 10, 7},
                          {0x1000, 8, 64, 11, 7},
                          {0x1000, 8, 64, 10, 6}}) {
        layout_bench layout;
        ASSERT_EQ("", layout.build({other}));
        EXPECT_FALSE(uct_dcx_sgl_is_equal(first.get(), layout.get()));
        EXPECT_NE(first->hash, layout->hash);
    }

    layout_bench rights;
    rights->access = 1;
    ASSERT_EQ("", rights.build({same}));
    EXPECT_FALSE(uct_dcx_sgl_is_equal(first.get(), rights.get()));
}

/* Layouts with equal hashes may differ. */
TEST(dcx_layout_content, same_hash)
{
    layout_bench first, second;

    ASSERT_EQ("", first.build({{0x1000, 8, 64, 10, 7}}));
    ASSERT_EQ("", second.build({{0x2000, 8, 64, 10, 7}}));
    second->hash = first->hash;
    EXPECT_FALSE(uct_dcx_sgl_is_equal(first.get(), second.get()));
}

/* Hash tables use the low bits: those of similar layouts are evenly
 * distributed. */
TEST(dcx_layout_content, low_bits_of_the_hash)
{
    std::map<unsigned, unsigned> buckets;

    for (unsigned i = 0; i < 4096; i++) {
        layout_bench layout(1);
        ASSERT_EQ("", layout.build({{i * 4096ul, 8, 64, 10, 7}}));
        buckets[layout->hash % 64]++;
    }
    EXPECT_EQ(64, buckets.size());
    for (auto &bucket : buckets) {
        EXPECT_LT(bucket.second, 2 * 4096 / 64);
    }
}

/* --- the form of an operation --------------------------------------------- */

TEST(dcx_layout_pick, thresholds)
{
    const uct_dcx_sgl_limits_t limits = {
        .max_plain  = 3,
        .max_copy   = 8192,
        .copy       = 512,
        .copy_piece = 16,
        .max_klm    = 100,
    };
    const struct {
        run r;
        uct_dcx_sgl_form_t form;
    } cases[] = {
        {{0, 8, 0, 1, 7}, UCT_DCX_SGL_FORM_PLAIN},
        {{0, 1ul << 29, 0, 1, 7}, UCT_DCX_SGL_FORM_PLAIN},
        {{0, 4096, 8192, 3, 7}, UCT_DCX_SGL_FORM_PLAIN},
        {{0, 128, 256, 4, 7}, UCT_DCX_SGL_FORM_COPY},
        {{0, 129, 256, 4, 7}, UCT_DCX_SGL_FORM_KEY},
        {{0, 16, 32, 512, 7}, UCT_DCX_SGL_FORM_COPY},
        {{0, 16, 32, 513, 7}, UCT_DCX_SGL_FORM_KEY}, /* too long for a buffer */
        {{0, 17, 32, 100, 7}, UCT_DCX_SGL_FORM_KEY},
        {{0, 64, 70000, 100, 7}, UCT_DCX_SGL_FORM_KEY},
        {{0, 64, 70000, 101, 7}, UCT_DCX_SGL_FORM_COPY}, /* too many for a
                                                          * key */
        {{0, 64, 70000, 128, 7}, UCT_DCX_SGL_FORM_COPY},
        {{0, 64, 70000, 129, 7}, UCT_DCX_SGL_FORM_NONE},
    };

    for (auto &c : cases) {
        layout_bench layout;
        ASSERT_EQ("", layout.build({c.r}));
        EXPECT_EQ(c.form, layout.pick(limits))
            << c.r.count << " blocks of " << c.r.bytes;
    }
}

TEST(dcx_layout_pick, nothing_is_copied)
{
    layout_bench layout;

    ASSERT_EQ("", layout.build({{0, 1, 2, 4, 7}}));
    EXPECT_EQ(UCT_DCX_SGL_FORM_NONE, layout.pick({.max_plain  = 3,
                                                  .max_copy   = 0,
                                                  .copy       = 512,
                                                  .copy_piece = 16,
                                                  .max_klm    = 0}));
}

/* --- random --------------------------------------------------------------- */

class random_layouts {
public:
    random_layouts(uint32_t seed) : m_random(seed) {}

    uint64_t draw(uint64_t min, uint64_t max)
    {
        return std::uniform_int_distribution<uint64_t>(min, max)(m_random);
    }

    /* Returns a random run in MEMORY bytes from @base on. */
    run any_run(uint64_t base)
    {
        run r;

        r.count  = (draw(0, 2) == 0) ? 1 : draw(2, 40);
        r.bytes  = draw(1, 24);
        r.stride = r.bytes + ((draw(0, 2) == 0) ? 0 : draw(0, 40));
        r.addr   = base + draw(0, MEMORY - (r.count * r.stride));
        r.lkey   = (draw(0, 7) == 0) ? 8 : 7;
        return r;
    }

    /* Returns random runs; some begin where the previous one ends, with the
     * same blocks and stride. */
    runs any(uint64_t base)
    {
        runs all = {any_run(base)};

        for (unsigned i = draw(0, 5); i > 0; i--) {
            run next = any_run(base), last = all.back();

            if (draw(0, 2) == 0) {
                next = last;
                next.addr += last.stride * last.count;
                if (next.addr + (next.count * next.stride) > base + MEMORY) {
                    continue;
                }
            }
            all.push_back(next);
        }
        return all;
    }

private:
    std::mt19937 m_random;
};

/* Returns the seed of this run; DCX_LAYOUT_SEED repeats an earlier one. */
uint32_t seed_of_run()
{
    const char *seed = getenv("DCX_LAYOUT_SEED");

    return (seed != nullptr) ? strtoul(seed, nullptr, 0) :
                               std::random_device()();
}

TEST(dcx_layout_random, as_a_plain_loop)
{
    uint32_t seed = seed_of_run();
    random_layouts random(seed);
    unsigned kinds[2] = {}, overlaps = 0;

    RecordProperty("seed", std::to_string(seed));
    printf("DCX_LAYOUT_SEED=%u\n", seed);
    for (unsigned i = 0; i < RANDOM_LAYOUTS; i++) {
        SCOPED_TRACE("seed " + std::to_string(seed) + ", layout " +
                     std::to_string(i));
        const runs all       = random.any(4096);
        const bytes expected = bytes_of(all);
        const std::set<byte> distinct(expected.begin(), expected.end());
        layout_bench layout;

        ASSERT_EQ("", layout.build(all));
        ASSERT_EQ(expected.size(), layout->length);
        ASSERT_EQ(expected, bytes_of(layout.get()));
        ASSERT_EQ(expected, bytes_of_pieces(layout.get()));
        ASSERT_EQ(distinct.size() < expected.size(),
                  uct_dcx_sgl_overlaps(layout.get()));
        kinds[layout->kind]++;
        overlaps += (distinct.size() < expected.size());
    }
    EXPECT_GT(kinds[UCT_DCX_SGL_LIST], RANDOM_LAYOUTS / 10);
    EXPECT_GT(kinds[UCT_DCX_SGL_INTERLEAVED], RANDOM_LAYOUTS / 10);
    EXPECT_GT(overlaps, RANDOM_LAYOUTS / 100);
}

TEST(dcx_layout_random, rounds_as_a_plain_loop)
{
    uint32_t seed = seed_of_run();
    random_layouts random(seed);
    unsigned overlaps = 0;

    printf("DCX_LAYOUT_SEED=%u\n", seed);
    for (unsigned i = 0; i < RANDOM_LAYOUTS; i++) {
        SCOPED_TRACE("seed " + std::to_string(seed) + ", layout " +
                     std::to_string(i));
        runs all = {random.any_run(4096)};

        for (uint64_t j = random.draw(0, 5); j > 0; j--) {
            all.push_back(random.any_run(4096));
        }
        for (run &r : all) {
            r.count = all[0].count;
            if (random.draw(0, 15) == 0) {
                r.stride += 65536;
            }
        }

        const bytes expected = bytes_of_rounds(all);
        const std::set<byte> distinct(expected.begin(), expected.end());
        layout_bench layout;

        ASSERT_EQ("", layout.build_rounds(all));
        ASSERT_EQ(expected.size(), layout->length);
        ASSERT_EQ(expected, bytes_of(layout.get()));
        ASSERT_EQ(distinct.size() < expected.size(),
                  uct_dcx_sgl_overlaps(layout.get()));
        overlaps += (distinct.size() < expected.size());
    }
    EXPECT_GT(overlaps, RANDOM_LAYOUTS / 100);
    EXPECT_LT(overlaps, RANDOM_LAYOUTS / 2);
}

TEST(dcx_layout_random, gathered_and_scattered)
{
    uint32_t seed = seed_of_run();
    random_layouts random(seed);
    std::vector<uint8_t> memory(MEMORY), packed, scattered;

    printf("DCX_LAYOUT_SEED=%u\n", seed);
    for (auto &b : memory) {
        b = random.draw(0, 255);
    }

    for (unsigned i = 0; i < RANDOM_LAYOUTS; i++) {
        SCOPED_TRACE("seed " + std::to_string(seed) + ", layout " +
                     std::to_string(i));
        runs all = random.any(uintptr_t(memory.data()));
        layout_bench layout;

        ASSERT_EQ("", layout.build(all));
        std::vector<uint8_t> expected, before = memory;
        for (const byte &b : bytes_of(all)) {
            expected.push_back(*reinterpret_cast<uint8_t *>(b.second));
        }
        packed.assign(layout->length, 0);
        uct_dcx_sgl_gather(layout.get(), packed.data());
        ASSERT_EQ(expected, packed);

        for (auto &b : packed) {
            b = random.draw(0, 255);
        }
        uct_dcx_sgl_scatter(layout.get(), packed.data());
        scattered    = memory;
        memory       = before;
        unsigned pos = 0;
        for (const byte &b : bytes_of(all)) {
            *reinterpret_cast<uint8_t *>(b.second) = packed[pos++];
        }
        ASSERT_EQ(memory, scattered) << "holes included";
    }
}

} // namespace
