/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Messages of up to 10,000 pieces, by keys of as many entries, on each side of
 * each operation, within a process and between two. Bytes are compared with a
 * loop's, and bytes beside the pieces must not change.
 */
#include "pieces_bench.h"
#include "tm_bench.h"
#include "verbs_peer.h"

#include <atomic>
#include <thread>

namespace {

constexpr size_t FLAT = 1 << 20, WIDE = 1 << 20;

class verbs_pieces : public verbs_test {
public:
    static constexpr unsigned counts[] = {65,  127, 128,  129,  255,
                                          256, 257, 1000, 4078, 10000};

    /* Runs @body with each number of blocks, each time on new memory. */
    void each(void (verbs_pieces::*body)())
    {
        for (unsigned count : counts) {
            SCOPED_TRACE(count);
            blocks = pieces_blocks::random(count, count);
            flat.reset(new pieces_mem(dev.pd, FLAT, 1));
            wide.reset(new pieces_mem(dev.pd, WIDE, 2));
            key.reset(new pieces_key(dev, *wide, blocks));
            pair.reset(new verbs_pair(dev));
            was_flat = flat->bytes;
            was_wide = wide->bytes;
            (this->*body)();
            if (HasFatalFailure()) {
                break;
            }
        }
        pair.reset();
        key.reset();
    }

    void expect_gathered()
    {
        std::vector<uint8_t> data = blocks.gather(was_wide);

        std::copy(data.begin(), data.end(), was_flat.begin());
        expect_all();
    }

    void expect_scattered(size_t length)
    {
        blocks.scatter(was_wide, was_flat, length);
        expect_all();
    }

    void expect_all()
    {
        EXPECT_TRUE(flat->bytes == was_flat);
        EXPECT_TRUE(wide->bytes == was_wide);
    }

    static int recv(struct ibv_qp *qp, uint64_t addr, uint32_t length,
                    uint32_t lkey)
    {
        struct ibv_sge sge    = {addr, length, lkey};
        struct ibv_recv_wr wr = {}, *bad;

        wr.sg_list = &sge;
        wr.num_sge = 1;
        return (qp->srq != NULL) ? ibv_post_srq_recv(qp->srq, &wr, &bad) :
                                   ibv_post_recv(qp, &wr, &bad);
    }

    verbs_op wide_op(enum ibv_wr_opcode opcode) const
    {
        return verbs_op(opcode)
            .local(0, blocks.length, key->key)
            .remote(flat->addr(), flat->mr->rkey);
    }

    verbs_op flat_op(enum ibv_wr_opcode opcode) const
    {
        return verbs_op(opcode)
            .local(flat->addr(), blocks.length, flat->mr->lkey)
            .remote(0, key->key);
    }

    void write_gathers()
    {
        ASSERT_EQ(IBV_WC_SUCCESS, run(pair->a, wide_op(IBV_WR_RDMA_WRITE)));
        expect_gathered();
    }

    void write_scatters()
    {
        ASSERT_EQ(IBV_WC_SUCCESS, run(pair->a, flat_op(IBV_WR_RDMA_WRITE)));
        expect_scattered(blocks.length);
    }

    void read_gathers()
    {
        ASSERT_EQ(IBV_WC_SUCCESS, run(pair->a, flat_op(IBV_WR_RDMA_READ)));
        expect_gathered();
    }

    void read_scatters()
    {
        ASSERT_EQ(IBV_WC_SUCCESS, run(pair->a, wide_op(IBV_WR_RDMA_READ)));
        expect_scattered(blocks.length);
    }

    void send_gathers()
    {
        ASSERT_EQ(0, recv(pair->b.qp, flat->addr(), FLAT, flat->mr->lkey));
        ASSERT_EQ(IBV_WC_SUCCESS, run(pair->a, wide_op(IBV_WR_SEND)));
        EXPECT_EQ(blocks.length, verbs_wait(pair->b.recv_cq).byte_len);
        expect_gathered();
    }

    void recv_scatters()
    {
        ASSERT_EQ(0, recv(pair->b.qp, 0, blocks.length, key->key));
        ASSERT_EQ(IBV_WC_SUCCESS, run(pair->a, flat_op(IBV_WR_SEND)));
        EXPECT_EQ(blocks.length, verbs_wait(pair->b.recv_cq).byte_len);
        expect_scattered(blocks.length);
    }

