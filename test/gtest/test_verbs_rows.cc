/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Layouts by UMR of very many pieces: rows of 8 bytes, rows of rows, rows over
 * a long list; within a process and to a peer. Bytes are compared with a
 * loop's, and bytes between the rows must not change.
 */
#include "pieces_bench.h"
#include "umr_bench.h"
#include "verbs_peer.h"

#include <algorithm>
#include <atomic>
#include <ctime>
#include <memory>
#include <thread>

namespace {

constexpr uint32_t ROWS = 262144, ROW = 8, STRIDE = 16;
constexpr size_t LENGTH = ROWS * ROW, SIZE = ROWS * STRIDE; /* 2 and 4 MiB */

class verbs_rows : public verbs_test {
protected:
    verbs_rows() : flat(dev.pd, SIZE, 1), wide(dev.pd, SIZE, 2), pair(dev) {}

    static umr_layout rows(const pieces_mem &mem, uint32_t lkey)
    {
        return umr_layout::rows(ROWS).block(
            (lkey == mem.mr->lkey) ? mem.bytes.data() : NULL, lkey, ROW,
            STRIDE - ROW);
    }

    /* Compares the rows, and checks that other bytes are those of `was`. */
    void expect_rows(const std::vector<uint8_t> &was)
    {
        for (size_t i = 0; i < SIZE; i++) {
            uint8_t want = (i % STRIDE < ROW) ?
                               flat.bytes[i / STRIDE * ROW + i % STRIDE] :
                               was[i];

            ASSERT_EQ(want, wide.bytes[i]) << i;
        }
    }

    enum ibv_wc_status go(enum ibv_wr_opcode opcode, bool gathers, uint32_t key,
                          uint64_t length = LENGTH)
    {
        verbs_op op(opcode);

        return pair.run(
            gathers ?
                op.local(0, length, key).remote(flat.addr(), flat.mr->rkey) :
                op.local(flat.addr(), length, flat.mr->lkey).remote(0, key));
    }

