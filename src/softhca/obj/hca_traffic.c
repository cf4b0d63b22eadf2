/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/* Sums of what queue pairs count: see hca_traffic.h. */
#include "hca_traffic.h"

#include <string.h>

void hca_traffic_retire(struct hca_qp *qp)
{
    for (unsigned i = 0; i < HCA_NUM_TRAFFIC; i++) {
        atomic_fetch_add(&hca_fabric->traffic[qp->obj.dev][i],
                         qp->asked.counts[i] + qp->answered.counts[i]);
    }
    memset(&qp->asked, 0, sizeof(qp->asked));
    memset(&qp->answered, 0, sizeof(qp->answered));
}

struct hca_traffic_of {
    unsigned dev;
    struct hca_traffic *sum;
};

static void hca_traffic_add(void *obj, void *arg)
{
    const struct hca_qp *qp         = obj;
    const struct hca_traffic_of *of = arg;

    for (unsigned i = 0; (qp->obj.dev == of->dev) && (i < HCA_NUM_TRAFFIC);
         i++) {
        of->sum->counts[i] += qp->asked.counts[i] + qp->answered.counts[i];
    }
}

void hca_traffic_sum(unsigned dev, struct hca_traffic *sum)
{
    struct hca_traffic_of of = {dev, sum};

    for (unsigned i = 0; i < HCA_NUM_TRAFFIC; i++) {
        sum->counts[i] = atomic_load(&hca_fabric->traffic[dev][i]);
    }
    hca_obj_foreach(HCA_KIND_QP, HCA_ANY_PROC, hca_traffic_add, &of);
}
