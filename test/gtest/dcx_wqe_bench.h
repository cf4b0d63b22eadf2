/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Base of tests of dcx_wqe.h: a ring in plain memory in which dcx's functions
 * build WQEs, and a twin (dc_twin.h) for the same operations of libmlx5.
 */
#ifndef DCX_TEST_DCX_WQE_BENCH_H
#define DCX_TEST_DCX_WQE_BENCH_H

#include "dc_twin.h"

#include <functional>

/* C headers: constants of different enumerations may meet */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-enum-enum-conversion"
extern "C" {
#include "uct/dcx/dev/dcx_sq.h"
}
#pragma GCC diagnostic pop

enum av_form {
    AV_COMPACT,  /* 16 bytes: InfiniBand without GRH */
    AV_EXTENDED, /* 48 bytes, without GRH: for devices without the compact
                  * form */
    AV_GRH       /* 48 bytes with GRH; the only form on RoCE */
};

const char *const av_names[] = {"compact", "extended", "grh"};

constexpr uint8_t canary = 0xa5;

struct alignas(64) ring_block {
    uint8_t bytes[64];
};

/* A ring in plain memory. Bytes outside of the WQE that is being built are
 * canaries. */
class dcx_ring {
public:
    dcx_ring(unsigned num_bb, uint32_t qpn) :
        m_blocks(num_bb), m_mem(m_blocks[0].bytes), m_size(num_bb * 64),
        m_mask(num_bb - 1), m_qpn(qpn)
    {
        memset(m_mem, canary, m_size);
    }

    /* Begins a WQE; `av` as from mlx5dv_init_obj() */
    void begin(uint16_t index, const struct mlx5_wqe_av &av, av_form form,
               uint32_t dctn)
    {
        uct_dcx_av_t base;

        memcpy(&base, &av, sizeof(base));
        memcpy(&m_grh, (const char *)&av + sizeof(base), sizeof(m_grh));
        base.key = htobe64(dc_target::key);
        base.dqp_dct =
            htobe32((form == AV_COMPACT) ? dctn : dctn | MLX5_EXTENDED_UD_AV);

        m_index = index;
        m_form  = form;
        uct_dcx_wqe_begin(&wqe, m_mem, m_mask, index);
        uct_dcx_wqe_av(&wqe, &base);
    }

    void put_inline(const std::vector<uint8_t> &data)
    {
        size_t half = data.size() / 2;

        /* in two pieces, as header and payload */
        uct_dcx_wqe_inline_begin(&wqe, data.size());
        uct_dcx_wqe_inline_put(&wqe, data.data(), half);
        uct_dcx_wqe_inline_put(&wqe, data.data() + half, data.size() - half);
        uct_dcx_wqe_inline_end(&wqe);
    }

    void put_sges(const std::vector<struct ibv_sge> &sges)
    {
        for (const auto &sge : sges) {
            if (sge.length > 0) {
                uct_dcx_wqe_data(&wqe, (void *)sge.addr, sge.length, sge.lkey);
            }
        }
    }

