/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The copy transport of views behind UCT's interfaces, against a plain loop.
 * UCP's use of it is in test_dcx_view_pack.cc.
 */
#include "dcx_view_mem.h"
#include "ucx_log.h"

extern "C" {
#include <ucs/vfs/base/vfs_obj.h>
}

namespace {

/* Returns the component of the copy transport; @num_mds_p: number of its memory
 * domains */
uct_component_h find_component(unsigned *num_mds_p)
{
    uct_component_h *list, found = NULL;
    unsigned count;

    UCT_CALL(uct_query_components(&list, &count));
    for (unsigned i = 0; i < count; i++) {
        uct_component_attr_t attr = {};

        attr.field_mask = UCT_COMPONENT_ATTR_FIELD_NAME |
                          UCT_COMPONENT_ATTR_FIELD_MD_RESOURCE_COUNT;
        UCT_CALL(uct_component_query(list[i], &attr));
        if (!strcmp(attr.name, UCT_DCX_VIEW_TL)) {
            found      = list[i];
            *num_mds_p = attr.md_resource_count;
        }
    }
    uct_release_component_list(list);
    HCA_CHECK_CALL(found != NULL);
    return found;
}

/* An interface of the copy transport */
class copy_iface {
public:
    explicit copy_iface(uct_md_h md)
    {
        uct_iface_params_t params = {};
        uct_iface_config_t *config;

        UCT_CALL(
            ucs_async_context_create(UCS_ASYNC_MODE_THREAD_SPINLOCK, &m_async));
        UCT_CALL(uct_worker_create(m_async, UCS_THREAD_MODE_SINGLE, &m_worker));
        params.field_mask = UCT_IFACE_PARAM_FIELD_OPEN_MODE |
                            UCT_IFACE_PARAM_FIELD_DEVICE;
        params.open_mode            = UCT_IFACE_OPEN_MODE_DEVICE;
        params.mode.device.tl_name  = UCT_DCX_VIEW_TL;
        params.mode.device.dev_name = UCT_DCX_VIEW_TL;
        UCT_CALL(
            uct_md_iface_config_read(md, UCT_DCX_VIEW_TL, NULL, NULL, &config));
        UCT_CALL(uct_iface_open(md, m_worker, &params, config, &iface));
        uct_config_release(config);
        UCT_CALL(uct_iface_query(iface, &attr));
        address.resize(attr.iface_addr_len);
        UCT_CALL(
            uct_iface_get_address(iface, (uct_iface_addr_t *)address.data()));
    }

    ~copy_iface()
    {
        uct_iface_close(iface);
        uct_worker_destroy(m_worker);
        ucs_async_context_destroy(m_async);
    }

    copy_iface(const copy_iface &) = delete;

    int reaches(const copy_iface &other) const
    {
        return uct_iface_is_reachable(
            iface, (const uct_device_addr_t *)&m_none,
            (const uct_iface_addr_t *)other.address.data());
    }

    /* Returns the file "views" in UCX's virtual file system. */
    std::string views() const
    {
        ucs_string_buffer_t text = UCS_STRING_BUFFER_INITIALIZER;
        char path[256];

        snprintf(path, sizeof(path), "/uct/worker/%p/iface/%p", m_worker,
                 iface);
        /* UCX adds the file then. */
        ucs_vfs_path_list_dir(
            path, [](const char *, void *) {}, NULL);
        strcat(path, "/views");
        UCT_CALL(ucs_vfs_path_read_file(path, &text));
        std::string result = ucs_string_buffer_cstr(&text);
        ucs_string_buffer_cleanup(&text);
        return result;
    }

    uct_ep_h make_ep() const
    {
        uct_ep_params_t params = {};
        uct_ep_h ep;

        params.field_mask = UCT_EP_PARAM_FIELD_IFACE |
                            UCT_EP_PARAM_FIELD_DEV_ADDR |
                            UCT_EP_PARAM_FIELD_IFACE_ADDR;
        params.iface      = iface;
        params.dev_addr   = (const uct_device_addr_t *)&m_none;
        params.iface_addr = (const uct_iface_addr_t *)address.data();
        UCT_CALL(uct_ep_create(&params, &ep));
        return ep;
    }

