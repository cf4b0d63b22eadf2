/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Lists by the calls of UCX, which has them since 1.22: attributes and
 * operation of the interface, and an operation of UCP with a piece that is
 * longer than a WQE may be.
 */
#include "dcx_list_bench.h"
#include "dcx_list_memory.h"
#include "dcx_ucp.h"

#include <uct/api/version.h>

#if UCT_VERNO_MINOR >= 22
#include <uct/api/v2/uct_v2.h>
#endif

namespace {

#if UCT_VERNO_MINOR >= 22

/* --- UCT ------------------------------------------------------------------ */

class dcx_list_uct : public dcx_list_bench {
protected:
    uct_iface_attr_v2_t query(uint64_t fields) const
    {
        uct_iface_attr_v2_t attr = {};

        attr.field_mask              = fields;
        attr.cap.flags               = 1ul << 63;
        attr.max_put_sgl_zcopy_count = 7;
        UCT_CALL(uct_iface_query_v2(m_dcx.iface, &attr));
        return attr;
    }
};

/* The number is for any endpoint. */
TEST_P(dcx_list_uct, is_announced)
{
    uct_iface_attr_v2_t attr =
        query(UCT_IFACE_ATTR_FIELD_CAP_FLAGS |
              UCT_IFACE_ATTR_FIELD_MAX_PUT_SGL_ZCOPY_COUNT);

    EXPECT_EQ(UCT_IFACE_FLAG_V2_PUT_SGL_ZCOPY,
              attr.cap.flags & UCT_IFACE_FLAG_V2_PUT_SGL_ZCOPY);
    EXPECT_EQ(254u, attr.max_put_sgl_zcopy_count);
    EXPECT_EQ((getenv("SOFTHCA_LINK") != NULL) ? 254u : 507u, m_max);
}

/* Fields that are not asked for are left alone. */
TEST_P(dcx_list_uct, is_not_asked)
{
    uct_iface_attr_v2_t attr = query(UCT_IFACE_ATTR_FIELD_CAP_FLAGS);

    EXPECT_EQ(7u, attr.max_put_sgl_zcopy_count);
    attr = query(UCT_IFACE_ATTR_FIELD_MAX_PUT_SGL_ZCOPY_COUNT);
    EXPECT_EQ(1ul << 63, attr.cap.flags);
    EXPECT_EQ(254u, attr.max_put_sgl_zcopy_count);
}

TEST_P(dcx_list_uct, is_called)
{
    dcx_end end;

    m_put = uct_ep_put_sgl_zcopy;
    begin();
    add_apart(254, 1000);
    run();
    m_list.lengths[3] = SIZE_MAX - 64;
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, post(m_list, &end.comp));
    EXPECT_EQ(0u, m_log.take().find("put_sgl_zcopy: piece 3 of 254 ("));
}

INSTANTIATE_TEST_SUITE_P(exclusive, dcx_list_uct, testing::Values(false));
INSTANTIATE_TEST_SUITE_P(shared, dcx_list_uct, testing::Values(false));
INSTANTIATE_TEST_SUITE_P(roce, dcx_list_uct, testing::Values(false));

/* --- UCP ------------------------------------------------------------------ */

class dcx_list_ucp : public dcx_ucp {
protected:
    dcx_list_ucp() : dcx_ucp(UCP_FEATURE_RMA)
    {
        m_near_memh = map(m_near);
        m_far_memh  = map(m_far);
        unpack();
    }

    ~dcx_list_ucp()
    {
        ucp_rkey_destroy(m_rkey);
        close_ep();
        EXPECT_EQ(UCS_OK, ucp_mem_unmap(m_context, m_near_memh));
        EXPECT_EQ(UCS_OK, ucp_mem_unmap(m_context, m_far_memh));
    }

    ucp_mem_h map(const dcx_list_memory &memory)
    {
        ucp_mem_map_params_t params = {};
        ucp_mem_h memh;

        params.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS |
                            UCP_MEM_MAP_PARAM_FIELD_LENGTH;
        params.address = memory.start();
        params.length  = memory.SIZE;
        UCT_CALL(ucp_mem_map(m_context, &params, &memh));
        return memh;
    }

    void unpack()
    {
        size_t length;
        void *packed;

        UCT_CALL(ucp_rkey_pack(m_context, m_far_memh, &packed, &length));
        UCT_CALL(ucp_ep_rkey_unpack(m_ep, packed, &m_rkey));
        ucp_rkey_buffer_release(packed);
    }

