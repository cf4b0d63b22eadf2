/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Layouts of keys by UMR, as libmlx5's builders post them: data that the device
 * gathers and scatters through such a key, compared with a plain loop, and keys
 * with and without a layout
 */
#include "tm_bench.h"
#include "umr_bench.h"
#include "verbs_peer.h"

#include <algorithm>
#include <atomic>
#include <random>
#include <thread>

namespace {

/* Rows: 16 of each 64 bytes, from byte 8 on */
umr_layout matrix(const strict_mem &mem, uint32_t rows = 4)
{
    return umr_layout::rows(rows).block(mem.addr + 8, mem.mr->lkey, 16, 48);
}

void expect_matrix(const strict_mem &mem, uint8_t fill, uint32_t rows = 4)
{
    for (unsigned i = 0; i < rows * 64; i++) {
        bool is_in = (i % 64 >= 8) && (i % 64 < 24);

        ASSERT_EQ(is_in ? 0x11 : fill, mem.addr[i]) << i;
    }
}

class verbs_umr : public verbs_test {
protected:
    static constexpr uint32_t no_write = IBV_ACCESS_LOCAL_WRITE |
                                         IBV_ACCESS_REMOTE_READ;

    umr_layout all_of(const strict_mem &mem) const
    {
        return umr_layout().range(mem.addr, strict_mem::size, mem.mr->lkey);
    }

    enum ibv_wc_status write_through(uint32_t rkey, uint64_t addr = 0)
    {
        enum ibv_wc_status status = pair.run(write().remote(addr, rkey));

        if (status != IBV_WC_SUCCESS) {
            pair.reconnect();
        }
        return status;
    }

