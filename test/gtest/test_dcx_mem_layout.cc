/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Layouts as memory handles (<uct/dcx/dcx.h>): accessed by peers, and named by
 * own operations
 */
#include "dcx_layout_bench.h"
#include "dcx_match_bench.h"

#include <atomic>
#include <set>
#include <uct/api/v2/uct_v2.h>

namespace {

class dcx_mem_layout : public dcx_layout_test {};

/* Columns: one repeated entry */
TEST_P(dcx_mem_layout, column)
{
    layout_handle column(m_dcx, 2);

    EXPECT_EQ(UCS_ERR_NO_ELEM, column.api.test(column.memh));
    EXPECT_EQ(0u, column.api.length(column.memh));
    column.set(100, {m_a.at(40, 8, 120)});
    check(column);
}

/* Several repeated entries, in memory of several handles: interleaved */
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

/* Blocks and distances of more than 16 bits: a list */
TEST_P(dcx_mem_layout, expanded)
{
    layout_handle layout(m_dcx, 6);
    uct_dcx_block_t wide[] = {m_a.at(0, 10, 70000), m_b.at(3, 66000, 20000)};
    uct_dcx_layout_params_t params = {0, 3, 2, wide};

    EXPECT_EQ(6u, m_api.pieces(&params));
    layout.set(3, {wide[0], wide[1]});
    check(layout);
}

/* A face of a box: nested rows */
TEST_P(dcx_mem_layout, nested)
{
    layout_handle row(m_dcx, 2), face(m_dcx, 2), box(m_dcx, 2), part(m_dcx, 3);

    row.set(8, {m_a.at(16, 4, 12)});
    face.set(1, {row.at(0, 32)}, &row);
    check(face);

    /* 4 x 8 elements of 4 bytes, in every other row of 128 bytes */
    layout_handle rows(m_dcx, 2);

    rows.set(64, {m_a.at(0, 4, 12)});
    face.set(4, {rows.at(0, 32, 32)}, &rows);
    check(face);
    box.set(3, {face.at(8, 16, 24)}, &face);
    check(box);
    part.set(2, {box.at(3, 5, 7), m_b.at(0, 1, 3)}, &box);
    check(part);
}

/* The remote key stays, and leads to the new place. */
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

/* The same layout is not set again, except after other memory, other access
 * rights, or its removal. */
TEST_P(dcx_mem_layout, set_to_the_same)
{
    layout_handle layout(m_dcx, 3);
    blocks list = {m_a.at(0, 8, 16), m_b.at(100, 4, 20)};
    uint64_t doorbells;

    auto rings = [&](const std::function<void()> &set) {
        doorbells = stats().doorbells;
        set();
        check(layout);
        return stats().doorbells - doorbells;
    };

    EXPECT_EQ(1u, rings([&] { layout.set(50, list); }));
    EXPECT_EQ(0u, rings([&] { layout.set(50, list); }));
    EXPECT_EQ(1u, rings([&] { layout.set(49, list); }));
    EXPECT_EQ(2u, rings([&] {
                  layout.set(49, list, NULL, UCT_MD_MEM_ACCESS_REMOTE_PUT);
                  layout.set(49, list);
              }));
    EXPECT_EQ(5u, stats().sets);

    m_b.release();
    EXPECT_EQ(UCS_ERR_NO_ELEM, m_api.test(layout.memh));
    list[1] = m_a.at(10000, 4, 20);
    EXPECT_EQ(1u, rings([&] { layout.set(50, list); }));
}

/* A part of a layout that starts within a block */
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

/* An entry of few or many strided blocks, with offsets in a layout: the
 * processor has no address to copy from. */
TEST_P(dcx_mem_layout, strided_iov)
{
    layout_handle layout(m_dcx, 2), whole(m_dcx, 40);
    std::vector<uct_iov_t> iov;
    places expected;

    layout.set(100, {m_a.at(0, 10, 20)});
    for (unsigned count : {2u, 40u}) {
        iov = {{(void *)5, 7, layout.memh, 20, count}};
        expected.clear();
        for (unsigned i = 0; i < count * 7; i++) {
            expected.push_back(layout.where[5 + (i / 7) * 20 + i % 7]);
        }
        ASSERT_EQ(UCS_OK, run([&](uct_completion_t *comp) {
                      return uct_ep_put_zcopy(m_ep, iov.data(), 1, flat_addr(),
                                              flat_rkey(), comp);
                  }));
        for (unsigned i = 0; i < expected.size(); i++) {
            ASSERT_EQ(*expected[i], m_flat.bytes[i]) << count << ": " << i;
        }
        std::fill(m_flat.bytes.begin(), m_flat.bytes.end(), count);
        ASSERT_EQ(UCS_OK, run([&](uct_completion_t *comp) {
                      return uct_ep_get_zcopy(m_ep, iov.data(), 1, flat_addr(),
                                              flat_rkey(), comp);
                  }));
        for (unsigned i = 0; i < expected.size(); i++) {
            ASSERT_EQ(count, *expected[i]) << count << ": " << i;
        }
    }

    /* more entries than a WQE holds, one of them in plain memory */
    iov.assign(30, {NULL, 3, layout.memh, 0, 1});
    for (unsigned i = 0; i < iov.size(); i++) {
        iov[i].buffer = (void *)(uintptr_t)(i * 9);
    }
    iov.push_back({m_b.bytes.data(), 1, m_b.memh, 0, 1});
    ASSERT_EQ(UCS_OK, run([&](uct_completion_t *comp) {
                  return uct_ep_put_zcopy(m_ep, iov.data(), iov.size(),
                                          flat_addr(), flat_rkey(), comp);
              }));
    for (unsigned i = 0; i < 90; i++) {
        ASSERT_EQ(*layout.where[i / 3 * 9 + i % 3], m_flat.bytes[i]) << i;
    }
    EXPECT_EQ(m_b.bytes[0], m_flat.bytes[90]);
}

/* Strided blocks of a layout of maximum depth are refused: a key that names it
 * would be too deep. */
TEST_P(dcx_mem_layout, strided_iov_of_the_deepest)
{
    layout_handle a(m_dcx, 1), b(m_dcx, 1), c(m_dcx, 1), d(m_dcx, 1);
    dcx_end end;

    a.set(1, {m_a.at(0, 1000)});
    b.set(1, {a.at(0, 900)}, &a);
    c.set(1, {b.at(0, 800)}, &b);
    d.set(1, {c.at(0, 700)}, &c);
    check(d);

    uct_iov_t iov = {NULL, 1, d.memh, 2, 40};
    EXPECT_EQ(UCS_ERR_UNSUPPORTED, uct_ep_put_zcopy(m_ep, &iov, 1, flat_addr(),
                                                    flat_rkey(), &end.comp));
    EXPECT_NE(std::string::npos, m_log.take().find("in 40 pieces"));
}

TEST_P(dcx_mem_layout, am_zcopy)
{
    layout_handle layout(m_dcx, 3);
    std::vector<uint8_t> message, expected = {'h', 'e', 'a', 'd'};
    dcx_end end;

    layout.set(60, {m_a.at(0, 20, 20), m_b.at(7, 33, 1)});
    UCT_CALL(uct_iface_set_am_handler(
        m_dcx.iface, AM_ID,
        [](void *arg, void *data, size_t length, unsigned) {
            ((std::vector<uint8_t> *)arg)
                ->assign((uint8_t *)data, (uint8_t *)data + length);
            return UCS_OK;
        },
        &message, 0));
    for (uint8_t byte : layout.data()) {
        expected.push_back(byte);
    }

    uct_iov_t iov = {NULL, layout.where.size(), layout.memh, 0, 1};
    EXPECT_EQ(UCS_OK, run([&](uct_completion_t *comp) {
                  return uct_ep_am_zcopy(m_ep, AM_ID, "head", 4, &iov, 1, 0,
                                         comp);
              }));
    progress_until([&] { return !message.empty(); });
    EXPECT_EQ(expected, message);
}

/* Layouts that are set before any is waited for share a doorbell. */
TEST_P(dcx_mem_layout, several_under_one_doorbell)
{
    std::vector<std::unique_ptr<layout_handle>> layouts;
    uint64_t doorbells = stats().doorbells;

    for (unsigned i = 0; i < 20; i++) {
        layouts.emplace_back(new layout_handle(m_dcx, 2));
        EXPECT_EQ(UCS_OK, layouts[i]->try_set(2 + i, {m_a.at(i, 1, 9)}));
    }
    EXPECT_EQ(doorbells, stats().doorbells);
    for (auto &layout : layouts) {
        EXPECT_EQ(UCS_OK, layout->wait());
    }
    EXPECT_EQ(doorbells + 1, stats().doorbells);
    EXPECT_EQ(20u, stats().sets);
}

/* Nested layouts share a doorbell, too. */
TEST_P(dcx_mem_layout, nested_under_one_doorbell)
{
    layout_handle inner(m_dcx, 2), outer(m_dcx, 2);
    uint64_t doorbells = stats().doorbells;

    EXPECT_EQ(UCS_OK, inner.try_set(10, {m_a.at(0, 8, 8)}));
    EXPECT_EQ(UCS_OK, outer.try_set(2, {inner.at(0, 4, 4)}));
    EXPECT_EQ(UCS_OK, outer.wait());
    EXPECT_EQ(UCS_OK, inner.wait());
    EXPECT_EQ(doorbells + 1, stats().doorbells);
}

/* More layouts than the queue has room for: the last stays unset, the others
 * complete. */
TEST_P(dcx_mem_layout, too_many_at_once)
{
    std::vector<std::unique_ptr<layout_handle>> layouts;
    ucs_status_t status = UCS_OK;

    for (unsigned i = 0; (status == UCS_OK) && (i < 200); i++) {
        layouts.emplace_back(new layout_handle(m_dcx, 2));
        status = layouts[i]->try_set(2, {m_a.at(i, 1, 9)});
    }
    EXPECT_EQ(UCS_ERR_NO_RESOURCE, status);
    EXPECT_EQ(UCS_ERR_NO_ELEM, m_api.test(layouts.back()->memh));
    layouts.pop_back();
    for (auto &layout : layouts) {
        EXPECT_EQ(UCS_OK, layout->wait());
    }
}

/* Memory is deregistered: its layout, and layouts that name that one, lose
 * access. */
TEST_P(dcx_mem_layout, memory_is_deregistered)
{
    layout_handle layout(m_dcx, 2), outer(m_dcx, 2), other(m_dcx, 2);
    layout_mem mem(m_dcx, 4096, 7);
    uct_mem_h again;

    /* another handle, which shares the region if there is a cache */
    UCT_CALL(uct_md_mem_reg(m_dcx.md(), mem.bytes.data(), 4096,
                            UCT_MD_MEM_ACCESS_ALL, &again));
    layout.set(10, {mem.at(0, 8, 8)});
    outer.set(2, {layout.at(0, 4, 4)}, &layout);
    other.set(10, {{(uintptr_t)mem.bytes.data(), 8, 8, again}});

    uct_rkey_t rkeys[] = {layout.rkey(), outer.rkey()};
    auto before        = mem.bytes;
    mem.release();
    for (uct_rkey_t rkey : rkeys) {
        EXPECT_EQ(UCS_ERR_CONNECTION_RESET, put(rkey, 8));
    }
    EXPECT_EQ(before, mem.bytes);
    EXPECT_EQ(UCS_ERR_NO_ELEM, m_api.test(layout.memh));
    EXPECT_EQ(UCS_ERR_NO_ELEM, m_api.test(outer.memh));
    EXPECT_EQ(UCS_OK, m_api.test(other.memh));
    EXPECT_EQ(UCS_OK, put(other.rkey(), 80));
    EXPECT_EQ(2u, stats().invalidated);
    m_log.take();

    layout.set(10, {m_a.at(0, 8, 8)});
    EXPECT_NE(rkeys[0], layout.rkey());
    check(layout);
    EXPECT_EQ(UCS_ERR_CONNECTION_RESET, put(rkeys[0], 8)) << "the old number";
    EXPECT_EQ(UCS_ERR_CONNECTION_RESET, put(rkeys[1], 8));
    m_log.take();
    UCT_CALL(uct_md_mem_dereg(m_dcx.md(), again));
    EXPECT_EQ(UCS_ERR_NO_ELEM, m_api.test(other.memh));
}

/* The same layout is set again, by other handles of the same memory: it is
 * invalidated when one of these is deregistered. */
TEST_P(dcx_mem_layout, set_to_the_same_by_another_handle)
{
    layout_handle layout(m_dcx, 3);
    uct_mem_h handles[3];

    for (uct_mem_h &handle : handles) {
        UCT_CALL(uct_md_mem_reg(m_dcx.md(), m_a.bytes.data(), 4096,
                                UCT_MD_MEM_ACCESS_ALL, &handle));
    }

    auto set = [&](uct_mem_h first, uct_mem_h second) {
        layout.set(10, {{(uintptr_t)m_a.bytes.data(), 8, 8, first},
                        {(uintptr_t)m_a.bytes.data() + 1000, 8, 8, second}});
    };

    set(handles[0], handles[0]);
    set(handles[1], handles[2]);
    UCT_CALL(uct_md_mem_dereg(m_dcx.md(), handles[0]));
    EXPECT_EQ(UCS_OK, m_api.test(layout.memh));
    check(layout);
    UCT_CALL(uct_md_mem_dereg(m_dcx.md(), handles[2]));
    EXPECT_EQ(UCS_ERR_NO_ELEM, m_api.test(layout.memh));

    set(handles[1], handles[1]);
    UCT_CALL(uct_md_mem_dereg(m_dcx.md(), handles[1]));
    EXPECT_EQ(UCS_ERR_NO_ELEM, m_api.test(layout.memh));
}

/* Another thread may get the handle of a layout as soon as it was freed. */
TEST_P(dcx_mem_layout, handle_is_used_again_at_once)
{
    layout_handle layout(m_dcx, 2);
    uct_mem_h memh;

    dcx_peek_register_at_free(m_dcx.md(), m_a.bytes.data(), 4096, &memh);
    layout.release();
    ASSERT_TRUE(memh != NULL);
    EXPECT_EQ(UCS_OK, uct_md_mem_dereg(m_dcx.md(), memh));
}

/* The memory of the previous layout is deregistered while the next is in
 * progress: the key no longer leads there, but to the next. */
TEST_P(dcx_mem_layout, memory_is_deregistered_before_the_next_layout)
{
    layout_handle layout(m_dcx, 2);
    layout_mem mem(m_dcx, 4096, 7);
    uct_mem_h held;

    UCT_CALL(uct_md_mem_reg(m_dcx.md(), mem.bytes.data(), 4096,
                            UCT_MD_MEM_ACCESS_ALL, &held));
    layout.set(10, {mem.at(0, 8, 8)});
    uct_rkey_t rkey = layout.rkey();
    auto before     = mem.bytes;
    auto next       = m_a.at(0, 8, 8);

    ASSERT_EQ(UCS_OK, layout.try_set(10, {next}));
    mem.release();
    EXPECT_EQ(UCS_OK, put(rkey, 80));
    EXPECT_EQ(before, mem.bytes);
    EXPECT_EQ(0, memcmp(m_a.bytes.data(), m_flat.bytes.data(), 8));
    EXPECT_EQ(UCS_OK, layout.wait());
    UCT_CALL(uct_md_mem_dereg(m_dcx.md(), held));
}

/* The same layout over memory that is registered again and again: it gets
 * another number if peers can have the old one, and a number is always
 * available. */
TEST_P(dcx_mem_layout, memory_comes_and_goes)
{
    layout_handle layout(m_dcx, 2);
    std::set<uct_rkey_t> numbers;

    for (unsigned i = 0; i < 600; i++) {
        layout_mem mem(m_dcx, 256, 7);

        layout.set(10, {mem.at(0, 8, 8)});
        numbers.insert((i < 300) ? dcx_peek_rkey(layout.memh) : layout.rkey());
        if (i % 100 == 99) {
            EXPECT_EQ(UCS_OK, put(layout.rkey(), 80)) << i;
        }
    }
    EXPECT_EQ(3u + 300, numbers.size()) << "packed three times, then each time";
}

/* A layout is freed: layouts that name it lose access. */
TEST_P(dcx_mem_layout, inner_is_freed)
{
    std::unique_ptr<layout_handle> inner(new layout_handle(m_dcx, 2));
    layout_handle outer(m_dcx, 2), above(m_dcx, 2);

    inner->set(10, {m_a.at(0, 8, 8)});
    outer.set(2, {inner->at(0, 4, 4)}, inner.get());
    above.set(1, {outer.at(0, 8)}, &outer);

    auto before = m_a.bytes;
    inner.reset();
    EXPECT_EQ(UCS_ERR_NO_ELEM, m_api.test(outer.memh));
    EXPECT_EQ(UCS_ERR_NO_ELEM, m_api.test(above.memh));
    EXPECT_EQ(UCS_ERR_CONNECTION_RESET, put(outer.rkey(), 8));
    EXPECT_EQ(UCS_ERR_CONNECTION_RESET, put(above.rkey(), 8));
    EXPECT_EQ(before, m_a.bytes);
    m_log.take();
}

/* The inner layout is set again while the outer one names it. */
TEST_P(dcx_mem_layout, inner_is_set_again)
{
    layout_handle inner(m_dcx, 2), outer(m_dcx, 2);

    inner.set(10, {m_a.at(0, 8, 8)});
    outer.set(10, {inner.at(0, 4, 4)}, &inner);
    check(outer);
    inner.set(10, {m_b.at(1000, 8, 80)});
    for (unsigned i = 0; i < outer.where.size(); i++) {
        outer.where[i] = inner.where[i / 4 * 8 + i % 4];
    }
    check(outer);
}

/* Freed with UCT_MD_MEM_DEREG_FLAG_INVALIDATE: when the completion is called,
 * the peer has no access. */
TEST_P(dcx_mem_layout, invalidated)
{
    layout_handle layout(m_dcx, 2);
    uct_md_mem_dereg_params_t params = {};
    dcx_end end;

    layout.set(10, {m_a.at(0, 8, 8)});
    uct_rkey_t rkey = layout.rkey();
    EXPECT_EQ(UCS_OK, put(rkey, 80));

    auto before       = m_a.bytes;
    params.field_mask = UCT_MD_MEM_DEREG_FIELD_MEMH |
                        UCT_MD_MEM_DEREG_FIELD_FLAGS |
                        UCT_MD_MEM_DEREG_FIELD_COMPLETION;
    params.memh  = layout.memh;
    params.flags = UCT_MD_MEM_DEREG_FLAG_INVALIDATE;
    params.comp  = &end.comp;
    ASSERT_EQ(UCS_OK, uct_md_mem_dereg_v2(m_dcx.md(), &params));
    layout.memh = NULL;
    EXPECT_EQ(1u, end.count);
    EXPECT_EQ(UCS_OK, end.status);
    for (auto &byte : m_flat.bytes) {
        byte++;
    }
    EXPECT_EQ(UCS_ERR_CONNECTION_RESET, put(rkey, 80));
    EXPECT_EQ(before, m_a.bytes);
    m_log.take();
}

/* A peer has only the rights of the layout; blocks of a layout without writes
 * may overlap. */
TEST_P(dcx_mem_layout, rights)
{
    layout_handle layout(m_dcx, 4);
    auto a = m_a.bytes;

    layout.set(1, {m_a.at(0, 16), m_a.at(8, 16)}, NULL,
               UCT_MD_MEM_ACCESS_REMOTE_GET);
    check_from(layout, [&] { return get(layout.rkey(), 32); });
    EXPECT_EQ(UCS_ERR_CONNECTION_RESET, put(layout.rkey(), 32));
    layout.set(1, {m_a.at(0, 16), m_a.at(16, 16)}, NULL,
               UCT_MD_MEM_ACCESS_REMOTE_PUT);
    EXPECT_EQ(UCS_ERR_CONNECTION_RESET, get(layout.rkey(), 32));
    EXPECT_TRUE(a == m_a.bytes);
    layout.set(1, {m_a.at(0, 16), m_a.at(16, 16)}, NULL, 0);
    EXPECT_EQ(UCS_ERR_CONNECTION_RESET, get(layout.rkey(), 32));
    EXPECT_EQ(UCS_ERR_CONNECTION_RESET, put(layout.rkey(), 32));
    EXPECT_TRUE(a == m_a.bytes);
    m_log.take();
}

/* --- refused -------------------------------------------------------------- */

TEST_P(dcx_mem_layout, bad_descriptions)
{
    layout_handle layout(m_dcx, 8), empty(m_dcx, 2),
        deep[4] = {
            {m_dcx, 1},
            {m_dcx, 1},
            {m_dcx, 1},
            {m_dcx, 1},
        };
    dcx_loop other;
    layout_mem gone(m_dcx, 64, 9);
    auto of_gone       = gone.at(0, 8);
    const uint64_t rma = UCT_MD_MEM_ACCESS_RMA;

    gone.release();
    deep[0].set(1, {m_a.at(0, 64)});
    for (unsigned i = 1; i < 4; i++) {
        deep[i].set(1, {deep[i - 1].at(0, 64)}, &deep[i - 1]);
    }
    layout.set(2, {m_a.at(0, 8, 8), m_a.at(8, 4, 12)});

    const struct {
        size_t repeat;
        blocks list;
        uint64_t access;
        ucs_status_t status;
        const char *name;
    } bad[] = {
        {0, {m_a.at(0, 8)}, rma, UCS_ERR_INVALID_PARAM, "params->repeat is 0"},
        {1, {}, rma, UCS_ERR_INVALID_PARAM, "params->num is 0"},
        {1,
         {m_a.at(0, 8)},
         UCT_MD_MEM_ACCESS_ALL,
         UCS_ERR_INVALID_PARAM,
         "params->access"},
        {4,
         {m_a.at(0, 0), m_b.at(0, 0)},
         rma,
         UCS_ERR_INVALID_PARAM,
         "params->blocks: all lengths are 0"},
        {1,
         {m_a.at(0, 8), {0, 8, 0, NULL}},
         rma,
         UCS_ERR_INVALID_PARAM,
         "params->blocks[1] (address 0x0, length 8, skip 0, memh (nil); "
         "repeat 1): memh belongs to another"},
        {1,
         {m_a.at(0, 8), of_gone},
         rma,
         UCS_ERR_INVALID_PARAM,
         "memh belongs to another memory domain, or was deregistered"},
        {1,
         {{(uintptr_t)other.mem.data(), 8, 0, other.memh}},
         rma,
         UCS_ERR_INVALID_PARAM,
         "params->blocks[0]"},
        {2,
         {m_a.at(0, 8, SIZE_MAX - 7)},
         rma,
         UCS_ERR_INVALID_PARAM,
         "skip and length exceed 64 bits"},
        {2,
         {m_a.at(0, SIZE_MAX, 0)},
         rma,
         UCS_ERR_EXCEEDS_LIMIT,
         "params->blocks: "},
        {1,
         {m_a.at(1ul << 30, 8)},
         rma,
         UCS_ERR_INVALID_PARAM,
         "address: blocks are outside the memory of memh"},
        {3,
         {m_a.at(0, 4, 1ul << 29)},
         rma,
         UCS_ERR_INVALID_PARAM,
         "address: blocks are outside the memory of memh"},
        {2,
         {{UINT64_MAX - 9, 8, 0, m_a.memh}},
         rma,
         UCS_ERR_INVALID_PARAM,
         "address, length, skip and repeat exceed 64 bits"},
        {1,
         {{0, 8, 0, m_a.memh}},
         rma,
         UCS_ERR_INVALID_PARAM,
         "address: blocks are outside"},
        {1,
         {m_a.at(0, 8), m_b.at(0, 8), m_a.at(7, 1)},
         rma,
         UCS_ERR_INVALID_PARAM,
         "params->blocks: they overlap"},
        {9,
         {m_a.at(0, 8, 8), m_a.at(132, 4, 12)},
         0,
         UCS_ERR_INVALID_PARAM,
         "params->blocks: they overlap"},
        {1,
         {layout.at(0, 8)},
         rma,
         UCS_ERR_INVALID_PARAM,
         "memh is the layout itself"},
        {1,
         {empty.at(0, 8)},
         rma,
         UCS_ERR_INVALID_PARAM,
         "memh is a layout that was not set"},
        {1,
         {deep[3].at(0, 8)},
         rma,
         UCS_ERR_INVALID_PARAM,
         "memh is a layout that already has the maximum depth of the device"},
        {1,
         {deep[0].at(60, 5)},
         rma,
         UCS_ERR_INVALID_PARAM,
         "address: blocks are outside the memory of memh"},
        {5,
         {m_a.at(0, 8, 70000), m_a.at(9, 1)},
         rma,
         UCS_ERR_EXCEEDS_LIMIT,
         "params->blocks: 10 pieces exceed the 8 that the layout was created "
         "for"},
    };

    for (const auto &row : bad) {
        EXPECT_EQ(row.status, layout.try_set(row.repeat, row.list, row.access))
            << row.name;
        EXPECT_NE(std::string::npos, m_log.take().find(row.name)) << row.name;
        EXPECT_EQ(UCS_OK, m_api.test(layout.memh)) << row.name;
        EXPECT_EQ(24u, m_api.length(layout.memh)) << row.name;
    }
    EXPECT_EQ(5u, stats().sets);
    check(layout);

    /* no circles: a layout that others name gets no deeper */
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, deep[0].try_set(1, {deep[2].at(0, 64)}));
    EXPECT_NE(std::string::npos,
              m_log.take().find("other layouts refer to it"));
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, deep[1].try_set(1, {deep[2].at(0, 64)}));
    EXPECT_NE(std::string::npos,
              m_log.take().find("other layouts refer to it"));
    EXPECT_EQ(UCS_OK, deep[1].try_set(1, {deep[0].at(1, 63)}));
    EXPECT_EQ(UCS_OK, deep[1].wait());
}

