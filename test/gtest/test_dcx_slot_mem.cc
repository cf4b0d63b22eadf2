/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Layouts and the memory that they name: with the registration cache and
 * without. Part of the program of test_dcx_slot.cc.
 */
#include "dcx_loop.h"
#include "ucx_log.h"

extern "C" {
#include "dcx_slot_driver.h"
}

#include <sys/mman.h>

namespace {

/* The parameter: with a cache, which keeps a region until it is unmapped */
class dcx_slot_mem : public testing::TestWithParam<bool> {
protected:
    static constexpr size_t length = 4096 * 4;

    dcx_slot_mem()
    {
        m_dcx.survives_errors = true;
        m_pages = (uint64_t*)mmap(NULL, length, PROT_READ | PROT_WRITE,
                                  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        HCA_CHECK_CALL(m_pages != MAP_FAILED);
        UCT_CALL(uct_md_mem_reg(m_dcx.md(), m_pages, length,
                                UCT_MD_MEM_ACCESS_ALL, &m_memh));
    }

    void expect_layouts(unsigned num_set, unsigned invalidated)
    {
        unsigned set = 0, gone = 0;

        dcx_slot_count(m_dcx.md(), &set, &gone);
        EXPECT_EQ(num_set, set);
        EXPECT_EQ(invalidated, gone);
    }

    /* What becomes of a put to this offset, from an endpoint of its own */
    ucs_status_t put(uint32_t key, uint64_t offset, uint64_t value)
    {
        uct_ep_h ep   = m_dcx.make_ep();
        size_t errors = m_dcx.errors.size();

        EXPECT_EQ(UCS_OK, uct_ep_put_short(ep, &value, sizeof(value), offset,
                                           key));
        m_dcx.flush();
        uct_ep_destroy(ep);
        return (m_dcx.errors.size() == errors) ? UCS_OK : m_dcx.errors.back();
    }

    /* The cache looks what was unmapped. */
    void register_another()
    {
        std::vector<uint8_t> bytes(4096);
        uct_mem_h memh;

        UCT_CALL(uct_md_mem_reg(m_dcx.md(), bytes.data(), bytes.size(),
                                UCT_MD_MEM_ACCESS_ALL, &memh));
        UCT_CALL(uct_md_mem_dereg(m_dcx.md(), memh));
    }

    dcx_loop  m_dcx;
    uint64_t  *m_pages;
    uct_mem_h m_memh;
};

TEST_P(dcx_slot_mem, layouts_go_with_their_region)
{
    uint32_t key  = dcx_slot_set(m_dcx.iface, m_memh, m_pages, 8);
    uint32_t kept = dcx_slot_set(m_dcx.iface, m_dcx.memh, m_dcx.mem.data(), 8);

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

/* UCX wants the name of an option with the prefix of its table since 1.17
 * (ucs_config_parser_set_value). */
#if UCT_VERNO_MINOR >= 17
const std::string option_prefix = "DCX_";
#else
const std::string option_prefix;
#endif

/* What the variables may be */
TEST_P(dcx_slot_mem, options)
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
        UCT_CALL(uct_config_modify(config, (option_prefix + option.name).c_str(),
                                   option.value));
        EXPECT_EQ(UCS_ERR_INVALID_PARAM,
                  uct_md_open(m_dcx.component(), "mlx5_0", config, &md));
        uct_config_release(config);
        line = log.take();
        EXPECT_NE(std::string::npos,
                  line.find(std::string("UCX_DCX_") + option.name + "=" +
                            option.value)) << line;
        EXPECT_NE(std::string::npos, line.find(option.range)) << line;
    }
    UCT_CALL(uct_md_mem_dereg(m_dcx.md(), m_memh));
    munmap(m_pages, length);
}

INSTANTIATE_TEST_SUITE_P(cached, dcx_slot_mem, testing::Values(true));
INSTANTIATE_TEST_SUITE_P(single, dcx_slot_mem, testing::Values(false));
INSTANTIATE_TEST_SUITE_P(roce, dcx_slot_mem, testing::Values(false));

} /* namespace */