    umr_pair pair{dev};
    umr_key key{dev.pd};
};

/* --- forms ---------------------------------------------------------------- */

TEST_P(verbs_umr, rows_of_one_block)
{
    ASSERT_EQ(IBV_WC_SUCCESS, pair.set(key, matrix(dst)));
    EXPECT_EQ(IBV_WC_DRIVER1, pair.last.opcode);
    ASSERT_EQ(IBV_WC_SUCCESS, write_through(key.rkey()));
    expect_matrix(dst, 0x22);
}

TEST_P(verbs_umr, list_of_ranges)
{
    umr_layout layout;

    layout.range(dst.addr + 100, 60, dst.mr->lkey);
    layout.range(dst.addr, 3, dst.mr->lkey);
    layout.range(dst.addr + 50, 1, dst.mr->lkey);
    ASSERT_EQ(IBV_WC_SUCCESS, pair.set(key, layout));
    ASSERT_EQ(IBV_WC_SUCCESS, write_through(key.rkey()));
    EXPECT_EQ(0x22, dst.addr[99]);
    EXPECT_EQ(0x11, dst.addr[100]);
    EXPECT_EQ(0x11, dst.addr[159]);
    EXPECT_EQ(0x22, dst.addr[160]);
    EXPECT_EQ(0x11, dst.addr[2]);
    EXPECT_EQ(0x22, dst.addr[3]);
    EXPECT_EQ(0x11, dst.addr[50]);
    EXPECT_EQ(0x22, dst.addr[51]);
}

/* As many entries as a WQE holds; at each place of the ring, so that it wraps,
 * too */
TEST_P(verbs_umr, longest_list_at_the_end_of_the_ring)
{
    constexpr unsigned entries = 52;
    umr_layout layout;

    for (unsigned i = 0; i < entries; i++) {
        layout.range(dst.addr + i * 100, 2, dst.mr->lkey);
    }
    for (unsigned round = 0; round < 64; round++) {
        memset(dst.addr, 0x22, strict_mem::size);
        src.addr[0] = round;
        ASSERT_EQ(IBV_WC_SUCCESS, pair.set(key, layout)) << round;
        ASSERT_EQ(IBV_WC_SUCCESS, write_through(key.rkey(), 40)) << round;
        EXPECT_EQ(0x22, dst.addr[1900]);
        EXPECT_EQ(round, dst.addr[2000]);
        EXPECT_EQ(0x11, dst.addr[5101]);
        EXPECT_EQ(0x22, dst.addr[5102]);
    }
}

TEST_P(verbs_umr, library_refuses_more_than_the_key_has)
{
    umr_key small(dev.pd, 4);
    umr_layout layout;

    for (unsigned i = 0; i < 5; i++) {
        layout.range(dst.addr, 1, dst.mr->lkey);
    }
    pair.start(IBV_SEND_INLINE);
    mlx5dv_wr_mr_list(pair.dvx, small.mkey, 0, layout.ranges.size(),
                      layout.ranges.data());
    EXPECT_EQ(ENOMEM, ibv_wr_complete(pair.qpx));
}

TEST_P(verbs_umr, translations_in_memory)
{
    constexpr unsigned entries = 60; /* more than a WQE has room for */
    umr_key many(dev.pd, entries);
    std::vector<struct ibv_sge> ranges;

    for (unsigned i = 0; i < entries; i++) {
        ranges.push_back({(uintptr_t)dst.addr + i * 8, 2, dst.mr->lkey});
    }
    const auto list = umr_list(ranges);
    memcpy(src.addr + 4096, list.data(), list.size() * 16);
    ASSERT_EQ(IBV_WC_SUCCESS, pair.raw(umr_wqe_by_reference(
                                  many.lkey(), entries * 2, list.size(),
                                  src.addr + 4096, src.mr->lkey)));
    memset(src.addr + 4096, 0, 4096); /* the key has its own copy */
    ASSERT_EQ(IBV_WC_SUCCESS, write_through(many.rkey(), 56));
    for (unsigned i = 0; i < entries * 8; i++) {
        EXPECT_EQ(((i >= 28 * 8) && (i % 8 < 2)) ? 0x11 : 0x22, dst.addr[i])
            << i;
    }
}

/* The maximum number of pieces of a message, and more than are read at once */
TEST_P(verbs_umr, thousands_of_translations)
{
    constexpr unsigned entries = 10000;
    std::vector<uint8_t> memory(entries * 5), data(entries * 2);
    std::vector<struct ibv_sge> ranges;
    umr_key many(dev.pd, entries);
    struct ibv_mr *mr   = ibv_reg_mr(dev.pd, memory.data(), memory.size(),
                                     ACCESS_ALL);
    struct ibv_mr *from = ibv_reg_mr(dev.pd, data.data(), data.size(), 0);

    HCA_CHECK_CALL((mr != NULL) && (from != NULL));
    for (unsigned i = 0; i < entries; i++) {
        data[2 * i]     = i;
        data[2 * i + 1] = i >> 8;
        ranges.push_back({(uintptr_t)&memory[i * 5], 2, mr->lkey});
    }
    const auto list        = umr_list(ranges);
    struct ibv_mr *list_mr = ibv_reg_mr(dev.pd, (void *)list.data(),
                                        list.size() * 16, 0);
    HCA_CHECK_CALL(list_mr != NULL);
    ASSERT_EQ(IBV_WC_SUCCESS, pair.raw(umr_wqe_by_reference(
                                  many.lkey(), entries * 2, list.size(),
                                  list.data(), list_mr->lkey)));
    EXPECT_EQ(IBV_WC_SUCCESS, pair.run(verbs_op(IBV_WR_RDMA_WRITE)
                                           .local((uintptr_t)data.data(),
                                                  data.size(), from->lkey)
                                           .remote(0, many.rkey())));
    for (unsigned i = 0; i < memory.size(); i++) {
        ASSERT_EQ((i % 5 < 2) ? data[i / 5 * 2 + i % 5] : 0, memory[i]) << i;
    }
    for (struct ibv_mr *each : {list_mr, from, mr}) {
        EXPECT_EQ(0, ibv_dereg_mr(each));
    }
}

TEST_P(verbs_umr, rows_in_memory)
{
    const auto rows =
        umr_rows(4, {{(uintptr_t)dst.addr + 8, 16, 48, dst.mr->lkey}});

    memcpy(src.addr + 4096, rows.data(), rows.size() * 16);
    ASSERT_EQ(IBV_WC_SUCCESS,
              pair.raw(umr_wqe_by_reference(key.lkey(), 64, rows.size(),
                                            src.addr + 4096, src.mr->lkey)));
    ASSERT_EQ(IBV_WC_SUCCESS, write_through(key.rkey()));
    expect_matrix(dst, 0x22);
}

TEST_P(verbs_umr, space_begins_where_the_umr_says)
{
    raw_wqe wqe =
        umr_wqe(key.lkey(), 64,
                umr_rows(4, {{(uintptr_t)dst.addr + 8, 16, 48, dst.mr->lkey}}));

    wqe.flip(wqe.at_umr + 15, MLX5_WQE_UMR_CTRL_MKEY_MASK_START_ADDR);
    wqe.set64(wqe.at_mkey + 16, 0x7fff12345678);
    ASSERT_EQ(IBV_WC_SUCCESS, pair.raw(wqe));
    ASSERT_EQ(IBV_WC_SUCCESS, write_through(key.rkey(), 0x7fff12345678));
    expect_matrix(dst, 0x22);
    EXPECT_EQ(IBV_WC_REM_ACCESS_ERR, write_through(key.rkey(), 0));
    EXPECT_EQ(IBV_WC_REM_ACCESS_ERR, write_through(key.rkey(), 0x7fff12345679));
}

/* Non-canonical start addresses: accesses outside the space are refused, also
 * where the sum exceeds 64 bits. A UMR without a start address does not change
 * it. */
TEST_P(verbs_umr, space_begins_where_no_memory_is)
{
    for (uint64_t start : {0x40dcfff000000000ul, ~0ul - 127, 1ul << 63}) {
        raw_wqe wqe = umr_wqe(
            key.lkey(), 64,
            umr_rows(4, {{(uintptr_t)dst.addr + 8, 16, 48, dst.mr->lkey}}));

        memset(dst.addr, 0x22, strict_mem::size);
        wqe.flip(wqe.at_umr + 15, MLX5_WQE_UMR_CTRL_MKEY_MASK_START_ADDR);
        wqe.set64(wqe.at_mkey + 16, start);
        ASSERT_EQ(IBV_WC_SUCCESS, pair.raw(wqe));
        EXPECT_EQ(IBV_WC_REM_ACCESS_ERR, write_through(key.rkey(), start - 1));
        EXPECT_EQ(IBV_WC_REM_ACCESS_ERR, write_through(key.rkey(), start + 1));
        EXPECT_EQ(IBV_WC_REM_ACCESS_ERR, write_through(key.rkey(), start + 64));
        EXPECT_EQ(IBV_WC_REM_ACCESS_ERR, write_through(key.rkey(), 0));
        EXPECT_TRUE(std::all_of(dst.addr, dst.addr + strict_mem::size,
                                [](uint8_t byte) { return byte == 0x22; }));
        ASSERT_EQ(IBV_WC_SUCCESS, write_through(key.rkey(), start)) << start;
        expect_matrix(dst, 0x22);

        ASSERT_EQ(IBV_WC_SUCCESS, pair.set(key, matrix(dst)));
        EXPECT_EQ(IBV_WC_REM_ACCESS_ERR, write_through(key.rkey(), 0));
        ASSERT_EQ(IBV_WC_SUCCESS, write_through(key.rkey(), start));
    }
}

TEST_P(verbs_umr, keys_lead_through_each_other_to_a_depth)
{
    std::vector<std::unique_ptr<umr_key>> keys;
    umr_layout layout = all_of(dst);

    for (unsigned depth = 1; depth <= 5; depth++) {
        keys.push_back(std::make_unique<umr_key>(dev.pd));
        ASSERT_EQ(IBV_WC_SUCCESS, pair.set(*keys.back(), layout));
        EXPECT_EQ((depth < 5) ? IBV_WC_SUCCESS : IBV_WC_REM_OP_ERR,
                  write_through(keys.back()->rkey()))
            << depth;
        layout = umr_layout::rows(4).block(NULL, keys.back()->lkey(), 512, 0);
    }
}

/* --- states of keys ------------------------------------------------------- */

TEST_P(verbs_umr, key_without_a_layout_leads_nowhere)
{
    EXPECT_EQ(IBV_WC_REM_ACCESS_ERR, write_through(key.rkey()));
}

TEST_P(verbs_umr, layout_after_invalidation)
{
    ASSERT_EQ(IBV_WC_SUCCESS, pair.set(key, all_of(dst)));
    ASSERT_EQ(IBV_WC_SUCCESS, pair.local_inv(key.rkey()));
    EXPECT_EQ(IBV_WC_REM_ACCESS_ERR, write_through(key.rkey()));
    ASSERT_EQ(IBV_WC_SUCCESS, pair.set(key, matrix(dst)));
    ASSERT_EQ(IBV_WC_SUCCESS, write_through(key.rkey()));
    expect_matrix(dst, 0x22);
}

/* libmlx5 does not require a key that is free. */
TEST_P(verbs_umr, layout_over_another)
{
    ASSERT_EQ(IBV_WC_SUCCESS, pair.set(key, all_of(src)));
    ASSERT_EQ(IBV_WC_SUCCESS, pair.set(key, matrix(dst)));
    ASSERT_EQ(IBV_WC_SUCCESS, write_through(key.rkey()));
    expect_matrix(dst, 0x22);
    ASSERT_EQ(IBV_WC_SUCCESS, pair.set(key, all_of(dst)));
    ASSERT_EQ(IBV_WC_SUCCESS, write_through(key.rkey(), 200));
    EXPECT_EQ(0x11, dst.addr[263]);
    EXPECT_EQ(0x22, dst.addr[264]);
}

/* A UMR that only changes the rights keeps the layout. */
TEST_P(verbs_umr, layout_that_another_change_leaves)
{
    struct mlx5dv_mkey_conf_attr attr = {};

    ASSERT_EQ(IBV_WC_SUCCESS, pair.set(key, matrix(dst), no_write));
    EXPECT_EQ(IBV_WC_REM_ACCESS_ERR, write_through(key.rkey()));
    pair.start(IBV_SEND_INLINE);
    mlx5dv_wr_mkey_configure(pair.dvx, key.mkey, 1, &attr);
    mlx5dv_wr_set_mkey_access_flags(pair.dvx, UMR_ACCESS_ALL);
    ASSERT_EQ(IBV_WC_SUCCESS, pair.finish());
    ASSERT_EQ(IBV_WC_SUCCESS, write_through(key.rkey()));
    expect_matrix(dst, 0x22);
}

/* libmlx5 puts a small fence after a UMR (fm_cache of its mlx5_qp). */
TEST_P(verbs_umr, layout_and_its_use_in_one_doorbell)
{
    umr_layout layout = matrix(dst);

    pair.start(IBV_SEND_INLINE);
    mlx5dv_wr_mr_interleaved(pair.dvx, key.mkey, UMR_ACCESS_ALL, layout.repeat,
                             1, layout.blocks.data());
    pair.qpx->wr_flags = IBV_SEND_SIGNALED;
    ibv_wr_rdma_write(pair.qpx, key.rkey(), 0);
    ibv_wr_set_sge(pair.qpx, src.mr->lkey, (uintptr_t)src.addr, 64);
    ASSERT_EQ(IBV_WC_SUCCESS, pair.finish());
    ASSERT_EQ(IBV_WC_SUCCESS, verbs_wait(pair.cq).status);
    expect_matrix(dst, 0x22);
}

TEST_P(verbs_umr, setters_in_any_order)
{
    struct mlx5dv_mkey_conf_attr attr = {};
    umr_layout layout                 = matrix(dst);

    pair.start(IBV_SEND_INLINE);
    mlx5dv_wr_mkey_configure(pair.dvx, key.mkey, 2, &attr);
    mlx5dv_wr_set_mkey_layout_interleaved(pair.dvx, layout.repeat, 1,
                                          layout.blocks.data());
    mlx5dv_wr_set_mkey_access_flags(pair.dvx, UMR_ACCESS_ALL);
    ASSERT_EQ(IBV_WC_SUCCESS, pair.finish());
    ASSERT_EQ(IBV_WC_SUCCESS, write_through(key.rkey()));
    expect_matrix(dst, 0x22);
}

TEST_P(verbs_umr, keys_for_signatures_and_crypto_cannot_be_made)
{
    for (uint32_t flag : {MLX5DV_MKEY_INIT_ATTR_FLAGS_BLOCK_SIGNATURE,
                          MLX5DV_MKEY_INIT_ATTR_FLAGS_CRYPTO}) {
        struct mlx5dv_mkey_init_attr attr = {};

        attr.pd           = dev.pd;
        attr.create_flags = MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT | flag;
        attr.max_entries  = 4;
        EXPECT_EQ(nullptr, mlx5dv_create_mkey(&attr)) << flag;
    }
}

TEST_P(verbs_umr, peer_invalidates_what_allows_it)
{
    umr_key remote(dev.pd, 4, MLX5DV_MKEY_INIT_ATTR_FLAGS_REMOTE_INVALIDATE);

    for (umr_key *each : {&remote, &key}) {
        verbs_op op = send();

        ASSERT_EQ(IBV_WC_SUCCESS, pair.set(*each, all_of(dst)));
        ASSERT_EQ(0, verbs_recv(pair.peer, dst, 4096));
        op.wr.opcode          = IBV_WR_SEND_WITH_INV;
        op.wr.invalidate_rkey = each->rkey();
        EXPECT_EQ((each == &remote) ? IBV_WC_SUCCESS : IBV_WC_REM_OP_ERR,
                  pair.run(op));
        pair.reconnect();
        EXPECT_EQ((each == &remote) ? IBV_WC_REM_ACCESS_ERR : IBV_WC_SUCCESS,
                  write_through(each->rkey()));
    }
}

/* A UMR after a message that waits for a receive has no effect yet. */
TEST_P(verbs_umr, key_is_as_it_was_until_the_umr_is_executed)
{
    umr_layout layout = matrix(dst);
    verbs_pair other(dev);
    umr_pair waiting(dev, NULL, 7);

    ASSERT_EQ(IBV_WC_SUCCESS, pair.set(key, all_of(src)));
    ASSERT_EQ(0, send(5).post(waiting.qp));
    waiting.start(IBV_SEND_INLINE);
    mlx5dv_wr_mr_interleaved(waiting.dvx, key.mkey, UMR_ACCESS_ALL,
                             layout.repeat, 1, layout.blocks.data());
    ASSERT_EQ(0, ibv_wr_complete(waiting.qpx));
    EXPECT_EQ(IBV_WC_SUCCESS, run(other.a, write().remote(0, key.rkey())));
    EXPECT_EQ(0x22, dst.addr[8]) << "it leads to src";
    EXPECT_TRUE(verbs_is_empty(waiting.cq));

    ASSERT_EQ(0, verbs_recv(waiting.peer, src, 4096));
    verbs_expect_wcs(waiting.cq, IBV_WC_SUCCESS, 5, 5);
    verbs_expect_wcs(waiting.cq, IBV_WC_SUCCESS, 1, 1);
    ASSERT_EQ(IBV_WC_SUCCESS, write_through(key.rkey()));
    EXPECT_EQ(0x11, dst.addr[8]);
}

/* A message moves the bytes of one layout only, or none. */
TEST_P(verbs_umr, layout_changes_while_it_is_used)
{
    constexpr unsigned blocks = 16, bytes = 4, stride = 12, far = 4096;
    umr_layout list, rows = umr_layout::rows(blocks).block(
                         dst.addr + far, dst.mr->lkey, bytes, stride - bytes);
    std::atomic<bool> is_over{false};
    std::vector<uint8_t> none(strict_mem::size, 0x22), near = none,
                                                       there = none;

    for (unsigned i = 0; i < blocks; i++) {
        list.range(dst.addr + i * stride, bytes, dst.mr->lkey);
        memset(&near[i * stride], 0x11, bytes);
        memset(&there[far + i * stride], 0x11, bytes);
    }
    ASSERT_EQ(IBV_WC_SUCCESS, pair.set(key, list));
    std::thread changer([&] {
        umr_pair other(dev);

        for (unsigned i = 0; i < 10000; i++) {
            EXPECT_EQ(IBV_WC_SUCCESS, other.set(key, rows));
            EXPECT_EQ(IBV_WC_SUCCESS, other.set(key, list));
        }
        is_over = true;
    });
    while (!is_over && !HasFailure()) {
        enum ibv_wc_status status = write_through(key.rkey());
        std::vector<uint8_t> now  = dst.copy();

        EXPECT_TRUE((status == IBV_WC_SUCCESS) ?
                        ((now == near) || (now == there)) :
                        (now == none))
            << status;
        memset(dst.addr, 0x22, strict_mem::size);
    }
    changer.join();
}

TEST_P(verbs_umr, rights_are_those_of_the_layout_and_of_what_is_below)
{
    strict_mem read_only(dev.pd, IBV_ACCESS_REMOTE_READ, 0x33);

    ASSERT_EQ(IBV_WC_SUCCESS, pair.set(key, all_of(dst), no_write));
    EXPECT_EQ(IBV_WC_REM_ACCESS_ERR, write_through(key.rkey()));
    EXPECT_EQ(
        IBV_WC_SUCCESS,
        pair.run(
            verbs_op(IBV_WR_RDMA_READ).local(src, 64).remote(0, key.rkey())));
    EXPECT_EQ(0x22, src.addr[63]);
    ASSERT_EQ(IBV_WC_SUCCESS, pair.set(key, all_of(read_only)));
    EXPECT_EQ(IBV_WC_REM_ACCESS_ERR, write_through(key.rkey()));
}

TEST_P(verbs_umr, no_atomic_goes_through_rows)
{
    verbs_op op = verbs_op(IBV_WR_ATOMIC_FETCH_AND_ADD).local(src, 8);
    umr_key outer(dev.pd, 4);

    op.wr.wr.atomic.rkey        = key.rkey();
    op.wr.wr.atomic.compare_add = 1;
    ASSERT_EQ(IBV_WC_SUCCESS, pair.set(key, all_of(dst)));
    EXPECT_EQ(IBV_WC_SUCCESS, pair.run(op)) << "a list";
    ASSERT_EQ(IBV_WC_SUCCESS, pair.set(key, matrix(dst)));
    EXPECT_EQ(IBV_WC_REM_ACCESS_ERR, pair.run(op));
    EXPECT_EQ(0x22, dst.addr[8]);
    pair.reconnect();
    ASSERT_EQ(IBV_WC_SUCCESS,
              pair.set(outer, umr_layout().range(NULL, 64, key.lkey())));
    op.wr.wr.atomic.rkey = outer.rkey();
    EXPECT_EQ(IBV_WC_REM_ACCESS_ERR, pair.run(op)) << "below a list";
    EXPECT_EQ(0x22, dst.addr[8]);
}

/* --- operations on both sides --------------------------------------------- */

TEST_P(verbs_umr, receive_of_an_srq)
{
    struct ibv_srq_init_attr attr = {};

    attr.attr.max_wr    = 15;
    attr.attr.max_sge   = 1;
    struct ibv_srq *srq = ibv_create_srq(dev.pd, &attr);
    ASSERT_NE(nullptr, srq);
    {
        umr_pair shared(dev, srq);
        struct ibv_sge sge    = {0, 64, key.lkey()};
        struct ibv_recv_wr wr = {};
        struct ibv_recv_wr *bad;

        wr.sg_list = &sge;
        wr.num_sge = 1;
        ASSERT_EQ(IBV_WC_SUCCESS, shared.set(key, matrix(dst)));
        ASSERT_EQ(0, ibv_post_srq_recv(srq, &wr, &bad));
        EXPECT_EQ(IBV_WC_SUCCESS, shared.run(send()));
        EXPECT_EQ(64u, verbs_wait(shared.peer_cq).byte_len);
        expect_matrix(dst, 0x22);
    }
    EXPECT_EQ(0, ibv_destroy_srq(srq));
}

/* libmlx5 creates a list of tags on InfiniBand only. */
class verbs_umr_ib : public verbs_umr {};

TEST_P(verbs_umr_ib, tagged_buffer)
{
    tm_srq tm(dev);
    umr_pair matched(dev, tm.srq);
    struct ibv_mr strided = {};
    tm_msg msg(IBV_TMH_EAGER, 5, 64);

    strided.lkey = key.lkey();
    ASSERT_EQ(IBV_WC_SUCCESS, matched.set(key, matrix(dst)));
    tm.add({.wr_id = 7, .tag = 5, .length = 64, .other = &strided});
    memcpy(src.addr, msg.bytes.data(), msg.bytes.size());
    EXPECT_EQ(IBV_WC_SUCCESS,
              matched.run(verbs_op(IBV_WR_SEND).local(src, msg.bytes.size())));
    EXPECT_EQ(64u, tm.expect_match(7, 5));
    for (unsigned i = 0; i < 64; i++) {
        EXPECT_EQ(((const uint8_t *)msg.data())[i],
                  dst.addr[8 + i / 16 * 64 + i % 16])
            << i;
    }
    EXPECT_EQ(0x22, dst.addr[24]);
}

/* Sends, receives of the target's SRQ, writes and reads, from rows to rows */
TEST_P(verbs_umr, dc_on_both_sides)
{
    strict_bench bench(SERVICE_DC, {});
    strict_mem from(bench.dev.pd, ACCESS_ALL, 0x11);
    strict_mem to(bench.dev.pd, ACCESS_ALL, 0x22);
    umr_pair umr(bench.dev);
    umr_key from_key(bench.dev.pd), to_key(bench.dev.pd);
    struct mlx5_err_cqe cqe;

    ASSERT_EQ(IBV_WC_SUCCESS, umr.set(from_key, matrix(from)));
    ASSERT_EQ(IBV_WC_SUCCESS, umr.set(to_key, matrix(to)));
    bench.post_recv(NULL, 64, to_key.lkey());
    bench.post_good(
        bench.wqe(MLX5_OPCODE_SEND).data(NULL, 64, from_key.lkey()));
    ASSERT_TRUE(bench.wait(*bench.recv_cq, &cqe));
    expect_matrix(to, 0x22);

    memset(to.addr, 0x33, strict_mem::size);
    bench.post_good(bench.wqe(MLX5_OPCODE_RDMA_WRITE)
                        .raddr(NULL, to_key.rkey())
                        .data(NULL, 64, from_key.lkey()));
    expect_matrix(to, 0x33);

    memset(to.addr, 0x44, strict_mem::size);
    bench.post_good(bench.wqe(MLX5_OPCODE_RDMA_READ)
                        .raddr(NULL, from_key.rkey())
                        .data(NULL, 64, to_key.lkey()));
    expect_matrix(to, 0x44);
}

/* --- two processes -------------------------------------------------------- */

constexpr uint32_t PEER_ROWS = 250, PEER_BYTES = PEER_ROWS * 16;

/* Writes its rows to those of the other process, and reads them back to rows of
 * other memory. */
void peer_main(int fd)
{
    hca_device dev;
    strict_mem from(dev.pd, ACCESS_ALL, 0x11);
    strict_mem to(dev.pd, ACCESS_ALL, 0x33);
    verbs_ep ep(dev);
    umr_pair umr(dev);
    umr_key from_key(dev.pd), to_key(dev.pd);
    const peer_card card = peer_exchange(fd, ep, from);
    uint32_t rkey;

    peer_connect(fd, ep, card);
    HCA_CHECK_CALL(::read(fd, &rkey, sizeof(rkey)) == sizeof(rkey));
    ASSERT_EQ(IBV_WC_SUCCESS, umr.set(from_key, matrix(from, PEER_ROWS)));
    ASSERT_EQ(IBV_WC_SUCCESS, umr.set(to_key, matrix(to, PEER_ROWS)));
    for (verbs_op op :
         {verbs_op(IBV_WR_RDMA_WRITE).local(0, PEER_BYTES, from_key.lkey()),
          verbs_op(IBV_WR_RDMA_READ).local(0, PEER_BYTES, to_key.lkey())}) {
        ASSERT_EQ(0, op.remote(0, rkey).post(ep.qp));
        ASSERT_EQ(IBV_WC_SUCCESS, verbs_wait(ep.send_cq).status);
    }
    expect_matrix(to, 0x33, PEER_ROWS);
    peer_meet(fd);
}

class verbs_umr_peer : public testing::TestWithParam<int> {};

TEST_P(verbs_umr_peer, rows_of_one_process_to_rows_of_another)
{
    peer_process peer(peer_main);
    hca_device dev;
    strict_mem mem(dev.pd, ACCESS_ALL, 0x22);
    verbs_ep ep(dev);
    umr_pair umr(dev);
    umr_key key(dev.pd);
    const uint32_t rkey  = key.rkey();
    const peer_card card = peer_exchange(peer.fd, ep, mem);

    ASSERT_EQ(IBV_WC_SUCCESS, umr.set(key, matrix(mem, PEER_ROWS)));
    peer_connect(peer.fd, ep, card);
    HCA_CHECK_CALL(::write(peer.fd, &rkey, sizeof(rkey)) == sizeof(rkey));
    peer_meet(peer.fd);
    expect_matrix(mem, 0x22, PEER_ROWS);
    EXPECT_EQ(0, peer.wait());
}

/* --- random layouts ------------------------------------------------------- */

/* Layouts whose blocks do not overlap, over one piece of memory */
class umr_random {
public:
    explicit umr_random(unsigned seed) : m_random(seed) {}

