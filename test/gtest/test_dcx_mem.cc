/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Memory handles and their remote keys, and how these are revoked: with the
 * registration cache and without, on a device without indirect keys, and with
 * relaxed ordering of PCIe
 */
#include "dcx_loop.h"
#include "dcx_pack_key.h"
#include "dcx_peek.h"
#include "ucx_log.h"
#include "uct/dcx/base/dcx_stale.h"

#include <dlfcn.h>
#include <memory>
#include <set>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <thread>
#include <ucs/arch/cpu.h>

/* Replaces UCX's detection of the processor: DCX_MEM_EPYC=y makes it an EPYC, n
 * an Intel one. */
template <typename T>
static T dcx_mem_cpu(const char *function, T epyc, T other)
{
    const char *is_epyc = getenv("DCX_MEM_EPYC");

    return (is_epyc == NULL) ? ((T(*)(void))dlsym(RTLD_NEXT, function))() :
           (*is_epyc == 'y') ? epyc :
                               other;
}

extern "C" ucs_cpu_vendor_t ucs_arch_get_cpu_vendor(void)
{
    return dcx_mem_cpu(__func__, UCS_CPU_VENDOR_AMD, UCS_CPU_VENDOR_INTEL);
}

extern "C" ucs_cpu_model_t ucs_arch_get_cpu_model(void)
{
    return dcx_mem_cpu(__func__, UCS_CPU_MODEL_AMD_ROME,
                       UCS_CPU_MODEL_INTEL_SKYLAKE);
}

namespace {

/* --- numbers of keys ------------------------------------------------------ */

TEST(dcx_stale, remembers_the_last)
{
    auto stale = std::make_unique<uct_dcx_stale_t>();

    *stale = {};
    EXPECT_FALSE(uct_dcx_stale_has(stale.get(), 0x100));
    for (uint32_t i = 1; i <= UCT_DCX_STALE_NUMBERS; i++) {
        uct_dcx_stale_add(stale.get(), i << 8);
        ASSERT_TRUE(uct_dcx_stale_has(stale.get(), i << 8));
        ASSERT_FALSE(uct_dcx_stale_has(stale.get(), (i << 8) + 1));
    }
    EXPECT_TRUE(uct_dcx_stale_has(stale.get(), 1 << 8));

    uct_dcx_stale_add(stale.get(), 0x12345678);
    EXPECT_FALSE(uct_dcx_stale_has(stale.get(), 1 << 8));
    EXPECT_TRUE(uct_dcx_stale_has(stale.get(), 2 << 8));
    EXPECT_TRUE(uct_dcx_stale_has(stale.get(), 0x12345678));
}

/* --- handles and keys ----------------------------------------------------- */

struct counted {
    explicit counted(int count = 1)
    {
        comp.func  = called;
        comp.count = count;
    }

    static void called(uct_completion_t *comp)
    {
        ((counted *)comp)->calls++; /* its first member */
    }

    uct_completion_t comp = {};
    unsigned calls        = 0;
};

using packed_key = std::vector<uint8_t>;

class dcx_mem : public testing::Test {
protected:
    dcx_mem()
    {
        m_dcx.survives_errors = true;
        UCT_CALL(uct_md_query(m_dcx.md(), &m_attr));
    }

    uct_mem_h reg(void *address, size_t length)
    {
        uct_mem_h memh;

        UCT_CALL(uct_md_mem_reg(m_dcx.md(), address, length,
                                UCT_MD_MEM_ACCESS_ALL, &memh));
        return memh;
    }

    uct_mem_h reg() { return reg(m_memory.data(), m_memory.size()); }

    ucs_status_t try_pack(uct_mem_h memh, bool can_invalidate, packed_key &key)
    {
        key.resize(m_attr.rkey_packed_size);
        return dcx_pack_key(m_dcx.md(), memh, m_memory.data(), m_memory.size(),
                            can_invalidate, key.data());
    }

    packed_key pack(uct_mem_h memh, bool can_invalidate = true)
    {
        packed_key key;

        UCT_CALL(try_pack(memh, can_invalidate, key));
        return key;
    }

    uct_rkey_t unpack(const packed_key &key)
    {
        uct_rkey_bundle_t bundle;

        UCT_CALL(uct_rkey_unpack(m_dcx.component(), key.data(), &bundle));
        return bundle.rkey;
    }

