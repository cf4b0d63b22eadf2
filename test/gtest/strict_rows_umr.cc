/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Rows on memory windows: the UMR WQE that binds or unbinds one, as libmlx5
 * writes it, and invalidation of keys. Each row changes one field.
 */
#include "strict_rows.h"

namespace {

constexpr uint8_t PROT = MLX5_CQE_SYNDROME_LOCAL_PROT_ERR;

/* Offsets in struct mlx5_wqe_umr_ctrl_seg, mlx5_wqe_mkey_context_seg and
 * mlx5_wqe_umr_klm_seg */
constexpr unsigned UMR_FLAGS = 0, UMR_OCTOWORDS = 4, UMR_OFFSET = 6,
                   UMR_MASK = 8, UMR_RESERVED = 16;
constexpr unsigned MKEY_FREE = 0, MKEY_ACCESS = 2, MKEY_QPN = 4, MKEY_LEN = 24;
constexpr unsigned KLM_BYTES = 0, KLM_KEY = 4, KLM_ADDR = 8;

raw_wqe good_bind(strict_bench &bench)
{
    return bench.bind(bench.window(bench.dev.pd, IBV_MW_TYPE_2));
}

raw_wqe good_unbind(strict_bench &bench)
{
    struct ibv_mw *window = bench.window(bench.dev.pd, IBV_MW_TYPE_2);

    bench.post_good(bench.bind(window));
    return bench.unbind(bench.bound_key(window));
}

raw_wqe good_local_inval(strict_bench &bench)
{
    struct ibv_mw *window = bench.window(bench.dev.pd, IBV_MW_TYPE_2);

    bench.post_good(bench.bind(window));
    return raw_wqe(MLX5_OPCODE_LOCAL_INVAL).imm(bench.bound_key(window));
}

/* Replaces the key in the ctrl segment. */
spoil_fn umr_key(std::function<uint32_t(strict_bench &)> key)
{
    return [=](strict_bench &bench, raw_wqe &wqe) { wqe.imm(key(bench)); };
}

spoil_fn flip_umr(unsigned offset, uint8_t bits)
{
    return [=](strict_bench &, raw_wqe &wqe) {
        wqe.flip(wqe.at_umr + offset, bits);
    };
}

spoil_fn set_umr_octowords(uint16_t count)
{
    return [=](strict_bench &, raw_wqe &wqe) {
        wqe.set32(wqe.at_umr + UMR_OCTOWORDS, count << 16);
    };
}

spoil_fn klm_key(std::function<uint32_t(strict_bench &)> key)
{
    return [=](strict_bench &bench, raw_wqe &wqe) {
        wqe.set32(wqe.at_klm + KLM_KEY, key(bench));
    };
}

constexpr auto &row = bind_row;

std::vector<strict_row> ctrl_rows()
{
    /* clang-format off */
    return {
        row("umr_flag_of_bit_6", HCA_CHECK_UMR_FLAGS, "umr flags", good_bind,
            flip_umr(UMR_FLAGS, 0x40)),
        row("umr_not_inline", HCA_CHECK_UMR_FLAGS, "umr flags", good_bind,
            [](strict_bench&, raw_wqe &wqe) {
                wqe.flip(wqe.at_umr + UMR_FLAGS,
                         MLX5_WQE_UMR_CTRL_FLAG_INLINE);
                wqe.set_ds(9); /* a data segment replaces the translations */
            }),
        row("umr_mask_without_length", HCA_CHECK_UMR_MASK, "umr mkey_mask",
            good_bind, flip_umr(UMR_MASK + 7,
                                MLX5_WQE_UMR_CTRL_MKEY_MASK_LEN)),
        row("umr_mask_of_a_signature", HCA_CHECK_UMR_MASK, "umr mkey_mask",
            good_bind,
            flip_umr(UMR_MASK + 6,
                     MLX5_WQE_UMR_CTRL_MKEY_MASK_SIG_ERR >> 8)),
        row("umr_mask_of_a_bind_to_unbind", HCA_CHECK_UMR_MASK,
            "umr mkey_mask", good_unbind,
            flip_umr(UMR_MASK + 7, MLX5_WQE_UMR_CTRL_MKEY_MASK_LEN)),
        row("umr_of_8_octowords", HCA_CHECK_UMR_SIZE, "umr klm_octowords",
            good_bind, set_umr_octowords(8)),
        row("umr_of_more_than_ds", HCA_CHECK_UMR_SIZE, "umr klm_octowords",
            good_unbind, set_umr_octowords(4)),
        row("umr_of_less_than_ds", HCA_CHECK_UMR_SIZE, "umr klm_octowords",
            good_bind, set_umr_octowords(0)),
        row("umr_translation_offset", HCA_CHECK_UMR_RSVD,
            "umr reserved field", good_bind, flip_umr(UMR_OFFSET + 1, 1)),
        row("umr_behind_the_flags", HCA_CHECK_UMR_RSVD, "umr reserved field",
            good_bind, flip_umr(UMR_FLAGS + 2, 1)),
        row("umr_behind_the_mask", HCA_CHECK_UMR_RSVD, "umr reserved field",
            good_bind, flip_umr(UMR_RESERVED + 31, 1)),
    };
    /* clang-format on */
}

std::vector<strict_row> key_rows()
{
    const char *field = "umr key (ctrl imm)";

    /* clang-format off */
    return {
        row("umr_of_no_key", HCA_CHECK_UMR_KEY, field, good_bind,
            umr_key([](strict_bench &bench) {
                return bench.dst->mr->lkey ^ 0x00800000;
            })),
        row("umr_of_a_region", HCA_CHECK_UMR_TYPE, field, good_bind,
            umr_key([](strict_bench &bench) {
                return bench.dst->mr->lkey;
            })),
        row("umr_of_another_pd", HCA_CHECK_UMR_PD, "umr key's pd", good_bind,
            umr_key([](strict_bench &bench) {
                return bench.window(bench.other_pd, IBV_MW_TYPE_2)->rkey;
            })),
        row("bind_of_a_bound_window", HCA_CHECK_UMR_NOT_FREE, "umr key",
            good_bind, [](strict_bench &bench, raw_wqe &wqe) {
                bench.post_good(wqe);
                wqe.finish(bench.sq->pi, bench.sq->qpn);
            }),
        row("bind_for_another_qp", HCA_CHECK_UMR_QPN, "umr mkey qpn",
            good_bind, [](strict_bench &bench, raw_wqe &wqe) {
                wqe.set32(wqe.at_mkey + MKEY_QPN,
                          bench.receiver->qp_num << 8);
            }),
        row("unbind_by_another_qp", HCA_CHECK_UMR_QPN, "umr mkey qpn",
            good_unbind, [](strict_bench &bench, raw_wqe &wqe) {
                struct ibv_mw *window = bench.window(bench.dev.pd,
                                                     IBV_MW_TYPE_2);

                std::swap(bench.sq, bench.rq);
                std::swap(bench.sender, bench.receiver);
                bench.post_good(bench.bind(window));
                std::swap(bench.sender, bench.receiver);
                std::swap(bench.sq, bench.rq);
                wqe.imm(bench.bound_key(window));
            }),
        row("neither_free_nor_bound", HCA_CHECK_UMR_SIZE,
            "umr klm_octowords", good_unbind,
            [](strict_bench&, raw_wqe &wqe) {
                wqe.flip(wqe.at_mkey + MKEY_FREE,
                         MLX5_WQE_MKEY_CONTEXT_FREE);
            }),
    };
    /* clang-format on */
}

/* Regions of a bind */
std::vector<strict_row> region_rows()
{
    /* clang-format off */
    return {
        row("bind_to_what_may_not_be_bound", HCA_CHECK_UMR_ACCESS,
            "umr access", good_bind, [](strict_bench &bench, raw_wqe &wqe) {
                strict_mem &mem = bench.region(bench.dev.pd, ACCESS_ALL &
                                               ~IBV_ACCESS_MW_BIND);

                wqe.set32(wqe.at_klm + KLM_KEY, mem.mr->lkey);
                wqe.set64(wqe.at_klm + KLM_ADDR, (uintptr_t)mem.addr);
            }),
        row("bind_for_writing_to_what_may_be_read", HCA_CHECK_UMR_ACCESS,
            "umr access", good_bind, [](strict_bench &bench, raw_wqe &wqe) {
                strict_mem &mem = bench.region(bench.dev.pd,
                                               IBV_ACCESS_MW_BIND |
                                               IBV_ACCESS_REMOTE_READ);

                wqe.set32(wqe.at_klm + KLM_KEY, mem.mr->lkey);
                wqe.set64(wqe.at_klm + KLM_ADDR, (uintptr_t)mem.addr);
            }),
        row("bind_of_less_than_the_key", HCA_CHECK_UMR_LEN,
            "umr klm byte_count", good_bind,
            [](strict_bench&, raw_wqe &wqe) {
                wqe.set32(wqe.at_klm + KLM_BYTES, 4095);
            }),
        row("bind_of_a_key_of_no_length", HCA_CHECK_UMR_LEN,
            "umr klm byte_count", good_bind,
            [](strict_bench&, raw_wqe &wqe) {
                wqe.set64(wqe.at_mkey + MKEY_LEN, 0);
            }),
        row("bind_to_no_region", HCA_CHECK_UMR_REGION, "umr klm mkey",
            good_bind, klm_key([](strict_bench &bench) {
                return bench.dst->mr->lkey ^ 0x00800000;
            })),
        row("bind_to_a_window", HCA_CHECK_UMR_REGION, "umr klm mkey",
            good_bind, klm_key([](strict_bench &bench) {
                return bench.window(bench.dev.pd, IBV_MW_TYPE_2)->rkey;
            })),
        row("bind_to_a_region_of_another_pd", HCA_CHECK_UMR_REGION,
            "umr klm mkey", good_bind, klm_key([](strict_bench &bench) {
                return bench.region(bench.other_pd, ACCESS_ALL).mr->lkey;
            })),
        row("bind_before_the_region", HCA_CHECK_UMR_BIND, "umr klm address",
            good_bind, [](strict_bench &bench, raw_wqe &wqe) {
                wqe.set64(wqe.at_klm + KLM_ADDR,
                          (uintptr_t)bench.dst->addr - 1);
            }),
        row("bind_over_the_end_of_the_region", HCA_CHECK_UMR_BIND,
            "umr klm address", good_bind,
            [](strict_bench &bench, raw_wqe &wqe) {
                wqe.set64(wqe.at_klm + KLM_ADDR, (uintptr_t)bench.dst->addr +
                          strict_mem::size - 4095);
            }),
    };
    /* clang-format on */
}

std::vector<strict_row> inval_rows()
{
    std::vector<strict_row> rows;
    const struct {
        const char *name;
        std::function<uint32_t(strict_bench &)> key;
    } keys[] = {
        {"invalidation_of_no_key",
         [](strict_bench &bench) { return bench.dst->mr->lkey ^ 0x00800000; }},
        {"invalidation_of_a_region",
         [](strict_bench &bench) { return bench.dst->mr->lkey; }},
        {"invalidation_of_an_unbound_window",
         [](strict_bench &bench) {
             return bench.window(bench.dev.pd, IBV_MW_TYPE_2)->rkey;
         }},
        {"invalidation_of_a_window_of_type_1",
         [](strict_bench &bench) {
             return bench.window(bench.dev.pd, IBV_MW_TYPE_1)->rkey;
         }},
        {"invalidation_of_another_pd",
         [](strict_bench &bench) {
             return bench.window(bench.other_pd, IBV_MW_TYPE_2)->rkey;
         }},
    };

    for (const auto &key : keys) {
        rows.push_back(row(key.name, HCA_CHECK_INVAL_KEY,
                           "key to invalidate (ctrl imm)", good_local_inval,
                           umr_key(key.key)));
        rows.back().syndrome = PROT;
    }
    return rows;
}

} /* namespace */

std::vector<strict_row> strict_rows_umr()
{
    std::vector<strict_row> rows = ctrl_rows();

    for (const auto &more : {key_rows(), region_rows(), inval_rows()}) {
        rows.insert(rows.end(), more.begin(), more.end());
    }
    return rows;
}
