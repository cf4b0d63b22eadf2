/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Memory that is registered on demand (UCX_DCX_ODP): not pinned, faulted in by
 * the device, prefetched on advice, pinned where a key has to name it, and
 * dropped by the kernel while puts and gets run. On devices without on-demand
 * paging for DC the memory is pinned.
 */
#include "dcx_layout_bench.h"
#include "dcx_pack_key.h"
#include "privileges.h"

#include <algorithm>
#include <atomic>
#include <sys/mman.h>
#include <sys/resource.h>
#include <thread>

namespace {

const size_t page = 4096;

/* Pages that nothing has touched, registered with @flags */
class odp_mem {
public:
    odp_mem(dcx_loop &dcx, size_t size,
            unsigned flags = UCT_MD_MEM_FLAG_NONBLOCK,
            int prot       = PROT_READ | PROT_WRITE) :
        length(size),
        m_dcx(dcx)
    {
        addr = (uint8_t *)mmap(NULL, size, prot,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
                               0);
        HCA_CHECK_CALL(addr != MAP_FAILED);
        HCA_CHECK_CALL(madvise(addr, size, MADV_NOHUGEPAGE) == 0);
        UCT_CALL(uct_md_mem_reg(dcx.md(), addr, size,
                                ((prot & PROT_WRITE) ?
                                     UCT_MD_MEM_ACCESS_ALL :
                                     UCT_MD_MEM_ACCESS_REMOTE_GET) |
                                    flags,
                                &memh));
    }

    ~odp_mem()
    {
        release();
        munmap(addr, length);
    }

    odp_mem(const odp_mem &) = delete;

    void release()
    {
        if (memh != NULL) {
            UCT_CALL(uct_md_mem_dereg(m_dcx.md(), memh));
            memh = NULL;
        }
    }

    uct_rkey_t rkey()
    {
        uct_md_attr_t attr;
        uct_rkey_bundle_t bundle;

        UCT_CALL(uct_md_query(m_dcx.md(), &attr));
        std::vector<uint8_t> key(attr.rkey_packed_size);
        UCT_CALL(uct_md_mkey_pack(m_dcx.md(), memh, key.data()));
        UCT_CALL(uct_rkey_unpack(m_dcx.component(), key.data(), &bundle));
        return bundle.rkey;
    }

    uct_iov_t piece(size_t offset, size_t bytes, size_t stride = 0,
                    unsigned count = 1) const
    {
        return {addr + offset, bytes, memh, stride, count};
    }

    /* Packs a key that can be invalidated. */
    ucs_status_t pack_invalidated()
    {
        std::vector<uint8_t> key(64);

        return dcx_pack_key(m_dcx.md(), memh, addr, length, true, key.data());
    }

    /* Takes the pages away, as a program does that frees memory too early. */
    void unmap() { HCA_CHECK_CALL(munmap(addr, length) == 0); }

    /* Returns the number of pages that the process has in memory. */
    size_t resident() const
    {
        std::vector<unsigned char> there((length + page - 1) / page);

        HCA_CHECK_CALL(mincore(addr, length, there.data()) == 0);
        return std::count_if(there.begin(), there.end(),
                             [](unsigned char c) { return c & 1; });
    }

    const size_t length;
    uint8_t *addr;
    uct_mem_h memh = NULL;

private:
    dcx_loop &m_dcx;
};

class dcx_odp : public testing::TestWithParam<int> {
protected:
    dcx_odp() { UCT_CALL(uct_md_query(m_dcx.md(), &m_attr)); }

    /* Puts @value, or gets it, and waits. */
    ucs_status_t put(odp_mem &mem, size_t offset, uint64_t value)
    {
        EXPECT_EQ(UCS_OK,
                  uct_ep_put_short(m_dcx.ep, &value, sizeof(value),
                                   (uintptr_t)mem.addr + offset, mem.rkey()));
        m_dcx.flush();
        return m_dcx.errors.empty() ? UCS_OK : m_dcx.errors.back();
    }

    /* Copies @length bytes between two places by a put. */
    void copy(odp_mem &from, size_t offset, odp_mem &to, size_t to_offset,
              size_t length)
    {
        uct_iov_t iov   = from.piece(offset, length);
        uint64_t remote = (uintptr_t)to.addr + to_offset;
        ucs_status_t status;

        status = uct_ep_put_zcopy(m_dcx.ep, &iov, 1, remote, to.rkey(), NULL);
        EXPECT_TRUE((status == UCS_OK) || (status == UCS_INPROGRESS));
        m_dcx.flush();
        EXPECT_TRUE(m_dcx.errors.empty());
    }

