/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The path through the network, end to end. Options appear in the address
 * vector (byte by byte as libmlx5 writes it), in the QPs of the device, and in
 * the peer's completion. Also tests several paths, reachability, and the memory
 * of an endpoint. A mode is a kind of network, or a device with low limits.
 */
#include "dcx_loop.h"
#include "ucx_log.h"

#include <arpa/inet.h>
#include <malloc.h>
#include <set>

namespace {

/* Fields of the device address (dcx_port_addr.h) */
enum {
    ADDR_FLAGS    = 0,
    ADDR_GID_TYPE = 1,
    ADDR_LID      = 2,
    ADDR_PKEY     = 4,
    ADDR_GID      = 6,

    FLAG_ETHERNET = 1,
    FLAG_GLOBAL   = 2,
    LMC_SHIFT     = 5
};

using bytes = std::vector<uint8_t>;

/* A kind of network, the name of its mode, and the expected values */
struct network {
    const char *name;
    bool is_roce;                                   /* Ethernet */
    bool is_global;                                 /* packets have a GRH */
    bool is_v1;                                     /* RoCE v1 */
    unsigned paths;                                 /* expected dev_num_paths */
    unsigned sgid_index;                            /* expected source GID */
    std::vector<unsigned> path_bits = {0, 1, 2, 3}; /* InfiniBand */
    unsigned path_factor            = 1;            /* RoCE v2 */
    unsigned reverse_sl             = 5;            /* of answers */
};

void PrintTo(const network &net, std::ostream *os)
{
    *os << net.name;
}

class dcx_port : public testing::TestWithParam<network> {
protected:
    static constexpr unsigned sl = 5, tclass = 33, hop_limit = 17;

    dcx_port() { m_dcx.survives_errors = true; }

    ~dcx_port()
    {
        m_dcx.flush();
        EXPECT_EQ("", m_log.take()) << "the device complained";
    }

    static bool is_roce() { return GetParam().is_roce; }

    static bool is_global() { return GetParam().is_global; }

    static size_t num_bits() { return GetParam().path_bits.size(); }

    static unsigned path_bits(unsigned path)
    {
        const auto &bits = GetParam().path_bits;

        return bits[path % bits.size()];
    }

    static bytes av_of(uct_ep_h ep)
    {
        bytes av(48);

        dcx_peek_av(ep, av.data());
        return av;
    }

    /* Returns the remote LID; on RoCE v2 the UDP source port. */
    static uint16_t rlid(const bytes &av) { return (av[14] << 8) | av[15]; }

    /* Returns the address vector that libmlx5 makes for @path to @addr. Clears
     * the DC key, the DCT number and the flow label. libmlx5 derives the UDP
     * source port from the flow label: @udp_port is the port to expect. */
    bytes av_of_libmlx5(const bytes &addr, unsigned path, uint16_t udp_port)
    {
        struct mlx5dv_ah dv_ah  = {};
        struct mlx5dv_obj obj   = {};
        struct ibv_ah_attr attr = {};
        struct ibv_ah *ah;
        bytes av(48);

        attr.port_num = 1;
        attr.sl       = sl;
        attr.dlid     = ((addr[ADDR_LID] << 8) | addr[ADDR_LID + 1]) |
                    (path_bits(path) & ((1u << (addr[0] >> LMC_SHIFT)) - 1));
        attr.src_path_bits  = path_bits(path);
        attr.is_global      = is_global() || (addr[ADDR_FLAGS] & FLAG_GLOBAL);
        attr.grh.sgid_index = GetParam().sgid_index;
        attr.grh.traffic_class = tclass;
        attr.grh.hop_limit     = hop_limit;
        attr.grh.flow_label    = udp_port & 0x3fff;
        memcpy(attr.grh.dgid.raw, &addr[ADDR_GID], 16);
        HCA_CHECK_CALL((ah = ibv_create_ah(m_dev.pd, &attr)) != NULL);
        obj.ah.in  = ah;
        obj.ah.out = &dv_ah;
        HCA_CHECK_CALL(mlx5dv_init_obj(&obj, MLX5DV_OBJ_AH) == 0);
        memcpy(av.data(), dv_ah.av, av.size());
        EXPECT_EQ(0, ibv_destroy_ah(ah));

        memset(&av[0], 0, 12); /* DC key, DCT number */
        clear_flow_label(av);
        return av;
    }

