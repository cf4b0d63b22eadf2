/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Views of data types (src/views/view): the bytes that devices read and write
 * at their addresses, the cases in which a key gets a layout or has it already,
 * and views whose memory, key or domain goes away
 */
#include "dcx_match_bench.h"
#include "fake_gpu.h"
#include "dcx_view_bench.h"
#include "forged_profile.h"

extern "C" {
#include <uct/api/v2/uct_v2.h>
}

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <random>
#include <set>
#include <thread>
#include <ucs/memory/memtype_cache.h>

namespace {

class dcx_view_test : public dcx_view_bench {
protected:
    enum { VIEWS = 16, PAGE = 4096 }; /* UCX_DCX_TYPES_MAX */

    dcx_view_test() : m_pages(SIZE) {}

    /* Returns the number of set layouts; a view with an existing layout needs
     * none. */
    uint64_t sets_of(const std::function<void()> &what)
    {
        uint64_t sets = stats().sets;

        what();
        return stats().sets - sets;
    }

    static bool has_cache()
    {
        return strcmp(getenv("UCX_DCX_RCACHE"), "n") != 0;
    }

    /* Returns false if only views have registrations in the cache. */
    static bool has_cached_handles()
    {
        return !strcmp(getenv("UCX_DCX_RCACHE"), "y");
    }

    /* Returns the remote key of a page's registration. */
    uct_rkey_t page_rkey(uint8_t *page)
    {
        uct_mem_h memh;

        UCT_CALL(uct_md_mem_reg(m_dcx.md(), page, PAGE, UCT_MD_MEM_ACCESS_ALL,
                                &memh));

        uct_rkey_t rkey = dcx_peek_rkey(memh);

        UCT_CALL(uct_md_mem_dereg(m_dcx.md(), memh));
        return rkey;
    }

    view_pages m_pages;
};

shape_nest_t nest(ptrdiff_t offset, size_t bytes,
                  const std::vector<shape_dim_t> &dims = {})
{
    return view_type::nest(offset, bytes, dims);
}

/* --- forms ---------------------------------------------------------------- */

TEST_P(dcx_view_test, one_block)
{
    check(view_type({nest(5, 70000)}, 70000), m_pages, 100, 1);
}

TEST_P(dcx_view_test, column)
{
    check(view_type({nest(16, 256, {{300, 1024}})}, 400000), m_pages, 0, 1);
}

/* Elements of a vector are another dimension, or continue the existing one. */
TEST_P(dcx_view_test, elements)
{
    check(view_type({nest(0, 200, {{10, 1000}})}, 10000), m_pages, 64, 40);
    check(view_type({nest(0, 200, {{10, 1000}})}, 15000), m_pages, 64, 40);
}

/* Distances beyond the limit of a repeated block */
TEST_P(dcx_view_test, wide_column)
{
    check(view_type({nest(3, 300, {{10, 100000}})}, 0), m_pages, 0, 1);
}

TEST_P(dcx_view_test, upwards)
{
    check(view_type({nest(200000, 300, {{100, -1024}})}, 0), m_pages, 0, 1);
}

/* Faces of a box of 64 x 64 x 64 doubles */
TEST_P(dcx_view_test, faces)
{
    const ptrdiff_t row = 64 * 8, plane = 64 * row;
    view_pages box(64 * plane);

    check(view_type({nest(plane, plane)}, 0), box, 0, 1);
    check(view_type({nest(row, row, {{64, plane}})}, 0), box, 0, 1);
    check(view_type({nest(8, 8, {{64, row}, {64, plane}})}, 0), box, 0, 1);
    check(view_type({nest(8 + row + plane, 16, {{62, row}, {62, plane}})}, 0),
          box, 0, 1);
    EXPECT_LE(stats().sets, 9u * 2) << "three layers at most";
}

/* Four dimensions; each is a layer */
TEST_P(dcx_view_test, four_dimensions)
{
    check(
        view_type({nest(0, 8, {{4, 16}, {5, 128}, {6, 1280}, {7, 12800}})}, 0),
        m_pages, 8, 1);
}

/* Dimensions that are not multiples of each other, or too wide for a layer */
TEST_P(dcx_view_test, odd_dimensions)
{
    check(view_type({nest(0, 100, {{10, 300}, {20, 3500}})}, 0), m_pages, 0, 1);
    check(view_type({nest(0, 100, {{9, 70000}, {60, 200}})}, 0), m_pages, 0, 1);
    check(view_type({nest(0, 4000, {{16, 8000}, {7, 144000}})}, 0), m_pages, 0,
          1);
}

/* struct { double; char[16]; char[3]; } with holes: rounds */
TEST_P(dcx_view_test, rounds)
{
    check(view_type({nest(0, 8), nest(16, 16), nest(50, 3)}, 100), m_pages, 8,
          1000);
}

/* Elements of rounds at distances other than the rounds' */
TEST_P(dcx_view_test, rounds_apart)
{
    std::vector<shape_nest_t> nests;

    for (unsigned i = 0; i < 3; i++) {
        nests.push_back(nest(16 * i, 8));
        nests.push_back(nest(16 * i + 12, 1));
    }
    check(view_type(nests, 48), m_pages, 8, 50);
    check(view_type(nests, 100), m_pages, 8, 50);
}

/* Elements in an order that is not that of addresses, and too far apart */
TEST_P(dcx_view_test, wide_rounds)
{
    check(view_type({nest(70000, 500), nest(0, 1000)}, 100000), m_pages, 8, 9);
}

TEST_P(dcx_view_test, list)
{
    std::vector<shape_nest_t> nests;

    for (unsigned i = 0; i < 500; i++) {
        nests.push_back(nest(i * 1500 + (i * i) % 700, 100 + i));
    }
    check(view_type(nests, 800000), m_pages, 0, 1);
}

TEST_P(dcx_view_test, random)
{
    const char *text = getenv("DCX_VIEW_SEED");
    unsigned seed    = (text != nullptr) ? strtoul(text, nullptr, 0) :
                                           std::random_device()();
    std::mt19937 random(seed);
    unsigned too_many = 0;

    printf("DCX_VIEW_SEED=%u\n", seed);

    auto below = [&](size_t max) { return random() % max; };
    for (unsigned round = 0; round < 150; round++) {
        std::vector<shape_nest_t> nests;
        ptrdiff_t end = 0;

        /* side by side, without overlap within each */
        for (unsigned i = 0, num = 1 + below(4); i < num; i++) {
            ptrdiff_t extent = 1 + below((below(3) == 0) ? 3000 : 50);
            auto next        = nest(end + below(100), extent);

            for (unsigned dims = below(4); next.num_dims < dims;) {
                size_t count     = 2 + below(6);
                ptrdiff_t stride = (below(2) ? extent : 2 * extent) + below(40);

                stride = (below(4) == 0) ? (stride + 1023) / 1024 * 1024 :
                                           stride;
                next.dims[next.num_dims++] = {count, stride};
                extent += (count - 1) * stride;
            }
            nests.push_back(next);
            end = next.offset + extent;
        }
        std::shuffle(nests.begin(), nests.end(), random);

        size_t extent = end + below(200);
        size_t count  = 1 + below(std::max<size_t>(1, SIZE / extent / 2));

        if (extent * count + 512 > SIZE) {
            continue;
        }

        view_type type(nests, extent);
        shape_data_t data = {type.shape, (char *)m_pages.bytes + 7, count};

        SCOPED_TRACE(round);
        if (shape_length(&data) > m_flat.bytes.size()) {
            continue;
        }

        uct_dcx_view_t *view;
        auto status = try_open(data, false, &view);

        if (status == UCT_DCX_VIEW_TOO_MANY) {
            too_many++;
            continue;
        }
        ASSERT_EQ(UCT_DCX_VIEW_OK, status);
        m_views->close(view, 0);
        check(type, m_pages, 7, count);
        ASSERT_FALSE(HasFatalFailure());
    }
    EXPECT_LT(too_many, 75u);
}

/* An active message gathers as well. */
TEST_P(dcx_view_test, message)
{
    view_type type({nest(0, 64, {{50, 100}})}, 5000);
    uct_dcx_view_t *view = open(type, m_pages.bytes, 1, false);
    std::vector<uint8_t> expected;

    for (ptrdiff_t place : type.places(1)) {
        expected.push_back(m_pages.bytes[place]);
    }

    uct_iov_t iov = {(void *)view->address, view->length, handle(view), 0, 1};

    ASSERT_EQ(UCS_OK, run([&](uct_completion_t *comp) {
                  return uct_ep_am_zcopy(m_ep, AM_ID, NULL, 0, &iov, 1, 0,
                                         comp);
              }));
    progress_until([&] { return !m_message.empty(); });
    EXPECT_TRUE(expected == m_message);
    m_views->close(view, 0);
}

/* --- handles -------------------------------------------------------------- */

/* All parts of a view have its handle; addresses beyond its range have none. */
TEST_P(dcx_view_test, handle_of_an_address)
{
    view_type type({nest(0, 64, {{50, 100}})}, 5000);
    uct_dcx_view_t *view = open(type, m_pages.bytes, 1, false);
    const uint64_t hide  = UCT_MD_MEM_ACCESS_ALL | UCT_MD_MEM_FLAG_HIDE_ERRORS;
    uct_mem_h memh       = handle(view), other;
    unsigned keys        = stats().num_keys;
    uct_md_attr_t attr;

    auto reg = [&](uint64_t offset, size_t length, uint64_t flags) {
        return uct_md_mem_reg(m_dcx.md(), (void *)(view->address + offset),
                              length, flags, &other);
    };

    ASSERT_EQ(3200u, view->length);
    EXPECT_EQ(UCS_OK, reg(100, 3100, hide));
    EXPECT_EQ(memh, other);
    EXPECT_EQ(UCS_OK, uct_md_mem_dereg(m_dcx.md(), other));
    EXPECT_EQ(UCS_OK, uct_md_mem_dereg(m_dcx.md(), memh));
    EXPECT_EQ(UCS_OK, peer_get(rkey(view), view->address, 3200));
    EXPECT_EQ(keys, stats().num_keys);

    EXPECT_EQ(UCS_OK, reg(0, 4096, hide)) << "what UCP's cache rounds up";
    EXPECT_EQ(memh, other);
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, reg(100, 1ul << 36, hide));
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, reg(1ul << 36, 1, hide));
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, reg(4000ul << 36, 1, hide));
    EXPECT_EQ("", m_log.take());
    EXPECT_EQ(UCS_ERR_INVALID_PARAM,
              reg(0, (1ul << 36) + 1, UCT_MD_MEM_ACCESS_ALL));
    EXPECT_NE(std::string::npos, m_log.take().find("not in a view"));

    UCT_CALL(uct_md_query(m_dcx.md(), &attr));
    EXPECT_TRUE(attr.cap.reg_mem_types & UCS_BIT(view->memory_type));
    EXPECT_FALSE(attr.cap.access_mem_types & UCS_BIT(view->memory_type));
    m_views->close(view, 0);
}