    uct_iface_h iface = NULL;
    uct_iface_attr_t attr;
    std::vector<uint8_t> address;

private:
    ucs_async_context_t *m_async = NULL;
    uct_worker_h m_worker        = NULL;
    uint8_t m_none               = 0; /* a device address of no bytes */
};

class dcx_view_copy : public testing::TestWithParam<size_t> {
protected:
    void SetUp() override
    {
        uct_component_h component;
        uct_md_config_t *config;
        unsigned num_mds;

        dcx_views();
        component = find_component(&num_mds);
        ASSERT_EQ(1u, num_mds);
        UCT_CALL(uct_md_config_read(component, NULL, NULL, &config));
        UCT_CALL(uct_md_open(component, UCT_DCX_VIEW_TL, config, &m_md));
        uct_config_release(config);
        m_iface = std::make_unique<copy_iface>(m_md);
        m_ep    = m_iface->make_ep();
        m_log   = std::make_unique<ucx_log_reader>();
    }

    void TearDown() override
    {
        EXPECT_EQ("", m_log->take());
        uct_ep_destroy(m_ep);
        m_iface.reset();
        uct_md_close(m_md);
    }

    static const view_type &type() { return *named_types()[GetParam()].type; }

    /* Calls @call for all bytes at once, and for each offset with some
     * lengths. */
    template <typename F> static void for_pieces(size_t length, F call)
    {
        call(0, length);
        for (size_t offset = 0; offset < length; offset++) {
            for (size_t bytes : {1, 2, 7, 60, 333}) {
                call(offset, std::min<size_t>(bytes, length - offset));
            }
        }
    }

    uct_iov_t iov(uint64_t address, size_t length)
    {
        return {(void *)address, length, m_memh, 0, 1};
    }

