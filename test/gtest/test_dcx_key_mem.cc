/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Layouts and the deregistration of memory that they name, with the
 * registration cache and without. Part of the program of test_dcx_key.cc.
 */
#include "dcx_loop.h"
#include "dcx_key_bench.h"
#include "privileges.h"
#include "ucx_log.h"

extern "C" {
#include "dcx_key_driver.h"
#include <uct/api/v2/uct_v2.h>
}

#include <sys/mman.h>
#include <sys/resource.h>
#include <thread>
#include <unistd.h>

namespace {

/* The parameter is true if memory is cached: then a region stays registered
 * until it is unmapped. The prefix of INSTANTIATE_TEST_SUITE_P selects the
 * environment in main(), in test_dcx_key.cc, which enables the cache. */
class dcx_key_mem : public testing::TestWithParam<bool> {
protected:
    static constexpr size_t length = 4096 * 4;

    dcx_key_mem()
    {
        m_dcx.survives_errors = true;
        m_pages = (uint64_t *)mmap(NULL, length, PROT_READ | PROT_WRITE,
                                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        HCA_CHECK_CALL(m_pages != MAP_FAILED);
        UCT_CALL(uct_md_mem_reg(m_dcx.md(), m_pages, length,
                                UCT_MD_MEM_ACCESS_ALL, &m_memh));
    }

    /* Checks the number of layouts, and how many were invalidated so far. */
    void expect_layouts(unsigned num_set, unsigned invalidated)
    {
        unsigned set = 0, gone = 0;

        dcx_key_count(m_dcx.md(), &set, &gone);
        EXPECT_EQ(num_set, set);
        EXPECT_EQ(invalidated, gone);
    }

    /* Puts @value at @offset of the key from a new endpoint; returns the status
     * of the operation. */
    ucs_status_t put(uint32_t key, uint64_t offset, uint64_t value)
    {
        uct_ep_h ep   = m_dcx.make_ep();
        size_t errors = m_dcx.errors.size();

        EXPECT_EQ(UCS_OK,
                  uct_ep_put_short(ep, &value, sizeof(value), offset, key));
        m_dcx.flush();
        uct_ep_destroy(ep);
        return (m_dcx.errors.size() == errors) ? UCS_OK : m_dcx.errors.back();
    }

    /* Registers other memory: the cache then drops regions that were
     * unmapped. */
    void register_another()
    {
        std::vector<uint8_t> bytes(4096);
        uct_mem_h memh;

        UCT_CALL(uct_md_mem_reg(m_dcx.md(), bytes.data(), bytes.size(),
                                UCT_MD_MEM_ACCESS_ALL, &memh));
        UCT_CALL(uct_md_mem_dereg(m_dcx.md(), memh));
    }

    dcx_loop m_dcx;
    uint64_t *m_pages;
    uct_mem_h m_memh;
};

TEST_P(dcx_key_mem, layouts_go_with_their_region)
{
    uint32_t key  = dcx_key_set(m_dcx.iface, m_memh, m_pages, 8);
    uint32_t kept = dcx_key_set(m_dcx.iface, m_dcx.memh, m_dcx.mem.data(), 8);

    ASSERT_NE(0u, key);
    ASSERT_NE(0u, kept);
    expect_layouts(2, 0);
    EXPECT_EQ(UCS_OK, put(key, 0, 7));
    EXPECT_EQ(UCS_OK, put(key, 8, 9));
    EXPECT_EQ(7u, m_pages[0]);
    EXPECT_EQ(0u, m_pages[1]);
    EXPECT_EQ(9u, m_pages[2]);

    UCT_CALL(uct_md_mem_dereg(m_dcx.md(), m_memh));
    expect_layouts(GetParam() ? 2 : 1, GetParam() ? 0 : 1);
    munmap(m_pages, length);
    register_another();
    expect_layouts(1, 1);
    EXPECT_EQ(UCS_ERR_CONNECTION_RESET, put(key, 0, 7));
    EXPECT_EQ(UCS_OK, put(kept, 0, 7));
}

/* The device does not complete the invalidation of a layout until the silence
 * ends. */
class dcx_key_mem_silent : public dcx_key_mem {
protected:
    dcx_key_mem_silent()
    {
        m_key = dcx_key_set(m_dcx.iface, m_memh, m_pages, 8);
        dcx_key_set_timeout(m_keys, TIME_WAIT);
    }

