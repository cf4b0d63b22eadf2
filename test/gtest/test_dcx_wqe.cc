/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * WQEs of dcx are equal to libmlx5's: each operation is posted through
 * libmlx5's builders on a DC initiator, written into a plain buffer by the
 * functions of dcx_wqe.h, and compared field by field. test_dcx_wqe_masked.cc
 * has operations without a builder; test_dcx_wqe_diff.cc checks the comparison.
 */
#include "dcx_wqe_bench.h"

namespace {

class dcx_wqe : public dcx_wqe_bench {
protected:
    using dcx_wqe_bench::dcx_wqe_bench;
};

/* Returns sizes around those at which another segment or block begins. */
std::vector<size_t> inline_sizes(size_t max)
{
    std::vector<size_t> sizes;

    for (size_t size = 1; size <= max; size++) {
        if ((size < 80) || (((size + 4 + 1) % 16) < 3) || (size > max - 3)) {
            sizes.push_back(size);
        }
    }
    return sizes;
}

TEST_P(dcx_wqe, send_inline)
{
    for (size_t size : inline_sizes(m_twin.max_inline())) {
        expect_same({.opcode = MLX5_OPCODE_SEND, .inl = pattern(size)});
        ASSERT_FALSE(HasFailure()) << size << " bytes";
    }
}

TEST_P(dcx_wqe, write_inline)
{
    for (size_t size : inline_sizes(m_twin.max_inline())) {
        expect_same(
            remote({.opcode = MLX5_OPCODE_RDMA_WRITE, .inl = pattern(size)}));
        ASSERT_FALSE(HasFailure()) << size << " bytes";
    }
}

TEST_P(dcx_wqe, data_segments)
{
    for (uint8_t opcode :
         {MLX5_OPCODE_SEND, MLX5_OPCODE_RDMA_WRITE, MLX5_OPCODE_RDMA_READ}) {
        for (unsigned n = 1; n <= dc_twin::max_sge; n++) {
            expect_same(remote({.opcode = opcode, .sges = pieces(n)}));
        }
    }
}

/* Pieces of no length have no segment: 0 is 2 GiB to the device. */
TEST_P(dcx_wqe, empty_pieces)
{
    for (unsigned empty : {0, 1, 2}) {
        dc_op op =
            remote({.opcode = MLX5_OPCODE_RDMA_WRITE, .sges = pieces(3)});

        op.sges[empty].length = 0;
        EXPECT_EQ((GetParam() == AV_COMPACT) ? 5 * 16u : 7 * 16u,
                  expect_same(op).size());
    }
}

TEST_P(dcx_wqe, flags)
{
    for (unsigned flags : {0, (int)IBV_SEND_SOLICITED, (int)IBV_SEND_FENCE,
                           IBV_SEND_SOLICITED | IBV_SEND_FENCE}) {
        for (dc_op op : all_ops()) {
            op.flags = flags;
            expect_same(op);
        }
    }
}

/* At each of the last blocks, so that each segment crosses the ring's end */
TEST_P(dcx_wqe, ring_end)
{
    std::vector<dc_op> ops = all_ops();

    ops.push_back(remote({.opcode = MLX5_OPCODE_RDMA_WRITE,
                          .inl    = pattern(m_twin.max_inline())}));
    ops.push_back({.opcode = MLX5_OPCODE_SEND, .inl = pattern(188)});
    ops.push_back(remote(
        {.opcode = MLX5_OPCODE_RDMA_READ, .sges = pieces(dc_twin::max_sge)}));
    for (const auto &op : ops) {
        for (unsigned left = 1; left <= 17; left++) {
            m_twin.advance(m_twin.num_bb() - left, m_ah);
            expect_same(op);
            ASSERT_FALSE(HasFailure()) << left << " blocks before the end";
        }
    }
}

TEST_P(dcx_wqe, atomics)
{
    const uint64_t values[] = {0, 1, 0x0123456789abcdef, UINT64_MAX};

    for (uint64_t a : values) {
        expect_same(remote({.opcode   = MLX5_OPCODE_ATOMIC_FA,
                            .sges     = pieces(1, 8),
                            .swap_add = a}));
        for (uint64_t b : values) {
            expect_same(remote({.opcode   = MLX5_OPCODE_ATOMIC_CS,
                                .sges     = pieces(1, 8),
                                .swap_add = a,
                                .compare  = b}));
        }
    }
}

/* A message with an inline header and data by reference: libmlx5 writes one or
 * the other, so that its two WQEs are combined. */
TEST_P(dcx_wqe, inline_and_data_segments)
{
    for (size_t size : {2, 12, 13, 28, 44, 188}) {
        uint16_t index   = m_twin.index();
        dc_op op         = {.opcode = MLX5_OPCODE_SEND, .inl = pattern(size)};
        dc_op op2        = {.opcode = MLX5_OPCODE_SEND, .sges = pieces(5)};
        wqe_bytes theirs = post(op);
        wqe_bytes tail   = post(op2);
        size_t av_end    = (GetParam() == AV_COMPACT) ? 32 : 64;

        theirs.insert(theirs.end(), tail.begin() + av_end, tail.end());
        theirs[7] = theirs.size() / 16;

        op.sges = op2.sges;
        EXPECT_EQ("", wqe_diff("libmlx5", theirs, "dcx", build(op, index)));
    }
}

/* The doorbell record, and the eight bytes for the register: post_send_db() of
 * rdma-core (providers/mlx5/qp.c) stores the first eight of the last WQE. */
TEST_P(dcx_wqe, doorbell)
{
    alignas(16) volatile uint64_t reg[2] = {};
    volatile __be32 dbrec[2]             = {};
    uct_dcx_sq_t sq                      = {};
    uct_dcx_bf_t bf                      = {};

    uct_dcx_bf_init(&bf, (void *)&reg[0], sizeof(reg[0]));
    sq.dbrec = &dbrec[MLX5_SND_DBR];
    sq.bf    = &bf;
    for (const auto &op : all_ops()) {
        uint16_t index  = m_twin.index();
        unsigned which  = (bf.half == (uintptr_t)&reg[0]) ? 0 : 1;
        wqe_bytes ours  = expect_same(op);
        unsigned num_bb = uct_dcx_wqe_ds_to_bb(m_ring.wqe.ds);

        uct_dcx_sq_ring(&sq, index, num_bb, m_ring.doorbell);
        EXPECT_EQ(0, memcmp((void *)&reg[which], ours.data(), 8));
        EXPECT_NE((uintptr_t)&reg[which], bf.half) << "the other half is next";
        EXPECT_EQ(sq.pi, be32toh(dbrec[MLX5_SND_DBR]));
        EXPECT_EQ(0u, dbrec[MLX5_RCV_DBR]);
        if (GetParam() != AV_COMPACT) {
            EXPECT_EQ(m_twin.dbrec(), be32toh(dbrec[MLX5_SND_DBR]));
        }
    }
}

/* Whole blocks are pushed to one half of the register, also across the end of
 * the ring; a longer WQE is announced by a doorbell. */
TEST_P(dcx_wqe, push)
{
    alignas(512) uint8_t reg[2][256]; /* halves of a register */
    alignas(64) uint8_t ring[8][64];
    volatile __be32 dbrec[2] = {};
    uct_dcx_sq_t sq          = {};
    uct_dcx_bf_t bf          = {};

    for (unsigned i = 0; i < sizeof(ring); i++) {
        ring[i / 64][i % 64] = i * 7 + i / 64;
    }
    uct_dcx_bf_init(&bf, reg, sizeof(reg[0]));
    sq.start = ring[0];
    sq.end   = ring[8];
    sq.mask  = 7;
    sq.dbrec = &dbrec[MLX5_SND_DBR];
    sq.bf    = &bf;
    for (unsigned round = 0, index = 65520; round < 40; round++) {
        unsigned num_bb = 1 + round % 6;
        unsigned stored = (num_bb <= 4) ? num_bb * 64 : 8;
        uint64_t head   = 0x1122334455667788 + round;
        uint8_t *half   = reg[round % 2];

        bf.flush = round & 1;
        memset(reg, canary, sizeof(reg));
        uct_dcx_sq_push(&sq, index, num_bb, head);
        for (unsigned i = 0; i < 256; i++) {
            uint8_t expected = (num_bb > 4) ?
                                   ((uint8_t *)&head)[i % 8] :
                                   ring[(index + i / 64) & 7][i % 64];

            ASSERT_EQ((i < stored) ? expected : canary, half[i]) << round;
            ASSERT_EQ(canary, reg[(round + 1) % 2][i]) << round;
        }
        index = (uint16_t)(index + num_bb);
        EXPECT_EQ(index, be32toh(dbrec[MLX5_SND_DBR]));
        EXPECT_EQ(index, sq.pi);
    }
}

/* Indices have 16 bits, for any size of the ring. */
TEST_P(dcx_wqe, index_wraps)
{
    dc_op filler =
        remote({.opcode = MLX5_OPCODE_RDMA_WRITE, .inl = pattern(800)});
    dc_op op = remote({.opcode = MLX5_OPCODE_RDMA_WRITE, .inl = pattern(100)});

    while (m_twin.index() < 65500) {
        m_twin.post(filler, m_ah);
    }
    for (unsigned i = 0; i < 40; i++) {
        expect_same(op);
    }
    EXPECT_LT(m_twin.index(), 200);
}

/* An initiator with streams; also stream numbers beyond those that it has */
class dcx_wqe_streams : public dcx_wqe {
protected:
    dcx_wqe_streams() : dcx_wqe(true) {}
};

TEST_P(dcx_wqe_streams, numbers)
{
    for (uint16_t stream : {0, 1, 7, 0x80, 0x100, 0x1234, 0xffff}) {
        for (dc_op op : all_ops()) {
            op.stream = stream;
            op.flags  = (stream & 1) ? IBV_SEND_FENCE : 0;

            wqe_bytes ours = expect_same(op);
            EXPECT_EQ(stream >> 8, ours[9]);
            EXPECT_EQ(stream & 0xff, ours[10]);
        }
    }
}

DCX_WQE_MODES(dcx_wqe);
DCX_WQE_MODES(dcx_wqe_streams);

} /* namespace */

int main(int argc, char **argv)
{
    return hca_test_main(argc, argv,
                         {{"ib", {}}, {"roce", {{"SOFTHCA_LINK", "roce"}}}});
}