/* Accesses of the peer beyond the view, and accesses that a send does not
 * allow */
TEST_P(dcx_view_test, refused)
{
    view_type type({nest(0, 64, {{50, 100}})}, 5000);

    for (auto go : std::vector<std::function<ucs_status_t(uct_dcx_view_t *)>>{
             [&](uct_dcx_view_t *view) {
                 return peer_get(rkey(view), view->address + 1, 3200);
             },
             [&](uct_dcx_view_t *view) { return peer_get(rkey(view), 0, 64); },
             [&](uct_dcx_view_t *view) {
                 return peer_put(rkey(view), view->address, 64);
             }}) {
        uct_dcx_view_t *view = open(type, m_pages.bytes, 1, false);

        EXPECT_NE(UCS_OK, go(view));
        m_log.take();
        uct_ep_destroy(m_peer_ep);
        m_peer_ep = m_peer.make_ep(m_dcx);
        EXPECT_EQ(UCS_OK, peer_get(rkey(view), view->address, 3200));
        m_views->close(view, 0);
    }
    m_log.take();
}

/* --- repeated use --------------------------------------------------------- */

/* The same data needs no UMR if the registration is kept. */
TEST_P(dcx_view_test, again)
{
    view_type rows({nest(0, 64, {{50, 1000}})}, 50000);
    view_type cells({nest(0, 8, {{64, 512}, {20, 32768}})}, 1 << 20);

    /* the longer one first: its region contains the others */
    for (const view_type *type : {&cells, &rows}) {
        check(*type, m_pages, 0, 1);
    }

    uint64_t doorbells = stats().doorbells;
    uint64_t sets      = sets_of([&] {
        for (const view_type *type : {&rows, &cells}) {
            check(*type, m_pages, 0, 1);
        }
    });

    EXPECT_EQ(has_cache(), sets == 0);
    EXPECT_EQ(has_cache(), doorbells == stats().doorbells);

    /* another buffer, and another type in the same buffer */
    EXPECT_LT(0u, sets_of([&] { check_source(rows, m_pages.bytes + 8, 1); }));
    EXPECT_LT(0u, sets_of([&] {
                  check_source(view_type({nest(0, 64, {{50, 1001}})}, 50000),
                               m_pages.bytes, 1);
              }));
}

/* Memory is mapped again: the new contents count. */
TEST_P(dcx_view_test, mapped_again)
{
    view_type type({nest(0, 64, {{50, 1000}})}, 50000);
    view_type irregular({nest(0, 64), nest(100, 5000), nest(7000, 300)}, 8000);

    for (const view_type *t : {&type, &irregular}) {
        for (unsigned i = 0; i < 5; i++) {
            check(*t, m_pages, 0, 1);
            m_pages.unmap(0, 1 << 16);
            m_pages.map(0, 1 << 16);
            std::fill(m_pages.bytes, m_pages.bytes + (1 << 16), i);
            check(*t, m_pages, 0, 1);
        }
    }
}

/* Memory is unmapped while the view is not in use, and stays so. */
TEST_P(dcx_view_test, unmapped)
{
    view_type type({nest(0, 64, {{50, 1000}})}, 50000);
    shape_data_t data = {type.shape, (char *)m_pages.bytes, 1};
    uct_dcx_view_t *view;

    check(type, m_pages, 0, 1);
    m_pages.unmap(0, 1 << 16);
    EXPECT_EQ(UCT_DCX_VIEW_UNMAPPED, try_open(data, false, &view));
    EXPECT_EQ(UCT_DCX_VIEW_UNMAPPED, try_open(data, true, &view));
    m_pages.map(0, 1 << 16);
    check(type, m_pages, 0, 1);
}

/* Read-only memory can be sent from, but not received into; then it becomes
 * writable again. */
TEST_P(dcx_view_test, read_only)
{
    view_type type({nest(0, 64, {{50, 1000}})}, 50000);
    shape_data_t data = {type.shape, (char *)m_pages.bytes, 1};
    uct_dcx_view_t *view;

    for (unsigned i = 0; i < 3; i++) {
        ASSERT_EQ(0, mprotect(m_pages.bytes, SIZE, PROT_READ));
        check_source(type, m_pages.bytes, 1);
        check_source(type, m_pages.bytes + 64, 1);
        EXPECT_EQ(UCT_DCX_VIEW_UNMAPPED, try_open(data, true, &view));
        check_source(type, m_pages.bytes, 1);
        ASSERT_EQ(0, mprotect(m_pages.bytes, SIZE, PROT_READ | PROT_WRITE));
        check(type, m_pages, 0, 1);
    }
}

