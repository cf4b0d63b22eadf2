/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Memory of a fake GPU (fake_gpu.h): registered as a dma-buf, and by peer
 * memory; announced only where that works. Each operation of the
 * transport has it at both ends: a load or a store of the processor would end
 * the program.
 */
#include "fake_gpu.h"

#include "dcx_layout_bench.h"
#include "dcx_pack_key.h"
#include "dcx_region.h"

#include <functional>
#include <random>

namespace {

const size_t page = 4096;
const size_t size = 64 * page;

/* Registered memory of a GPU, of random bytes */
struct gpu_mem : fake_gpu {
    explicit gpu_mem(dcx_loop &dcx, unsigned seed = 1) :
        fake_gpu(size), m_dcx(dcx)
    {
        std::mt19937 random(seed);

        for (size_t i = 0; i < size; i++) {
            pages[i] = random();
        }
        UCT_CALL(reg());
    }

    ~gpu_mem() { release(); }

    /* Registers all of it the way that the domain has. */
    ucs_status_t reg()
    {
        const struct dcx_dmabuf buf = {fd, 0, addr, size};

        return has_peer_mem() ?
                   uct_md_mem_reg(m_dcx.md(), addr, size,
                                  UCT_MD_MEM_ACCESS_ALL | flags, &memh) :
                   dcx_peek_reg_dmabuf(m_dcx.md(), &buf, &memh);
    }

    void release()
    {
        if (memh != NULL) {
            UCT_CALL(uct_md_mem_dereg(m_dcx.md(), memh));
            memh = NULL;
        }
    }

    uct_iov_t piece(size_t offset, size_t bytes, size_t stride = 0,
                    unsigned count = 1) const
    {
        return {addr + offset, bytes, memh, stride, count};
    }

    uct_rkey_t rkey() const { return dcx_peek_rkey(memh); }

    /* Returns the bytes of blocks, in order. */
    std::vector<uint8_t> data(size_t offset, size_t bytes, size_t stride,
                              unsigned count) const
    {
        std::vector<uint8_t> data;

        for (unsigned i = 0; i < count; i++) {
            const uint8_t *from = pages + offset + (i * stride);

            data.insert(data.end(), from, from + bytes);
        }
        return data;
    }

    uct_mem_h memh = NULL;
    unsigned flags = 0; /* UCT_MD_MEM_*, of peer memory */

private:
    dcx_loop &m_dcx;
};

class dcx_gpu : public testing::TestWithParam<int> {
protected:
    enum { AM_ID = 7 };

    dcx_gpu()
    {
        UCT_CALL(uct_md_query(m_dcx.md(), &m_attr));
        UCT_CALL(
            uct_iface_set_am_handler(m_dcx.iface, AM_ID, came, &m_came, 0));
        m_dcx.survives_errors = true;
    }

    ~dcx_gpu() { EXPECT_EQ("", m_log.take()); }

    static ucs_status_t came(void *arg, void *data, size_t length, unsigned)
    {
        *(std::vector<uint8_t> *)arg = {(uint8_t *)data,
                                        (uint8_t *)data + length};
        return UCS_OK;
    }

    /* Posts as soon as there is room; returns the completion's status. */
    template <typename F> ucs_status_t run(F post)
    {
        dcx_deadline deadline;
        ucs_status_t status;
        dcx_end end;

        while ((status = post(&end.comp)) == UCS_ERR_NO_RESOURCE) {
            deadline.check("room for an operation");
            uct_worker_progress(m_dcx.worker);
        }
        if (status != UCS_INPROGRESS) {
            return status;
        }
        while (end.count == 0) {
            deadline.check("a completion");
            uct_worker_progress(m_dcx.worker);
        }
        return end.status;
    }

    ucs_status_t put(const gpu_mem &to, size_t offset,
                     const std::vector<uct_iov_t> &iov)
    {
        return run([&](uct_completion_t *comp) {
            return uct_ep_put_zcopy(m_dcx.ep, iov.data(), iov.size(),
                                    (uintptr_t)to.addr + offset, to.rkey(),
                                    comp);
        });
    }