TEST_P(dcx_mem_layout, bad_handles)
{
    uct_dcx_block_t block          = m_a.at(0, 8);
    uct_dcx_layout_params_t params = {0, 1, 1, &block};
    uct_dcx_layout_stats_t stats;
    uct_mem_h memh = NULL;

    EXPECT_EQ(UCS_ERR_INVALID_PARAM, m_api.create(NULL, 4, &memh));
    EXPECT_NE(std::string::npos, m_log.take().find("create: iface"));
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, m_api.create(m_dcx.iface, 0, &memh));
    EXPECT_NE(std::string::npos, m_log.take().find("max_pieces is 0"));
    EXPECT_EQ(UCS_ERR_EXCEEDS_LIMIT, m_api.create(m_dcx.iface, 1 << 20, &memh));
    EXPECT_NE(std::string::npos, m_log.take().find("max_pieces is 1048576"));
    EXPECT_EQ(UCS_ERR_EXCEEDS_LIMIT,
              m_api.create(m_dcx.iface, SIZE_MAX, &memh));
    EXPECT_NE(std::string::npos, m_log.take().find("UMR_MAX_ENTRIES"));
    EXPECT_TRUE(memh == NULL);

    EXPECT_EQ(UCS_ERR_INVALID_PARAM, m_api.set(m_a.memh, &params));
    EXPECT_NE(std::string::npos, m_log.take().find("set: memh"));
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, m_api.test(m_a.memh));
    EXPECT_NE(std::string::npos, m_log.take().find("test: memh"));
    EXPECT_EQ(0u, m_api.length(m_a.memh));
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, m_api.query(NULL, &stats));
    EXPECT_NE(std::string::npos, m_log.take().find("query: md"));

    /* a freed one */
    ASSERT_EQ(UCS_OK, m_api.create(m_dcx.iface, 1, &memh));
    UCT_CALL(uct_md_mem_dereg(m_dcx.md(), memh));
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, m_api.set(memh, &params));
    EXPECT_NE(std::string::npos, m_log.take().find("is not a layout"));
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, m_api.test(memh));
    m_log.take();
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, uct_md_mem_dereg(m_dcx.md(), memh));
    EXPECT_NE(std::string::npos, m_log.take().find("already deregistered"));
}