    /* Checks that memory can be registered while another thread waits in @dereg
     * for the device. */
    template <typename F> void expect_others_go_on(F dereg)
    {
        std::atomic<bool> has_returned{false}, has_registered{false};
        std::jthread waiting, other;
        /* Destroyed before the threads, which are joined then, also if a check
         * throws */
        dcx_umr_silence silence(m_keys);

        waiting = std::jthread([&] {
            dereg();
            has_returned = true;
        });
        /* hca_until() yields while it does not hold the lock of the keys, for
         * which the thread spins: valgrind runs one thread at a time */
        HCA_CHECK_CALL(hca_until([this] { return !has_layouts(); }));
        other = std::jthread([&] {
            register_another();
            has_registered = true;
        });
        EXPECT_TRUE(
            hca_until([&] { return has_registered.load(); }, TIME_PROMPT));
        EXPECT_FALSE(has_returned);
        EXPECT_EQ(0u, m_completions);

        silence.end();
        waiting.join();
        other.join();
        EXPECT_EQ(UCS_ERR_CONNECTION_RESET, put(m_key, 0, 7));
    }

    bool has_layouts()
    {
        unsigned set, gone;

        dcx_key_count(m_dcx.md(), &set, &gone);
        return set > 0;
    }

    struct completion {
        uct_completion_t super;
        dcx_key_mem_silent *test;
    } m_completion = {{[](uct_completion_t *self) {
                           ((completion *)self)->test->m_completions++;
                       },
                       1, UCS_OK},
                      this};

    uct_dcx_keys_t &m_keys = *(uct_dcx_keys_t *)dcx_key_keys(m_dcx.md());
    std::atomic<unsigned> m_completions{0};
    uint32_t m_key;
};

/* The cache invalidates the layouts of a region that was unmapped. */
TEST_P(dcx_key_mem_silent, unmapped_memory_goes_without_the_lock)
{
    UCT_CALL(uct_md_mem_dereg(m_dcx.md(), m_memh));
    munmap(m_pages, length);
    expect_others_go_on([&] { register_another(); });
}

/* The completion is called when peers have lost access. */
TEST_P(dcx_key_mem_silent, invalidation_goes_without_the_lock)
{
    uct_md_mem_dereg_params_t params = {};

    params.field_mask = UCT_MD_MEM_DEREG_FIELD_MEMH |
                        UCT_MD_MEM_DEREG_FIELD_FLAGS |
                        UCT_MD_MEM_DEREG_FIELD_COMPLETION;
    params.memh  = m_memh;
    params.flags = UCT_MD_MEM_DEREG_FLAG_INVALIDATE;
    params.comp  = &m_completion.super;
    expect_others_go_on(
        [&] { UCT_CALL(uct_md_mem_dereg_v2(m_dcx.md(), &params)); });
    EXPECT_EQ(1u, m_completions);
    munmap(m_pages, length);
}

/* Tests for which set_limit() allows to lock the registered memory and one
 * page. */
class dcx_key_mem_locked : public dcx_key_mem {
protected:
    dcx_key_mem_locked()
    {
        m_key = dcx_key_set(m_dcx.iface, m_memh, m_pages, 8);
        HCA_CHECK_CALL(getrlimit(RLIMIT_MEMLOCK, &m_before) == 0);
        set_privileged(false);
    }

    ~dcx_key_mem_locked()
    {
        set_privileged(true);
        setrlimit(RLIMIT_MEMLOCK, &m_before);
    }

    ucs_status_t reg(void *address, size_t size, uct_mem_h *memh,
                     unsigned flags = 0)
    {
        return uct_md_mem_reg(m_dcx.md(), address, size,
                              UCT_MD_MEM_ACCESS_ALL | flags, memh);
    }

