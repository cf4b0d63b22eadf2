/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Rows on memory keys: of the sender's own data (lkey), of the peer's memory
 * (rkey) and of receive buffers (receive lkey). The same things can be wrong
 * with each, with different effects.
 */
#include "devx_bench.h"
#include "strict_rows.h"

namespace {

constexpr uint8_t PROT      = MLX5_CQE_SYNDROME_LOCAL_PROT_ERR;
constexpr uint8_t ACCESS    = MLX5_CQE_SYNDROME_REMOTE_ACCESS_ERR;
constexpr uint8_t REMOTE_OP = MLX5_CQE_SYNDROME_REMOTE_OP_ERR;

/* Replaces the key of the data segment. */
spoil_fn lkey(std::function<uint32_t(strict_bench &)> key)
{
    return [=](strict_bench &bench, raw_wqe &wqe) {
        wqe.set32(wqe.at_data + 4, key(bench));
    };
}

spoil_fn data_addr(ptrdiff_t offset)
{
    return [=](strict_bench &bench, raw_wqe &wqe) {
        wqe.set64(wqe.at_data + 8, (uintptr_t)bench.src->addr + offset);
    };
}

/* Binds a window over dst to the sender's QP; the receiver's QP must refuse its
 * key. */
uint32_t window_of_sender(strict_bench &bench)
{
    struct ibv_mw *window = bench.window(bench.dev.pd, IBV_MW_TYPE_2);

    bench.post_good(bench.bind(window));
    return bench.bound_key(window);
}

/* Binds a window over dst to the receiver's QP; the sender's must refuse its
 * key. Swaps the roles, as bind() and post_good() act on the sender. */
uint32_t window_of_receiver(strict_bench &bench)
{
    struct ibv_mw *window = bench.window(bench.dev.pd, IBV_MW_TYPE_2);

    std::swap(bench.sq, bench.rq);
    std::swap(bench.sender, bench.receiver);
    bench.post_good(bench.bind(window));
    std::swap(bench.sender, bench.receiver);
    std::swap(bench.sq, bench.rq);
    return bench.bound_key(window);
}

/* Returns a key that leads to a region over more levels than the device
 * follows. */
uint32_t key_of_five_levels(strict_bench &bench, const strict_mem &mem)
{
    const uint64_t start = (uintptr_t)mem.addr;
    uint32_t key         = mem.mr->lkey;

    for (unsigned level = 0; level < 5; level++) {
        auto mkey = std::make_shared<devx_mkey>(
            bench.dev.ctx, devx_mkey_in(bench.dev.pd, start, mem.size,
                                        {{start, mem.size, key}})
                               .set(DEVX_MKC, 14, 14, 0));

        HCA_CHECK_CALL(mkey->obj != NULL);
        bench.kept.insert(bench.kept.begin(), mkey);
        key = mkey->key;
    }
    return key;
}

/* Returns a key of all of src without local read access. */
uint32_t key_without_local_read(strict_bench &bench)
{
    const uint64_t start = (uintptr_t)bench.src->addr;
    devx_mailbox in =
        devx_mkey_in(bench.dev.pd, start, strict_mem::size,
                     {{start, strict_mem::size, bench.src->mr->lkey}});
    auto mkey = std::make_shared<devx_mkey>(
        bench.dev.ctx, in.set(DEVX_MKC, 10, 10, 0).set(DEVX_MKC, 14, 14, 0));

    HCA_CHECK_CALL(mkey->obj != NULL);
    bench.kept.push_back(mkey);
    return mkey->key;
}

/* Finishes the WQE again, for spoilers that post another one first. */
void refinish(strict_bench &bench, raw_wqe &wqe)
{
    bench.finish(wqe);
}

std::vector<strict_row> lkey_rows()
{
    /* clang-format off */
    return {
        {.name = "lkey_of_no_region", .check = HCA_CHECK_LKEY,
         .good = good_write,
         .spoil = lkey([](strict_bench &bench) {
             return bench.src->mr->lkey ^ 0x00800000;
         }),
         .syndrome = PROT, .field = "lkey"},
        {.name = "lkey_of_an_earlier_region", .check = HCA_CHECK_LKEY,
         .good = good_write,
         .spoil = lkey([](strict_bench &bench) {
             return strict_mem(bench.dev.pd, IBV_ACCESS_LOCAL_WRITE,
                               0).mr->lkey;
         }),
         .syndrome = PROT, .field = "lkey"},
        {.name = "lkey_with_another_variant", .check = HCA_CHECK_LKEY,
         .service = SERVICE_DC, .good = good_send,
         .spoil = lkey([](strict_bench &bench) {
             return bench.src->mr->lkey ^ 1;
         }),
         .syndrome = PROT, .field = "lkey"},
        {.name = "lkey_of_an_unbound_window", .check = HCA_CHECK_LKEY_FREE,
         .good = good_write,
         .spoil = lkey([](strict_bench &bench) {
             return bench.window(bench.dev.pd, IBV_MW_TYPE_2)->rkey;
         }),
         .syndrome = PROT, .field = "lkey"},
        {.name = "lkey_of_another_pd", .check = HCA_CHECK_LKEY_PD,
         .good = good_write,
         .spoil = lkey([](strict_bench &bench) {
             return bench.region(bench.other_pd, ACCESS_ALL).mr->lkey;
         }),
         .syndrome = PROT, .field = "lkey"},
        {.name = "ud_lkey_of_another_pd", .check = HCA_CHECK_LKEY_PD,
         .service = SERVICE_UD, .good = good_send,
         .spoil = lkey([](strict_bench &bench) {
             return bench.region(bench.other_pd, ACCESS_ALL).mr->lkey;
         }),
         .syndrome = PROT, .field = "lkey"},
        {.name = "read_into_what_may_not_be_written",
         .check = HCA_CHECK_LKEY_ACCESS, .good = good_read,
         .spoil = [](strict_bench &bench, raw_wqe &wqe) {
             strict_mem &mem = bench.region(bench.dev.pd, 0);

             wqe.set32(wqe.at_data + 4, mem.mr->lkey);
             wqe.set64(wqe.at_data + 8, (uintptr_t)mem.addr);
         },
         .syndrome = PROT, .field = "lkey"},
        {.name = "write_from_what_may_not_be_read",
         .check = HCA_CHECK_LKEY_ACCESS, .good = good_write,
         .spoil = lkey(key_without_local_read), .syndrome = PROT,
         .field = "lkey"},
        {.name = "lkey_that_leads_too_far", .check = HCA_CHECK_LKEY_PIECES,
         .good = good_write,
         .spoil = lkey([](strict_bench &bench) {
             return key_of_five_levels(bench, *bench.src);
         }),
         .syndrome = PROT, .field = "lkey, its translation"},
        {.name = "dc_atomic_into_what_may_not_be_written",
         .check = HCA_CHECK_LKEY_ACCESS, .service = SERVICE_DC,
         .good = good_fetch_add,
         .spoil = [](strict_bench &bench, raw_wqe &wqe) {
             strict_mem &mem = bench.region(bench.dev.pd, 0);

             wqe.set32(wqe.at_data + 4, mem.mr->lkey);
             wqe.set64(wqe.at_data + 8, (uintptr_t)mem.addr);
         },
         .syndrome = PROT, .field = "lkey"},
        {.name = "data_before_its_region", .check = HCA_CHECK_LKEY_BOUNDS,
         .good = good_write, .spoil = data_addr(-1), .syndrome = PROT,
         .field = "data segment address"},
        {.name = "data_over_the_end_of_its_region",
         .check = HCA_CHECK_LKEY_BOUNDS, .service = SERVICE_DC,
         .good = good_write, .spoil = data_addr(strict_mem::size - 63),
         .syndrome = PROT, .field = "data segment address"},
        {.name = "data_over_the_end_of_addresses",
         .check = HCA_CHECK_LKEY_BOUNDS, .good = good_write,
         .spoil = [](strict_bench&, raw_wqe &wqe) {
             wqe.set64(wqe.at_data + 8, UINT64_MAX - 8);
         },
         .syndrome = PROT, .field = "data segment address"},
        {.name = "lkey_of_a_window_of_another_qp",
         .check = HCA_CHECK_LKEY_QP, .good = good_write,
         .spoil = lkey(window_of_receiver), .syndrome = PROT,
         .field = "lkey"},
        {.name = "result_of_an_atomic_into_the_void",
         .check = HCA_CHECK_LKEY_FAULT, .good = good_fetch_add,
         .spoil = [](strict_bench &bench, raw_wqe&) { bench.src->unmap(); },
         .syndrome = PROT, .field = "data segment address",
         .written = true},
    };
    /* clang-format on */
}

spoil_fn rkey(std::function<uint32_t(strict_bench &)> key)
{
    return [=](strict_bench &bench, raw_wqe &wqe) {
        wqe.set32(wqe.at_raddr + 8, key(bench));
        refinish(bench, wqe);
    };
}

spoil_fn raddr(ptrdiff_t offset)
{
    return [=](strict_bench &bench, raw_wqe &wqe) {
        wqe.set64(wqe.at_raddr, (uintptr_t)bench.dst->addr + offset);
    };
}

strict_row rkey_row(const char *name, enum hca_check check,
                    std::function<raw_wqe(strict_bench &)> good, spoil_fn spoil,
                    strict_service service = SERVICE_RC)
{
    return {.name     = name,
            .check    = check,
            .service  = service,
            .good     = good,
            .spoil    = spoil,
            .syndrome = ACCESS,
            .field    = "rkey",
            .outcome  = OUTCOME_REMOTE,
            .events   = "local access violation work queue error of receiver"};
}

std::vector<strict_row> rkey_rows()
{
    std::vector<strict_row> rows = {
        rkey_row("rkey_of_no_region", HCA_CHECK_RKEY, good_write,
                 rkey([](strict_bench &bench) {
                     return bench.dst->mr->rkey ^ 0x00800000;
                 })),
        rkey_row(
            "rkey_with_another_variant", HCA_CHECK_RKEY, good_read,
            rkey([](strict_bench &bench) { return bench.dst->mr->rkey ^ 1; }),
            SERVICE_DC),
        rkey_row("rkey_of_an_unbound_window", HCA_CHECK_RKEY_FREE, good_write,
                 rkey([](strict_bench &bench) {
                     return bench.window(bench.dev.pd, IBV_MW_TYPE_2)->rkey;
                 })),
        rkey_row("rkey_of_another_pd", HCA_CHECK_RKEY_PD, good_write,
                 rkey([](strict_bench &bench) {
                     return bench.region(bench.other_pd, ACCESS_ALL).mr->rkey;
                 })),
        rkey_row("dc_rkey_of_another_pd", HCA_CHECK_RKEY_PD, good_fetch_add,
                 rkey([](strict_bench &bench) {
                     return bench.region(bench.other_pd, ACCESS_ALL).mr->rkey;
                 }),
                 SERVICE_DC),
        rkey_row("xrc_rkey_of_another_pd", HCA_CHECK_RKEY_PD, good_write,
                 rkey([](strict_bench &bench) {
                     return bench.region(bench.other_pd, ACCESS_ALL).mr->rkey;
                 }),
                 SERVICE_XRC),
        rkey_row("write_to_what_may_be_read", HCA_CHECK_RKEY_ACCESS, good_write,
                 rkey([](strict_bench &bench) {
                     return bench.region(bench.dev.pd, IBV_ACCESS_REMOTE_READ)
                         .mr->rkey;
                 })),
        rkey_row("read_of_what_may_be_written", HCA_CHECK_RKEY_ACCESS,
                 good_read, rkey([](strict_bench &bench) {
                     return bench
                         .region(bench.dev.pd, IBV_ACCESS_LOCAL_WRITE |
                                                   IBV_ACCESS_REMOTE_WRITE)
                         .mr->rkey;
                 }),
                 SERVICE_DC),
        rkey_row("atomic_on_what_may_be_written", HCA_CHECK_RKEY_ACCESS,
                 good_fetch_add, rkey([](strict_bench &bench) {
                     return bench
                         .region(bench.dev.pd, IBV_ACCESS_LOCAL_WRITE |
                                                   IBV_ACCESS_REMOTE_WRITE)
                         .mr->rkey;
                 })),
        rkey_row("rkey_of_a_window_of_another_qp", HCA_CHECK_RKEY_QP,
                 good_write, rkey(window_of_sender)),
    };
    std::vector<strict_row> bounds = {
        rkey_row("write_before_the_region", HCA_CHECK_RKEY_BOUNDS, good_write,
                 raddr(-1)),
        rkey_row("read_over_the_end_of_the_region", HCA_CHECK_RKEY_BOUNDS,
                 good_read, raddr(strict_mem::size - 63), SERVICE_DC),
        rkey_row("atomic_behind_the_region", HCA_CHECK_RKEY_BOUNDS,
                 good_fetch_add, raddr(strict_mem::size)),
    };
    strict_row fault =
        rkey_row("write_into_the_void", HCA_CHECK_RKEY_FAULT, good_write,
                 [](strict_bench &bench, raw_wqe &) { bench.dst->unmap(); });

    strict_row far = rkey_row("rkey_that_leads_too_far", HCA_CHECK_RKEY_PIECES,
                              good_write, rkey([](strict_bench &bench) {
                                  return key_of_five_levels(bench, *bench.dst);
                              }));

    for (auto &row : bounds) {
        row.field = "remote address";
        rows.push_back(row);
    }
    fault.field    = "remote address";
    fault.syndrome = REMOTE_OP;
    rows.push_back(fault);
    far.field    = "rkey, its translation";
    far.syndrome = REMOTE_OP;
    rows.push_back(far);
    return rows;
}

/* Returns a row of a message into a bad receive. The receive that `good` posted
 * is first used by another message, so that the bad one is next. */
strict_row recv_row(const char *name, enum hca_check check,
                    std::function<void(strict_bench &)> post_recv,
                    strict_service service = SERVICE_RC)
{
    return {.name    = name,
            .check   = check,
            .service = service,
            .good    = good_send,
            .spoil =
                [=](strict_bench &bench, raw_wqe &wqe) {
                    struct mlx5_err_cqe cqe;

                    bench.post_good(bench.send());
                    EXPECT_TRUE(bench.wait(*bench.recv_cq, &cqe));
                    post_recv(bench);
                    refinish(bench, wqe);
                },
            .syndrome      = REMOTE_OP,
            .field         = "receive lkey",
            .outcome       = OUTCOME_RECV,
            .recv_syndrome = PROT};
}

/* Posts a receive into dst by another key. */
std::function<void(strict_bench &)>
recv_key(std::function<uint32_t(strict_bench &)> key)
{
    return [=](strict_bench &bench) {
        bench.post_recv(bench.dst->addr, 64, key(bench));
    };
}

std::vector<strict_row> recv_lkey_rows()
{
    auto unknown = recv_key(
        [](strict_bench &bench) { return bench.dst->mr->lkey ^ 0x00800000; });
    auto other_pd  = recv_key([](strict_bench &bench) {
        return bench.region(bench.other_pd, ACCESS_ALL).mr->lkey;
    });
    auto read_only = [](strict_bench &bench) {
        strict_mem &mem = bench.region(bench.dev.pd, IBV_ACCESS_REMOTE_READ);

        bench.post_recv(mem.addr, 64, mem.mr->lkey);
    };
    std::vector<strict_row> rows = {
        recv_row("receive_lkey_of_no_region", HCA_CHECK_RECV_LKEY, unknown),
        recv_row("dc_receive_lkey_of_no_region", HCA_CHECK_RECV_LKEY, unknown,
                 SERVICE_DC),
        recv_row("uc_receive_lkey_of_no_region", HCA_CHECK_RECV_LKEY, unknown,
                 SERVICE_UC),
        recv_row("receive_lkey_of_an_unbound_window", HCA_CHECK_RECV_LKEY_FREE,
                 recv_key([](strict_bench &bench) {
                     return bench.window(bench.dev.pd, IBV_MW_TYPE_2)->rkey;
                 })),
        recv_row("receive_lkey_of_another_pd", HCA_CHECK_RECV_LKEY_PD,
                 other_pd),
        recv_row("xrc_receive_lkey_of_another_pd", HCA_CHECK_RECV_LKEY_PD,
                 other_pd, SERVICE_XRC),
        recv_row("receive_into_what_may_not_be_written",
                 HCA_CHECK_RECV_LKEY_ACCESS, read_only),
        recv_row("receive_lkey_that_leads_too_far", HCA_CHECK_RECV_LKEY_PIECES,
                 recv_key([](strict_bench &bench) {
                     return key_of_five_levels(bench, *bench.dst);
                 })),
        recv_row("receive_lkey_of_a_window_of_another_qp",
                 HCA_CHECK_RECV_LKEY_QP, recv_key(window_of_sender)),
    };
    strict_row bounds =
        recv_row("receive_over_the_end_of_the_region",
                 HCA_CHECK_RECV_LKEY_BOUNDS, [](strict_bench &bench) {
                     bench.post_recv(bench.dst->addr + strict_mem::size - 63,
                                     64, bench.dst->mr->lkey);
                 });
    strict_row fault =
        recv_row("receive_into_the_void", HCA_CHECK_RECV_LKEY_FAULT,
                 [](strict_bench &bench) {
                     strict_mem &mem = bench.region(bench.dev.pd, ACCESS_ALL);

                     bench.post_recv(mem.unmap(), 64, mem.mr->lkey);
                 });

    for (auto *row : {&bounds, &fault}) {
        row->field = "receive address";
        rows.push_back(*row);
    }
    return rows;
}

} /* namespace */

std::vector<strict_row> strict_rows_key()
{
    std::vector<strict_row> rows = lkey_rows();

    for (const auto &more : {rkey_rows(), recv_lkey_rows()}) {
        rows.insert(rows.end(), more.begin(), more.end());
    }
    return rows;
}