    /* Clears the lower 20 bits of grh_gid_fl. */
    static void clear_flow_label(bytes &av)
    {
        av[29] &= 0xf0;
        av[30] = 0;
        av[31] = 0;
    }

    void expect_av_of_libmlx5(const bytes &addr, unsigned path)
    {
        uct_ep_h ep;

        ASSERT_EQ(UCS_OK, m_dcx.create_ep(addr, path, &ep));
        bytes av     = av_of(ep);
        bytes theirs = av_of_libmlx5(addr, path, rlid(av));
        uct_ep_destroy(ep);

        memset(&av[0], 0, 12); /* DC key, DCT number */
        EXPECT_EQ(theirs, av) << "path " << path;
    }

    /* Sends an active message by @ep to the interface itself; returns the
     * receive completion. */
    const struct mlx5_cqe64 *send_to_self(uct_ep_h ep)
    {
        static const char text[100] = {}; /* too long to be in the CQE */
        unsigned count              = m_dcx.received;

        dcx_deadline deadline;

        EXPECT_EQ(UCS_OK, uct_ep_am_short(ep, 5, 0, text, sizeof(text)));
        while (m_dcx.received == count) {
            deadline.check("the message");
            uct_worker_progress(m_dcx.worker);
        }
        m_dcx.flush();
        return dcx_peek_last_recv(m_dcx.iface);
    }

    hca_log_reader m_log;
    hca_device m_dev;
    dcx_loop m_dcx;
};

/* Sets an option while it exists. */
class option {
public:
    option(const char *name, const char *value) :
        m_name(name), m_was_set(getenv(name) != NULL)
    {
        m_before = m_was_set ? getenv(name) : "";
        setenv(name, value, 1);
    }

    ~option()
    {
        if (m_was_set) {
            setenv(m_name, m_before.c_str(), 1);
        } else {
            unsetenv(m_name);
        }
    }

