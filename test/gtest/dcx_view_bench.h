/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Base of tests of views (dcx_view_ops.h) on the device: an interface in whose
 * domain views are opened, and its peer, another interface with a domain of its
 * own.
 */
#ifndef DCX_TEST_DCX_VIEW_BENCH_H
#define DCX_TEST_DCX_VIEW_BENCH_H

#include "dcx_end.h"
#include "dcx_layouts.h"
#include "dcx_region.h"
#include "dcx_view_type.h"
#include "ucx_log.h"

#include <memory>
#include <sys/mman.h>

/* Mapped pages, which a test may unmap */
struct view_pages {
    explicit view_pages(size_t size, unsigned seed = 1) : length(size)
    {
        map(0, length);

        std::minstd_rand random(seed);

        for (size_t i = 0; i < length; i++) {
            bytes[i] = random();
        }
    }

    ~view_pages() { munmap(bytes, length); }

    view_pages(const view_pages &) = delete;

    void map(size_t offset, size_t size)
    {
        void *at = mmap((bytes != NULL) ? bytes + offset : NULL, size,
                        PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS |
                            ((bytes != NULL) ? MAP_FIXED : 0),
                        -1, 0);

        HCA_CHECK_CALL(at != MAP_FAILED);
        bytes = (bytes != NULL) ? bytes : (uint8_t *)at;
    }

    void unmap(size_t offset, size_t size)
    {
        HCA_CHECK_CALL(munmap(bytes + offset, size) == 0);
    }

    uint8_t *bytes = NULL;
    size_t length;
};

/* Checks that nothing is logged when domains are closed: objects that were not
 * freed would be. */
struct view_last_log {
    ~view_last_log() { EXPECT_EQ("", log.take()); }

    ucx_log_reader log;
};

class dcx_view_bench : public testing::TestWithParam<int> {
protected:
    enum { SIZE = 1 << 20, AM_ID = 7 };

    dcx_view_bench() :
        m_ep(m_dcx.make_ep(m_peer)), m_peer_ep(m_peer.make_ep(m_dcx)),
        m_flat(m_peer, SIZE, 3)
    {
        m_dcx.survives_errors  = true;
        m_peer.survives_errors = true;
        UCT_CALL(uct_iface_set_am_handler(m_peer.iface, AM_ID, arrived,
                                          &m_message, 0));
    }

    ~dcx_view_bench()
    {
        void *md = m_dcx.md();

        uct_ep_destroy(m_ep);
        uct_ep_destroy(m_peer_ep);
        m_dcx.flush();
        m_peer.flush();
        m_views->leave(&md, 1);
        EXPECT_EQ("", m_log.take());
    }

    static ucs_status_t arrived(void *arg, void *data, size_t length, unsigned)
    {
        ((std::vector<uint8_t> *)arg)
            ->assign((uint8_t *)data, (uint8_t *)data + length);
        return UCS_OK;
    }

    uct_dcx_view_status_t try_open(const shape_data_t &data, bool is_dest,
                                   uct_dcx_view_t **view)
    {
        void *md = m_dcx.md();

        return m_views->open(&md, 1, &data, is_dest, view);
    }

    /* Opens a view of @count elements of a type in memory. */
    uct_dcx_view_t *open(const view_type &type, uint8_t *buffer, size_t count,
                         bool is_dest)
    {
        shape_data_t data    = {type.shape, (char *)buffer, count};
        uct_dcx_view_t *view = NULL;

        EXPECT_EQ(UCT_DCX_VIEW_OK, try_open(data, is_dest, &view));
        if (view != NULL) {
            EXPECT_EQ(shape_length(&data), view->length);
        }
        return view;
    }

    /* Returns the memory handle of a view, as UCP gets it: for its
     * addresses. */
    uct_mem_h handle(const uct_dcx_view_t *view)
    {
        uct_mem_h memh;

        UCT_CALL(uct_md_mem_reg(m_dcx.md(), (void *)view->address, view->length,
                                UCT_MD_MEM_ACCESS_ALL, &memh));
        return memh;
    }

    uct_rkey_t rkey(const uct_dcx_view_t *view)
    {
        std::vector<uint8_t> packed(64);
        uct_rkey_bundle_t bundle;

        UCT_CALL(uct_md_mkey_pack(m_dcx.md(), handle(view), packed.data()));
        UCT_CALL(uct_rkey_unpack(m_dcx.component(), packed.data(), &bundle));
        uct_rkey_release(m_dcx.component(), &bundle);
        return bundle.rkey; /* a number */
    }

    template <typename F> void progress_until(F done)
    {
        dcx_deadline deadline;

        while (!done()) {
            deadline.check("progress");
            uct_worker_progress(m_dcx.worker);
            uct_worker_progress(m_peer.worker);
        }
    }

