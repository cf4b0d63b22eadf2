/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Memory of a fake GPU (fake_gpu.h) in UCP: messages with tags, active
 * messages, puts and gets with it at either end or both. Where dcx registers
 * it, long ones are not copied; where it does not, UCP copies them by the GPU's
 * own transport. A load or a store of the processor would end the program.
 */
#include "fake_gpu.h"

#include "dcx_ucp.h"

extern "C" {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
#include "views/view/dcx_view_ops.h"
#pragma GCC diagnostic pop
}

#include <memory>
#include <random>
#include <ucp/api/ucp.h>

namespace {

/* Memory of a GPU or of the host, of random bytes */
class memory {
public:
    memory(bool is_gpu, size_t length, unsigned seed) :
        m_gpu(is_gpu ? new fake_gpu((length + 4095) & ~4095ul) : NULL),
        m_host(is_gpu ? 0 : length), m_length(length)
    {
        std::mt19937 random(seed);

        for (size_t i = 0; i < length; i++) {
            bytes()[i] = random();
        }
    }

    /* Returns the address for operations, and for the test. */
    uint8_t *addr() { return m_gpu ? m_gpu->addr : m_host.data(); }

    uint8_t *bytes() { return m_gpu ? m_gpu->pages : m_host.data(); }

    std::vector<uint8_t> data() { return {bytes(), bytes() + m_length}; }

private:
    std::unique_ptr<fake_gpu> m_gpu;
    std::vector<uint8_t> m_host;
    const size_t m_length;
};

const size_t lengths[] = {1, 8, 200, 2000, 10000, 100000, 3000000};

class dcx_gpu_ucp : public dcx_ucp {
protected:
    dcx_gpu_ucp() : dcx_ucp(UCP_FEATURE_RMA | UCP_FEATURE_TAG | UCP_FEATURE_AM)
    {
    }

    /* Sends the bytes with a tag, and receives them. */
    void send(memory &from, memory &to, size_t length)
    {
        ucp_request_param_t param = {};
        ucs_status_ptr_t recv, send;

        recv = ucp_tag_recv_nbx(m_worker, to.addr(), length, 5, -1, &param);
        send = ucp_tag_send_nbx(m_ep, from.addr(), length, 5, &param);
        EXPECT_EQ(UCS_OK, wait(send));
        EXPECT_EQ(UCS_OK, wait(recv));
    }

    /* Sends before the receive is posted. */
    void send_first(memory &from, memory &to, size_t length)
    {
        ucp_request_param_t param = {};
        ucs_status_ptr_t recv, send;

        send = ucp_tag_send_nbx(m_ep, from.addr(), length, 5, &param);
        for (unsigned i = 0; i < 100; i++) {
            ucp_worker_progress(m_worker);
        }
        recv = ucp_tag_recv_nbx(m_worker, to.addr(), length, 5, -1, &param);
        EXPECT_EQ(UCS_OK, wait(send));
        EXPECT_EQ(UCS_OK, wait(recv));
    }

    /* An active message to be received into a buffer */
    struct message {
        dcx_gpu_ucp *test;
        memory *to;
        bool is_rndv     = false;
        bool is_received = false;
    };

    /* Receives an active message, whose data is here or at the sender. */
    static ucs_status_t receive_am(void *arg, const void *header,
                                   size_t header_length, void *data,
                                   size_t length,
                                   const ucp_am_recv_param_t *param)
    {
        message *msg             = (message *)arg;
        ucp_request_param_t recv = {};
        ucp_am_recv_data_nbx_callback_t cb;
        ucs_status_ptr_t request;

        EXPECT_EQ("header", std::string((const char *)header, header_length));
        cb = [](void *req, ucs_status_t status, size_t, void *user_data) {
            EXPECT_EQ(UCS_OK, status);
            ((message *)user_data)->is_received = true;
            ucp_request_free(req);
        };
        recv.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
                            UCP_OP_ATTR_FIELD_USER_DATA;
        recv.cb.recv_am = cb;
        recv.user_data  = arg;
        msg->is_rndv    = param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV;
        request         = ucp_am_recv_data_nbx(msg->test->m_worker, data,
                                               msg->to->addr(), length, &recv);
        if (!UCS_PTR_IS_PTR(request)) {
            EXPECT_EQ(UCS_OK, UCS_PTR_STATUS(request));
            msg->is_received = true;
        }
        return msg->is_rndv ? UCS_INPROGRESS : UCS_OK;
    }

