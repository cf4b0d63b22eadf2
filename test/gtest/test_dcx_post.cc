/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * What the operations of dcx put on the wire: each is called through UCT, on
 * an endpoint that leads back to its own interface, and executed by the
 * device; then the WQE that it left in the ring is compared, field by field,
 * with that of libmlx5 for the same operation to the same target, on a twin.
 * test_dcx_wqe.cc does the same for the functions that write segments, at all
 * sizes; here it is about which of them an operation calls, and with what.
 */
#include "dc_twin.h"
#include "dcx_loop.h"

namespace {

/* --- the comparison ------------------------------------------------------- */

class dcx_post : public testing::TestWithParam<bool> {
protected:
    dcx_post() : m_twin(m_dev, m_dcx.view().dctn, m_dcx.view().dc_key)
    {
        /* as the options of the mode say: see main() */
        struct ibv_ah_attr attr = m_dev.ah_attr(GetParam());

        attr.sl = 3;
        if (GetParam()) {
            attr.grh.traffic_class = 33;
            attr.grh.hop_limit     = 17;
        }
        HCA_CHECK_CALL((m_ah = ibv_create_ah(m_dev.pd, &attr)) != NULL);
        m_rkey = dcx_peek_rkey(m_dcx.memh);
        m_lkey = dcx_peek_lkey(m_dcx.memh);
        m_remote = (uintptr_t)m_dcx.mem.data() + 8192;
    }

    ~dcx_post()
    {
        m_dcx.flush();
        EXPECT_EQ(0, ibv_destroy_ah(m_ah));
        EXPECT_EQ("", m_log.take()) << "the device complained";
    }

    static std::vector<uint8_t> pattern(size_t length)
    {
        std::vector<uint8_t> data(length);

        for (size_t i = 0; i < length; i++) {
            data[i] = 1 + i * 7;
        }
        return data;
    }

    bool is_compact() const
    {
        return !GetParam();
    }

    /* What libmlx5 writes, with index and QP those of `view` */
    wqe_bytes theirs(const dc_op &op, const struct dcx_view &view)
    {
        wqe_bytes wqe = m_twin.post(op, m_ah);

        wqe[1] = view.pi >> 8;
        wqe[2] = view.pi;
        wqe[4] = view.qpn >> 16;
        wqe[5] = view.qpn >> 8;
        wqe[6] = view.qpn;
        return is_compact() ? dc_compacted(wqe) : wqe;
    }

    /* RoCE v2: rlid is the source port of UDP, which libmlx5 draws by lot for
     * each address handle without a flow label (mlx5_ah_set_udp_sport()) */
    static void draw_lot(wqe_bytes &wqe)
    {
        uint16_t port = (wqe[30] << 8) | wqe[31];

        EXPECT_GE(port, 0xc000);
        wqe[30] = wqe[31] = 0;
    }

    std::string diff(wqe_bytes theirs, wqe_bytes ours) const
    {
        if (m_dev.is_roce()) {
            draw_lot(theirs);
            draw_lot(ours);
        }
        return wqe_diff("libmlx5", theirs, "dcx", ours);
    }

    /* Calls `call`, which has to post one WQE. Returns what it wrote. */
    wqe_bytes ours(const std::function<int()> &call)
    {
        struct dcx_view before, after;

        m_dcx.flush();
        before = m_dcx.view();
        m_status = call();
        EXPECT_TRUE((m_status >= 0) || (m_status == UCS_INPROGRESS))
                << ucs_status_string((ucs_status_t)m_status);
        wqe_bytes wqe = dc_twin::wqe_at(before.ring, before.num_bb, before.pi);
        after = m_dcx.view();
        EXPECT_EQ((wqe.size() + 63) / 64, (uint16_t)(after.pi - before.pi))
                << "one WQE";
        EXPECT_EQ(after.pi, after.dbrec) << "doorbell record";
        m_dcx.flush();
        return wqe;
    }

    void expect_same(const char *what, const dc_op &op,
                     const std::function<int()> &call)
    {
        struct dcx_view view = idle_view();

        EXPECT_EQ("", diff(theirs(op, view), ours(call))) << what;
    }