/* Strided blocks of a layout that is not set are refused. */
TEST_P(dcx_mem_layout, blocks_of_one_that_is_not_set)
{
    layout_handle layout(m_dcx, 2);
    const uct_iov_t iov = {NULL, 8, layout.memh, 24, 20};

    EXPECT_NE(UCS_OK, run([&](uct_completion_t *comp) {
                  return uct_ep_put_zcopy(m_ep, &iov, 1, flat_addr(),
                                          flat_rkey(), comp);
              }));
    m_log.take();
}

/* The domain is closed with layouts in it: it logs this, and frees them. */
TEST_P(dcx_mem_layout, not_freed_by_the_user)
{
    uct_mem_h inner, outer;

    {
        dcx_loop loop;
        uct_dcx_block_t block = {(uintptr_t)loop.mem.data(), 8, 8, loop.memh};
        uct_dcx_layout_params_t params = {0, 2, 1, &block};

        UCT_CALL(m_api.create(loop.iface, 2, &inner));
        UCT_CALL(m_api.create(loop.iface, 2, &outer));
        ASSERT_EQ(UCS_OK, m_api.set(inner, &params));
        block = {0, 4, 4, inner};
        ASSERT_EQ(UCS_OK, m_api.set(outer, &params));
    }
    EXPECT_NE(std::string::npos,
              m_log.take().find("2 layouts were not deregistered"));
}

