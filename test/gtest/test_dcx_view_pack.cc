/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * UCP sends and receives views as memory of a type that is not the host's: the
 * copy transport packs and unpacks it where UCP does not use the device. Each
 * mode selects a protocol of UCP: see main() in test_dcx_view_copy.cc.
 */
#include "dcx_view_mem.h"
#include "ucx_log.h"

#include <optional>
#include <regex>

extern "C" {
#include <ucp/api/ucp.h>
}

namespace {

constexpr ucp_tag_t TAG = 0x1d0c;

/* Two workers, and an endpoint from the first to each */
class ucp_bench {
public:
    ucp_bench()
    {
        unsigned num_mds;

        views->watch_begin();
        open_context();
        for (auto &worker : workers) {
            ucp_worker_params_t params = {};

            UCT_CALL(ucp_worker_create(m_context, &params, &worker));
        }
        mds.resize(16);
        num_mds = views->watch_end(mds.data(), mds.size(), &copy_eps);
        mds.resize(getenv("UCX_DCX_DEVX") ? 0 : num_mds);
        for (int i = 0; i < 2; i++) {
            connect(workers[i], &eps[i]);
        }
    }

    ~ucp_bench()
    {
        for (ucp_ep_h ep : eps) {
            ucp_request_param_t param = {};

            wait({ucp_ep_close_nbx(ep, &param)});
        }
        for (ucp_worker_h worker : workers) {
            ucp_worker_destroy(worker);
        }
        views->leave(mds.data(), mds.size());
        ucp_cleanup(m_context);
    }

    ucp_bench(const ucp_bench &) = delete;

    void progress()
    {
        for (ucp_worker_h worker : workers) {
            ucp_worker_progress(worker);
        }
    }

    /* Checks that the worker may wait for an event when all is done. */
    void fall_asleep()
    {
        dcx_deadline deadline;

        for (ucp_worker_h worker : workers) {
            while (ucp_worker_arm(worker) == UCS_ERR_BUSY) {
                deadline.check("a worker that can sleep");
                progress();
            }
            EXPECT_EQ(UCS_OK, ucp_worker_arm(worker));
        }
    }

    void wait(const std::vector<ucs_status_ptr_t> &requests)
    {
        dcx_deadline deadline;

        for (ucs_status_ptr_t request : requests) {
            if (request == NULL) {
                continue;
            }
            ASSERT_FALSE(UCS_PTR_IS_ERR(request));
            while (ucp_request_check_status(request) == UCS_INPROGRESS) {
                deadline.check("a message");
                progress();
            }
            EXPECT_EQ(UCS_OK, ucp_request_check_status(request));
            ucp_request_free(request);
        }
    }

    dcx_views views;
    ucp_worker_h workers[2];
    ucp_ep_h eps[2]; /* from the first worker: to itself, to the
                      * other */
    std::vector<void *> mds;
    unsigned copy_eps;

private:
    void open_context()
    {
        ucp_params_t params = {};
        ucp_config_t *config;

        params.field_mask = UCP_PARAM_FIELD_FEATURES;
        params.features   = UCP_FEATURE_TAG |
                          (getenv("DCX_TEST_WAKEUP") ? UCP_FEATURE_WAKEUP : 0);
        UCT_CALL(ucp_config_read(NULL, NULL, &config));
        ucs_status_t status = ucp_init(&params, config, &m_context);
        ucp_config_release(config);
        UCT_CALL(status);
    }

    void connect(ucp_worker_h worker, ucp_ep_h *ep_p)
    {
        ucp_ep_params_t params = {};
        ucp_address_t *address;
        size_t length;

        UCT_CALL(ucp_worker_get_address(worker, &address, &length));
        params.field_mask   = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
        params.address      = address;
        ucs_status_t status = ucp_ep_create(workers[0], &params, ep_p);
        ucp_worker_release_address(worker, address);
        UCT_CALL(status);
    }

    ucp_context_h m_context = NULL;
};

/* One side of a message: plain memory, or a view of data of a type */
class message_side {
public:
    message_side(bool is_view, const view_type &type, size_t length,
                 ucp_bench &bench, bool is_dest, unsigned seed) :
        mem(type, (length + type.shape->size - 1) / type.shape->size, seed),
        host(random_bytes(length, seed + 1))
    {
        if (is_view) {
            m_view.emplace(mem, bench.mds, is_dest);
            param.op_attr_mask = UCP_OP_ATTR_FIELD_MEMORY_TYPE;
            param.memory_type  = (ucs_memory_type_t)m_view->memory_type();
        }
    }

    void *address() { return m_view ? (void *)m_view->address() : host.data(); }

    /* Returns the first bytes, as many as the sender has. */
    std::vector<uint8_t> content()
    {
        return m_view ? mem.gather(0, host.size()) : host;
    }

    /* Returns all memory of this side. */
    const std::vector<uint8_t> &memory() const
    {
        return m_view ? mem.bytes : host;
    }

    /* Returns the expected memory when @content has arrived. */
    std::vector<uint8_t> received(const std::vector<uint8_t> &content)
    {
        return m_view ? mem.scattered(0, content) : content;
    }

    shaped_mem mem;
    std::vector<uint8_t> host;
    ucp_request_param_t param = {};

private:
    std::optional<test_view> m_view;
};

class dcx_view_pack : public testing::TestWithParam<int> {
protected:
    enum way { EXPECTED, UNEXPECTED, SELF };