    /* Posts as soon as there is room; returns the completion's status. */
    template <typename F> ucs_status_t run(F post)
    {
        ucs_status_t status;
        dcx_end end;

        progress_until([&] {
            status = post(&end.comp);
            return status != UCS_ERR_NO_RESOURCE;
        });
        if (status == UCS_INPROGRESS) {
            progress_until([&] { return end.count > 0; });
            status = end.status;
        }
        return status;
    }

    uct_iov_t flat(size_t length)
    {
        return {m_flat.bytes.data(), length, m_flat.memh, 0, 1};
    }

    /* Put or get between the peer's memory and a view. */
    ucs_status_t peer_put(uct_rkey_t rkey, uint64_t address, size_t length)
    {
        uct_iov_t iov = flat(length);

        return run([&](uct_completion_t *comp) {
            return uct_ep_put_zcopy(m_peer_ep, &iov, 1, address, rkey, comp);
        });
    }

    ucs_status_t peer_get(uct_rkey_t rkey, uint64_t address, size_t length)
    {
        uct_iov_t iov = flat(length);

        return run([&](uct_completion_t *comp) {
            return uct_ep_get_zcopy(m_peer_ep, &iov, 1, address, rkey, comp);
        });
    }

    /* Runs a put from the view to the peer's memory, or a get into it. */
    ucs_status_t own(decltype(uct_ep_put_zcopy) *op, const uct_dcx_view_t *view)
    {
        uct_iov_t iov = {(void *)view->address, view->length, handle(view), 0,
                         1};

        return run([&](uct_completion_t *comp) {
            return op(m_ep, &iov, 1, (uintptr_t)m_flat.bytes.data(),
                      dcx_peek_rkey(m_flat.memh), comp);
        });
    }

    void refill()
    {
        for (auto &byte : m_flat.bytes) {
            byte = byte * 5 + 89;
        }
    }

    /* Checks that `run` copies the bytes at these offsets in `buffer` to the
     * peer's memory, and changes no other byte there. */
    template <typename F>
    void expect_gathered(const uint8_t *buffer,
                         const std::vector<ptrdiff_t> &places, F run)
    {
        refill();

        auto expected = m_flat.bytes;

        for (size_t i = 0; i < places.size(); i++) {
            expected[i] = buffer[places[i]];
        }
        ASSERT_EQ(UCS_OK, run());
        ASSERT_TRUE(expected == m_flat.bytes);
    }

    /* Checks the reverse: a copy of the peer's memory to these offsets. */
    template <typename F>
    void expect_scattered(view_pages &pages, uint8_t *buffer,
                          const std::vector<ptrdiff_t> &places, F run)
    {
        refill();

        std::vector<uint8_t> expected(pages.bytes, pages.bytes + pages.length);

        for (size_t i = 0; i < places.size(); i++) {
            expected[buffer - pages.bytes + places[i]] = m_flat.bytes[i];
        }
        ASSERT_EQ(UCS_OK, run());
        ASSERT_EQ(0, memcmp(expected.data(), pages.bytes, pages.length));
    }

    /* Checks a view as a send's source. */
    void check_source(const view_type &type, uint8_t *buffer, size_t count)
    {
        auto places          = type.places(count);
        uct_dcx_view_t *view = open(type, buffer, count, false);

        ASSERT_TRUE(view != NULL);
        expect_gathered(buffer, places, [&] {
            return peer_get(rkey(view), view->address, view->length);
        });
        expect_gathered(buffer, places,
                        [&] { return own(uct_ep_put_zcopy, view); });
        EXPECT_EQ("", m_log.take());
        m_views->close(view, 0);
    }

    /* Checks a view as a receive's target. */
    void check_dest(const view_type &type, view_pages &pages, uint8_t *buffer,
                    size_t count)
    {
        auto places          = type.places(count);
        uct_dcx_view_t *view = open(type, buffer, count, true);

        ASSERT_TRUE(view != NULL);
        expect_scattered(pages, buffer, places, [&] {
            return peer_put(rkey(view), view->address, view->length);
        });
        expect_scattered(pages, buffer, places,
                         [&] { return own(uct_ep_get_zcopy, view); });
        EXPECT_EQ("", m_log.take());
        m_views->close(view, 0);
    }

    void check(const view_type &type, view_pages &pages, size_t offset,
               size_t count)
    {
        check_source(type, pages.bytes + offset, count);
        check_dest(type, pages, pages.bytes + offset, count);
    }

    uct_dcx_layout_stats_t stats()
    {
        uct_dcx_layout_stats_t stats;

        UCT_CALL(m_api.query(m_dcx.md(), &stats));
        return stats;
    }

    dcx_views m_views;
    view_last_log m_last_log;
    dcx_loop m_dcx; /* owner of the views */
    dcx_loop m_peer;
    uct_ep_h m_ep, m_peer_ep;
    dcx_region m_flat; /* memory of the peer */
    std::vector<uint8_t> m_message;
    ucx_log_reader m_log;
    dcx_layouts m_api;
};

#endif