    dcx_loop m_dcx;
    uct_md_attr_t m_attr;
};

/* --- a device with on-demand paging --------------------------------------- */

TEST_P(dcx_odp, is_announced)
{
    EXPECT_TRUE(m_attr.cap.flags & UCT_MD_FLAG_ADVISE);
}

TEST_P(dcx_odp, registration_touches_no_page)
{
    odp_mem demand(m_dcx, 64 * page), pinned(m_dcx, 64 * page, 0);

    EXPECT_EQ(0u, demand.resident());
    EXPECT_EQ(UCS_OK, put(demand, 5 * page, 77));
    EXPECT_EQ(77u, *(uint64_t *)(demand.addr + 5 * page));
    EXPECT_EQ(1u, demand.resident());
    EXPECT_LT(0u, pinned.resident());
}

TEST_P(dcx_odp, put_get_and_atomic_find_missing_pages)
{
    odp_mem from(m_dcx, 64 * page), to(m_dcx, 64 * page);
    uint64_t result       = 1;
    uct_completion_t comp = {};

    memset(from.addr, 0x5a, page);
    copy(from, 0, to, 100, 3 * page); /* two of its pages are missing, too */
    EXPECT_EQ(0x5a, to.addr[100 + page - 1]);
    EXPECT_EQ(0, to.addr[100 + page]);

    comp.count = 2;
    EXPECT_EQ(UCS_INPROGRESS,
              uct_ep_atomic64_fetch(m_dcx.ep, UCT_ATOMIC_OP_ADD, 5, &result,
                                    (uintptr_t)to.addr + 9 * page, to.rkey(),
                                    &comp));
    m_dcx.flush();
    EXPECT_EQ(0u, result);
    EXPECT_EQ(5u, *(uint64_t *)(to.addr + 9 * page));
    EXPECT_TRUE(m_dcx.errors.empty());
}

TEST_P(dcx_odp, memory_that_is_only_read)
{
    odp_mem from(m_dcx, 4 * page, UCT_MD_MEM_FLAG_NONBLOCK, PROT_READ);
    odp_mem to(m_dcx, 4 * page);
    uct_iov_t iov = to.piece(0, page);

    memset(to.addr, 0x77, page);
    EXPECT_EQ(UCS_INPROGRESS,
              uct_ep_get_zcopy(m_dcx.ep, &iov, 1, (uintptr_t)from.addr,
                               from.rkey(), NULL));
    m_dcx.flush();
    EXPECT_TRUE(m_dcx.errors.empty());
    EXPECT_EQ(0, to.addr[100]);
}

TEST_P(dcx_odp, advice_prefetches)
{
    odp_mem mem(m_dcx, 64 * page), pinned(m_dcx, 64 * page, 0);

    EXPECT_EQ(UCS_OK,
              uct_md_mem_advise(m_dcx.md(), mem.memh, mem.addr + 8 * page,
                                16 * page, UCT_MADV_NORMAL));
    EXPECT_EQ(0u, mem.resident());
    EXPECT_EQ(UCS_OK,
              uct_md_mem_advise(m_dcx.md(), mem.memh, mem.addr + 8 * page,
                                16 * page, UCT_MADV_WILLNEED));
    EXPECT_EQ(16u, mem.resident());
    EXPECT_EQ(UCS_OK, uct_md_mem_advise(m_dcx.md(), pinned.memh, pinned.addr,
                                        page, UCT_MADV_WILLNEED));
}

TEST_P(dcx_odp, advice_beyond_the_memory_is_an_error)
{
    odp_mem mem(m_dcx, 4 * page);

    EXPECT_EQ(UCS_ERR_IO_ERROR,
              uct_md_mem_advise(m_dcx.md(), mem.memh, mem.addr, 5 * page,
                                UCT_MADV_WILLNEED));
}

TEST_P(dcx_odp, unmapped_memory_ends_the_endpoint)
{
    odp_mem mem(m_dcx, 4 * page);

    m_dcx.survives_errors = true;
    /* not munmap(): other memory may come to the hole */
    ASSERT_EQ(0, mprotect(mem.addr + page, page, PROT_NONE));
    EXPECT_NE(UCS_OK, put(mem, page, 1));
}

/* Data stays right while the kernel takes pages away. */
TEST_P(dcx_odp, data_is_right_under_memory_pressure)
{
    const size_t num = 64;
    odp_mem from(m_dcx, num * page), to(m_dcx, num * page);
    std::vector<uint8_t> expected(num * page);
    std::mt19937 random(11);

    for (unsigned round = 0; round < 60; round++) {
        size_t a = random() % num, b = random() % num;
        size_t length = 1 + random() % ((num - std::max(a, b)) * page);
        size_t drop   = random() % num;

        for (size_t i = 0; i < length; i++) {
            from.addr[a * page + i] = random();
        }
        ASSERT_EQ(0, madvise(from.addr, from.length, MADV_PAGEOUT));
        ASSERT_EQ(0, madvise(to.addr, to.length, MADV_PAGEOUT));
        ASSERT_EQ(0, madvise(to.addr + drop * page, page, MADV_DONTNEED));
        std::fill_n(expected.begin() + drop * page, page, 0);
        copy(from, a * page, to, b * page, length);
        std::copy_n(from.addr + a * page, length, expected.begin() + b * page);
        ASSERT_EQ(0, memcmp(expected.data(), to.addr, to.length)) << round;
    }
}

/* --- keys that name it: pinned first -------------------------------------- */

TEST_P(dcx_odp, refused_layout_does_not_pin_it)
{
    odp_mem mem(m_dcx, 4 * page);
    layout_handle rows(m_dcx, 8);
    uintptr_t start = (uintptr_t)mem.addr;
    ucx_log_reader log;

    EXPECT_EQ(UCS_ERR_INVALID_PARAM,
              rows.try_set(1, {{start, 64, 0, mem.memh},
                               {start + 4 * page, 64, 0, mem.memh}}));
    EXPECT_NE(std::string::npos, log.take().find("outside the memory"));
    EXPECT_EQ(UCS_ERR_INVALID_PARAM,
              rows.try_set(1, {{start, 64, 0, mem.memh},
                               {start + 32, 64, 0, mem.memh}}));
    EXPECT_NE(std::string::npos, log.take().find("overlap"));
    EXPECT_FALSE(dcx_peek_is_pinned(mem.memh));
}

/* Blocks of memory of either kind, in an order that names one twice */
TEST_P(dcx_odp, layout_names_pinned_keys_only)
{
    odp_mem a(m_dcx, 4 * page), b(m_dcx, 4 * page), far(m_dcx, page);
    odp_mem pinned(m_dcx, page, 0);
    layout_handle layout(m_dcx, 8);
    uct_iov_t iov = {NULL, 4 * 16, layout.memh, 0, 1};

    for (unsigned i = 0; i < 2; i++) { /* the second time they are pinned */
        memset(a.addr, 0x10 + i, 2 * page);
        memset(b.addr, 0x20 + i, page);
        memset(pinned.addr, 0x30 + i, page);
        ASSERT_EQ(UCS_OK,
                  layout.try_set(1,
                                 {{(uintptr_t)a.addr, 16, 0, a.memh},
                                  {(uintptr_t)b.addr + i, 16, 0, b.memh},
                                  {(uintptr_t)pinned.addr, 16, 0, pinned.memh},
                                  {(uintptr_t)a.addr + page, 16, 0, a.memh}},
                                 UCT_MD_MEM_ACCESS_RMA));
        EXPECT_EQ(UCS_OK, layout.wait());
        EXPECT_EQ(UCS_INPROGRESS,
                  uct_ep_put_zcopy(m_dcx.ep, &iov, 1, (uintptr_t)far.addr,
                                   far.rkey(), NULL));
        m_dcx.flush();
        EXPECT_TRUE(m_dcx.errors.empty());
        EXPECT_EQ(0x10 + i, far.addr[0]);
        EXPECT_EQ(0x20 + i, far.addr[31]);
        EXPECT_EQ(0x30 + i, far.addr[32]);
        EXPECT_EQ(0x10 + i, far.addr[63]);
    }
    EXPECT_FALSE(dcx_peek_is_pinned(far.memh));
}

TEST_P(dcx_odp, short_strided_operation_does_not_pin_it)
{
    odp_mem mem(m_dcx, 4 * page), far(m_dcx, 4 * page);
    uct_iov_t iov = mem.piece(0, 64, page, 4);

    for (unsigned i = 0; i < 4; i++) {
        memset(mem.addr + i * page, i + 1, 64);
    }
    EXPECT_EQ(UCS_INPROGRESS,
              uct_ep_put_zcopy(m_dcx.ep, &iov, 1, (uintptr_t)far.addr,
                               far.rkey(), NULL));
    m_dcx.flush();
    EXPECT_TRUE(m_dcx.errors.empty());
    EXPECT_FALSE(dcx_peek_is_pinned(mem.memh));
    for (unsigned i = 0; i < 4; i++) {
        EXPECT_EQ(i + 1, far.addr[64 * i + 63]);
    }

    /* back, to other places */
    iov = mem.piece(128, 64, page, 4);
    EXPECT_EQ(UCS_INPROGRESS,
              uct_ep_get_zcopy(m_dcx.ep, &iov, 1, (uintptr_t)far.addr,
                               far.rkey(), NULL));
    m_dcx.flush();
    EXPECT_TRUE(m_dcx.errors.empty());
    EXPECT_FALSE(dcx_peek_is_pinned(mem.memh));
    EXPECT_EQ(4, mem.addr[3 * page + 128 + 63]);
}

TEST_P(dcx_odp, refused_strided_operation_does_not_pin_it)
{
    odp_mem mem(m_dcx, 256 * page), far(m_dcx, page);
    uct_iov_t iov = mem.piece(0, 1024, 512, 256);
    ucx_log_reader log;

    EXPECT_EQ(UCS_ERR_INVALID_PARAM,
              uct_ep_get_zcopy(m_dcx.ep, &iov, 1, (uintptr_t)far.addr,
                               far.rkey(), NULL));
    EXPECT_NE("", log.take());
    EXPECT_FALSE(dcx_peek_is_pinned(mem.memh));
}

/* Each use that has to pin says why it cannot, and leaves nothing behind: the
 * next attempt, with memory there again, succeeds. */
TEST_P(dcx_odp, memory_that_cannot_be_pinned)
{
    odp_mem mem(m_dcx, 256 * page), far(m_dcx, 256 * page);
    layout_handle rows(m_dcx, 4);
    uct_iov_t iov     = mem.piece(0, 1024, page, 256);
    const blocks list = {{(uintptr_t)mem.addr, 8, page - 8, mem.memh}};
    ucx_log_reader log;

    mem.unmap();
    EXPECT_EQ(UCS_ERR_IO_ERROR, rows.try_set(8, list));
    EXPECT_NE(std::string::npos, log.take().find("failed to pin"));
    EXPECT_EQ(UCS_ERR_IO_ERROR,
              uct_ep_put_zcopy(m_dcx.ep, &iov, 1, (uintptr_t)far.addr,
                               far.rkey(), NULL));
    EXPECT_NE(std::string::npos, log.take().find("failed to pin"));
    EXPECT_EQ(UCS_ERR_IO_ERROR, mem.pack_invalidated());
    EXPECT_NE(std::string::npos, log.take().find("failed to pin"));
    EXPECT_FALSE(dcx_peek_is_pinned(mem.memh));

    ASSERT_EQ(mem.addr,
              mmap(mem.addr, mem.length, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0));
    EXPECT_EQ(UCS_OK, rows.try_set(8, list));
    EXPECT_EQ(UCS_OK, rows.wait());
    EXPECT_TRUE(dcx_peek_is_pinned(mem.memh));
    EXPECT_EQ(UCS_OK, mem.pack_invalidated());
    EXPECT_EQ("", log.take());
}

TEST_P(dcx_odp, layout_pins_it)
{
    odp_mem mem(m_dcx, 16 * page), far(m_dcx, 16 * page);
    layout_handle rows(m_dcx, 4);
    uct_iov_t iov = {NULL, 64, rows.memh, 0, 1};

    ASSERT_EQ(UCS_OK,
              rows.try_set(8, {{(uintptr_t)mem.addr, 8, page - 8, mem.memh}}));
    EXPECT_EQ(UCS_OK, rows.wait());
    EXPECT_TRUE(dcx_peek_is_pinned(mem.memh));
    EXPECT_FALSE(dcx_peek_is_pinned(far.memh));
    for (unsigned i = 0; i < 8; i++) {
        mem.addr[i * page] = i + 1;
    }
    EXPECT_EQ(UCS_INPROGRESS,
              uct_ep_put_zcopy(m_dcx.ep, &iov, 1, (uintptr_t)far.addr,
                               far.rkey(), NULL));
    m_dcx.flush();
    for (unsigned i = 0; i < 8; i++) {
        EXPECT_EQ(i + 1, far.addr[8 * i]);
    }
}

TEST_P(dcx_odp, strided_operation_pins_it)
{
    odp_mem mem(m_dcx, 256 * page), far(m_dcx, 256 * page);
    uct_iov_t iov = mem.piece(0, 1024, page, 256);

    for (unsigned i = 0; i < 256; i++) {
        memset(mem.addr + i * page, i, 1024);
    }
    /* there is no resource until the device has the layout */
    EXPECT_TRUE(hca_until([&] {
        ucs_status_t status = uct_ep_put_zcopy(
            m_dcx.ep, &iov, 1, (uintptr_t)far.addr, far.rkey(), NULL);

        uct_worker_progress(m_dcx.worker);
        return status == UCS_INPROGRESS;
    }));
    m_dcx.flush();
    EXPECT_TRUE(m_dcx.errors.empty());
    EXPECT_TRUE(dcx_peek_is_pinned(mem.memh));
    for (unsigned i = 0; i < 256; i++) {
        ASSERT_EQ(i, far.addr[1024 * i + 1023]);
    }
}

/* --- locked memory is short ----------------------------------------------- */

class dcx_odp_locked : public dcx_odp {
protected:
    dcx_odp_locked()
    {
        HCA_CHECK_CALL(getrlimit(RLIMIT_MEMLOCK, &m_limit) == 0);
        set_privileged(false);
    }

