/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Shared receive queues.
 */
#ifndef UVERBS_SRQ_H
#define UVERBS_SRQ_H

#include "uverbs_cq.h"
#include "uverbs_pd.h"
#include "uverbs_xrcd.h"

struct uverbs_srq {
    struct uverbs_obj obj;
    struct hca_srq *srq;
    struct uverbs_pd *pd;
    struct uverbs_cq *cq;     /* XRC, tag matching; or NULL */
    struct uverbs_xrcd *xrcd; /* XRC; or NULL */
    struct uverbs_event *async;
    struct uverbs_rings rings;
    uint32_t max_sge; /* scatter entries of a WQE */
};

/* Returns the limit of tags in the list of one SRQ. */
uint32_t uverbs_max_tags(void);

#endif
