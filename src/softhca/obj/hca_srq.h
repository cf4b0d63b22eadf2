/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Shared receive queues as objects: of verbs, of XRC, with tag matching (XRQ),
 * RMPs of DEVX. hca_rq.h takes their WQEs.
 */
#ifndef HCA_SRQ_H
#define HCA_SRQ_H

#include "hca_check.h"
#include "hca_objs.h"

struct hca_srq_spec {
    unsigned dev;
    struct hca_ring ring;
    hca_off_t dbrec;
    uint32_t pdn;
    uint32_t xrcdn;       /* XRC only */
    uint32_t cqn, uidx;   /* XRC and tag matching only */
    uint32_t async_chan;  /* for its events, 0 none */
    uint64_t user_handle; /* reported in its events */
    uint16_t limit;       /* low-water mark, 0 none */
    bool is_xrc;
    bool is_cyclic;       /* no list: WQEs are consumed in order */
    bool has_tm;          /* tag matching */
    uint8_t log_tags;     /* log2 of the entries in the tag list */
    bool has_rndv;        /* fetches data by rendezvous */
    bool has_dc_rndv;     /* from initiators of DC, too */
    uint32_t num_strides; /* of a WQE, 0 none */
    uint8_t log_stride;   /* log2 of the bytes of one */
};

/* @return 0, -ENOMEM. */
int hca_srq_create(const struct hca_srq_spec *spec, struct hca_srq **srq_p);

/* Arms the low-water mark. @return 0, -ENOENT (no such queue). */
int hca_srq_modify(uint32_t srqn, uint16_t limit);

/* Sets the attributes for fetching data from initiators of DC, dc->is_on and
 * is_set among them.
 * @return 0, -ENOENT (no such queue), -EINVAL (it fetches none). */
int hca_srq_set_dc(uint32_t srqn, const struct hca_srq_dc *dc);

/* Frees the queue and its tag list.
 * @param events  number of its events that the program has read
 * @return 0; -ETIMEDOUT, as hca_obj_hold_last(): the queue stays. */
int hca_srq_destroy(struct hca_srq *srq, uint32_t *events);

/* Puts a locked queue in error because of its contents. @return @check,
 * logged. */
enum hca_check hca_srq_fail(struct hca_srq *srq, enum hca_check check,
                            uint32_t qpn, uint64_t got);

/* Puts a shared queue in error by a fault, if it exists and is not: its event
 * is SRQ_ERR. The caller holds no lock of an SRQ. */
void hca_srq_fail_by_fault(uint32_t srqn);

#endif
