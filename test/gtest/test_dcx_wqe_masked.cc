/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * WQEs that libmlx5 cannot build: masked atomics and NOP. Operands are compared
 * with values, the other fields with those of libmlx5's fetch-and-add or send.
 * wqe_fields.h has the offsets, with their sources. Part of the program of
 * test_dcx_wqe.cc.
 */
#include "dcx_wqe_bench.h"

namespace {

class dcx_wqe_masked : public dcx_wqe_bench {};

struct expected_field {
    const char *name;
    uint64_t value;
};

/* A masked operation as dcx writes it, and the values of its fields. The opmod
 * is 8 + log2(operand size) - 2: UCT_IB_MLX5_OPMOD_EXT_ATOMIC of UCX. */
struct masked_row {
    const char *name;
    uint8_t opcode;
    uint8_t opmod;
    std::function<void(uct_dcx_wqe_t *)> put;
    unsigned segs;
    std::vector<expected_field> fields;
};

const masked_row masked_rows[] = {
    {"cswap64",
     MLX5_OPCODE_ATOMIC_MASKED_CS,
     0x09,
     [](uct_dcx_wqe_t *wqe) {
         uct_dcx_wqe_atomic64(wqe, 0x0102030405060708, 0x1112131415161718);
         uct_dcx_wqe_atomic64(wqe, 0x2122232425262728, 0x3132333435363738);
     },
     2,
     {{"atomic.swap", 0x0102030405060708},
      {"atomic.compare", 0x1112131415161718},
      {"atomic.swap_mask", 0x2122232425262728},
      {"atomic.compare_mask", 0x3132333435363738}}},
    {"cswap32",
     MLX5_OPCODE_ATOMIC_MASKED_CS,
     0x08,
     [](uct_dcx_wqe_t *wqe) {
         uct_dcx_wqe_atomic32(wqe, 0x05060708, 0x15161718, 0x25262728,
                              0x35363738);
     },
     1,
     {{"atomic.swap", 0x05060708},
      {"atomic.compare", 0x15161718},
      {"atomic.swap_mask", 0x25262728},
      {"atomic.compare_mask", 0x35363738}}},
    {"fadd64",
     MLX5_OPCODE_ATOMIC_MASKED_FA,
     0x09,
     [](uct_dcx_wqe_t *wqe) {
         uct_dcx_wqe_atomic64(wqe, 0x0102030405060708, 0x8000000080000000);
     },
     1,
     {{"atomic.add", 0x0102030405060708},
      {"atomic.field_boundary", 0x8000000080000000}}},
    {"fadd32",
     MLX5_OPCODE_ATOMIC_MASKED_FA,
     0x08,
     [](uct_dcx_wqe_t *wqe) {
         uct_dcx_wqe_atomic32(wqe, 0x01020304, 0x80008000, 0, 0);
     },
     1,
     {{"atomic.add", 0x01020304},
      {"atomic.field_boundary", 0x80008000},
      {"atomic.reserved", 0}}},
};

TEST_P(dcx_wqe_masked, atomics)
{
    const unsigned last = m_twin.num_bb() - 1;
    dc_op op = remote({.opcode = MLX5_OPCODE_ATOMIC_FA, .sges = pieces(1, 8)});

    for (const auto &row : masked_rows) {
        /* a WQE of two blocks wraps around the ring at the last index */
        for (uint16_t index : {(uint16_t)0, (uint16_t)last}) {
            m_twin.advance(index, m_ah);
            index            = m_twin.index();
            wqe_bytes theirs = post(op);
            size_t at        = (GetParam() == AV_COMPACT) ? 48 : 80;

            begin(index);
            uct_dcx_wqe_raddr(&m_ring.wqe, op.raddr, op.rkey);
            row.put(&m_ring.wqe);
            m_ring.put_sges(op.sges);
            wqe_bytes ours = m_ring.finish(row.opcode, 0, row.opmod);
            wqe_fields fields(ours);

            for (const auto &field : row.fields) {
                ASSERT_NE(nullptr, fields.find(field.name)) << row.name;
                EXPECT_EQ(field.value, fields.find(field.name)->value)
                    << row.name << " " << field.name;
            }
            EXPECT_EQ(row.opcode, fields.find("ctrl.opcode")->value);
            EXPECT_EQ(row.opmod, fields.find("ctrl.opmod")->value);

            /* remove the operands, and make both WQEs a read: wqe_diff() then
             * finds no operands behind raddr */
            ours.erase(ours.begin() + at, ours.begin() + at + row.segs * 16);
            theirs.erase(theirs.begin() + at, theirs.begin() + at + 16);
            ours[7] -= row.segs;
            theirs[7] -= 1;
            ours[0] = theirs[0] = 0;
            ours[3] = theirs[3] = MLX5_OPCODE_RDMA_READ;
            EXPECT_EQ("", wqe_diff("libmlx5", theirs, "dcx", ours)) << row.name;
        }
    }
}

/* A NOP has the address vector, like that of UCX's dc_mlx5
 * (uct_rc_mlx5_txqp_inline_post(), case MLX5_OPCODE_NOP). */
TEST_P(dcx_wqe_masked, nop)
{
    uint16_t index   = m_twin.index();
    wqe_bytes theirs = post({.opcode = MLX5_OPCODE_SEND});

    begin(index);
    wqe_bytes ours = m_ring.finish(MLX5_OPCODE_NOP, 0);

    EXPECT_EQ(0x00, ours[3]);
    theirs[3] = 0x00;
    EXPECT_EQ("", wqe_diff("libmlx5", theirs, "dcx", ours));
}

DCX_WQE_MODES(dcx_wqe_masked);

} /* namespace */
