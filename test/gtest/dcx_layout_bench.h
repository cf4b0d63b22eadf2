/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Base of tests of <uct/dcx/dcx.h>, layouts as memory handles: memory, layouts
 * of it with the address of each byte, and operations on them.
 */
#ifndef DCX_TEST_DCX_LAYOUT_BENCH_H
#define DCX_TEST_DCX_LAYOUT_BENCH_H

#include "dcx_end.h"
#include "dcx_layouts.h"
#include "dcx_region.h"
#include "ucx_log.h"

struct layout_mem : dcx_region {
    using dcx_region::dcx_region;

    uct_dcx_block_t at(size_t offset, size_t length, size_t skip = 0)
    {
        return {(uintptr_t)bytes.data() + offset, length, skip, memh};
    }
};

using blocks = std::vector<uct_dcx_block_t>;
using places = std::vector<uint8_t *>;

/* A handle, and the addresses of its bytes, in order */
class layout_handle {
public:
    layout_handle(dcx_loop &loop, size_t max_pieces) : m_dcx(loop)
    {
        UCT_CALL(api.create(loop.iface, max_pieces, &memh));
    }

    ~layout_handle() { release(); }

    layout_handle(const layout_handle &) = delete;

    void release()
    {
        if (memh != NULL) {
            UCT_CALL(uct_md_mem_dereg(m_dcx.md(), memh));
            memh = NULL;
        }
    }

    /* Returns blocks of this layout for use in another. */
    uct_dcx_block_t at(size_t offset, size_t length, size_t skip = 0)
    {
        return {offset, length, skip, memh};
    }

    ucs_status_t try_set(size_t repeat, const blocks &list,
                         uint64_t access = UCT_MD_MEM_ACCESS_RMA)
    {
        uct_dcx_layout_params_t params = {access, repeat, list.size(),
                                          list.data()};

        return api.set(memh, &params);
    }

    ucs_status_t wait()
    {
        dcx_deadline deadline;
        ucs_status_t status;

        while ((status = api.test(memh)) == UCS_INPROGRESS) {
            deadline.check("a layout");
        }
        return status;
    }

    /* Sets the layout and waits for it. @inner: the layout that blocks with its
     * handle refer to, by offsets. */
    void set(size_t repeat, const blocks &list,
             const layout_handle *inner = NULL,
             uint64_t access            = UCT_MD_MEM_ACCESS_RMA)
    {
        ASSERT_EQ(UCS_OK, try_set(repeat, list, access));
        where.clear();
        for (size_t round = 0; round < repeat; round++) {
            for (const auto &block : list) {
                uint64_t address = block.address +
                                   (round * (block.length + block.skip));

                for (size_t i = 0; i < block.length; i++) {
                    where.push_back(
                        ((inner != NULL) && (block.memh == inner->memh)) ?
                            inner->where[address + i] :
                            (uint8_t *)address + i);
                }
            }
        }
        ASSERT_EQ(where.size(), api.length(memh));
        ASSERT_EQ(UCS_OK, wait());
    }

    uct_rkey_t rkey()
    {
        std::vector<uint8_t> packed(64);
        uct_rkey_bundle_t bundle;

        UCT_CALL(uct_md_mkey_pack(m_dcx.md(), memh, packed.data()));
        UCT_CALL(uct_rkey_unpack(m_dcx.component(), packed.data(), &bundle));
        uct_rkey_release(m_dcx.component(), &bundle);
        return bundle.rkey; /* a number */
    }

    std::vector<uint8_t> data() const
    {
        std::vector<uint8_t> data;

        for (uint8_t *place : where) {
            data.push_back(*place);
        }
        return data;
    }

    uct_mem_h memh = NULL;
    places where;
    dcx_layouts api;

private:
    dcx_loop &m_dcx;
};

class dcx_layout_test : public testing::TestWithParam<int> {
protected:
    enum { SIZE = 1 << 18, AM_ID = 7 };

    dcx_layout_test() :
        m_ep(m_dcx.make_ep()), m_a(m_dcx, SIZE, 1), m_b(m_dcx, SIZE, 2),
        m_flat(m_dcx, SIZE, 3)
    {
        m_dcx.survives_errors = true;
    }

    ~dcx_layout_test()
    {
        uct_ep_destroy(m_ep);
        m_dcx.flush();
        EXPECT_EQ("", m_log.take());
    }