    option(const option &) = delete;

private:
    const char *m_name;
    bool m_was_set;
    std::string m_before;
};

class dcx_port_ib : public dcx_port {};

class dcx_port_sls : public dcx_port { /* the fabric carries level 5 only */
};

class dcx_port_flid : public dcx_port { /* subnet 1 */
};

class dcx_port_roce : public dcx_port {};

class dcx_port_ip : public dcx_port { /* RoCE v2 */
};

/* --- the address vector --------------------------------------------------- */

TEST_P(dcx_port, av_is_that_of_libmlx5)
{
    for (unsigned path = 0; path < m_dcx.attr.dev_num_paths; path++) {
        expect_av_of_libmlx5(m_dcx.dev_addr(), path);
    }
}

/* A peer whose path attributes differ from this port's */
TEST_P(dcx_port_ib, av_of_other_peers)
{
    for (unsigned peer_lmc = 0; peer_lmc < 8; peer_lmc++) {
        for (uint8_t flags : {0, +FLAG_GLOBAL}) {
            bytes addr = m_dcx.dev_addr();

            addr[ADDR_FLAGS]   = flags | (peer_lmc << LMC_SHIFT);
            addr[ADDR_LID]     = 0x17;
            addr[ADDR_LID + 1] = 0x80;
            addr[ADDR_GID + 3] = 0x77;
            for (unsigned path = 0; path < m_dcx.attr.dev_num_paths; path++) {
                expect_av_of_libmlx5(addr, path);
            }
        }
    }
}

/* --- several paths -------------------------------------------------------- */

TEST_P(dcx_port, number_of_paths)
{
    EXPECT_EQ(GetParam().paths, m_dcx.attr.dev_num_paths);
}

TEST_P(dcx_port, paths_differ)
{
    const unsigned num = m_dcx.attr.dev_num_paths;
    std::set<bytes> avs;
    uint16_t first = 0;

    for (unsigned path = 0; path < num; path++) {
        uct_ep_h ep = m_dcx.make_ep(path);
        bytes av    = av_of(ep);

        avs.insert(av);
        if (is_roce()) {
            EXPECT_EQ(GetParam().is_v1 ? 0u : 0xc000u, rlid(av) & 0xc000u);
            EXPECT_EQ(0, av[13]);
            first = (path == 0) ? rlid(av) : first;
            EXPECT_EQ(GetParam().is_v1 ?
                          0u :
                          (path * GetParam().path_factor) & 0x3fffu,
                      (rlid(av) - first) & 0x3fffu);
        } else {
            EXPECT_EQ(m_dev.port.lid + path_bits(path), rlid(av));
            EXPECT_EQ(path_bits(path), av[13]);
        }
        uct_ep_destroy(ep);
    }
    /* RoCE v1 has no UDP port: the vectors of its paths are equal */
    EXPECT_EQ((GetParam().is_v1 || (GetParam().path_factor == 0)) ?
                  1u :
                  std::min<size_t>(num, is_roce() ? num : num_bits()),
              avs.size());
}

/* Bits 27 to 24 of the word with the number of the DCT are the service level of
 * the target's answers (UCX, uct_dc_mlx5_set_dgram_seg()). */
TEST_P(dcx_port, service_level_of_answers)
{
    for (unsigned path = 0; path < m_dcx.attr.dev_num_paths; path++) {
        uct_ep_h ep = m_dcx.make_ep(path);

        EXPECT_EQ(GetParam().reverse_sl, av_of(ep)[8] & 0x7fu);
        uct_ep_destroy(ep);
    }
}

/* The peer's completion has the source LID, the path bits of the destination
 * LID, and the service level. */
TEST_P(dcx_port, paths_arrive)
{
    for (unsigned path = 0; path < m_dcx.attr.dev_num_paths; path++) {
        uct_ep_h ep                  = m_dcx.make_ep(path);
        const struct mlx5_cqe64 *cqe = send_to_self(ep);

        ASSERT_NE(nullptr, cqe);
        if (is_roce()) {
            EXPECT_EQ(0, cqe->slid);
        } else {
            EXPECT_EQ(m_dev.port.lid + path_bits(path), be16toh(cqe->slid));
            EXPECT_EQ(path_bits(path), cqe->ml_path & 0x7fu);
            EXPECT_EQ(sl, (be32toh(cqe->flags_rqpn) >> 24) & 0xf);
        }
        uct_ep_destroy(ep);
    }
}

TEST_P(dcx_port, path_out_of_range)
{
    ucx_log_reader log;
    uct_ep_h ep;

    EXPECT_EQ(UCS_ERR_INVALID_PARAM,
              m_dcx.create_ep(m_dcx.dev_addr(), m_dcx.attr.dev_num_paths, &ep));
    EXPECT_NE(std::string::npos, log.take().find("UCX_DCX_NUM_PATHS"));
}

TEST_P(dcx_port, peer_of_other_link_layer)
{
    bytes addr = m_dcx.dev_addr();
    ucx_log_reader log;
    uct_ep_h ep;

    addr[ADDR_FLAGS] ^= FLAG_ETHERNET;
    EXPECT_EQ(UCS_ERR_INVALID_ADDR, m_dcx.create_ep(addr, 0, &ep));
    EXPECT_NE(std::string::npos, log.take().find("Ethernet"));
}

/* ep_is_connected() is true for the endpoint's own target and port, by any
 * path, and false for others. */
TEST_P(dcx_port, is_connected)
{
    enum { DCTN = 2, DC_KEY = 5 }; /* offsets in the interface address */
    const bytes dev = m_dcx.dev_addr(), iface = m_dcx.iface_addr();

    for (unsigned path = 0; path < m_dcx.attr.dev_num_paths; path++) {
        uct_ep_h ep     = m_dcx.make_ep(path);
        auto other_port = [&](unsigned at) {
            bytes addr = dev;
            addr[at] ^= 0x10;
            return dcx_peek_is_connected(ep, addr.data(), iface.data());
        };
        auto other_target = [&](unsigned at) {
            bytes addr = iface;
            addr[at] ^= 0x10;
            return dcx_peek_is_connected(ep, dev.data(), addr.data());
        };

        EXPECT_TRUE(dcx_peek_is_connected(ep, dev.data(), iface.data()));
        EXPECT_EQ(is_roce(), other_port(ADDR_LID));
        EXPECT_EQ(is_roce(), other_port(ADDR_LID + 1));
        EXPECT_EQ(!is_global(), other_port(ADDR_GID));
        EXPECT_EQ(!is_global(), other_port(ADDR_GID + 15));
        for (unsigned at = DCTN; at < DC_KEY + sizeof(uint64_t); at++) {
            EXPECT_FALSE(other_target(at)) << at;
        }
        uct_ep_destroy(ep);
    }
}

/* Requests of another service level than the fabric carries are lost, and so
 * are answers. */
TEST_P(dcx_port_sls, others_are_dropped)
{
    for (const char *name : {"UCX_DCX_SL", "UCX_DCX_REVERSE_SL"}) {
        option level(name, "4"), timeout("UCX_DCX_TIMEOUT", "1us");
        option retries("UCX_DCX_RETRY_COUNT", "0");
        ucx_log_reader log;
        dcx_loop other;
        dcx_deadline deadline;

        other.survives_errors = true;
        EXPECT_EQ(UCS_OK, uct_ep_am_short(other.ep, 5, 0, NULL, 0));
        while (other.errors.empty()) {
            deadline.check("an error");
            uct_worker_progress(other.worker);
        }
        log.take();
        m_log.take();
    }
}

/* --- the queue pairs ------------------------------------------------------ */

struct ibv_qp_attr query(struct ibv_qp *qp, int mask)
{
    struct ibv_qp_init_attr init = {};
    struct ibv_qp_attr attr      = {};

