/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The devices: how many this node has, and the name of each on the fabric.
 * A device is `dev` = node * HCA_DEVS_PER_NODE + n, where n is that of mlx5_n.
 * Its GUIDs and MAC follow from that number alone, its LID and GIDs from the
 * number and the link layer and LMC in hca_fabric->dev_link.
 *
 * SOFTHCA_DEVICES (1..16, default 1), SOFTHCA_NODE (0..15, default 0),
 * SOFTHCA_LINK (ib or roce, default that of SOFTHCA_MODEL, else ib),
 * SOFTHCA_LMC (0..7, default 0), SOFTHCA_LAG (y or n, default n),
 * SOFTHCA_DCI_STREAMS (log2, 0..8), SOFTHCA_DCI_ERRORED (log2, 0..4),
 * SOFTHCA_DOWN and SOFTHCA_OTHER (0..15), SOFTHCA_PKEYS (P_Keys, with commas
 * between) and SOFTHCA_NAMES (names, with commas between) are read when
 * attaching.
 */
#ifndef HCA_DEV_H
#define HCA_DEV_H

#include "hca_caps.h"
#include "hca_segment.h"

#define HCA_PKEY_TABLE_LEN 128u    /* InfiniBand; RoCE has one entry */
#define HCA_PKEY_FULL      0x8000u /* a full member of its partition */
#define HCA_GID_TABLE_LEN  4u /* RoCE: v1, v2 of two GIDs; InfiniBand uses 1 */

#define HCA_DEV_NAME_LEN 32u /* with the final NUL */

/* LIDs of a port with an LMC begin at a multiple of the most that a port can
 * have; they lie above those of ports without one. */
#define HCA_LID_SPAN  128u
#define HCA_LID_FIRST (3 * HCA_LID_SPAN)

/* First LID that routers forward to another subnet (FLID), one for each device;
 * above all LIDs of ports */
#define HCA_FLID_FIRST 0x9000u

#define HCA_GID_NETDEV "lo" /* of RoCE GIDs: it has to exist */

/* CapabilityMask of PortInfo (IBTA 14.2.5.6); an Ethernet port reports only a
 * connection manager (mlx5_query_port_roce()) */
#define HCA_PORT_CAP_MASK      0x2651e84au
#define HCA_PORT_CAP_MASK_ROCE (1u << 16)

enum hca_link {
    HCA_LINK_NONE, /* no process has this device yet */
    HCA_LINK_IB,
    HCA_LINK_ROCE
};

/* An entry of hca_fabric->dev_link has, above the link layer, the LMC and a bit
 * for a port that is down. */
#define HCA_LINK_LAYER     0x0fu
#define HCA_LINK_LMC_SHIFT 4
#define HCA_LINK_LMC       0x70u
#define HCA_LINK_DOWN      0x80u

enum hca_gid_type {
    HCA_GID_NONE,
    HCA_GID_IB,
    HCA_GID_ROCE_V1,
    HCA_GID_ROCE_V2
};

struct hca_config {
    unsigned num_devs;
    unsigned node;
    enum hca_link link;
    unsigned subnet;      /* InfiniBand: number of the subnet; 0: fe80:: */
    unsigned lmc;         /* 2^lmc LIDs for each port (IBTA 7.11.1) */
    bool lag;             /* RoCE: the port is a bond of two */
    unsigned log_streams; /* of a DCI, log2, at most; 0: it has none */
    unsigned log_errored; /* of these in error at once, log2 */
    /* n of the device whose port is down, and of the one that is not mlx5;
     * HCA_DEVS_PER_NODE: none */
    unsigned down;
    unsigned other;
    uint16_t sls;    /* bit n: the fabric carries service level n */
    unsigned tclass; /* RoCE: of all packets of a port; UINT_MAX: none */
    uint16_t pkeys[HCA_PKEY_TABLE_LEN];              /* of each port */
    char names[HCA_DEVS_PER_NODE][HCA_DEV_NAME_LEN]; /* or "" */
};

extern struct hca_config hca_config;

/* Reads the variables. @return 0, or -EINVAL after logging a line that names
 * the variable, its value and its range. */
int hca_config_init(void);

/* Enters this node's devices in the fabric. @return 0, or -EINVAL, logged, if
 * another process of this node entered one with another link layer, LMC or
 * state of its port. */
int hca_dev_register(void);

static inline unsigned hca_dev_local(unsigned n)
{
    return hca_config.node * HCA_DEVS_PER_NODE + n;
}

static inline bool hca_dev_is_roce(unsigned dev)
{
    return (hca_fabric->dev_link[dev] & HCA_LINK_LAYER) == HCA_LINK_ROCE;
}

static inline unsigned hca_dev_lmc(unsigned dev)
{
    return (hca_fabric->dev_link[dev] & HCA_LINK_LMC) >> HCA_LINK_LMC_SHIFT;
}

