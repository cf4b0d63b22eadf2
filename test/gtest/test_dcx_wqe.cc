/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The WQEs of dcx are those of libmlx5: each operation is posted through the
 * builders of libmlx5 on a DC initiator, written into a plain buffer by the
 * functions of dcx_wqe.h, and compared field by field. Where libmlx5 has no
 * builder (atomics with masks, NOP), the layout is written out here, with its
 * source. A last group of tests sees to it that the comparison can fail.
 */
#include "dc_twin.h"

#include <functional>

/* C headers: constants of different enumerations may meet */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-enum-enum-conversion"
extern "C" {
#include "uct/dcx/dcx_sq.h"
}
#pragma GCC diagnostic pop

namespace {

enum av_form {
    AV_COMPACT,  /* 16 bytes: InfiniBand without GRH */
    AV_EXTENDED, /* 48 bytes, without GRH: devices that know no compact one */
    AV_GRH       /* 48 bytes with GRH; the only form on RoCE */
};

const char *const av_names[] = {"compact", "extended", "grh"};

constexpr uint8_t canary = 0xa5;

struct alignas(64) ring_block {
    uint8_t bytes[64];
};

/* A ring in plain memory, written by dcx */
class dcx_ring {
public:
    dcx_ring(unsigned num_bb, uint32_t qpn) :
        m_blocks(num_bb), m_mem(m_blocks[0].bytes), m_size(num_bb * 64),
        m_mask(num_bb - 1), m_qpn(qpn)
    {
        memset(m_mem, canary, m_size);
    }

    /* Begins a WQE; `av` as mlx5dv_init_obj() shows it */
    void begin(uint16_t index, const struct mlx5_wqe_av &av, av_form form,
               uint32_t dctn)
    {
        uct_dcx_av_t base;
        uct_dcx_grh_t grh;

        memcpy(&base, &av, sizeof(base));
        memcpy(&grh, (const char*)&av + sizeof(base), sizeof(grh));
        base.key     = htobe64(dc_target::key);
        base.dqp_dct = htobe32((form == AV_COMPACT) ?
                               dctn : dctn | MLX5_EXTENDED_UD_AV);

        m_index = index;
        uct_dcx_wqe_begin(&wqe, m_mem, m_mask, index);
        uct_dcx_wqe_av(&wqe, &base);
        if (form != AV_COMPACT) {
            uct_dcx_wqe_grh(&wqe, &grh);
        }
    }

    void put_inline(const std::vector<uint8_t> &data)
    {
        size_t half = data.size() / 2;

        /* in two pieces, as header and payload */
        uct_dcx_wqe_inline_begin(&wqe, data.size());
        uct_dcx_wqe_inline_put(&wqe, data.data(), half);
        uct_dcx_wqe_inline_put(&wqe, data.data() + half, data.size() - half);
        uct_dcx_wqe_inline_end(&wqe);
    }

    void put_sges(const std::vector<struct ibv_sge> &sges)
    {
        for (const auto &sge : sges) {
            if (sge.length > 0) {
                uct_dcx_wqe_data(&wqe, (void*)sge.addr, sge.length, sge.lkey);
            }
        }
    }

    /* Closes it. Returns its bytes; nothing else was written. */
    wqe_bytes finish(uint8_t opcode, unsigned flags, uint8_t opmod = 0,
                     uint16_t stream = 0)
    {
        size_t start            = (m_index & m_mask) * 64u;
        uct_dcx_wqe_ctrl_t ctrl = {};
        wqe_bytes bytes(wqe.ds * 16);

        ctrl.opcode = opcode;
        ctrl.opmod  = opmod;
        ctrl.index  = m_index;
        ctrl.flags  = MLX5_WQE_CTRL_CQ_UPDATE |
                      ((flags & IBV_SEND_SOLICITED) ?
                       MLX5_WQE_CTRL_SOLICITED : 0) |
                      ((flags & IBV_SEND_FENCE) ? MLX5_WQE_CTRL_FENCE : 0) |
                      UCT_DCX_WQE_STREAM(stream);
        ctrl.sender = uct_dcx_wqe_sender(m_qpn);
        doorbell    = uct_dcx_wqe_finish(&wqe, m_mem + start, &ctrl);
        EXPECT_EQ(std::vector<uint8_t>(4),
                  std::vector<uint8_t>(&m_mem[start + 12], &m_mem[start + 16]))
                << "immediate";

        EXPECT_EQ((start + wqe.ds * 16) % m_size,
                  (size_t)(wqe.pos - m_mem) % m_size)
                << "the cursor is not behind the WQE";
        for (size_t i = 0; i < m_size; i++) {
            uint8_t &byte = m_mem[(start + i) % m_size];

            if (i < bytes.size()) {
                bytes[i] = byte;
            } else {
                EXPECT_EQ(canary, byte) << i << " bytes behind its start";
            }
            byte = canary;
        }
        return bytes;
    }