    ucs_status_t get(const gpu_mem &from, size_t offset,
                     const std::vector<uct_iov_t> &iov)
    {
        return run([&](uct_completion_t *comp) {
            return uct_ep_get_zcopy(m_dcx.ep, iov.data(), iov.size(),
                                    (uintptr_t)from.addr + offset, from.rkey(),
                                    comp);
        });
    }

    /* Moves few bytes in many pieces, which are copied in memory of the
     * host. */
    void short_pieces()
    {
        const unsigned num = 100;
        gpu_mem from(m_dcx), to(m_dcx, 2);

        for (size_t bytes : {1, 8, 20}) {
            EXPECT_EQ(UCS_OK, put(to, 8, {from.piece(16, bytes, 64, num)}));
            EXPECT_EQ(from.data(16, bytes, 64, num),
                      to.data(8, bytes * num, 0, 1));
            EXPECT_EQ(UCS_OK, get(to, 0, {from.piece(32, bytes, 64, num)}));
            EXPECT_EQ(to.data(0, bytes * num, 0, 1),
                      from.data(32, bytes, 64, num));
        }
    }

    /* Returns the number of layouts that an operation has made. */
    uint64_t layouts_of(const std::function<void()> &what)
    {
        struct dcx_layout_stats before, after;

        dcx_peek_layouts(m_dcx.iface, &before);
        what();
        dcx_peek_layouts(m_dcx.iface, &after);
        return after.misses - before.misses;
    }

    /* Waits for an active or tagged message of at least @length bytes. */
    void wait_for_message(size_t length)
    {
        dcx_deadline deadline;

        while (m_came.size() < length) {
            deadline.check("a message");
            uct_worker_progress(m_dcx.worker);
        }
    }

