/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * WQEs of atomics, plain and masked, and the results of masked ones. Part of
 * the program of test_dcx_post.cc.
 */
#include "dcx_post_bench.h"

namespace {

class dcx_post_plain : public dcx_post_bench {};

/* The address of the result is dcx's, taken from its WQE. */
TEST_P(dcx_post_plain, atomics)
{
    const uint64_t value = 0x0123456789abcdef, compare = 0x1111111111111111;
    uint64_t result;
    const struct {
        const char *name;
        dc_op op;
        std::function<int()> call;
    } rows[] = {
        {"add64",
         {.opcode = MLX5_OPCODE_ATOMIC_FA, .swap_add = value},
         [&] {
             return uct_ep_atomic64_post(m_dcx.ep, UCT_ATOMIC_OP_ADD, value,
                                         m_remote, m_rkey);
         }},
        {"fadd64",
         {.opcode = MLX5_OPCODE_ATOMIC_FA, .swap_add = value},
         [&] {
             return uct_ep_atomic64_fetch(m_dcx.ep, UCT_ATOMIC_OP_ADD, value,
                                          &result, m_remote, m_rkey, NULL);
         }},
        {"cswap64",
         {.opcode   = MLX5_OPCODE_ATOMIC_CS,
          .swap_add = value,
          .compare  = compare},
         [&] {
             return uct_ep_atomic_cswap64(m_dcx.ep, compare, value, m_remote,
                                          m_rkey, &result, NULL);
         }},
    };

    for (const auto &row : rows) {
        struct dcx_view view = idle_view();
        wqe_bytes wqe        = ours(row.call);
        dc_op op             = with_buffer_of(remote(row.op), wqe, 8);

        EXPECT_EQ("", diff(theirs(op, view), wqe)) << row.name;
    }
}

/* Masked atomics, which libmlx5 does not build. The operands are compared with
 * values, the rest of the WQE with libmlx5's fetch-and-add. */
struct masked_op {
    const char *name;
    unsigned op; /* UCT_ATOMIC_OP_* */
    uint8_t opcode;
    uint64_t swap_mask, boundary;
    std::function<uint64_t(uint64_t, uint64_t)> outcome;
};

const uint64_t masked_value = 0x0f1e2d3c4b5a6978;

const masked_op masked_ops[] = {
    {"add", UCT_ATOMIC_OP_ADD, MLX5_OPCODE_ATOMIC_MASKED_FA, 0, 0,
     [](uint64_t a, uint64_t b) { return a + b; }},
    {"and", UCT_ATOMIC_OP_AND, MLX5_OPCODE_ATOMIC_MASKED_CS, ~masked_value, 0,
     [](uint64_t a, uint64_t b) { return a & b; }},
    {"or", UCT_ATOMIC_OP_OR, MLX5_OPCODE_ATOMIC_MASKED_CS, masked_value, 0,
     [](uint64_t a, uint64_t b) { return a | b; }},
    {"xor", UCT_ATOMIC_OP_XOR, MLX5_OPCODE_ATOMIC_MASKED_FA, 0, UINT64_MAX,
     [](uint64_t a, uint64_t b) { return a ^ b; }},
    {"swap", UCT_ATOMIC_OP_SWAP, MLX5_OPCODE_ATOMIC_MASKED_CS, UINT64_MAX, 0,
     [](uint64_t, uint64_t b) { return b; }},
};

/* Removes the operands, and changes the opcode to a read's. */
wqe_bytes without_operands(wqe_bytes wqe, size_t at, unsigned segs)
{
    wqe.erase(wqe.begin() + at, wqe.begin() + at + segs * 16);
    wqe[0] = 0;
    wqe[3] = MLX5_OPCODE_RDMA_READ;
    wqe[7] -= segs;
    return wqe;
}

class dcx_post_masked : public dcx_post_bench {
protected:
    static uint64_t value(const wqe_bytes &wqe, const char *name)
    {
        wqe_fields fields(wqe);
        const wqe_field *field = fields.find(name);

        EXPECT_NE(nullptr, field) << name;
        return (field == nullptr) ? 0 : field->value;
    }