    pieces_mem flat, wide;
    umr_pair pair;
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

/* Only the end of the last row is outside the region. */
TEST_P(verbs_rows, nothing_is_written_if_the_last_row_is_out_of_bounds)
{
    const std::vector<uint8_t> was = wide.bytes;
    umr_key key(dev.pd, 4);
    umr_layout layout = umr_layout::rows(ROWS).block(
        wide.bytes.data() + STRIDE - ROW + 1, wide.mr->lkey, ROW, STRIDE - ROW);

    ASSERT_EQ(IBV_WC_SUCCESS, pair.set(key, layout));
    EXPECT_EQ(IBV_WC_REM_ACCESS_ERR, go(IBV_WR_RDMA_WRITE, false, key.rkey()));
    EXPECT_TRUE(wide.bytes == was);
    pair.reconnect();
    EXPECT_EQ(IBV_WC_SUCCESS,
              go(IBV_WR_RDMA_WRITE, false, key.rkey(), LENGTH - ROW));
}

/* Planes of rows: the outer key has rows of the inner key's space. */
TEST_P(verbs_rows, rows_of_rows)
{
    constexpr uint32_t planes = 1024, bytes = 64;
    const std::vector<uint8_t> was = wide.bytes;
    umr_key inner(dev.pd, 4), outer(dev.pd, 4);
    umr_layout layout = umr_layout::rows(planes).block(
        NULL, inner.lkey(), bytes, LENGTH / planes - bytes);

    ASSERT_EQ(IBV_WC_SUCCESS, pair.set(inner, rows(wide, wide.mr->lkey)));
    ASSERT_EQ(IBV_WC_SUCCESS, pair.set(outer, layout));
    EXPECT_EQ(IBV_WC_SUCCESS,
              go(IBV_WR_RDMA_WRITE, false, outer.rkey(), planes * bytes));
    for (size_t i = 0; i < SIZE; i++) {
        size_t in    = i / STRIDE * ROW + i % STRIDE; /* offset in the inner
                                                       * key */
        size_t plane = in / (LENGTH / planes), at = in % (LENGTH / planes);
        bool is_hit = (i % STRIDE < ROW) && (at < bytes);

        ASSERT_EQ(is_hit ? flat.bytes[plane * bytes + at] : was[i],
                  wide.bytes[i])
            << i;
    }
}

/* Each row begins at another place in the list. */
TEST_P(verbs_rows, rows_over_a_long_list)
{
    pieces_blocks blocks = pieces_blocks::random(4000, 4);
    pieces_key list(dev, wide, blocks);
    std::vector<uint8_t> was = wide.bytes, data;
    uint32_t repeat          = blocks.length / STRIDE;
    umr_key key(dev.pd, 4);

    ASSERT_EQ(IBV_WC_SUCCESS,
              pair.set(key, umr_layout::rows(repeat).block(NULL, list.key, ROW,
                                                           STRIDE - ROW)));
    EXPECT_EQ(IBV_WC_SUCCESS,
              go(IBV_WR_RDMA_READ, false, key.rkey(), repeat * ROW));
    data = blocks.gather(was);
    for (size_t i = 0; i < repeat * ROW; i++) {
        ASSERT_EQ(data[i / ROW * STRIDE + i % ROW], flat.bytes[i]) << i;
    }
}

/* Time is proportional to the rows, not to their product with the entries.
 * Measures the processor time of this process, device included; the least of
 * several runs counts, as other processes use the caches, too. */
TEST_P(verbs_rows, time_of_rows_over_a_long_list)
{
    pieces_blocks blocks = pieces_blocks::random(60000, 4);
    pieces_key list(dev, wide, blocks);
    uint32_t repeat = blocks.length / STRIDE;
    umr_key key(dev.pd, 4);
    uint64_t of_list = UINT64_MAX, of_rows = UINT64_MAX;
    auto time = [&](uint32_t with, uint64_t &best) {
        uint64_t begin = time_now_ns(CLOCK_PROCESS_CPUTIME_ID);

        EXPECT_EQ(IBV_WC_SUCCESS,
                  go(IBV_WR_RDMA_READ, false, with, repeat * ROW));
        best = std::min(best, time_now_ns(CLOCK_PROCESS_CPUTIME_ID) - begin);
    };

    ASSERT_EQ(IBV_WC_SUCCESS,
              pair.set(key, umr_layout::rows(repeat).block(NULL, list.key, ROW,
                                                           STRIDE - ROW)));
    for (unsigned i = 0; i < 5; i++) {
        time(list.key, of_list);
        time(key.rkey(), of_rows);
    }
    EXPECT_LT(of_rows, RATIO_ROWS * of_list);
}

/* --- two processes -------------------------------------------------------- */

struct rows_card {
    uint32_t qpn, flat, rows;
    uint64_t addr;
};

/* Returns a peer's memory: touched before it is registered, or not. */
std::vector<uint8_t> far_bytes(size_t size)
{
    return verbs_test::GetParam() ? pieces_untouched(size) :
                                    std::vector<uint8_t>(size);
}

void far_rows(int fd)
{
    hca_device dev;
    pieces_mem mem(dev.pd, far_bytes(SIZE), 5);
    umr_key key(dev.pd, 4);
    umr_pair pair(dev);
    verbs_ep ep(dev);
    rows_card card = {ep.qp->qp_num, mem.mr->rkey, key.rkey(), mem.addr()};

    HCA_CHECK_CALL(pair.set(key, umr_layout::rows(ROWS).block(
                                     mem.bytes.data(), mem.mr->lkey, ROW,
                                     STRIDE - ROW)) == IBV_WC_SUCCESS);
    HCA_CHECK_CALL(::write(fd, &card, sizeof(card)) == sizeof(card));
    HCA_CHECK_CALL(::read(fd, &card, sizeof(card)) == sizeof(card));
    ep.connect(ep.attr(card.qpn));
    peer_meet(fd);
    peer_meet(fd);
}

/* Forked before the device is opened */
struct far_process {
    peer_process peer{far_rows};
};

class verbs_far_rows : public far_process, public verbs_rows {};

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

/* Parts of rows of many shapes, to and from rows of others */
struct rows_shape {
    uint32_t bytes, skip;

    size_t count() const { return (SPAN - START) / (bytes + skip); }

    size_t at(size_t offset) const
    {
        return START + offset / bytes * (bytes + skip) + offset % bytes;
    }