    /* Sets the limit of locked memory to the memory that is registered and one
     * more page. Returns false if the hard limit is too low. */
    bool set_limit()
    {
        struct rlimit limit = m_before;
        uct_mem_h memh;

        limit.rlim_cur = 0;
        do {
            limit.rlim_cur += 4096;
            limit.rlim_max = std::max(limit.rlim_cur, limit.rlim_max);
            if (setrlimit(RLIMIT_MEMLOCK, &limit) != 0) {
                return false;
            }
        } while (reg(m_spare.data(), 1, &memh, UCT_MD_MEM_FLAG_HIDE_ERRORS) !=
                 UCS_OK);
        UCT_CALL(uct_md_mem_dereg(m_dcx.md(), memh));
        return true;
    }

    std::vector<uint8_t> m_spare = std::vector<uint8_t>(8192);
    struct rlimit m_before;
    uint32_t m_key;
};

/* Registers memory when the limit is reached: this fails while another region
 * is in the cache, and succeeds once that is unmapped, although a layout refers
 * to it. */
TEST_P(dcx_key_mem_locked, memory_that_replaces_a_region)
{
    void *pages = mmap(NULL, length, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uct_mem_h memh;

    HCA_CHECK_CALL(pages != MAP_FAILED);
    UCT_CALL(uct_md_mem_dereg(m_dcx.md(), m_memh));
    if (!set_limit()) {
        GTEST_SKIP() << "the hard limit of locked memory is too low";
    }

    {
        ucx_log_reader log;

        EXPECT_NE(UCS_OK, reg(pages, length, &memh));
        EXPECT_NE(std::string::npos, log.take().find("failed to register"));
    }
    munmap(m_pages, length);
    ASSERT_EQ(UCS_OK, reg(pages, length, &memh));
    UCT_CALL(uct_md_mem_dereg(m_dcx.md(), memh));
    set_privileged(true); /* for the queue of the new endpoint */
    EXPECT_EQ(UCS_ERR_CONNECTION_RESET, put(m_key, 0, 7));
    munmap(pages, length);
}

/* Since UCX 1.17, uct_config_modify() expects the prefix of the table before
 * the name of an option (ucs_config_parser_set_value()). */
#if UCT_VERNO_MINOR >= 17
const std::string option_prefix = "DCX_";
#else
const std::string option_prefix;
#endif

/* Values out of range are refused by uct_md_open(), with a message that has the
 * range. */
TEST_P(dcx_key_mem, refused_options)
{
    static const struct {
        const char *name, *value, *range;
    } bad[] = {{"UMR_SLOTS", "0", "1-4096"},
               {"UMR_SLOTS", "4097", "1-4096"},
               {"UMR_LAYOUTS", "0", "1-65536"},
               {"UMR_LAYOUTS", "65537", "1-65536"},
               {"UMR_MAX_ENTRIES", "3", "4-65528"},
               {"UMR_MAX_ENTRIES", "65529", "4-65528"}};

    for (const auto &option : bad) {
        uct_md_config_t *config;
        ucx_log_reader log;
        std::string line;
        uct_md_h md;

        UCT_CALL(uct_md_config_read(m_dcx.component(), NULL, NULL, &config));
        UCT_CALL(uct_config_modify(
            config, (option_prefix + option.name).c_str(), option.value));
        EXPECT_EQ(UCS_ERR_INVALID_PARAM,
                  uct_md_open(m_dcx.component(), "mlx5_0", config, &md));
        uct_config_release(config);
        line = log.take();
        EXPECT_NE(std::string::npos,
                  line.find(std::string("UCX_DCX_") + option.name + "=" +
                            option.value))
            << line;
        EXPECT_NE(std::string::npos, line.find(option.range)) << line;
    }
    UCT_CALL(uct_md_mem_dereg(m_dcx.md(), m_memh));
    munmap(m_pages, length);
}

INSTANTIATE_TEST_SUITE_P(cached, dcx_key_mem_silent, testing::Values(true));
INSTANTIATE_TEST_SUITE_P(locked, dcx_key_mem_locked, testing::Values(true));
INSTANTIATE_TEST_SUITE_P(cached, dcx_key_mem, testing::Values(true));
INSTANTIATE_TEST_SUITE_P(single, dcx_key_mem, testing::Values(false));
INSTANTIATE_TEST_SUITE_P(roce, dcx_key_mem, testing::Values(false));

} /* namespace */
