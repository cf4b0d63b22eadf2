/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * RoCE networks in dcx, without a device: the table of neighbours (dcx_neigh.c)
 * with a simulated kernel, subnets (dcx_subnet.c), and routes (dcx_routes.c)
 */
#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <net/if.h>
#include <cstring>
#include <string>

extern "C" {
#include "uct/dcx/net/dcx_neigh.h"
#include "uct/dcx/net/dcx_routes.h"
#include "uct/dcx/base/dcx_subnet.h"
}

namespace {

union ibv_gid gid_of(const std::string &address)
{
    union ibv_gid gid = {};

    EXPECT_EQ(1, inet_pton(AF_INET6, address.c_str(), gid.raw)) << address;
    return gid;
}

/* --- neighbours ----------------------------------------------------------- */

class dcx_neigh : public testing::Test {
protected:
    dcx_neigh() { uct_dcx_neigh_init(&m_neigh, resolve, this); }

    ~dcx_neigh() { uct_dcx_neigh_cleanup(&m_neigh); }

    static ucs_status_t resolve(void *arg, const union ibv_gid *gid,
                                uct_dcx_mac_t *mac)
    {
        dcx_neigh *self = (dcx_neigh *)arg;

        self->m_asked++;
        if (!self->m_answers) {
            return UCS_ERR_UNREACHABLE;
        }
        memcpy(mac->bytes, gid->raw + 10, 5);
        mac->bytes[5] = self->m_version;
        return UCS_OK;
    }

    /* Returns the last byte of the MAC, -1 if there is none. */
    int get(const std::string &address, ucs_time_t patience = 0)
    {
        union ibv_gid gid = gid_of(address);
        uct_dcx_mac_t mac;

        if (uct_dcx_neigh_get(&m_neigh, &gid, patience, &mac) != UCS_OK) {
            return -1;
        }
        EXPECT_EQ(0, memcmp(mac.bytes, gid.raw + 10, 5)) << address;
        return mac.bytes[5];
    }

