/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * WQEs of the operations of dcx: each is called through UCT, on an endpoint to
 * its own interface, and executed by the device. Then the WQE in the ring is
 * compared, field by field, with libmlx5's for the same operation to the same
 * target, on a twin. test_dcx_wqe.cc does the same for the functions that write
 * segments, at all sizes; this test shows which of them an operation calls,
 * with which arguments. Atomics are in test_dcx_post_atomic.cc.
 */
#include "dcx_post_bench.h"

#include <set>

namespace {

/* Header of an active message: IBV_TMH_NO_TAG and the id */
const uint8_t am_hdr[] = {0, 5};

class dcx_post : public dcx_post_bench {
protected:
    /* Checks that the WQE at @view has @data: inline, or in a buffer of its
     * own, which is added to @buffers. Moves @view behind the WQE. */
    void expect_copied(struct dcx_view &view, const std::vector<uint8_t> &data,
                       bool is_inline, std::vector<uint64_t> &buffers)
    {
        wqe_bytes wqe = dc_twin::wqe_at(view.ring, view.num_bb, view.pi);
        wqe_fields fields(wqe);
        auto *addr = fields.find("data0.addr");

        view.pi += (wqe.size() + 63) / 64;
        EXPECT_EQ(m_dcx.view().pi, view.pi) << "one WQE";
        ASSERT_EQ(is_inline, addr == NULL);
        if (is_inline) {
            for (size_t i = 0; i < data.size(); i++) {
                auto *byte =
                    fields.find("data0.byte[" + std::to_string(i) + "]");

                ASSERT_NE(nullptr, byte) << i;
                EXPECT_EQ(data[i], byte->value) << i;
            }
        } else {
            EXPECT_EQ(0, memcmp((void *)addr->value, data.data(), data.size()));
            /* a header may precede the payload, which is aligned */
            buffers.push_back((addr->value + sizeof(am_hdr)) / 64);
        }
    }
};

std::vector<uint8_t> operator+(std::vector<uint8_t> a,
                               const std::vector<uint8_t> &b)
{
    a.insert(a.end(), b.begin(), b.end());
    return a;
}

std::vector<uint8_t> am_bytes(const void *data, size_t length)
{
    return std::vector<uint8_t>(am_hdr, am_hdr + sizeof(am_hdr)) +
           std::vector<uint8_t>((const uint8_t *)data,
                                (const uint8_t *)data + length);
}

size_t pack(void *dest, void *arg)
{
    const auto *data = (const std::vector<uint8_t> *)arg;

    memcpy(dest, data->data(), data->size());
    return data->size();
}

void unpack(void *, const void *, size_t) {}

/* --- active messages ------------------------------------------------------ */

TEST_P(dcx_post, am_short)
{
    const uint64_t header = 0x1122334455667788;

    for (size_t length = 0; length <= m_dcx.view().am_short; length++) {
        auto data = pattern(length);
        dc_op op  = {.opcode = MLX5_OPCODE_SEND,
                     .flags  = IBV_SEND_SOLICITED,
                     .inl    = am_bytes(&header, sizeof(header)) + data};

        expect_same("am_short", op, [&] {
            return uct_ep_am_short(m_dcx.ep, 5, header, data.data(), length);
        });
    }
}

TEST_P(dcx_post, am_short_iov)
{
    auto list = iovs(3);
    dc_op op  = {.opcode = MLX5_OPCODE_SEND,
                 .flags  = IBV_SEND_SOLICITED,
                 .inl    = am_bytes(NULL, 0)};

    for (const auto &iov : list) {
        op.inl = op.inl +
                 std::vector<uint8_t>((uint8_t *)iov.buffer,
                                      (uint8_t *)iov.buffer + iov.length);
    }
    expect_same("am_short_iov", op, [&] {
        return uct_ep_am_short_iov(m_dcx.ep, 5, list.data(), list.size());
    });
}

/* Copied messages that are no longer than a short one are inline, too. */
TEST_P(dcx_post, am_bcopy_inline)
{
    const size_t most = m_dcx.view().am_short + sizeof(uint64_t);

    for (size_t length : {(size_t)0, (size_t)1, (size_t)100, most}) {
        auto data = pattern(length);
        dc_op op  = {.opcode = MLX5_OPCODE_SEND,
                     .flags  = IBV_SEND_SOLICITED,
                     .inl    = am_bytes(data.data(), length)};

        expect_same("am_bcopy", op, [&] {
            return uct_ep_am_bcopy(m_dcx.ep, 5, pack, &data, 0);
        });
    }
}

TEST_P(dcx_post, am_bcopy)
{
    const size_t least = m_dcx.view().am_short + sizeof(uint64_t) + 1;

    for (size_t length : {least, (size_t)8192}) {
        auto data            = pattern(length);
        struct dcx_view view = idle_view();
        dc_op op = {.opcode = MLX5_OPCODE_SEND, .flags = IBV_SEND_SOLICITED};
        wqe_bytes wqe =
            ours([&] { return uct_ep_am_bcopy(m_dcx.ep, 5, pack, &data, 0); });

        op = with_buffer_of(op, wqe, length + sizeof(am_hdr));
        EXPECT_EQ("", diff(theirs(op, view), wqe));
        EXPECT_EQ(0, memcmp((void *)op.sges[0].addr,
                            am_bytes(data.data(), length).data(),
                            length + sizeof(am_hdr)));
    }
}

/* Header inline, data by reference: see test_dcx_wqe.cc */
TEST_P(dcx_post, am_zcopy)
{
    for (size_t header_length : {0, 1, 10, 11, 26}) {
        for (unsigned n = 0; n <= m_dcx.view().am_iov; n++) {
            struct dcx_view view = idle_view();
            auto header          = pattern(header_length);
            auto list            = iovs(n);
            auto inl             = am_bytes(header.data(), header_length);
            dc_op op             = {.opcode = MLX5_OPCODE_SEND,
                                    .flags  = IBV_SEND_SOLICITED,
                                    .inl    = inl};
            dc_op op2 = {.opcode = MLX5_OPCODE_SEND, .sges = sges(list)};
            wqe_bytes expected = theirs(op, view);
            wqe_bytes tail     = theirs(op2, view);

            expected.insert(expected.end(),
                            tail.begin() + (is_compact() ? 32 : 64),
                            tail.end());
            expected[7] = expected.size() / 16;
            EXPECT_EQ("", diff(expected, ours([&] {
                                   return uct_ep_am_zcopy(
                                       m_dcx.ep, 5, header.data(),
                                       header_length, list.data(), n, 0, NULL);
                               })))
                << header_length << " bytes and " << n << " pieces";
        }
    }
}

/* --- put and get ---------------------------------------------------------- */

TEST_P(dcx_post, put_short)
{
    for (size_t length = 1; length <= m_dcx.view().put_short; length++) {
        auto data = pattern(length);

        expect_same("put_short",
                    remote({.opcode = MLX5_OPCODE_RDMA_WRITE, .inl = data}),
                    [&] {
                        return uct_ep_put_short(m_dcx.ep, data.data(), length,
                                                m_remote, m_rkey);
                    });
    }
}

TEST_P(dcx_post, put_bcopy_inline)
{
    for (size_t length : {(size_t)1, (size_t)100, m_dcx.view().put_short}) {
        auto data = pattern(length);

        expect_same("put_bcopy",
                    remote({.opcode = MLX5_OPCODE_RDMA_WRITE, .inl = data}),
                    [&] {
                        return uct_ep_put_bcopy(m_dcx.ep, pack, &data, m_remote,
                                                m_rkey);
                    });
    }
}

TEST_P(dcx_post, put_bcopy)
{
    auto data            = pattern(m_dcx.view().put_short + 1);
    struct dcx_view view = idle_view();
    wqe_bytes wqe        = ours([&] {
        return uct_ep_put_bcopy(m_dcx.ep, pack, &data, m_remote, m_rkey);
    });
    dc_op op = with_buffer_of(remote({.opcode = MLX5_OPCODE_RDMA_WRITE}), wqe,
                              data.size());

    EXPECT_EQ("", diff(theirs(op, view), wqe));
    EXPECT_EQ(0, memcmp((void *)op.sges[0].addr, data.data(), data.size()));
}

TEST_P(dcx_post, get_bcopy)
{
    struct dcx_view view = idle_view();
    wqe_bytes wqe        = ours([&] {
        return uct_ep_get_bcopy(m_dcx.ep, unpack, NULL, 1000, m_remote, m_rkey,
                                       NULL);
    });
    dc_op op = with_buffer_of(remote({.opcode = MLX5_OPCODE_RDMA_READ}), wqe,
                              1000);

    EXPECT_EQ("", diff(theirs(op, view), wqe));
    EXPECT_EQ(0, memcmp((void *)op.sges[0].addr, (void *)m_remote, 1000));
}

TEST_P(dcx_post, put_and_get_zcopy)
{
    /* the twin has room for all */
    ASSERT_LE(m_dcx.view().rma_iov, (size_t)dc_twin::max_sge);
    for (unsigned n = 1; n <= m_dcx.view().rma_iov; n++) {
        auto list = iovs(n);

        for (unsigned empty = 0; empty <= n; empty++) {
            /* no piece empty, then each in turn, unless it is the only one */
            if ((empty > 0) && (n > 1)) {
                list                   = iovs(n);
                list[empty - 1].length = 0;
            }
            expect_same(
                "put_zcopy",
                remote({.opcode = MLX5_OPCODE_RDMA_WRITE, .sges = sges(list)}),
                [&] {
                    return uct_ep_put_zcopy(m_dcx.ep, list.data(), n, m_remote,
                                            m_rkey, NULL);
                });
            expect_same(
                "get_zcopy",
                remote({.opcode = MLX5_OPCODE_RDMA_READ, .sges = sges(list)}),
                [&] {
                    return uct_ep_get_zcopy(m_dcx.ep, list.data(), n, m_remote,
                                            m_rkey, NULL);
                });
        }
    }
}

/* --- copied operations of changing lengths -------------------------------- */

/* The form of each depends on its own length, not on earlier ones. A buffer is
 * the device's until its WQE has completed: the next message is packed
 * elsewhere. */
TEST_P(dcx_post, bcopy_turns)
{
    const size_t am_most = m_dcx.view().am_short + sizeof(uint64_t);
    auto small = pattern(am_most), large = pattern(am_most + 1);
    auto put_small = pattern(m_dcx.view().put_short);
    auto put_large = pattern(m_dcx.view().put_short + 1);

    for (auto row : {"sl", "ll", "ss", "ls"}) {
        SCOPED_TRACE(row);
        struct dcx_view view = idle_view();
        std::vector<uint64_t> buffers;

        for (const char *next = row; *next != 0; next++) {
            auto &am  = (*next == 's') ? small : large;
            auto &put = (*next == 's') ? put_small : put_large;

            EXPECT_EQ((ssize_t)am.size(),
                      uct_ep_am_bcopy(m_dcx.ep, 5, pack, &am, 0));
            expect_copied(view, am_bytes(am.data(), am.size()), *next == 's',
                          buffers);
            EXPECT_EQ((ssize_t)put.size(),
                      uct_ep_put_bcopy(m_dcx.ep, pack, &put, m_remote, m_rkey));
            expect_copied(view, put, *next == 's', buffers);
        }
        EXPECT_EQ(buffers.size(),
                  std::set<uint64_t>(buffers.begin(), buffers.end()).size());
    }
}

/* --- operations without data ---------------------------------------------- */

/* A write of no bytes checks the peer. */
TEST_P(dcx_post, check)
{
    dc_op op = {.opcode = MLX5_OPCODE_RDMA_WRITE};

    expect_same("ep_check", op,
                [&] { return uct_ep_check(m_dcx.ep, 0, NULL); });
}

TEST_P(dcx_post, fence)
{
    auto data = pattern(16);
    dc_op op  = remote({.opcode = MLX5_OPCODE_RDMA_WRITE,
                        .flags  = IBV_SEND_FENCE,
                        .inl    = data});
    wqe_bytes second;

    /* a fence is set only if operations are outstanding */
    m_dcx.flush();
    EXPECT_EQ(UCS_INPROGRESS, uct_ep_get_bcopy(m_dcx.ep, unpack, NULL, 8,
                                               m_remote, m_rkey, NULL));
    EXPECT_EQ(UCS_OK, uct_ep_fence(m_dcx.ep, 0));
    struct dcx_view view = m_dcx.view();

    EXPECT_EQ(UCS_OK, uct_ep_put_short(m_dcx.ep, data.data(), data.size(),
                                       m_remote, m_rkey));
    EXPECT_EQ("", diff(theirs(op, view),
                       dc_twin::wqe_at(view.ring, view.num_bb, view.pi)));
}

/* A cancel puts the queue in error, and posts a NOP after the outstanding
 * operations. The NOP has an address vector, like that of UCX's dc_mlx5. */
TEST_P(dcx_post, cancel)
{
    uct_completion_t comp = {};

    comp.func  = [](uct_completion_t *) {};
    comp.count = 1;
    m_dcx.flush();
    EXPECT_EQ(UCS_INPROGRESS, uct_ep_get_bcopy(m_dcx.ep, unpack, NULL, 8,
                                               m_remote, m_rkey, NULL));
    struct dcx_view view = m_dcx.view();
    wqe_bytes expected   = theirs({.opcode = MLX5_OPCODE_SEND}, view);

    expected[3] = MLX5_OPCODE_NOP;
    EXPECT_EQ(UCS_INPROGRESS,
              uct_ep_flush(m_dcx.ep, UCT_FLUSH_FLAG_CANCEL, &comp));
    EXPECT_EQ("",
              diff(expected, dc_twin::wqe_at(view.ring, view.num_bb, view.pi)));
    m_dcx.flush();
    EXPECT_EQ(0, comp.count);
}

/* WQEs that cross the end of the ring */
TEST_P(dcx_post, ring_end)
{
    unsigned wraps = 0, straddles = 0;

    for (unsigned i = 0; wraps < 8; i++) {
        struct dcx_view view = idle_view();
        auto data            = pattern(1 + (i * 5) % view.put_short);
        dc_op put = remote({.opcode = MLX5_OPCODE_RDMA_WRITE, .inl = data});

        if (i % 2 == 1) {
            expect_same("put_bcopy", put, [&] {
                return uct_ep_put_bcopy(m_dcx.ep, pack, &data, m_remote,
                                        m_rkey);
            });
        } else {
            expect_same("put_short", put, [&] {
                return uct_ep_put_short(m_dcx.ep, data.data(), data.size(),
                                        m_remote, m_rkey);
            });
        }
        unsigned from = view.pi % view.num_bb;
        unsigned to   = m_dcx.view().pi % view.num_bb;

        wraps += to < from;
        straddles += (to < from) && (to != 0);
    }
    EXPECT_GT(straddles, 0u);
}

DCX_POST_MODES(dcx_post);

} /* namespace */

