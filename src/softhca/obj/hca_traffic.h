/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Packets and bytes that cross the ports, and messages that arrive, for
 * counters/ and hw_counters/ of sysfs. Each QP counts its own, under locks that
 * are held in any case, so that a message costs a few additions; a reader sums
 * them up. The counts of a destroyed QP stay with its device.
 */
#ifndef HCA_TRAFFIC_H
#define HCA_TRAFFIC_H

#include "hca_objs.h"

_Static_assert(HCA_NUM_TRAFFIC <= HCA_MAX_TRAFFIC, "room in the segment");

/* Counts packets, and bytes of payload, that @from sends to @to. */
static inline void hca_traffic_move(struct hca_traffic *from,
                                    struct hca_traffic *to, uint64_t packets,
                                    uint64_t bytes)
{
    from->counts[HCA_OUT_PACKETS] += packets;
    from->counts[HCA_OUT_BYTES] += bytes;
    to->counts[HCA_IN_PACKETS] += packets;
    to->counts[HCA_IN_BYTES] += bytes;
}

/* Moves the counts of a QP that is being destroyed to those of its device. */
void hca_traffic_retire(struct hca_qp *qp);

/* Sums the counts of a device, those of live and of destroyed QPs, without a
 * lock: traffic under way may be included or not. */
void hca_traffic_sum(unsigned dev, struct hca_traffic *sum);

#endif
