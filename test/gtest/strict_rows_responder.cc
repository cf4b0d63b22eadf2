/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Rows on errors that the responder finds, except keys: receive queues and
 * their doorbell records, lengths, access rights of the QP, the DC key, XRC
 * domains, alignment. strict_rows_wire(): rows on peers that do not answer, are
 * not ready, or whose NAK a fault injects, and on full completion queues.
 */
#include "strict_rows.h"

namespace {

constexpr uint8_t INVAL_REQ = MLX5_CQE_SYNDROME_REMOTE_INVAL_REQ_ERR;
constexpr uint8_t ACCESS    = MLX5_CQE_SYNDROME_REMOTE_ACCESS_ERR;
constexpr uint8_t REMOTE_OP = MLX5_CQE_SYNDROME_REMOTE_OP_ERR;

const char *const FATAL = "local work queue catastrophic error of receiver";
const char *const ACCESS_ERR = "local access violation work queue error of "
                               "receiver";
const char *const INVALID    = "invalid request local work queue error of "
                               "receiver";

void nothing(strict_bench &, raw_wqe &) {}

std::function<raw_wqe(strict_bench &)> write_bytes(uint32_t length)
{
    return [=](strict_bench &bench) {
        raw_wqe wqe = bench.write();

        wqe.set32(wqe.at_data, length);
        return wqe;
    };
}

std::function<void(strict_bench &, raw_wqe &)> set_length(uint32_t length)
{
    return
        [=](strict_bench &, raw_wqe &wqe) { wqe.set32(wqe.at_data, length); };
}

/* Uses up the receive that `good` posted by another message, and finishes the
 * WQE for the block after that. */
void use_recv(strict_bench &bench, raw_wqe &wqe)
{
    struct mlx5_err_cqe cqe;

    bench.post_good(bench.send());
    EXPECT_TRUE(bench.wait(*bench.recv_cq, &cqe));
    bench.finish(wqe);
}

/* Posts an unsignaled read first, under the same doorbell as the WQE: with two
 * doorbells, the read could end before the WQE is executed. */
void read_before(strict_bench &bench, raw_wqe &wqe)
{
    raw_wqe read = bench.read();

    bench.post_good(read); /* the next read then changes no memory */
    read.bytes[11] = 0;
    bench.finish(read);
    bench.sq->write(read);
    bench.sq->announce(read.num_bb());
    bench.finish(wqe);
}

void overrun_srq(strict_bench &bench, raw_wqe &)
{
    bench.rsrq->ring(1000);
}

void spoil_srq_next(strict_bench &bench, raw_wqe &wqe)
{
    use_recv(bench, wqe);
    bench.rsrq->next_seg()->next_wqe_index = htobe16(1000);
    bench.post_recv();
}

/* Puts the SRQ in error by another message, then connects the sender again. */
void break_srq(strict_bench &bench, raw_wqe &wqe)
{
    struct mlx5_err_cqe cqe;

    overrun_srq(bench, wqe);
    bench.post(wqe);
    EXPECT_TRUE(bench.wait(*bench.send_cq, &cqe));
    EXPECT_EQ("SRQ catastrophic error of srq", bench.take_events());
    bench.reconnect();
    bench.finish(wqe);
}

std::vector<strict_row> queue_rows()
{
    /* clang-format off */
    return {
        {.name = "more_receives_than_the_ring",
         .check = HCA_CHECK_RQ_OVERRUN, .good = good_send,
         .spoil = [](strict_bench &bench, raw_wqe&) {
             bench.rq->ring_rq(bench.rq->rq_size());
         },
         .syndrome = REMOTE_OP, .field = "doorbell record: receives",
         .outcome = OUTCOME_REMOTE, .events = FATAL},
        {.name = "more_receives_than_the_srq",
         .check = HCA_CHECK_SRQ_OVERRUN, .service = SERVICE_DC,
         .good = good_send, .spoil = overrun_srq, .syndrome = REMOTE_OP,
         .field = "srq doorbell record: receives",
         .outcome = OUTCOME_REMOTE,
         .events = "SRQ catastrophic error of srq, "
                   "local work queue catastrophic error of receiver"},
        {.name = "more_receives_than_the_xrc_srq",
         .check = HCA_CHECK_SRQ_OVERRUN, .service = SERVICE_XRC,
         .good = good_send, .spoil = overrun_srq, .syndrome = REMOTE_OP,
         .field = "srq doorbell record: receives",
         .outcome = OUTCOME_REMOTE,
         .events = "SRQ catastrophic error of srq, "
                   "local work queue catastrophic error of receiver"},
        {.name = "srq_next_beyond_its_end", .check = HCA_CHECK_SRQ_NEXT,
         .service = SERVICE_DC, .good = good_send, .spoil = spoil_srq_next,
         .syndrome = REMOTE_OP, .field = "srq next_wqe_index",
         .outcome = OUTCOME_REMOTE,
         .events = "SRQ catastrophic error of srq, "
                   "local work queue catastrophic error of receiver"},
        {.name = "srq_in_error", .check = HCA_CHECK_SRQ,
         .service = SERVICE_DC, .good = good_send, .spoil = break_srq,
         .syndrome = REMOTE_OP, .field = "srq", .outcome = OUTCOME_REMOTE,
         .events = FATAL},
        {.name = "receive_cq_is_full", .check = HCA_CHECK_CQ,
         .options = {.recv_cqe = 1},
         .good = good_send,
         .spoil = [](strict_bench &bench, raw_wqe &wqe) {
             while (bench.rq->rq_pi < bench.recv_cq->capacity() + 2) {
                 bench.post_recv();
             }
             for (unsigned i = 1; i < bench.recv_cq->capacity(); i++) {
                 bench.post_good(bench.send());
             }
             bench.finish(wqe);
         },
         .syndrome = REMOTE_OP, .field = "overrun",
         .outcome = OUTCOME_REMOTE,
         .events = "CQ error of recv cq, "
                   "local work queue catastrophic error of receiver"},
    };
    /* clang-format on */
}

strict_row recv_len(const char *name, strict_service service)
{
    return {.name    = name,
            .check   = HCA_CHECK_RECV_LEN,
            .service = service,
            .good    = good_send,
            .spoil =
                [](strict_bench &bench, raw_wqe &wqe) {
                    (void)bench;
                    wqe.set32(wqe.at_data, 65);
                },
            .syndrome      = INVAL_REQ,
            .field         = "message length",
            .outcome       = OUTCOME_RECV,
            .recv_syndrome = MLX5_CQE_SYNDROME_LOCAL_LENGTH_ERR};
}

strict_row qp_access(const char *name, enum hca_check check, const char *field,
                     std::function<raw_wqe(strict_bench &)> good,
                     strict_service service, int lacks)
{
    return {.name        = name,
            .check       = check,
            .service     = service,
            .good        = good,
            .spoil       = nothing,
            .syndrome    = INVAL_REQ,
            .field       = field,
            .outcome     = OUTCOME_REMOTE,
            .events      = INVALID,
            .fresh       = true,
            .bad_options = {.access = ACCESS_QP_ALL & ~lacks}};
}

std::vector<strict_row> request_rows()
{
    /* clang-format off */
    return {
        recv_len("message_beyond_the_receive", SERVICE_RC),
        recv_len("dc_message_beyond_the_receive", SERVICE_DC),
        recv_len("xrc_message_beyond_the_receive", SERVICE_XRC),
        recv_len("uc_message_beyond_the_receive", SERVICE_UC),
        recv_len("ud_message_beyond_the_receive", SERVICE_UD),
        qp_access("write_to_a_qp_that_forbids_it", HCA_CHECK_QP_WRITE,
                  "rdma write", good_write, SERVICE_RC,
                  IBV_ACCESS_REMOTE_WRITE),
        qp_access("write_to_a_dct_that_forbids_it", HCA_CHECK_QP_WRITE,
                  "rdma write", good_write, SERVICE_DC,
                  IBV_ACCESS_REMOTE_WRITE),
        qp_access("read_of_a_qp_that_forbids_it", HCA_CHECK_QP_READ,
                  "rdma read", good_read, SERVICE_RC, IBV_ACCESS_REMOTE_READ),
        qp_access("read_of_a_dct_that_forbids_it", HCA_CHECK_QP_READ,
                  "rdma read", good_read, SERVICE_DC, IBV_ACCESS_REMOTE_READ),
        qp_access("atomic_on_a_qp_that_forbids_it", HCA_CHECK_QP_ATOMIC,
                  "atomic", good_fetch_add, SERVICE_RC,
                  IBV_ACCESS_REMOTE_ATOMIC),
        qp_access("atomic_on_an_xrc_qp_that_forbids_it", HCA_CHECK_QP_ATOMIC,
                  "atomic", good_fetch_add, SERVICE_XRC,
                  IBV_ACCESS_REMOTE_ATOMIC),
        {.name = "dc_key_of_another_target", .check = HCA_CHECK_DC_KEY,
         .service = SERVICE_DC, .good = good_write,
         .spoil = [](strict_bench&, raw_wqe &wqe) {
             wqe.flip(wqe.at_av + 7, 0x01);
         },
         .syndrome = ACCESS, .field = "dc access key",
         .outcome = OUTCOME_REMOTE},
        {.name = "dc_key_upper_half", .check = HCA_CHECK_DC_KEY,
         .service = SERVICE_DC, .good = good_send,
         .spoil = [](strict_bench&, raw_wqe &wqe) {
             wqe.flip(wqe.at_av, 0x80);
         },
         .syndrome = ACCESS, .field = "dc access key",
         .outcome = OUTCOME_REMOTE},
        {.name = "xrc_srqn_of_no_srq", .check = HCA_CHECK_XRC_DOMAIN,
         .service = SERVICE_XRC, .good = good_send,
         .spoil = [](strict_bench&, raw_wqe &wqe) {
             wqe.flip(wqe.at_xrc + 1, 0x80);
         },
         .syndrome = INVAL_REQ, .field = "xrc srqn",
         .outcome = OUTCOME_REMOTE, .events = INVALID},
        {.name = "atomic_between_operands", .check = HCA_CHECK_ATOMIC_ALIGN,
         .good = good_fetch_add,
         .spoil = [](strict_bench&, raw_wqe &wqe) {
             wqe.flip(wqe.at_raddr + 7, 0x04);
         },
         .syndrome = INVAL_REQ, .field = "atomic address",
         .outcome = OUTCOME_REMOTE, .events = ACCESS_ERR},
        {.name = "dc_atomic_between_operands",
         .check = HCA_CHECK_ATOMIC_ALIGN, .service = SERVICE_DC,
         .good = good_fetch_add,
         .spoil = [](strict_bench&, raw_wqe &wqe) {
             wqe.flip(wqe.at_raddr + 7, 0x01);
         },
         .syndrome = INVAL_REQ, .field = "atomic address",
         .outcome = OUTCOME_REMOTE, .events = ACCESS_ERR},
        {.name = "sender_with_longer_packets", .check = HCA_CHECK_PATH_MTU,
         .options = {.mtu = IBV_MTU_4096}, .good = write_bytes(1024),
         .spoil = set_length(1025), .syndrome = INVAL_REQ,
         .field = "path mtu", .outcome = OUTCOME_REMOTE, .events = INVALID},
        {.name = "sender_with_shorter_packets", .check = HCA_CHECK_PATH_MTU,
         .options = {.mtu = IBV_MTU_256}, .good = write_bytes(256),
         .spoil = set_length(257), .syndrome = INVAL_REQ,
         .field = "path mtu", .outcome = OUTCOME_REMOTE, .events = INVALID},
        {.name = "xrc_sender_with_longer_packets",
         .check = HCA_CHECK_PATH_MTU, .service = SERVICE_XRC,
         .options = {.mtu = IBV_MTU_4096}, .good = write_bytes(1024),
         .spoil = set_length(1025), .syndrome = INVAL_REQ,
         .field = "path mtu", .outcome = OUTCOME_REMOTE, .events = INVALID},
        {.name = "uc_sender_with_longer_packets",
         .check = HCA_CHECK_PATH_MTU, .service = SERVICE_UC,
         .options = {.mtu = IBV_MTU_4096}, .good = write_bytes(1024),
         .spoil = set_length(1025), .field = "path mtu",
         .outcome = OUTCOME_DROP},
        {.name = "dc_sender_with_longer_packets",
         .check = HCA_CHECK_PATH_MTU, .service = SERVICE_DC,
         .options = {.mtu = IBV_MTU_4096}, .good = write_bytes(1024),
         .spoil = set_length(1025), .syndrome = INVAL_REQ,
         .field = "path mtu", .outcome = OUTCOME_REMOTE, .events = INVALID},
        {.name = "dc_sender_with_shorter_packets",
         .check = HCA_CHECK_PATH_MTU, .service = SERVICE_DC,
         .options = {.mtu = IBV_MTU_256}, .good = write_bytes(256),
         .spoil = set_length(257), .syndrome = INVAL_REQ,
         .field = "path mtu", .outcome = OUTCOME_REMOTE, .events = INVALID},
        {.name = "read_beyond_what_the_peer_keeps",
         .check = HCA_CHECK_RD_ATOMIC, .options = {.max_rd_atomic = 2},
         .good = good_read, .spoil = read_before, .syndrome = INVAL_REQ,
         .field = "reads and atomics", .outcome = OUTCOME_REMOTE,
         .events = ACCESS_ERR},
        {.name = "xrc_atomic_beyond_what_the_peer_keeps",
         .check = HCA_CHECK_RD_ATOMIC, .service = SERVICE_XRC,
         .options = {.max_rd_atomic = 16}, .good = good_fetch_add,
         .spoil = read_before, .syndrome = INVAL_REQ,
         .field = "reads and atomics", .outcome = OUTCOME_REMOTE,
         .events = ACCESS_ERR},
        {.name = "send_that_invalidates_a_region",
         .check = HCA_CHECK_RKEY_INVAL, .good = good_send,
         .spoil = [](strict_bench &bench, raw_wqe &wqe) {
             wqe.bytes[3] = MLX5_OPCODE_SEND_INVAL;
             wqe.imm(bench.dst->mr->rkey);
         },
         .syndrome = REMOTE_OP, .field = "key to invalidate",
         .outcome = OUTCOME_RECV,
         .recv_syndrome = MLX5_CQE_SYNDROME_LOCAL_ACCESS_ERR},
    };
    /* clang-format on */
}

} /* namespace */

