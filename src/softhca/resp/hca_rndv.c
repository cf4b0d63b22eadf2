/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The start of a rendezvous: see hca_rndv.h. While it is under way it has a
 * struct hca_rndv in the memory of the process that runs it, and a record
 * beside the list of tags (hca_tm_job.h).
 */
#include "hca_rndv.h"
#include "softhca/fabric/hca_dev.h"
#include "softhca/fabric/hca_proc.h"
#include "softhca/obj/hca_todo.h"

#include <string.h>

static_assert(sizeof(struct hca_rndv_request) == 48, "headers of a message");

/* Allocated statically, as a doorbell may be rung in a signal handler that has
 * interrupted malloc(). */
static struct hca_rndv hca_rndvs[HCA_RNDV_MAX];
static _Atomic(uint64_t) hca_rndvs_used;

static_assert(HCA_RNDV_MAX == 64, "bits of hca_rndvs_used");

struct hca_rndv *hca_rndv_get(void)
{
    uint64_t used = atomic_load(&hca_rndvs_used);
    struct hca_rndv *rndv;
    unsigned i;

    do {
        if (used == UINT64_MAX) {
            return NULL;
        }
        i = __builtin_ctzll(~used);
    } while (!atomic_compare_exchange_weak(&hca_rndvs_used, &used,
                                           used | (1ull << i)));
    rndv = &hca_rndvs[i];
    memset(rndv, 0, sizeof(*rndv));
    return rndv;
}

void hca_rndv_put(struct hca_rndv *rndv)
{
    atomic_fetch_and(&hca_rndvs_used, ~(1ull << (rndv - hca_rndvs)));
}

/* Sets the path back to the origin of the request. */
static void hca_rndv_turn(struct hca_rndv *rndv,
                          const struct hca_responder *resp,
                          const struct hca_srq_dc *dc)
{
    const struct hca_msg *msg = resp->msg;
    struct hca_path *path     = &rndv->job.way_back;
    bool is_roce              = hca_dev_is_roce(rndv->job.dev);
    bool is_near              = hca_dev_are_near(rndv->job.dev, msg->src_dev);
    uint16_t lid = hca_dev_lid(msg->src_dev) | msg->path->src_path_bits;

    path->dlid       = is_near ? lid : hca_dev_flid(msg->src_dev);
    path->sl         = dc->sl;
    path->reverse_sl = dc->reverse_sl;
    path->grh        = is_roce || msg->path->grh;
    path->sgid_index = resp->qp->attr.path.sgid_index;
    path->hop_limit  = resp->qp->attr.path.hop_limit;
    if (path->grh) {
        hca_dev_gid(msg->src_dev, msg->path->sgid_index, path->dgid);
        hca_dev_mac(msg->src_dev, path->dmac);
    }
}

void hca_rndv_start(struct hca_rndv *rndv, const struct hca_responder *resp,
                    const struct hca_srq *srq,
                    const struct hca_rndv_request *request)
{
    hca_tm_job_init(&rndv->job, resp->qp, resp->msg, request);
    rndv->recv        = resp->recv;
    rndv->job.is_rndv = true;
    rndv->job.mtu     = srq->dc.mtu;
    rndv->job.pkey    = srq->dc.pkey;
    rndv->job.timeout = srq->dc.ack_timeout;
    if (rndv->job.is_dc) {
        hca_rndv_turn(rndv, resp, &srq->dc);
    }
    *hca_tm_job(hca_srq_tm(srq), resp->recv.tm_index) = rndv->job;
    hca_proc_have_watched(srq->obj.proc);
    rndv->next    = hca_todo.rndv;
    hca_todo.rndv = rndv;
}