/* Keys of each size are counted separately. */
TEST_P(dcx_mem_layout, all_in_use)
{
    std::vector<std::unique_ptr<layout_handle>> layouts;
    unsigned max = atoi(getenv("UCX_DCX_UMR_LAYOUTS"));
    uct_mem_h memh;

    for (unsigned i = 0; i < max; i++) {
        layouts.emplace_back(new layout_handle(m_dcx, 4));
    }
    EXPECT_EQ(UCS_ERR_EXCEEDS_LIMIT, m_api.create(m_dcx.iface, 4, &memh));
    EXPECT_NE(std::string::npos, m_log.take().find("UCX_DCX_UMR_LAYOUTS"));
    layouts.emplace_back(new layout_handle(m_dcx, 5));
    layouts[7].reset();
    EXPECT_EQ(UCS_OK, m_api.create(m_dcx.iface, 4, &memh));
    UCT_CALL(uct_md_mem_dereg(m_dcx.md(), memh));
}

/* Each thread sets its own handle repeatedly; memory and inner layouts are
 * freed meanwhile. */
TEST_P(dcx_mem_layout, threads)
{
    std::vector<std::thread> threads;
    std::atomic<unsigned> wrong{0};
    layout_handle first(m_dcx, 2); /* opens the queue */

    for (unsigned seed = 0; seed < 4; seed++) {
        threads.emplace_back([&, seed] {
            std::mt19937 random(seed);

            for (unsigned i = 0; i < 60; i++) {
                layout_mem mem(m_dcx, 4096, seed);
                layout_handle layout(m_dcx, 60), outer(m_dcx, 2);

                for (unsigned round = 0; round < 8; round++) {
                    size_t num = 1 + random() % 50;
                    ucs_status_t status;
                    blocks list;

                    for (size_t j = 0; j < num; j++) {
                        list.push_back(mem.at(j * 70 + random() % 60, 8));
                    }
                    do {
                        status = layout.try_set(1, list);
                        m_api.test(layout.memh);
                    } while (status == UCS_ERR_NO_RESOURCE);
                    wrong += (status != UCS_OK);
                    do {
                        status = outer.try_set(1, {layout.at(0, 8)});
                        m_api.test(outer.memh);
                    } while (status == UCS_ERR_NO_RESOURCE);
                    wrong += (status != UCS_OK);
                    wrong += (outer.wait() != UCS_OK);
                    wrong += (layout.wait() != UCS_OK);
                }
                if (random() % 2) {
                    mem.release();
                    wrong += (m_api.test(outer.memh) != UCS_ERR_NO_ELEM);
                }
            }
        });
    }
    for (auto &thread : threads) {
        thread.join();
    }
    EXPECT_EQ(0u, wrong);
    EXPECT_EQ(0u, stats().num_layouts);
    EXPECT_EQ(0u, stats().failures);
    EXPECT_EQ(4u * 60 * 8 * 2, stats().sets);
}