    uint32_t below(uint32_t limit) { return m_random() % limit; }

    umr_layout layout(const strict_mem &mem)
    {
        return (below(2) == 0) ? list(mem) : rows(mem);
    }

private:
    umr_layout list(const strict_mem &mem)
    {
        const unsigned entries = 1 + below(40);
        umr_layout layout;
        size_t at = below(64);

        for (unsigned i = 0; i < entries; i++) {
            uint32_t length = below(200);

            layout.range(mem.addr + at, length, mem.mr->lkey);
            at += length + below(150);
        }
        std::shuffle(layout.ranges.begin(), layout.ranges.end(), m_random);
        return layout;
    }

    /* Blocks of a row that are in each other's gaps, or each in an area of its
     * own */
    umr_layout rows(const strict_mem &mem)
    {
        const unsigned entries = 1 + below(8);
        const bool is_shared   = below(2) == 0;
        const uint32_t slot = 1 + below(90), stride = slot * entries;
        umr_layout layout = umr_layout::rows(1 + below(16000 / stride));
        size_t at         = below(64);

        for (unsigned i = 0; i < entries; i++) {
            uint32_t bytes = 1 + below(slot);

            layout.block(mem.addr + at, mem.mr->lkey, bytes,
                         is_shared ? stride - bytes : slot - bytes);
            at += is_shared ? slot : slot * layout.repeat;
        }
        std::shuffle(layout.blocks.begin(), layout.blocks.end(), m_random);
        return layout;
    }