    ucs_status_t dereg(uct_mem_h memh, counted *invalidation = NULL)
    {
        uct_md_mem_dereg_params_t params = {};

        params.field_mask = UCT_MD_MEM_DEREG_FIELD_MEMH |
                            UCT_MD_MEM_DEREG_FIELD_FLAGS |
                            UCT_MD_MEM_DEREG_FIELD_COMPLETION;
        params.memh  = memh;
        params.flags = (invalidation != NULL) ?
                           UCT_MD_MEM_DEREG_FLAG_INVALIDATE :
                           0;
        params.comp  = (invalidation != NULL) ? &invalidation->comp : NULL;
        return uct_md_mem_dereg_v2(m_dcx.md(), &params);
    }

    /* Puts to @remote from a new endpoint; returns the status of the put. */
    ucs_status_t put(uct_rkey_t rkey, void *remote, uint64_t value)
    {
        uct_ep_h ep   = m_dcx.make_ep();
        size_t errors = m_dcx.errors.size();
        ucs_status_t status;

        EXPECT_EQ(UCS_OK, uct_ep_put_short(ep, &value, sizeof(value),
                                           (uintptr_t)remote, rkey));
        m_dcx.flush();
        status = (m_dcx.errors.size() == errors) ? UCS_OK : m_dcx.errors.back();
        uct_ep_destroy(ep);
        return status;
    }

    /* Checks that the key leads to the memory, each time at another place. */
    void expect_reached(uct_rkey_t rkey)
    {
        uint64_t *at = (uint64_t *)m_memory.data() + m_place++;

        EXPECT_EQ(UCS_OK, put(rkey, at, m_place));
        EXPECT_EQ(m_place, *at);
    }

    void expect_refused(uct_rkey_t rkey)
    {
        uint64_t *at = (uint64_t *)m_memory.data() + m_place++;

        *at = ~0ull;
        EXPECT_EQ(UCS_ERR_CONNECTION_RESET, put(rkey, at, m_place));
        EXPECT_EQ(~0ull, *at);
    }

    dcx_loop m_dcx;
    uct_md_attr_t m_attr;
    std::vector<uint8_t> m_memory = std::vector<uint8_t>(65536);
    uint64_t m_place              = 0;
};

/* ibv_fork_init() of rdma-core 44 would hide registered memory from children,
 * even without need. */
TEST_F(dcx_mem, forked_child_has_registered_memory)
{
    uct_mem_h memh = reg();
    int status;
    pid_t pid;

    m_memory[0] = 7;
    pid         = fork();
    if (pid == 0) {
        /* no exit(), at which valgrind would report the parent's memory */
        raise((m_memory[0] == 7) ? SIGKILL : SIGTERM);
    }
    ASSERT_EQ(pid, waitpid(pid, &status, 0));
    ASSERT_TRUE(WIFSIGNALED(status));
    EXPECT_EQ(SIGKILL, WTERMSIG(status));
    EXPECT_EQ(UCS_OK, dereg(memh));
}

/* The error of a bad address ends with that reason: it suggests no higher
 * 'ulimit -l'. */
TEST_F(dcx_mem, refusal_names_its_reason)
{
    void *hole = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
                      0);
    uct_mem_h memh;
    std::string log;

    ASSERT_NE(MAP_FAILED, hole);
    {
        ucx_log_reader reader;

        EXPECT_NE(UCS_OK, uct_md_mem_reg(m_dcx.md(), hole, 4096,
                                         UCT_MD_MEM_ACCESS_ALL, &memh));
        log = reader.take();
    }
    EXPECT_NE(std::string::npos, log.find(": Bad address\n")) << log;
    munmap(hole, 4096);
}

/* On a device with indirect keys. Parameter: true with a cache, in which all
 * handles of this memory share a region */
class dcx_invalidate : public dcx_mem,
                       public testing::WithParamInterface<bool> {
protected:
    void SetUp() override
    {
        ASSERT_TRUE(m_attr.cap.flags & UCT_MD_FLAG_INVALIDATE);
    }

    void expect_done(const counted &invalidation)
    {
        EXPECT_EQ(1u, invalidation.calls);
        EXPECT_EQ(UCS_OK, invalidation.comp.status);
    }
};