/* Returns true if the port is down: from the start, or by hca_port_down(). */
static inline bool hca_dev_is_down(unsigned dev)
{
    return (hca_fabric->dev_link[dev] & HCA_LINK_DOWN) ||
           hca_fabric->port_down[dev];
}

/* Returns true if a port of this node is down only for want of a subnet manager
 * (INIT): it has a link. */
static inline bool hca_dev_is_init(unsigned dev)
{
    return hca_lacks(HCA_LACK_SM) && !hca_fabric->port_down[dev] &&
           (dev != hca_dev_local(hca_config.down));
}

/* Returns true if mlx5_n is only listed, as a device of another driver. */
static inline bool hca_dev_is_other(unsigned n)
{
    return n == hca_config.other;
}

static inline uint32_t hca_dev_cap_mask(unsigned dev)
{
    return hca_dev_is_roce(dev) ? HCA_PORT_CAP_MASK_ROCE : HCA_PORT_CAP_MASK;
}

/* Returns true if switches have a lane for packets of a service level that this
 * process sends, or asks for (SLtoVLMappingTable, IBTA 7.6.6). */
static inline bool hca_dev_carries(unsigned sl)
{
    return (hca_config.sls >> sl) & 1;
}

/* Returns the bits of a LID that choose a path to the port, or from it. */
static inline uint16_t hca_dev_path_mask(unsigned dev)
{
    return (1u << hca_dev_lmc(dev)) - 1;
}

/* Returns true if the port is InfiniBand, has one LID (LMC 0), and was not
 * configured to be down. */
static inline bool hca_dev_has_one_lid(unsigned dev)
{
    return hca_fabric->dev_link[dev] == HCA_LINK_IB;
}

/* Returns the only LID of a port with LMC 0, host order. LID 0 is reserved. */
static inline uint16_t hca_dev_one_lid(unsigned dev)
{
    return dev + 1;
}

/* Returns the LID of a path to an InfiniBand port, host order; as many of
 * @bits count as its LMC. */
static inline uint16_t hca_dev_path_lid(unsigned dev, unsigned bits)
{
    unsigned lmc = hca_dev_lmc(dev);

    return (lmc == 0) ?
               hca_dev_one_lid(dev) :
               HCA_LID_FIRST + dev * HCA_LID_SPAN + (bits & ((1u << lmc) - 1));
}

/* Returns the first LID of the device's port, host order; 0 on RoCE. */
static inline uint16_t hca_dev_lid(unsigned dev)
{
    return hca_dev_is_roce(dev) ? 0 : hca_dev_path_lid(dev, 0);
}

/* Returns the number of the subnet of a device; 0: the default one. */
static inline unsigned hca_dev_subnet(unsigned dev)
{
    uint16_t subnet = hca_fabric->dev_subnet[dev];

    return (subnet == 0) ? 0 : subnet - 1u;
}

/* Returns true if no router is between two devices. */
static inline bool hca_dev_are_near(unsigned a, unsigned b)
{
    return hca_dev_subnet(a) == hca_dev_subnet(b);
}

/* Returns the LID by which routers lead from other subnets to the port. It is 0
 * in the default subnet, which has no routers. */
static inline uint16_t hca_dev_flid(unsigned dev)
{
    return (hca_dev_subnet(dev) == 0) ? 0 : HCA_FLID_FIRST + dev;
}

/* Returns the GUID of the node and the port (big endian, as in verbs). */
uint64_t hca_dev_guid(unsigned dev);

/* Return the length of the P_Key table of a device of this node, and an entry
 * of it: 0, which is no partition's, beyond the table. */
unsigned hca_dev_num_pkeys(unsigned dev);
uint16_t hca_dev_pkey(unsigned dev, unsigned index);

/* Adds @size bytes to the device memory that this process has of a device, and
 * hca_dev_give_memory() subtracts them.
 * @return false, with nothing added, if all processes of the node would have
 *         more than @total bytes. */
bool hca_dev_take_memory(unsigned dev, uint32_t size, uint32_t total);
void hca_dev_give_memory(unsigned dev, uint32_t size);

void hca_dev_mac(unsigned dev, uint8_t mac[6]);

/* Returns the name of a device of this node: the kernel's, or that of
 * SOFTHCA_NAMES, as if a udev rule had renamed it (rdma_rename). */
void hca_dev_name(unsigned n, char name[HCA_DEV_NAME_LEN]);

/* Reads an entry of the GID table. @return its type; HCA_GID_NONE: empty. */
enum hca_gid_type hca_dev_gid(unsigned dev, unsigned index, uint8_t gid[16]);

/* Returns the device that has a GID; -1 if no process has entered one. */
int hca_dev_by_gid(const uint8_t gid[16]);

#endif
