/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Packets and bytes that cross the ports, for counters/ of sysfs. Each QP counts
 * its own, under locks that are held in any case, so that a message pays a few
 * additions; whoever asks sums them up. What a QP that goes has counted stays
 * with its device.
 */
#ifndef HCA_TRAFFIC_H
#define HCA_TRAFFIC_H

#include "hca_objs.h"

_Static_assert(HCA_NUM_TRAFFIC <= HCA_MAX_TRAFFIC, "room in the segment");

/* Packets from one side's counts to the other's. */
static inline void hca_traffic_move(struct hca_traffic *from,
                                    struct hca_traffic *to, uint64_t packets,
                                    uint64_t bytes)
{
    from->counts[HCA_OUT_PACKETS] += packets;
    from->counts[HCA_OUT_BYTES]   += bytes;
    to->counts[HCA_IN_PACKETS]    += packets;
    to->counts[HCA_IN_BYTES]      += bytes;
}

/* The QP is about to go. */
void hca_traffic_retire(struct hca_qp *qp);

/* Of a device, since the fabric is there; what is under way this moment may be
 * in it or not. */
void hca_traffic_sum(unsigned dev, struct hca_traffic *sum);

#endif