    struct dcx_view idle_view()
    {
        m_dcx.flush();
        return m_dcx.view();
    }

    dc_op remote(dc_op op) const
    {
        op.raddr = m_remote;
        op.rkey  = m_rkey;
        return op;
    }

    uct_iov_t iov(size_t offset, size_t length)
    {
        uct_iov_t iov = {};

        iov.buffer = m_dcx.mem.data() + offset;
        iov.length = length;
        iov.memh   = m_dcx.memh;
        iov.count  = 1;
        return iov;
    }

    std::vector<uct_iov_t> iovs(unsigned n)
    {
        std::vector<uct_iov_t> list;

        for (unsigned i = 0; i < n; i++) {
            list.push_back(iov(i * 64, 8 + i));
        }
        return list;
    }

    std::vector<struct ibv_sge> sges(const std::vector<uct_iov_t> &iovs) const
    {
        std::vector<struct ibv_sge> list;

        for (const auto &iov : iovs) {
            list.push_back({(uintptr_t)iov.buffer, (uint32_t)iov.length,
                            m_lkey});
        }
        return list;
    }

    /* The data segment of a copied operation names a buffer of dcx: where it
     * is, dcx knows; that it has the data in it, the test can see. */
    dc_op with_buffer_of(dc_op op, const wqe_bytes &wqe, uint32_t length)
    {
        wqe_fields fields(wqe);
        uint64_t addr = fields.find("data0.addr")->value;
        uint32_t lkey = fields.find("data0.lkey")->value;

        op.sges = {{addr, length, lkey}};
        return op;
    }