/* --- tags ----------------------------------------------------------------- */

class dcx_mem_layout_tag : public dcx_tag_bench {
protected:
    dcx_mem_layout_tag() : m_a(m_dcx, 65536, 1), m_layout(m_dcx, 3)
    {
        m_layout.set(100, {m_a.at(0, 30, 70), m_a.at(30, 20, 80)});
        m_iov = {NULL, m_layout.where.size(), m_layout.memh, 0, 1};
    }

    void expect_data(dcx_tag_recv &recv, dcx_end &end)
    {
        auto data = m_layout.data();

        progress_until([&] { return recv.has_ended() && (end.count > 0); });
        EXPECT_EQ(UCS_OK, end.status);
        EXPECT_EQ(UCS_OK, recv.status);
        ASSERT_EQ(data.size(), recv.length);
        EXPECT_TRUE(
            std::equal(data.begin(), data.end(), recv.mem.bytes.begin()));
    }

    layout_mem m_a;
    layout_handle m_layout;
    uct_iov_t m_iov;
};

TEST_P(dcx_mem_layout_tag, eager)
{
    dcx_tag_recv recv(m_dcx, 8192);
    dcx_end end;

    EXPECT_EQ(UCS_OK, recv.post(5));
    EXPECT_EQ(UCS_INPROGRESS, retry([&] {
                  return uct_ep_tag_eager_zcopy(m_dcx.ep, 5, 0, &m_iov, 1, 0,
                                                &end.comp);
              }));
    expect_data(recv, end);
}