    /* Ends the WQE. Returns its bytes; checks that no other byte was written,
     * then clears the ring. */
    wqe_bytes finish(uint8_t opcode, unsigned flags, uint8_t opmod = 0,
                     uint16_t stream = 0)
    {
        size_t start            = (m_index & m_mask) * 64u;
        uct_dcx_wqe_ctrl_t ctrl = {};
        wqe_bytes bytes;

        if (m_form != AV_COMPACT) {
            uct_dcx_wqe_grh(&wqe, &m_grh);
        }
        bytes.resize(wqe.ds * 16);

        ctrl.opcode = opcode;
        ctrl.opmod  = opmod;
        ctrl.flags  = MLX5_WQE_CTRL_CQ_UPDATE |
                     ((flags & IBV_SEND_SOLICITED) ? MLX5_WQE_CTRL_SOLICITED :
                                                     0) |
                     ((flags & IBV_SEND_FENCE) ? MLX5_WQE_CTRL_FENCE : 0) |
                     UCT_DCX_WQE_STREAM(stream);
        ctrl.sender = uct_dcx_wqe_sender(m_qpn);
        doorbell    = uct_dcx_wqe_finish(&wqe, &ctrl);
        EXPECT_EQ(std::vector<uint8_t>(4),
                  std::vector<uint8_t>(&m_mem[start + 12], &m_mem[start + 16]))
            << "the immediate is not 0";

        EXPECT_EQ((start + wqe.ds * 16) % m_size,
                  (size_t)(wqe.pos - m_mem) % m_size)
            << "the cursor is not behind the WQE";
        for (size_t i = 0; i < m_size; i++) {
            uint8_t &byte = m_mem[(start + i) % m_size];

            if (i < bytes.size()) {
                bytes[i] = byte;
            } else {
                EXPECT_EQ(canary, byte) << i << " bytes behind its start";
            }
            byte = canary;
        }
        return bytes;
    }

    uct_dcx_wqe_t wqe;
    uint64_t doorbell;

private:
    std::vector<ring_block> m_blocks;
    uint8_t *m_mem;
    size_t m_size;
    unsigned m_mask;
    uint32_t m_qpn;
    uint16_t m_index;
    av_form m_form;
    uct_dcx_grh_t m_grh;
};

class dcx_wqe_bench : public testing::TestWithParam<av_form> {
protected:
    explicit dcx_wqe_bench(bool has_streams = false) :
        m_target(m_dev), m_twin(m_dev, m_target, has_streams),
        m_ring(m_twin.num_bb(), m_twin.qpn()), m_mem(4096, 0x11)
    {
        struct ibv_ah_attr attr = m_dev.ah_attr(GetParam() == AV_GRH);
        struct mlx5dv_obj obj   = {};
        struct mlx5dv_ah dv_ah  = {};

        attr.sl = 3;
        if (GetParam() == AV_GRH) {
            attr.grh.traffic_class = 106;
            attr.grh.flow_label    = 0x54321;
        } else {
            attr.src_path_bits = 0; /* the port has one LID */
        }
        HCA_CHECK_CALL((m_ah = ibv_create_ah(m_dev.pd, &attr)));
        obj.ah.in  = m_ah;
        obj.ah.out = &dv_ah;
        HCA_CHECK_CALL(mlx5dv_init_obj(&obj, MLX5DV_OBJ_AH) == 0);
        m_av = *dv_ah.av;
        HCA_CHECK_CALL(
            (m_mr = ibv_reg_mr(m_dev.pd, m_mem.data(), m_mem.size(),
                               IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ |
                                   IBV_ACCESS_REMOTE_WRITE |
                                   IBV_ACCESS_REMOTE_ATOMIC)));
    }

    ~dcx_wqe_bench()
    {
        EXPECT_EQ(0, ibv_dereg_mr(m_mr));
        EXPECT_EQ(0, ibv_destroy_ah(m_ah));
        EXPECT_EQ("", m_log.take()) << "the device complained";
    }

    static std::vector<uint8_t> pattern(size_t length)
    {
        std::vector<uint8_t> data(length);

        for (size_t i = 0; i < length; i++) {
            data[i] = 1 + (i * 7) + (i >> 8);
        }
        return data;
    }

    /* Returns n pieces of the registered memory, not in order of addresses. */
    std::vector<struct ibv_sge> pieces(unsigned n, uint32_t length = 24) const
    {
        std::vector<struct ibv_sge> sges;

        for (unsigned i = 0; i < n; i++) {
            sges.push_back({(uintptr_t)m_mem.data() + ((i * 5) % 16) * 64 + i,
                            length + i, m_mr->lkey});
        }
        return sges;
    }