    /* A message that starts and ends inside blocks */
    void part_of_a_list()
    {
        uint64_t skip = blocks.length / 3, length = blocks.length / 2;
        pieces_blocks all = blocks;
        verbs_op op(IBV_WR_RDMA_WRITE);

        op.local(flat->addr(), length, flat->mr->lkey).remote(skip, key->key);
        ASSERT_EQ(IBV_WC_SUCCESS, run(pair->a, op));
        std::vector<uint8_t> data = all.gather(was_wide);
        std::copy(was_flat.begin(), was_flat.begin() + length,
                  data.begin() + skip);
        all.scatter(was_wide, data, data.size());
        expect_all();
    }

    /* A second list of other blocks, between two flat entries */
    void list_to_list()
    {
        pieces_mem other(dev.pd, WIDE, 3);
        pieces_blocks to = pieces_blocks::random(blocks.list.size(), 7);
        pieces_key to_key(dev, other, to);
        uint32_t length          = std::min(blocks.length, to.length) - 20;
        std::vector<uint8_t> was = other.bytes;
        std::vector<uint8_t> data(was_flat.begin(), was_flat.begin() + 10);
        std::vector<uint8_t> middle = blocks.gather(was_wide);
        verbs_op op(IBV_WR_RDMA_WRITE);

        op.local(flat->addr(), 10, flat->mr->lkey)
            .local(0, length, key->key)
            .local(flat->addr(100), 10, flat->mr->lkey)
            .remote(0, to_key.key);
        ASSERT_EQ(IBV_WC_SUCCESS, run(pair->a, op));
        data.insert(data.end(), middle.begin(), middle.begin() + length);
        data.insert(data.end(), was_flat.begin() + 100, was_flat.begin() + 110);
        to.scatter(was, data, data.size());
        EXPECT_TRUE(other.bytes == was);
        expect_all();
    }

    pieces_blocks blocks;
    std::unique_ptr<pieces_mem> flat, wide;
    std::unique_ptr<pieces_key> key;
    std::unique_ptr<verbs_pair> pair;
    std::vector<uint8_t> was_flat, was_wide;
};

constexpr unsigned verbs_pieces::counts[];

/* clang-format off */
TEST_P(verbs_pieces, write_gathers) { each(&verbs_pieces::write_gathers); }
TEST_P(verbs_pieces, write_scatters) { each(&verbs_pieces::write_scatters); }
TEST_P(verbs_pieces, read_gathers) { each(&verbs_pieces::read_gathers); }
TEST_P(verbs_pieces, read_scatters) { each(&verbs_pieces::read_scatters); }
TEST_P(verbs_pieces, send_gathers) { each(&verbs_pieces::send_gathers); }
TEST_P(verbs_pieces, recv_scatters) { each(&verbs_pieces::recv_scatters); }
TEST_P(verbs_pieces, part_of_a_list) { each(&verbs_pieces::part_of_a_list); }
TEST_P(verbs_pieces, list_to_list) { each(&verbs_pieces::list_to_list); }
/* clang-format on */

/* --- checked before any transfer ------------------------------------------ */

/* Blocks of one byte; one of them is made invalid */
class verbs_bad_piece : public verbs_pieces {
protected:
    static constexpr unsigned count = 4078;

    verbs_bad_piece()
    {
        flat.reset(new pieces_mem(dev.pd, FLAT, 1));
        wide.reset(new pieces_mem(dev.pd, WIDE, 2));
        was_flat = flat->bytes;
        was_wide = wide->bytes;
    }