    hca_log_reader m_log;
    hca_device     m_dev;
    dcx_loop       m_dcx;
    dc_twin        m_twin;
    struct ibv_ah  *m_ah;
    uint32_t       m_lkey, m_rkey;
    uint64_t       m_remote;
    int            m_status = 0;
};

/* What precedes an active message: IBV_TMH_NO_TAG and the id */
const uint8_t am_hdr[] = {0, 5};

std::vector<uint8_t> operator+(std::vector<uint8_t> a,
                               const std::vector<uint8_t> &b)
{
    a.insert(a.end(), b.begin(), b.end());
    return a;
}

std::vector<uint8_t> am_bytes(const void *data, size_t length)
{
    return std::vector<uint8_t>(am_hdr, am_hdr + sizeof(am_hdr)) +
           std::vector<uint8_t>((const uint8_t*)data,
                                (const uint8_t*)data + length);
}

size_t pack(void *dest, void *arg)
{
    const auto *data = (const std::vector<uint8_t>*)arg;

    memcpy(dest, data->data(), data->size());
    return data->size();
}

void unpack(void*, const void*, size_t)
{
}

/* --- active messages ------------------------------------------------------ */

TEST_P(dcx_post, am_short)
{
    const uint64_t header = 0x1122334455667788;

    for (size_t length = 0; length <= m_dcx.view().am_short; length++) {
        auto data = pattern(length);
        dc_op op  = {.opcode = MLX5_OPCODE_SEND, .flags = IBV_SEND_SOLICITED,
                     .inl = am_bytes(&header, sizeof(header)) + data};

        expect_same("am_short", op, [&] {
            return uct_ep_am_short(m_dcx.ep, 5, header, data.data(), length);
        });
    }
}

TEST_P(dcx_post, am_short_iov)
{
    auto list = iovs(3);
    dc_op op  = {.opcode = MLX5_OPCODE_SEND, .flags = IBV_SEND_SOLICITED,
                 .inl = am_bytes(NULL, 0)};

    for (const auto &iov : list) {
        op.inl = op.inl + std::vector<uint8_t>((uint8_t*)iov.buffer,
                                               (uint8_t*)iov.buffer +
                                               iov.length);
    }
    expect_same("am_short_iov", op, [&] {
        return uct_ep_am_short_iov(m_dcx.ep, 5, list.data(), list.size());
    });
}

TEST_P(dcx_post, am_bcopy)
{
    for (size_t length : {0, 1, 100, 8192}) {
        auto data            = pattern(length);
        struct dcx_view view = idle_view();
        dc_op op = {.opcode = MLX5_OPCODE_SEND, .flags = IBV_SEND_SOLICITED};
        wqe_bytes wqe = ours([&] {
            return uct_ep_am_bcopy(m_dcx.ep, 5, pack, &data, 0);
        });

        op = with_buffer_of(op, wqe, length + sizeof(am_hdr));
        EXPECT_EQ("", diff(theirs(op, view), wqe));
        EXPECT_EQ(0, memcmp((void*)op.sges[0].addr,
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
            dc_op op = {.opcode = MLX5_OPCODE_SEND,
                        .flags = IBV_SEND_SOLICITED,
                        .inl = am_bytes(header.data(), header_length)};
            dc_op op2 = {.opcode = MLX5_OPCODE_SEND, .sges = sges(list)};
            wqe_bytes expected = theirs(op, view);
            wqe_bytes tail     = theirs(op2, view);

            expected.insert(expected.end(),
                            tail.begin() + (is_compact() ? 32 : 64),
                            tail.end());
            expected[7] = expected.size() / 16;
            EXPECT_EQ("", diff(expected, ours([&] {
                return uct_ep_am_zcopy(m_dcx.ep, 5, header.data(),
                                       header_length, list.data(), n, 0,
                                       NULL);
            }))) << header_length << " bytes and " << n << " pieces";
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
            return uct_ep_put_short(m_dcx.ep, data.data(), length, m_remote,
                                    m_rkey);
        });
    }
}

TEST_P(dcx_post, put_bcopy)
{
    auto data            = pattern(1000);
    struct dcx_view view = idle_view();
    wqe_bytes wqe        = ours([&] {
        return uct_ep_put_bcopy(m_dcx.ep, pack, &data, m_remote, m_rkey);
    });
    dc_op op = with_buffer_of(remote({.opcode = MLX5_OPCODE_RDMA_WRITE}), wqe,
                              data.size());

    EXPECT_EQ("", diff(theirs(op, view), wqe));
    EXPECT_EQ(0, memcmp((void*)op.sges[0].addr, data.data(), data.size()));
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
    EXPECT_EQ(0, memcmp((void*)op.sges[0].addr, (void*)m_remote, 1000));
}

TEST_P(dcx_post, put_and_get_zcopy)
{
    /* as many as the twin has room for */
    ASSERT_LE(m_dcx.view().rma_iov, (size_t)dc_twin::max_sge);
    for (unsigned n = 1; n <= m_dcx.view().rma_iov; n++) {
        auto list = iovs(n);

        for (unsigned empty = 0; empty <= n; empty++) {
            /* none, then each of the pieces but one alone */
            if ((empty > 0) && (n > 1)) {
                list                   = iovs(n);
                list[empty - 1].length = 0;
            }
            expect_same("put_zcopy",
                        remote({.opcode = MLX5_OPCODE_RDMA_WRITE,
                                .sges = sges(list)}), [&] {
                return uct_ep_put_zcopy(m_dcx.ep, list.data(), n, m_remote,
                                        m_rkey, NULL);
            });
            expect_same("get_zcopy",
                        remote({.opcode = MLX5_OPCODE_RDMA_READ,
                                .sges = sges(list)}), [&] {
                return uct_ep_get_zcopy(m_dcx.ep, list.data(), n, m_remote,
                                        m_rkey, NULL);
            });
        }
    }
}

/* --- atomics -------------------------------------------------------------- */

/* Where the result goes is dcx's: taken from its WQE, of `size` bytes */
TEST_P(dcx_post, plain_atomics)
{
    const uint64_t value = 0x0123456789abcdef, compare = 0x1111111111111111;
    uint64_t result;
    const struct {
        const char           *name;
        dc_op                op;
        std::function<int()> call;
    } rows[] = {
        {"add64", {.opcode = MLX5_OPCODE_ATOMIC_FA, .swap_add = value}, [&] {
            return uct_ep_atomic64_post(m_dcx.ep, UCT_ATOMIC_OP_ADD, value,
                                        m_remote, m_rkey);
        }},
        {"fadd64", {.opcode = MLX5_OPCODE_ATOMIC_FA, .swap_add = value}, [&] {
            return uct_ep_atomic64_fetch(m_dcx.ep, UCT_ATOMIC_OP_ADD, value,
                                         &result, m_remote, m_rkey, NULL);
        }},
        {"cswap64", {.opcode = MLX5_OPCODE_ATOMIC_CS, .swap_add = value,
                     .compare = compare}, [&] {
            return uct_ep_atomic_cswap64(m_dcx.ep, compare, value, m_remote,
                                         m_rkey, &result, NULL);
        }},
    };

    for (const auto &row : rows) {
        struct dcx_view view = idle_view();
        wqe_bytes wqe        = ours(row.call);
        dc_op op             = with_buffer_of(remote(row.op), wqe, 8);

        EXPECT_EQ("", diff(theirs(op, view), wqe))
                << row.name;
    }
}

/* libmlx5 builds none of these. The operands are checked by value; the rest
 * has to be libmlx5's of a fetch-and-add, and the outcome right. */
struct masked_op {
    const char                                    *name;
    unsigned                                      op;   /* UCT_ATOMIC_OP_* */
    uint8_t                                       opcode;
    uint64_t                                      swap_mask, boundary;
    std::function<uint64_t(uint64_t, uint64_t)>   outcome;
};

const uint64_t masked_value = 0x0f1e2d3c4b5a6978;

const masked_op masked_ops[] = {
    {"add", UCT_ATOMIC_OP_ADD, MLX5_OPCODE_ATOMIC_MASKED_FA, 0, 0,
     [](uint64_t a, uint64_t b) { return a + b; }},
    {"and", UCT_ATOMIC_OP_AND, MLX5_OPCODE_ATOMIC_MASKED_CS, ~masked_value, 0,
     [](uint64_t a, uint64_t b) { return a & b; }},
    {"or", UCT_ATOMIC_OP_OR, MLX5_OPCODE_ATOMIC_MASKED_CS, masked_value, 0,
     [](uint64_t a, uint64_t b) { return a | b; }},
    {"xor", UCT_ATOMIC_OP_XOR, MLX5_OPCODE_ATOMIC_MASKED_FA, 0, UINT64_MAX,
     [](uint64_t a, uint64_t b) { return a ^ b; }},
    {"swap", UCT_ATOMIC_OP_SWAP, MLX5_OPCODE_ATOMIC_MASKED_CS, UINT64_MAX, 0,
     [](uint64_t, uint64_t b) { return b; }},
};

/* Cuts the operands out and makes the opcode that of a read */
wqe_bytes without_operands(wqe_bytes wqe, size_t at, unsigned segs)
{
    wqe.erase(wqe.begin() + at, wqe.begin() + at + segs * 16);
    wqe[0]  = 0;
    wqe[3]  = MLX5_OPCODE_RDMA_READ;
    wqe[7] -= segs;
    return wqe;
}

class dcx_post_masked : public dcx_post {
protected:
    void check_wqe(const masked_op &op, unsigned size, const wqe_bytes &wqe,
                   const struct dcx_view &view)
    {
        const uint64_t all = (size == 8) ? UINT64_MAX : UINT32_MAX;
        const bool is_cs   = op.opcode == MLX5_OPCODE_ATOMIC_MASKED_CS;
        size_t at          = is_compact() ? 48 : 80;
        wqe_fields fields(wqe);
        auto value = [&](const char *name) {
            return (fields.find(name) == nullptr) ? ~0ull - 1 :
                   fields.find(name)->value;
        };

        EXPECT_EQ(op.opcode, value("ctrl.opcode"));
        EXPECT_EQ((size == 8) ? 9u : 8u, value("ctrl.opmod"));
        EXPECT_EQ(masked_value & all, value(is_cs ? "atomic.swap" :
                                                    "atomic.add"));
        if (is_cs) {
            EXPECT_EQ(op.swap_mask & all, value("atomic.swap_mask"));
            EXPECT_EQ(0u, value("atomic.compare_mask"));
        } else {
            EXPECT_EQ(op.boundary & all, value("atomic.field_boundary"));
        }

        dc_op plain = with_buffer_of(remote({.opcode = MLX5_OPCODE_ATOMIC_FA}),
                                     wqe, size);
        EXPECT_EQ("", diff(without_operands(theirs(plain, view), at, 1),
                           without_operands(wqe, at, (is_cs && size == 8) ?
                                                     2 : 1)));
    }

