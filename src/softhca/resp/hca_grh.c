/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Headers of UD packets, built for each message that has one: see hca_grh.h.
 */
#define _GNU_SOURCE
#include "hca_grh.h"
#include "softhca/fabric/hca_dev.h"

#include <arpa/inet.h>
#include <assert.h>
#include <endian.h>
#include <infiniband/verbs.h>
#include <netinet/ip.h>
#include <string.h>

#define HCA_GRH_NEXT_BTH 0x1bu /* IBA transport */
/* BTH, DETH and ICRC of a UD packet */
#define HCA_UD_OVERHEAD (12u + 8u + 4u)

static_assert(sizeof(struct ibv_grh) == HCA_GRH_SIZE, "IBTA 8.3");

static bool hca_gid_is_ipv4(const uint8_t gid[16])
{
    static const uint8_t prefix[12] = {[10] = 0xff, [11] = 0xff};

    return !memcmp(gid, prefix, sizeof(prefix));
}

static uint16_t hca_ip_checksum(const void *header)
{
    const uint16_t *words = header;
    uint32_t sum          = 0;

    for (unsigned i = 0; i < sizeof(struct iphdr) / 2; i++) {
        sum += words[i];
    }
    sum = (sum & 0xffff) + (sum >> 16);
    return ~(sum + (sum >> 16));
}

static void hca_grh_build_ipv4(uint8_t *grh, const struct hca_path *path,
                               const uint8_t sgid[16], unsigned length)
{
    struct iphdr ip = {
        .version  = 4,
        .ihl      = 5,
        .tos      = path->tclass,
        .tot_len  = htons(sizeof(ip) + 8 + HCA_UD_OVERHEAD + length),
        .frag_off = htons(IP_DF),
        .ttl      = path->hop_limit,
        .protocol = IPPROTO_UDP,
    };

    memcpy(&ip.saddr, sgid + 12, 4);
    memcpy(&ip.daddr, path->dgid + 12, 4);
    ip.check = hca_ip_checksum(&ip);
    memset(grh, 0, HCA_GRH_SIZE);
    memcpy(grh + HCA_GRH_SIZE - sizeof(ip), &ip, sizeof(ip));
}

uint8_t hca_grh_packet_type(const struct hca_path *path, unsigned dev)
{
    uint8_t gid[16];

    if (hca_dev_gid(dev, path->sgid_index, gid) != HCA_GID_ROCE_V2) {
        return 0;
    }
    return 0x8 | (hca_gid_is_ipv4(gid) ? 2 : 1);
}

void hca_grh_build(uint8_t grh[HCA_GRH_SIZE], const struct hca_path *path,
                   unsigned dev, unsigned length)
{
    struct ibv_grh header = {
        .version_tclass_flow = htobe32(
            (6u << 28) | ((uint32_t)path->tclass << 20) | path->flow_label),
        .next_hdr  = HCA_GRH_NEXT_BTH,
        .hop_limit = path->hop_limit,
    };
    enum hca_gid_type type;

    length = (length + 3) & ~3u;
    type   = hca_dev_gid(dev, path->sgid_index, header.sgid.raw);
    if ((type == HCA_GID_ROCE_V2) && hca_gid_is_ipv4(header.sgid.raw)) {
        hca_grh_build_ipv4(grh, path, header.sgid.raw, length);
        return;
    }
    if (type == HCA_GID_ROCE_V2) {
        header.next_hdr = IPPROTO_UDP;
        length += 8;
    }
    header.paylen = htobe16(HCA_UD_OVERHEAD + length);
    memcpy(header.dgid.raw, path->dgid, sizeof(header.dgid.raw));
    memcpy(grh, &header, sizeof(header));
}
