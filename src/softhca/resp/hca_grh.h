/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The 40 bytes in front of a datagram received by a UD QP: GRH (IBTA 8.3), or
 * for RoCE v2 the IP header (annex A17).
 */
#ifndef HCA_GRH_H
#define HCA_GRH_H

#include "softhca/obj/hca_objs.h"

#define HCA_GRH_SIZE 40u

/* Returns the type of a packet that leaves device @dev by @path. RoCE receivers
 * report it in place of the service level (PRM, responder CQE): bit 3: the
 * packet has a UDP header; bits 2..0: 0 GRH, 1 IPv6, 2 IPv4. */
uint8_t hca_grh_packet_type(const struct hca_path *path, unsigned dev);

/* Builds the header of a packet with @length bytes of immediate data and
 * payload that left device @dev by @path. An IPv4 header is in the last 20
 * bytes, behind zeros. */
void hca_grh_build(uint8_t grh[HCA_GRH_SIZE], const struct hca_path *path,
                   unsigned dev, unsigned length);

#endif