    void run(const masked_op &op, unsigned size)
    {
        uint64_t before = 0x1122334455667788, result = 0, after = 0;
        struct dcx_view view;
        wqe_bytes wqe;

        memcpy((void*)m_remote, &before, sizeof(before));
        view = idle_view();
        wqe  = ours([&] {
            return (size == 8) ?
                   uct_ep_atomic64_fetch(m_dcx.ep, (uct_atomic_op_t)op.op,
                                         masked_value, &result, m_remote,
                                         m_rkey, NULL) :
                   uct_ep_atomic32_fetch(m_dcx.ep, (uct_atomic_op_t)op.op,
                                         (uint32_t)masked_value,
                                         (uint32_t*)&result, m_remote, m_rkey,
                                         NULL);
        });
        check_wqe(op, size, wqe, view);

        memcpy(&after, (void*)m_remote, size);
        if (size == 8) {
            EXPECT_EQ(before, result);
            EXPECT_EQ(op.outcome(before, masked_value), after);
        } else {
            EXPECT_EQ((uint32_t)before, result);
            EXPECT_EQ((uint32_t)op.outcome((uint32_t)before,
                                           (uint32_t)masked_value), after);
        }
    }
};

TEST_P(dcx_post_masked, fetch)
{
    for (const auto &op : masked_ops) {
        for (unsigned size : {4, 8}) {
            if ((size == 8) && (op.op == UCT_ATOMIC_OP_ADD)) {
                continue; /* a plain one */
            }
            run(op, size);
            EXPECT_FALSE(HasFailure()) << op.name << size * 8;
        }
    }
}

TEST_P(dcx_post_masked, cswap32)
{
    for (bool matches : {true, false}) {
        uint32_t before = 0x55667788, compare = before ^ !matches, result = 0;

        memcpy((void*)m_remote, &before, sizeof(before));
        wqe_bytes wqe = ours([&] {
            return uct_ep_atomic_cswap32(m_dcx.ep, compare, 0x0a0b0c0d,
                                         m_remote, m_rkey, &result, NULL);
        });
        wqe_fields fields(wqe);

        EXPECT_EQ(0x0a0b0c0du, fields.find("atomic.swap")->value);
        EXPECT_EQ(compare, fields.find("atomic.compare")->value);
        EXPECT_EQ(UINT32_MAX, fields.find("atomic.swap_mask")->value);
        EXPECT_EQ(UINT32_MAX, fields.find("atomic.compare_mask")->value);
        EXPECT_EQ(before, result);
        EXPECT_EQ(matches ? 0x0a0b0c0d : before, *(uint32_t*)m_remote);
    }
}

/* --- what moves no data --------------------------------------------------- */

/* A write of no bytes asks whether the peer is there. */
TEST_P(dcx_post, check)
{
    dc_op op = {.opcode = MLX5_OPCODE_RDMA_WRITE};

    expect_same("ep_check", op, [&] {
        return uct_ep_check(m_dcx.ep, 0, NULL);
    });
}

TEST_P(dcx_post, fence)
{
    auto data = pattern(16);
    dc_op op  = remote({.opcode = MLX5_OPCODE_RDMA_WRITE,
                        .flags = IBV_SEND_FENCE, .inl = data});
    wqe_bytes second;

    /* only what is outstanding has to be waited for */
    m_dcx.flush();
    EXPECT_EQ(UCS_INPROGRESS,
              uct_ep_get_bcopy(m_dcx.ep, unpack, NULL, 8, m_remote, m_rkey,
                               NULL));
    EXPECT_EQ(UCS_OK, uct_ep_fence(m_dcx.ep, 0));
    struct dcx_view view = m_dcx.view();

    EXPECT_EQ(UCS_OK, uct_ep_put_short(m_dcx.ep, data.data(), data.size(),
                                       m_remote, m_rkey));
    EXPECT_EQ("", diff(theirs(op, view),
                       dc_twin::wqe_at(view.ring, view.num_bb, view.pi)));
}

/* Who gives a peer up puts the queue in error, and a NOP behind what is on the
 * way, which carries the address vector as that of UCX's dc_mlx5 does. */
TEST_P(dcx_post, cancel)
{
    uct_completion_t comp = {};

    comp.func  = [](uct_completion_t*) {};
    comp.count = 1;
    m_dcx.flush();
    EXPECT_EQ(UCS_INPROGRESS,
              uct_ep_get_bcopy(m_dcx.ep, unpack, NULL, 8, m_remote, m_rkey,
                               NULL));
    struct dcx_view view = m_dcx.view();
    wqe_bytes expected   = theirs({.opcode = MLX5_OPCODE_SEND}, view);

    expected[3] = MLX5_OPCODE_NOP;
    EXPECT_EQ(UCS_INPROGRESS,
              uct_ep_flush(m_dcx.ep, UCT_FLUSH_FLAG_CANCEL, &comp));
    EXPECT_EQ("", diff(expected, dc_twin::wqe_at(view.ring, view.num_bb,
                                                 view.pi)));
    m_dcx.flush();
    EXPECT_EQ(0, comp.count);
}

/* Posted so often that WQEs lie across the end of the ring at each place */
TEST_P(dcx_post, ring_end)
{
    unsigned wraps = 0, straddles = 0;

    for (unsigned i = 0; wraps < 8; i++) {
        struct dcx_view view = idle_view();
        auto data            = pattern(1 + (i * 5) % view.put_short);

        expect_same("put_short",
                    remote({.opcode = MLX5_OPCODE_RDMA_WRITE, .inl = data}),
                    [&] {
            return uct_ep_put_short(m_dcx.ep, data.data(), data.size(),
                                    m_remote, m_rkey);
        });
        unsigned from = view.pi % view.num_bb;
        unsigned to   = m_dcx.view().pi % view.num_bb;

        wraps     += to < from;
        straddles += (to < from) && (to != 0);
    }
    EXPECT_GT(straddles, 0u);
}

std::string grh_name(const testing::TestParamInfo<bool> &info)
{
    return info.param ? "grh" : "compact";
}

#define DCX_POST_MODE(_mode, _is_global) \
    INSTANTIATE_TEST_SUITE_P(_mode, dcx_post, testing::Values(_is_global), \
                             grh_name); \
    INSTANTIATE_TEST_SUITE_P(_mode, dcx_post_masked, \
                             testing::Values(_is_global), grh_name)

DCX_POST_MODE(ib, false);
DCX_POST_MODE(global, true);
DCX_POST_MODE(roce, true);

} /* namespace */

int main(int argc, char **argv)
{
    std::vector<std::pair<const char*, const char*>> env = {
        {"UCX_DCX_NUM_DCI", "1"}, {"UCX_DCX_TX_QUEUE_LEN", "8"},
        {"UCX_DCX_FC_ENABLE", "n"}, /* nothing but what is called */
        {"UCX_DCX_TX_CQ_MODERATION", "1"}, /* each asks, as libmlx5's do */
        {"UCX_DCX_RX_QUEUE_LEN", "64"}, {"UCX_DCX_SL", "3"},
        {"UCX_DCX_TRAFFIC_CLASS", "33"}, {"UCX_DCX_HOP_LIMIT", "17"}
    };
    auto global = env, roce = env;

    global.push_back({"UCX_DCX_IS_GLOBAL", "y"});
    roce.push_back({"SOFTHCA_LINK", "roce"});
    roce.push_back({"UCX_DCX_GID_INDEX", "1"});
    return hca_test_main(argc, argv, {{"ib", env}, {"global", global},
                                      {"roce", roce}});
}