    /* Checks all but the operands, which are in @segs segments. */
    void check_rest(const wqe_bytes &wqe, const struct dcx_view &view,
                    uint8_t opcode, unsigned size, unsigned segs)
    {
        const size_t at = is_compact() ? 48 : 80;
        dc_op plain = with_buffer_of(remote({.opcode = MLX5_OPCODE_ATOMIC_FA}),
                                     wqe, size);

        EXPECT_EQ(opcode, value(wqe, "ctrl.opcode"));
        EXPECT_EQ((size == 8) ? 9u : 8u, value(wqe, "ctrl.opmod"));
        EXPECT_EQ("", diff(without_operands(theirs(plain, view), at, 1),
                           without_operands(wqe, at, segs)));
    }

    void check_wqe(const masked_op &op, unsigned size, const wqe_bytes &wqe,
                   const struct dcx_view &view)
    {
        const uint64_t all = (size == 8) ? UINT64_MAX : UINT32_MAX;
        const bool is_cs   = op.opcode == MLX5_OPCODE_ATOMIC_MASKED_CS;

        EXPECT_EQ(masked_value & all,
                  value(wqe, is_cs ? "atomic.swap" : "atomic.add"));
        if (is_cs) {
            EXPECT_EQ(op.swap_mask & all, value(wqe, "atomic.swap_mask"));
            EXPECT_EQ(0u, value(wqe, "atomic.compare_mask"));
        } else {
            EXPECT_EQ(op.boundary & all, value(wqe, "atomic.field_boundary"));
        }
        check_rest(wqe, view, op.opcode, size, (is_cs && size == 8) ? 2 : 1);
    }

    void run(const masked_op &op, unsigned size)
    {
        const uint64_t before = 0x1122334455667788;
        const uint64_t upper  = (size == 8) ? 0 : ~0xffffffffull;
        uint64_t result       = 0, after;
        struct dcx_view view;
        wqe_bytes wqe;

        memcpy((void *)m_remote, &before, sizeof(before));
        view = idle_view();
        wqe  = ours([&] {
            return (size == 8) ?
                        uct_ep_atomic64_fetch(m_dcx.ep, (uct_atomic_op_t)op.op,
                                              masked_value, &result, m_remote,
                                              m_rkey, NULL) :
                        uct_ep_atomic32_fetch(m_dcx.ep, (uct_atomic_op_t)op.op,
                                              (uint32_t)masked_value,
                                              (uint32_t *)&result, m_remote,
                                              m_rkey, NULL);
        });
        check_wqe(op, size, wqe, view);

        memcpy(&after, (void *)m_remote, sizeof(after));
        EXPECT_EQ(before & ~upper, result);
        EXPECT_EQ((before & upper) |
                      (op.outcome(before, masked_value) & ~upper),
                  after);
    }
};

TEST_P(dcx_post_masked, fetch)
{
    for (const auto &op : masked_ops) {
        for (unsigned size : {4, 8}) {
            if ((size == 8) && (op.op == UCT_ATOMIC_OP_ADD)) {
                continue; /* a plain atomic */
            }
            SCOPED_TRACE(op.name + std::to_string(size * 8));
            run(op, size);
        }
    }
}

TEST_P(dcx_post_masked, cswap32)
{
    const uint64_t before = 0x1122334455667788, swapped = 0x112233440a0b0c0d;

    for (bool matches : {true, false}) {
        const uint32_t compare = (uint32_t)before ^ !matches;
        uint64_t result        = 0;
        struct dcx_view view;

        memcpy((void *)m_remote, &before, sizeof(before));
        view          = idle_view();
        wqe_bytes wqe = ours([&] {
            return uct_ep_atomic_cswap32(m_dcx.ep, compare, (uint32_t)swapped,
                                         m_remote, m_rkey, (uint32_t *)&result,
                                         NULL);
        });

        EXPECT_EQ((uint32_t)swapped, value(wqe, "atomic.swap"));
        EXPECT_EQ(compare, value(wqe, "atomic.compare"));
        EXPECT_EQ(UINT32_MAX, value(wqe, "atomic.swap_mask"));
        EXPECT_EQ(UINT32_MAX, value(wqe, "atomic.compare_mask"));
        check_rest(wqe, view, MLX5_OPCODE_ATOMIC_MASKED_CS, 4, 1);
        EXPECT_EQ((uint32_t)before, result);
        EXPECT_EQ(matches ? swapped : before, *(uint64_t *)m_remote);
    }
}

DCX_POST_MODES(dcx_post_plain);
DCX_POST_MODES(dcx_post_masked);

} /* namespace */