    uct_md_h m_md    = NULL;
    uct_ep_h m_ep    = NULL;
    uct_mem_h m_memh = UCT_MEM_HANDLE_NULL;
    std::unique_ptr<copy_iface> m_iface;
    std::unique_ptr<ucx_log_reader> m_log;
};

TEST_P(dcx_view_copy, put_short)
{
    shaped_mem mem(type(), 3, 1);
    test_view view(mem, {}, 1);

    ASSERT_EQ(mem.length(), view.length());
    for_pieces(mem.length(), [&](size_t offset, size_t length) {
        auto src  = random_bytes(length, offset);
        auto want = mem.scattered(offset, src);

        ASSERT_EQ(UCS_OK, uct_ep_put_short(m_ep, src.data(), length,
                                           view.address() + offset, 0));
        ASSERT_EQ(want, mem.bytes) << offset << " " << length;
    });
}

TEST_P(dcx_view_copy, get_short)
{
    shaped_mem mem(type(), 3, 2);
    test_view view(mem, {}, 0);
    auto want = mem.bytes;

    for_pieces(mem.length(), [&](size_t offset, size_t length) {
        std::vector<uint8_t> dest(length + 1, 0xee);
        auto expected = mem.gather(offset, length);

        expected.push_back(0xee);
        ASSERT_EQ(UCS_OK, uct_ep_get_short(m_ep, dest.data(), length,
                                           view.address() + offset, 0));
        ASSERT_EQ(expected, dest) << offset << " " << length;
    });
    EXPECT_EQ(want, mem.bytes);
}

/* Puts from and gets to three pieces of memory, one of them empty. */
TEST_P(dcx_view_copy, zcopy)
{
    shaped_mem mem(type(), 5, 3);
    test_view view(mem, {}, 1);
    size_t length = mem.length() - 20, first = length / 3;
    auto src  = random_bytes(length, 4);
    auto want = mem.scattered(13, src);
    std::vector<uint8_t> dest(length);

    uct_iov_t put[] = {iov((uintptr_t)src.data(), first), iov(0, 0),
                       iov((uintptr_t)src.data() + first, length - first)};
    EXPECT_EQ(UCS_OK,
              uct_ep_put_zcopy(m_ep, put, 3, view.address() + 13, 0, NULL));
    EXPECT_EQ(want, mem.bytes);

    uct_iov_t get[] = {iov((uintptr_t)dest.data(), first), iov(0, 0),
                       iov((uintptr_t)dest.data() + first, length - first)};
    EXPECT_EQ(UCS_OK,
              uct_ep_get_zcopy(m_ep, get, 3, view.address() + 13, 0, NULL));
    EXPECT_EQ(src, dest);
}

/* The views of this process, as ucx_vfs shows them */
TEST_P(dcx_view_copy, views_in_use)
{
    const std::string none = "views in use 0, ", one = "views in use 1, ";
    shaped_mem mem(type(), 3, 1);

    EXPECT_EQ(none, m_iface->views().substr(0, none.size()));
    {
        test_view view(mem, {}, 1);
        EXPECT_EQ(one, m_iface->views().substr(0, one.size()));
    }
    EXPECT_EQ(none, m_iface->views().substr(0, none.size()));
}

/* From a view to a view, in more than one step */
TEST_P(dcx_view_copy, both_sides)
{
    shaped_mem from(type(), 40, 5), to(type(), 41, 6);
    test_view src(from, {}, 0), dest(to, {}, 1);
    size_t length = from.length() - 9;

    for (size_t bytes : {(size_t)1, (size_t)4095, (size_t)4096, (size_t)4097,
                         (size_t)8192, length}) {
        bytes           = std::min(bytes, length);
        auto want       = to.scattered(11, from.gather(9, bytes));
        uct_iov_t put[] = {iov(src.address() + 9, bytes)};

        EXPECT_EQ(UCS_OK,
                  uct_ep_put_zcopy(m_ep, put, 1, dest.address() + 11, 0, NULL));
        EXPECT_EQ(want, to.bytes) << bytes;
    }

    auto want       = to.scattered(0, from.gather(2, length));
    uct_iov_t get[] = {iov(dest.address(), length)};

    EXPECT_EQ(UCS_OK,
              uct_ep_get_zcopy(m_ep, get, 1, src.address() + 2, 0, NULL));
    EXPECT_EQ(want, to.bytes);
}

/* Bytes that are in no open view are refused, with one line in the log. */
TEST_P(dcx_view_copy, outside)
{
    shaped_mem mem(type(), 2, 7);
    auto want = mem.bytes;
    auto src  = random_bytes(mem.length() + 1, 8);
    uint64_t address;

    {
        test_view view(mem, {}, 1);

        address = view.address();
        EXPECT_EQ(UCS_ERR_INVALID_ADDR,
                  uct_ep_put_short(m_ep, src.data(), src.size(), address, 0));
        EXPECT_EQ(UCS_ERR_INVALID_ADDR,
                  uct_ep_put_short(m_ep, src.data(), 3,
                                   address + mem.length() - 2, 0));
        EXPECT_NE(std::string::npos, m_log->take().find("that ends after 2\n"));
        EXPECT_EQ(
            UCS_ERR_INVALID_ADDR,
            uct_ep_get_short(m_ep, src.data(), 1, address + mem.length(), 0));
        EXPECT_NE(std::string::npos, m_log->take().find("no view is open"));
        EXPECT_EQ(UCS_OK, uct_ep_put_short(m_ep, src.data(), 0,
                                           address + mem.length(), 0));
    }
    EXPECT_EQ(UCS_ERR_INVALID_ADDR,
              uct_ep_put_short(m_ep, src.data(), 1, address, 0));

    std::string text = m_log->take();

    EXPECT_EQ(1, std::count(text.begin(), text.end(), '\n')) << text;
    EXPECT_EQ(want, mem.bytes);
}

/* From memory to memory: an endpoint to itself is one for any type. */
TEST_P(dcx_view_copy, no_side)
{
    auto src = random_bytes(5000, 9);
    std::vector<uint8_t> dest(5000);

    EXPECT_EQ(UCS_OK, uct_ep_put_short(m_ep, src.data(), 5000,
                                       (uintptr_t)dest.data(), 0));
    EXPECT_EQ(src, dest);
}

/* Attributes by which UCP selects the transport for copies */
TEST_P(dcx_view_copy, announced)
{
    const uint64_t flags = UCT_IFACE_FLAG_PUT_SHORT | UCT_IFACE_FLAG_GET_SHORT |
                           UCT_IFACE_FLAG_PUT_ZCOPY | UCT_IFACE_FLAG_GET_ZCOPY |
                           UCT_IFACE_FLAG_PENDING;
    copy_iface other(m_md);
    uct_md_attr_t attr;

    UCT_CALL(uct_md_query(m_md, &attr));
    EXPECT_EQ((uint64_t)UCT_MD_FLAG_REG,
              attr.cap.flags & (UCT_MD_FLAG_REG | UCT_MD_FLAG_ALLOC |
                                UCT_MD_FLAG_NEED_RKEY | UCT_MD_FLAG_NEED_MEMH));
    EXPECT_TRUE(attr.cap.reg_mem_types & (1 << UCS_MEMORY_TYPE_HOST));
    EXPECT_EQ(attr.cap.reg_mem_types,
              attr.cap.access_mem_types | (1 << UCS_MEMORY_TYPE_HOST));
    EXPECT_EQ(0u, attr.cap.detect_mem_types);
    EXPECT_EQ(flags, m_iface->attr.cap.flags & flags);
    EXPECT_TRUE(m_iface->reaches(*m_iface));
    EXPECT_FALSE(m_iface->reaches(other));
}

/* Watching a thread counts its endpoints. */
TEST_P(dcx_view_copy, watched)
{
    dcx_views views;
    unsigned copy_eps = 99;

    views->watch_begin();
    EXPECT_EQ(0u, views->watch_end(NULL, 0, &copy_eps));
    EXPECT_EQ(0u, copy_eps);

    views->watch_begin();
    uct_ep_destroy(m_iface->make_ep());
    uct_ep_destroy(m_iface->make_ep());
    EXPECT_EQ(0u, views->watch_end(NULL, 0, &copy_eps));
    EXPECT_EQ(2u, copy_eps);
}

/* Before views are enabled, the component has no memory domain. */
class dcx_view_late : public testing::TestWithParam<int> {};

TEST_P(dcx_view_late, has_no_domain)
{
    unsigned num_mds;

    HCA_CHECK_CALL(dlopen(dcx_loop::module(), RTLD_NOW) != NULL);
    find_component(&num_mds);
    EXPECT_EQ(0u, num_mds);
    dcx_views();
    find_component(&num_mds);
    EXPECT_EQ(1u, num_mds);
}

/* A worker of another UCP than the one that dcx was built with is left
 * alone. */
TEST_P(dcx_view_late, foreign_worker)
{
    std::vector<uint8_t> memory = random_bytes(1 << 20, 1);
    auto before                 = memory;
    dcx_views views;

    EXPECT_FALSE(views->ucp->worker_discount((ucp_worker_h)memory.data()));
    EXPECT_EQ(before, memory);
}

std::string name_type(const testing::TestParamInfo<size_t> &info)
{
    return named_types()[info.param].name;
}

INSTANTIATE_TEST_SUITE_P(types, dcx_view_copy,
                         testing::Range<size_t>(0, named_types().size()),
                         name_type);
INSTANTIATE_TEST_SUITE_P(late, dcx_view_late, testing::Values(0));

} /* namespace */