    uct_dcx_neigh_t m_neigh;
    unsigned m_asked  = 0;
    bool m_answers    = true;
    uint8_t m_version = 1;
};

TEST_F(dcx_neigh, asks_once)
{
    for (unsigned round = 0; round < 3; round++) {
        for (unsigned i = 0; i < 1000; i++) {
            EXPECT_EQ(1, get("::ffff:10.0." + std::to_string(i / 250) + "." +
                             std::to_string(i % 250)));
        }
        EXPECT_EQ(1000u, m_asked);
    }
}

/* After a failure, a caller that must not wait asks again only after its
 * patience; one that may wait (patience 0) asks at once. */
TEST_F(dcx_neigh, failure_is_kept_from_the_patient)
{
    m_answers = false;
    EXPECT_EQ(-1, get("fe80::1", UINT64_MAX));
    EXPECT_EQ(-1, get("fe80::2", UINT64_MAX));
    EXPECT_EQ(2u, m_asked) << "one query each";
    m_answers = true;
    EXPECT_EQ(-1, get("fe80::1", UINT64_MAX));
    EXPECT_EQ(2u, m_asked);
    EXPECT_EQ(1, get("fe80::1")) << "a caller that may wait asks again";
    EXPECT_EQ(1, get("fe80::1", UINT64_MAX));
    EXPECT_EQ(3u, m_asked) << "known from now on";
    EXPECT_EQ(1, get("fe80::2")) << "asks again, too";
    EXPECT_EQ(1, get("fe80::2", UINT64_MAX));
    EXPECT_EQ(4u, m_asked);
}

TEST_F(dcx_neigh, failure_is_not_kept)
{
    m_answers = false;
    EXPECT_EQ(-1, get("fe80::1"));
    EXPECT_EQ(-1, get("fe80::1"));
    EXPECT_EQ(2u, m_asked);
    m_answers = true;
    EXPECT_EQ(1, get("fe80::1"));
    EXPECT_EQ(1, get("fe80::1"));
    EXPECT_EQ(3u, m_asked);
}

TEST_F(dcx_neigh, forget)
{
    union ibv_gid gid = gid_of("fe80::1");

    uct_dcx_neigh_forget(&m_neigh, &gid); /* unknown */
    EXPECT_EQ(1, get("fe80::1"));
    EXPECT_EQ(1, get("fe80::2"));
    m_version = 2;
    uct_dcx_neigh_forget(&m_neigh, &gid);
    EXPECT_EQ(2, get("fe80::1"));
    EXPECT_EQ(1, get("fe80::2"));
}

/* --- subnets -------------------------------------------------------------- */

struct subnet_row {
    const char *a, *b;
    unsigned bits;
    bool same;
};

TEST(dcx_subnet, is_same)
{
    const subnet_row rows[] = {
        {"::ffff:10.1.2.3", "::ffff:10.1.2.3", 32, true},
        {"::ffff:10.1.2.3", "::ffff:10.1.2.2", 32, false},
        {"::ffff:10.1.2.3", "::ffff:10.1.2.2", 31, true},
        {"::ffff:10.1.2.3", "::ffff:10.1.3.3", 24, false},
        {"::ffff:10.1.2.3", "::ffff:10.1.3.3", 23, true},
        {"::ffff:10.1.2.3", "::ffff:10.1.255.3", 16, true},
        {"::ffff:10.1.2.3", "::ffff:11.1.2.3", 7, true},
        {"::ffff:10.1.2.3", "::ffff:11.1.2.3", 8, false},
        {"::ffff:10.1.2.3", "::ffff:200.1.2.3", 1, false},
        {"::ffff:10.1.2.3", "::ffff:200.1.2.3", 0, true},
        {"fe80::1", "fe80::2", 64, true},
        {"fe80::1", "fe80::2", 126, true},
        {"fe80::1", "fe80::2", 127, false},
        {"fe80::1", "fe80::1", 128, true},
        {"2001:db8::1", "2001:db9::1", 31, true},
        {"2001:db8::1", "2001:db9::1", 32, false},
        {"2001:db8::1", "fe80::1", 0, true},
        /* not between the two families */
        {"::ffff:10.1.2.3", "fe80::1", 0, false},
        {"fe80::1", "::ffff:10.1.2.3", 0, false},
    };

    for (const auto &row : rows) {
        union ibv_gid a = gid_of(row.a), b = gid_of(row.b);

        EXPECT_EQ(row.same, !!uct_dcx_subnet_is_same(&a, &b, row.bits))
            << row.a << " and " << row.b << "/" << row.bits;
        EXPECT_EQ(row.same, !!uct_dcx_subnet_is_same(&b, &a, row.bits))
            << row.b << " and " << row.a << "/" << row.bits;
    }
}

TEST(dcx_subnet, addr_bits)
{
    union ibv_gid v4 = gid_of("::ffff:127.0.0.1"), v6 = gid_of("::1");

    EXPECT_EQ(32u, uct_dcx_subnet_addr_bits(&v4));
    EXPECT_EQ(128u, uct_dcx_subnet_addr_bits(&v6));
}

/* The loopback interface always has 127.0.0.1/8; no interface has 192.0.2.x,
 * which is reserved for documents. */
TEST(dcx_subnet, prefix_len)
{
    union ibv_gid lo    = gid_of("::ffff:127.0.0.1");
    union ibv_gid none  = gid_of("::ffff:192.0.2.1");
    union ibv_gid none6 = gid_of("2001:db8::1");

    unsigned bits = 0, netdev = 0;

    EXPECT_TRUE(uct_dcx_subnet_find(&lo, &bits, &netdev));
    EXPECT_EQ(8u, bits);
    EXPECT_EQ(if_nametoindex("lo"), netdev);
    EXPECT_FALSE(uct_dcx_subnet_find(&none, &bits, &netdev));
    EXPECT_FALSE(uct_dcx_subnet_find(&none6, &bits, &netdev));
}

TEST(dcx_subnet, parse)
{
    const struct {
        const char *text, *address;
        unsigned bits;
    } good[] = {
        {"10.1.0.0/16", "::ffff:10.1.0.0", 16},
        {"10.1.2.3/0", "::ffff:10.1.2.3", 0},
        {"10.1.2.3/32", "::ffff:10.1.2.3", 32},
        {"fd00::/8", "fd00::", 8},
        {"::ffff:10.1.0.0/32", "::ffff:10.1.0.0", 32},
        {"2001:db8:1:2:3:4:5:6/128", "2001:db8:1:2:3:4:5:6", 128},
    };
    union ibv_gid gid;
    unsigned bits;

    for (const auto &row : good) {
        SCOPED_TRACE(row.text);
        union ibv_gid expected = gid_of(row.address);

        EXPECT_TRUE(uct_dcx_subnet_parse(row.text, &gid, &bits));
        EXPECT_EQ(0, memcmp(&expected, &gid, sizeof(gid)));
        EXPECT_EQ(row.bits, bits);
    }
    for (const char *text :
         {"", "/", "10.1.0.0", "10.1.0.0/", "10.1.0.0/33", "10.1.0/24",
          "10.1.0.0/-1", "10.1.0.0/8x", "/8", "10.1.0.0 /8", "fd00::/129",
          "fd00:/8", "host/8"}) {
        EXPECT_FALSE(uct_dcx_subnet_parse(text, &gid, &bits)) << text;
    }
}

/* Routes of the interfaces 2 and 3 */
TEST(dcx_routes, lead)
{
    uct_dcx_route_entry_t entries[] = {
        {gid_of("::ffff:0.0.0.0"), 2, 0, 0},
        {gid_of("::ffff:10.1.0.0"), 2, 16, 0},
        {gid_of("::ffff:10.1.0.0"), 3, 16, 0},
        {gid_of("::ffff:10.1.7.0"), 3, 24, 0},
        {gid_of("::ffff:10.1.7.9"), 3, 32, 1},
        {gid_of("::ffff:10.9.0.0"), 1, 16, 0},
        {gid_of("fd00::"), 3, 8, 0},
    };
    const uct_dcx_routes_t routes = {entries, 7};
    const struct {
        const char *peer;
        bool from_2, from_3, from_4;
    } rows[] = {
        {"::ffff:192.0.2.1", true, false, false}, /* default route */
        {"::ffff:10.1.2.3", true, true, false},   /* both rails */
        {"::ffff:10.1.7.1", false, true, false},  /* longer prefix */
        {"::ffff:10.1.7.9", true, true, true},    /* this machine's */
        {"::ffff:10.9.2.3", true, true, true},    /* by "lo" */
        {"fd00::1", false, true, false},
        {"fe80::1", false, false, false},
    };

    for (const auto &row : rows) {
        SCOPED_TRACE(row.peer);
        union ibv_gid peer = gid_of(row.peer);

        EXPECT_EQ(row.from_2, uct_dcx_routes_lead(&routes, &peer, 2) != 0);
        EXPECT_EQ(row.from_3, uct_dcx_routes_lead(&routes, &peer, 3) != 0);
        EXPECT_EQ(row.from_4, uct_dcx_routes_lead(&routes, &peer, 4) != 0);
    }
}

/* The kernel's own: 127/8 is local on every machine. */
TEST(dcx_routes, of_the_kernel)
{
    union ibv_gid peer = gid_of("::ffff:127.9.9.9");
    uct_dcx_routes_t routes;

    for (int is_ipv4 = 0; is_ipv4 < 2; is_ipv4++) {
        ASSERT_EQ(UCS_OK, uct_dcx_routes_init(&routes, is_ipv4));
        EXPECT_EQ(is_ipv4, uct_dcx_routes_lead(&routes, &peer, 1));
        for (unsigned i = 0; i < routes.count; i++) {
            EXPECT_EQ(is_ipv4,
                      uct_dcx_subnet_is_ipv4(&routes.entries[i].subnet));
        }
        uct_dcx_routes_cleanup(&routes);
    }
}

} /* namespace */
