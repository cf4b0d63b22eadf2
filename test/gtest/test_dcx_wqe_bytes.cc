/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * WQEs as bytes, written into plain memory and compared with the text here. No
 * device is needed: any machine can check that dcx writes the same bytes there.
 * test_dcx_wqe.cc compares WQEs with those of libmlx5. The words are those of
 * the PRM, in the order of memory.
 */
#include <gtest/gtest.h>

#include <infiniband/mlx5dv.h>

/* C headers: constants of different enumerations may meet */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-enum-enum-conversion"
extern "C" {
#include "uct/dcx/dev/dcx_sq.h"
}
#pragma GCC diagnostic pop

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

namespace {

constexpr unsigned num_bb  = 4;
constexpr uint32_t qpn     = 0x123456;
constexpr uint32_t dctn    = 0xabcdef;
constexpr uint64_t dc_key  = 0x1112131415161718;
constexpr uint64_t address = 0x8877665544332211;

using lines = std::vector<std::string>;

class dcx_wqe_bytes : public testing::Test {
protected:
    /* Begins a WQE with the address of a peer, alone or before a GRH. */
    void begin(uint16_t index, uint32_t form = 0)
    {
        uct_dcx_av_t av = {htobe64(dc_key), htobe32(dctn | form), 0x03, 0x81,
                           htobe16(0x5a5b)};

        memset(m_ring, 0xa5, sizeof(m_ring));
        m_index = index;
        uct_dcx_wqe_begin(&m_wqe, m_ring, num_bb - 1, index);
        uct_dcx_wqe_av(&m_wqe, &av);
    }

    void put_inline(const std::string &data)
    {
        uct_dcx_wqe_inline_begin(&m_wqe, data.size());
        uct_dcx_wqe_inline_put(&m_wqe, data.data(), data.size());
        uct_dcx_wqe_inline_end(&m_wqe);
    }

    /* Finishes the WQE. Returns its segments as text, also across the end of
     * the ring. */
    lines finish(uint8_t opcode, uint8_t opmod = 0, uint32_t flags = 0)
    {
        uct_dcx_wqe_ctrl_t ctrl = {};
        lines segs;

        ctrl.opcode = opcode;
        ctrl.opmod  = opmod;
        ctrl.flags  = flags | MLX5_WQE_CTRL_CQ_UPDATE;
        ctrl.sender = uct_dcx_wqe_sender(qpn);
        m_doorbell  = uct_dcx_wqe_finish(&m_wqe, &ctrl);
        for (unsigned i = 0; i < m_wqe.ds; i++) {
            segs.push_back(text((uint8_t *)uct_dcx_wqe_seg_at(&m_wqe, i), 16));
        }
        return segs;
    }

    static std::string text(const uint8_t *bytes, size_t length)
    {
        std::string out;
        char word[16];

        for (size_t i = 0; i < length; i += 4) {
            snprintf(word, sizeof(word), "%s%02x%02x%02x%02x", i ? " " : "",
                     bytes[i], bytes[i + 1], bytes[i + 2], bytes[i + 3]);
            out += word;
        }
        return out;
    }

    alignas(64) uint8_t m_ring[num_bb * 64];
    uct_dcx_wqe_t m_wqe;
    uint16_t m_index;
    uint64_t m_doorbell;
};

const char *const av = "11121314 15161718 00abcdef 03815a5b";

TEST_F(dcx_wqe_bytes, send_inline)
{
    begin(0x1201);
    put_inline("sixteen bytes, 1");
    EXPECT_EQ((lines{"0012010a 12345604 00000008 00000000", av,
                     "80000010 73697874 65656e20 62797465",
                     "732c2031 a5a5a5a5 a5a5a5a5 a5a5a5a5"}),
              finish(MLX5_OPCODE_SEND));
}

TEST_F(dcx_wqe_bytes, inline_at_the_end_of_the_ring)
{
    std::string data;

    for (unsigned i = 0; i < 40; i++) {
        data += (char)i;
    }
    begin(0xffff);
    put_inline(data);
    EXPECT_EQ((lines{"00ffff0a 12345605 00000008 00000000", av,
                     "80000028 00010203 04050607 08090a0b",
                     "0c0d0e0f 10111213 14151617 18191a1b",
                     "1c1d1e1f 20212223 24252627 a5a5a5a5"}),
              finish(MLX5_OPCODE_SEND));
    EXPECT_EQ(m_ring + 16, m_wqe.pos);
    EXPECT_EQ(0x1c, m_ring[0]);
}

TEST_F(dcx_wqe_bytes, write)
{
    begin(2);
    uct_dcx_wqe_raddr(&m_wqe, address, 0x01020304);
    uct_dcx_wqe_data(&m_wqe, (void *)0x7766554433221100, 0x1234, 0x0a0b0c0d);
    EXPECT_EQ((lines{"00000208 12345604 00000088 00000000", av,
                     "88776655 44332211 01020304 00000000",
                     "00001234 0a0b0c0d 77665544 33221100"}),
              finish(MLX5_OPCODE_RDMA_WRITE, 0, MLX5_WQE_CTRL_FENCE));
}

TEST_F(dcx_wqe_bytes, stream)
{
    begin(2);
    EXPECT_EQ((lines{"0000020a 12345602 00beef0a 00000000", av}),
              finish(MLX5_OPCODE_SEND, 0,
                     UCT_DCX_WQE_STREAM(0xbeef) | MLX5_WQE_CTRL_SOLICITED));
}

/* The second half of the address is inserted in front of later segments. */
TEST_F(dcx_wqe_bytes, read_with_a_grh)
{
    uct_dcx_grh_t grh = {};

    memcpy(grh.rmac, "\x02\x04\x06\x08\x0a\x0c", sizeof(grh.rmac));
    grh.tclass     = 0x6a;
    grh.hop_limit  = 0x40;
    grh.grh_gid_fl = htobe32(0x40354321);
    for (unsigned i = 0; i < sizeof(grh.rgid); i++) {
        grh.rgid[i] = 0xe0 + i;
    }

    begin(3, MLX5_EXTENDED_UD_AV);
    uct_dcx_wqe_raddr(&m_wqe, address, 0x01020304);
    uct_dcx_wqe_data(&m_wqe, (void *)0x10, 8, 0x0a0b0c0d);
    uct_dcx_wqe_grh(&m_wqe, &grh);
    EXPECT_EQ((lines{"00000310 12345606 00000008 00000000",
                     "11121314 15161718 80abcdef 03815a5b",
                     "00000000 02040608 0a0c6a40 40354321",
                     "e0e1e2e3 e4e5e6e7 e8e9eaeb ecedeeef",
                     "88776655 44332211 01020304 00000000",
                     "00000008 0a0b0c0d 00000000 00000010"}),
              finish(MLX5_OPCODE_RDMA_READ));
}

TEST_F(dcx_wqe_bytes, atomics)
{
    begin(0);
    uct_dcx_wqe_raddr(&m_wqe, address, 1);
    uct_dcx_wqe_atomic64(&m_wqe, 0x0102030405060708, 0x1112131415161718);
    uct_dcx_wqe_data(&m_wqe, (void *)0x10, 8, 2);
    EXPECT_EQ((lines{"00000011 12345605 00000008 00000000", av,
                     "88776655 44332211 00000001 00000000",
                     "01020304 05060708 11121314 15161718",
                     "00000008 00000002 00000000 00000010"}),
              finish(MLX5_OPCODE_ATOMIC_CS));

    begin(1);
    uct_dcx_wqe_atomic32(&m_wqe, 0x01020304, 0x05060708, 0x090a0b0c, 0xff);
    EXPECT_EQ((lines{"08000114 12345603 00000008 00000000", av,
                     "01020304 05060708 090a0b0c 000000ff"}),
              finish(MLX5_OPCODE_ATOMIC_MASKED_CS, 8));
}

/* A send queue in plain memory, with a register of two halves of two blocks */
class dcx_sq_bytes : public dcx_wqe_bytes {
protected:
    static constexpr size_t half = 128;