int main(int argc, char **argv)
{
    std::vector<std::pair<const char *, const char *>> env = {
        {"UCX_DCX_NUM_DCI", "1"},          {"UCX_DCX_TX_QUEUE_LEN", "8"},
        {"UCX_DCX_FC_ENABLE", "n"},        /* no WQEs but those of the calls */
        {"UCX_DCX_TX_CQ_MODERATION", "1"}, /* all signaled, as libmlx5's are */
        {"UCX_DCX_RX_QUEUE_LEN", "64"},    {"UCX_DCX_SL", "3"},
        {"UCX_DCX_TRAFFIC_CLASS", "33"},   {"UCX_DCX_HOP_LIMIT", "17"},
        {"UCX_DCX_DM_SIZE", "0"}, /* the test reads the buffers */
    };
    auto global = env, roce = env;

    /* one way each to hand a WQE to the device, which compares pushed data with
     * the ring */
    env.push_back({"UCX_DCX_MMIO_MODE", "bf_post"});
    global.push_back({"UCX_DCX_MMIO_MODE", "bf_post_mt"});
    roce.push_back({"UCX_DCX_MMIO_MODE", "db"});
    global.push_back({"UCX_DCX_IS_GLOBAL", "y"});
    roce.push_back({"SOFTHCA_LINK", "roce"});
    roce.push_back({"UCX_DCX_GID_INDEX", "1"});
    return hca_test_main(argc, argv,
                         {{"ib", env}, {"global", global}, {"roce", roce}});
}
