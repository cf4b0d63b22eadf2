/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The comparison of WQEs: it names each field that differs, and each bit is in
 * a field. Part of the program of test_dcx_wqe.cc.
 */
#include "dcx_wqe_bench.h"

namespace {

class dcx_wqe_diff : public dcx_wqe_bench {};

/* Flips the lowest and the highest bit of each field of dcx's WQE: the
 * difference must name that field. */
void expect_mutations_are_named(const wqe_bytes &theirs, const wqe_bytes &ours)
{
    for (const auto &field : wqe_list(ours)) {
        unsigned low  = __builtin_ctzll(field.mask);
        unsigned high = 63 - __builtin_clzll(field.mask);

        for (unsigned bit : {low, high}) {
            wqe_bytes wrong = ours;

            wrong[field.offset + field.size - 1 - bit / 8] ^= 1 << (bit % 8);
            std::string diff = wqe_diff("libmlx5", theirs, "dcx", wrong);
            EXPECT_NE(std::string::npos,
                      ("\n" + diff).find("\n" + field.name + ": "))
                << "bit " << bit << " of " << field.name
                << " was flipped; the difference is\n"
                << diff;
        }
    }
}

TEST_P(dcx_wqe_diff, names_what_differs)
{
    for (const auto &op : all_ops()) {
        uint16_t index   = m_twin.index();
        wqe_bytes theirs = post(op);

        expect_mutations_are_named(theirs, build(op, index));
    }
}

/* Every bit of a WQE is in a field, except those that are omitted on
 * purpose. */
TEST_P(dcx_wqe_diff, is_complete)
{
    for (const auto &op : all_ops()) {
        wqe_bytes ours = build(op, 0);
        std::vector<uint8_t> seen(ours.size());
        size_t unseen = 0, expected = 36; /* no immediate, nor SL of answers */

        for (const auto &field : wqe_list(ours)) {
            for (unsigned i = 0; i < field.size; i++) {
                seen[field.offset + field.size - 1 - i] |= field.mask >>
                                                           (i * 8);
            }
        }
        for (uint8_t bits : seen) {
            unseen += __builtin_popcount(0xff & ~bits);
        }
        if (!op.inl.empty()) {
            expected += (-(op.inl.size() + 4) % 16) * 8;
        }
        if (op.opcode == MLX5_OPCODE_ATOMIC_FA) {
            expected += 64;
        }
        EXPECT_EQ(expected, unseen) << "bits of opcode " << (int)op.opcode;
    }
}

DCX_WQE_MODES(dcx_wqe_diff);

} /* namespace */