    uct_dcx_wqe_t wqe;
    uint64_t      doorbell;

private:
    std::vector<ring_block> m_blocks;
    uint8_t                 *m_mem;
    size_t                  m_size;
    unsigned                m_mask;
    uint32_t                m_qpn;
    uint16_t                m_index;
};

class dcx_wqe : public testing::TestWithParam<av_form> {
protected:
    explicit dcx_wqe(bool has_streams = false) :
        m_target(m_dev), m_twin(m_dev, m_target, has_streams),
        m_ring(m_twin.num_bb(), m_twin.qpn()), m_mem(4096, 0x11)
    {
        struct ibv_ah_attr attr = m_dev.ah_attr(GetParam() == AV_GRH);
        struct mlx5dv_obj obj   = {};
        struct mlx5dv_ah dv_ah  = {};

        attr.sl = 3;
        if (GetParam() == AV_GRH) {
            attr.grh.traffic_class = 106;
            attr.grh.flow_label    = 0x54321;
        } else {
            attr.src_path_bits = 0; /* the port has one lid */
        }
        HCA_CHECK_CALL((m_ah = ibv_create_ah(m_dev.pd, &attr)));
        obj.ah.in  = m_ah;
        obj.ah.out = &dv_ah;
        HCA_CHECK_CALL(mlx5dv_init_obj(&obj, MLX5DV_OBJ_AH) == 0);
        m_av = *dv_ah.av;
        HCA_CHECK_CALL((m_mr = ibv_reg_mr(m_dev.pd, m_mem.data(), m_mem.size(),
                                          IBV_ACCESS_LOCAL_WRITE |
                                          IBV_ACCESS_REMOTE_READ |
                                          IBV_ACCESS_REMOTE_WRITE |
                                          IBV_ACCESS_REMOTE_ATOMIC)));
    }

    ~dcx_wqe()
    {
        EXPECT_EQ(0, ibv_dereg_mr(m_mr));
        EXPECT_EQ(0, ibv_destroy_ah(m_ah));
        EXPECT_EQ("", m_log.take()) << "the device complained";
    }

    static std::vector<uint8_t> pattern(size_t length)
    {
        std::vector<uint8_t> data(length);

        for (size_t i = 0; i < length; i++) {
            data[i] = 1 + (i * 7) + (i >> 8);
        }
        return data;
    }

    /* n pieces of the registered memory, in no order */
    std::vector<struct ibv_sge> pieces(unsigned n, uint32_t length = 24) const
    {
        std::vector<struct ibv_sge> sges;

        for (unsigned i = 0; i < n; i++) {
            sges.push_back({(uintptr_t)m_mem.data() + ((i * 5) % 16) * 64 + i,
                            length + i, m_mr->lkey});
        }
        return sges;
    }

    /* Fills in what operations on remote memory need */
    dc_op remote(dc_op op) const
    {
        op.raddr = (uintptr_t)m_mem.data() + 2048;
        op.rkey  = m_mr->rkey;
        return op;
    }

    wqe_bytes post(const dc_op &op)
    {
        wqe_bytes wqe = m_twin.post(op, m_ah);

        return (GetParam() == AV_COMPACT) ? dc_compacted(wqe) : wqe;
    }

    void begin(uint16_t index)
    {
        m_ring.begin(index, m_av, GetParam(), m_target.dctn());
    }

    wqe_bytes build(const dc_op &op, uint16_t index)
    {
        begin(index);
        if ((op.opcode != MLX5_OPCODE_SEND) &&
            (op.opcode != MLX5_OPCODE_SEND_IMM)) {
            uct_dcx_wqe_raddr(&m_ring.wqe, op.raddr, op.rkey);
        }
        if ((op.opcode == MLX5_OPCODE_ATOMIC_CS) ||
            (op.opcode == MLX5_OPCODE_ATOMIC_FA)) {
            uct_dcx_wqe_atomic(&m_ring.wqe, op.swap_add, op.compare);
        }
        if (!op.inl.empty()) {
            m_ring.put_inline(op.inl);
        }
        m_ring.put_sges(op.sges);
        return m_ring.finish(op.opcode, op.flags, 0, op.stream);
    }