TEST_P(dcx_invalidate, put_get_atomic)
{
    uct_mem_h memh  = reg();
    uct_rkey_t rkey = unpack(pack(memh));
    uint64_t *at    = (uint64_t *)m_memory.data() + 100;
    uint64_t result = 0;
    counted got, added;
    uct_iov_t iov = {};

    expect_reached(rkey);

    *at        = 0x1234567890;
    iov.buffer = m_dcx.mem.data();
    iov.length = sizeof(*at);
    iov.memh   = m_dcx.memh;
    iov.count  = 1;
    EXPECT_EQ(UCS_INPROGRESS, uct_ep_get_zcopy(m_dcx.ep, &iov, 1, (uintptr_t)at,
                                               rkey, &got.comp));
    EXPECT_EQ(UCS_INPROGRESS,
              uct_ep_atomic64_fetch(m_dcx.ep, UCT_ATOMIC_OP_ADD, 5, &result,
                                    (uintptr_t)at, rkey, &added.comp));
    m_dcx.flush();
    expect_done(got);
    expect_done(added);
    EXPECT_EQ(0, memcmp(m_dcx.mem.data(), &result, sizeof(result)));
    EXPECT_EQ(0x1234567890ull, result);
    EXPECT_EQ(0x1234567895ull, *at);

    EXPECT_EQ(UCS_OK, dereg(memh));
}

TEST_P(dcx_invalidate, other_handles_keep_their_access)
{
    uct_mem_h mine = reg(), other = reg(), bare = reg();
    uct_rkey_t mine_rkey  = unpack(pack(mine));
    uct_rkey_t other_rkey = unpack(pack(other));
    uct_rkey_t bare_rkey  = unpack(pack(bare, false));
    counted invalidation;

    EXPECT_NE(mine_rkey, other_rkey);
    EXPECT_NE(mine_rkey, bare_rkey);
    EXPECT_EQ(mine_rkey, unpack(pack(mine))) << "one key for each handle";
    expect_reached(mine_rkey);

    /* at once, although other handles hold the region */
    EXPECT_EQ(UCS_OK, dereg(mine, &invalidation));
    expect_done(invalidation);
    expect_refused(mine_rkey);
    expect_reached(other_rkey);
    expect_reached(bare_rkey);

    EXPECT_EQ(UCS_OK, dereg(other));
    EXPECT_EQ(UCS_OK, dereg(bare));
}

/* Mlx5 devices do not page through indirect keys. */
TEST_P(dcx_invalidate, memory_on_demand_is_pinned_for_its_key)
{
    uct_mem_h memh;
    counted invalidation;

    UCT_CALL(uct_md_mem_reg(m_dcx.md(), m_memory.data(), m_memory.size(),
                            UCT_MD_MEM_ACCESS_ALL | UCT_MD_MEM_FLAG_NONBLOCK,
                            &memh));
    expect_reached(unpack(pack(memh, false)));
    EXPECT_FALSE(dcx_peek_is_pinned(memh));
    EXPECT_EQ(UCS_OK, dereg(memh));

    UCT_CALL(uct_md_mem_reg(m_dcx.md(), m_memory.data(), m_memory.size(),
                            UCT_MD_MEM_ACCESS_ALL | UCT_MD_MEM_FLAG_NONBLOCK,
                            &memh));
    uct_rkey_t rkey = unpack(pack(memh));

    EXPECT_TRUE(dcx_peek_is_pinned(memh));
    expect_reached(rkey);
    EXPECT_EQ(UCS_OK, dereg(memh, &invalidation));
    expect_done(invalidation);
    expect_refused(rkey);
}

/* Operations of another endpoint are not lost: it continues on the same
 * interface. */
TEST_P(dcx_invalidate, other_endpoints_go_on)
{
    uct_mem_h memh = reg(), other = reg();
    uct_rkey_t rkey = unpack(pack(memh)), other_rkey = unpack(pack(other));
    uct_ep_h victim = m_dcx.make_ep();
    uint64_t *at    = (uint64_t *)m_memory.data() + 50;
    counted invalidation;

    EXPECT_EQ(UCS_OK, dereg(memh, &invalidation));
    for (uint64_t i = 0; i < 8; i++) {
        EXPECT_EQ(UCS_OK, uct_ep_put_short(m_dcx.ep, &i, sizeof(i),
                                           (uintptr_t)&at[i], other_rkey));
        if (i == 3) {
            EXPECT_EQ(UCS_OK, uct_ep_put_short(victim, &i, sizeof(i),
                                               (uintptr_t)&at[9], rkey));
        }
    }
    m_dcx.flush();
    ASSERT_EQ(1u, m_dcx.errors.size());
    EXPECT_EQ(UCS_ERR_CONNECTION_RESET, m_dcx.errors[0]);
    for (uint64_t i = 0; i < 8; i++) {
        EXPECT_EQ(i, at[i]);
    }

    uct_ep_destroy(victim);
    EXPECT_EQ(UCS_OK, dereg(other));
}