    std::mt19937 m_random;
};

/* A key over memory, or over parts of another key in any order */
class umr_side {
public:
    umr_side(const hca_device &dev, const strict_mem &mem) :
        m_mem(mem), m_inner(dev.pd), m_outer(dev.pd)
    {
    }

    void set(umr_pair &pair, umr_random &random)
    {
        umr_layout layout = random.layout(m_mem);

        m_bytes = layout.bytes();
        m_key   = m_inner.lkey();
        ASSERT_EQ(IBV_WC_SUCCESS, pair.set(m_inner, layout));
        if (!m_bytes.empty() && (random.below(3) == 0)) {
            nest(pair, random);
        }
    }

    uint32_t key() const { return m_key; }
    const std::vector<uint8_t *> &bytes() const { return m_bytes; }

private:
    void nest(umr_pair &pair, umr_random &random)
    {
        std::vector<uint8_t *> bytes;
        umr_layout layout;

        for (size_t at = random.below(9); at < m_bytes.size();) {
            uint32_t length = 1 + random.below(300);

            length = std::min<size_t>(length, m_bytes.size() - at);
            layout.range((void *)at, length, m_inner.lkey());
            bytes.insert(bytes.end(), m_bytes.begin() + at,
                         m_bytes.begin() + at + length);
            at += length + random.below(50);
        }
        if (layout.ranges.empty() || (layout.ranges.size() > 40)) {
            return;
        }
        ASSERT_EQ(IBV_WC_SUCCESS, pair.set(m_outer, layout));
        m_bytes = bytes;
        m_key   = m_outer.lkey();
    }