/* The peer's device fetches the data through the layout. */
TEST_P(dcx_mem_layout_tag, rndv)
{
    dcx_tag_recv recv(m_dcx, 8192);
    dcx_end end;

    EXPECT_EQ(UCS_OK, recv.post(5));
    EXPECT_FALSE(UCS_PTR_IS_ERR(retry([&] {
        return uct_ep_tag_rndv_zcopy(m_dcx.ep, 5, "head", 4, &m_iov, 1, 0,
                                     &end.comp);
    })));
    expect_data(recv, end);
}

INSTANTIATE_TEST_SUITE_P(tags, dcx_mem_layout_tag, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(cached, dcx_mem_layout, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(strict, dcx_mem_layout, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(roce, dcx_mem_layout, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(shared, dcx_mem_layout, testing::Values(0));

} /* namespace */

int main(int argc, char **argv)
{
    std::vector<std::pair<const char *, const char *>> env = {
        {"UCX_DCX_FAILURE", "error"},
        {"UCX_DCX_UMR_LAYOUTS", "256"},
        {"SOFTHCA_LOG", "error"},
    };
    auto cached = env, strict = env, roce = env, shared = env;

    cached.push_back({"UCX_DCX_RCACHE", "y"});
    strict.push_back({"UCX_DCX_RCACHE", "n"});
    strict.push_back({"SOFTHCA_STRICT", "1"});
    roce.push_back({"SOFTHCA_LINK", "roce"});
    shared.push_back({"UCX_DCX_TX_POLICY", "rand"});
    return hca_test_main(argc, argv,
                         {{"cached", cached},
                          {"strict", strict},
                          {"roce", roce},
                          {"shared", shared},
                          {"tags", {{"UCX_DCX_TM_ENABLE", "y"}}}});
}
