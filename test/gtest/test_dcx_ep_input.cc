/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Damaged addresses and remote keys, and operations that are too long. Part of
 * the program of test_dcx_ep.cc.
 */
#include "dcx_ep_bench.h"

#include <algorithm>

namespace {

class dcx_ep_input : public dcx_ep_bench {};

/* Expects that is_reachable() refuses the addresses without a message, and that
 * create_ep() refuses them with one line that contains _text. */
#define EXPECT_BAD_ADDR(_dev_addr, _iface_addr, _text) \
    do { \
        uct_ep_h _ep = NULL; \
        EXPECT_FALSE(m_dcx.is_reachable(_dev_addr, _iface_addr)); \
        EXPECT_EQ("", m_log.take()); \
        EXPECT_NE(UCS_OK, m_dcx.create_ep(_dev_addr, _iface_addr, 0, &_ep)); \
        std::string _said = m_log.take(); \
        EXPECT_NE(std::string::npos, _said.find(_text)) << _said; \
        EXPECT_EQ(1, std::count(_said.begin(), _said.end(), '\n')) << _said; \
    } while (0)

TEST_P(dcx_ep_input, bad_interface_address)
{
    auto dev = m_dcx.dev_addr(), good = m_dcx.iface_addr(), addr = good;
    auto other = dev;

    addr[0] = 3;
    EXPECT_BAD_ADDR(dev, addr, "has version 3 instead of 10");
    other.back() ^= 1; /* the checksum of another version */
    m_dcx.seals = false;
    EXPECT_BAD_ADDR(other, addr, "has version 3 instead of 10");
    m_dcx.seals = true;

    addr    = good;
    addr[1] = 0x80;
    dcx_peek_seal_addr(addr.data());
    EXPECT_BAD_ADDR(dev, addr, "unknown flags 0x80");

    addr = good;
    std::fill(addr.begin() + 2, addr.begin() + 5, 0);
    dcx_peek_seal_addr(addr.data());
    EXPECT_BAD_ADDR(dev, addr, "no DCT number");

    addr = good;
    std::fill(addr.begin() + 20, addr.begin() + 24, 0);
    addr[21] = 1; /* 256 bytes */
    dcx_peek_seal_addr(addr.data());
    EXPECT_BAD_ADDR(dev, addr, "receive buffers of 256 bytes");
    addr[20] = 0x41; /* 65 units of 64 KiB, and these bytes */
    dcx_peek_seal_addr(addr.data());
    EXPECT_BAD_ADDR(dev, addr, "receive buffers of 4260096 bytes");

    std::fill(addr.begin(), addr.end(), 0);
    EXPECT_BAD_ADDR(dev, addr, "has version 0");
    std::fill(addr.begin(), addr.end(), 0xff);
    EXPECT_BAD_ADDR(dev, addr, "has version 255");

    /* without the access key and the process, so that the checksum is
     * constant */
    std::fill(good.begin() + 2, good.begin() + 19, 0x5a);
    dcx_peek_seal_addr(good.data());
    EXPECT_TRUE(m_dcx.is_reachable(dev, good));
    addr    = good;
    addr[1] = 0x80;
    EXPECT_BAD_ADDR(dev, addr, "its checksum is");
    for (size_t size = 5; size < good.size(); size++) {
        addr = good;
        std::fill(addr.begin() + size, addr.end(), 0xa5);
        EXPECT_BAD_ADDR(dev, addr, "its checksum is");
    }
}

TEST_P(dcx_ep_input, bad_device_address)
{
    auto good = m_dcx.dev_addr(), iface = m_dcx.iface_addr(), addr = good;

    addr[0] |= 0x10;
    EXPECT_BAD_ADDR(addr, iface, "unknown flags");

    addr    = good;
    addr[1] = 2;
    EXPECT_BAD_ADDR(addr, iface, "both InfiniBand and RoCE");

    addr    = good;
    addr[2] = 0xc0;
    EXPECT_BAD_ADDR(addr, iface, "an invalid LID");

    addr    = good;
    addr[4] = 0x11;
    EXPECT_BAD_ADDR(addr, iface, "is in partition 0x11ff, this one in 0xffff");

    std::fill(addr.begin(), addr.end(), 0);
    EXPECT_BAD_ADDR(addr, iface, "an invalid LID");
    std::fill(addr.begin(), addr.end(), 0xff);
    EXPECT_BAD_ADDR(addr, iface, "the peer's port is Ethernet");
    addr[0] = 0xfe;
    EXPECT_BAD_ADDR(addr, iface, "unknown flags");

    addr    = good;
    addr[0] = 2;
    std::fill(addr.begin() + 6, addr.end(), 0);
    EXPECT_BAD_ADDR(addr, iface, "no GID");
}

/* Any one or two wrong bits of the addresses are found. The number of messages
 * is limited. */
TEST_P(dcx_ep_input, wrong_bits)
{
    const auto dev = m_dcx.dev_addr(), iface = m_dcx.iface_addr();
    auto bad_dev = dev, bad_iface = iface;
    const size_t dev_bits = dev.size() * 8, bits = dev_bits + iface.size() * 8;
    std::string log;
    uct_ep_h ep;

    auto flip = [&](size_t bit) {
        auto &bytes = (bit < dev_bits) ? bad_dev : bad_iface;
        size_t at   = (bit < dev_bits) ? bit : bit - dev_bits;

        bytes[at / 8] ^= 1 << (at % 8);
    };

    m_dcx.seals = false;
    EXPECT_TRUE(m_dcx.is_reachable(dev, iface));
    for (size_t one = 0; one < bits; one++) {
        for (size_t two = one; two < bits; two++) {
            flip(one);
            if (two != one) {
                flip(two);
            }
            EXPECT_FALSE(m_dcx.is_reachable(bad_dev, bad_iface))
                << one << " " << two;
            bad_dev   = dev;
            bad_iface = iface;
        }
        flip(one);
        EXPECT_EQ(UCS_ERR_INVALID_ADDR,
                  m_dcx.create_ep(bad_dev, bad_iface, 0, &ep));
        log += m_log.take();
        flip(one);
    }
    EXPECT_GT(100, std::count(log.begin(), log.end(), '\n'));
}

/* Any one or two wrong bits of a packed key are found. */
TEST_P(dcx_ep_input, wrong_bits_of_a_key)
{
    std::vector<uint8_t> key;
    uct_md_attr_t attr;
    uct_rkey_bundle_t bundle;
    std::string log;

    UCT_CALL(uct_md_query(m_dcx.md(), &attr));
    key.resize(attr.rkey_packed_size);
    UCT_CALL(uct_md_mkey_pack(m_dcx.md(), m_dcx.memh, key.data()));
    UCT_CALL(uct_rkey_unpack(m_dcx.component(), key.data(), &bundle));
    uct_rkey_release(m_dcx.component(), &bundle);
    for (size_t one = 0; one < key.size() * 8; one++) {
        for (size_t two = one; two < key.size() * 8; two++) {
            auto bad = key;

            bad[one / 8] ^= 1 << (one % 8);
            if (two != one) {
                bad[two / 8] ^= 1 << (two % 8);
            }
            EXPECT_EQ(UCS_ERR_INVALID_PARAM,
                      uct_rkey_unpack(m_dcx.component(), bad.data(), &bundle));
        }
        log += m_log.take();
    }
    EXPECT_LT(0, std::count(log.begin(), log.end(), '\n'));
    EXPECT_GT(100, std::count(log.begin(), log.end(), '\n'));
}

TEST_P(dcx_ep_input, too_long)
{
#if ENABLE_PARAMS_CHECK
    auto &cap = m_dcx.attr.cap;
    dcx_end end;

    EXPECT_EQ(
        UCS_ERR_INVALID_PARAM,
        uct_ep_am_short(m_ep, 5, 0, m_dcx.mem.data(), cap.am.max_short - 7));
    EXPECT_NE(std::string::npos, m_log.take().find("am_short"));
    EXPECT_EQ(UCS_ERR_INVALID_PARAM,
              uct_ep_put_short(m_ep, m_dcx.mem.data(), cap.put.max_short + 1,
                               m_remote, m_rkey));
    EXPECT_NE(std::string::npos, m_log.take().find("put_short"));
    m_iov.length = cap.am.max_zcopy + 1;
    EXPECT_EQ(UCS_ERR_INVALID_PARAM,
              uct_ep_am_zcopy(m_ep, 5, NULL, 0, &m_iov, 1, 0, &end.comp));
    EXPECT_NE(std::string::npos, m_log.take().find("am_zcopy"));
    m_iov.length = cap.put.max_zcopy + 1;
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, put_zcopy(end, true));
    EXPECT_NE(std::string::npos, m_log.take().find("put_zcopy"));
    EXPECT_EQ(UCS_ERR_INVALID_PARAM,
              uct_ep_get_bcopy(m_ep, unpack, NULL, cap.get.max_bcopy + 1,
                               m_remote, m_rkey, &end.comp));
    EXPECT_NE(std::string::npos, m_log.take().find("get_bcopy"));
    EXPECT_EQ(0u, end.count);
    EXPECT_EQ(UCS_OK, put_short());
    m_dcx.flush();
#else
    GTEST_SKIP() << "this UCX checks no parameters";
#endif
}

INSTANTIATE_TEST_SUITE_P(exclusive, dcx_ep_input, testing::Values(false));
INSTANTIATE_TEST_SUITE_P(one_dci, dcx_ep_input, testing::Values(false));
INSTANTIATE_TEST_SUITE_P(shared, dcx_ep_input, testing::Values(true));

} /* namespace */
