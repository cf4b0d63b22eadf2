/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The decoder of send WQEs has a short way for common shapes (hca_wqe_short.c).
 * Both ways read the same random WQEs, most of them right but for a few bits:
 * the short way accepts none that the long way refuses, and has the same
 * result.
 */
#include <gtest/gtest.h>

#include "raw_wqe.h"

#include <random>
#include <string>

#include <sys/mman.h>

extern "C" {
/* functions with the names of their structures, which C++ takes for
 * constructors */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
#include "softhca/base/hca_log.h"
#include "softhca/base/hca_valgrind.h"
#include "softhca/fabric/hca_dev.h"
#include "softhca/wqe/hca_wqe.h"
#pragma GCC diagnostic pop
}

namespace {

constexpr unsigned LOG_BLOCKS = 5; /* twice the longest WQE */
constexpr unsigned QPN        = 0x5a1234;
constexpr unsigned ROCE_DEV   = 1;

/* Value of fields that tell the ways apart: the long way sets atomic.size
 * always, and the Q_Key if there is an AV; the short way sets atomic.size of
 * atomics only. */
constexpr uint8_t UNSET = 0xee;

class hca_wqe_ways : public testing::Test {
protected:
    hca_wqe_ways()
    {
        size_t size = sizeof(struct hca_fabric) + ring_size;

        m_mem = mmap(nullptr, size, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

        hca_log_level = HCA_LOG_ERROR;

        hca_fabric                     = (struct hca_fabric *)m_mem;
        hca_fabric->dev_link[0]        = HCA_LINK_IB;
        hca_fabric->dev_link[ROCE_DEV] = HCA_LINK_ROCE;

        m_ring          = (uint8_t *)m_mem + sizeof(struct hca_fabric);
        m_qp.obj.num    = QPN;
        m_qp.sq.buf     = hca_off(m_ring);
        m_qp.sq.log_cnt = LOG_BLOCKS;
    }

    ~hca_wqe_ways()
    {
        munmap(m_mem, sizeof(struct hca_fabric) + ring_size);
        hca_fabric = nullptr;
        hca_strict = false;
    }

    unsigned random(unsigned below) { return m_random() % below; }

    uint32_t random32() { return m_random(); }

    /* --- making WQEs --- */

    bool has_av() const
    {
        return (m_qp.type == HCA_QP_DCI) || (m_qp.type == HCA_QP_UD);
    }

    void add_av(raw_wqe &wqe)
    {
        struct mlx5_wqe_av av = {};

        av.key.dc_key   = htobe64(((uint64_t)random32() << 32) |
                                  ((m_qp.type == HCA_QP_DCI) ? random32() : 0));
        av.dqp_dct      = htobe32(random(1 << 24));
        av.stat_rate_sl = random(256);
        av.fl_mlid      = random(256);
        av.rlid         = random(1 << 16);
        if (random((m_qp.obj.dev == ROCE_DEV) ? 2 : 4) > 0) {
            uint8_t compact[16];

            memcpy(compact, &av, sizeof(compact));
            wqe.add(compact);
            return;
        }
        av.dqp_dct |= htobe32(MLX5_EXTENDED_UD_AV);
        wqe.add(av);
    }

    void add_data(raw_wqe &wqe, bool is_in)
    {
        unsigned most = (random(8) == 0) ? 80 : 3;

        for (unsigned num = random(most); num > 0; num--) {
            if (!is_in && (random(most) < 2)) {
                wqe.inl(random((random(4) == 0) ? 300 : 40));
            } else {
                wqe.data((void *)(uintptr_t)random32(),
                         random(1 << ((random(16) == 0) ? 30 : 20)),
                         random32());
            }
        }
    }

    raw_wqe make(uint8_t opcode)
    {
        bool is_atomic = (opcode == MLX5_OPCODE_ATOMIC_CS) ||
                         (opcode == MLX5_OPCODE_ATOMIC_FA);
        bool is_read = (opcode == MLX5_OPCODE_RDMA_READ);
        raw_wqe wqe(opcode);

        wqe.bytes[11] = ((random(5) << 5) | (random(4) << 2) | random(4)) &
                        0xee;
        wqe.imm(random32());
        if (has_av()) {
            add_av(wqe);
        } else if (m_qp.type == HCA_QP_XRC_SEND) {
            wqe.add((uint32_t)htobe32(random(1 << 24)));
        }
        if (is_atomic || is_read || (opcode == MLX5_OPCODE_RDMA_WRITE) ||
            (opcode == MLX5_OPCODE_RDMA_WRITE_IMM)) {
            wqe.raddr((void *)(uintptr_t)random32(), random32());
        }
        if (is_atomic) {
            wqe.atomic(random32(), random32());
            wqe.data((void *)(uintptr_t)random32(), 8, random32());
        } else {
            add_data(wqe, is_read);
        }
        wqe.bytes.resize(std::min<size_t>(wqe.bytes.size(), 70 * 16));
        return wqe;
    }

    /* Changes bits, most of them in the first segments. */
    void spoil(raw_wqe &wqe)
    {
        for (unsigned num = random(3); num > 0; num--) {
            size_t size = wqe.bytes.size();

            size = (random(4) > 0) ? std::min<size_t>(size, 64) : size;
            wqe.flip(random(size), 1 << random(8));
        }
    }

    void random_queue()
    {
        static const uint8_t types[] = {HCA_QP_RC,       HCA_QP_UC,
                                        HCA_QP_UD,       HCA_QP_XRC_SEND,
                                        HCA_QP_XRC_RECV, HCA_QP_DCI};

        m_qp.type        = types[random(sizeof(types))];
        m_qp.type        = (random(2) == 0) ? (uint8_t)HCA_QP_DCI : m_qp.type;
        m_qp.obj.dev     = (random(8) == 0) ? ROCE_DEV : 0;
        m_qp.wq_sig      = (random(16) == 0);
        m_qp.has_streams = (random(4) == 0);
        hca_strict       = (random(8) == 0);
    }

    raw_wqe random_wqe()
    {
        static const uint8_t opcodes[] = {
            MLX5_OPCODE_SEND,       MLX5_OPCODE_SEND_IMM,
            MLX5_OPCODE_SEND_INVAL, MLX5_OPCODE_RDMA_WRITE,
            MLX5_OPCODE_RDMA_READ,  MLX5_OPCODE_RDMA_WRITE_IMM,
            MLX5_OPCODE_ATOMIC_FA,  MLX5_OPCODE_ATOMIC_CS,
            MLX5_OPCODE_NOP,
        };
        raw_wqe wqe = make(opcodes[random(sizeof(opcodes))]);

        m_idx = random32();
        wqe.finish(m_idx, QPN);
        spoil(wqe);
        if (m_qp.wq_sig) {
            wqe.sign();
        }
        return wqe;
    }

    /* --- reading them --- */

    void put(const raw_wqe &wqe)
    {
        for (size_t i = 0; i < wqe.bytes.size(); i++) {
            m_ring[(m_idx * 64 + i) % ring_size] = wqe.bytes[i];
        }
    }

    using reader = decltype(hca_wqe_read);

    static enum hca_check read_with(reader *fn, struct hca_wqe &wqe,
                                    const struct hca_qp &qp, uint16_t idx,
                                    uint16_t posted)
    {
        memset((void *)&wqe, 0xa5, sizeof(wqe));
        wqe.atomic.size = UNSET;
        wqe.qkey        = UNSET;
        return fn(&wqe, &qp, idx, posted);
    }

    /* For a WQE that was accepted; not for atomics without an AV. */
    bool is_short(const struct hca_wqe &wqe) const
    {
        return (wqe.op->flags & HCA_OP_ATOMIC) ?
                   has_av() && (wqe.qkey == UNSET) :
                   wqe.atomic.size == UNSET;
    }

    /* Reads it in both ways. @return the result. */
    enum hca_check read(const raw_wqe &raw, uint16_t posted)
    {
        enum hca_check check, expected;

        put(raw);
        check    = read_with(hca_wqe_read, m_wqe, m_qp, m_idx, posted);
        expected = read_with(hca_wqe_read_long, m_long, m_qp, m_idx, posted);
        EXPECT_EQ(expected, check);
        EXPECT_EQ(m_long.blocks, m_wqe.blocks);
        EXPECT_EQ(m_long.opcode, m_wqe.opcode);
        EXPECT_EQ(m_long.idx, m_wqe.idx);
        if (check == HCA_OK) {
            expect_same();
        }
        return check;
    }

    void expect_same_path()
    {
        EXPECT_EQ(m_long.dqpn, m_wqe.dqpn);
        EXPECT_EQ(m_long.dc_key, m_wqe.dc_key);
        EXPECT_EQ(m_long.path.dlid, m_wqe.path.dlid);
        EXPECT_EQ(m_long.path.sl, m_wqe.path.sl);
        EXPECT_EQ(m_long.path.src_path_bits, m_wqe.path.src_path_bits);
        EXPECT_EQ(m_long.path.grh, m_wqe.path.grh);
    }

    void expect_same_segs()
    {
        ASSERT_EQ(m_long.num_segs, m_wqe.num_segs);
        for (unsigned i = 0; i < m_wqe.num_segs; i++) {
            EXPECT_EQ(m_long.segs[i].is_inline, m_wqe.segs[i].is_inline);
            EXPECT_EQ(m_long.segs[i].addr, m_wqe.segs[i].addr);
            EXPECT_EQ(m_long.segs[i].length, m_wqe.segs[i].length);
            if (!m_wqe.segs[i].is_inline) {
                EXPECT_EQ(m_long.segs[i].lkey, m_wqe.segs[i].lkey);
            }
        }
    }

    void expect_same()
    {
        EXPECT_EQ(m_long.op, m_wqe.op);
        EXPECT_EQ(m_long.qpn, m_wqe.qpn);
        EXPECT_EQ(m_long.ds, m_wqe.ds);
        EXPECT_EQ(m_long.fm_ce_se, m_wqe.fm_ce_se);
        EXPECT_EQ(m_long.imm, m_wqe.imm);
        EXPECT_EQ(m_long.length, m_wqe.length);
        EXPECT_EQ(0, memcmp(m_long.raw, m_wqe.raw, m_wqe.ds * 16));
        if (has_av() && !(m_wqe.op->flags & HCA_OP_LOCAL)) {
            expect_same_path();
        }
        if (m_wqe.op->flags & HCA_OP_RADDR) {
            EXPECT_EQ(m_long.raddr, m_wqe.raddr);
            EXPECT_EQ(m_long.rkey, m_wqe.rkey);
        }
        if (m_wqe.op->flags & HCA_OP_ATOMIC) {
            EXPECT_EQ(0, memcmp(&m_long.atomic, &m_wqe.atomic,
                                offsetof(struct hca_wqe_atomic, is_cs)));
            EXPECT_EQ(m_long.atomic.is_cs, m_wqe.atomic.is_cs);
        }
        expect_same_segs();
    }

    /* --- common shapes --- */

    raw_wqe common(uint8_t opcode)
    {
        uint8_t av[16] = {};
        raw_wqe wqe(opcode);

        if (has_av()) {
            wqe.add(av);
        }
        if ((opcode != MLX5_OPCODE_SEND) && (opcode != MLX5_OPCODE_SEND_IMM)) {
            wqe.raddr(nullptr, 1);
        }
        return wqe;
    }

    void expect_short(raw_wqe wqe)
    {
        wqe.finish(m_idx, QPN);
        EXPECT_EQ(HCA_OK, read(wqe, wqe.num_bb()));
        EXPECT_TRUE(is_short(m_wqe))
            << "type " << (int)m_qp.type << ", opcode " << (int)wqe.bytes[3]
            << ", ds " << wqe.bytes.size() / 16;
    }

    static constexpr size_t ring_size = HCA_BB_SIZE << LOG_BLOCKS;

    const unsigned m_seed = testing::UnitTest::GetInstance()->random_seed() + 1;
    testing::ScopedTrace m_trace{__FILE__, __LINE__,
                                 "seed " + std::to_string(m_seed)};
    std::mt19937 m_random{m_seed};
    void *m_mem;
    uint8_t *m_ring;
    struct hca_qp m_qp = {};
    struct hca_wqe m_wqe, m_long;
    uint16_t m_idx = 0;
};

/* Without this, a short way that accepts nothing would pass. */
TEST_F(hca_wqe_ways, common_shapes_take_the_short_one)
{
    for (uint8_t type : {HCA_QP_RC, HCA_QP_UC, HCA_QP_DCI}) {
        m_qp.type = type;
        for (uint8_t opcode :
             {MLX5_OPCODE_SEND, MLX5_OPCODE_SEND_IMM, MLX5_OPCODE_RDMA_WRITE,
              MLX5_OPCODE_RDMA_WRITE_IMM}) {
            expect_short(common(opcode));
            expect_short(common(opcode).inl(8));
            expect_short(common(opcode).inl(200));
            expect_short(common(opcode).inl(20).data(nullptr, 100, 1));
            expect_short(common(opcode).data(nullptr, 100, 1));
        }
    }
    for (uint8_t type : {HCA_QP_RC, HCA_QP_DCI}) {
        m_qp.type = type;
        expect_short(common(MLX5_OPCODE_RDMA_READ).data(nullptr, 100, 1));
    }
    for (uint8_t opcode : {MLX5_OPCODE_ATOMIC_FA, MLX5_OPCODE_ATOMIC_CS}) {
        expect_short(common(opcode).atomic(1, 2).data(nullptr, 8, 1));
    }
}

TEST_F(hca_wqe_ways, are_the_same)
{
    unsigned num_short = 0, num_long = 0, num_bad = 0;
    unsigned rounds = hca_valgrind_active() ? 10000 : 400000;

    for (unsigned i = 0; (i < rounds) && !HasFailure(); i++) {
        random_queue();

        raw_wqe wqe     = random_wqe();
        uint16_t posted = wqe.num_bb() + random(4);

        posted -= (random(64) == 0);
        if (read(wqe, posted) != HCA_OK) {
            num_bad++;
        } else if (is_short(m_wqe)) {
            num_short++;
        } else {
            num_long++;
        }
    }
    EXPECT_LT(rounds / 16, num_short);
    EXPECT_LT(rounds / 16, num_long);
    EXPECT_LT(rounds / 16, num_bad);
    RecordProperty("short", std::to_string(num_short));
    RecordProperty("refused", std::to_string(num_bad));
}

} /* namespace */