std::vector<strict_row> strict_rows_responder()
{
    std::vector<strict_row> rows = queue_rows(), more = request_rows();

    rows.insert(rows.end(), more.begin(), more.end());
    return rows;
}

std::vector<strict_row> strict_rows_wire()
{
    std::vector<strict_row> rows = {
        {.name    = "nobody_answers",
         .check   = HCA_CHECK_RETRY_EXC,
         .service = SERVICE_DC,
         .good    = good_write,
         .spoil =
             [](strict_bench &, raw_wqe &wqe) {
                 wqe.flip(wqe.at_av + 9, 0x80); /* number of the DCT */
             },
         .syndrome = MLX5_CQE_SYNDROME_TRANSPORT_RETRY_EXC_ERR,
         .field    = "retries"},
        {.name  = "peer_is_not_ready",
         .check = HCA_CHECK_RETRY_EXC,
         .good  = good_write,
         .spoil =
             [](strict_bench &bench, raw_wqe &) {
                 hca_modify(bench.receiver, {}, IBV_QPS_RESET, 0);
             },
         .syndrome   = MLX5_CQE_SYNDROME_TRANSPORT_RETRY_EXC_ERR,
         .field      = "retries",
         .peer_reset = true},
        {.name     = "dlid_of_nobody",
         .check    = HCA_CHECK_RETRY_EXC,
         .service  = SERVICE_DC,
         .good     = good_write,
         .spoil    = [](strict_bench &,
                     raw_wqe &wqe) { wqe.flip(wqe.at_av + 14, 0x40); },
         .syndrome = MLX5_CQE_SYNDROME_TRANSPORT_RETRY_EXC_ERR,
         .field    = "retries"},
        {.name     = "no_receive",
         .check    = HCA_CHECK_RNR_EXC,
         .good     = good_send,
         .spoil    = use_recv,
         .syndrome = MLX5_CQE_SYNDROME_RNR_RETRY_EXC_ERR,
         .field    = "rnr retries"},
        {.name     = "dc_no_receive",
         .check    = HCA_CHECK_RNR_EXC,
         .service  = SERVICE_DC,
         .good     = good_send,
         .spoil    = use_recv,
         .syndrome = MLX5_CQE_SYNDROME_RNR_RETRY_EXC_ERR,
         .field    = "rnr retries"},
        {.name    = "ud_no_receive",
         .check   = HCA_CHECK_NO_RECV,
         .service = SERVICE_UD,
         .good    = good_send,
         .spoil   = use_recv,
         .outcome = OUTCOME_DROP},
        {.name  = "send_cq_is_full",
         .check = HCA_CHECK_CQ,
         .good  = good_write,
         .spoil =
             [](strict_bench &bench, raw_wqe &wqe) {
                 for (unsigned i = 0; i < bench.send_cq->capacity(); i++) {
                     bench.finish(wqe);
                     bench.post(wqe);
                 }
                 bench.finish(wqe);
             },
         .field   = "overrun",
         .outcome = OUTCOME_EVENT,
         .events  = OVERRUN_OF_ALL},
    };
    const struct {
        const char *mode;
        enum hca_check check;
        uint8_t syndrome;
    } naks[] = {
        {"nak_inval", HCA_CHECK_REMOTE_INVAL, INVAL_REQ},
        {"nak_access", HCA_CHECK_REMOTE_ACCESS, ACCESS},
        {"nak_op", HCA_CHECK_REMOTE_OP, REMOTE_OP},
    };

    /* the mode's fault occurs at the second message */
    for (const auto &nak : naks) {
        rows.push_back({.name     = "answered_by_the_wire",
                        .check    = nak.check,
                        .mode     = nak.mode,
                        .good     = good_write,
                        .spoil    = nothing,
                        .syndrome = nak.syndrome});
    }
    return rows;
}