    const strict_mem &m_mem;
    umr_key m_inner, m_outer;
    uint32_t m_key = 0;
    std::vector<uint8_t *> m_bytes;
};

class verbs_umr_any : public verbs_umr {
protected:
    /* Moves @length bytes from byte @from of @a to byte @to of @b. @how: 0
     * send, 1 write, 2 read */
    void move(unsigned how, umr_side &a, size_t from, umr_side &b, size_t to,
              uint32_t length)
    {
        struct ibv_sge sge    = {to, length, b.key()};
        struct ibv_recv_wr wr = {};
        struct ibv_recv_wr *bad;

        if (how == 0) {
            wr.sg_list = &sge;
            wr.num_sge = 1;
            ASSERT_EQ(0, ibv_post_recv(pair.peer, &wr, &bad));
            ASSERT_EQ(
                IBV_WC_SUCCESS,
                pair.run(verbs_op(IBV_WR_SEND).local(from, length, a.key())));
            ASSERT_EQ(length, verbs_wait(pair.peer_cq).byte_len);
        } else if (how == 1) {
            ASSERT_EQ(IBV_WC_SUCCESS, pair.run(verbs_op(IBV_WR_RDMA_WRITE)
                                                   .local(from, length, a.key())
                                                   .remote(to, b.key())));
        } else {
            ASSERT_EQ(IBV_WC_SUCCESS, pair.run(verbs_op(IBV_WR_RDMA_READ)
                                                   .local(to, length, b.key())
                                                   .remote(from, a.key())));
        }
    }