    HCA_CHECK_CALL(ibv_query_qp(qp, &attr, mask, &init) == 0);
    return attr;
}

TEST_P(dcx_port, state_of_the_initiator)
{
    struct ibv_qp_attr attr = query(dcx_peek_dci(m_dcx.iface), 0);

    EXPECT_EQ(IBV_QPS_RTS, attr.qp_state);
    EXPECT_EQ(1, attr.port_num);
    EXPECT_EQ(0, attr.pkey_index);
    EXPECT_EQ(IBV_MTU_1024, attr.path_mtu);
    EXPECT_EQ(sl, attr.ah_attr.sl);
    EXPECT_EQ(13, attr.timeout); /* 4.096 us * 2^13 = 33.6 ms */
    bool few = getenv("SOFTHCA_LIMITS") != NULL;

    EXPECT_EQ(few ? 7 : 3, attr.retry_cnt); /* 9 counts as 7 */
    EXPECT_EQ(2, attr.rnr_retry);
    EXPECT_EQ(few ? 2 : 4, attr.max_rd_atomic); /* auto: of the device */
}

TEST_P(dcx_port, state_of_the_target)
{
    struct ibv_qp_attr attr = query(dcx_peek_dct(m_dcx.iface),
                                    IBV_QP_STATE | IBV_QP_PORT |
                                        IBV_QP_PKEY_INDEX | IBV_QP_AV |
                                        IBV_QP_MIN_RNR_TIMER | IBV_QP_PATH_MTU);

    EXPECT_EQ(IBV_QPS_RTR, attr.qp_state);
    EXPECT_EQ(1, attr.port_num);
    EXPECT_EQ(0, attr.pkey_index);
    EXPECT_EQ(IBV_MTU_1024, attr.path_mtu);
    EXPECT_EQ(17, attr.min_rnr_timer); /* 3.84 ms */
    EXPECT_EQ(sl, attr.ah_attr.sl);
    EXPECT_EQ(is_global(), attr.ah_attr.is_global);
    if (attr.ah_attr.is_global) {
        EXPECT_EQ(GetParam().sgid_index, attr.ah_attr.grh.sgid_index);
        EXPECT_EQ(tclass, attr.ah_attr.grh.traffic_class);
        EXPECT_EQ(hop_limit, attr.ah_attr.grh.hop_limit);
    }
}

/* --- reachability --------------------------------------------------------- */

TEST_P(dcx_port, other_link_layer)
{
    bytes addr = m_dcx.dev_addr();

    EXPECT_TRUE(m_dcx.is_reachable(addr));
    addr[ADDR_FLAGS] ^= FLAG_ETHERNET;
    EXPECT_FALSE(m_dcx.is_reachable(addr));
}

/* Reaches a peer in another subnet only if both ends send a GRH. */
TEST_P(dcx_port_ib, other_ib_subnet)
{
    bytes addr = m_dcx.dev_addr();

    addr[ADDR_GID + 7] ^= 1;
    addr[ADDR_FLAGS] &= ~FLAG_GLOBAL;
    EXPECT_FALSE(m_dcx.is_reachable(addr));
    addr[ADDR_FLAGS] |= FLAG_GLOBAL;
    EXPECT_EQ(is_global(), m_dcx.is_reachable(addr));
    addr[ADDR_GID + 7] ^= 1;
    addr[ADDR_GID + 8] ^= 1; /* another port of this subnet */
    EXPECT_TRUE(m_dcx.is_reachable(addr));
}

/* Reaches another subnet if both GIDs have an FLID: sends to it, with a route
 * header. Within the subnet FLIDs differ, too; the LID is used. */
TEST_P(dcx_port_flid, other_ib_subnet)
{
    bool routes = !strcmp(GetParam().name, "flid");
    bytes addr  = m_dcx.dev_addr();
    uct_ep_h ep;

    EXPECT_EQ(routes ? 0x90 : 0, addr[ADDR_GID + 4]);
    EXPECT_EQ(1, addr[ADDR_GID + 7]);
    addr[ADDR_GID + 4] = 0x91;
    EXPECT_EQ(routes, m_dcx.is_reachable(addr));
    ASSERT_EQ(UCS_OK, m_dcx.create_ep(addr, 0, &ep));
    EXPECT_EQ(m_dev.port.lid, rlid(av_of(ep)));
    EXPECT_EQ(routes, (av_of(ep)[8] & 0x80) != 0) << "GRH, as dc_mlx5";
    uct_ep_destroy(ep);

    addr[ADDR_GID + 7] = 2; /* the subnet */
    EXPECT_EQ(routes, m_dcx.is_reachable(addr));
    ASSERT_EQ(UCS_OK, m_dcx.create_ep(addr, 0, &ep));
    bytes av = av_of(ep);
    EXPECT_EQ(routes ? 0x9100u : m_dev.port.lid, rlid(av));
    EXPECT_EQ(routes, (av[8] & 0x80) && (av[28] & 0x40)) << "GRH";
    uct_ep_destroy(ep);

    addr[ADDR_GID + 4] = 0; /* no FLID */
    addr[ADDR_GID + 5] = 0;
    addr[ADDR_FLAGS] &= ~FLAG_GLOBAL;
    EXPECT_FALSE(m_dcx.is_reachable(addr));
}

/* The target answers from the GID with the FLID, and routers forward it. */
TEST_P(dcx_port_flid, way_of_answers)
{
    struct ibv_qp_attr attr = query(dcx_peek_dct(m_dcx.iface), IBV_QP_AV);
    bool routes             = !strcmp(GetParam().name, "flid");

    EXPECT_EQ(routes, attr.ah_attr.is_global);
    EXPECT_EQ(routes ? 1 : 0, attr.ah_attr.grh.sgid_index);
    EXPECT_EQ(routes ? hop_limit : 0u, attr.ah_attr.grh.hop_limit);
    EXPECT_EQ(routes ? tclass : 0u, attr.ah_attr.grh.traffic_class);
}

TEST_P(dcx_port_roce, other_roce_version)
{
    bytes addr = m_dcx.dev_addr();

    EXPECT_EQ(GetParam().is_v1 ? IBV_GID_TYPE_ROCE_V1 : IBV_GID_TYPE_ROCE_V2,
              addr[ADDR_GID_TYPE]);
    addr[ADDR_GID_TYPE] ^= IBV_GID_TYPE_ROCE_V1 ^ IBV_GID_TYPE_ROCE_V2;
    EXPECT_FALSE(m_dcx.is_reachable(addr));
}

/* The port has the address 198.18.0.1. Mode "lag" requires the same /30. */
TEST_P(dcx_port_ip, roce_subnet)
{
    const struct {
        const char *address;
        bool by_default, in_subnet;
    } rows[] = {
        {"::ffff:198.18.0.1", true, true},  {"::ffff:198.18.0.3", true, true},
        {"::ffff:198.18.0.4", true, false}, {"::ffff:10.0.0.1", true, false},
        {"fe80::1", false, false},
    };
    bytes addr = m_dcx.dev_addr();

    for (const auto &row : rows) {
        EXPECT_EQ(1, inet_pton(AF_INET6, row.address, &addr[ADDR_GID]));
        EXPECT_EQ(!strcmp(GetParam().name, "lag") ? row.in_subnet :
                                                    row.by_default,
                  m_dcx.is_reachable(addr))
            << row.address;
    }
}

/* Refuses options that fit no GID of the port, with a line that names one. */
TEST_P(dcx_port_ip, refused)
{
    const struct {
        const char *name, *value, *text;
    } rows[] = {
        {"UCX_IB_ROCE_SUBNETS", "10.1.0.0/16,fd00::/8",
         "UCX_IB_ROCE_SUBNETS allows no GID of port mlx5_0:1"},
        {"UCX_DCX_ROCE_SUBNETS", "^198.18.0.0/15,fe80::/10",
         "UCX_DCX_ROCE_SUBNETS allows no GID of port mlx5_0:1"},
        {"UCX_RC_ROCE_SUBNETS", "10.1.0.0",
         "UCX_RC_ROCE_SUBNETS: '10.1.0.0' is not a subnet"},
        {"UCX_IB_ROCE_SUBNETS", "198.18.0.0/15,rubbish",
         "UCX_IB_ROCE_SUBNETS: 'rubbish' is not a subnet"},
        {"UCX_IB_GID_INDEX", "3",
         "UCX_IB_GID_INDEX=3 and UCX_RC_ROCE_SUBNETS both choose a GID: set "
         "UCX_DCX_GID_INDEX=auto or UCX_DCX_ROCE_SUBNETS=all"},
        {"UCX_IB_REVERSE_SL", "8", "UCX_IB_REVERSE_SL=8 is out of range"},
        {"UCX_IB_ROCE_REACHABILITY_MODE", "route",
         "UCX_IB_ROCE_REACHABILITY_MODE=route: no network interface has"},
        {"UCX_DCX_ROCE_SUBNET_PREFIX_LEN", "33",
         "UCX_DCX_ROCE_SUBNET_PREFIX_LEN=33 is out of range"},
    };

    for (const auto &row : rows) {
        SCOPED_TRACE(row.name);
        bool has_list   = !strcmp(row.name, "UCX_IB_GID_INDEX");
        bool has_prefix = strstr(row.name, "PREFIX_LEN") != NULL;
        option var(row.name, row.value);
        option list(has_list ? "UCX_RC_ROCE_SUBNETS" : "DCX_TEST_NONE",
                    "198.18.0.0/15");
        option local("UCX_DCX_ROCE_LOCAL_SUBNET", has_prefix ? "y" : "n");
        ucx_log_reader log;

        EXPECT_THROW(dcx_loop(), std::runtime_error);
        std::string text = log.take();
        EXPECT_NE(std::string::npos, text.find(row.text)) << text;
    }
}

/* Options of dcx override both variables of the site that choose a GID. */
TEST_P(dcx_port_ip, overridden)
{
    option index("UCX_IB_GID_INDEX", "1");
    option list("UCX_IB_ROCE_SUBNETS", "198.18.0.0/15");

    {
        option all("UCX_DCX_ROCE_SUBNETS", "all");
        dcx_loop other;

        EXPECT_EQ(0xfe, other.dev_addr()[ADDR_GID]);
    }
    {
        option any("UCX_DCX_GID_INDEX", "auto");
        dcx_loop other;

        EXPECT_EQ(0, other.dev_addr()[ADDR_GID]);
    }
}

/* A list of subnets chooses among GIDs, in UCX's order. */
TEST_P(dcx_port_ip, roce_subnets)
{
    const struct {
        const char *value;
        uint8_t first_byte, gid_type;
    } rows[] = {
        {"198.18.0.0/15", 0, IBV_GID_TYPE_ROCE_V2},
        {"fe80::/10", 0xfe, IBV_GID_TYPE_ROCE_V2},
        {"^198.18.0.0/15", 0xfe, IBV_GID_TYPE_ROCE_V2},
        {"^fe80::/10", 0, IBV_GID_TYPE_ROCE_V2},
        {"10.0.0.0/8,198.18.0.1/32", 0, IBV_GID_TYPE_ROCE_V2},
    };

    for (const auto &row : rows) {
        option var("UCX_IB_ROCE_SUBNETS", row.value);
        dcx_loop other;

        EXPECT_EQ(row.first_byte, other.dev_addr()[ADDR_GID]) << row.value;
        EXPECT_EQ(row.gid_type, other.dev_addr()[ADDR_GID_TYPE]) << row.value;
    }
}

/* --- cost of an endpoint -------------------------------------------------- */

/* Heap bytes per endpoint, over many. Endpoints come from slabs, so that
 * malloc() adds less than a byte to each. */
TEST_P(dcx_port, bytes_of_an_endpoint)
{
    const unsigned count = 100000;
    std::vector<uct_ep_h> eps(count);
    struct dcx_ep_sizes sizes;
    size_t before, size, own;

    dcx_peek_ep_sizes(&sizes);
    own = is_global() ? sizes.grh_ep : sizes.ep;
    uct_ep_destroy(m_dcx.make_ep());
    before = mallinfo2().uordblks;
    for (auto &ep : eps) {
        ep = m_dcx.make_ep();
    }
    size = (mallinfo2().uordblks - before) / count;
    for (auto ep : eps) {
        uct_ep_destroy(ep);
    }

    printf("an endpoint takes %zu bytes of the heap, of which %zu are its "
           "own\n",
           size, own);
    EXPECT_EQ(own, size);
}

#define PORT_IB(_mode, ...) \
    INSTANTIATE_TEST_SUITE_P(_mode, dcx_port, testing::Values(__VA_ARGS__)); \
    INSTANTIATE_TEST_SUITE_P(_mode, dcx_port_ib, testing::Values(__VA_ARGS__))

#define PORT_ROCE(_mode, ...) \
    INSTANTIATE_TEST_SUITE_P(_mode, dcx_port, testing::Values(__VA_ARGS__)); \
    INSTANTIATE_TEST_SUITE_P(_mode, dcx_port_roce, testing::Values(__VA_ARGS__))

PORT_IB(ib, network{"ib", false, false, false, 1, 0, {0}});
PORT_IB(global, network{"global", false, true, false, 1, 0, {0}, 1, 9});
PORT_IB(lmc, network{"lmc", false, false, false, 4, 0});
PORT_IB(lid_bits, network{"lid_bits", false, false, false, 5, 0, {3, 2, 0}});
PORT_IB(few_reads, network{"few_reads", false, false, false, 1, 0, {0}});
PORT_ROCE(roce, network{"roce", true, true, false, 3, 3});
PORT_ROCE(roce_v1, network{"roce_v1", true, true, true, 3, 2});
PORT_ROCE(lag, network{"lag", true, true, false, 2, 3});
PORT_ROCE(factor, network{"factor", true, true, false, 3, 3, {0}, 16383, 6});
PORT_ROCE(one_udp, network{"one_udp", true, true, false, 2, 1, {0}, 0});

INSTANTIATE_TEST_SUITE_P(
    flid, dcx_port_flid,
    testing::Values(network{"flid", false, false, false, 1, 1, {0}}));
INSTANTIATE_TEST_SUITE_P(
    no_flid, dcx_port_flid,
    testing::Values(network{"no_flid", false, false, false, 1, 0, {0}}));
INSTANTIATE_TEST_SUITE_P(lmc, dcx_port_sls,
                         testing::Values(network{"lmc", false, false, false, 4,
                                                 0}));
INSTANTIATE_TEST_SUITE_P(roce, dcx_port_ip,
                         testing::Values(network{"roce", true, true, false, 3,
                                                 3}));
INSTANTIATE_TEST_SUITE_P(lag, dcx_port_ip,
                         testing::Values(network{"lag", true, true, false, 2,
                                                 3}));

} /* namespace */