/* A source is registered for all kinds of access, if possible. */
TEST_P(dcx_view_test, sent_first)
{
    view_type type({nest(0, 64, {{50, 1000}})}, 50000);

    check_source(type, m_pages.bytes, 1);
    (void)page_rkey(m_pages.bytes);
    EXPECT_EQ(has_cache(),
              sets_of([&] { check_source(type, m_pages.bytes, 1); }) == 0);
}

/* A handle of the view's memory is invalidated: it waits for the view only if
 * both have the same region. */
TEST_P(dcx_view_test, handle_of_the_memory)
{
    view_type type({nest(0, 64, {{50, 1000}})}, 50000);
    struct : uct_completion_t {
        unsigned calls = 0;
    } completion;
    uct_md_mem_dereg_params_t params = {};
    uct_dcx_view_t *view;

    completion.func = [](uct_completion_t *self) {
        ((decltype(completion) *)self)->calls++;
    };
    completion.count  = 1;
    completion.status = UCS_OK;
    params.field_mask = UCT_MD_MEM_DEREG_FIELD_MEMH |
                        UCT_MD_MEM_DEREG_FIELD_FLAGS |
                        UCT_MD_MEM_DEREG_FIELD_COMPLETION;
    params.flags = UCT_MD_MEM_DEREG_FLAG_INVALIDATE;
    params.comp  = &completion;

    view = open(type, m_pages.bytes, 1, true);
    UCT_CALL(uct_md_mem_reg(m_dcx.md(), m_pages.bytes, PAGE,
                            UCT_MD_MEM_ACCESS_ALL, &params.memh));
    UCT_CALL(uct_md_mem_dereg_v2(m_dcx.md(), &params));
    EXPECT_EQ(has_cached_handles() ? 0u : 1u, completion.calls);
    m_views->close(view, 0);
    EXPECT_EQ(1u, completion.calls);
    check(type, m_pages, 0, 1);
}

/* Some pages of a source are read-only, others are writable, and one between
 * its blocks is not mapped. */
TEST_P(dcx_view_test, read_only_in_part)
{
    view_type type({nest(0, 64, {{50, 8192}})}, 50 * 8192);
    shape_data_t data = {type.shape, (char *)m_pages.bytes, 1};
    uct_dcx_view_t *view;

    ASSERT_EQ(0, mprotect(m_pages.bytes, 8 * PAGE, PROT_READ));
    check_source(type, m_pages.bytes, 1);
    EXPECT_EQ(UCT_DCX_VIEW_UNMAPPED, try_open(data, true, &view));
    m_pages.unmap(21 * PAGE, PAGE);
    check_source(type, m_pages.bytes, 1);
    check_source(type, m_pages.bytes + 64, 1);
    m_pages.map(21 * PAGE, PAGE);
    ASSERT_EQ(0, mprotect(m_pages.bytes, 8 * PAGE, PROT_READ | PROT_WRITE));
    check(type, m_pages, 0, 1);
}

/* Memory that cannot be registered is tried less and less often: each try would
 * take registrations of its neighbours away. */
TEST_P(dcx_view_test, seldom_tried)
{
    view_type type({nest(0, 64, {{50, 1000}})}, 50000);
    shape_data_t data = {type.shape, (char *)m_pages.bytes, 1};
    std::vector<unsigned> tried;
    uct_dcx_view_t *view;
    uct_rkey_t mine;

    m_pages.unmap(4 * PAGE, PAGE);
    mine = page_rkey(m_pages.bytes);
    for (unsigned i = 1; i <= 40; i++) {
        /* a block in a hole */
        EXPECT_EQ(UCT_DCX_VIEW_UNMAPPED, try_open(data, false, &view));
        if (page_rkey(m_pages.bytes) != mine) {
            tried.push_back(i);
            mine = page_rkey(m_pages.bytes);
        }
    }
    if (has_cached_handles()) {
        EXPECT_EQ((std::vector<unsigned>{1, 2, 4, 8, 16, 32}), tried);
    }

    m_pages.map(4 * PAGE, PAGE);
    for (unsigned i = 41; i < 64; i++) {
        EXPECT_EQ(UCT_DCX_VIEW_UNMAPPED, try_open(data, false, &view));
    }
    check(type, m_pages, 0, 1);

    /* cached registrations are dropped */
    m_pages.unmap(4 * PAGE, PAGE);
    EXPECT_EQ(UCT_DCX_VIEW_UNMAPPED, try_open(data, false, &view));
    m_pages.map(4 * PAGE, PAGE);
    check(type, m_pages, 0, 1);
}

/* UCX has flags of memory types since 1.22 (ucs/memory/memtype_cache.h). */
#if UCT_VERNO_MINOR >= 22
#define MEMTYPE_FLAGS , 0
#else
#define MEMTYPE_FLAGS
#endif

/* Memory of a GPU, which the processor cannot copy */
TEST_P(dcx_view_test, memory_of_a_gpu)
{
    view_type type({nest(0, 64, {{50, 1000}})}, 50000);
    shape_data_t data = {type.shape, (char *)m_pages.bytes, 1};
    uct_dcx_view_t *view;

    check(type, m_pages, 0, 1);
    ucs_memtype_cache_update(m_pages.bytes, SIZE / 2, UCS_MEMORY_TYPE_CUDA,
                             UCS_SYS_DEVICE_ID_UNKNOWN MEMTYPE_FLAGS);
    EXPECT_EQ(UCT_DCX_VIEW_UNSUPPORTED, try_open(data, false, &view));
    EXPECT_EQ(UCT_DCX_VIEW_UNSUPPORTED, try_open(data, true, &view));
    data.buffer += SIZE / 2 - PAGE; /* a part of it is */
    EXPECT_EQ(UCT_DCX_VIEW_UNSUPPORTED, try_open(data, false, &view));
    check(type, m_pages, SIZE / 2, 1);
    ucs_memtype_cache_remove(m_pages.bytes, SIZE / 2);
    check(type, m_pages, 0, 1);
}

class dcx_view_gpu : public dcx_view_test {};

/* A type that begins in host memory, of a kernel that registers both */
TEST_P(dcx_view_gpu, memory_of_the_host_and_a_gpu)
{
    view_type type({nest(0, 64, {{2, SIZE - 64}})}, SIZE);
    shape_data_t data = {type.shape, (char *)m_pages.bytes, 1};
    uct_dcx_view_t *view;

    fake_gpu::announce(m_pages.bytes + SIZE - PAGE, PAGE);
    EXPECT_EQ(UCT_DCX_VIEW_UNMAPPED, try_open(data, false, &view));
    EXPECT_EQ(UCT_DCX_VIEW_UNMAPPED, try_open(data, true, &view));
    ucs_memtype_cache_remove(m_pages.bytes + SIZE - PAGE, PAGE);
    check(type, m_pages, 0, 1);
}

INSTANTIATE_TEST_SUITE_P(gpu, dcx_view_gpu, testing::Values(0));