    void try_one(umr_random &random, umr_side &a, umr_side &b)
    {
        for (size_t i = 0; i < strict_mem::size; i++) {
            src.addr[i] = random.below(256);
        }
        memset(dst.addr, random.below(256), strict_mem::size);
        a.set(pair, random);
        b.set(pair, random);
        size_t most = std::min(a.bytes().size(), b.bytes().size());
        if (most == 0) {
            return;
        }
        uint32_t length = 1 + random.below(most);
        size_t from     = random.below(a.bytes().size() - length + 1);
        size_t to       = random.below(b.bytes().size() - length + 1);

        std::vector<uint8_t> expected = dst.copy();
        for (size_t i = 0; i < length; i++) {
            expected[b.bytes()[to + i] - dst.addr] = *a.bytes()[from + i];
        }
        move(random.below(3), a, from, b, to, length);
        ASSERT_EQ(expected, dst.copy());
    }
};

TEST_P(verbs_umr_any, data_is_that_of_a_plain_loop)
{
    const char *value   = getenv("DCX_TEST_SEED");
    const unsigned seed = (value != NULL) ? atoi(value) :
                                            std::random_device()();
    umr_random random(seed);
    umr_side a(dev, src), b(dev, dst);

    RecordProperty("seed", (int)seed);
    printf("DCX_TEST_SEED=%u\n", seed);
    for (unsigned i = 0; (i < 4000) && !HasFatalFailure(); i++) {
        SCOPED_TRACE("layout " + std::to_string(i));
        try_one(random, a, b);
    }
}

#define UMR_MODE(_mode) \
    INSTANTIATE_TEST_SUITE_P(_mode, verbs_umr, testing::Values(0)); \
    INSTANTIATE_TEST_SUITE_P(_mode, verbs_umr_peer, testing::Values(0)); \
    INSTANTIATE_TEST_SUITE_P(_mode, verbs_umr_any, testing::Values(0))

UMR_MODE(ib);
UMR_MODE(roce);
UMR_MODE(strict);
INSTANTIATE_TEST_SUITE_P(late, verbs_umr, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(ib, verbs_umr_ib, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(late, verbs_umr_ib, testing::Values(0));

} /* namespace */

int main(int argc, char **argv)
{
    return hca_test_main(argc, argv,
                         {
                             {"ib", {}},
                             {"roce", {{"SOFTHCA_LINK", "roce"}}},
                             {"strict", {{"SOFTHCA_STRICT", "1"}}},
                             {"late", {{"SOFTHCA_DELAY", "20"}}},
                         });
}