    /* Puts pieces at the same offsets of both sides. */
    ucs_status_t put(const std::vector<std::pair<size_t, size_t>> &pieces)
    {
        std::vector<void *> buffers;
        std::vector<uint64_t> remotes;
        std::vector<size_t> lengths;
        std::vector<ucp_mem_h> memhs(pieces.size(), m_near_memh);
        std::vector<ucp_rkey_h> rkeys(pieces.size(), m_rkey);
        ucp_dt_local_sgl_t local   = {};
        ucp_dt_remote_sgl_t remote = {};
        ucp_request_param_t param  = {};

        for (auto piece : pieces) {
            buffers.push_back(m_near.start() + piece.first);
            remotes.push_back((uintptr_t)m_far.start() + piece.first);
            lengths.push_back(piece.second);
        }
        local.field_mask = UCP_DT_LOCAL_SGL_FIELD_BUFFERS |
                           UCP_DT_LOCAL_SGL_FIELD_LENGTHS |
                           UCP_DT_LOCAL_SGL_FIELD_MEMHS;
        local.buffers     = buffers.data();
        local.lengths     = lengths.data();
        local.memhs       = memhs.data();
        remote.field_mask = UCP_DT_REMOTE_SGL_FIELD_REMOTE_ADDRS |
                            UCP_DT_REMOTE_SGL_FIELD_LENGTHS |
                            UCP_DT_REMOTE_SGL_FIELD_RKEYS;
        remote.remote_addrs = remotes.data();
        remote.lengths      = lengths.data();
        remote.rkeys        = rkeys.data();
        param.op_attr_mask  = UCP_OP_ATTR_FIELD_DATATYPE |
                             UCP_OP_ATTR_FIELD_REMOTE_DATATYPE |
                             UCP_OP_ATTR_FIELD_REMOTE |
                             UCP_OP_ATTR_FIELD_REMOTE_COUNT;
        param.datatype        = ucp_dt_make_sgl();
        param.remote_datatype = ucp_dt_make_sgl();
        param.remote          = &remote;
        param.remote_count    = pieces.size();
        return wait(ucp_put_nbx(m_ep, &local, pieces.size(),
                                UCP_REMOTE_ADDR_INVALID, UCP_RKEY_INVALID,
                                &param));
    }

    dcx_list_memory m_near, m_far;
    ucp_mem_h m_near_memh, m_far_memh;
    ucp_rkey_h m_rkey;
};

TEST_P(dcx_list_ucp, piece_of_more_than_1_gib)
{
    const size_t length = m_near.EDGE + 1000, last = m_near.NEAR - 8;
    ucp_request_param_t param = {};

    m_near.fill();
    auto want = m_near.bytes();
    std::fill(want.begin() + m_near.NEAR + 1000, want.end(), 0);
    memcpy(&want[m_near.NEAR + last], m_near.edge() + last, 8);
    EXPECT_EQ(UCS_OK, put({{0, length}, {m_near.EDGE + last, 8}}));
    EXPECT_EQ(UCS_OK, wait(ucp_ep_flush_nbx(m_ep, &param)));
    EXPECT_TRUE(want == m_far.bytes());
}

/* A list of more pieces than the attribute says */
TEST_P(dcx_list_ucp, many_pieces)
{
    const size_t start        = m_near.EDGE - m_near.NEAR;
    ucp_request_param_t param = {};
    std::vector<std::pair<size_t, size_t>> pieces;

    m_near.fill();
    auto want = m_near.bytes();
    for (size_t at = 0; at < want.size(); at += 64) {
        pieces.push_back({start + at, 48});
        std::fill(want.begin() + at + 48, want.begin() + at + 64, 0);
    }
    ASSERT_EQ(2048u, pieces.size());
    EXPECT_EQ(UCS_OK, put(pieces));
    EXPECT_EQ(UCS_OK, wait(ucp_ep_flush_nbx(m_ep, &param)));
    EXPECT_TRUE(want == m_far.bytes());
}

INSTANTIATE_TEST_SUITE_P(exclusive, dcx_list_ucp, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(roce, dcx_list_ucp, testing::Values(0));

#else

class dcx_list_none : public testing::TestWithParam<int> {};

TEST_P(dcx_list_none, in_ucx)
{
    GTEST_SKIP() << "this UCX has no lists";
}

INSTANTIATE_TEST_SUITE_P(exclusive, dcx_list_none, testing::Values(0));

#endif

} /* namespace */

int main(int argc, char **argv)
{
    const std::pair<const char *, const char *> tls = {"UCX_TLS", "dcx"};

    return hca_test_main(argc, argv,
                         {{"exclusive", {tls}},
                          {"shared", {tls, {"UCX_DCX_TX_POLICY", "rand"}}},
                          {"roce", {tls, {"SOFTHCA_LINK", "roce"}}}});
}