    /* Makes the entry @index of a list @bad: a WRITE to the list and a READ
     * into it are refused, and no byte arrives. */
    void expect_refused(unsigned index, devx_klm bad)
    {
        std::vector<devx_klm> klms;

        for (unsigned i = 0; i < count; i++) {
            klms.push_back({wide->addr(i * 2), 1, wide->mr->lkey});
        }
        klms[index] = bad.key ? bad :
                                devx_klm{bad.addr, bad.length, wide->mr->lkey};
        devx_mkey list(
            dev.ctx,
            devx_mkey_in(dev.pd, 0, count, klms).set(DEVX_MKC, 14, 14, 0));
        ASSERT_NE(nullptr, list.obj);
        {
            verbs_pair two(dev);
            EXPECT_EQ(IBV_WC_REM_ACCESS_ERR,
                      run(two.a, verbs_op(IBV_WR_RDMA_WRITE)
                                     .local(flat->addr(), count, flat->mr->lkey)
                                     .remote(0, list.key)));
        }
        {
            verbs_pair two(dev);
            EXPECT_EQ(IBV_WC_LOC_PROT_ERR,
                      run(two.a, verbs_op(IBV_WR_RDMA_READ)
                                     .local(0, count, list.key)
                                     .remote(flat->addr(), flat->mr->rkey)));
        }
        expect_all();
    }
};

TEST_P(verbs_bad_piece, last_entry_out_of_bounds)
{
    pieces_mem mem(dev.pd, 4096, 0);

    expect_refused(count - 1, {mem.addr(4096), 1, mem.mr->lkey});
}

TEST_P(verbs_bad_piece, dead_key_in_the_middle)
{
    uint32_t dead;

    {
        pieces_mem mem(dev.pd, 4096, 0);
        dead = mem.mr->lkey;
    }
    expect_refused(count / 2, {0, 1, dead});
}

TEST_P(verbs_bad_piece, key_without_the_right)
{
    strict_mem mem(dev.pd, 0, 0x33);

    expect_refused(3000, {(uintptr_t)mem.addr, 1, mem.mr->lkey});
    EXPECT_EQ(0x33, mem.addr[0]);
}

/* The range of all entries would be allowed by the other entries' key. */
TEST_P(verbs_bad_piece, key_without_the_right_to_the_same_memory)
{
    struct ibv_mr *mr = ibv_reg_mr(dev.pd, wide->bytes.data(), WIDE, 0);

    ASSERT_NE(nullptr, mr);
    expect_refused(2000, {wide->addr(4000), 1, mr->lkey});
    EXPECT_EQ(0, ibv_dereg_mr(mr));
}

TEST_P(verbs_bad_piece, key_of_another_domain)
{
    struct ibv_pd *other = ibv_alloc_pd(dev.ctx);

    {
        strict_mem mem(other, ACCESS_ALL, 0x33);
        expect_refused(100, {(uintptr_t)mem.addr, 1, mem.mr->lkey});
        EXPECT_EQ(0x33, mem.addr[0]);
    }
    EXPECT_EQ(0, ibv_dealloc_pd(other));
}

/* --- other keys and ends -------------------------------------------------- */

/* Each entry has a key of its own, and some lead to nothing */
TEST_P(verbs_pieces, thousands_of_keys_and_the_null_key)
{
    constexpr unsigned count = 3000;
    struct ibv_mr *null      = ibv_alloc_null_mr(dev.pd);
    pieces_mem from(dev.pd, FLAT, 1), to(dev.pd, WIDE, 2);
    std::vector<uint8_t> was = to.bytes;
    std::vector<devx_klm> klms;
    std::vector<struct ibv_mr *> mrs;

    ASSERT_NE(nullptr, null);
    for (unsigned i = 0; i < count; i++) {
        mrs.push_back(ibv_reg_mr(dev.pd, &to.bytes[i * 32], 16, ACCESS_ALL));
        ASSERT_NE(nullptr, mrs.back());
        klms.push_back(
            {to.addr(i * 32), 16, (i % 5) ? mrs.back()->lkey : null->lkey});
        for (unsigned k = 0; k < 16; k++) {
            was[i * 32 + k] = (i % 5) ? from.bytes[i * 16 + k] :
                                        was[i * 32 + k];
        }
    }
    {
        devx_mkey list(dev.ctx, devx_mkey_in(dev.pd, 0, count * 16, klms));
        verbs_pair two(dev);

        ASSERT_NE(nullptr, list.obj);
        EXPECT_EQ(IBV_WC_SUCCESS,
                  run(two.a, verbs_op(IBV_WR_RDMA_WRITE)
                                 .local(from.addr(), count * 16, from.mr->lkey)
                                 .remote(0, list.key)));
        EXPECT_TRUE(to.bytes == was);
        EXPECT_EQ(IBV_WC_SUCCESS,
                  run(two.a, verbs_op(IBV_WR_RDMA_READ)
                                 .local(from.addr(), count * 16, from.mr->lkey)
                                 .remote(0, list.key)));
    }
    for (unsigned i = 0; i < count * 16; i++) {
        ASSERT_EQ(((i / 16) % 5) ? was[i / 16 * 32 + i % 16] : 0, from.bytes[i])
            << i;
    }
    for (auto mr : mrs) {
        EXPECT_EQ(0, ibv_dereg_mr(mr));
    }
    EXPECT_EQ(0, ibv_dereg_mr(null));
}

class verbs_lost_atomic : public verbs_test {};

/* The first answer to the second atomic is lost: the repeated answer must not
 * be that of the first atomic. */
TEST_P(verbs_lost_atomic, null_key_answers_zero_again)
{
    struct ibv_mr *null = ibv_alloc_null_mr(dev.pd);
    verbs_op op         = verbs_op(IBV_WR_ATOMIC_FETCH_AND_ADD).local(src, 8);

    ASSERT_NE(nullptr, null);
    {
        devx_mkey list(dev.ctx,
                       devx_mkey_in(dev.pd, 0, 8, {{0, 8, null->lkey}}));
        verbs_pair pair(dev);

        ASSERT_NE(nullptr, list.obj);
        op.wr.wr.atomic.compare_add = 1;
        op.wr.wr.atomic.remote_addr = (uintptr_t)dst.addr;
        op.wr.wr.atomic.rkey        = dst.mr->rkey;
        EXPECT_EQ(IBV_WC_SUCCESS, run(pair.a, op));
        EXPECT_EQ(0x22, src.addr[0]);

        op.wr.wr.atomic.remote_addr = 0;
        op.wr.wr.atomic.rkey        = list.key;
        EXPECT_EQ(IBV_WC_SUCCESS, run(pair.a, op));
        EXPECT_EQ(0, src.addr[0]);
    }
    EXPECT_EQ(0, ibv_dereg_mr(null));
}

TEST_P(verbs_pieces, srq_receives_a_list)
{
    struct ibv_srq_init_attr attr = {NULL, {16, 1, 0}};
    verbs_options options;

    options.srq = ibv_create_srq(dev.pd, &attr);
    ASSERT_NE(nullptr, options.srq);
    {
        pieces_mem from(dev.pd, FLAT, 1), to(dev.pd, WIDE, 2);
        std::vector<uint8_t> was = to.bytes;
        pieces_blocks list       = pieces_blocks::random(9000, 1);
        pieces_key list_key(dev, to, list);
        verbs_pair two(dev, {}, options);

        ASSERT_EQ(0, recv(two.b.qp, 0, list.length, list_key.key));
        ASSERT_EQ(
            IBV_WC_SUCCESS,
            run(two.a, verbs_op(IBV_WR_SEND)
                           .local(from.addr(), list.length, from.mr->lkey)));
        list.scatter(was, from.bytes, list.length);
        EXPECT_TRUE(to.bytes == was);
    }
    EXPECT_EQ(0, ibv_destroy_srq(options.srq));
}

/* A tagged buffer of nine thousand pieces */
class verbs_tagged_pieces : public verbs_test {
protected:
    static verbs_options ep(const tm_srq &tm)
    {
        verbs_options options;

        options.srq     = tm.srq;
        options.send_wr = 0; /* the device reads through it */
        return options;
    }