    dcx_loop m_dcx;
    ucx_log_reader m_log;
    uct_md_attr_t m_attr;
    std::vector<uint8_t> m_came; /* the last active message */
};

/* --- registration --------------------------------------------------------- */

TEST_P(dcx_gpu, is_announced_as_it_is_registered)
{
    uint64_t types = fake_gpu::has_peer_mem() ? UCS_BIT(fake_gpu::TYPE) : 0;

    EXPECT_EQ(types | UCS_BIT(UCS_MEMORY_TYPE_HOST), m_attr.cap.reg_mem_types);
    EXPECT_EQ(UCS_BIT(UCS_MEMORY_TYPE_HOST), m_attr.cap.access_mem_types);
    EXPECT_TRUE(dcx_peek_has_dmabuf(m_dcx.md()));
}

/* A place in the dma-buf, at any address that has the same place in a page */
TEST_P(dcx_gpu, part_of_a_dmabuf)
{
    fake_gpu gpu(size);
    const struct dcx_dmabuf buf = {gpu.fd, (3 * page) + 64,
                                   (void *)(uintptr_t)0x70040, 2 * page};
    uct_mem_h memh;

    ASSERT_EQ(UCS_OK, dcx_peek_reg_dmabuf(m_dcx.md(), &buf, &memh));
    uct_iov_t iov = {m_dcx.mem.data(), 100, m_dcx.memh, 0, 1};
    EXPECT_EQ(UCS_OK, run([&](uct_completion_t *comp) {
                  return uct_ep_put_zcopy(m_dcx.ep, &iov, 1, 0x70040 + page,
                                          dcx_peek_rkey(memh), comp);
              }));
    EXPECT_EQ(0, gpu.pages[(4 * page) + 63]);
    EXPECT_EQ(0, memcmp(m_dcx.mem.data(), gpu.pages + (4 * page) + 64, 100));
    EXPECT_EQ(0, gpu.pages[(4 * page) + 164]);
    EXPECT_EQ(UCS_OK, uct_md_mem_dereg(m_dcx.md(), memh));
}

TEST_P(dcx_gpu, wrong_dmabufs_are_refused)
{
    fake_gpu gpu(size);
    int file = memfd_create("file", 0), closed = dup(file);
    const struct {
        struct dcx_dmabuf buf;
        ucs_status_t status;
        const char *text;
    } rows[] = {
        {{gpu.fd, 64, gpu.addr, page},
         UCS_ERR_INVALID_PARAM,
         "address and offset differ within a page"},
        {{gpu.fd, 0, gpu.addr, 0},
         UCS_ERR_IO_ERROR,
         "the kernel refuses the file, its offset, or the length"},
        {{gpu.fd, -page, gpu.addr, 2 * page},
         UCS_ERR_IO_ERROR,
         "the kernel refuses the file, its offset, or the length"},
        {{gpu.fd, page, gpu.addr, size},
         UCS_ERR_IO_ERROR,
         "the kernel refuses the file, its offset, or the length"},
        {{file, 0, gpu.addr, page},
         UCS_ERR_IO_ERROR,
         "the kernel refuses the file, its offset, or the length"},
        {{closed, 0, gpu.addr, page},
         UCS_ERR_IO_ERROR,
         "the file of the dma-buf is not open"},
    };

    close(closed);
    for (const auto &row : rows) {
        uct_mem_h memh = this;

        EXPECT_EQ(row.status, dcx_peek_reg_dmabuf(m_dcx.md(), &row.buf, &memh))
            << row.text;
        EXPECT_EQ(this, memh);
        std::string logged = m_log.take();
        EXPECT_NE(std::string::npos, logged.find(row.text)) << logged;
    }
    close(file);
}

/* Its exporter takes the memory away. */
TEST_P(dcx_gpu, revoked_memory_ends_the_endpoint)
{
    for (bool is_local : {false, true}) {
        gpu_mem gone(m_dcx), there(m_dcx, 2);
        uct_ep_h ep   = m_dcx.make_ep();
        uct_iov_t iov = (is_local ? gone : there).piece(0, 100);

        ASSERT_EQ(0, ftruncate(gone.fd, 0));
        EXPECT_EQ(UCS_ERR_CONNECTION_RESET, run([&](uct_completion_t *comp) {
                      const gpu_mem &to = is_local ? there : gone;

                      return uct_ep_put_zcopy(ep, &iov, 1, (uintptr_t)to.addr,
                                              to.rkey(), comp);
                  }));
        std::string logged = m_log.take();
        EXPECT_NE(std::string::npos,
                  logged.find("its memory may have been unmapped"))
            << logged;
        uct_ep_destroy(ep);
    }
}

TEST_P(dcx_gpu, key_that_can_be_invalidated)
{
    gpu_mem to(m_dcx);
    uct_iov_t iov = {m_dcx.mem.data(), 100, m_dcx.memh, 0, 1};
    uct_md_mem_dereg_params_t params = {};
    std::vector<uint8_t> key(64);
    uct_rkey_bundle_t bundle;
    uct_ep_h ep = m_dcx.make_ep();
    dcx_end invalidation;
    auto post = [&](uct_completion_t *comp) {
        return uct_ep_put_zcopy(ep, &iov, 1, (uintptr_t)to.addr + 5000,
                                bundle.rkey, comp);
    };

    ASSERT_EQ(UCS_OK, dcx_pack_key(m_dcx.md(), to.memh, to.addr, size, true,
                                   key.data()));
    UCT_CALL(uct_rkey_unpack(m_dcx.component(), key.data(), &bundle));
    EXPECT_EQ(UCS_OK, run(post));
    EXPECT_EQ(0, memcmp(m_dcx.mem.data(), to.pages + 5000, 100));

    params.field_mask = UCT_MD_MEM_DEREG_FIELD_MEMH |
                        UCT_MD_MEM_DEREG_FIELD_FLAGS |
                        UCT_MD_MEM_DEREG_FIELD_COMPLETION;
    params.memh  = to.memh;
    params.flags = UCT_MD_MEM_DEREG_FLAG_INVALIDATE;
    params.comp  = &invalidation.comp;
    ASSERT_EQ(UCS_OK, uct_md_mem_dereg_v2(m_dcx.md(), &params));
    to.memh = NULL;
    EXPECT_EQ(1u, invalidation.count);
    EXPECT_EQ(UCS_OK, invalidation.status);

    memset(to.pages + 5000, 0, 100);
    EXPECT_NE(UCS_OK, run(post));
    EXPECT_NE("", m_log.take());
    EXPECT_EQ(std::vector<uint8_t>(100), to.data(5000, 100, 0, 1));
    UCT_CALL(uct_rkey_release(m_dcx.component(), &bundle));
    uct_ep_destroy(ep);
}

/* --- operations ----------------------------------------------------------- */

TEST_P(dcx_gpu, one_piece)
{
    gpu_mem from(m_dcx), to(m_dcx, 2);

    for (size_t length : {1, 8, 64, 300, 5000, 100000}) {
        EXPECT_EQ(UCS_OK, put(to, 24, {from.piece(40, length)}));
        EXPECT_EQ(0, memcmp(from.pages + 40, to.pages + 24, length));
        EXPECT_EQ(UCS_OK, get(to, 64, {from.piece(0, length)}));
        EXPECT_EQ(0, memcmp(from.pages, to.pages + 64, length));
    }
}

TEST_P(dcx_gpu, short_pieces_are_not_copied)
{
    EXPECT_LE(6u, layouts_of([&] { short_pieces(); }));
}

/* A list with memory of the host and of a GPU */
TEST_P(dcx_gpu, mixed_pieces_are_not_copied)
{
    gpu_mem from(m_dcx), to(m_dcx, 2);
    std::vector<uint8_t> expected;
    std::vector<uct_iov_t> iov;

    for (unsigned i = 0; i < 60; i++) {
        if (i % 2 == 0) {
            iov.push_back({m_dcx.mem.data() + (i * 16), 8, m_dcx.memh, 0, 1});
            expected.insert(expected.end(), m_dcx.mem.data() + (i * 16),
                            m_dcx.mem.data() + (i * 16) + 8);
        } else {
            auto data = from.data(i * 16, 8, 0, 1);

            iov.push_back(from.piece(i * 16, 8));
            expected.insert(expected.end(), data.begin(), data.end());
        }
    }
    EXPECT_EQ(UCS_OK, put(to, 0, iov));
    EXPECT_EQ(expected, to.data(0, expected.size(), 0, 1));
}

TEST_P(dcx_gpu, active_messages)
{
    gpu_mem from(m_dcx);
    const uint32_t header = 0x1234;

    for (unsigned num : {1, 100}) {
        uct_iov_t iov = from.piece(16, 12, 40, num);
        auto expected = from.data(16, 12, 40, num);

        expected.insert(expected.begin(), (uint8_t *)&header,
                        (uint8_t *)(&header + 1));
        EXPECT_EQ(UCS_OK, run([&](uct_completion_t *comp) {
                      return uct_ep_am_zcopy(m_dcx.ep, AM_ID, &header,
                                             sizeof(header), &iov, 1, 0, comp);
                  }));
        wait_for_message(expected.size());
        EXPECT_EQ(expected, m_came);
        m_came.clear();
    }
}

TEST_P(dcx_gpu, layouts)
{
    gpu_mem a(m_dcx), b(m_dcx, 2), flat(m_dcx, 3);
    layout_handle from(m_dcx, 4), to(m_dcx, 4);
    uct_iov_t iov;

    ASSERT_EQ(UCS_OK, from.try_set(50, {{(uintptr_t)a.addr, 8, 24, a.memh}}));
    ASSERT_EQ(UCS_OK, to.try_set(50, {{(uintptr_t)b.addr, 8, 8, b.memh}}));
    ASSERT_EQ(UCS_OK, from.wait());
    ASSERT_EQ(UCS_OK, to.wait());

    iov = {NULL, 400, from.memh, 0, 1};
    EXPECT_EQ(UCS_OK, run([&](uct_completion_t *comp) {
                  return uct_ep_put_zcopy(m_dcx.ep, &iov, 1, 0, to.rkey(),
                                          comp);
              }));
    EXPECT_EQ(a.data(0, 8, 32, 50), b.data(0, 8, 16, 50));
    EXPECT_EQ(UCS_OK, get(flat, 100, {{NULL, 400, to.memh, 0, 1}}));
    EXPECT_EQ(flat.data(100, 400, 0, 1), b.data(0, 8, 16, 50));
}

TEST_P(dcx_gpu, lists)
{
    typedef ucs_status_t put_sgl_t(uct_ep_h, void *const *, const size_t *,
                                   uct_mem_h const *, const uint64_t *,
                                   uct_rkey_t const *, const size_t *,
                                   const size_t *, size_t, uct_completion_t *);
    auto post = (put_sgl_t *)dlsym(dlopen(dcx_loop::module(), RTLD_NOW),
                                   "uct_dcx_put_sgl_zcopy");
    gpu_mem from(m_dcx), to(m_dcx, 2);
    void *buffers[20];
    size_t lengths[20];
    uct_mem_h memhs[20];
    uint64_t remotes[20];
    uct_rkey_t rkeys[20];

    for (unsigned i = 0; i < 20; i++) {
        buffers[i] = from.addr + (i * 100);
        lengths[i] = 10 + i;
        memhs[i]   = from.memh;
        remotes[i] = (uintptr_t)to.addr + (i * 64);
        rkeys[i]   = to.rkey();
    }
    EXPECT_EQ(UCS_OK, run([&](uct_completion_t *comp) {
                  return post(m_dcx.ep, buffers, lengths, memhs, remotes, rkeys,
                              NULL, NULL, 20, comp);
              }));
    for (unsigned i = 0; i < 20; i++) {
        EXPECT_EQ(from.data(i * 100, 10 + i, 0, 1),
                  to.data(i * 64, 10 + i, 0, 1));
    }
}

INSTANTIATE_TEST_SUITE_P(dmabuf, dcx_gpu, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(peer, dcx_gpu, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(relaxed, dcx_gpu, testing::Values(0));

class dcx_gpu_peer : public dcx_gpu {};

/* UCX's cache of memory types is searched for one address. */
TEST_P(dcx_gpu_peer, host_memory_with_a_last_page_of_a_gpu)
{
    const size_t length = 4 * page;
    dcx_region from(m_dcx, 2 * length, 1);
    uint8_t *begin = (uint8_t *)(((uintptr_t)from.bytes.data() + page - 1) &
                                 -page);
    gpu_mem to(m_dcx);
    auto put_some = [&] {
        uct_mem_h memh;

        UCT_CALL(uct_md_mem_reg(m_dcx.md(), begin, length,
                                UCT_MD_MEM_ACCESS_ALL, &memh));
        EXPECT_EQ(UCS_OK, put(to, 0, {{begin, 8, memh, 64, 100}}));
        UCT_CALL(uct_md_mem_dereg(m_dcx.md(), memh));
    };

    EXPECT_EQ(0u, layouts_of(put_some));
    fake_gpu::announce(begin + length - page, page);
    EXPECT_EQ(1u, layouts_of(put_some));
    ucs_memtype_cache_remove(begin + length - page, page);
}

INSTANTIATE_TEST_SUITE_P(peer, dcx_gpu_peer, testing::Values(0));

class dcx_gpu_relaxed : public dcx_gpu {};

TEST_P(dcx_gpu_relaxed, has_a_key_for_local_data)
{
    gpu_mem gpu(m_dcx);

    EXPECT_NE(dcx_peek_lkey(gpu.memh), dcx_peek_rkey(gpu.memh));
}

INSTANTIATE_TEST_SUITE_P(relaxed, dcx_gpu_relaxed, testing::Values(0));

class dcx_gpu_demand : public dcx_gpu {};

TEST_P(dcx_gpu_demand, is_pinned)
{
    gpu_mem gpu(m_dcx);

    ASSERT_NE(0u, m_attr.cap.flags & UCT_MD_FLAG_ADVISE);
    gpu.release();
    gpu.flags = UCT_MD_MEM_FLAG_NONBLOCK;
    ASSERT_EQ(UCS_OK, gpu.reg());
    EXPECT_TRUE(dcx_peek_is_pinned(gpu.memh));
}

INSTANTIATE_TEST_SUITE_P(demand, dcx_gpu_demand, testing::Values(0));

/* --- tags ----------------------------------------------------------------- */

class dcx_gpu_tags : public dcx_gpu {};

/* UCP receives by itself: the device might leave a request in the buffer. */
TEST_P(dcx_gpu_tags, receives_are_left_to_ucp)
{
    gpu_mem gpu(m_dcx);
    layout_handle layout(m_dcx, 4);
    uct_tag_context_t ctx = {};

    ASSERT_EQ(UCS_OK,
              layout.try_set(50, {{(uintptr_t)gpu.addr, 8, 24, gpu.memh}}));
    ASSERT_EQ(UCS_OK, layout.wait());
    for (const uct_iov_t &iov : {gpu.piece(0, 1000), gpu.piece(0, 8, 64, 100),
                                 uct_iov_t{NULL, 400, layout.memh, 0, 1}}) {
        EXPECT_EQ(UCS_ERR_EXCEEDS_LIMIT,
                  uct_iface_tag_recv_zcopy(m_dcx.iface, 5, -1, &iov, 1, &ctx));
    }
    EXPECT_EQ(0u, dcx_peek_num_posted(m_dcx.iface));
}

/* A layout that another one names gets the memory later. */
TEST_P(dcx_gpu_tags, receives_of_nested_layouts_are_left_to_ucp)
{
    gpu_mem gpu(m_dcx);
    layout_handle inner(m_dcx, 4), outer(m_dcx, 4);
    uct_iov_t iov         = {NULL, 16, outer.memh, 0, 1};
    uct_tag_context_t ctx = {};

    ASSERT_EQ(UCS_OK, inner.try_set(8, {{(uintptr_t)m_dcx.mem.data(), 8, 8,
                                         m_dcx.memh}}));
    ASSERT_EQ(UCS_OK, inner.wait());
    ASSERT_EQ(UCS_OK, outer.try_set(1, {{0, 16, 0, inner.memh}}));
    ASSERT_EQ(UCS_OK, outer.wait());
    ASSERT_EQ(UCS_OK,
              inner.try_set(8, {{(uintptr_t)gpu.addr, 8, 8, gpu.memh}}));
    ASSERT_EQ(UCS_OK, inner.wait());
    EXPECT_EQ(UCS_ERR_EXCEEDS_LIMIT,
              uct_iface_tag_recv_zcopy(m_dcx.iface, 5, -1, &iov, 1, &ctx));
    EXPECT_EQ(0u, dcx_peek_num_posted(m_dcx.iface));
}

TEST_P(dcx_gpu_tags, messages)
{
    gpu_mem gpu(m_dcx);

    m_dcx.on_eager = [&](void *data, size_t length, unsigned, uct_tag_t,
                         uint64_t) {
        m_came.assign((uint8_t *)data, (uint8_t *)data + length);
        return UCS_OK;
    };
    for (unsigned num : {1, 100}) {
        uct_iov_t iov = gpu.piece(16, 12, 40, num);

        EXPECT_EQ(UCS_OK, run([&](uct_completion_t *comp) {
                      return uct_ep_tag_eager_zcopy(m_dcx.ep, 7, 0, &iov, 1, 0,
                                                    comp);
                  }));
        wait_for_message(1);
        EXPECT_EQ(gpu.data(16, 12, 40, num), m_came);
        m_came.clear();
    }
}

/* The peer's device fetches the data by the key of the memory, or of a
 * layout. */
TEST_P(dcx_gpu_tags, rendezvous)
{
    const size_t length = 100 * 1200;
    gpu_mem gpu(m_dcx);
    std::vector<uint8_t> dest(length);
    uct_tag_context_t ctx = {};
    uct_mem_h memh;

    ctx.tag_consumed_cb = [](uct_tag_context_t *) {};
    ctx.completed_cb    = [](uct_tag_context_t *self, uct_tag_t, uint64_t,
                          size_t bytes, void *, ucs_status_t status) {
        size_t num = (status == UCS_OK) ? bytes : 0;

        memcpy(self->priv, &num, sizeof(num));
    };
    UCT_CALL(uct_md_mem_reg(m_dcx.md(), dest.data(), length,
                            UCT_MD_MEM_ACCESS_ALL, &memh));
    for (const uct_iov_t &iov :
         {gpu.piece(0, length), gpu.piece(64, 1200, 2400, 100)}) {
        uct_iov_t to = {dest.data(), length, memh, 0, 1};
        dcx_deadline deadline;
        ucs_status_ptr_t request;
        size_t got = 0;
        dcx_end end;

        ASSERT_EQ(UCS_OK,
                  uct_iface_tag_recv_zcopy(m_dcx.iface, 5, -1, &to, 1, &ctx));
        while (!dcx_peek_list_is_told(m_dcx.iface)) {
            deadline.check("a device that knows the list");
        }
        do {
            deadline.check("room for a request");
            uct_worker_progress(m_dcx.worker);
            request = uct_ep_tag_rndv_zcopy(m_dcx.ep, 5, NULL, 0, &iov, 1, 0,
                                            &end.comp);
        } while (UCS_PTR_STATUS(request) == UCS_ERR_NO_RESOURCE);
        ASSERT_TRUE(UCS_PTR_IS_PTR(request));
        memset(ctx.priv, 0, sizeof(got));
        while ((end.count == 0) || (got == 0)) {
            deadline.check("a rendezvous");
            uct_worker_progress(m_dcx.worker);
            memcpy(&got, ctx.priv, sizeof(got));
        }
        EXPECT_EQ(length, got);
        EXPECT_EQ(gpu.data((uint8_t *)iov.buffer - gpu.addr, iov.length,
                           iov.stride, iov.count),
                  dest);
    }
    UCT_CALL(uct_md_mem_dereg(m_dcx.md(), memh));
}

INSTANTIATE_TEST_SUITE_P(tags, dcx_gpu_tags, testing::Values(0));

/* --- the cache ------------------------------------------------------------ */

class dcx_gpu_cache : public dcx_gpu {};

TEST_P(dcx_gpu_cache, keeps_memory_until_it_is_freed)
{
    gpu_mem gpu(m_dcx);
    uint32_t first = dcx_peek_lkey(gpu.memh);

    gpu.release();
    ASSERT_EQ(UCS_OK, gpu.reg());
    EXPECT_EQ(first, dcx_peek_lkey(gpu.memh));
    gpu.release();
    gpu.announce_free();
    fake_gpu::announce(gpu.addr, gpu.length);
    ASSERT_EQ(UCS_OK, gpu.reg());
    EXPECT_NE(first, dcx_peek_lkey(gpu.memh));
}

INSTANTIATE_TEST_SUITE_P(cached, dcx_gpu_cache, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(cached, dcx_gpu, testing::Values(0));

/* --- nothing that registers it -------------------------------------------- */

class dcx_no_gpu : public dcx_gpu {};

TEST_P(dcx_no_gpu, is_not_announced)
{
    fake_gpu gpu(size);
    const struct dcx_dmabuf buf = {gpu.fd, 0, gpu.addr, size};
    uct_mem_h memh;

    EXPECT_EQ(UCS_BIT(UCS_MEMORY_TYPE_HOST), m_attr.cap.reg_mem_types);
    EXPECT_FALSE(dcx_peek_has_dmabuf(m_dcx.md()));
    EXPECT_EQ(UCS_ERR_UNSUPPORTED,
              dcx_peek_reg_dmabuf(m_dcx.md(), &buf, &memh));
    EXPECT_NE(std::string::npos, m_log.take().find("UCX_DCX_GPU_DIRECT_RDMA"));
}

INSTANTIATE_TEST_SUITE_P(none, dcx_no_gpu, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(off, dcx_no_gpu, testing::Values(0));

class dcx_gpu_off : public dcx_gpu {};

/* The kernel registers the memory, although dcx does not announce that. */
TEST_P(dcx_gpu_off, short_pieces_are_not_copied)
{
    EXPECT_LE(6u, layouts_of([&] { short_pieces(); }));
}

INSTANTIATE_TEST_SUITE_P(off, dcx_gpu_off, testing::Values(0));

class dcx_gpu_no_types : public dcx_gpu {};

/* Any memory may be of a GPU. */
TEST_P(dcx_gpu_no_types, short_pieces_are_not_copied)
{
    EXPECT_LE(6u, layouts_of([&] { short_pieces(); }));
}

TEST_P(dcx_gpu_no_types, is_logged)
{
    ucx_log_reader log(UCS_LOG_LEVEL_DIAG);
    dcx_loop dcx;
    std::string logged = log.take();

    EXPECT_NE(std::string::npos, logged.find("UCX_MEMTYPE_CACHE=n")) << logged;
}

INSTANTIATE_TEST_SUITE_P(no_types, dcx_gpu_no_types, testing::Values(0));

class dcx_gpu_refused : public dcx_gpu {};

/* Without peer memory the kernel cannot find the pages. */
TEST_P(dcx_gpu_refused, address_is_refused)
{
    fake_gpu gpu(size);
    uct_mem_h memh;

    EXPECT_EQ(UCS_ERR_IO_ERROR, uct_md_mem_reg(m_dcx.md(), gpu.addr, size,
                                               UCT_MD_MEM_ACCESS_ALL, &memh));
    EXPECT_NE("", m_log.take());
}

TEST_P(dcx_gpu_refused, option_y_fails)
{
    setenv("UCX_DCX_GPU_DIRECT_RDMA", "y", 1);
    EXPECT_THROW(dcx_loop(), std::runtime_error);
    unsetenv("UCX_DCX_GPU_DIRECT_RDMA");
    std::string logged = m_log.take();
    EXPECT_NE(std::string::npos, logged.find("UCX_DCX_GPU_DIRECT_RDMA=y"))
        << logged;
}

INSTANTIATE_TEST_SUITE_P(none, dcx_gpu_refused, testing::Values(0));

class dcx_gpu_forced : public dcx_gpu {};

/* UCX passes dma-bufs since 1.14. */
TEST_P(dcx_gpu_forced, option_y_needs_dmabufs_of_ucx)
{
    setenv("UCX_DCX_GPU_DIRECT_RDMA", "y", 1);
#if UCT_VERNO_MINOR >= 14
    dcx_loop();
#else
    EXPECT_THROW(dcx_loop(), std::runtime_error);
    std::string logged = m_log.take();
    EXPECT_NE(std::string::npos, logged.find("it or UCX has no dma-bufs"))
        << logged;
#endif
    unsetenv("UCX_DCX_GPU_DIRECT_RDMA");
}

INSTANTIATE_TEST_SUITE_P(dmabuf, dcx_gpu_forced, testing::Values(0));

} /* namespace */

int main(int argc, char **argv)
{
    return hca_test_main(
        argc, argv,
        {{"dmabuf", {}},
         {"peer",
          {{"DCX_TEST_PEER_MEM", "y"},
           {"UCX_DCX_RCACHE", "n"},
           {"UCX_DCX_GPU_DIRECT_RDMA", "y"}}},
         {"cached", {{"DCX_TEST_PEER_MEM", "y"}, {"UCX_DCX_RCACHE", "y"}}},
         {"relaxed",
          {{"SOFTHCA_ORDER", "relaxed"},
           {"UCX_DCX_PCI_RELAXED_ORDERING", "y"}}},
         {"demand", {{"DCX_TEST_PEER_MEM", "y"}, {"UCX_DCX_ODP", "y"}}},
         {"tags", {{"UCX_DCX_TM_ENABLE", "y"}}},
         {"none", {{"SOFTHCA_LACKS", "dmabuf"}}},
         {"no_types",
          {{"DCX_TEST_PEER_MEM", "y"},
           {"UCX_MEMTYPE_CACHE", "n"},
           {"UCX_LOG_LEVEL", "diag"}}},
         {"off",
          {{"DCX_TEST_PEER_MEM", "y"}, {"UCX_DCX_GPU_DIRECT_RDMA", "n"}}}});
}
