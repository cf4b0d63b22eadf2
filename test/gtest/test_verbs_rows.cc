/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Layouts by UMR of very many pieces: rows of 8 bytes, rows of rows, rows over
 * a long list; within a process and to a peer. The bytes are those of a loop,
 * and those between the rows as they were.
 */
#include "pieces_bench.h"
#include "umr_bench.h"
#include "verbs_peer.h"

namespace {

constexpr uint32_t ROWS = 262144, ROW = 8, STRIDE = 16;
constexpr size_t LENGTH = ROWS * ROW, SIZE = ROWS * STRIDE; /* 2 and 4 MiB */

class verbs_rows : public verbs_test {
protected:
    verbs_rows() : flat(dev.pd, SIZE, 1), wide(dev.pd, SIZE, 2), pair(dev)
    {
    }

    static umr_layout rows(const pieces_mem &mem, uint32_t lkey)
    {
        return umr_layout::rows(ROWS).block(
                (lkey == mem.mr->lkey) ? mem.bytes.data() : NULL, lkey, ROW,
                STRIDE - ROW);
    }

    /* What went to the rows, or came from them */
    void expect_rows(const std::vector<uint8_t> &was)
    {
        for (size_t i = 0; i < SIZE; i++) {
            uint8_t want = (i % STRIDE < ROW) ?
                           flat.bytes[i / STRIDE * ROW + i % STRIDE] : was[i];

            ASSERT_EQ(want, wide.bytes[i]) << i;
        }
    }

    enum ibv_wc_status go(enum ibv_wr_opcode opcode, bool gathers, uint32_t key,
                          uint64_t length = LENGTH)
    {
        verbs_op op(opcode);

        return pair.run(gathers ?
                        op.local(0, length, key)
                          .remote(flat.addr(), flat.mr->rkey) :
                        op.local(flat.addr(), length, flat.mr->lkey)
                          .remote(0, key));
    }