    /* The one comparison; returns what dcx wrote */
    wqe_bytes expect_same(const dc_op &op)
    {
        uint16_t index   = m_twin.index();
        wqe_bytes theirs = post(op);
        wqe_bytes ours   = build(op, index);

        EXPECT_EQ("", wqe_diff("libmlx5", theirs, "dcx", ours))
                << "opcode " << (int)op.opcode << ", index " << index;
        EXPECT_EQ(theirs.size(), ours.size());
        return ours;
    }

    /* One of each operation that dcx writes and libmlx5 can build */
    std::vector<dc_op> all_ops() const
    {
        uint64_t swap = 0x0102030405060708, compare = 0x1112131415161718;

        return {
            {.opcode = MLX5_OPCODE_SEND, .inl = pattern(21)},
            {.opcode = MLX5_OPCODE_SEND, .sges = pieces(3)},
            remote({.opcode = MLX5_OPCODE_RDMA_WRITE, .inl = pattern(21)}),
            remote({.opcode = MLX5_OPCODE_RDMA_WRITE, .sges = pieces(3)}),
            remote({.opcode = MLX5_OPCODE_RDMA_WRITE}), /* the probe */
            remote({.opcode = MLX5_OPCODE_RDMA_READ, .sges = pieces(3)}),
            remote({.opcode = MLX5_OPCODE_ATOMIC_CS, .sges = pieces(1, 8),
                    .swap_add = swap, .compare = compare}),
            remote({.opcode = MLX5_OPCODE_ATOMIC_FA, .sges = pieces(1, 8),
                    .swap_add = swap}),
        };
    }

