/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Shared receive queues as objects: of verbs, of XRC, with tag matching (XRQ),
 * RMPs of DEVX. Their WQEs are taken in hca_rq.h.
 */
#ifndef HCA_SRQ_H
#define HCA_SRQ_H

#include "hca_objs.h"

struct hca_srq_spec {
    unsigned        dev;
    struct hca_ring ring;
    hca_off_t       dbrec;
    uint32_t        pdn;
    uint32_t        xrcdn;       /* XRC only */
    uint32_t        cqn, uidx;   /* XRC and tag matching only */
    uint32_t        async_chan;  /* of its events, 0 none */
    uint64_t        user_handle; /* that these name */
    uint16_t        limit;       /* low-water mark, 0 none */
    bool            is_xrc;
    bool            is_cyclic;   /* no list: WQEs are taken in their order */
    bool            has_tm;      /* tag matching */
    uint8_t         log_tags;    /* of the entries in the list of tags */
    bool            has_rndv;    /* fetches data by rendezvous */
    bool            has_dc_rndv; /* from initiators of DC as well */
    uint32_t        num_strides; /* of a WQE, 0 none */
    uint8_t         log_stride;  /* bytes of one */
};

/* @return 0, -ENOMEM. */
int hca_srq_create(const struct hca_srq_spec *spec, struct hca_srq **srq_p);

/* Arms the low-water mark. @return 0, -ETIMEDOUT (it cannot be had). */
int hca_srq_modify(uint32_t srqn, uint16_t limit);

/* Sets how it fetches data from initiators of DC.
 * @return 0, -ETIMEDOUT, -EINVAL (it does not). */
int hca_srq_set_dc(uint32_t srqn, const struct hca_srq_dc *dc);

/* Takes the queue back, and the list of tags. Whoever has its lock goes on with
 * both of them. @return events reported for it that the program has read. */
uint32_t hca_srq_destroy(struct hca_srq *srq);

#endif