    pieces_mem flat, wide;
    umr_pair   pair;
};

TEST_P(verbs_rows, two_mib_in_rows_of_eight_bytes)
{
    const std::vector<uint8_t> was = wide.bytes;
    umr_key key(dev.pd, 4);

    ASSERT_EQ(IBV_WC_SUCCESS, pair.set(key, rows(wide, wide.mr->lkey)));
    EXPECT_EQ(IBV_WC_SUCCESS, go(IBV_WR_RDMA_WRITE, true, key.lkey()));
    expect_rows(was);
    std::fill(flat.bytes.begin(), flat.bytes.end(), 0x77);
    EXPECT_EQ(IBV_WC_SUCCESS, go(IBV_WR_RDMA_WRITE, false, key.rkey()));
    expect_rows(was);
    std::fill(flat.bytes.begin(), flat.bytes.end(), 0x66);
    EXPECT_EQ(IBV_WC_SUCCESS, go(IBV_WR_RDMA_READ, false, key.rkey()));
    EXPECT_EQ(0x77, flat.bytes[LENGTH - 1]);
    expect_rows(was);
    std::fill(flat.bytes.begin(), flat.bytes.end(), 0x55);
    EXPECT_EQ(IBV_WC_SUCCESS, go(IBV_WR_RDMA_READ, true, key.lkey()));
    expect_rows(was);
}

/* The end of the last row is what does not lie in the region. */
TEST_P(verbs_rows, nothing_is_written_if_the_last_row_is_out_of_bounds)
{
    const std::vector<uint8_t> was = wide.bytes;
    umr_key key(dev.pd, 4);
    umr_layout layout = umr_layout::rows(ROWS).block(
            wide.bytes.data() + STRIDE - ROW + 1, wide.mr->lkey, ROW,
            STRIDE - ROW);

    ASSERT_EQ(IBV_WC_SUCCESS, pair.set(key, layout));
    EXPECT_EQ(IBV_WC_REM_ACCESS_ERR,
              go(IBV_WR_RDMA_WRITE, false, key.rkey()));
    EXPECT_TRUE(wide.bytes == was);
    pair.reconnect();
    EXPECT_EQ(IBV_WC_SUCCESS,
              go(IBV_WR_RDMA_WRITE, false, key.rkey(), LENGTH - ROW));
}

/* Planes of rows: the inner key's space is what the outer one has rows of. */
TEST_P(verbs_rows, rows_of_rows)
{
    constexpr uint32_t planes = 1024, bytes = 64;
    const std::vector<uint8_t> was = wide.bytes;
    umr_key inner(dev.pd, 4), outer(dev.pd, 4);
    umr_layout layout = umr_layout::rows(planes).block(
            NULL, inner.lkey(), bytes, LENGTH / planes - bytes);

    ASSERT_EQ(IBV_WC_SUCCESS, pair.set(inner, rows(wide, wide.mr->lkey)));
    ASSERT_EQ(IBV_WC_SUCCESS, pair.set(outer, layout));
    EXPECT_EQ(IBV_WC_SUCCESS, go(IBV_WR_RDMA_WRITE, false, outer.rkey(),
                                 planes * bytes));
    for (size_t i = 0; i < SIZE; i++) {
        size_t in    = i / STRIDE * ROW + i % STRIDE; /* of the inner key */
        size_t plane = in / (LENGTH / planes), at = in % (LENGTH / planes);
        bool is_hit  = (i % STRIDE < ROW) && (at < bytes);

        ASSERT_EQ(is_hit ? flat.bytes[plane * bytes + at] : was[i],
                  wide.bytes[i]) << i;
    }
}

/* Each row begins somewhere in the list. */
TEST_P(verbs_rows, rows_over_a_long_list)
{
    pieces_blocks blocks = pieces_blocks::random(4000, 4);
    pieces_key list(dev, wide, blocks);
    std::vector<uint8_t> was = wide.bytes, data;
    uint32_t repeat = blocks.length / STRIDE;
    umr_key key(dev.pd, 4);

    ASSERT_EQ(IBV_WC_SUCCESS,
              pair.set(key, umr_layout::rows(repeat).block(
                                    NULL, list.key, ROW, STRIDE - ROW)));
    EXPECT_EQ(IBV_WC_SUCCESS,
              go(IBV_WR_RDMA_READ, false, key.rkey(), repeat * ROW));
    data = blocks.gather(was);
    for (size_t i = 0; i < repeat * ROW; i++) {
        ASSERT_EQ(data[i / ROW * STRIDE + i % ROW], flat.bytes[i]) << i;
    }
}

/* Time is proportional to the rows, not to their product with the entries: less
 * than twenty times that of the list itself, which was hundreds once. */
TEST_P(verbs_rows, time_of_rows_over_a_long_list)
{
    pieces_blocks blocks = pieces_blocks::random(60000, 4);
    pieces_key list(dev, wide, blocks);
    uint32_t repeat = blocks.length / STRIDE;
    umr_key key(dev.pd, 4);
    auto time = [&](uint32_t with) {
        auto begin = std::chrono::steady_clock::now();

        EXPECT_EQ(IBV_WC_SUCCESS,
                  go(IBV_WR_RDMA_READ, false, with, repeat * ROW));
        return std::chrono::steady_clock::now() - begin;
    };

    ASSERT_EQ(IBV_WC_SUCCESS,
              pair.set(key, umr_layout::rows(repeat).block(
                                    NULL, list.key, ROW, STRIDE - ROW)));
    auto of_list = time(list.key), of_rows = time(key.rkey());
    EXPECT_LT(of_rows, 20 * of_list + std::chrono::milliseconds(20));
}

/* --- two processes -------------------------------------------------------- */

struct rows_card {
    uint32_t qpn, flat, rows;
    uint64_t addr;
};

void far_rows(int fd)
{
    hca_device dev;
    pieces_mem mem(dev.pd, SIZE, 5);
    umr_key key(dev.pd, 4);
    umr_pair pair(dev);
    verbs_ep ep(dev);
    rows_card card = {ep.qp->qp_num, mem.mr->rkey, key.rkey(), mem.addr()};

    HCA_CHECK_CALL(pair.set(key, umr_layout::rows(ROWS)
                                 .block(mem.bytes.data(), mem.mr->lkey, ROW,
                                        STRIDE - ROW)) == IBV_WC_SUCCESS);
    HCA_CHECK_CALL(::write(fd, &card, sizeof(card)) == sizeof(card));
    HCA_CHECK_CALL(::read(fd, &card, sizeof(card)) == sizeof(card));
    ep.connect(ep.attr(card.qpn));
    peer_meet(fd);
    peer_meet(fd);
}

/* It is forked before the device is opened. */
struct far_process {
    peer_process peer{far_rows};
};

class verbs_far_rows : public far_process, public verbs_rows {
};

TEST_P(verbs_far_rows, two_mib_in_rows_of_a_peer)
{
    verbs_ep ep(dev);
    pieces_mem image(dev.pd, SIZE, 0);
    rows_card card, own = {ep.qp->qp_num, 0, 0, 0};

    HCA_CHECK_CALL(::read(peer.fd, &card, sizeof(card)) == sizeof(card));
    HCA_CHECK_CALL(::write(peer.fd, &own, sizeof(own)) == sizeof(own));
    ep.connect(ep.attr(card.qpn));
    peer_meet(peer.fd);
    EXPECT_EQ(IBV_WC_SUCCESS,
              run(ep, verbs_op(IBV_WR_RDMA_READ)
                      .local(image.addr(), SIZE, image.mr->lkey)
                      .remote(card.addr, card.flat)));
    EXPECT_EQ(IBV_WC_SUCCESS,
              run(ep, verbs_op(IBV_WR_RDMA_WRITE)
                      .local(flat.addr(), LENGTH, flat.mr->lkey)
                      .remote(0, card.rows)));
    EXPECT_EQ(IBV_WC_SUCCESS,
              run(ep, verbs_op(IBV_WR_RDMA_READ)
                      .local(wide.addr(), SIZE, wide.mr->lkey)
                      .remote(card.addr, card.flat)));
    expect_rows(image.bytes);
    std::fill(flat.bytes.begin(), flat.bytes.end(), 0x77);
    EXPECT_EQ(IBV_WC_SUCCESS,
              run(ep, verbs_op(IBV_WR_RDMA_READ)
                      .local(flat.addr(), LENGTH, flat.mr->lkey)
                      .remote(0, card.rows)));
    expect_rows(image.bytes);
    peer_meet(peer.fd);
    EXPECT_EQ(0, peer.wait());
}

/* Invalidates a key in the midst of a message to it, until that has failed. The
 * message begins with the rows, thrice, and ends with one byte. */
void far_inval(int fd)
{
    hca_device dev;
    pieces_mem mem(dev.pd, SIZE, 0);
    strict_mem last(dev.pd, ACCESS_ALL, 0x22);
    umr_key rows(dev.pd, 4), key(dev.pd, 4);
    umr_pair pair(dev);
    verbs_ep ep(dev);
    umr_layout list;
    rows_card card = {ep.qp->qp_num, 0, key.rkey(), 0};
    volatile uint8_t *first = mem.bytes.data();
    uint8_t is_done         = 0;

    for (unsigned i = 0; i < 3; i++) {
        list.range(NULL, LENGTH, rows.lkey());
    }
    list.range(last.addr, 1, last.mr->lkey);
    HCA_CHECK_CALL(pair.set(rows, umr_layout::rows(ROWS)
                                  .block(mem.bytes.data(), mem.mr->lkey, ROW,
                                         STRIDE - ROW)) == IBV_WC_SUCCESS);
    HCA_CHECK_CALL(::write(fd, &card, sizeof(card)) == sizeof(card));
    HCA_CHECK_CALL(::read(fd, &card, sizeof(card)) == sizeof(card));
    ep.connect(ep.attr(card.qpn));
    while (!is_done) {
        *first       = 0x22;
        last.addr[0] = 0x22;
        HCA_CHECK_CALL(pair.set(key, list) == IBV_WC_SUCCESS);
        peer_meet(fd);
        while (*first == 0x22) {
            sched_yield();
        }
        EXPECT_EQ(IBV_WC_SUCCESS, pair.local_inv(key.rkey()));
        HCA_CHECK_CALL(::read(fd, &is_done, 1) == 1);
    }
    EXPECT_EQ(0x22, last.addr[0]);
    peer_meet(fd);
}

struct inval_process {
    peer_process peer{far_inval};
};

class verbs_far_inval : public inval_process, public verbs_rows {
};

TEST_P(verbs_far_inval, message_ends_when_its_key_is_invalidated)
{
    verbs_ep ep(dev);
    pieces_mem from(dev.pd, 3 * LENGTH + 1, 0);
    rows_card card, own = {ep.qp->qp_num, 0, 0, 0};
    uint8_t is_done = 0;

    std::fill(from.bytes.begin(), from.bytes.end(), 0x11);
    HCA_CHECK_CALL(::read(peer.fd, &card, sizeof(card)) == sizeof(card));
    HCA_CHECK_CALL(::write(peer.fd, &own, sizeof(own)) == sizeof(own));
    ep.connect(ep.attr(card.qpn));
    for (unsigned i = 0; (i < 20) && !is_done; i++) {
        verbs_op op(IBV_WR_RDMA_WRITE);

        peer_meet(peer.fd);
        is_done = (run(ep, op.local(from.addr(), from.bytes.size(),
                                    from.mr->lkey)
                             .remote(0, card.rows)) != IBV_WC_SUCCESS);
        HCA_CHECK_CALL(::write(peer.fd, &is_done, 1) == 1);
    }
    ASSERT_TRUE(is_done);
    peer_meet(peer.fd);
    EXPECT_EQ(0, peer.wait());
}

INSTANTIATE_TEST_SUITE_P(ib, verbs_far_inval, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(ib, verbs_rows, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(ib, verbs_far_rows, testing::Values(0));

} /* namespace */

int main(int argc, char **argv)
{
    return hca_test_main(argc, argv, {{"ib", {}}});
}