/* More data than views: the least recently used view is reused. */
TEST_P(dcx_view_test, more_than_there_are)
{
    view_type type({nest(0, 64, {{50, 1000}})}, 50000);
    std::set<uint64_t> addresses;

    for (unsigned i = 0; i < 3 * VIEWS; i++) {
        uct_dcx_view_t *view = open(type, m_pages.bytes + i * 64, 1, false);

        addresses.insert(view->address);
        m_views->close(view, 0);
        check_source(type, m_pages.bytes + i * 64, 1);
    }
    EXPECT_EQ((size_t)VIEWS, addresses.size());
    for (unsigned i = 0; i < 3 * VIEWS; i++) {
        check_source(type, m_pages.bytes + i * 64, 1);
    }
}

/* All data of a type that is used once (id 0) uses one view: other views keep
 * their layouts. */
TEST_P(dcx_view_test, once)
{
    view_type type({nest(0, 64, {{50, 1000}})}, 50000);
    view_type once({nest(0, 64, {{50, 1000}})}, 50000);

    once.shape->id = 0;
    check_source(type, m_pages.bytes + VIEWS * 64, 1); /* registers the
                                                        * region */
    for (unsigned i = 0; i < VIEWS; i++) {
        check_source(type, m_pages.bytes + i * 64, 1);
    }
    for (unsigned i = 0; i < VIEWS; i++) {
        check_source(once, m_pages.bytes + i * 64, 1);
        check_source(once, m_pages.bytes, 1);
    }

    uint64_t sets = sets_of([&] {
        for (unsigned i = 1; i < VIEWS; i++) {
            check_source(type, m_pages.bytes + i * 64, 1);
        }
    });

    EXPECT_EQ(has_cache(), sets == 0);
}

/* While all views are open, even for the same data, no other can be opened. */
TEST_P(dcx_view_test, busy)
{
    view_type type({nest(0, 64, {{50, 1000}})}, 50000);
    shape_data_t data = {type.shape, (char *)m_pages.bytes, 1};
    std::vector<uct_dcx_view_t *> views;
    std::set<uint64_t> addresses;
    uct_dcx_view_t *view;

    for (unsigned i = 0; i < VIEWS; i++) {
        views.push_back(open(type, m_pages.bytes, 1, i % 2));
        addresses.insert(views[i]->address);
    }
    EXPECT_EQ((size_t)VIEWS, addresses.size());
    EXPECT_EQ(UCT_DCX_VIEW_BUSY, try_open(data, false, &view));
    m_views->close(views.back(), 0);
    EXPECT_EQ(UCT_DCX_VIEW_OK, try_open(data, false, &views.back()));
    for (uct_dcx_view_t *each : views) {
        m_views->close(each, 0);
    }
}

/* Other data gets the view that was closed first. */
TEST_P(dcx_view_test, closed_first_goes_first)
{
    view_type type({view_type::nest(0, 8, {{9, 64}})}, 1024);
    std::vector<uct_dcx_view_t *> views;

    for (unsigned i = 0; i < VIEWS; i++) {
        views.push_back(open(type, m_pages.bytes + i * 64, 1, false));
    }
    for (uct_dcx_view_t *each : views) {
        m_views->close(each, 0);
    }
    for (unsigned i = 0; i < 3; i++) {
        uct_dcx_view_t *view = open(type, m_pages.bytes + i * 64, 1, true);

        EXPECT_EQ(views[i], view);
        m_views->close(view, 0);
    }
}

/* --- memory with holes ---------------------------------------------------- */

TEST_P(dcx_view_test, holes)
{
    view_type two({nest(100, 9000), nest(SIZE - 5000, 5000)}, SIZE);
    view_type rows({nest(0, 256, {{9, 100 * 1024}})}, SIZE);

    m_pages.unmap(64 * 1024, 16 * 1024);

    for (const view_type *type : {&two, &rows}) {
        auto places          = type->places(1);
        uct_dcx_view_t *view = open(*type, m_pages.bytes, 1, false);

        ASSERT_TRUE(view != NULL);
        expect_gathered(m_pages.bytes, places, [&] {
            return peer_get(rkey(view), view->address, view->length);
        });
        m_views->close(view, 0);

        view = open(*type, m_pages.bytes, 1, true);
        ASSERT_TRUE(view != NULL);
        refill();
        ASSERT_EQ(UCS_OK, peer_put(rkey(view), view->address, view->length));
        for (size_t i = 0; i < places.size(); i++) {
            ASSERT_EQ(m_flat.bytes[i], m_pages.bytes[places[i]]);
        }
        m_views->close(view, 0);
    }
}

/* A hole between two regions is mapped, and another user registers both as one
 * region. A third user still holds the first one, so that its key stays valid.
 * Then the last region is deregistered. */
TEST_P(dcx_view_test, hole_that_goes)
{
    const size_t apart = 16 * PAGE;
    view_type type({nest(0, 3000, {{4, (ptrdiff_t)apart}})}, SIZE);
    shape_data_t data = {type.shape, (char *)m_pages.bytes, 1};
    uint8_t *third    = m_pages.bytes + 2 * apart;
    uct_dcx_view_t *view;
    uct_mem_h memh, held;

    for (unsigned i = 0; i < 3; i++) {
        m_pages.unmap(i * apart + 8 * PAGE, PAGE);
    }

    auto check_it = [&] {
        auto places          = type.places(1);
        uct_dcx_view_t *good = open(type, m_pages.bytes, 1, false);

        ASSERT_TRUE(good != NULL);
        expect_gathered(m_pages.bytes, places, [&] {
            return peer_get(rkey(good), good->address, good->length);
        });
        m_views->close(good, 0);
    };

    check_it();
    EXPECT_EQ(has_cache(), sets_of(check_it) == 0);
    EXPECT_NE(page_rkey(third - apart), page_rkey(third));

    UCT_CALL(uct_md_mem_reg(m_dcx.md(), third - apart, PAGE,
                            UCT_MD_MEM_ACCESS_ALL, &held));
    m_pages.map(apart + 8 * PAGE, PAGE);
    UCT_CALL(uct_md_mem_reg(m_dcx.md(), third - apart, apart + PAGE,
                            UCT_MD_MEM_ACCESS_ALL, &memh));
    UCT_CALL(uct_md_mem_dereg(m_dcx.md(), memh));
    EXPECT_EQ(has_cached_handles(),
              page_rkey(third - apart) == page_rkey(third));
    EXPECT_EQ(has_cached_handles() || !has_cache(), sets_of(check_it) > 0)
        << "two regions have other keys";
    UCT_CALL(uct_md_mem_dereg(m_dcx.md(), held));
    EXPECT_EQ(has_cache(), sets_of(check_it) == 0);

    m_pages.unmap(3 * apart, PAGE);
    EXPECT_EQ(UCT_DCX_VIEW_UNMAPPED, try_open(data, false, &view));
    m_pages.map(3 * apart, PAGE);
    check_it();
}

/* As many holes as regions allow, and one more */
TEST_P(dcx_view_test, many_holes)
{
    for (unsigned num : {16u, 17u}) {
        view_pages pages(num * 2 * PAGE);
        view_type type({nest(0, 300, {{num, 2 * PAGE}})}, num * 2 * PAGE);
        shape_data_t data    = {type.shape, (char *)pages.bytes, 1};
        uct_dcx_view_t *view = NULL;

        for (unsigned i = 0; i < num; i++) {
            pages.unmap((2 * i + 1) * PAGE, PAGE);
        }
        EXPECT_EQ((num == 16) ? UCT_DCX_VIEW_OK : UCT_DCX_VIEW_UNMAPPED,
                  try_open(data, false, &view));
        if (view != NULL) {
            expect_gathered(pages.bytes, type.places(1), [&] {
                return peer_get(rkey(view), view->address, view->length);
            });
            m_views->close(view, 0);
        }
    }
}

/* --- distant memory ------------------------------------------------------- */

/* Blocks that are far apart; the memory between them is mapped, but not
 * accessed */
