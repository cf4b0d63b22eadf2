/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Rows on tag matching: operations on the tag list, as libmlx5 and UCX write
 * them, and headers (TMH) of messages.
 */
#include "devx_bench.h"
#include "strict_rows.h"

#include <infiniband/tm_types.h>

namespace {

constexpr uint8_t QP_OP     = MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR;
constexpr uint8_t INVAL_REQ = MLX5_CQE_SYNDROME_REMOTE_INVAL_REQ_ERR;

/* Offsets of the fields of struct mlx5_wqe_tm_seg in the WQE */
constexpr unsigned TM_OPCODE = 16, TM_FLAGS = 17, TM_INDEX = 18, TM_RSVD0 = 20,
                   TM_SW_CNT = 22, TM_RSVD1 = 24;
constexpr uint8_t TM_NOP = 0x00, TM_APPEND = 0x10, TM_REMOVE = 0x20;

raw_wqe tm_op(uint8_t opcode, uint16_t index)
{
    struct mlx5_wqe_tm_seg seg = {};
    raw_wqe wqe(MLX5_OPCODE_TAG_MATCHING);

    seg.opcode      = opcode;
    seg.index       = htobe16(index);
    seg.append_tag  = htobe64(5);
    seg.append_mask = htobe64(~0ull);
    return wqe.add(seg);
}

raw_wqe append(strict_bench &bench, uint16_t next)
{
    return tm_op(TM_APPEND, next)
        .data(bench.dst->addr, 64, bench.dst->mr->lkey);
}

/* Appends entry 0, then 1 and so on; each uses a block of the ring. */
raw_wqe good_append(strict_bench &bench)
{
    return append(bench, bench.sq->pi + 1);
}

raw_wqe good_remove(strict_bench &)
{
    return tm_op(TM_REMOVE, 3);
}

raw_wqe good_sync(strict_bench &)
{
    return tm_op(TM_NOP, 0);
}

/* Returns a message of `length` bytes, including its header, with the tag of
 * append(). Posts an untagged receive for it. */
std::function<raw_wqe(strict_bench &)> message(uint8_t opcode, uint32_t length)
{
    return [=](strict_bench &bench) {
        struct ibv_tmh *tmh = (struct ibv_tmh *)bench.src->addr;

        *tmh        = {};
        tmh->opcode = opcode;
        tmh->tag    = htobe64(5);
        bench.post_recv();
        return bench.send(length);
    };
}

spoil_fn set_byte(unsigned offset, uint8_t value)
{
    return [=](strict_bench &, raw_wqe &wqe) { wqe.bytes[offset] = value; };
}

spoil_fn set_index(uint16_t index)
{
    return [=](strict_bench &, raw_wqe &wqe) {
        wqe.bytes[TM_INDEX]     = index >> 8;
        wqe.bytes[TM_INDEX + 1] = index;
    };
}

strict_row op_row(const char *name, enum hca_check check, const char *field,
                  std::function<raw_wqe(strict_bench &)> good, spoil_fn spoil)
{
    return {.name     = name,
            .check    = check,
            .service  = SERVICE_TM,
            .good     = good,
            .spoil    = spoil,
            .syndrome = QP_OP,
            .field    = field,
            .events   = "last WQE reached of sender"};
}

std::vector<strict_row> op_rows()
{
    /* clang-format off */
    return {
        {.name = "tm_of_a_qp_without_it", .check = HCA_CHECK_TM_SRQ,
         .good = [](strict_bench&) { return raw_wqe(MLX5_OPCODE_NOP); },
         .spoil = [](strict_bench &bench, raw_wqe &wqe) {
             wqe = tm_op(TM_NOP, 0);
             bench.finish(wqe);
         },
         .syndrome = QP_OP, .field = "srq of the qp"},
        op_row("tm_opcode_3", HCA_CHECK_TM_OPCODE, "tm opcode", good_sync,
               set_byte(TM_OPCODE, 0x30)),
        op_row("tm_opcode_lower_half", HCA_CHECK_TM_OPCODE, "tm opcode",
               good_sync, set_byte(TM_OPCODE, 0x01)),
        op_row("tm_flag_of_bit_5", HCA_CHECK_TM_FLAGS, "tm flags", good_sync,
               set_byte(TM_FLAGS, 0x20)),
        op_row("tm_append_without_a_buffer", HCA_CHECK_TM_SIZE, "ctrl ds",
               good_append,
               [](strict_bench&, raw_wqe &wqe) { wqe.set_ds(3); }),
        op_row("tm_remove_with_a_buffer", HCA_CHECK_TM_SIZE, "ctrl ds",
               good_remove,
               [](strict_bench&, raw_wqe &wqe) { wqe.set_ds(4); }),
        op_row("tm_in_two_octowords", HCA_CHECK_DS_SHORT, "ctrl ds", good_sync,
               [](strict_bench&, raw_wqe &wqe) { wqe.set_ds(2); }),
        op_row("tm_next_beyond_the_list", HCA_CHECK_TM_INDEX, "tm index",
               good_append, set_index(strict_bench::tags)),
        op_row("tm_remove_beyond_the_list", HCA_CHECK_TM_INDEX, "tm index",
               good_remove, set_index(0xffff)),
        op_row("tm_next_is_the_entry_itself", HCA_CHECK_TM_FULL, "tm index",
               good_append, set_index(1)),
        op_row("tm_next_is_in_the_list", HCA_CHECK_TM_FULL, "tm index",
               good_append, set_index(0)),
    };
    /* clang-format on */
}

/* Returns a row of mode "less", whose list accepts no indirect key. */
strict_row indirect_row()
{
    strict_row row =
        op_row("tm_append_of_an_indirect_key", HCA_CHECK_TM_KEY,
               "tm data segment lkey", good_append,
               [](strict_bench &bench, raw_wqe &wqe) {
                   const uint64_t start = (uintptr_t)bench.dst->addr;
                   const size_t size    = strict_mem::size;
                   const uint32_t lkey  = bench.dst->mr->lkey;

                   auto in  = devx_mkey_in(bench.dev.pd, start, size,
                                           {{start, size, lkey}});
                   auto key = std::make_shared<devx_mkey>(bench.dev.ctx, in);

                   HCA_CHECK_CALL(key->obj != NULL);
                   bench.kept.push_back(key);
                   wqe.set32(wqe.at_data + 4, key->key);
               });

    row.mode     = "less";
    row.syndrome = MLX5_CQE_SYNDROME_LOCAL_PROT_ERR;
    return row;
}

std::vector<strict_row> reserved_rows()
{
    strict_row rows[] = {
        op_row("tm_reserved_2_bytes", HCA_CHECK_TM_RSVD, "tm reserved field",
               good_sync, set_byte(TM_RSVD0 + 1, 1)),
        op_row("tm_reserved_8_bytes", HCA_CHECK_TM_RSVD, "tm reserved field",
               good_sync, set_byte(TM_RSVD1, 1)),
    };

    for (auto &row : rows) {
        row.mode = "strict";
    }
    return {std::begin(rows), std::end(rows)};
}

std::vector<strict_row> header_rows()
{
    strict_row row = {
        .name     = "tmh_of_15_bytes",
        .check    = HCA_CHECK_TMH_LEN,
        .service  = SERVICE_TM,
        .good     = message(IBV_TMH_EAGER, 64),
        .spoil    = [](strict_bench &,
                    raw_wqe &wqe) { wqe.set32(wqe.at_data, 15); },
        .syndrome = INVAL_REQ,
        .field    = "message length",
        .outcome  = OUTCOME_REMOTE,
        .events   = "invalid request local work queue error of receiver, "
                    "last WQE reached of receiver, last WQE reached of sender"};
    std::vector<strict_row> rows = {row};

    row.name = "tmh_of_a_fin_of_15_bytes";
    row.good = message(IBV_TMH_FIN, 64);
    rows.push_back(row);

    row.name  = "tmh_of_no_bytes";
    row.good  = message(IBV_TMH_NO_TAG, 64);
    row.spoil = [](strict_bench &, raw_wqe &wqe) {
        wqe.bytes.resize(16);
        wqe.set_ds(1);
    };
    rows.push_back(row);

    row.name  = "tmh_opcode_4";
    row.check = HCA_CHECK_TMH_OPCODE;
    row.field = "tmh opcode";
    row.good  = message(IBV_TMH_NO_TAG, 64);
    row.spoil = [](strict_bench &bench, raw_wqe &) { bench.src->addr[0] = 4; };
    rows.push_back(row);

    row.check = HCA_CHECK_TMH_RNDV;
    row.field = "rendezvous message length";
    for (unsigned length : {31, 65}) {
        row.name  = (length == 31) ? "rndv_of_31_bytes" : "rndv_of_65_bytes";
        row.spoil = [=](strict_bench &bench, raw_wqe &wqe) {
            bench.src->addr[0] = IBV_TMH_RNDV;
            wqe.set32(wqe.at_data, length);
        };
        rows.push_back(row);
    }

    row.name  = "tm_data_beyond_the_buffer";
    row.check = HCA_CHECK_TM_LEN;
    row.field = "data of the message";
    row.good  = message(IBV_TMH_EAGER, 64);
    row.spoil = [](strict_bench &bench, raw_wqe &wqe) {
        raw_wqe tagged = append(bench, 1);

        tagged.bytes[TM_FLAGS]      = 0x40; /* unexpected messages up to the
                                             * good one */
        tagged.bytes[TM_SW_CNT + 1] = 1;
        bench.post_good(tagged);
        bench.finish(wqe);
        wqe.set32(wqe.at_data, sizeof(struct ibv_tmh) + 65);
    };
    rows.push_back(row);
    return rows;
}

} /* namespace */

std::vector<strict_row> strict_rows_tm()
{
    std::vector<strict_row> rows;

    for (const auto &more :
         {op_rows(), reserved_rows(), header_rows(), {indirect_row()}}) {
        rows.insert(rows.end(), more.begin(), more.end());
    }
    return rows;
}