    verbs_tagged_pieces()
    {
        mr.lkey = key.key;
        tm.add({.wr_id  = 7,
                .tag    = 5,
                .length = (uint32_t)blocks.length,
                .other  = &mr});
    }

    /* Expects the data at `from`. */
    void expect_data(const uint8_t *from)
    {
        std::vector<uint8_t> data(from, from + blocks.length);
        tm_wc wc = tm.wait();

        EXPECT_EQ(TM_MATCH, wc.flags);
        wc = tm.wait();
        EXPECT_EQ(IBV_WC_SUCCESS, wc.status);
        EXPECT_EQ(TM_DATA, wc.flags);
        EXPECT_EQ(blocks.length, wc.byte_len);
        blocks.scatter(was, data, data.size());
        EXPECT_TRUE(wide.bytes == was);
    }

    pieces_mem flat{dev.pd, FLAT, 1}, wide{dev.pd, WIDE, 2};
    std::vector<uint8_t> was{wide.bytes};
    pieces_blocks blocks{pieces_blocks::random(9000, 3)};
    pieces_key key{dev, wide, blocks};
    struct ibv_mr mr = {};
    tm_srq tm{dev};
    verbs_pair pair{dev, {}, ep(tm)};
};

TEST_P(verbs_tagged_pieces, eager)
{
    struct ibv_tmh tmh = {};

    tmh.opcode = IBV_TMH_EAGER;
    tmh.tag    = htobe64(5);
    memcpy(flat.bytes.data(), &tmh, sizeof(tmh));
    EXPECT_EQ(IBV_WC_SUCCESS,
              run(pair.a, verbs_op(IBV_WR_SEND)
                              .local(flat.addr(), sizeof(tmh) + blocks.length,
                                     flat.mr->lkey)));
    expect_data(&flat.bytes[sizeof(tmh)]);
}

TEST_P(verbs_tagged_pieces, rendezvous)
{
    tm_rndv msg(IBV_TMH_RNDV, 5, &flat.bytes[100], flat.mr->rkey,
                blocks.length);

    EXPECT_EQ(0, verbs_recv(pair.a.qp, dst, 64)); /* for the FIN */
    memcpy(src.addr, &msg.headers, sizeof(msg.headers));
    EXPECT_EQ(IBV_WC_SUCCESS, run(pair.a, send(0, sizeof(msg.headers))));
    expect_data(&flat.bytes[100]);
    EXPECT_EQ(IBV_WC_SUCCESS, verbs_wait(pair.a.recv_cq).status);
}

/* Deregistration waits for the messages that use the region. */
TEST_P(verbs_pieces, region_below_a_list_is_taken_back_while_it_is_used)
{
    pieces_mem from(dev.pd, FLAT, 1), to(dev.pd, WIDE, 2);
    pieces_blocks list = pieces_blocks::random(10000, 2);
    std::atomic<uint32_t> number{0};
    std::atomic<unsigned> num{0};
    std::atomic<bool> stop{false};
    std::thread writer([&] {
        for (uint8_t fill = 0; !stop; fill++, num++) {
            verbs_pair two(dev);
            std::fill(from.bytes.begin(), from.bytes.end(), fill);
            run(two.a, verbs_op(IBV_WR_RDMA_WRITE)
                           .local(from.addr(), list.length, from.mr->lkey)
                           .remote(0, number));
        }
    });

    for (unsigned i = 0; i < 100; i++) {
        pieces_key list_key(dev, to, list);

        number = list_key.key;
        usleep(i * STEP_MESSAGE);
        EXPECT_EQ(0, ibv_dereg_mr(to.mr));
        std::vector<uint8_t> was = to.bytes;
        unsigned under_way       = num;
        EXPECT_TRUE(hca_until([&] { return num > under_way + 1; }));
        EXPECT_TRUE(to.bytes == was) << "written after its end";
        to.mr = ibv_reg_mr(dev.pd, to.bytes.data(), WIDE, ACCESS_ALL);
        EXPECT_NE(nullptr, to.mr);
    }
    stop = true;
    writer.join();
}

/* --- two processes -------------------------------------------------------- */

struct far_card {
    uint32_t qpn, flat, list;
    uint64_t addr;
};

pieces_blocks far_blocks()
{
    return pieces_blocks::random(10000, 11);
}

/* Receives one message into the list, and serves accesses to its keys. */
void far_main(int fd)
{
    hca_device dev;
    bool is_untouched = testing::TestWithParam<int>::GetParam();
    pieces_mem mem(
        dev.pd,
        is_untouched ? pieces_untouched(WIDE) : std::vector<uint8_t>(WIDE), 5);
    pieces_blocks list = far_blocks();
    pieces_key key(dev, mem, list);
    verbs_ep ep(dev);
    far_card card         = {ep.qp->qp_num, mem.mr->rkey, key.key, mem.addr()};
    struct ibv_sge sge    = {0, (uint32_t)list.length, key.key};
    struct ibv_recv_wr wr = {}, *bad;

    wr.sg_list = &sge;
    wr.num_sge = 1;
    HCA_CHECK_CALL(::write(fd, &card, sizeof(card)) == sizeof(card));
    HCA_CHECK_CALL(::read(fd, &card, sizeof(card)) == sizeof(card));
    ep.connect(ep.attr(card.qpn));
    HCA_CHECK_CALL(ibv_post_recv(ep.qp, &wr, &bad) == 0);
    peer_meet(fd);
    peer_meet(fd);
}

class verbs_far_pieces : public testing::TestWithParam<int> {};

TEST_P(verbs_far_pieces, each_operation_in_ten_thousand_pieces)
{
    peer_process peer(far_main);
    hca_device dev;
    verbs_ep ep(dev);
    pieces_mem flat(dev.pd, FLAT, 1), wide(dev.pd, WIDE, 2);
    pieces_mem image(dev.pd, WIDE, 0), seen(dev.pd, WIDE, 9);
    pieces_blocks list = far_blocks(), near = pieces_blocks::random(10000, 8);
    pieces_key near_key(dev, wide, near);
    uint32_t length = std::min(list.length, near.length);
    far_card card, own = {ep.qp->qp_num, 0, 0, 0};

    auto go = [&](verbs_op op) {
        EXPECT_EQ(0, op.post(ep.qp));
        EXPECT_EQ(IBV_WC_SUCCESS, verbs_wait(ep.send_cq).status);
    };
    auto look = [&](pieces_mem &to) {
        go(verbs_op(IBV_WR_RDMA_READ)
               .local(to.addr(), WIDE, to.mr->lkey)
               .remote(card.addr, card.flat));
    };

    HCA_CHECK_CALL(::read(peer.fd, &card, sizeof(card)) == sizeof(card));
    HCA_CHECK_CALL(::write(peer.fd, &own, sizeof(own)) == sizeof(own));
    ep.connect(ep.attr(card.qpn));
    peer_meet(peer.fd);
    look(image);

    go(verbs_op(IBV_WR_RDMA_WRITE)
           .local(flat.addr(), list.length, flat.mr->lkey)
           .remote(0, card.list));
    list.scatter(image.bytes, flat.bytes, list.length);
    look(seen);
    EXPECT_TRUE(seen.bytes == image.bytes) << "write, far side";

    go(verbs_op(IBV_WR_RDMA_WRITE)
           .local(0, length, near_key.key)
           .remote(0, card.list));
    list.scatter(image.bytes, near.gather(wide.bytes), length);
    look(seen);
    EXPECT_TRUE(seen.bytes == image.bytes) << "write, both sides";

    go(verbs_op(IBV_WR_SEND).local(flat.addr(7), length, flat.mr->lkey));
    list.scatter(image.bytes, {flat.bytes.begin() + 7, flat.bytes.end()},
                 length);
    look(seen);
    EXPECT_TRUE(seen.bytes == image.bytes) << "send";

    std::vector<uint8_t> was = wide.bytes;
    go(verbs_op(IBV_WR_RDMA_READ)
           .local(0, length, near_key.key)
           .remote(0, card.list));
    near.scatter(was, list.gather(image.bytes), length);
    EXPECT_TRUE(wide.bytes == was) << "read, both sides";

    go(verbs_op(IBV_WR_RDMA_READ)
           .local(flat.addr(), list.length, flat.mr->lkey)
           .remote(0, card.list));
    was = list.gather(image.bytes);
    EXPECT_TRUE(std::equal(was.begin(), was.end(), flat.bytes.begin()))
        << "read, far side";
    peer_meet(peer.fd);
    EXPECT_EQ(0, peer.wait());
}

INSTANTIATE_TEST_SUITE_P(ib, verbs_pieces, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(lost, verbs_lost_atomic, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(ib, verbs_tagged_pieces, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(ib, verbs_bad_piece, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(ib, verbs_far_pieces, testing::Values(0, 1));
INSTANTIATE_TEST_SUITE_P(roce, verbs_far_pieces, testing::Values(0, 1));

} /* namespace */

int main(int argc, char **argv)
{
    return hca_test_main(
        argc, argv,
        {{"ib", {}},
         {"roce", {{"SOFTHCA_LINK", "roce"}}},
         {"lost", {{"SOFTHCA_FAULT", "drop_ack:op=atomic:nth=2"}}}});
}