    umr_layout layout(const pieces_mem &mem) const
    {
        return umr_layout::rows(count()).block(mem.bytes.data() + START,
                                               mem.mr->lkey, bytes, skip);
    }

    static constexpr size_t START = 13, SPAN = 512 << 10;
};

constexpr unsigned NUM_SHAPES           = 8;
constexpr rows_shape SHAPES[NUM_SHAPES] = {
    {8, 8},  {256, 256},  {100, 3},   {1024, 1024},
    {24, 0}, {700, 1500}, {96, 4000}, {4096, 512}};

struct shapes_card {
    uint32_t qpn, flat, keys[NUM_SHAPES];
    uint64_t addr;
};

void far_shapes(int fd)
{
    hca_device dev;
    pieces_mem mem(dev.pd, far_bytes(rows_shape::SPAN), 5);
    std::unique_ptr<umr_key> keys[NUM_SHAPES];
    umr_pair pair(dev);
    verbs_ep ep(dev);
    shapes_card card = {ep.qp->qp_num, mem.mr->rkey, {}, mem.addr()};

    for (unsigned i = 0; i < NUM_SHAPES; i++) {
        keys[i]      = std::make_unique<umr_key>(dev.pd, 4);
        card.keys[i] = keys[i]->rkey();
        HCA_CHECK_CALL(pair.set(*keys[i], SHAPES[i].layout(mem)) ==
                       IBV_WC_SUCCESS);
    }
    HCA_CHECK_CALL(::write(fd, &card, sizeof(card)) == sizeof(card));
    HCA_CHECK_CALL(::read(fd, &card, sizeof(card)) == sizeof(card));
    ep.connect(ep.attr(card.qpn));
    peer_meet(fd);
    peer_meet(fd);
}

struct shapes_process {
    peer_process peer{far_shapes};
};

class verbs_far_shapes : public shapes_process, public verbs_test {
protected:
    verbs_far_shapes() :
        mem(dev.pd, rows_shape::SPAN, 1), image(dev.pd, rows_shape::SPAN, 5),
        key(dev.pd, 4), pair(dev), ep(dev)
    {
        shapes_card own = {ep.qp->qp_num, 0, {}, 0};

        HCA_CHECK_CALL(::read(peer.fd, &card, sizeof(card)) == sizeof(card));
        HCA_CHECK_CALL(::write(peer.fd, &own, sizeof(own)) == sizeof(own));
        ep.connect(ep.attr(card.qpn));
        peer_meet(peer.fd);
    }

    ~verbs_far_shapes()
    {
        peer_meet(peer.fd);
        EXPECT_EQ(0, peer.wait());
    }

    /* Reads bytes of the peer's rows, whose memory equals the image, to rows
     * here. */
    void read_part(unsigned far, const rows_shape &near)
    {
        const rows_shape &from = SHAPES[far];
        size_t has             = from.count() * from.bytes;
        size_t room            = near.count() * near.bytes;
        size_t length          = 1 + random() % std::min(has, room);
        size_t skips           = random() % (has - length + 1);
        size_t to              = random() % (room - length + 1);

        std::vector<uint8_t> want = mem.bytes;
        for (size_t i = 0; i < length; i++) {
            want[near.at(to + i)] = image.bytes[from.at(skips + i)];
        }
        ASSERT_EQ(IBV_WC_SUCCESS, pair.set(key, near.layout(mem)));
        ASSERT_EQ(IBV_WC_SUCCESS, run(ep, verbs_op(IBV_WR_RDMA_READ)
                                              .local(to, length, key.lkey())
                                              .remote(skips, card.keys[far])));
        ASSERT_TRUE(want == mem.bytes);
    }