    template <typename F> void progress_until(F done)
    {
        dcx_deadline deadline;

        while (!done()) {
            deadline.check("progress");
            uct_worker_progress(m_dcx.worker);
        }
    }

    /* Posts as soon as there is room; returns the completion's status. Replaces
     * the endpoint if that is an error. */
    template <typename F> ucs_status_t run(F post)
    {
        size_t errors = m_dcx.errors.size();
        ucs_status_t status;
        dcx_end end;

        progress_until([&] {
            status = post(&end.comp);
            return status != UCS_ERR_NO_RESOURCE;
        });
        if (status != UCS_INPROGRESS) {
            return status;
        }
        progress_until([&] { return end.count > 0; });
        if (end.status != UCS_OK) {
            progress_until([&] { return m_dcx.errors.size() > errors; });
            uct_ep_destroy(m_ep);
            m_ep = m_dcx.make_ep();
        }
        return end.status;
    }

    /* Put or get contiguous memory at @offset of a remote layout. */
    ucs_status_t put(uct_rkey_t rkey, size_t length, size_t offset = 0)
    {
        uct_iov_t iov = {m_flat.bytes.data(), length, m_flat.memh, 0, 1};

        return run([&](uct_completion_t *comp) {
            return uct_ep_put_zcopy(m_ep, &iov, 1, offset, rkey, comp);
        });
    }

    ucs_status_t get(uct_rkey_t rkey, size_t length, size_t offset = 0)
    {
        uct_iov_t iov = {m_flat.bytes.data(), length, m_flat.memh, 0, 1};

        return run([&](uct_completion_t *comp) {
            return uct_ep_get_zcopy(m_ep, &iov, 1, offset, rkey, comp);
        });
    }

    uct_rkey_t flat_rkey() { return dcx_peek_rkey(m_flat.memh); }

    uint64_t flat_addr() const { return (uintptr_t)m_flat.bytes.data(); }

    /* Runs a put and a get with the layout as remote memory, then with it as
     * local memory. Compares all bytes, including those between blocks. */
    void check(layout_handle &layout)
    {
        size_t length = layout.where.size();
        uct_iov_t iov = {NULL, length, layout.memh, 0, 1};

        ASSERT_NE(0u, length);
        check_to(layout, [&] { return put(layout.rkey(), length); });
        check_to(layout, [&] {
            return run([&](uct_completion_t *comp) {
                return uct_ep_get_zcopy(m_ep, &iov, 1, flat_addr(), flat_rkey(),
                                        comp);
            });
        });
        check_from(layout, [&] { return get(layout.rkey(), length); });
        check_from(layout, [&] {
            return run([&](uct_completion_t *comp) {
                return uct_ep_put_zcopy(m_ep, &iov, 1, flat_addr(), flat_rkey(),
                                        comp);
            });
        });
    }

    template <typename F> void check_to(layout_handle &layout, F run)
    {
        for (auto &byte : m_flat.bytes) {
            byte += 89;
        }

        auto a = m_a.bytes, b = m_b.bytes;

        ASSERT_EQ(UCS_OK, run());
        for (size_t i = 0; i < layout.where.size(); i++) {
            uint8_t *place = layout.where[i];
            bool is_a      = (place >= m_a.bytes.data()) &&
                        (place < m_a.bytes.data() + SIZE);

            (is_a ? a[place - m_a.bytes.data()] :
                    b[place - m_b.bytes.data()]) = m_flat.bytes[i];
        }
        ASSERT_TRUE(a == m_a.bytes);
        ASSERT_TRUE(b == m_b.bytes);
    }

    template <typename F> void check_from(layout_handle &layout, F run)
    {
        for (auto &byte : m_flat.bytes) {
            byte += 89;
        }

        auto a = m_a.bytes, b = m_b.bytes, flat = m_flat.bytes;
        auto data = layout.data();

        ASSERT_EQ(UCS_OK, run());
        std::copy(data.begin(), data.end(), flat.begin());
        ASSERT_TRUE(flat == m_flat.bytes);
        ASSERT_TRUE((a == m_a.bytes) && (b == m_b.bytes));
    }

    uct_dcx_layout_stats_t stats()
    {
        uct_dcx_layout_stats_t stats;

        UCT_CALL(m_api.query(m_dcx.md(), &stats));
        return stats;
    }

    dcx_loop m_dcx;
    uct_ep_h m_ep;
    layout_mem m_a, m_b, m_flat;
    ucx_log_reader m_log;
    dcx_layouts m_api;
};

#endif