    /* Sends an active message: @flag is UCP_AM_SEND_FLAG_EAGER or _RNDV. */
    void send_am(memory &from, memory &to, size_t length, uint32_t flag)
    {
        ucp_am_handler_param_t handler = {};
        ucp_request_param_t param      = {};
        message msg                    = {this, &to};
        dcx_deadline deadline;

        handler.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID |
                             UCP_AM_HANDLER_PARAM_FIELD_FLAGS |
                             UCP_AM_HANDLER_PARAM_FIELD_CB |
                             UCP_AM_HANDLER_PARAM_FIELD_ARG;
        handler.id    = 3;
        handler.flags = UCP_AM_FLAG_WHOLE_MSG | UCP_AM_FLAG_PERSISTENT_DATA;
        handler.cb    = receive_am;
        handler.arg   = &msg;
        UCT_CALL(ucp_worker_set_am_recv_handler(m_worker, &handler));
        param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
        param.flags        = flag;
        EXPECT_EQ(UCS_OK, wait(ucp_am_send_nbx(m_ep, 3, "header", 6,
                                               from.addr(), length, &param)));
        while (!msg.is_received) {
            deadline.check("an active message");
            ucp_worker_progress(m_worker);
        }
        EXPECT_EQ(flag == UCP_AM_SEND_FLAG_RNDV, msg.is_rndv);
    }

    void rma(memory &near, memory &far, size_t length, bool is_put)
    {
        ucp_mem_map_params_t params = {};
        ucp_request_param_t param   = {};
        ucp_mem_h memh;
        ucp_rkey_h rkey;
        void *packed;
        size_t size;

        params.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS |
                            UCP_MEM_MAP_PARAM_FIELD_LENGTH;
        params.address = far.addr();
        params.length  = length;
        UCT_CALL(ucp_mem_map(m_context, &params, &memh));
        UCT_CALL(ucp_rkey_pack(m_context, memh, &packed, &size));
        UCT_CALL(ucp_ep_rkey_unpack(m_ep, packed, &rkey));
        ucp_rkey_buffer_release(packed);
        EXPECT_EQ(UCS_OK,
                  wait(is_put ?
                           ucp_put_nbx(m_ep, near.addr(), length,
                                       (uintptr_t)far.addr(), rkey, &param) :
                           ucp_get_nbx(m_ep, near.addr(), length,
                                       (uintptr_t)far.addr(), rkey, &param)));
        EXPECT_EQ(UCS_OK, wait(ucp_ep_flush_nbx(m_ep, &param)));
        ucp_rkey_destroy(rkey);
        EXPECT_EQ(UCS_OK, ucp_mem_unmap(m_context, memh));
    }

    /* Moves 3,000,000 bytes from GPU to GPU. Returns the bytes copied. */
    template <typename F> size_t copied_by(F move)
    {
        const size_t length = 3000000;
        memory from(true, length, 1), to(true, length, 2);

        fake_gpu_num_copied = 0;
        move(from, to, length);
        EXPECT_TRUE(from.data() == to.data());
        return fake_gpu_num_copied;
    }

    /* Calls @check with the bytes that each rendezvous copies. */
    template <typename F> void check_copies(F check)
    {
        check(copied_by([&](memory &from, memory &to, size_t length) {
            send(from, to, length);
        }));
        check(copied_by([&](memory &from, memory &to, size_t length) {
            send_am(from, to, length, UCP_AM_SEND_FLAG_RNDV);
        }));
    }

