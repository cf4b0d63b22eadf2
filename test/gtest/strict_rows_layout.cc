/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Rows on layouts of indirect keys: the UMR WQE as libmlx5's builders write it,
 * and one whose translations are in memory. Each row changes one field.
 */
#include "strict_rows.h"
#include "umr_bench.h"

namespace {

constexpr uint8_t PROT = MLX5_CQE_SYNDROME_LOCAL_PROT_ERR;

/* Offsets in struct mlx5_wqe_umr_ctrl_seg, in mlx5_wqe_mkey_context_seg, in a
 * repeat block and its first entry, and in mlx5_wqe_data_seg */
constexpr unsigned UMR_FLAGS = 0, UMR_OCTOWORDS = 4, UMR_MASK = 8;
constexpr unsigned MKEY_RESERVED = 8, MKEY_QPN = 4;
constexpr unsigned REPEAT_BYTES = 0, REPEAT_COUNT = 8, REPEAT_RESERVED = 12,
                   REPEAT_NUM_ENT = 14;
constexpr unsigned BLOCK_STRIDE = 16, BLOCK_BYTES = 18;
constexpr unsigned DATA_BYTES = 0, DATA_KEY = 4, DATA_ADDR = 8;

constexpr uint16_t ENTRIES = 4; /* entries of each key */

uint32_t new_key(strict_bench &bench, struct ibv_pd *pd)
{
    auto key = std::make_shared<umr_key>(pd, ENTRIES);

    bench.kept.push_back(key);
    return key->lkey();
}

std::vector<umr_octoword> list_of(strict_bench &bench)
{
    return umr_list({{(uintptr_t)bench.dst->addr, 64, bench.dst->mr->lkey}});
}

raw_wqe good_list(strict_bench &bench)
{
    return umr_wqe(new_key(bench, bench.dev.pd), 64, list_of(bench));
}

raw_wqe good_rows(strict_bench &bench)
{
    return umr_wqe(new_key(bench, bench.dev.pd), 8 * 16,
                   umr_rows(8, {{(uintptr_t)bench.dst->addr, 16, 16,
                                 bench.dst->mr->lkey}}));
}

/* The list is at the start of src. */
raw_wqe good_by_reference(strict_bench &bench)
{
    const auto list = list_of(bench);

    memcpy(bench.src->addr, list.data(), list.size() * 16);
    return umr_wqe_by_reference(new_key(bench, bench.dev.pd), 64, list.size(),
                                bench.src->addr, bench.src->mr->lkey);
}

raw_wqe good_inval(strict_bench &bench)
{
    const uint32_t key = new_key(bench, bench.dev.pd);

    bench.post_good(umr_wqe(key, 64, list_of(bench)));
    return raw_wqe(MLX5_OPCODE_LOCAL_INVAL).imm(key);
}

raw_wqe good_unbind(strict_bench &bench)
{
    const uint32_t key = new_key(bench, bench.dev.pd);

    bench.post_good(umr_wqe(key, 64, list_of(bench)));
    return bench.unbind(key);
}

spoil_fn umr_key_is(std::function<uint32_t(strict_bench &)> key)
{
    return [=](strict_bench &bench, raw_wqe &wqe) { wqe.imm(key(bench)); };
}

spoil_fn flip_umr(unsigned offset, uint8_t bits)
{
    return [=](strict_bench &, raw_wqe &wqe) {
        wqe.flip(wqe.at_umr + offset, bits);
    };
}

spoil_fn flip_mkey(unsigned offset, uint8_t bits)
{
    return [=](strict_bench &, raw_wqe &wqe) {
        wqe.flip(wqe.at_mkey + offset, bits);
    };
}

spoil_fn flip_klm(unsigned offset, uint8_t bits)
{
    return [=](strict_bench &, raw_wqe &wqe) {
        wqe.flip(wqe.at_klm + offset, bits);
    };
}

spoil_fn set_klm(unsigned offset, uint32_t value)
{
    return [=](strict_bench &, raw_wqe &wqe) {
        wqe.set32(wqe.at_klm + offset, value);
    };
}

constexpr auto &row = bind_row;

std::vector<strict_row> ctrl_rows()
{
    const char *key = "umr key (ctrl imm)";

    /* clang-format off */
    return {
        row("layout_mask_of_a_pd", HCA_CHECK_UMR_MASK, "umr mkey_mask",
            good_list, flip_umr(UMR_MASK + 7, 0x80)),
        row("layout_of_more_than_ds", HCA_CHECK_UMR_SIZE, "umr klm_octowords",
            good_list, flip_umr(UMR_OCTOWORDS + 1, 8)),
        row("layout_of_half_a_block", HCA_CHECK_UMR_SIZE, "umr klm_octowords",
            good_by_reference, flip_umr(UMR_OCTOWORDS + 1, 2)),
        row("layout_of_more_than_the_key", HCA_CHECK_UMR_ROOM,
            "umr klm_octowords", good_by_reference,
            [](strict_bench&, raw_wqe &wqe) {
                wqe.set32(wqe.at_umr + UMR_OCTOWORDS, 8 << 16);
                wqe.set32(wqe.at_klm + DATA_BYTES, 8 * 16);
            }),
        row("layout_of_a_key_without_umr", HCA_CHECK_UMR_TYPE, key, good_list,
            umr_key_is([](strict_bench &bench) {
                return bench.dst->mr->lkey;
            })),
        row("layout_of_another_pd", HCA_CHECK_UMR_PD, "umr key's pd",
            good_list, umr_key_is([](strict_bench &bench) {
                return new_key(bench, bench.other_pd);
            })),
        row("layout_over_another", HCA_CHECK_UMR_NOT_FREE, "umr key",
            good_list, [](strict_bench &bench, raw_wqe &wqe) {
                bench.post_good(wqe);
                wqe.flip(wqe.at_umr + UMR_FLAGS,
                         MLX5_WQE_UMR_CTRL_FLAG_CHECK_FREE);
                wqe.finish(bench.sq->pi, bench.sq->qpn);
            }),
        row("layout_for_another_qp", HCA_CHECK_UMR_QPN, "umr mkey qpn",
            good_list, [](strict_bench &bench, raw_wqe &wqe) {
                wqe.flip(wqe.at_umr + UMR_MASK + 6,
                         MLX5_WQE_UMR_CTRL_MKEY_MASK_QPN >> 8);
                wqe.set32(wqe.at_mkey + MKEY_QPN,
                          bench.receiver->qp_num << 8);
            }),
        row("layout_invalidated_by_another_qp", HCA_CHECK_UMR_QPN,
            "umr mkey qpn", good_unbind,
            [](strict_bench &bench, raw_wqe &wqe) {
                const uint32_t its_key = new_key(bench, bench.dev.pd);
                raw_wqe bound          = umr_wqe(its_key, 64, list_of(bench));

                bound.flip(bound.at_umr + UMR_MASK + 6,
                           MLX5_WQE_UMR_CTRL_MKEY_MASK_QPN >> 8);
                bound.set32(bound.at_mkey + MKEY_QPN,
                            bench.receiver->qp_num << 8);
                std::swap(bench.sq, bench.rq);
                bench.post_good(bound);
                std::swap(bench.sq, bench.rq);
                wqe.imm(its_key);
            }),
    };
    /* clang-format on */
}

std::vector<strict_row> repeat_rows()
{
    /* clang-format off */
    return {
        row("no_rows", HCA_CHECK_UMR_REPEAT, "umr repeat block repeat_count",
            good_rows, set_klm(REPEAT_COUNT, 0)),
        row("rows_of_no_block", HCA_CHECK_UMR_NUM_ENT,
            "umr repeat block num_ent", good_rows,
            flip_klm(REPEAT_NUM_ENT + 1, 1)),
        row("rows_of_more_blocks_than_there_are", HCA_CHECK_UMR_NUM_ENT,
            "umr repeat block num_ent", good_rows,
            flip_klm(REPEAT_NUM_ENT + 1, 4 | 1)),
        row("rows_of_other_bytes_than_their_blocks", HCA_CHECK_UMR_ROW,
            "umr repeat block byte_count", good_rows,
            set_klm(REPEAT_BYTES, 17)),
        row("block_of_no_bytes", HCA_CHECK_UMR_BLOCK,
            "umr repeat entry byte_count", good_rows,
            flip_klm(BLOCK_BYTES + 1, 16)),
        row("block_that_reaches_into_the_next_row", HCA_CHECK_UMR_STRIDE,
            "umr repeat entry stride", good_rows,
            flip_klm(BLOCK_STRIDE + 1, 32 | 15)),
        row("rows_without_a_stride", HCA_CHECK_UMR_STRIDE,
            "umr repeat entry stride", good_rows,
            flip_klm(BLOCK_STRIDE + 1, 32)),
    };
    /* clang-format on */
}

/* Translations in memory */
std::vector<strict_row> reference_rows()
{
    std::vector<strict_row> rows = {
        row("list_of_other_bytes_than_octowords", HCA_CHECK_UMR_DATA,
            "umr data segment byte_count", good_by_reference,
            set_klm(DATA_BYTES, 48)),
        row("list_of_no_key", HCA_CHECK_LKEY, "lkey", good_by_reference,
            [](strict_bench &bench, raw_wqe &wqe) {
                wqe.set32(wqe.at_klm + DATA_KEY,
                          bench.src->mr->lkey ^ 0x00800000);
            }),
        row("list_beyond_its_key", HCA_CHECK_LKEY_BOUNDS,
            "data segment address", good_by_reference,
            [](strict_bench &bench, raw_wqe &wqe) {
                wqe.set64(wqe.at_klm + DATA_ADDR,
                          (uintptr_t)bench.src->addr + strict_mem::size - 48);
            }),
        row("list_in_memory_that_is_gone", HCA_CHECK_LKEY_FAULT,
            "data segment address", good_by_reference,
            [](strict_bench &bench, raw_wqe &wqe) {
                strict_mem &mem = bench.region(bench.dev.pd, ACCESS_ALL);

                wqe.set32(wqe.at_klm + DATA_KEY, mem.mr->lkey);
                wqe.set64(wqe.at_klm + DATA_ADDR, (uintptr_t)mem.unmap());
            }),
    };

    for (unsigned i = 1; i < rows.size(); i++) {
        rows[i].syndrome = PROT;
    }
    return rows;
}

/* Reserved fields, which hardware ignores: mode "strict" checks them */
std::vector<strict_row> reserved_rows()
{
    std::vector<strict_row> rows = {
        row("layout_with_a_reserved_word", HCA_CHECK_UMR_MKC_RSVD,
            "umr mkey context, reserved field", good_list,
            flip_mkey(MKEY_RESERVED, 1)),
        row("rows_with_a_reserved_field", HCA_CHECK_UMR_BLOCK_RSVD,
            "umr repeat block reserved field", good_rows,
            flip_klm(REPEAT_RESERVED + 1, 1)),
    };

    for (auto &each : rows) {
        each.mode = "strict";
    }
    return rows;
}

/* Returns a list for mode "least", whose device supports neither repeated
 * blocks nor the mask of atomics. */
raw_wqe good_plain_list(strict_bench &bench)
{
    raw_wqe wqe = good_list(bench);

    wqe.flip(wqe.at_umr + UMR_MASK + 5,
             MLX5_WQE_UMR_CTRL_MKEY_MASK_ACCESS_ATOMIC >> 16);
    return wqe;
}

std::vector<strict_row> least_rows()
{
    std::vector<strict_row> rows = {
        row("rows_of_a_device_without", HCA_CHECK_UMR_NO_REPEAT,
            "umr repeat block op", good_plain_list,
            set_klm(REPEAT_BYTES + 4, 0x400)),
        row("layout_mask_of_atomics", HCA_CHECK_UMR_MASK, "umr mkey_mask",
            good_plain_list,
            flip_umr(UMR_MASK + 5,
                     MLX5_WQE_UMR_CTRL_MKEY_MASK_ACCESS_ATOMIC >> 16)),
    };

    for (auto &each : rows) {
        each.mode = "least";
    }
    return rows;
}

std::vector<strict_row> inval_rows()
{
    strict_row twice = row("invalidation_of_a_free_key", HCA_CHECK_INVAL_KEY,
                           "key to invalidate (ctrl imm)", good_inval,
                           [](strict_bench &bench, raw_wqe &wqe) {
                               bench.post_good(wqe);
                               wqe.finish(bench.sq->pi, bench.sq->qpn);
                           });

    twice.syndrome = PROT;
    return {twice};
}

/* Send from, or read to, the 64 bytes of a key. */
raw_wqe good_send_by_key(strict_bench &bench)
{
    const uint32_t key = new_key(bench, bench.dev.pd);

    bench.post_good(umr_wqe(key, 64, list_of(bench)));
    bench.post_recv();
    return bench.wqe(MLX5_OPCODE_SEND).data(NULL, 64, key);
}

raw_wqe good_read_by_key(strict_bench &bench)
{
    const uint32_t key = new_key(bench, bench.dev.pd);

    bench.post_good(umr_wqe(key, 64, list_of(bench)));
    return bench.wqe(MLX5_OPCODE_RDMA_READ)
        .raddr(bench.dst->addr + 4096, bench.dst->mr->rkey)
        .data(NULL, 64, key);
}

/* Posts another UMR for the key of the data segment first. */
spoil_fn set_layout(std::function<raw_wqe(strict_bench &, uint32_t)> umr)
{
    return [=](strict_bench &bench, raw_wqe &wqe) {
        bench.post_good(umr(bench, wqe.get32(wqe.at_data + DATA_KEY)));
        wqe.finish(bench.sq->pi, bench.sq->qpn);
    };
}

/* Returns @num translations of 2 bytes each. */
std::vector<umr_octoword> list_of_many(strict_bench &bench, unsigned num)
{
    const struct ibv_sge piece = {(uintptr_t)bench.dst->addr, 2,
                                  bench.dst->mr->lkey};

    return umr_list(std::vector<struct ibv_sge>(num, piece));
}

raw_wqe layout_of_many(strict_bench &bench, unsigned num)
{
    auto key = std::make_shared<umr_key>(bench.dev.pd, 24);

    bench.kept.push_back(key);
    return umr_wqe(key->lkey(), num * 2, list_of_many(bench, num));
}

spoil_fn set_rows_over(std::function<std::vector<umr_octoword>(uint32_t)> inner)
{
    return set_layout([=](strict_bench &bench, uint32_t key) {
        const uint32_t below = new_key(bench, bench.dev.pd);

        bench.post_good(umr_wqe(below, 8 * 16,
                                umr_rows(8, {{(uintptr_t)bench.dst->addr, 16,
                                              16, bench.dst->mr->lkey}})));
        return umr_wqe(key, 64, inner(below));
    });
}

spoil_fn set_three_levels()
{
    return set_layout([](strict_bench &bench, uint32_t key) {
        const uint32_t below  = new_key(bench, bench.dev.pd);
        const uint32_t middle = new_key(bench, bench.dev.pd);

        bench.post_good(umr_wqe(below, 64, list_of(bench)));
        bench.post_good(umr_wqe(middle, 64, umr_list({{0, 64, below}})));
        return umr_wqe(key, 64, umr_list({{0, 64, middle}}));
    });
}

/* Rows of mode "less": its device allows 20 translations in a WQE, two levels,
 * and no repeated blocks over repeated blocks */
std::vector<strict_row> less_rows()
{
    const char *field            = "lkey, its translation";
    std::vector<strict_row> rows = {
        row(
            "layout_of_too_many_in_the_wqe", HCA_CHECK_UMR_SIZE,
            "umr klm_octowords",
            [](strict_bench &bench) { return layout_of_many(bench, 20); },
            [](strict_bench &bench, raw_wqe &wqe) {
                wqe = layout_of_many(bench, 24);
                bench.finish(wqe);
            }),
        row("use_of_rows_over_rows", HCA_CHECK_LKEY_PIECES, field,
            good_send_by_key, set_rows_over([](uint32_t below) {
                return umr_rows(4, {{0, 16, 16, below}});
            })),
        row("use_of_three_levels", HCA_CHECK_LKEY_PIECES, field,
            good_send_by_key, set_three_levels()),
    };

    for (auto &each : rows) {
        each.mode = "less";
    }
    rows[1].syndrome = rows[2].syndrome = PROT;
    return rows;
}

std::vector<strict_row> use_rows()
{
    std::vector<strict_row> rows = {
        row("use_of_an_invalidated_layout", HCA_CHECK_LKEY_FREE, "lkey",
            good_send_by_key, set_layout([](strict_bench &, uint32_t key) {
                return raw_wqe(MLX5_OPCODE_LOCAL_INVAL).imm(key);
            })),
        row("use_of_a_key_that_has_no_layout", HCA_CHECK_LKEY_FREE, "lkey",
            good_send_by_key,
            [](strict_bench &bench, raw_wqe &wqe) {
                wqe.set32(wqe.at_data + DATA_KEY, new_key(bench, bench.dev.pd));
            }),
        row("use_beyond_the_layout", HCA_CHECK_LKEY_BOUNDS,
            "data segment address", good_send_by_key,
            [](strict_bench &, raw_wqe &wqe) {
                wqe.set64(wqe.at_data + DATA_ADDR, 1);
            }),
        row("use_of_a_layout_shorter_than_its_key", HCA_CHECK_LKEY_BOUNDS,
            "data segment address", good_send_by_key,
            set_layout([](strict_bench &bench, uint32_t key) {
                return umr_wqe(key, 64,
                               umr_list({{(uintptr_t)bench.dst->addr, 63,
                                          bench.dst->mr->lkey}}));
            })),
        row("use_of_rows_shorter_than_their_key", HCA_CHECK_LKEY_BOUNDS,
            "data segment address", good_send_by_key,
            set_layout([](strict_bench &bench, uint32_t key) {
                return umr_wqe(key, 64,
                               umr_rows(3, {{(uintptr_t)bench.dst->addr, 16, 16,
                                             bench.dst->mr->lkey}}));
            })),
        row("use_of_a_layout_over_no_key", HCA_CHECK_LKEY, "lkey",
            good_send_by_key, set_layout([](strict_bench &bench, uint32_t key) {
                return umr_wqe(key, 64,
                               umr_list({{(uintptr_t)bench.dst->addr, 64,
                                          bench.dst->mr->lkey ^ 0x00800000}}));
            })),
        row("use_of_a_layout_over_a_short_region", HCA_CHECK_LKEY_BOUNDS,
            "data segment address", good_send_by_key,
            set_layout([](strict_bench &bench, uint32_t key) {
                return umr_wqe(key, 64,
                               umr_rows(2, {{(uintptr_t)bench.dst->addr +
                                                 strict_mem::size - 63,
                                             32, 0, bench.dst->mr->lkey}}));
            })),
        row("use_of_a_layout_over_itself", HCA_CHECK_LKEY_PIECES,
            "lkey, its translation", good_send_by_key,
            set_layout([](strict_bench &, uint32_t key) {
                return umr_wqe(key, 64, umr_list({{0, 64, key}}));
            })),
        row("read_to_a_layout_that_may_be_read", HCA_CHECK_LKEY_ACCESS, "lkey",
            good_read_by_key, set_layout([](strict_bench &bench, uint32_t key) {
                return umr_wqe(key, 64, list_of(bench), IBV_ACCESS_REMOTE_READ);
            })),
        row("read_to_a_layout_over_what_may_be_read", HCA_CHECK_LKEY_ACCESS,
            "lkey", good_read_by_key,
            set_layout([](strict_bench &bench, uint32_t key) {
                strict_mem &mem = bench.region(bench.dev.pd,
                                               IBV_ACCESS_REMOTE_READ);

                return umr_wqe(
                    key, 64,
                    umr_list({{(uintptr_t)mem.addr, 64, mem.mr->lkey}}));
            })),
    };

    for (auto &each : rows) {
        each.syndrome = PROT;
    }
    return rows;
}

/* Returns a row of short data that the device would write to the CQE, though
 * the key of the receive is indirect. */
strict_row cqe_row()
{
    strict_row to_cqe = row(
        "short_data_for_a_layout_in_the_completion", HCA_CHECK_CQE_KEY,
        "receive lkey of data in the cqe",
        [](strict_bench &bench) {
            bench.post_recv();
            return bench.send(32);
        },
        [](strict_bench &bench, raw_wqe &wqe) {
            const uint32_t key = new_key(bench, bench.dev.pd);
            struct mlx5_err_cqe cqe;

            bench.post_good(umr_wqe(key, 64, list_of(bench)));
            bench.post_good(bench.send(32));
            EXPECT_TRUE(bench.wait(*bench.recv_cq, &cqe));
            bench.post_recv(NULL, 64, key);
            bench.finish(wqe);
        });

    to_cqe.mode           = "strict";
    to_cqe.options.to_cqe = true;
    to_cqe.syndrome       = MLX5_CQE_SYNDROME_REMOTE_OP_ERR;
    to_cqe.outcome        = OUTCOME_RECV;
    to_cqe.recv_syndrome  = PROT;
    return to_cqe;
}

} /* namespace */

std::vector<strict_row> strict_rows_layout()
{
    std::vector<strict_row> rows = ctrl_rows();

    for (const auto &more :
         {repeat_rows(), reference_rows(), reserved_rows(), inval_rows(),
          use_rows(), least_rows(), less_rows()}) {
        rows.insert(rows.end(), more.begin(), more.end());
    }
    rows.push_back(cqe_row());
    return rows;
}