int main(int argc, char **argv)
{
    const std::vector<std::pair<const char *, const char *>> env = {
        {"UCX_DCX_NUM_DCI", "1"},        {"UCX_DCX_TX_QUEUE_LEN", "8"},
        {"UCX_DCX_RX_QUEUE_LEN", "64"},  {"UCX_DCX_SL", "5"},
        {"UCX_DCX_TRAFFIC_CLASS", "33"}, {"UCX_DCX_HOP_LIMIT", "17"},
        {"UCX_DCX_PATH_MTU", "1024"},    {"UCX_DCX_TIMEOUT", "30ms"},
        {"UCX_DCX_RETRY_COUNT", "3"},    {"UCX_DCX_RNR_RETRY_COUNT", "2"},
        {"UCX_DCX_RNR_TIMEOUT", "3ms"},  {"UCX_DCX_MAX_RD_ATOMIC", "4"},
    };
    auto with = [&](std::vector<std::pair<const char *, const char *>> more) {
        more.insert(more.begin(), env.begin(), env.end());
        return more;
    };

    return hca_test_main(
        argc, argv,
        {{"ib", env},
         {"global", with({{"UCX_DCX_IS_GLOBAL", "y"},
                          {"UCX_DCX_REVERSE_SL", "9"},
                          {"SOFTHCA_SLS", "5,9"}})},
         {"lmc", with({{"SOFTHCA_LMC", "2"},
                       {"SOFTHCA_SLS", "5"},
                       {"UCX_DCX_LID_PATH_BITS", "0-4294967295"}})},
         {"lid_bits", with({{"SOFTHCA_LMC", "2"},
                            {"UCX_DCX_LID_PATH_BITS", "3-2,9,0"},
                            {"UCX_DCX_NUM_PATHS", "5"}})},
         {"flid", with({{"SOFTHCA_SUBNET", "1"}})},
         {"no_flid",
          with({{"SOFTHCA_SUBNET", "1"}, {"UCX_DCX_FLID_ROUTE", "n"}})},
         {"few_reads", with({{"SOFTHCA_LIMITS", "max_rd_atomic_dc=2"},
                             {"UCX_DCX_RETRY_COUNT", "9"},
                             {"UCX_DCX_MAX_RD_ATOMIC", "auto"}})},
         {"roce", with({{"SOFTHCA_LINK", "roce"}, {"UCX_DCX_NUM_PATHS", "3"}})},
         {"roce_v1", with({{"SOFTHCA_LINK", "roce"},
                           {"UCX_DCX_GID_INDEX", "2"},
                           {"UCX_DCX_NUM_PATHS", "3"}})},
         {"factor", with({{"SOFTHCA_LINK", "roce"},
                          {"UCX_DCX_REVERSE_SL", "6"},
                          {"UCX_DCX_ROCE_PATH_FACTOR", "16383"},
                          {"UCX_DCX_TRAFFIC_CLASS", "auto"},
                          {"SOFTHCA_TCLASS", "33"},
                          {"UCX_DCX_NUM_PATHS", "3"}})},
         {"one_udp", with({{"SOFTHCA_LINK", "roce"},
                           {"UCX_DCX_ROCE_PATH_FACTOR", "0"},
                           {"UCX_DCX_ROCE_SUBNETS", "^198.18.0.0/15,fd00::/8"},
                           {"UCX_DCX_NUM_PATHS", "2"}})},
         {"lag", with({{"SOFTHCA_LINK", "roce"},
                       {"SOFTHCA_LAG", "y"},
                       {"UCX_DCX_ROCE_LOCAL_SUBNET", "y"},
                       {"UCX_DCX_ROCE_SUBNET_PREFIX_LEN", "30"}})}});
}