/* With a cache, the next handle gets the key of a deregistered one: no command
 * to the device for each message. A revoked key is not reused. */
TEST_P(dcx_invalidate, keys_wait_with_the_region)
{
    uct_mem_h memh = reg(), holder = reg();
    uct_rkey_t rkey = unpack(pack(memh)), next;
    counted invalidation;

    EXPECT_EQ(UCS_OK, dereg(memh));
    memh = reg();
    next = unpack(pack(memh));
    EXPECT_EQ(GetParam(), next == rkey);
    expect_reached(next);
    EXPECT_EQ(UCS_OK, dereg(memh, &invalidation));

    memh = reg();
    EXPECT_NE(next, unpack(pack(memh)));
    expect_reached(unpack(pack(memh)));
    expect_refused(next);
    EXPECT_EQ(UCS_OK, dereg(memh));
    EXPECT_EQ(UCS_OK, dereg(holder));
}

/* Some keys of a burst are kept for reuse; the others have no access. */
TEST_P(dcx_invalidate, few_keys_wait)
{
    uct_mem_h holder = reg();
    std::set<uct_rkey_t> keys[2];
    std::vector<uct_rkey_t> gone, kept;
    std::vector<uct_mem_h> memhs(40);

    for (auto &set : keys) {
        for (auto &memh : memhs) {
            memh = reg();
            set.insert(unpack(pack(memh)));
        }
        for (uct_mem_h memh : memhs) {
            EXPECT_EQ(UCS_OK, dereg(memh));
        }
        EXPECT_EQ(memhs.size(), set.size());
    }

    for (uct_rkey_t key : keys[0]) {
        (keys[1].count(key) ? kept : gone).push_back(key);
    }
    EXPECT_EQ(GetParam() ? 16u : 0u, kept.size());
    for (uct_rkey_t key : gone) {
        expect_refused(key);
    }
    EXPECT_EQ(UCS_OK, dereg(holder));
}

/* A handle that was not packed, or whose region's key was packed, can only be
 * revoked with the region. */
TEST_P(dcx_invalidate, with_the_region)
{
    uct_mem_h bare = reg(), both = reg(), silent = reg(), holder = reg();
    uct_rkey_t bare_rkey = unpack(pack(bare, false));
    uct_rkey_t both_rkey = unpack(pack(both, false)), rkey = unpack(pack(both));
    counted invalidation(3);

    EXPECT_EQ(GetParam(), bare_rkey == both_rkey);
    EXPECT_EQ(UCS_OK, dereg(bare, &invalidation));
    EXPECT_EQ(UCS_OK, dereg(both, &invalidation));
    EXPECT_EQ(UCS_OK, dereg(silent, &invalidation));
    EXPECT_EQ(GetParam() ? 0u : 1u, invalidation.calls);

    /* a new handle has a new region */
    uct_mem_h memh = reg();

    EXPECT_NE(bare_rkey, unpack(pack(memh, false)));
    EXPECT_EQ(UCS_OK, dereg(holder));
    expect_done(invalidation);
    expect_refused(bare_rkey);
    expect_refused(both_rkey);
    expect_refused(rkey);
    expect_reached(unpack(pack(memh, false)));
    EXPECT_EQ(UCS_OK, dereg(memh));
}

/* The device reuses the index of a revoked key at once; its number differs from
 * those of the last UCT_DCX_STALE_NUMBERS keys. */
TEST_P(dcx_invalidate, numbers_do_not_come_back)
{
    std::vector<uct_rkey_t> keys;
    uct_mem_h holder = reg();

    for (unsigned i = 0; i < UCT_DCX_STALE_NUMBERS + 1000; i++) {
        uct_mem_h memh = reg();
        counted invalidation;

        keys.push_back(unpack(pack(memh)));
        ASSERT_EQ(UCS_OK, dereg(memh, &invalidation));
        ASSERT_EQ(1u, invalidation.calls);
    }
    for (size_t first = 0; first + UCT_DCX_STALE_NUMBERS <= keys.size();
         first += 500) {
        auto begin = keys.begin() + first;

        EXPECT_EQ(
            (size_t)UCT_DCX_STALE_NUMBERS,
            std::set<uct_rkey_t>(begin, begin + UCT_DCX_STALE_NUMBERS).size());
    }
    EXPECT_EQ(UCS_OK, dereg(holder));
}