class dcx_view_far : public dcx_view_test {
protected:
    static constexpr size_t MIB = 1ul << 20;

    ~dcx_view_far() { munmap(m_bytes, m_length); }

    uct_dcx_view_status_t try_far(unsigned num, size_t bytes, size_t distance,
                                  uct_dcx_view_t **view)
    {
        view_type type({nest(0, bytes, {{num, (ptrdiff_t)distance}})},
                       num * distance);
        shape_data_t data = {type.shape, map(num * distance), 1};

        *view = NULL;
        return try_open(data, false, view);
    }

    char *map(size_t length)
    {
        munmap(m_bytes, m_length);
        m_length = length;
        m_bytes  = (char *)mmap(NULL, length, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
                                0);
        HCA_CHECK_CALL(m_bytes != MAP_FAILED);
        return m_bytes;
    }

    uct_rkey_t far_rkey(size_t offset)
    {
        return page_rkey((uint8_t *)m_bytes + offset);
    }

    char *m_bytes   = NULL;
    size_t m_length = 0;
};

/* The memory between two distant pages is not registered: each page has a key
 * of its own. */
TEST_P(dcx_view_far, two)
{
    uct_dcx_view_t *view;

    ASSERT_EQ(UCT_DCX_VIEW_OK, try_far(2, PAGE, 1024 * MIB, &view));
    m_bytes[1]              = 7;
    m_bytes[1024 * MIB + 1] = 8;
    ASSERT_EQ(UCS_OK, peer_get(rkey(view), view->address, view->length));
    EXPECT_EQ(7, m_flat.bytes[1]);
    EXPECT_EQ(8, m_flat.bytes[PAGE + 1]);
    EXPECT_NE(far_rkey(0), far_rkey(100 * MIB));
    m_views->close(view, 0);
}

/* The memory between two blocks is registered if it is short, or not much
 * longer than the data. */
TEST_P(dcx_view_far, close)
{
    for (size_t bytes : {16ul, 32ul, 80ul}) {
        uct_dcx_view_t *view;

        ASSERT_EQ(UCT_DCX_VIEW_OK,
                  try_far(2, bytes * MIB / 32, bytes * MIB, &view));
        EXPECT_EQ(has_cache(), far_rkey(0) == far_rkey(bytes * MIB / 2));
        m_views->close(view, 0);
    }
}

/* The maximum number of regions, and one more: no two of them merge. */
TEST_P(dcx_view_far, many)
{
    for (unsigned num : {16u, 17u}) {
        uct_dcx_view_t *view;

        EXPECT_EQ((num == 16) ? UCT_DCX_VIEW_OK : UCT_DCX_VIEW_UNMAPPED,
                  try_far(num, PAGE, 1024 * MIB, &view));
        if (view != NULL) {
            m_views->close(view, 0);
        }
    }
}

/* More blocks than regions, at equal distances, with one hole: the memory is
 * split only there, for any order of the blocks. */
TEST_P(dcx_view_far, one_hole)
{
    std::vector<shape_nest_t> shuffled;

    for (unsigned i = 0; i < 24; i++) {
        shuffled.push_back(nest((i * 7 % 24) * 2 * MIB, PAGE));
    }

    view_type upwards({nest(0, PAGE, {{24, 2 * MIB}})}, 0);
    view_type downwards({nest(46 * MIB, PAGE, {{24, -2 * (ptrdiff_t)MIB}})}, 0);
    view_type random(shuffled, 0);

    for (const view_type *type : {&upwards, &downwards, &random}) {
        shape_data_t data = {type->shape, map(48 * MIB), 1};
        uct_dcx_view_t *view;

        ASSERT_EQ(0, mprotect(m_bytes + 7 * MIB, PAGE, PROT_NONE));
        for (unsigned i = 0; i < 24; i++) {
            m_bytes[i * 2 * MIB] = i + 1;
        }
        ASSERT_EQ(UCT_DCX_VIEW_OK, try_open(data, false, &view));
        expect_gathered((uint8_t *)m_bytes, type->places(1), [&] {
            return peer_get(rkey(view), view->address, view->length);
        });
        EXPECT_EQ(has_cache(), far_rkey(0) == far_rkey(6 * MIB));
        EXPECT_EQ(has_cache(), far_rkey(8 * MIB) == far_rkey(46 * MIB));
        EXPECT_NE(far_rkey(6 * MIB), far_rkey(8 * MIB));
        m_views->close(view, 0);
    }
}

/* One hole, in memory that is also split between distant blocks: no region
 * contains the hole. */
TEST_P(dcx_view_far, one_hole_and_far_apart)
{
    view_type type({nest(0, PAGE, {{10, MIB}, {2, 1024 * MIB}})}, 0);
    shape_data_t data = {type.shape, map(1100 * MIB), 1};
    uct_dcx_view_t *view;

    ASSERT_EQ(0, mprotect(m_bytes + 2 * PAGE, PAGE, PROT_NONE));
    ASSERT_EQ(UCT_DCX_VIEW_OK, try_open(data, false, &view));
    expect_gathered((uint8_t *)m_bytes, type.places(1), [&] {
        return peer_get(rkey(view), view->address, view->length);
    });
    m_views->close(view, 0);
}

/* Blocks that are longer than an entry of a list allows: several entries
 * each */
TEST_P(dcx_view_far, long_blocks)
{
    const size_t gib = 1024 * MIB;
    view_type type({nest(0, gib + PAGE), nest(gib + 2 * PAGE, PAGE)}, 0);
    shape_data_t data = {type.shape, map(gib + 4 * PAGE), 1};
    uct_dcx_view_t *view;

    ASSERT_EQ(UCT_DCX_VIEW_OK, try_open(data, false, &view));
    for (size_t place : {size_t(0), gib - 64, gib, gib + PAGE - 64, gib + PAGE,
                         gib + 2 * PAGE - 64}) {
        char *at = m_bytes + place + ((place < gib + PAGE) ? 0 : PAGE);

        for (unsigned i = 0; i < 64; i++) {
            at[i] = place / 64 + i;
        }
        ASSERT_EQ(UCS_OK, peer_get(rkey(view), view->address + place, 64));
        EXPECT_EQ(0, memcmp(at, m_flat.bytes.data(), 64)) << place;
    }
    ASSERT_EQ(UCS_OK, peer_get(rkey(view), view->address + gib - 64, 128));
    EXPECT_EQ(0, memcmp(m_bytes + gib - 64, m_flat.bytes.data(), 128));
    m_views->close(view, 0);
}

/* --- limits --------------------------------------------------------------- */

TEST_P(dcx_view_test, too_much)
{
    std::vector<shape_nest_t> nests;
    uct_dcx_view_t *view;

    for (unsigned i = 0; i < 50000; i++) {
        nests.push_back(nest(i * 20 + i % 7, 5));
    }

    view_type many(nests, SIZE), half({nest(0, 1ul << 35)}, 1ul << 36);
    shape_data_t data = {many.shape, (char *)m_pages.bytes, 20};
    auto open_many    = [&] {
        EXPECT_EQ(UCT_DCX_VIEW_TOO_MANY, try_open(data, true, &view));
    };

    EXPECT_EQ(0u, sets_of(open_many));
    data = {half.shape, (char *)m_pages.bytes, 3};
    EXPECT_EQ(UCT_DCX_VIEW_TOO_LONG, try_open(data, true, &view));
    data.count = 1ul << 30;
    EXPECT_EQ(UCT_DCX_VIEW_TOO_LONG, try_open(data, true, &view));
    data.count = 2;
    EXPECT_EQ(UCT_DCX_VIEW_UNMAPPED, try_open(data, true, &view));
}