int main(int argc, char **argv)
{
    const std::vector<std::pair<const char *, const char *>> env = {
        {"UCX_DCX_TYPES", "y"},
        {"UCX_TLS", "dcx,dcx_view"},
        {"UCX_DCX_FAILURE", "error"},
        {"SOFTHCA_LOG", "error"},
    };
    std::vector<hca_mode> modes = {{"types", env}, {"late", env}};
    auto add = [&](const char *name, const char *var, const char *value,
                   const char *var2 = NULL, const char *value2 = NULL) {
        hca_mode mode = {name, env};

        mode.env.push_back({var, value});
        if (var2 != NULL) {
            mode.env.push_back({var2, value2});
        }
        modes.push_back(mode);
    };

    /* protocols of UCP, for test_dcx_view_pack.cc */
    add("any", "UCX_RNDV_SCHEME", "auto");
    add("bcopy", "UCX_RNDV_THRESH", "inf", "UCX_ZCOPY_THRESH", "inf");
    add("zcopy", "UCX_RNDV_THRESH", "inf", "UCX_ZCOPY_THRESH", "0");
    add("rndv", "UCX_RNDV_THRESH", "0");
    add("rndv_get", "UCX_RNDV_THRESH", "0", "UCX_RNDV_SCHEME", "get_zcopy");
    add("rndv_put", "UCX_RNDV_THRESH", "0", "UCX_RNDV_SCHEME", "put_zcopy");
    add("rndv_am", "UCX_RNDV_THRESH", "0", "UCX_RNDV_SCHEME", "am");
    add("match", "UCX_DCX_TM_ENABLE", "y");
    add("shm", "UCX_TLS", "dcx,dcx_view,sm,self");
    add("sleep", "DCX_TEST_WAKEUP", "1");
    /* no keys: through UCP's buffers in memory */
    add("no_keys", "UCX_DCX_DEVX", "n", "UCX_RNDV_THRESH", "0");
    return hca_test_main(argc, argv, modes);
}