    /* Writes bytes of rows here to the peer's memory, and reads them back. */
    void write_part(const rows_shape &near)
    {
        size_t has    = near.count() * near.bytes;
        size_t length = 1 + random() % has;
        size_t from   = random() % (has - length + 1);
        size_t to     = random() % (rows_shape::SPAN - length + 1);

        std::vector<uint8_t> want = image.bytes;
        for (size_t i = 0; i < length; i++) {
            want[to + i] = mem.bytes[near.at(from + i)];
        }
        ASSERT_EQ(IBV_WC_SUCCESS, pair.set(key, near.layout(mem)));
        ASSERT_EQ(IBV_WC_SUCCESS,
                  run(ep, verbs_op(IBV_WR_RDMA_WRITE)
                              .local(from, length, key.lkey())
                              .remote(card.addr + to, card.flat)));
        ASSERT_EQ(
            IBV_WC_SUCCESS,
            run(ep, verbs_op(IBV_WR_RDMA_READ)
                        .local(image.addr(), image.bytes.size(), image.mr->lkey)
                        .remote(card.addr, card.flat)));
        ASSERT_TRUE(want == image.bytes);
    }

    std::mt19937 random{1};
    pieces_mem mem, image;
    umr_key key;
    umr_pair pair;
    verbs_ep ep;
    shapes_card card;
};

TEST_P(verbs_far_shapes, parts_of_rows_to_rows)
{
    for (unsigned i = 0; (i < 8 * NUM_SHAPES * NUM_SHAPES) && !HasFailure();
         i++) {
        SCOPED_TRACE(i);
        read_part(i % NUM_SHAPES, SHAPES[i / NUM_SHAPES % NUM_SHAPES]);
    }
}

TEST_P(verbs_far_shapes, parts_of_rows_are_written)
{
    for (unsigned i = 0; (i < 16 * NUM_SHAPES) && !HasFailure(); i++) {
        SCOPED_TRACE(i);
        write_part(SHAPES[i % NUM_SHAPES]);
    }
}

/* Invalidates a key in the middle of a message to it, again until the message
 * has failed. The key leads to the rows three times, and to one byte. */
void far_inval(int fd)
{
    hca_device dev;
    pieces_mem mem(dev.pd, far_bytes(SIZE), 0);
    strict_mem last(dev.pd, ACCESS_ALL, 0x22);
    umr_key rows(dev.pd, 4), key(dev.pd, 4);
    umr_pair pair(dev);
    verbs_ep ep(dev);
    umr_layout list;
    rows_card card          = {ep.qp->qp_num, 0, key.rkey(), 0};
    volatile uint8_t *first = mem.bytes.data();
    uint8_t is_done         = 0;

    for (unsigned i = 0; i < 3; i++) {
        list.range(NULL, LENGTH, rows.lkey());
    }
    list.range(last.addr, 1, last.mr->lkey);
    HCA_CHECK_CALL(pair.set(rows, umr_layout::rows(ROWS).block(
                                      mem.bytes.data(), mem.mr->lkey, ROW,
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

class verbs_far_inval : public inval_process, public verbs_rows {};

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
        is_done =
            (run(ep, op.local(from.addr(), from.bytes.size(), from.mr->lkey)
                         .remote(0, card.rows)) != IBV_WC_SUCCESS);
        HCA_CHECK_CALL(::write(peer.fd, &is_done, 1) == 1);
    }
    ASSERT_TRUE(is_done);
    peer_meet(peer.fd);
    EXPECT_EQ(0, peer.wait());
}

/* --- a peer that is stopped ----------------------------------------------- */

constexpr size_t FAR_LENGTH = 64 << 20;

/* Writes by a key, as many bytes as the parent requests, until it requests 0.
 * The bytes are in rows, so that the copy takes many system calls. */
void far_writer(int fd)
{
    constexpr uint32_t row = 2048;
    hca_device dev;
    std::vector<uint8_t> from(FAR_LENGTH / row * (row + 1), 0x11);
    struct ibv_mr *mr = ibv_reg_mr(dev.pd, from.data(), from.size(), 0);
    uint64_t length   = 0;
    umr_key key(dev.pd, 4);
    umr_pair pair(dev);

    HCA_CHECK_CALL(mr != NULL);
    HCA_CHECK_CALL(pair.set(key,
                            umr_layout::rows(FAR_LENGTH / row)
                                .block(from.data(), mr->lkey, row, 1),
                            0) == IBV_WC_SUCCESS);
    do {
        verbs_ep ep(dev);
        verbs_op op(IBV_WR_RDMA_WRITE);
        rows_card card = {ep.qp->qp_num, 0, 0, 0};

        HCA_CHECK_CALL(::write(fd, &card, sizeof(card)) == sizeof(card));
        HCA_CHECK_CALL(::read(fd, &card, sizeof(card)) == sizeof(card));
        HCA_CHECK_CALL(::read(fd, &length, sizeof(length)) == sizeof(length));
        ep.connect(ep.attr(card.qpn));
        peer_meet(fd);
        if (length > 0) {
            EXPECT_EQ(0, op.local(0, length, key.lkey())
                             .remote(card.addr, card.rows)
                             .post(ep.qp));
            verbs_wait(ep.send_cq);
            peer_meet(fd);
        }
    } while (length > 0);
    ibv_dereg_mr(mr);
}

struct writer_process {
    peer_process peer{far_writer};
};

class verbs_stopped : public writer_process, public verbs_rows {
protected:
    ~verbs_stopped() { go_on(); }

    void tell(verbs_ep &ep, uint32_t rkey, uint64_t addr, uint64_t length)
    {
        rows_card own = {ep.qp->qp_num, 0, rkey, addr}, card;

        HCA_CHECK_CALL(::read(peer.fd, &card, sizeof(card)) == sizeof(card));
        HCA_CHECK_CALL(::write(peer.fd, &own, sizeof(own)) == sizeof(own));
        HCA_CHECK_CALL(::write(peer.fd, &length, sizeof(length)) ==
                       sizeof(length));
        ep.connect(ep.attr(card.qpn));
        peer_meet(peer.fd);
    }

    /* @return true if it stopped between the first byte and the last */
    bool stop_within(volatile uint8_t *first, volatile uint8_t *last)
    {
        while (*first != 0x11) {
        }
        EXPECT_EQ(0, kill(peer.pid, SIGSTOP));
        EXPECT_EQ(peer.pid, waitpid(peer.pid, NULL, WUNTRACED));
        return *last != 0x11;
    }

    void go_on()
    {
        if (peer.pid != 0) {
            kill(peer.pid, SIGCONT);
        }
    }

    /* Makes the peer write by a key, again until it is stopped in the middle.
     * Each message has a new queue pair, as the last one may have failed. */
    void stop_in_the_midst(std::unique_ptr<verbs_ep> &ep, uint32_t rkey,
                           uint64_t addr, uint8_t *first, uint8_t *last,
                           uint64_t length)
    {
        for (unsigned i = 0; i < 50; i++) {
            *first = 0;
            *last  = 0;
            ep.reset(new verbs_ep(dev));
            tell(*ep, rkey, addr, length);
            if (stop_within(first, last)) {
                return;
            }
            go_on();
            peer_meet(peer.fd);
        }
        FAIL() << "it was always too late";
    }

    /* Lets the message complete or fail, and the peer end. */
    void end_peer()
    {
        verbs_ep ep(dev);

        go_on();
        peer_meet(peer.fd);
        tell(ep, 0, 0, 0);
        EXPECT_EQ(0, peer.wait());
    }

    /* Deregisters the region of @bytes, to which the stopped peer writes: this
     * waits until the peer goes on. */
    void expect_kept(struct ibv_mr *mr, const std::vector<uint8_t> &bytes)
    {
        std::atomic<bool> is_going{false}, is_gone{false};
        std::vector<uint8_t> was;
        std::thread thread([&] {
            is_going = true;
            EXPECT_EQ(0, ibv_dereg_mr(mr));
            was     = bytes;
            is_gone = true;
        });

        EXPECT_TRUE(hca_until([&] { return is_going.load(); }));
        time_quiet(QUIET_LOCK);
        EXPECT_FALSE(is_gone);
        go_on();
        thread.join();
        end_peer();
        EXPECT_TRUE(was == bytes) << "written to after it was deregistered";
    }

    /* A region of its own, rows in it, and a peer that is stopped while it
     * walks them */
    struct stopped_walk {
        explicit stopped_walk(verbs_stopped *test) :
            mr(ibv_reg_mr(test->dev.pd, test->wide.bytes.data(), SIZE,
                          ACCESS_ALL)),
            key(new umr_key(test->dev.pd, 4))
        {
            uint8_t *bytes = test->wide.bytes.data();

            HCA_CHECK_CALL(mr != NULL);
            HCA_CHECK_CALL(
                test->pair.set(*key, umr_layout::rows(ROWS).block(
                                         bytes, mr->lkey, ROW, STRIDE - ROW)) ==
                IBV_WC_SUCCESS);
            test->stop_in_the_midst(ep, key->rkey(), 0, bytes,
                                    bytes + SIZE - STRIDE, LENGTH);
        }

        struct ibv_mr *mr;
        std::unique_ptr<umr_key> key;
        std::unique_ptr<verbs_ep> ep;
    };

    /* The same with memory of its own that is written in one piece */
    struct stopped_write {
        explicit stopped_write(verbs_stopped *test) :
            to(FAR_LENGTH),
            mr(ibv_reg_mr(test->dev.pd, to.data(), FAR_LENGTH, ACCESS_ALL))
        {
            HCA_CHECK_CALL(mr != NULL);
            test->stop_in_the_midst(ep, mr->rkey, (uintptr_t)to.data(),
                                    &to.front(), &to.back(), FAR_LENGTH);
        }

        std::vector<uint8_t> to;
        struct ibv_mr *mr;
        std::unique_ptr<verbs_ep> ep;
    };
};

/* The stopped process may continue to write to the region at any time. */
TEST_P(verbs_stopped, walker_keeps_the_region)
{
    stopped_walk walk(this);

    expect_kept(walk.mr, wide.bytes);
}

TEST_P(verbs_stopped, writer_keeps_the_region)
{
    stopped_write far(this);

    expect_kept(far.mr, far.to);
}

/* The key that the message names is kept for a limited time. Then it is
 * unusable: the message does not get to its last row. */
TEST_P(verbs_stopped, walker_does_not_keep_its_key_for_ever)
{
    hca_log_reader log;
    stopped_walk walk(this);

    walk.key.reset();
    EXPECT_NE(std::string::npos, log.take().find("used by a stopped process"));
    end_peer();
    EXPECT_NE(0x11, wide.bytes[SIZE - STRIDE]) << "the message has ended";
    EXPECT_EQ(0, ibv_dereg_mr(walk.mr));
}

/* A region that is not changed in time stays as it was. */
TEST_P(verbs_stopped, writer_keeps_the_region_from_a_change)
{
    hca_log_reader log;
    stopped_write far(this);

    EXPECT_EQ(IBV_REREG_MR_ERR_CMD,
              ibv_rereg_mr(far.mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL,
                           wide.bytes.data(), SIZE, 0));
    EXPECT_NE(std::string::npos, log.take().find("used by a stopped process"));
    end_peer();
    far.ep.reset();
    EXPECT_EQ(0x11, far.to.back());
    EXPECT_EQ(0, ibv_rereg_mr(far.mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL,
                              wide.bytes.data(), SIZE, 0));
    EXPECT_EQ(0, ibv_dereg_mr(far.mr));
}

/* Only the first key is kept for long while the writer is stopped: all of them
 * together would take longer than the deadline. */
TEST_P(verbs_stopped, writer_delays_one_key)
{
    std::vector<struct ibv_mr *> mrs(9);
    hca_log_reader log;
    stopped_write far(this);

    for (struct ibv_mr *&mr : mrs) {
        mr = ibv_reg_mr(dev.pd, wide.bytes.data(), SIZE, ACCESS_ALL);
        ASSERT_TRUE(mr != NULL);
    }
    EXPECT_EQ(ETIMEDOUT, ibv_dereg_mr(mrs.back()));
    EXPECT_NE(std::string::npos, log.take().find("used by a stopped process"));
    EXPECT_EQ(IBV_REREG_MR_ERR_CMD,
              ibv_rereg_mr(mrs.back(), IBV_REREG_MR_CHANGE_ACCESS, dev.pd, NULL,
                           0, IBV_ACCESS_LOCAL_WRITE))
        << "its key leads nowhere";
    EXPECT_EQ(EINVAL, errno);

    dcx_deadline deadline(TIME_PROMPT);
    for (struct ibv_mr *mr : mrs) {
        EXPECT_EQ(ETIMEDOUT, ibv_dereg_mr(mr));
    }
    EXPECT_FALSE(deadline.is_over());
    end_peer();
    for (struct ibv_mr *mr : mrs) {
        EXPECT_EQ(0, ibv_dereg_mr(mr));
    }
    far.ep.reset();
    log.take();
    EXPECT_EQ(0, ibv_dereg_mr(far.mr));
    EXPECT_EQ(std::string::npos, log.take().find("stopped")) << "it goes on";
}

/* The killed process has begun an access that it does not end. */
TEST_P(verbs_stopped, killed_writer_delays_no_key)
{
    hca_log_reader log;
    stopped_write far(this);

    kill(peer.pid, SIGKILL);
    EXPECT_TRUE(WIFSIGNALED(peer.wait()));

    dcx_deadline deadline(TIME_PROMPT);
    EXPECT_EQ(0, ibv_dereg_mr(far.mr));
    EXPECT_FALSE(deadline.is_over());
    EXPECT_EQ(std::string::npos, log.take().find("stopped"));
}

/* A deallocated window cannot be bound any more, however long that takes. */
TEST_P(verbs_stopped, window_is_not_bound_while_it_goes)
{
    std::vector<uint8_t> to(FAR_LENGTH);
    struct ibv_mr *mr = ibv_reg_mr(dev.pd, to.data(), FAR_LENGTH,
                                   ACCESS_ALL | IBV_ACCESS_MW_BIND);
    struct ibv_mw *mw = ibv_alloc_mw(dev.pd, IBV_MW_TYPE_1);
    std::unique_ptr<verbs_ep> ep;
    struct ibv_mw_bind bind = {};
    enum ibv_wc_status status;
    verbs_pair own(dev);

    HCA_CHECK_CALL((mr != NULL) && (mw != NULL));
    bind.send_flags = IBV_SEND_SIGNALED;
    bind.bind_info  = {mr, (uintptr_t)to.data(), FAR_LENGTH,
                       IBV_ACCESS_REMOTE_WRITE};
    ASSERT_EQ(0, ibv_bind_mw(own.b.qp, mw, &bind));
    ASSERT_EQ(IBV_WC_SUCCESS, verbs_wait(own.b.send_cq).status);
    stop_in_the_midst(ep, mw->rkey, (uintptr_t)to.data(), &to.front(),
                      &to.back(), FAR_LENGTH);

    std::atomic<bool> is_gone{false};
    std::thread thread([&] {
        EXPECT_EQ(0, ibv_dealloc_mw(mw));
        is_gone = true;
    });
    EXPECT_TRUE(hca_until([&] {
        EXPECT_EQ(0, ibv_bind_mw(own.b.qp, mw, &bind));
        status = verbs_wait(own.b.send_cq).status;
        return status != IBV_WC_SUCCESS;
    }));
    EXPECT_EQ(IBV_WC_MW_BIND_ERR, status);
    EXPECT_FALSE(is_gone);
    go_on();
    thread.join();
    end_peer();
    EXPECT_EQ(0, ibv_dereg_mr(mr));
}

/* Commands on the queue pair that it writes to wait, except the one that
 * destroys it. */
TEST_P(verbs_stopped, writer_keeps_the_queue_pair)
{
    hca_log_reader log;
    stopped_write far(this);

    EXPECT_EQ(ETIMEDOUT, ibv_destroy_qp(far.ep->qp));
    EXPECT_NE(std::string::npos, log.take().find("a stopped process has it"));
    {
        peer_waiting_call query(
            [&] { EXPECT_EQ(IBV_QPS_RTS, far.ep->state()); });
        go_on();
    }
    far.ep.reset();
    end_peer();
    EXPECT_EQ(0, ibv_dereg_mr(far.mr));
}

INSTANTIATE_TEST_SUITE_P(ib, verbs_stopped, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(ib, verbs_far_inval, testing::Values(0, 1));
INSTANTIATE_TEST_SUITE_P(ib, verbs_rows, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(ib, verbs_far_rows, testing::Values(0, 1));
INSTANTIATE_TEST_SUITE_P(ib, verbs_far_shapes, testing::Values(0, 1));

} /* namespace */

int main(int argc, char **argv)
{
    return hca_test_main(argc, argv, {{"ib", {}}});
}