/* A million pieces in two dimensions are not too many: they need few
 * entries. */
TEST_P(dcx_view_test, million_pieces)
{
    view_pages pages(16 << 20);
    view_type type({nest(0, 1, {{1000, 8}, {1000, 16000}})}, 16 << 20);

    check(type, pages, 0, 1);
}

/* Without an interface in the domain there are no keys. None are needed where
 * the processor copies. */
TEST_P(dcx_view_test, keys_of_domains)
{
    view_type type({nest(0, 64, {{50, 1000}})}, 50000);
    shape_data_t data = {type.shape, (char *)m_pages.bytes, 1};
    uct_dcx_view_t *view;
    uct_md_config_t *config;
    uct_md_h bare;
    void *md;

    UCT_CALL(uct_md_config_read(m_dcx.component(), NULL, NULL, &config));
    UCT_CALL(uct_md_open(m_dcx.component(), "mlx5_0", config, &bare));
    uct_config_release(config);
    md = bare;
    EXPECT_EQ(UCT_DCX_VIEW_UNSUPPORTED, m_views->open(&md, 1, &data, 0, &view));
    uct_md_close(bare);

    ASSERT_EQ(UCT_DCX_VIEW_OK, m_views->open(NULL, 0, &data, 0, &view));
    m_views->close(view, 0);
}

/* Two domains have keys of one view at the same time, one each. */
TEST_P(dcx_view_test, several_domains)
{
    view_type type({nest(0, 64, {{50, 1000}})}, 50000);
    shape_data_t data = {type.shape, (char *)m_pages.bytes, 1};
    void *both[]      = {m_dcx.md(), m_peer.md()};
    auto places       = type.places(1);
    uct_dcx_view_t *view;
    uct_mem_h memh;

    for (unsigned i = 0; i < 2; i++) {
        ASSERT_EQ(UCT_DCX_VIEW_OK, m_views->open(both, 2, &data, 0, &view));
        expect_gathered(m_pages.bytes, places, [&] {
            return peer_get(rkey(view), view->address, view->length);
        });

        /* the peer puts from it to the memory at its own interface */
        UCT_CALL(uct_md_mem_reg(m_peer.md(), (void *)view->address,
                                view->length, UCT_MD_MEM_ACCESS_ALL, &memh));
        EXPECT_NE(memh, handle(view));

        view_pages to(PAGE);
        uct_mem_h to_memh;
        uct_iov_t iov = {(void *)view->address, view->length, memh, 0, 1};

        UCT_CALL(uct_md_mem_reg(m_dcx.md(), to.bytes, PAGE,
                                UCT_MD_MEM_ACCESS_ALL, &to_memh));
        EXPECT_EQ(UCS_OK, run([&](uct_completion_t *comp) {
                      return uct_ep_put_zcopy(m_peer_ep, &iov, 1,
                                              (uintptr_t)to.bytes,
                                              dcx_peek_rkey(to_memh), comp);
                  }));
        for (size_t j = 0; j < places.size(); j++) {
            ASSERT_EQ(m_pages.bytes[places[j]], to.bytes[j]);
        }
        UCT_CALL(uct_md_mem_dereg(m_dcx.md(), to_memh));
        m_views->close(view, 0);
        m_views->leave(both + 1, 1);
    }
}

/* Only domains that this thread opens while it is watched, and does not close,
 * are reported. */
TEST_P(dcx_view_test, watched)
{
    void *mds[2];
    unsigned eps;

    m_views->watch_begin();
    auto closed = std::make_unique<dcx_loop>();
    dcx_loop first, second;

    std::thread([] { dcx_loop(); }).join();
    closed.reset();
    EXPECT_EQ(2u, m_views->watch_end(mds, 2, &eps));
    EXPECT_EQ((std::set<void *>{first.md(), second.md()}),
              (std::set<void *>{mds[0], mds[1]}));
    EXPECT_EQ(0u, eps);

    dcx_loop third;

    m_views->watch_begin();
    EXPECT_EQ(0u, m_views->watch_end(mds, 2, &eps));
}

/* Thresholds of "auto" become those of the slowest device when it is opened. An
 * explicit option stays. */
class dcx_view_measured : public testing::TestWithParam<int> {
protected:
    dcx_views m_views;
};

TEST_P(dcx_view_measured, policy)
{
    const bool is_set   = getenv("UCX_DCX_TYPES_MIN_LENGTH") != NULL;
    const auto policy   = m_views->policy();
    const size_t length = policy->min_length, block = policy->min_block;
    const std::string speed = "copy_mbs 4000\n";

    EXPECT_EQ(is_set ? 16384u : 262144u, length);
    EXPECT_EQ(is_set ? 1u : 256u, block);
    for (auto times : {"umr_us_52 100\numr_us_4 1\numr_us_1024 103\n", ""}) {
        forged_profile profile(times + speed);
        unsigned eps;
        void *md;

        m_views->watch_begin();
        dcx_loop dcx;
        EXPECT_EQ(1u, m_views->watch_end(&md, 1, &eps));
        EXPECT_EQ(is_set ? length : 400000u, policy->min_length);
        EXPECT_EQ(is_set ? block : 400u, policy->min_block);
    }
}