TEST_P(dcx_invalidate, from_many_threads)
{
    auto churn = [this] {
        for (unsigned i = 0; i < 200; i++) {
            uct_mem_h memh = reg();
            counted invalidation;

            pack(memh);
            EXPECT_EQ(UCS_OK, dereg(memh, (i % 2) ? &invalidation : NULL));
            EXPECT_EQ(i % 2, invalidation.calls);
        }
    };
    uct_mem_h memh  = reg();
    uct_rkey_t rkey = unpack(pack(memh));
    std::vector<std::thread> threads;

    for (unsigned i = 0; i < 4; i++) {
        threads.emplace_back(churn);
    }
    for (auto &thread : threads) {
        thread.join();
    }
    expect_reached(rkey);
    EXPECT_EQ(UCS_OK, dereg(memh));
}

/* The key spans whole pages, but the region below it limits the access. */
TEST_P(dcx_invalidate, not_beside_the_region)
{
    size_t length = 4096 * 4;
    char *pages   = (char *)mmap(NULL, length, PROT_READ | PROT_WRITE,
                                 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uct_mem_h memh;
    uct_rkey_t rkey;

    ASSERT_NE(MAP_FAILED, (void *)pages);
    memh = reg(pages + 4096 + 64, 4096);
    rkey = unpack(pack(memh));
    EXPECT_EQ(UCS_OK, put(rkey, pages + 4096 + 64, 7));
    EXPECT_EQ(UCS_OK, put(rkey, pages + 2 * 4096 + 56, 8));
    EXPECT_EQ(7, pages[4096 + 64]);
    EXPECT_EQ(8, pages[2 * 4096 + 56]);
    if (!GetParam()) {
        EXPECT_EQ(UCS_ERR_CONNECTION_RESET, put(rkey, pages + 4096 + 56, 9));
        EXPECT_EQ(UCS_ERR_CONNECTION_RESET,
                  put(rkey, pages + 2 * 4096 + 60, 9));
    }
    EXPECT_EQ(UCS_ERR_CONNECTION_RESET, put(rkey, pages + 4088, 9));
    EXPECT_EQ(UCS_ERR_CONNECTION_RESET, put(rkey, pages + 3 * 4096, 9));
    EXPECT_EQ(UCS_OK, dereg(memh));
    munmap(pages, length);
}

/* More than one entry of 2 GiB; only a few of its pages are accessed. */
TEST_P(dcx_invalidate, five_gigabytes)
{
    const size_t length = (5ul << 30) + 4096;
    const int flags     = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    char *pages = (char *)mmap(NULL, length, PROT_READ | PROT_WRITE, flags, -1,
                               0);
    const size_t places[] = {0, (2ul << 30) - 8, 2ul << 30, 4ul << 30,
                             length - 8};
    uct_mem_h memh;
    uct_rkey_t rkey;
    counted invalidation;

    ASSERT_NE(MAP_FAILED, (void *)pages);
    memh = reg(pages, length);
    rkey = unpack(pack(memh));
    for (size_t place : places) {
        EXPECT_EQ(UCS_OK, put(rkey, pages + place, place + 1));
        EXPECT_EQ(place + 1, *(uint64_t *)(pages + place));
    }
    /* across two entries */
    EXPECT_EQ(UCS_OK, put(rkey, pages + (4ul << 30) - 4, 0x1122334455667788));
    EXPECT_EQ(0x55667788u, *(uint32_t *)(pages + (4ul << 30) - 4));
    EXPECT_EQ(0x11223344u, *(uint32_t *)(pages + (4ul << 30)));
    EXPECT_EQ(UCS_ERR_CONNECTION_RESET, put(rkey, pages + length, 9));
    EXPECT_EQ(UCS_OK, dereg(memh, &invalidation));
    EXPECT_EQ(UCS_ERR_CONNECTION_RESET, put(rkey, pages, 9));
    munmap(pages, length);
}

INSTANTIATE_TEST_SUITE_P(cached, dcx_invalidate, testing::Values(true));
INSTANTIATE_TEST_SUITE_P(single, dcx_invalidate, testing::Values(false));
INSTANTIATE_TEST_SUITE_P(no_views, dcx_invalidate, testing::Values(false));

/* --- invalid keys, and a device without indirect keys --------------------- */

TEST_F(dcx_mem, damaged_keys)
{
    uct_mem_h memh       = reg();
    const packed_key key = pack(memh, false);
    uct_rkey_bundle_t bundle;

    for (size_t cut = 0; cut < key.size(); cut++) {
        packed_key damaged = key;

        std::fill(damaged.begin() + cut, damaged.end(), 0);
        EXPECT_EQ((damaged == key) ? UCS_OK : UCS_ERR_INVALID_PARAM,
                  uct_rkey_unpack(m_dcx.component(), damaged.data(), &bundle))
            << "cut off behind byte " << cut;
    }
    for (size_t i = 0; i < key.size(); i++) {
        packed_key damaged = key;
        ucx_log_reader log;

        damaged[i] ^= 1 << (i % 8);
        EXPECT_EQ(UCS_ERR_INVALID_PARAM,
                  uct_rkey_unpack(m_dcx.component(), damaged.data(), &bundle))
            << "byte " << i;
        EXPECT_NE(std::string::npos, log.take().find("dynamic window"));
    }
    EXPECT_EQ(UCS_OK, dereg(memh));
}

class dcx_without : public dcx_mem, public testing::WithParamInterface<int> {};

TEST_P(dcx_without, indirect_keys)
{
    uct_mem_h memh = reg();
    counted invalidation;
    packed_key key;

    EXPECT_FALSE(m_attr.cap.flags & UCT_MD_FLAG_INVALIDATE);
    EXPECT_EQ(UCS_ERR_UNSUPPORTED, try_pack(memh, true, key));
    EXPECT_EQ(UCS_ERR_UNSUPPORTED, dereg(memh, &invalidation));
    EXPECT_EQ(0u, invalidation.calls);
    expect_reached(unpack(pack(memh, false)));
    EXPECT_EQ(UCS_OK, dereg(memh));
}

INSTANTIATE_TEST_SUITE_P(without, dcx_without, testing::Values(0));

/* --- relaxed ordering of PCIe --------------------------------------------- */

/* Parameter: true if local access has a key of its own */
class dcx_relaxed : public dcx_mem, public testing::WithParamInterface<bool> {};

TEST_P(dcx_relaxed, peers_have_the_strict_key)
{
    uct_mem_h memh  = reg();
    uint32_t lkey   = dcx_peek_lkey(memh);
    uct_rkey_t rkey = unpack(pack(memh, false));

    EXPECT_EQ(GetParam(), lkey != rkey);
    expect_reached(rkey);
    expect_reached(unpack(pack(memh)));
    if (GetParam()) {
        expect_refused(lkey);
    }
    EXPECT_EQ(UCS_OK, dereg(memh));
}

INSTANTIATE_TEST_SUITE_P(relaxed, dcx_relaxed, testing::Values(true));
INSTANTIATE_TEST_SUITE_P(epyc, dcx_relaxed, testing::Values(true));
INSTANTIATE_TEST_SUITE_P(no_epyc, dcx_relaxed, testing::Values(false));
INSTANTIATE_TEST_SUITE_P(ordered_epyc, dcx_relaxed, testing::Values(false));

} /* namespace */

int main(int argc, char **argv)
{
    return hca_test_main(
        argc, argv,
        {{"cached", {{"UCX_DCX_RCACHE", "y"}}},
         {"single", {{"UCX_DCX_RCACHE", "n"}}},
         {"no_views", {{"UCX_DCX_RCACHE", "auto"}}},
         {"without", {{"UCX_DCX_DEVX", "n"}}},
         {"relaxed",
          {{"SOFTHCA_ORDER", "relaxed"},
           {"UCX_DCX_PCI_RELAXED_ORDERING", "y"}}},
         {"epyc", {{"SOFTHCA_ORDER", "relaxed"}, {"DCX_MEM_EPYC", "y"}}},
         {"no_epyc", {{"SOFTHCA_ORDER", "relaxed"}, {"DCX_MEM_EPYC", "n"}}},
         {"ordered_epyc", {{"DCX_MEM_EPYC", "y"}}}});
}