    /* Runs @move for all lengths, with either end or both on the GPU. */
    template <typename F> void run(F move)
    {
        for (unsigned ends = 1; ends < 4; ends++) {
            for (size_t length : lengths) {
                memory from(ends & 1, length, 1), to(ends & 2, length, 2);

                SCOPED_TRACE("ends " + std::to_string(ends) + ", " +
                             std::to_string(length) + " bytes");
                move(from, to, length);
                ASSERT_TRUE(from.data() == to.data());
            }
        }
    }
};

TEST_P(dcx_gpu_ucp, tags)
{
    run([&](memory &from, memory &to, size_t length) {
        send(from, to, length);
    });
}

TEST_P(dcx_gpu_ucp, unexpected_tags)
{
    run([&](memory &from, memory &to, size_t length) {
        send_first(from, to, length);
    });
}

TEST_P(dcx_gpu_ucp, active_messages)
{
    for (uint32_t flag : {UCP_AM_SEND_FLAG_EAGER, UCP_AM_SEND_FLAG_RNDV}) {
        run([&](memory &from, memory &to, size_t length) {
            SCOPED_TRACE("flag " + std::to_string(flag));
            send_am(from, to, length, flag);
        });
    }
}

/* Needs UCP's newer protocols: the older ones read local memory by the
 * processor (ucp_put_nbx() of UCX 1.13). */
class dcx_gpu_ucp_rma : public dcx_gpu_ucp {};

TEST_P(dcx_gpu_ucp_rma, puts_and_gets)
{
    run([&](memory &from, memory &to, size_t length) {
        rma(from, to, length, true);
    });
    run([&](memory &from, memory &to, size_t length) {
        rma(to, from, length, false);
    });
}

INSTANTIATE_TEST_SUITE_P(proto, dcx_gpu_ucp, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(proto, dcx_gpu_ucp_rma, testing::Values(0));

class dcx_gpu_ucp_direct : public dcx_gpu_ucp {};

/* The adapter moves the data of a rendezvous. */
TEST_P(dcx_gpu_ucp_direct, long_messages_are_not_copied)
{
    check_copies([](size_t copied) { EXPECT_EQ(0u, copied); });
}

INSTANTIATE_TEST_SUITE_P(peer, dcx_gpu_ucp, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(peer, dcx_gpu_ucp_direct, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(tags, dcx_gpu_ucp, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(tags, dcx_gpu_ucp_direct, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(proto, dcx_gpu_ucp_direct, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(off, dcx_gpu_ucp, testing::Values(0));

/* Registers dma-bufs only. UCP passes them since 1.16, and with the newer
 * protocols of 1.14 and 1.15. */
#if UCT_VERNO_MINOR >= 14
INSTANTIATE_TEST_SUITE_P(dmabuf, dcx_gpu_ucp, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(dmabuf, dcx_gpu_ucp_rma, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(dmabuf, dcx_gpu_ucp_direct, testing::Values(0));
#endif

class dcx_gpu_ucp_staged : public dcx_gpu_ucp {};

TEST_P(dcx_gpu_ucp_staged, long_messages_are_copied)
{
    check_copies([](size_t copied) { EXPECT_LE(3000000u, copied); });
}

INSTANTIATE_TEST_SUITE_P(off, dcx_gpu_ucp_staged, testing::Values(0));

/* --- the memory type of views --------------------------------------------- */

/* Enables views, and returns the memory types of their transport besides the
 * host's. */
uint64_t view_types(const uct_dcx_view_ops_t *ops)
{
    uct_component_h *list;
    uint64_t types = 0;
    unsigned count;

    HCA_CHECK_CALL(ops->enable() != NULL);
    UCT_CALL(uct_query_components(&list, &count));
    for (unsigned i = 0; i < count; i++) {
        uct_component_attr_t attr = {};
        uct_md_config_t *config;
        uct_md_attr_t md_attr;
        uct_md_h md;

        attr.field_mask = UCT_COMPONENT_ATTR_FIELD_NAME;
        UCT_CALL(uct_component_query(list[i], &attr));
        if (!strcmp(attr.name, UCT_DCX_VIEW_TL)) {
            UCT_CALL(uct_md_config_read(list[i], NULL, NULL, &config));
            UCT_CALL(uct_md_open(list[i], UCT_DCX_VIEW_TL, config, &md));
            uct_config_release(config);
            UCT_CALL(uct_md_query(md, &md_attr));
            uct_md_close(md);
            types = md_attr.cap.access_mem_types &
                    ~UCS_BIT(UCS_MEMORY_TYPE_HOST);
        }
    }
    uct_release_component_list(list);
    return types;
}

/* Each mode has another GPU. */
class dcx_gpu_views : public testing::TestWithParam<ucs_memory_type_t> {};

TEST_P(dcx_gpu_views, have_a_type_of_their_own)
{
    auto ops = (const uct_dcx_view_ops_t *)dlsym(
        dlopen(dcx_loop::module(), RTLD_NOW), UCT_DCX_VIEW_OPS);

    if (ops == NULL) {
        GTEST_SKIP() << "dcx was built without views";
    }
    if (GetParam() == UCS_MEMORY_TYPE_UNKNOWN) {
        EXPECT_EQ(NULL, ops->enable());
    } else {
        EXPECT_EQ(UCS_BIT(GetParam()), view_types(ops));
    }
}

INSTANTIATE_TEST_SUITE_P(no_gpu, dcx_gpu_views,
                         testing::Values(UCS_MEMORY_TYPE_ROCM));
INSTANTIATE_TEST_SUITE_P(rocm, dcx_gpu_views,
                         testing::Values(UCS_MEMORY_TYPE_CUDA_MANAGED));
INSTANTIATE_TEST_SUITE_P(kfd, dcx_gpu_views,
                         testing::Values(UCS_MEMORY_TYPE_CUDA_MANAGED));
INSTANTIATE_TEST_SUITE_P(all, dcx_gpu_views,
                         testing::Values(UCS_MEMORY_TYPE_UNKNOWN));

} /* namespace */

int main(int argc, char **argv)
{
    const std::vector<std::pair<const char *, const char *>> env = {
        {"DCX_TEST_PEER_MEM", "y"},
        {"UCX_TLS", "dcx,rocm_copy"}};
    auto tags = env, proto = env, off = env, dmabuf = env;

    tags.push_back({"UCX_DCX_TM_ENABLE", "y"});
    proto.push_back({"UCX_PROTO_ENABLE", "y"});
    off.push_back({"UCX_DCX_GPU_DIRECT_RDMA", "n"});
    dmabuf.push_back({"UCX_PROTO_ENABLE", "y"});
    dmabuf.push_back({"DCX_TEST_PEER_MEM", "n"});
    return hca_test_main(
        argc, argv,
        {{"peer", env},
         {"tags", tags},
         {"proto", proto},
         {"off", off},
         {"dmabuf", dmabuf},
         {"no_gpu", {{"DCX_TEST_GPU_TYPES", "none"}}},
         {"rocm", {{"UCX_DCX_TYPES", "y"}}},
         {"kfd", {{"DCX_TEST_GPU_TYPES", "none"}, {"DCX_TEST_PEER_MEM", "y"}}},
         {"all", {{"DCX_TEST_GPU_TYPES", "all"}}}});
}