    hca_log_reader       m_log;
    hca_device           m_dev;
    dc_target            m_target;
    dc_twin              m_twin;
    dcx_ring             m_ring;
    std::vector<uint8_t> m_mem;
    struct ibv_mr        *m_mr;
    struct ibv_ah        *m_ah;
    struct mlx5_wqe_av   m_av;
};

/* Around the sizes at which one more segment, or block, begins */
std::vector<size_t> inline_sizes(size_t max)
{
    std::vector<size_t> sizes;

    for (size_t size = 1; size <= max; size++) {
        if ((size < 80) || (((size + 4 + 1) % 16) < 3) || (size > max - 3)) {
            sizes.push_back(size);
        }
    }
    return sizes;
}

TEST_P(dcx_wqe, send_inline)
{
    for (size_t size : inline_sizes(m_twin.max_inline())) {
        expect_same({.opcode = MLX5_OPCODE_SEND, .inl = pattern(size)});
        ASSERT_FALSE(HasFailure()) << size << " bytes";
    }
}

TEST_P(dcx_wqe, write_inline)
{
    for (size_t size : inline_sizes(m_twin.max_inline())) {
        expect_same(remote({.opcode = MLX5_OPCODE_RDMA_WRITE,
                            .inl    = pattern(size)}));
        ASSERT_FALSE(HasFailure()) << size << " bytes";
    }
}

TEST_P(dcx_wqe, data_segments)
{
    for (uint8_t opcode : {MLX5_OPCODE_SEND, MLX5_OPCODE_RDMA_WRITE,
                           MLX5_OPCODE_RDMA_READ}) {
        for (unsigned n = 1; n <= dc_twin::max_sge; n++) {
            expect_same(remote({.opcode = opcode, .sges = pieces(n)}));
        }
    }
}

/* Pieces of no length take no segment: to the device, 0 is 2 GiB */
TEST_P(dcx_wqe, empty_pieces)
{
    for (unsigned empty : {0, 1, 2}) {
        dc_op op = remote({.opcode = MLX5_OPCODE_RDMA_WRITE,
                           .sges   = pieces(3)});

        op.sges[empty].length = 0;
        EXPECT_EQ((GetParam() == AV_COMPACT) ? 5 * 16u : 7 * 16u,
                  expect_same(op).size());
    }
}

TEST_P(dcx_wqe, flags)
{
    for (unsigned flags : {0, (int)IBV_SEND_SOLICITED, (int)IBV_SEND_FENCE,
                           IBV_SEND_SOLICITED | IBV_SEND_FENCE}) {
        for (dc_op op : all_ops()) {
            op.flags = flags;
            expect_same(op);
        }
    }
}

/* At each of the last blocks, so that each segment meets the ring's end */
TEST_P(dcx_wqe, ring_end)
{
    std::vector<dc_op> ops = all_ops();

    ops.push_back(remote({.opcode = MLX5_OPCODE_RDMA_WRITE,
                          .inl    = pattern(m_twin.max_inline())}));
    ops.push_back({.opcode = MLX5_OPCODE_SEND, .inl = pattern(188)});
    ops.push_back(remote({.opcode = MLX5_OPCODE_RDMA_READ,
                          .sges   = pieces(dc_twin::max_sge)}));
    for (const auto &op : ops) {
        for (unsigned left = 1; left <= 17; left++) {
            m_twin.advance(m_twin.num_bb() - left, m_ah);
            expect_same(op);
            ASSERT_FALSE(HasFailure()) << left << " blocks before the end";
        }
    }
}

TEST_P(dcx_wqe, atomics)
{
    const uint64_t values[] = {0, 1, 0x0123456789abcdef, UINT64_MAX};

    for (uint64_t a : values) {
        expect_same(remote({.opcode = MLX5_OPCODE_ATOMIC_FA,
                            .sges = pieces(1, 8), .swap_add = a}));
        for (uint64_t b : values) {
            expect_same(remote({.opcode = MLX5_OPCODE_ATOMIC_CS,
                                .sges = pieces(1, 8), .swap_add = a,
                                .compare = b}));
        }
    }
}

/* A header that is inline and data that is not, in one message: libmlx5 sets
 * one or the other, so its two WQEs are put together. */
TEST_P(dcx_wqe, inline_and_data_segments)
{
    for (size_t size : {2, 12, 13, 28, 44, 188}) {
        uint16_t index = m_twin.index();
        dc_op op       = {.opcode = MLX5_OPCODE_SEND, .inl = pattern(size)};
        dc_op op2      = {.opcode = MLX5_OPCODE_SEND, .sges = pieces(5)};
        wqe_bytes theirs = post(op);
        wqe_bytes tail   = post(op2);
        size_t av_end    = (GetParam() == AV_COMPACT) ? 32 : 64;

        theirs.insert(theirs.end(), tail.begin() + av_end, tail.end());
        theirs[7] = theirs.size() / 16;

        op.sges = op2.sges;
        EXPECT_EQ("", wqe_diff("libmlx5", theirs, "dcx", build(op, index)));
    }
}

/* The record, and the eight bytes that go to the register: post_send_db() of
 * rdma-core (providers/mlx5/qp.c) stores the first eight of the last WQE. */
TEST_P(dcx_wqe, doorbell)
{
    volatile uint64_t reg[2] = {};
    volatile __be32 dbrec[2] = {};
    uct_dcx_sq_t sq          = {};

    sq.dbrec   = &dbrec[MLX5_SND_DBR];
    sq.bf      = (uintptr_t)&reg[0];
    sq.bf_flip = sizeof(reg[0]);
    for (const auto &op : all_ops()) {
        uint16_t index = m_twin.index();
        unsigned which = (sq.bf == (uintptr_t)&reg[0]) ? 0 : 1;
        wqe_bytes ours = expect_same(op);
        unsigned num_bb = uct_dcx_wqe_num_bb(&m_ring.wqe);

        uct_dcx_sq_ring(&sq, index, num_bb, m_ring.doorbell);
        EXPECT_EQ(0, memcmp((void*)&reg[which], ours.data(), 8));
        EXPECT_NE((uintptr_t)&reg[which], sq.bf) << "the other half is next";
        EXPECT_EQ(sq.pi, be32toh(dbrec[MLX5_SND_DBR]));
        EXPECT_EQ(0u, dbrec[MLX5_RCV_DBR]);
        if (GetParam() != AV_COMPACT) {
            EXPECT_EQ(m_twin.dbrec(), be32toh(dbrec[MLX5_SND_DBR]));
        }
    }
}

/* Indices have 16 bits, whatever the size of the ring */
TEST_P(dcx_wqe, index_wraps)
{
    dc_op filler = remote({.opcode = MLX5_OPCODE_RDMA_WRITE,
                           .inl    = pattern(800)});
    dc_op op     = remote({.opcode = MLX5_OPCODE_RDMA_WRITE,
                           .inl    = pattern(100)});

    while (m_twin.index() < 65500) {
        m_twin.post(filler, m_ah);
    }
    for (unsigned i = 0; i < 40; i++) {
        expect_same(op);
    }
    EXPECT_LT(m_twin.index(), 200);
}

/* An initiator with streams, with more numbers than it has at once */
class dcx_wqe_streams : public dcx_wqe {
protected:
    dcx_wqe_streams() : dcx_wqe(true)
    {
    }
};

TEST_P(dcx_wqe_streams, numbers)
{
    for (uint16_t stream : {0, 1, 7, 0x80, 0x100, 0x1234, 0xffff}) {
        for (dc_op op : all_ops()) {
            op.stream = stream;
            op.flags  = (stream & 1) ? IBV_SEND_FENCE : 0;

            wqe_bytes ours = expect_same(op);
            EXPECT_EQ(stream >> 8, ours[9]);
            EXPECT_EQ(stream & 0xff, ours[10]);
        }
    }
}

/* --- what libmlx5 has no builder for ------------------------------------- */

struct expected_field {
    const char *name;
    uint64_t   value;
};

/* Each operation with masks, as dcx writes it, against the values its fields
 * have to have (wqe_fields.h tells where they are and by which source). The
 * opmod is 8 + log2(operand size) - 2: UCT_IB_MLX5_OPMOD_EXT_ATOMIC of UCX. */
struct masked_row {
    const char                        *name;
    uint8_t                           opcode;
    uint8_t                           opmod;
    std::function<void(uct_dcx_wqe_t*)> put;
    unsigned                          segs;
    std::vector<expected_field>       fields;
};

const uct_dcx_wqe_masked_cswap_t cswap_args = {
    0x0102030405060708, 0x1112131415161718, 0x2122232425262728,
    0x3132333435363738
};

const masked_row masked_rows[] = {
    {"cswap64", MLX5_OPCODE_ATOMIC_MASKED_CS, 0x09,
     [](uct_dcx_wqe_t *wqe) { uct_dcx_wqe_masked_cswap64(wqe, &cswap_args); },
     2, {{"atomic.swap", 0x0102030405060708},
         {"atomic.compare", 0x1112131415161718},
         {"atomic.swap_mask", 0x2122232425262728},
         {"atomic.compare_mask", 0x3132333435363738}}},
    {"cswap32", MLX5_OPCODE_ATOMIC_MASKED_CS, 0x08,
     [](uct_dcx_wqe_t *wqe) { uct_dcx_wqe_masked_cswap32(wqe, &cswap_args); },
     1, {{"atomic.swap", 0x05060708}, {"atomic.compare", 0x15161718},
         {"atomic.swap_mask", 0x25262728},
         {"atomic.compare_mask", 0x35363738}}},
    {"fadd64", MLX5_OPCODE_ATOMIC_MASKED_FA, 0x09,
     [](uct_dcx_wqe_t *wqe) {
         uct_dcx_wqe_masked_fadd64(wqe, 0x0102030405060708,
                                   0x8000000080000000);
     },
     1, {{"atomic.add", 0x0102030405060708},
         {"atomic.field_boundary", 0x8000000080000000}}},
    {"fadd32", MLX5_OPCODE_ATOMIC_MASKED_FA, 0x08,
     [](uct_dcx_wqe_t *wqe) {
         uct_dcx_wqe_masked_fadd32(wqe, 0x01020304, 0x80008000);
     },
     1, {{"atomic.add", 0x01020304}, {"atomic.field_boundary", 0x80008000},
         {"atomic.reserved", 0}}},
};

TEST_P(dcx_wqe, masked_atomics)
{
    const unsigned last = m_twin.num_bb() - 1;
    dc_op op = remote({.opcode = MLX5_OPCODE_ATOMIC_FA, .sges = pieces(1, 8)});

    for (const auto &row : masked_rows) {
        for (uint16_t index : {(uint16_t)0, (uint16_t)last}) {
            /* ctrl, av, raddr and data are those of a fetch-and-add */
            m_twin.advance(index, m_ah);
            index            = m_twin.index();
            wqe_bytes theirs = post(op);
            size_t at        = (GetParam() == AV_COMPACT) ? 48 : 80;

            begin(index);
            uct_dcx_wqe_raddr(&m_ring.wqe, op.raddr, op.rkey);
            row.put(&m_ring.wqe);
            m_ring.put_sges(op.sges);
            wqe_bytes ours = m_ring.finish(row.opcode, 0, row.opmod);
            wqe_fields fields(ours);

            for (const auto &field : row.fields) {
                ASSERT_NE(nullptr, fields.find(field.name)) << row.name;
                EXPECT_EQ(field.value, fields.find(field.name)->value)
                        << row.name << " " << field.name;
            }
            EXPECT_EQ(row.opcode, fields.find("ctrl.opcode")->value);
            EXPECT_EQ(row.opmod, fields.find("ctrl.opmod")->value);

            /* take out what is its own, the rest has to be libmlx5's */
            ours.erase(ours.begin() + at, ours.begin() + at + row.segs * 16);
            theirs.erase(theirs.begin() + at, theirs.begin() + at + 16);
            ours[7]  -= row.segs;
            theirs[7] -= 1;
            ours[0] = theirs[0] = 0;
            ours[3] = theirs[3] = MLX5_OPCODE_RDMA_READ;
            EXPECT_EQ("", wqe_diff("libmlx5", theirs, "dcx", ours))
                    << row.name;
        }
    }
}

/* A NOP carries the address vector, as that of UCX's dc_mlx5 does
 * (uct_rc_mlx5_txqp_inline_post(), case MLX5_OPCODE_NOP). */
TEST_P(dcx_wqe, nop)
{
    uint16_t index   = m_twin.index();
    wqe_bytes theirs = post({.opcode = MLX5_OPCODE_SEND});

    begin(index);
    wqe_bytes ours = m_ring.finish(MLX5_OPCODE_NOP, 0);

    EXPECT_EQ(0x00, ours[3]);
    theirs[3] = 0x00;
    EXPECT_EQ("", wqe_diff("libmlx5", theirs, "dcx", ours));
}

/* --- the comparison itself ------------------------------------------------ */

/* Flips the lowest and the highest bit of each field of what dcx wrote: the
 * difference has to name that field. */
void expect_mutations_are_named(const wqe_bytes &theirs, const wqe_bytes &ours)
{
    for (const auto &field : wqe_list(ours)) {
        unsigned low = __builtin_ctzll(field.mask);
        unsigned high = 63 - __builtin_clzll(field.mask);

        for (unsigned bit : {low, high}) {
            wqe_bytes wrong = ours;

            wrong[field.offset + field.size - 1 - bit / 8] ^= 1 << (bit % 8);
            std::string diff = wqe_diff("libmlx5", theirs, "dcx", wrong);
            EXPECT_NE(std::string::npos,
                      ("\n" + diff).find("\n" + field.name + ": "))
                    << "bit " << bit << " of " << field.name
                    << " was flipped; the difference is\n" << diff;
        }
    }
}

TEST_P(dcx_wqe, comparison_names_what_differs)
{
    for (const auto &op : all_ops()) {
        uint16_t index   = m_twin.index();
        wqe_bytes theirs = post(op);

        expect_mutations_are_named(theirs, build(op, index));
    }
}

/* Every bit of a WQE is in a field, but for what is left out on purpose */
TEST_P(dcx_wqe, comparison_is_complete)
{
    for (const auto &op : all_ops()) {
        wqe_bytes ours = build(op, 0);
        std::vector<uint8_t> seen(ours.size());
        size_t unseen = 0, expected = 32; /* no immediate */

        for (const auto &field : wqe_list(ours)) {
            for (unsigned i = 0; i < field.size; i++) {
                seen[field.offset + field.size - 1 - i] |= field.mask >>
                                                           (i * 8);
            }
        }
        for (uint8_t bits : seen) {
            unseen += __builtin_popcount(0xff & ~bits);
        }
        if (!op.inl.empty()) {
            expected += (-(op.inl.size() + 4) % 16) * 8;
        }
        if (op.opcode == MLX5_OPCODE_ATOMIC_FA) {
            expected += 64;
        }
        EXPECT_EQ(expected, unseen) << "bits of opcode " << (int)op.opcode;
    }
}

std::string av_name(const testing::TestParamInfo<av_form> &info)
{
    return av_names[info.param];
}

INSTANTIATE_TEST_SUITE_P(ib, dcx_wqe,
                         testing::Values(AV_COMPACT, AV_EXTENDED, AV_GRH),
                         av_name);
INSTANTIATE_TEST_SUITE_P(roce, dcx_wqe, testing::Values(AV_GRH), av_name);
INSTANTIATE_TEST_SUITE_P(ib, dcx_wqe_streams,
                         testing::Values(AV_COMPACT, AV_EXTENDED, AV_GRH),
                         av_name);
INSTANTIATE_TEST_SUITE_P(roce, dcx_wqe_streams, testing::Values(AV_GRH),
                         av_name);

} /* namespace */

int main(int argc, char **argv)
{
    return hca_test_main(argc, argv,
                         {{"ib", {}}, {"roce", {{"SOFTHCA_LINK", "roce"}}}});
}