    /* Sets the fields for operations on remote memory. */
    dc_op remote(dc_op op) const
    {
        op.raddr = (uintptr_t)m_mem.data() + 2048;
        op.rkey  = m_mr->rkey;
        return op;
    }

    /* Returns libmlx5's WQE, in the form of the parameter. */
    wqe_bytes post(const dc_op &op)
    {
        wqe_bytes wqe = m_twin.post(op, m_ah);

        return (GetParam() == AV_COMPACT) ? dc_compacted(wqe) : wqe;
    }

    void begin(uint16_t index)
    {
        m_ring.begin(index, m_av, GetParam(), m_target.dctn());
    }

    /* Returns dcx's WQE. */
    wqe_bytes build(const dc_op &op, uint16_t index)
    {
        begin(index);
        if ((op.opcode != MLX5_OPCODE_SEND) &&
            (op.opcode != MLX5_OPCODE_SEND_IMM)) {
            uct_dcx_wqe_raddr(&m_ring.wqe, op.raddr, op.rkey);
        }
        if ((op.opcode == MLX5_OPCODE_ATOMIC_CS) ||
            (op.opcode == MLX5_OPCODE_ATOMIC_FA)) {
            uct_dcx_wqe_atomic64(&m_ring.wqe, op.swap_add, op.compare);
        }
        if (!op.inl.empty()) {
            m_ring.put_inline(op.inl);
        }
        m_ring.put_sges(op.sges);
        return m_ring.finish(op.opcode, op.flags, 0, op.stream);
    }

    /* Compares both WQEs; returns dcx's. */
    wqe_bytes expect_same(const dc_op &op)
    {
        uint16_t index   = m_twin.index();
        wqe_bytes theirs = post(op);
        wqe_bytes ours   = build(op, index);

        EXPECT_EQ("", wqe_diff("libmlx5", theirs, "dcx", ours))
            << "opcode " << (int)op.opcode << ", index " << index;
        EXPECT_EQ(theirs.size(), ours.size());
        return ours;
    }

    /* Returns one of each operation that dcx writes and libmlx5 can build. */
    std::vector<dc_op> all_ops() const
    {
        uint64_t swap = 0x0102030405060708, compare = 0x1112131415161718;

        return {
            {.opcode = MLX5_OPCODE_SEND, .inl = pattern(21)},
            {.opcode = MLX5_OPCODE_SEND, .sges = pieces(3)},
            remote({.opcode = MLX5_OPCODE_RDMA_WRITE, .inl = pattern(21)}),
            remote({.opcode = MLX5_OPCODE_RDMA_WRITE, .sges = pieces(3)}),
            remote({.opcode = MLX5_OPCODE_RDMA_WRITE}), /* keepalive */
            remote({.opcode = MLX5_OPCODE_RDMA_READ, .sges = pieces(3)}),
            remote({.opcode   = MLX5_OPCODE_ATOMIC_CS,
                    .sges     = pieces(1, 8),
                    .swap_add = swap,
                    .compare  = compare}),
            remote({.opcode   = MLX5_OPCODE_ATOMIC_FA,
                    .sges     = pieces(1, 8),
                    .swap_add = swap}),
        };
    }

    hca_log_reader m_log;
    hca_device m_dev;
    dc_target m_target;
    dc_twin m_twin;
    dcx_ring m_ring;
    std::vector<uint8_t> m_mem;
    struct ibv_mr *m_mr;
    struct ibv_ah *m_ah;
    struct mlx5_wqe_av m_av;
};

inline std::string av_name(const testing::TestParamInfo<av_form> &info)
{
    return av_names[info.param];
}

/* For each mode in main() */
#define DCX_WQE_MODES(_suite) \
    INSTANTIATE_TEST_SUITE_P(ib, _suite, \
                             testing::Values(AV_COMPACT, AV_EXTENDED, AV_GRH), \
                             av_name); \
    INSTANTIATE_TEST_SUITE_P(roce, _suite, testing::Values(AV_GRH), av_name)

#endif