INSTANTIATE_TEST_SUITE_P(measured, dcx_view_measured, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(set, dcx_view_measured, testing::Values(0));

/* --- end ------------------------------------------------------------------ */

/* A view is closed as failed: the peer still has the number of its key, but no
 * access. */
TEST_P(dcx_view_test, failed)
{
    view_type rows({nest(0, 64, {{50, 1000}})}, 50000);
    view_type cells({nest(0, 8, {{64, 512}, {20, 32768}})}, 1 << 20);

    for (const view_type *type : {&rows, &cells}) {
        uct_dcx_view_t *view = open(*type, m_pages.bytes, 1, true);
        uint64_t address     = view->address;
        uct_rkey_t old       = rkey(view);

        ASSERT_EQ(UCS_OK, peer_put(old, address, 64));
        m_views->close(view, 1);
        std::vector<uint8_t> before(m_pages.bytes, m_pages.bytes + SIZE);
        refill();
        EXPECT_NE(UCS_OK, peer_put(old, address, 64));
        uct_ep_destroy(m_peer_ep);
        m_peer_ep = m_peer.make_ep(m_dcx);

        /* also not when the view is used again */
        view = open(*type, m_pages.bytes, 1, true);
        EXPECT_EQ(address, view->address);
        EXPECT_NE(old, rkey(view));
        EXPECT_NE(UCS_OK, peer_put(old, address, 64));
        EXPECT_EQ(0, memcmp(before.data(), m_pages.bytes, SIZE));
        uct_ep_destroy(m_peer_ep);
        m_peer_ep = m_peer.make_ep(m_dcx);
        EXPECT_EQ(UCS_OK, peer_put(rkey(view), address, 64));
        m_views->close(view, 0);
    }
    m_log.take(); /* errors of endpoints */
}

/* The layout queue is in error: views that have their layouts work, all other
 * data is packed. */
TEST_P(dcx_view_test, no_more_layouts)
{
    view_type rows({nest(0, 64, {{50, 1000}})}, 50000);
    view_type cells({nest(0, 8, {{64, 512}, {20, 32768}})}, 1 << 20);
    shape_data_t data = {cells.shape, (char *)m_pages.bytes, 1};
    uct_dcx_view_t *view, *cached;

    check(cells, m_pages, 0, 1);
    check(rows, m_pages, 0, 1);
    cached = open(rows, m_pages.bytes, 1, true);
    dcx_peek_no_more_layouts(m_dcx.iface);
    for (unsigned i = 0; i < 2 * VIEWS; i++) {
        data.buffer = (char *)m_pages.bytes + 1 + i;
        EXPECT_EQ(UCT_DCX_VIEW_FAILED, try_open(data, i % 2, &view));
    }
    EXPECT_EQ(UCS_OK, peer_put(rkey(cached), cached->address, 100));

    uct_rkey_t old = rkey(cached);

    m_views->close(cached, 1); /* destroys the key */
    EXPECT_NE(UCS_OK, peer_put(old, cached->address, 100));
    m_log.take();
}

/* Keys that views had are zero-based for their next user. */
TEST_P(dcx_view_test, keys_for_layouts)
{
    view_type rows({nest(0, 64, {{50, 1000}})}, 50000);
    dcx_region mem(m_dcx, 4096, 5);
    void *md = m_dcx.md();
    unsigned keys;

    check(rows, m_pages, 0, 1);
    keys = stats().num_keys;
    m_views->leave(&md, 1);
    EXPECT_EQ(0u, stats().num_layouts);

    std::vector<uct_mem_h> handles(keys);
    for (auto &memh : handles) {
        uct_dcx_block_t block = {(uintptr_t)mem.bytes.data(), 8, 8, mem.memh};
        uct_dcx_layout_params_t params = {UCT_MD_MEM_ACCESS_REMOTE_GET, 100, 1,
                                          &block};

        UCT_CALL(m_api.create(m_dcx.iface, 2, &memh));
        UCT_CALL(m_api.set(memh, &params));
        while (m_api.test(memh) == UCS_INPROGRESS) {
        }
        ASSERT_EQ(UCS_OK, peer_get(dcx_peek_rkey(memh), 8, 8));
        EXPECT_TRUE(
            std::equal(&mem.bytes[16], &mem.bytes[24], m_flat.bytes.begin()));
    }
    EXPECT_EQ(keys, stats().num_keys) << "those of the view are among them";
    for (auto memh : handles) {
        UCT_CALL(uct_md_mem_dereg(m_dcx.md(), memh));
    }
}

/* Fewer keys than views: keys of unused views are taken. */
class dcx_view_few : public dcx_view_test {};

TEST_P(dcx_view_few, keys)
{
    view_type rows({nest(0, 64, {{50, 1000}})}, 50000);
    shape_data_t data = {rows.shape, (char *)m_pages.bytes, 1};
    std::vector<uct_dcx_view_t *> views;
    uct_dcx_view_t *view;

    for (unsigned i = 0; i < 2 * VIEWS; i++) {
        check(rows, m_pages, i * 8, 1);
    }
    while (try_open(data, false, &view) == UCT_DCX_VIEW_OK) {
        views.push_back(view);
        data.buffer += 8;
    }
    EXPECT_EQ(3u, views.size());
    EXPECT_EQ(UCT_DCX_VIEW_BUSY, try_open(data, false, &view));
    for (unsigned i = 0; i < views.size(); i++) {
        EXPECT_EQ(UCS_OK, peer_get(rkey(views[i]), views[i]->address, 100));
        m_views->close(views[i], 0);
    }
    EXPECT_EQ(UCT_DCX_VIEW_OK, try_open(data, false, &view));
    m_views->close(view, 0);
}

/* The key of the least recently used view is taken; the others keep theirs. */
TEST_P(dcx_view_few, keys_of_one)
{
    view_type rows({nest(0, 64, {{50, 1000}})}, 50000);

    check_source(rows, m_pages.bytes, 2); /* one region for all */
    for (unsigned i = 0; i < 4; i++) {
        check_source(rows, m_pages.bytes + 8 * i, 1);
    }
    EXPECT_EQ(0u, sets_of([&] {
                  for (unsigned i : {1, 2, 3}) {
                      check_source(rows, m_pages.bytes + 8 * i, 1);
                  }
              }));
}

/* A thread that waits for the device to give up a key keeps no other thread
 * from its views. */
TEST_P(dcx_view_few, keys_go_without_the_lock)
{
    view_type rows({nest(0, 64, {{50, 1000}})}, 50000);
    std::atomic<bool> has_opened{false};
    dcx_deadline deadline;

    auto use = [&](unsigned i) {
        m_views->close(open(rows, m_pages.bytes + 8 * i, 1, false), 0);
    };

    check_source(rows, m_pages.bytes, 2); /* one region for all */
    for (unsigned i = 0; i < 3; i++) {
        use(i);
    }

    unsigned num = stats().num_layouts;

    dcx_peek_hold_layouts(m_dcx.iface, 1);
    std::thread waiting([&] { use(3); });
    while (stats().num_layouts == num) {
        deadline.check("a layout that goes");
    }
    std::thread other([&] {
        use(2);
        has_opened = true;
    });
    EXPECT_TRUE(hca_until([&] { return has_opened.load(); }, TIME_PROMPT));
    dcx_peek_hold_layouts(m_dcx.iface, 0);
    waiting.join();
    other.join();
    EXPECT_EQ(0u, sets_of([&] { use(3); }));
}

/* Layers in some, lists in others: more than one key may have to be taken. */
TEST_P(dcx_view_few, keys_of_several)
{
    view_type cells({nest(0, 8, {{64, 512}, {20, 32768}})}, 1 << 20);
    view_type rows({nest(0, 64, {{50, 1000}})}, 50000);

    for (unsigned i = 0; i < 20; i++) {
        check_source(rows, m_pages.bytes + 8 * i, 1);
        check_source((i % 3 == 0) ? rows : cells, m_pages.bytes + 8, 1);
    }
}

INSTANTIATE_TEST_SUITE_P(few, dcx_view_few, testing::Values(0));

/* Threads open and close views, some of the same data: no view is open
 * twice. */
TEST_P(dcx_view_test, threads)
{
    view_type type({nest(0, 64, {{50, 1000}})}, 50000);
    std::vector<std::thread> threads;
    std::atomic<unsigned> opened{0}, shared{0};
    std::array<std::atomic<int>, 4096> users{};

    for (unsigned id = 0; id < 2; id++) {
        threads.emplace_back([&, id] {
            std::minstd_rand random(id);

            for (unsigned i = 0; i < 300; i++) {
                size_t offset     = (random() % 24) * 64;
                shape_data_t data = {type.shape, (char *)m_pages.bytes + offset,
                                     1};
                uct_dcx_view_t *views[4];
                unsigned num = 0;

                for (auto &view : views) {
                    if (try_open(data, random() % 2, &view) !=
                        UCT_DCX_VIEW_OK) {
                        break;
                    }
                    num++;
                    opened++;
                    shared += users[(view->address >> 36) & 0xfff]++ != 0;
                }
                for (unsigned j = 0; j < num; j++) {
                    users[(views[j]->address >> 36) & 0xfff]--;
                    m_views->close(views[j], random() % 8 == 0);
                }
            }
        });
    }
    for (auto &thread : threads) {
        thread.join();
    }
    EXPECT_EQ(2400u, opened);
    EXPECT_EQ(0u, shared) << "open twice";
    check(type, m_pages, 0, 1);
}

/* --- tags ----------------------------------------------------------------- */

/* Views must be enabled before the interface of the base class is opened. */
struct dcx_view_tag_views {
    dcx_views m_views;
};

class dcx_view_tag : protected dcx_view_tag_views, public dcx_tag_bench {
protected:
    dcx_view_tag() :
        m_type({nest(0, 30, {{100, 100}}), nest(50, 20, {{100, 100}})}, 0),
        m_pages(1 << 16), m_recv(m_dcx, 1)
    {
        shape_data_t data = {m_type.shape, (char *)m_pages.bytes, 1};
        void *md          = m_dcx.md();

        for (int is_dest : {0, 1}) {
            HCA_CHECK_CALL(m_views->open(&md, 1, &data, is_dest,
                                         &m_view[is_dest]) == UCT_DCX_VIEW_OK);
        }
        m_recv.iov = {iov(true)};
        for (ptrdiff_t place : m_type.places(1)) {
            m_recv.where.push_back(m_pages.bytes + place);
        }
    }

    ~dcx_view_tag()
    {
        void *md = m_dcx.md();

        m_dcx.flush();
        m_views->close(m_view[0], 0);
        m_views->close(m_view[1], 0);
        m_views->leave(&md, 1);
    }

    uct_iov_t iov(bool is_dest)
    {
        uct_dcx_view_t *view = m_view[is_dest];
        uct_mem_h memh;

        UCT_CALL(uct_md_mem_reg(m_dcx.md(), (void *)view->address, view->length,
                                UCT_MD_MEM_ACCESS_ALL, &memh));
        return {(void *)view->address, view->length, memh, 0, 1};
    }

    void post()
    {
        ASSERT_EQ(UCS_OK, m_recv.post(5)) << m_log.take();
        dcx_wait_told(m_dcx);
    }

    /* Checks all bytes, also between the pieces. */
    void expect_data(const dcx_tag_mem &mem, const view_pages &before,
                     dcx_end &end)
    {
        progress_until([&] { return m_recv.has_ended() && (end.count > 0); });
        ASSERT_EQ(UCS_OK, end.status);
        ASSERT_EQ(UCS_OK, m_recv.status);
        ASSERT_EQ(mem.bytes.size(), m_recv.length);
        for (size_t i = 0; i < mem.bytes.size(); i++) {
            before.bytes[m_recv.where[i] - m_pages.bytes] = mem.bytes[i];
        }
        EXPECT_EQ(0, memcmp(before.bytes, m_pages.bytes, 1 << 16));
    }

    view_type m_type;
    view_pages m_pages;
    uct_dcx_view_t *m_view[2];
    dcx_tag_recv m_recv;
};

TEST_P(dcx_view_tag, eager)
{
    for (size_t length : {1u, 64u, 65u, 5000u}) {
        dcx_tag_mem mem(m_dcx, length, length);
        view_pages before(1 << 16);
        dcx_end end;

        m_recv.num_consumed = m_recv.num_completed = 0;
        memcpy(before.bytes, m_pages.bytes, 1 << 16);
        post();
        ASSERT_EQ(UCS_INPROGRESS, retry([&] {
                      return uct_ep_tag_eager_zcopy(m_dcx.ep, 5, 0, &mem.iov, 1,
                                                    0, &end.comp);
                  }));
        expect_data(mem, before, end);
    }
}

TEST_P(dcx_view_tag, rendezvous)
{
    dcx_tag_mem mem(m_dcx, 5000);
    view_pages before(1 << 16);
    dcx_end end;

    memcpy(before.bytes, m_pages.bytes, 1 << 16);
    post();
    ASSERT_FALSE(UCS_PTR_IS_ERR(retry([&] {
        return uct_ep_tag_rndv_zcopy(m_dcx.ep, 5, "head", 4, &mem.iov, 1, 0,
                                     &end.comp);
    })));
    expect_data(mem, before, end);
}

/* A rendezvous from a view: the device fetches it by the view's own address. */
TEST_P(dcx_view_tag, rendezvous_of_a_view)
{
    dcx_tag_recv recv(m_dcx, 5000);
    uct_iov_t from = iov(false);
    dcx_end end;

    ASSERT_EQ(UCS_OK, recv.post(5));
    dcx_wait_told(m_dcx);
    ASSERT_FALSE(UCS_PTR_IS_ERR(retry([&] {
        return uct_ep_tag_rndv_zcopy(m_dcx.ep, 5, "head", 4, &from, 1, 0,
                                     &end.comp);
    })));
    progress_until([&] { return recv.has_ended() && (end.count > 0); });
    ASSERT_EQ(UCS_OK, recv.status);
    for (size_t i = 0; i < 5000; i++) {
        ASSERT_EQ(*m_recv.where[i], recv.mem.bytes[i]) << i;
    }
}

/* An unexpected request contains the address of the data: the view's. */
TEST_P(dcx_view_tag, unexpected_rendezvous_of_a_view)
{
    uct_iov_t from = iov(false);
    dcx_end end;

    auto op = retry([&] {
        return uct_ep_tag_rndv_zcopy(m_dcx.ep, 6, "head", 4, &from, 1, 0,
                                     &end.comp);
    });
    ASSERT_FALSE(UCS_PTR_IS_ERR(op));
    progress_until([&] { return !m_unexpected.empty(); });
    EXPECT_EQ(m_view[0]->address, m_unexpected[0].remote);
    EXPECT_EQ(m_view[0]->length, m_unexpected[0].size);
    EXPECT_EQ(UCS_OK, uct_ep_tag_rndv_cancel(m_dcx.ep, op));
}

/* A rendezvous request of software is in the first bytes. */
TEST_P(dcx_view_tag, request)
{
    std::string header(100, 'x');

    for (size_t i = 0; i < header.size(); i++) {
        header[i] = i;
    }
    post();
    ASSERT_EQ(UCS_OK, retry([&] {
                  return uct_ep_tag_rndv_request(m_dcx.ep, 5, header.data(),
                                                 header.size(), 0);
              }));
    progress_until([&] { return m_recv.has_ended(); });
    EXPECT_EQ(1u, m_recv.num_rndv);
    EXPECT_EQ(header, std::string(m_recv.header.begin(), m_recv.header.end()));
}

INSTANTIATE_TEST_SUITE_P(tags, dcx_view_tag, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(cached, dcx_view_test, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(strict, dcx_view_test, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(alone, dcx_view_test, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(cached, dcx_view_far, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(strict, dcx_view_far, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(roce, dcx_view_test, testing::Values(0));

} /* namespace */

int main(int argc, char **argv)
{
    std::vector<std::pair<const char *, const char *>> env = {
        {"UCX_DCX_FAILURE", "error"},
        {"UCX_DCX_TYPES", "y"},
        {"UCX_DCX_TYPES_MAX", "16"},
        {"SOFTHCA_LOG", "error"},
    };
    auto cached = env, strict = env, roce = env, tags = env, few = env;
    auto set = env, alone = env, gpu = env;

    cached.push_back({"UCX_DCX_RCACHE", "y"});
    alone.push_back({"UCX_DCX_RCACHE", "auto"});
    strict.push_back({"UCX_DCX_RCACHE", "n"});
    strict.push_back({"SOFTHCA_STRICT", "1"});
    roce.push_back({"SOFTHCA_LINK", "roce"});
    roce.push_back({"UCX_DCX_RCACHE", "y"});
    few.push_back({"UCX_DCX_UMR_LAYOUTS", "3"});
    few.push_back({"UCX_DCX_RCACHE", "y"});
    tags.push_back({"UCX_DCX_TM_ENABLE", "y"});
    gpu.push_back({"UCX_DCX_RCACHE", "n"});
    gpu.push_back({"DCX_TEST_PEER_MEM", "y"});
    set.push_back({"UCX_DCX_TYPES_MIN_LENGTH", "16k"});
    set.push_back({"UCX_DCX_TYPES_MIN_BLOCK", "1"});
    return hca_test_main(argc, argv,
                         {{"cached", cached},
                          {"alone", alone},
                          {"strict", strict},
                          {"roce", roce},
                          {"tags", tags},
                          {"few", few},
                          {"gpu", gpu},
                          {"measured", env},
                          {"set", set}});
}
