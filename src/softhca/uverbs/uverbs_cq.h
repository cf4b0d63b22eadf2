/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Completion queues.
 */
#ifndef UVERBS_CQ_H
#define UVERBS_CQ_H

#include "uverbs_event.h"
#include "uverbs_rings.h"

struct uverbs_cq {
    struct uverbs_obj obj;
    struct hca_cq *cq;
    struct uverbs_event *comp, *async; /* may be NULL */
    struct uverbs_rings rings;
    uint64_t dbrec_addr; /* the program's address */
    unsigned cqe_size;   /* 64 or 128 bytes */
};

#endif
