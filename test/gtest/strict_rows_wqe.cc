/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Rows on the WQE in the ring: control, address vector, remote address,
 * operands, inline data. Each row changes one field.
 */
#include "strict_rows.h"

namespace {

constexpr uint8_t QP_OP  = MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR;
constexpr uint8_t LENGTH = MLX5_CQE_SYNDROME_LOCAL_LENGTH_ERR;

constexpr unsigned AV_DQPN = 8, AV_RESERVED = 16, AV_GRH_WORD = 28;

raw_wqe long_read(strict_bench &bench, unsigned ds)
{
    raw_wqe wqe = bench.read();

    while (wqe.bytes.size() < ds * 16) {
        wqe.data(bench.src->addr, 4, bench.src->mr->lkey);
    }
    return wqe;
}

raw_wqe good_inline(strict_bench &bench)
{
    bench.post_recv();
    return bench.wqe(MLX5_OPCODE_SEND).inl(44);
}

raw_wqe good_masked_fadd32(strict_bench &bench)
{
    struct {
        __be32 add, boundary, reserved[2];
    } seg       = {htobe32(1), 0, {}};
    raw_wqe wqe = bench.wqe(MLX5_OPCODE_ATOMIC_MASKED_FA, 0x08);

    wqe.raddr(bench.dst->addr, bench.dst->mr->rkey);
    wqe.at_atomic = wqe.bytes.size();
    return wqe.add(seg).data(bench.src->addr, 4, bench.src->mr->lkey);
}

/* Returns an invalidation of a window; binds the window before. */
raw_wqe good_local_inval(strict_bench &bench)
{
    struct ibv_mw *window = bench.window(bench.dev.pd, IBV_MW_TYPE_2);

    bench.post_good(bench.bind(window));
    return raw_wqe(MLX5_OPCODE_LOCAL_INVAL).imm(bench.bound_key(window));
}

raw_wqe good_bind(strict_bench &bench)
{
    return bench.bind(bench.window(bench.dev.pd, IBV_MW_TYPE_2));
}

/* Flips bits of one byte of the ctrl segment. */
std::function<void(strict_bench &, raw_wqe &)> flip(unsigned offset,
                                                    uint8_t bits)
{
    return [=](strict_bench &, raw_wqe &wqe) { wqe.flip(offset, bits); };
}

std::function<void(strict_bench &, raw_wqe &)> set_ds(unsigned ds)
{
    return [=](strict_bench &, raw_wqe &wqe) { wqe.set_ds(ds); };
}

std::function<void(strict_bench &, raw_wqe &)> set_opcode(uint8_t opcode)
{
    return [=](strict_bench &, raw_wqe &wqe) { wqe.bytes[3] = opcode; };
}

std::function<void(strict_bench &, raw_wqe &)> flip_av(unsigned offset,
                                                       uint8_t bits)
{
    return [=](strict_bench &, raw_wqe &wqe) {
        wqe.flip(wqe.at_av + offset, bits);
    };
}

std::vector<strict_row> ctrl_rows()
{
    /* clang-format off */
    return {
        {.name = "more_blocks_than_the_ring", .check = HCA_CHECK_SQ_OVERRUN,
         .good = good_write,
         .spoil = [](strict_bench &bench, raw_wqe&) {
             bench.sq->pi += bench.sq->num_bb();
         },
         .field = "doorbell record: new basic blocks",
         .outcome = OUTCOME_EVENT,
         .events = "local work queue catastrophic error of sender"},
        {.name = "index_of_another_block", .check = HCA_CHECK_CTRL_IDX,
         .good = good_write, .spoil = flip(2, 1), .syndrome = QP_OP,
         .field = "ctrl wqe index"},
        {.name = "index_less_its_upper_bits", .check = HCA_CHECK_CTRL_IDX,
         .good = good_write, .spoil = flip(1, 0x80), .syndrome = QP_OP,
         .field = "ctrl wqe index"},
        {.name = "another_qpn", .check = HCA_CHECK_CTRL_QPN,
         .good = good_write, .spoil = flip(6, 1), .syndrome = QP_OP,
         .field = "ctrl qpn"},
        {.name = "qpn_of_the_receiver", .check = HCA_CHECK_CTRL_QPN,
         .good = good_write,
         .spoil = [](strict_bench &bench, raw_wqe &wqe) {
             wqe.finish(bench.sq->pi, bench.receiver->qp_num);
         },
         .syndrome = QP_OP, .field = "ctrl qpn"},
        {.name = "ds_0", .check = HCA_CHECK_CTRL_DS, .good = good_write,
         .spoil = set_ds(0), .syndrome = QP_OP, .field = "ctrl ds"},
        {.name = "ds_with_bit_6", .check = HCA_CHECK_CTRL_DS_RSVD,
         .good = good_write, .spoil = flip(7, 0x40), .syndrome = QP_OP,
         .field = "ctrl byte of ds, upper bits"},
        {.name = "ds_with_bit_7", .check = HCA_CHECK_CTRL_DS_RSVD,
         .good = good_write, .spoil = flip(7, 0x80), .syndrome = QP_OP,
         .field = "ctrl byte of ds, upper bits"},
        {.name = "ds_beyond_what_was_rung", .check = HCA_CHECK_CTRL_BEYOND,
         .good = good_write, .spoil = set_ds(5), .syndrome = QP_OP,
         .field = "ctrl ds", .num_bb = 1},
        {.name = "fence_mode_5", .check = HCA_CHECK_CTRL_FM,
         .good = good_write, .spoil = flip(11, 5 << 5), .syndrome = QP_OP,
         .field = "ctrl fence mode"},
        {.name = "bit_0_of_fm_ce_se", .check = HCA_CHECK_CTRL_FM_RSVD,
         .good = good_write, .spoil = flip(11, 0x01), .syndrome = QP_OP,
         .field = "ctrl fm_ce_se, reserved bits"},
        {.name = "bit_4_of_fm_ce_se", .check = HCA_CHECK_CTRL_FM_RSVD,
         .good = good_write, .spoil = flip(11, 0x10), .syndrome = QP_OP,
         .field = "ctrl fm_ce_se, reserved bits"},
        {.name = "wrong_signature", .check = HCA_CHECK_CTRL_SIGNATURE,
         .options = {.wq_sig = true}, .good = good_write,
         .spoil = flip(8, 0x01), .syndrome = QP_OP,
         .field = "ctrl signature"},
        {.name = "signature_of_other_data", .check = HCA_CHECK_CTRL_SIGNATURE,
         .options = {.wq_sig = true}, .good = good_write,
         .spoil = [](strict_bench&, raw_wqe &wqe) {
             wqe.flip(wqe.at_raddr + 7, 0x40);
         },
         .syndrome = QP_OP, .field = "ctrl signature"},
        {.name = "signature_where_none_is_asked",
         .check = HCA_CHECK_CTRL_SIGNATURE, .mode = "strict",
         .good = good_write, .spoil = flip(8, 0x01), .syndrome = QP_OP,
         .field = "ctrl signature"},
        {.name = "stream_id", .check = HCA_CHECK_CTRL_RSVD, .mode = "strict",
         .good = good_write, .spoil = flip(10, 0x01), .syndrome = QP_OP,
         .field = "ctrl stream id"},
        {.name = "stream_id_upper_byte", .check = HCA_CHECK_CTRL_RSVD,
         .mode = "strict", .service = SERVICE_DC, .good = good_write,
         .spoil = flip(9, 0x01), .syndrome = QP_OP,
         .field = "ctrl stream id"},
    };
    /* clang-format on */
}

std::vector<strict_row> opcode_rows()
{
    /* clang-format off */
    return {
        {.name = "unknown_opcode", .check = HCA_CHECK_OPCODE,
         .good = good_write, .spoil = set_opcode(0x7e), .syndrome = QP_OP,
         .field = "ctrl opcode"},
        {.name = "opmod_of_a_write", .check = HCA_CHECK_OPMOD,
         .good = good_write, .spoil = flip(0, 0x01), .syndrome = QP_OP,
         .field = "ctrl opmod"},
        {.name = "operand_of_16_bytes", .check = HCA_CHECK_OPMOD,
         .service = SERVICE_DC, .good = good_masked_fadd32,
         .spoil = flip(0, 0x02), .syndrome = QP_OP, .field = "ctrl opmod"},
        {.name = "masked_without_size", .check = HCA_CHECK_OPMOD,
         .service = SERVICE_DC, .good = good_masked_fadd32,
         .spoil = flip(0, 0x08), .syndrome = QP_OP, .field = "ctrl opmod"},
        {.name = "read_on_uc", .check = HCA_CHECK_SERVICE,
         .service = SERVICE_UC, .good = good_write,
         .spoil = set_opcode(MLX5_OPCODE_RDMA_READ), .syndrome = QP_OP,
         .field = "ctrl opcode"},
        {.name = "write_on_ud", .check = HCA_CHECK_SERVICE,
         .service = SERVICE_UD, .good = good_send,
         .spoil = set_opcode(MLX5_OPCODE_RDMA_WRITE), .syndrome = QP_OP,
         .field = "ctrl opcode"},
        {.name = "umr_on_dci", .check = HCA_CHECK_SERVICE,
         .service = SERVICE_DC, .good = good_write,
         .spoil = set_opcode(MLX5_OPCODE_UMR), .syndrome = QP_OP,
         .field = "ctrl opcode"},
        {.name = "no_remote_address", .check = HCA_CHECK_DS_SHORT,
         .good = good_write, .spoil = set_ds(1), .syndrome = QP_OP,
         .field = "ctrl ds"},
        {.name = "no_operands", .check = HCA_CHECK_DS_SHORT,
         .good = good_fetch_add, .spoil = set_ds(2), .syndrome = QP_OP,
         .field = "ctrl ds"},
        {.name = "no_address_vector", .check = HCA_CHECK_DS_SHORT,
         .service = SERVICE_DC, .good = good_send, .spoil = set_ds(1),
         .syndrome = QP_OP, .field = "ctrl ds", .num_bb = 1},
        {.name = "half_an_address_vector", .check = HCA_CHECK_DS_SHORT,
         .service = SERVICE_DC, .good = good_send, .spoil = set_ds(3),
         .syndrome = QP_OP, .field = "ctrl ds", .num_bb = 1},
        {.name = "ud_half_an_address_vector", .check = HCA_CHECK_DS_SHORT,
         .service = SERVICE_UD, .good = good_send, .spoil = set_ds(3),
         .syndrome = QP_OP, .field = "ctrl ds", .num_bb = 1},
        {.name = "no_xrc_segment", .check = HCA_CHECK_DS_SHORT,
         .service = SERVICE_XRC, .good = good_send, .spoil = set_ds(1),
         .syndrome = QP_OP, .field = "ctrl ds"},
        {.name = "half_a_umr", .check = HCA_CHECK_DS_SHORT, .good = good_bind,
         .spoil = set_ds(7), .syndrome = QP_OP, .field = "ctrl ds",
         .num_bb = 2},
    };
    /* clang-format on */
}

std::vector<strict_row> address_rows()
{
    /* clang-format off */
    return {
        {.name = "xrc_srqn_of_32_bits", .check = HCA_CHECK_XRC_SRQN,
         .service = SERVICE_XRC, .good = good_send,
         .spoil = [](strict_bench&, raw_wqe &wqe) {
             wqe.flip(wqe.at_xrc, 0x01);
         },
         .syndrome = QP_OP, .field = "xrc srqn, upper byte"},
        {.name = "dctn_with_bit_28", .check = HCA_CHECK_AV_DQPN_RSVD,
         .service = SERVICE_DC, .good = good_send,
         .spoil = flip_av(AV_DQPN, 0x10), .syndrome = QP_OP,
         .field = "av dqp_dct, reserved bits"},
        {.name = "dqpn_of_25_bits", .check = HCA_CHECK_AV_DQPN_RSVD,
         .service = SERVICE_UD, .good = good_send,
         .spoil = flip_av(AV_DQPN, 0x01), .syndrome = QP_OP,
         .field = "av dqp_dct, reserved bits"},
        {.name = "dqpn_with_bit_30", .check = HCA_CHECK_AV_DQPN_RSVD,
         .service = SERVICE_UD, .good = good_send,
         .spoil = flip_av(AV_DQPN, 0x40), .syndrome = QP_OP,
         .field = "av dqp_dct, reserved bits"},
        {.name = "behind_the_qkey", .check = HCA_CHECK_AV_RSVD,
         .mode = "strict", .service = SERVICE_UD, .good = good_send,
         .spoil = flip_av(7, 0x01), .syndrome = QP_OP,
         .field = "av reserved field"},
        {.name = "before_the_mac", .check = HCA_CHECK_AV_RSVD,
         .mode = "strict", .service = SERVICE_DC, .options = {.grh = true},
         .good = good_send, .spoil = flip_av(AV_RESERVED, 0x80),
         .syndrome = QP_OP, .field = "av reserved field"},
        {.name = "compact_on_roce", .check = HCA_CHECK_AV_GRH, .mode = "roce",
         .service = SERVICE_DC, .good = good_send,
         .spoil = flip_av(AV_DQPN, 0x80), .syndrome = QP_OP,
         .field = "av grh"},
        {.name = "bit_31_of_the_grh", .check = HCA_CHECK_AV_GRH_RSVD,
         .service = SERVICE_DC, .options = {.grh = true}, .good = good_send,
         .spoil = flip_av(AV_GRH_WORD, 0x80), .syndrome = QP_OP,
         .field = "av grh_gid_fl, bit 31"},
        {.name = "grh_bit_on_roce", .check = HCA_CHECK_AV_GRH_RSVD,
         .mode = "roce", .service = SERVICE_UD, .good = good_send,
         .spoil = flip_av(AV_GRH_WORD, 0x40), .syndrome = QP_OP,
         .field = "av grh_gid_fl"},
        {.name = "sgid_index_of_nothing", .check = HCA_CHECK_AV_SGID,
         .service = SERVICE_DC, .options = {.grh = true}, .good = good_send,
         .spoil = flip_av(AV_GRH_WORD, 0x08), .syndrome = QP_OP,
         .field = "av sgid index"},
        {.name = "sgid_index_of_nothing_on_roce", .check = HCA_CHECK_AV_SGID,
         .mode = "roce", .service = SERVICE_UD, .good = good_send,
         .spoil = flip_av(AV_GRH_WORD, 0x08), .syndrome = QP_OP,
         .field = "av sgid index"},
        {.name = "behind_the_rkey", .check = HCA_CHECK_RADDR_RSVD,
         .mode = "strict", .good = good_write,
         .spoil = [](strict_bench&, raw_wqe &wqe) {
             wqe.flip(wqe.at_raddr + 15, 0x01);
         },
         .syndrome = QP_OP, .field = "raddr reserved field"},
        {.name = "behind_the_boundary", .check = HCA_CHECK_ATOMIC_RSVD,
         .mode = "strict", .service = SERVICE_DC, .good = good_masked_fadd32,
         .spoil = [](strict_bench&, raw_wqe &wqe) {
             wqe.flip(wqe.at_atomic + 8, 0x01);
         },
         .syndrome = QP_OP, .field = "masked fetch-add reserved field"},
    };
    /* clang-format on */
}

std::vector<strict_row> data_rows()
{
    /* clang-format off */
    return {
        {.name = "inline_length_of_11_bits", .check = HCA_CHECK_INLINE_RSVD,
         .good = good_inline,
         .spoil = [](strict_bench&, raw_wqe &wqe) {
             wqe.flip(wqe.at_data + 2, 0x04);
         },
         .syndrome = QP_OP, .field = "inline byte_count, bits 30..10"},
        {.name = "inline_length_beyond_ds", .check = HCA_CHECK_INLINE_LEN,
         .good = good_inline,
         .spoil = [](strict_bench&, raw_wqe &wqe) {
             wqe.set32(wqe.at_data, 45 | MLX5_INLINE_SEG);
         },
         .syndrome = LENGTH, .field = "inline byte_count"},
        {.name = "inline_data_of_a_read", .check = HCA_CHECK_INLINE_OP,
         .good = good_read,
         .spoil = [](strict_bench&, raw_wqe &wqe) {
             wqe.set32(wqe.at_data, 12 | MLX5_INLINE_SEG);
         },
         .syndrome = QP_OP, .field = "inline segment"},
        {.name = "operand_of_8_into_4_bytes", .check = HCA_CHECK_ATOMIC_SGL,
         .good = good_fetch_add,
         .spoil = [](strict_bench&, raw_wqe &wqe) {
             wqe.set32(wqe.at_data, 4);
         },
         .syndrome = LENGTH, .field = "bytes of data segments"},
        {.name = "operand_of_4_into_8_bytes", .check = HCA_CHECK_ATOMIC_SGL,
         .service = SERVICE_DC, .good = good_masked_fadd32,
         .spoil = [](strict_bench&, raw_wqe &wqe) {
             wqe.set32(wqe.at_data, 8);
         },
         .syndrome = LENGTH, .field = "bytes of data segments"},
        {.name = "data_of_an_invalidation", .check = HCA_CHECK_NO_DATA,
         .good = good_local_inval, .spoil = set_ds(2), .syndrome = QP_OP,
         .field = "data segments"},
        {.name = "byte_count_0_is_2_gib", .check = HCA_CHECK_MSG_LEN,
         .good = good_write,
         .spoil = [](strict_bench&, raw_wqe &wqe) {
             wqe.set32(wqe.at_data, 0);
         },
         .syndrome = LENGTH, .field = "message length"},
        {.name = "byte_count_beyond_1_gib", .check = HCA_CHECK_MSG_LEN,
         .service = SERVICE_DC, .good = good_write,
         .spoil = [](strict_bench&, raw_wqe &wqe) {
             wqe.set32(wqe.at_data, (1u << 30) + 1);
         },
         .syndrome = LENGTH, .field = "message length"},
        {.name = "read_of_more_than_512_bytes", .check = HCA_CHECK_READ_DS,
         .good = [](strict_bench &bench) { return long_read(bench, 32); },
         .spoil = [](strict_bench &bench, raw_wqe &wqe) {
             wqe = long_read(bench, 33);
             bench.finish(wqe);
         },
         .syndrome = QP_OP, .field = "ctrl ds"},
        {.name = "dc_read_of_more_than_512_bytes",
         .check = HCA_CHECK_READ_DS, .service = SERVICE_DC,
         .good = [](strict_bench &bench) { return long_read(bench, 32); },
         .spoil = [](strict_bench &bench, raw_wqe &wqe) {
             wqe = long_read(bench, 33);
             bench.finish(wqe);
         },
         .syndrome = QP_OP, .field = "ctrl ds"},
        {.name = "ud_message_beyond_the_mtu", .check = HCA_CHECK_UD_LEN,
         .service = SERVICE_UD,
         .good = [](strict_bench &bench) {
             bench.post_recv(4097);
             return bench.send(4096);
         },
         .spoil = [](strict_bench&, raw_wqe &wqe) {
             wqe.set32(wqe.at_data, 4097);
         },
         .syndrome = LENGTH, .field = "message length"},
    };
    /* clang-format on */
}

} /* namespace */

std::vector<strict_row> strict_rows_wqe()
{
    std::vector<strict_row> rows = ctrl_rows();

    for (const auto &more : {opcode_rows(), address_rows(), data_rows()}) {
        rows.insert(rows.end(), more.begin(), more.end());
    }
    return rows;
}
