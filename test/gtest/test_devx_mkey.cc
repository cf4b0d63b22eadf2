/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Indirect keys by CREATE_MKEY: accesses through them, their rights and bounds,
 * their end, and what is refused. Part of the program of test_devx_objects.cc.
 */
#include "devx_bench.h"

namespace {

class devx_mkeys : public verbs_test {
protected:
    static uint64_t addr(const strict_mem &mem, size_t offset = 0)
    {
        return (uintptr_t)mem.addr + offset;
    }

    devx_klm klm(const strict_mem &mem, size_t offset, uint32_t length) const
    {
        return {addr(mem, offset), length, mem.mr->lkey};
    }

    /* Returns the command for a key of all of dst, at its own address. */
    devx_mailbox whole() const
    {
        return devx_mkey_in(dev.pd, addr(dst), strict_mem::size,
                            {klm(dst, 0, strict_mem::size)});
    }

    void expect_refused(const devx_mailbox &in, uint8_t status,
                        uint32_t syndrome, const char *what)
    {
        devx_mkey key(dev.ctx, in);

        EXPECT_EQ(nullptr, key.obj) << what;
        EXPECT_EQ(EREMOTEIO, key.error) << what;
        EXPECT_EQ(status, key.out.status()) << what;
        EXPECT_EQ(syndrome, key.out.syndrome()) << what;
    }
};

TEST_P(devx_mkeys, one_entry_leads_to_its_region)
{
    devx_mkey key(dev.ctx, whole());

    ASSERT_NE(nullptr, key.obj);
    EXPECT_EQ(IBV_WC_SUCCESS, write_to(addr(dst, 100), key.key));
    EXPECT_EQ(0x22, dst.addr[99]);
    EXPECT_EQ(0x11, dst.addr[100]);
    EXPECT_EQ(0x11, dst.addr[163]);
    EXPECT_EQ(0x22, dst.addr[164]);
}

TEST_P(devx_mkeys, entries_of_any_length_lie_behind_each_other)
{
    strict_mem other(dev.pd, ACCESS_ALL, 0x33);
    devx_mkey key(dev.ctx, devx_mkey_in(dev.pd, 0x1000, 64,
                                        {klm(dst, 5, 10), klm(other, 0, 1),
                                         klm(dst, 100, 53)}));

    ASSERT_NE(nullptr, key.obj);
    for (unsigned i = 0; i < 64; i++) {
        src.addr[i] = i;
    }
    EXPECT_EQ(IBV_WC_SUCCESS, write_to(0x1000, key.key));
    EXPECT_EQ(0, memcmp(dst.addr + 5, src.addr, 10));
    EXPECT_EQ(10, other.addr[0]);
    EXPECT_EQ(0x33, other.addr[1]);
    EXPECT_EQ(0, memcmp(dst.addr + 100, src.addr + 11, 53));
    EXPECT_EQ(0x22, dst.addr[153]);
}

TEST_P(devx_mkeys, entries_of_one_size_are_found_by_the_address)
{
    strict_mem other(dev.pd, ACCESS_ALL, 0x33);
    /* KSM ignores the length of an entry */
    devx_mkey key(dev.ctx, devx_mkey_in(dev.pd, 0x10008, 3 * 4096,
                                        {klm(dst, 4096, 0), klm(other, 0, 7),
                                         klm(dst, 0, 0), klm(dst, 0, 0)},
                                        12));

    ASSERT_NE(nullptr, key.obj);
    EXPECT_EQ(IBV_WC_SUCCESS, write_to(0x10008 + 4096 - 32, key.key));
    EXPECT_EQ(0x11, dst.addr[8191]);
    EXPECT_EQ(0x22, dst.addr[8192 - 33]);
    EXPECT_EQ(0x11, other.addr[31]);
    EXPECT_EQ(0x33, other.addr[32]);
    EXPECT_EQ(IBV_WC_SUCCESS, write_to(0x10008 + 2 * 4096, key.key));
    EXPECT_EQ(0x11, dst.addr[0]);
}

TEST_P(devx_mkeys, local_side_gathers_and_scatters)
{
    devx_mkey key(dev.ctx, devx_mkey_in(dev.pd, 0, 64,
                                        {klm(src, 0, 32), klm(dst, 0, 32)}));
    strict_mem far(dev.pd, ACCESS_ALL, 0);
    verbs_pair pair(dev);

    ASSERT_NE(nullptr, key.obj);
    EXPECT_EQ(
        IBV_WC_SUCCESS,
        run(pair.a,
            verbs_op(IBV_WR_RDMA_WRITE).local(0, 64, key.key).remote(far)));
    EXPECT_EQ(0x11, far.addr[31]);
    EXPECT_EQ(0x22, far.addr[32]);
    memset(far.addr, 0x44, 64);
    EXPECT_EQ(
        IBV_WC_SUCCESS,
        run(pair.a,
            verbs_op(IBV_WR_RDMA_READ).local(0, 64, key.key).remote(far)));
    EXPECT_EQ(0x44, src.addr[31]);
    EXPECT_EQ(0x44, dst.addr[31]);
    EXPECT_EQ(0x22, dst.addr[32]);
}

TEST_P(devx_mkeys, keys_lead_through_each_other_to_a_depth)
{
    devx_mkey first(dev.ctx, whole());
    std::vector<std::unique_ptr<devx_mkey>> keys;
    uint32_t inner = first.key;

    for (unsigned depth = 1; depth < 5; depth++) {
        devx_klm entry = {addr(dst), strict_mem::size, inner};

        EXPECT_EQ(IBV_WC_SUCCESS, write_to(addr(dst), inner)) << depth;
        keys.push_back(std::make_unique<devx_mkey>(
            dev.ctx,
            devx_mkey_in(dev.pd, addr(dst), strict_mem::size, {entry})));
        inner = keys.back()->key;
    }
    EXPECT_EQ(IBV_WC_REM_OP_ERR, write_to(addr(dst), inner));
}

TEST_P(devx_mkeys, destroyed_key_is_refused_and_its_region_is_not)
{
    devx_mkey key(dev.ctx, whole());

    ASSERT_NE(nullptr, key.obj);
    EXPECT_EQ(IBV_WC_SUCCESS, write_to(addr(dst), key.key));
    EXPECT_EQ(0, key.destroy());
    EXPECT_EQ(IBV_WC_REM_ACCESS_ERR, write_to(addr(dst), key.key));
    EXPECT_EQ(IBV_WC_SUCCESS, write_to(addr(dst), dst.mr->rkey));
}

TEST_P(devx_mkeys, key_ends_with_the_region_below)
{
    struct ibv_mr *mr = ibv_reg_mr(dev.pd, dst.addr, 4096, ACCESS_ALL);
    devx_mkey key(dev.ctx, devx_mkey_in(dev.pd, addr(dst), 4096,
                                        {{addr(dst), 4096, mr->lkey}}));

    ASSERT_NE(nullptr, key.obj);
    EXPECT_EQ(IBV_WC_SUCCESS, write_to(addr(dst), key.key));
    EXPECT_EQ(0, ibv_dereg_mr(mr));
    EXPECT_EQ(IBV_WC_REM_ACCESS_ERR, write_to(addr(dst), key.key));
}

TEST_P(devx_mkeys, key_has_its_own_bounds_rights_variant_and_domain)
{
    struct ibv_pd *other   = ibv_alloc_pd(dev.ctx);
    devx_mailbox read_only = whole(), elsewhere = whole();

    {
        devx_mkey key(dev.ctx, devx_mkey_in(dev.pd, addr(dst), 128,
                                            {klm(dst, 0, strict_mem::size)}));
        EXPECT_EQ(IBV_WC_SUCCESS, write_to(addr(dst, 64), key.key));
        EXPECT_EQ(IBV_WC_REM_ACCESS_ERR, write_to(addr(dst, 65), key.key));
        EXPECT_EQ(IBV_WC_REM_ACCESS_ERR, write_to(addr(dst, 64), key.key ^ 1));
    }
    read_only.set(DEVX_MKC, 13, 13, 0);
    {
        devx_mkey key(dev.ctx, read_only);
        EXPECT_EQ(IBV_WC_REM_ACCESS_ERR, write_to(addr(dst), key.key));
    }
    elsewhere.set(DEVX_MKC + 0x0c, 23, 0, devx_pdn(other));
    {
        devx_mkey key(dev.ctx, elsewhere);
        EXPECT_EQ(IBV_WC_REM_ACCESS_ERR, write_to(addr(dst), key.key));
        EXPECT_EQ(EBUSY, ibv_dealloc_pd(other)) << "the key is on it";
    }
    EXPECT_EQ(0, ibv_dealloc_pd(other));
}

/* "ODP does not support ... Indirect MKEY" (MLNX_OFED User Manual) */
TEST_P(devx_mkeys, entries_do_not_lead_to_memory_on_demand)
{
    struct ibv_mr *mr = ibv_reg_mr(dev.pd, dst.addr, 4096,
                                   ACCESS_ALL | IBV_ACCESS_ON_DEMAND);
    std::vector<devx_klm> many(64, {addr(dst), 1, mr->lkey});
    struct ibv_sge sge = {addr(dst), 4096, mr->lkey};

    /* write_to() does not wait for a page fault */
    EXPECT_EQ(0, ibv_advise_mr(dev.pd, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE,
                               IBV_ADVISE_MR_FLAG_FLUSH, &sge, 1));
    EXPECT_EQ(IBV_WC_SUCCESS, write_to(addr(dst), mr->rkey));
    for (const auto &klms : {many, {{addr(dst), 4096, mr->lkey}}}) {
        devx_mkey key(dev.ctx, devx_mkey_in(dev.pd, 0, 64, klms));

        ASSERT_NE(nullptr, key.obj);
        EXPECT_EQ(IBV_WC_REM_ACCESS_ERR, write_to(0, key.key));
    }
    EXPECT_EQ(0, ibv_dereg_mr(mr));
}

TEST_P(devx_mkeys, list_that_is_too_short_ends_the_access)
{
    devx_mkey key(dev.ctx, devx_mkey_in(dev.pd, 0, 128, {klm(dst, 0, 100)}));

    ASSERT_NE(nullptr, key.obj);
    EXPECT_EQ(IBV_WC_SUCCESS, write_to(36, key.key));
    EXPECT_EQ(IBV_WC_REM_ACCESS_ERR, write_to(37, key.key));
}

TEST_P(devx_mkeys, atomic_operand_lies_in_one_entry)
{
    devx_mkey key(dev.ctx, devx_mkey_in(dev.pd, 0, 64,
                                        {klm(dst, 0, 12), klm(dst, 64, 52)}));
    verbs_pair pair(dev);
    verbs_op op = verbs_op(IBV_WR_ATOMIC_FETCH_AND_ADD).local(src, 8);

    ASSERT_NE(nullptr, key.obj);
    memset(dst.addr, 0, 8);
    op.wr.wr.atomic.compare_add = 7;
    op.wr.wr.atomic.rkey        = key.key;
    EXPECT_EQ(IBV_WC_SUCCESS, run(pair.a, op));
    EXPECT_EQ(7, dst.addr[0]);
    op.wr.wr.atomic.remote_addr = 8;
    EXPECT_EQ(IBV_WC_REM_ACCESS_ERR, run(pair.a, op));
}

/* Half of the operand is in memory, the other half nowhere. */
TEST_P(devx_mkeys, atomic_operand_does_not_reach_into_the_null_key)
{
    struct ibv_mr *null = ibv_alloc_null_mr(dev.pd);
    verbs_op op         = verbs_op(IBV_WR_ATOMIC_FETCH_AND_ADD).local(src, 8);

    ASSERT_NE(nullptr, null);
    {
        devx_mkey key(
            dev.ctx,
            devx_mkey_in(dev.pd, 0, 64, {klm(dst, 0, 4), {0, 60, null->lkey}}));
        verbs_pair pair(dev);

        ASSERT_NE(nullptr, key.obj);
        op.wr.wr.atomic.compare_add = 7;
        op.wr.wr.atomic.rkey        = key.key;
        op.wr.wr.atomic.remote_addr = 8;
        EXPECT_EQ(IBV_WC_SUCCESS, run(pair.a, op));
        op.wr.wr.atomic.remote_addr = 0;
        EXPECT_EQ(IBV_WC_REM_ACCESS_ERR, run(pair.a, op));
    }
    EXPECT_EQ(0, ibv_dereg_mr(null));
}

TEST_P(devx_mkeys, more_entries_than_a_slot_holds)
{
    std::vector<devx_klm> klms;

    for (unsigned i = 0; i < 64; i++) {
        klms.push_back(klm(dst, i * 16, 1));
    }
    devx_mkey key(dev.ctx, devx_mkey_in(dev.pd, 0, 64, klms));
    ASSERT_NE(nullptr, key.obj);
    EXPECT_EQ(IBV_WC_SUCCESS, write_to(0, key.key));
    for (unsigned i = 0; i < 64; i++) {
        EXPECT_EQ(0x11, dst.addr[i * 16]) << i;
        EXPECT_EQ(0x22, dst.addr[i * 16 + 1]) << i;
    }
}

/* Two lists of 63 entries of one byte, and after them 40 segments of inline
 * data: all of it is sent, or nothing. */
TEST_P(devx_mkeys, inline_data_behind_a_long_list)
{
    constexpr unsigned entries = 63, segments = 40;
    std::vector<devx_klm> klms(entries, klm(src, 0, 1));
    devx_mkey key(dev.ctx, devx_mkey_in(dev.pd, 0, entries, klms));
    const uint8_t *end = dst.addr + 2 * entries + segments * 12;
    verbs_pair pair(dev);
    raw_qp queue(pair.a.qp);
    raw_wqe wqe(MLX5_OPCODE_RDMA_WRITE);

    ASSERT_NE(nullptr, key.obj);
    wqe.raddr(dst.addr, dst.mr->rkey).data(NULL, entries, key.key);
    wqe.data(NULL, entries, key.key);
    for (unsigned i = 0; i < segments; i++) {
        wqe.inl(12);
    }
    wqe.finish(queue.pi, queue.qpn);
    queue.write(wqe);
    queue.ring(wqe.num_bb(), wqe.bytes.data());
    if (verbs_wait(pair.a.send_cq).status == IBV_WC_SUCCESS) {
        EXPECT_EQ(0x5a, end[-1]);
    } else {
        EXPECT_EQ(0x22, dst.addr[0]);
    }
    EXPECT_EQ(0x22, end[0]);
}

/* Two such lists and inline data, sent as a datagram: a header precedes
 * them. */
TEST_P(devx_mkeys, header_before_a_long_list)
{
    constexpr unsigned entries = 63, length = 2 * entries + 24;
    std::vector<devx_klm> klms(entries, klm(src, 0, 1));
    devx_mkey key(dev.ctx, devx_mkey_in(dev.pd, 0, entries, klms));
    struct ibv_ah_attr ah_attr = dev.ah_attr(true);
    struct ibv_ah *ah          = ibv_create_ah(dev.pd, &ah_attr);
    struct mlx5dv_ah dv        = {};
    struct mlx5dv_obj obj      = {};
    verbs_options options;
    raw_wqe wqe(MLX5_OPCODE_SEND);

    ASSERT_NE(nullptr, key.obj);
    ASSERT_NE(nullptr, ah);
    obj.ah.in  = ah;
    obj.ah.out = &dv;
    ASSERT_EQ(0, mlx5dv_init_obj(&obj, MLX5DV_OBJ_AH));
    options.type = IBV_QPT_UD;
    verbs_pair pair(dev, options);
    raw_qp queue(pair.a.qp);
    struct mlx5_wqe_av av = *dv.av;
    av.dqp_dct            = htobe32(pair.b.qp->qp_num | MLX5_EXTENDED_UD_AV);
    av.key.qkey.qkey      = htobe32(pair.a.attr(0).qkey);

    ASSERT_EQ(0, verbs_recv(pair.b.qp, dst, 40 + length));
    wqe.add(av).data(NULL, entries, key.key).data(NULL, entries, key.key);
    wqe.inl(12).inl(12);
    wqe.finish(queue.pi, queue.qpn);
    queue.write(wqe);
    queue.ring(wqe.num_bb(), wqe.bytes.data());
    EXPECT_EQ(IBV_WC_SUCCESS, verbs_wait(pair.a.send_cq).status);
    EXPECT_EQ(40 + length, verbs_wait(pair.b.recv_cq).byte_len);
    EXPECT_EQ(0x11, dst.addr[40 + 2 * entries - 1]);
    EXPECT_EQ(0x5a, dst.addr[40 + length - 1]);
    EXPECT_EQ(0x22, dst.addr[40 + length]);
    EXPECT_EQ(0, ibv_destroy_ah(ah));
}

/* Firmware counts entries from a multiple of their size. */
TEST_P(devx_mkeys, entries_of_one_size_have_to_reach_the_end)
{
    const auto key_at = [&](uint64_t start, uint64_t length) {
        return devx_mkey_in(dev.pd, start, length,
                            {klm(dst, 0, 0), klm(dst, 4096, 0)}, 12);
    };

    EXPECT_NE(nullptr, devx_mkey(dev.ctx, key_at(0x10000, 8192)).obj);
    EXPECT_NE(nullptr, devx_mkey(dev.ctx, key_at(0x10800, 6144)).obj);
    expect_refused(key_at(0x10800, 6145), DEVX_BAD_PARAM, DEVX_MKC + 0x18,
                   "a byte more than from 0x10000 on");
    expect_refused(key_at(UINT64_MAX, UINT64_MAX), DEVX_BAD_PARAM,
                   DEVX_MKC + 0x18, "more than there are addresses");
}

TEST_P(devx_mkeys, atomics_need_those_of_the_region)
{
    strict_mem readable(dev.pd, IBV_ACCESS_REMOTE_READ, 0);
    devx_mailbox in = devx_mkey_in(dev.pd, addr(readable), 64,
                                   {klm(readable, 0, 64)});

    expect_refused(in, DEVX_BAD_PARAM, DEVX_MKC, "atomics over memory to read");
    EXPECT_NE(nullptr, devx_mkey(dev.ctx, in.set(DEVX_MKC, 14, 14, 0)).obj);
}

TEST_P(devx_mkeys, free_key_is_refused)
{
    devx_mkey key(dev.ctx, whole().set(DEVX_MKC, 30, 30, 1));

    ASSERT_NE(nullptr, key.obj);
    EXPECT_EQ(IBV_WC_REM_ACCESS_ERR, write_to(addr(dst), key.key));
}

TEST_P(devx_mkeys, libmlx5_makes_keys_for_umr)
{
    struct mlx5dv_mkey_init_attr attr = {};
    struct mlx5dv_mkey *mkey;

    attr.pd           = dev.pd;
    attr.create_flags = MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT;
    attr.max_entries  = 5;
    mkey              = mlx5dv_create_mkey(&attr);
    ASSERT_NE(nullptr, mkey);
    EXPECT_EQ(8, attr.max_entries);
    EXPECT_EQ(IBV_WC_REM_ACCESS_ERR, write_to(0, mkey->rkey));
    EXPECT_EQ(0, mlx5dv_destroy_mkey(mkey));
}

TEST_P(devx_mkeys, creation_refuses_what_cannot_be)
{
    const devx_mailbox ksm = devx_mkey_in(dev.pd, 0, 8192,
                                          {klm(dst, 0, 0), klm(dst, 0, 0)}, 12);

    expect_refused(whole().put(0x08, 1), DEVX_BAD_PARAM, 0x08, "reserved");
    expect_refused(whole().set(0x04, 15, 0, 1), DEVX_BAD_PARAM, 0x04, "op_mod");
    expect_refused(whole().set(DEVX_MKC, 31, 31, 1), DEVX_BAD_PARAM, DEVX_MKC,
                   "reserved in the context");
    expect_refused(whole().set(DEVX_MKC, 9, 8, 1), DEVX_BAD_PARAM, DEVX_MKC,
                   "a mode that needs a umem");
    expect_refused(whole().set(DEVX_MKC + 0x0c, 30, 30, 1), DEVX_BAD_PARAM,
                   DEVX_MKC + 0x0c, "signatures");
    expect_refused(whole().set(DEVX_MKC + 0x0c, 23, 0, 0xfffff0), DEVX_BAD_RES,
                   DEVX_MKC + 0x0c, "an unknown domain");
    expect_refused(whole().put(0x60, 2), DEVX_BAD_INP_LEN, 0x60,
                   "more entries than there are");
    expect_refused(whole().put(DEVX_MKC + 0x34, 0), DEVX_BAD_PARAM, 0x60,
                   "more entries than there is room for");
    expect_refused(whole().put(DEVX_MKC + 0x34, 65537), DEVX_BAD_PARAM,
                   DEVX_MKC + 0x34, "a longer list than the capability");
    expect_refused(whole().put(0x64, 1), DEVX_BAD_PARAM, 0x64, "a umem");
    expect_refused(devx_mailbox(ksm).put64(DEVX_MKC + 0x18, 8193),
                   DEVX_BAD_PARAM, DEVX_MKC + 0x18, "longer than its list");
    expect_refused(devx_mailbox(ksm).set(DEVX_MKC + 0x38, 4, 0, 3),
                   DEVX_BAD_PARAM, DEVX_MKC + 0x38, "entries below a page");
    expect_refused(devx_mailbox(0x100, 0x200), DEVX_BAD_INP_LEN, 0,
                   "a mailbox that is too short");
    expect_refused(devx_mailbox(16, 0xfff), DEVX_BAD_OP, 0,
                   "an unknown command");
}

INSTANTIATE_TEST_SUITE_P(ib, devx_mkeys, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(roce, devx_mkeys, testing::Values(0));

} /* namespace */
