/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Base of tests of posted WQEs: an interface whose ring can be read, and a twin
 * (dc_twin.h) to compare with. Parameter: true with a global route header.
 */
#ifndef DCX_TEST_DCX_POST_BENCH_H
#define DCX_TEST_DCX_POST_BENCH_H

#include "dc_twin.h"
#include "dcx_loop.h"

class dcx_post_bench : public testing::TestWithParam<bool> {
protected:
    dcx_post_bench() : m_twin(m_dev, m_dcx.view().dctn, m_dcx.view().dc_key)
    {
        /* as the options of the mode say: see main() */
        struct ibv_ah_attr attr = m_dev.ah_attr(GetParam());

        attr.sl = 3;
        if (GetParam()) {
            attr.grh.traffic_class = 33;
            attr.grh.hop_limit     = 17;
        }
        HCA_CHECK_CALL((m_ah = ibv_create_ah(m_dev.pd, &attr)) != NULL);
        m_rkey   = dcx_peek_rkey(m_dcx.memh);
        m_lkey   = dcx_peek_lkey(m_dcx.memh);
        m_remote = (uintptr_t)m_dcx.mem.data() + 8192;
    }

    ~dcx_post_bench()
    {
        m_dcx.flush();
        EXPECT_EQ(0, ibv_destroy_ah(m_ah));
        EXPECT_EQ("", m_log.take()) << "the device complained";
    }

    static std::vector<uint8_t> pattern(size_t length)
    {
        std::vector<uint8_t> data(length);

        for (size_t i = 0; i < length; i++) {
            data[i] = 1 + i * 7;
        }
        return data;
    }

    bool is_compact() const { return !GetParam(); }

    /* Returns libmlx5's WQE for the operation, with index and QP of `view`. */
    wqe_bytes theirs(const dc_op &op, const struct dcx_view &view)
    {
        wqe_bytes wqe = m_twin.post(op, m_ah);

        wqe[1] = view.pi >> 8;
        wqe[2] = view.pi;
        wqe[4] = view.qpn >> 16;
        wqe[5] = view.qpn >> 8;
        wqe[6] = view.qpn;
        return is_compact() ? dc_compacted(wqe) : wqe;
    }

    /* Checks rlid and clears it. In RoCE v2 it is the UDP source port, which
     * libmlx5 chooses at random for each address handle without a flow label
     * (mlx5_ah_set_udp_sport()). */
    static void clear_rlid(wqe_bytes &wqe)
    {
        uint16_t port = (wqe[30] << 8) | wqe[31];

        EXPECT_GE(port, 0xc000);
        wqe[30] = wqe[31] = 0;
    }

    std::string diff(wqe_bytes theirs, wqe_bytes ours) const
    {
        if (m_dev.is_roce()) {
            clear_rlid(theirs);
            clear_rlid(ours);
        }
        return wqe_diff("libmlx5", theirs, "dcx", ours);
    }

    /* Runs `call`, which must post one WQE, and returns that. */
    wqe_bytes ours(const std::function<int()> &call)
    {
        struct dcx_view before, after;

        m_dcx.flush();
        before   = m_dcx.view();
        m_status = call();
        EXPECT_TRUE((m_status >= 0) || (m_status == UCS_INPROGRESS))
            << ucs_status_string((ucs_status_t)m_status);
        wqe_bytes wqe = dc_twin::wqe_at(before.ring, before.num_bb, before.pi);
        after         = m_dcx.view();
        EXPECT_EQ((wqe.size() + 63) / 64, (uint16_t)(after.pi - before.pi))
            << "blocks of one WQE";
        EXPECT_EQ(after.pi, after.dbrec) << "doorbell record";
        m_dcx.flush();
        return wqe;
    }

    void expect_same(const char *what, const dc_op &op,
                     const std::function<int()> &call)
    {
        struct dcx_view view = idle_view();

        EXPECT_EQ("", diff(theirs(op, view), ours(call))) << what;
    }

    struct dcx_view idle_view()
    {
        m_dcx.flush();
        return m_dcx.view();
    }

    dc_op remote(dc_op op) const
    {
        op.raddr = m_remote;
        op.rkey  = m_rkey;
        return op;
    }

    uct_iov_t iov(size_t offset, size_t length)
    {
        uct_iov_t iov = {};

        iov.buffer = m_dcx.mem.data() + offset;
        iov.length = length;
        iov.memh   = m_dcx.memh;
        iov.count  = 1;
        return iov;
    }

    std::vector<uct_iov_t> iovs(unsigned n)
    {
        std::vector<uct_iov_t> list;

        for (unsigned i = 0; i < n; i++) {
            list.push_back(iov(i * 64, 8 + i));
        }
        return list;
    }

    std::vector<struct ibv_sge> sges(const std::vector<uct_iov_t> &iovs) const
    {
        std::vector<struct ibv_sge> list;

        for (const auto &iov : iovs) {
            list.push_back(
                {(uintptr_t)iov.buffer, (uint32_t)iov.length, m_lkey});
        }
        return list;
    }

    /* Adds a data segment of @length bytes with the address and the key in the
     * WQE: in buffered operations they name a buffer of dcx. */
    dc_op with_buffer_of(dc_op op, const wqe_bytes &wqe, uint32_t length)
    {
        wqe_fields fields(wqe);
        uint64_t addr = fields.find("data0.addr")->value;
        uint32_t lkey = fields.find("data0.lkey")->value;

        op.sges = {{addr, length, lkey}};
        return op;
    }

    hca_log_reader m_log;
    hca_device m_dev;
    dcx_loop m_dcx;
    dc_twin m_twin;
    struct ibv_ah *m_ah;
    uint32_t m_lkey;
    uct_rkey_t m_rkey;
    uint64_t m_remote;
    int m_status = 0;
};

inline std::string dcx_post_name(const testing::TestParamInfo<bool> &info)
{
    return info.param ? "grh" : "compact";
}

/* For each mode in main() */
#define DCX_POST_MODES(_suite) \
    INSTANTIATE_TEST_SUITE_P(ib, _suite, testing::Values(false), \
                             dcx_post_name); \
    INSTANTIATE_TEST_SUITE_P(global, _suite, testing::Values(true), \
                             dcx_post_name); \
    INSTANTIATE_TEST_SUITE_P(roce, _suite, testing::Values(true), dcx_post_name)

#endif