    void SetUp() override
    {
        unsigned major, minor, release;

        ucp_get_version(&major, &minor, &release);
        if ((major > 1) || (minor > 15)) {
            GTEST_SKIP() << "this UCP takes no type of memory from a call";
        }
        m_bench = std::make_unique<ucp_bench>();
    }

    void TearDown() override
    {
        if (!m_bench) {
            return;
        }
        if (getenv("DCX_TEST_WAKEUP")) {
            m_bench->fall_asleep();
        }
        EXPECT_EQ("", m_log.take());
        m_bench.reset();
    }

    static std::string describe(ucp_ep_h ep)
    {
        char *text  = NULL;
        size_t size = 0;
        FILE *file  = open_memstream(&text, &size);

        ucp_ep_print_info(ep, file);
        fclose(file);

        std::string description = text;

        free(text);
        return description;
    }

    void wait_unexpected(ucp_worker_h worker)
    {
        dcx_deadline deadline;
        ucp_tag_recv_info_t info;

        while (ucp_tag_probe_nb(worker, TAG, UINT64_MAX, 0, &info) == NULL) {
            deadline.check("an unexpected message");
            m_bench->progress();
        }
    }

    void check(way by, message_side &src, message_side &dest)
    {
        int peer            = (by != SELF);
        ucp_worker_h worker = m_bench->workers[peer];
        size_t length       = src.host.size();
        auto want           = dest.received(src.content());
        auto source         = src.memory();
        ucs_status_ptr_t send, recv;
        auto post_recv = [&] {
            return ucp_tag_recv_nbx(worker, dest.address(), length, TAG,
                                    UINT64_MAX, &dest.param);
        };

        dest.param.op_attr_mask |= UCP_OP_ATTR_FLAG_NO_IMM_CMPL;
        recv = (by == UNEXPECTED) ? NULL : post_recv();
        send = ucp_tag_send_nbx(m_bench->eps[peer], src.address(), length, TAG,
                                &src.param);
        if (by == UNEXPECTED) {
            wait_unexpected(worker);
            recv = post_recv();
        }
        m_bench->wait({send, recv});
        EXPECT_TRUE(want == dest.memory());
        EXPECT_TRUE(source == src.memory());
    }

    /* Returns the minimum length: UCP sends short messages from the address,
     * for any memory type. Views are longer than any limit of short messages;
     * that of "self" is the highest. */
    static size_t min_send()
    {
        return strstr(getenv("UCX_TLS"), "self") ? 9000 : 1024;
    }

    void check_lengths(way by)
    {
        const char *types[] = {"column", "box", "rounds"};
        unsigned turn       = 0;

        for (size_t length :
             {1, 300, 1024, 5000, 8257, 9000, 40000, 300000, 1000000}) {
            check_length(by, find_type(types[turn % 3]), length, turn * 10);
            turn++;
        }
    }

    void check_length(way by, const view_type &type, size_t length,
                      unsigned seed)
    {
        for (int kind = 1; kind < 4; kind++) {
            SCOPED_TRACE(std::to_string(length) + " bytes, kind " +
                         std::to_string(kind));
            if ((kind & 1) && (length < min_send())) {
                continue;
            }

            message_side src(kind & 1, type, length, *m_bench, false, seed);
            message_side dest(kind & 2, type, length, *m_bench, true, seed + 5);

            check(by, src, dest);
        }
    }

    static const view_type &find_type(const std::string &name)
    {
        for (const auto &entry : named_types()) {
            if (name == entry.name) {
                return *entry.type;
            }
        }
        throw std::runtime_error("no type " + name);
    }

    ucx_log_reader m_log;
    std::unique_ptr<ucp_bench> m_bench;
};

TEST_P(dcx_view_pack, expected)
{
    EXPECT_LE(2u, m_bench->copy_eps);
    check_lengths(EXPECTED);
}

TEST_P(dcx_view_pack, unexpected)
{
    check_lengths(UNEXPECTED);
}

TEST_P(dcx_view_pack, to_self)
{
    check_lengths(SELF);
}

/* The copy transport is only for copies within a process. UCP adds every
 * transport to an endpoint to itself as a lane for large messages, but does not
 * use one that is much slower than the first. */
TEST_P(dcx_view_pack, lanes)
{
    std::string own = describe(m_bench->eps[0]);
    std::string far = describe(m_bench->eps[1]);

    EXPECT_NE(std::string::npos, own.find(":dcx/")) << own;
    EXPECT_FALSE(std::regex_search(own, std::regex("dcx_view.*rma_bw#0")))
        << own;
    EXPECT_NE(std::string::npos, far.find(":dcx/")) << far;
    EXPECT_EQ(std::string::npos, far.find("dcx_view")) << far;
}

INSTANTIATE_TEST_SUITE_P(any, dcx_view_pack, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(bcopy, dcx_view_pack, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(zcopy, dcx_view_pack, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(rndv, dcx_view_pack, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(rndv_get, dcx_view_pack, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(rndv_put, dcx_view_pack, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(rndv_am, dcx_view_pack, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(match, dcx_view_pack, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(shm, dcx_view_pack, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(sleep, dcx_view_pack, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(no_keys, dcx_view_pack, testing::Values(0));

} /* namespace */