    ~dcx_odp_locked()
    {
        set_limit(m_limit.rlim_cur);
        set_privileged(true);
    }

    void set_limit(size_t bytes)
    {
        struct rlimit limit = m_limit;

        limit.rlim_cur = bytes;
        HCA_CHECK_CALL(setrlimit(RLIMIT_MEMLOCK, &limit) == 0);
    }

    /* Lowers the limit so that @bytes can be pinned, but not twice. */
    void leave(size_t bytes)
    {
        odp_mem probe(m_dcx, bytes);
        ucx_log_reader log;
        size_t limit = bytes / 2;

        do {
            limit += bytes / 2;
            set_limit(limit);
        } while (probe.pack_invalidated() != UCS_OK);
    }

    struct rlimit m_limit;
};

/* Threads that pin the same memory pin it once. */
TEST_P(dcx_odp_locked, threads_pin_it_once)
{
    const size_t size = 4 << 20;

    leave(size);
    for (unsigned round = 0; round < 50; round++) {
        odp_mem mem(m_dcx, size);
        std::vector<std::thread> threads;
        std::atomic<unsigned> ready{0}, failed{0};

        for (unsigned i = 0; i < 4; i++) {
            threads.emplace_back([&] {
                ucx_log_reader log;

                ready++;
                while (ready < 4) {
                }
                failed += (mem.pack_invalidated() != UCS_OK);
            });
        }
        for (auto &thread : threads) {
            thread.join();
        }
        ASSERT_EQ(0u, failed) << "round " << round;
        EXPECT_TRUE(dcx_peek_is_pinned(mem.memh));
    }
}

INSTANTIATE_TEST_SUITE_P(locked, dcx_odp_locked, testing::Values(0));

INSTANTIATE_TEST_SUITE_P(odp, dcx_odp, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(cached, dcx_odp, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(relaxed, dcx_odp, testing::Values(0));

/* --- a device without, or UCX_DCX_ODP=n ----------------------------------- */

class dcx_no_odp : public dcx_odp {};

TEST_P(dcx_no_odp, memory_is_pinned)
{
    odp_mem mem(m_dcx, 4 * page);

    EXPECT_FALSE(m_attr.cap.flags & UCT_MD_FLAG_ADVISE);
    EXPECT_TRUE(dcx_peek_is_pinned(mem.memh));
    EXPECT_EQ(UCS_OK, put(mem, page, 3));
    EXPECT_EQ(3, mem.addr[page]);
    EXPECT_EQ(UCS_OK, uct_md_mem_advise(m_dcx.md(), mem.memh, mem.addr, page,
                                        UCT_MADV_WILLNEED));
}

INSTANTIATE_TEST_SUITE_P(off, dcx_no_odp, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(vf, dcx_no_odp, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(cx6, dcx_no_odp, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(ddp, dcx_no_odp, testing::Values(0));

} /* namespace */

int main(int argc, char **argv)
{
    return hca_test_main(
        argc, argv,
        {{"odp", {{"UCX_DCX_ODP", "y"}, {"SOFTHCA_PAGE_FAULT", "500"}}},
         {"cached", {{"UCX_DCX_RCACHE", "y"}}},
         {"locked", {{"SOFTHCA_MEMLOCK", "y"}, {"UCX_DCX_RX_QUEUE_LEN", "64"}}},
         {"relaxed",
          {{"SOFTHCA_ORDER", "relaxed"},
           {"UCX_DCX_PCI_RELAXED_ORDERING", "y"}}},
         {"off", {{"UCX_DCX_ODP", "n"}}},
         {"vf", {{"SOFTHCA_MODEL", "vf"}}},
         {"cx6", {{"SOFTHCA_MODEL", "cx6"}}},
         {"ddp", {{"SOFTHCA_ORDER", "ooo"}}}});
}