    dcx_sq_bytes()
    {
        uct_dcx_sq_params_t params = {};

        uct_dcx_bf_init(&m_bf, m_reg, half);
        params.start    = m_ring;
        params.dbrec    = &m_dbrec[MLX5_SND_DBR];
        params.bf       = &m_bf;
        params.qpn      = qpn;
        params.num_bb   = num_bb;
        params.capacity = num_bb;
        uct_dcx_sq_init(&m_sq, &params);
        m_sq.pi = 0xfffe;
    }

    /* Writes a WQE of two blocks. Returns its position. */
    uint16_t write()
    {
        begin(m_sq.pi);
        put_inline(std::string(60, 'x'));
        finish(MLX5_OPCODE_SEND);
        return m_index;
    }

    std::string reg_text(unsigned i, size_t length) const
    {
        return text(m_reg + (i * half), length);
    }

    std::string record() const { return text((const uint8_t *)m_dbrec, 8); }

    alignas(256) uint8_t m_reg[2 * half] = {};
    volatile __be32 m_dbrec[2]           = {};
    uct_dcx_bf_t m_bf;
    uct_dcx_sq_t m_sq;
};

/* The record has the index after the WQE, the register the start of the WQE.
 * The register's halves alternate, and 16-bit indices wrap to 0. */
TEST_F(dcx_sq_bytes, doorbell)
{
    for (unsigned i = 0; i < 2; i++) {
        uint16_t index = write();

        uct_dcx_sq_ring(&m_sq, index, 2, m_doorbell);
        EXPECT_EQ(i ? "0000000a 12345606 00000000" :
                      "00fffe0a 12345606 00000000",
                  reg_text(i, 12));
        EXPECT_EQ(i ? "00000000 00000002" : "00000000 00000000", record());
    }
    EXPECT_EQ((uintptr_t)m_reg, m_bf.half);
}

/* A WQE that fits the register is pushed as a whole, also across the ring's
 * end. */
TEST_F(dcx_sq_bytes, push)
{
    for (unsigned i = 0; i < 2; i++) {
        m_sq.pi = i ? 0xffff : 0xfffe;

        uint16_t index  = write();
        size_t to_end   = (num_bb - (index & (num_bb - 1))) * 64;
        size_t at_start = half - std::min(half, to_end);

        uct_dcx_sq_push(&m_sq, index, 2, m_doorbell);
        EXPECT_EQ(text(m_ring + sizeof(m_ring) - to_end, half - at_start) +
                      (at_start ? " " + text(m_ring, at_start) : ""),
                  reg_text(i, half));
        EXPECT_EQ(i ? "00000000 00000001" : "00000000 00000000", record());
    }
    EXPECT_EQ((uintptr_t)m_reg, m_bf.half);
}

/* A longer WQE is only announced by a doorbell. */
TEST_F(dcx_sq_bytes, push_of_three_blocks)
{
    begin(m_sq.pi);
    put_inline(std::string(120, 'x'));
    finish(MLX5_OPCODE_SEND);
    uct_dcx_sq_push(&m_sq, m_index, 3, m_doorbell);
    EXPECT_EQ("00fffe0a 1234560a 00000000", reg_text(0, 12));
    EXPECT_EQ("00000000 00000001", record());
}

} /* namespace */
