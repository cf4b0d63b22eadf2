/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/* The send queues of this process: see hca_sq.h. */
#define _GNU_SOURCE
#include "hca_sq.h"
#include "hca_late.h"
#include "hca_order.h"
#include "hca_requester.h"
#include "hca_stream.h"
#include "softhca/base/hca_mutex.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* In pages of its own, for hca_sq_forked() */
struct hca_sq *hca_sqs[HCA_MAX_QPS + 1] __attribute__((aligned(4096)));

/* Drops the pages, which are empty then: to clear them would give each child
 * half a megabyte. */
void hca_sq_forked(void)
{
    syscall(SYS_madvise, hca_sqs, sizeof(hca_sqs), MADV_DONTNEED);
}

static struct hca_sq *hca_sq_new(struct hca_qp *qp)
{
    struct hca_sq *sq = calloc(1, sizeof(*sq));

    if (sq == NULL) {
        return NULL;
    }
    sq->qp       = qp;
    sq->timer.fn = hca_requester_timer;
    hca_posted_init(&sq->posted, qp);
    if (qp->has_streams || (hca_late_ns != 0) ||
        (hca_order != HCA_ORDER_IBTA)) {
        sq->streams = hca_stream_new(qp);
        if (sq->streams == NULL) {
            free(sq);
            return NULL;
        }
    }
    return sq;
}

int hca_sq_add(struct hca_qp *qp)
{
    struct hca_sq *sq = hca_sq_new(qp);

    if (sq == NULL) {
        return -ENOMEM;
    }
    hca_mutex_lock(&qp->sq_lock);
    hca_sqs[hca_obj_index(HCA_KIND_QP, qp)] = sq;
    qp->req.attached                        = true;
    hca_mutex_unlock(&qp->sq_lock);
    return 0;
}

struct hca_sq *hca_sq_detach(struct hca_qp *qp)
{
    struct hca_sq *sq = hca_sq_of(qp);

    hca_sqs[hca_obj_index(HCA_KIND_QP, qp)] = NULL;
    qp->req.attached                        = false;
    return sq;
}

void hca_sq_free(struct hca_sq *sq)
{
    if (!hca_timer_cancel(&sq->timer) || !hca_timer_cancel(&sq->posted.timer)) {
        return; /* leaks: a timer waits for a stopped process */
    }
    free(sq->streams);
    free(sq);
}

void hca_sq_drop_kept(struct hca_qp *qp)
{
    struct hca_sq *sq = hca_sq_of(qp);

    if (sq->streams != NULL) {
        hca_stream_clear(qp);
    }
    hca_posted_flush(&sq->posted);
}

/* Skips a queue that a thread executes on, which may be this one: exit() may be
 * called in a signal handler. */
static void hca_sq_exit_qp(void *obj, void *arg)
{
    struct hca_qp *qp = obj;

    (void)arg;
    if (hca_mutex_try(&qp->sq_lock)) {
        if (hca_sq_of(qp) != NULL) {
            hca_posted_flush(&hca_sq_of(qp)->posted);
        }
        hca_mutex_unlock(&qp->sq_lock);
    }
}

void hca_sq_exit(void)
{
    if (hca_order == HCA_ORDER_RELAXED) {
        hca_obj_foreach(HCA_KIND_QP, hca_self, hca_sq_exit_qp, NULL);
    }
}

static void hca_sq_run_of_uar(void *obj, void *arg)
{
    struct hca_qp *qp   = obj;
    const uint32_t *uar = arg;
    uint32_t qpn        = atomic_load(&qp->obj.num);

    if ((qpn != 0) && ((*uar == HCA_ANY_UAR) || (*uar == qp->uar))) {
        hca_requester_run(qp, qpn);
    }
}

void hca_sq_run_all(uint32_t uar)
{
    hca_obj_foreach(HCA_KIND_QP, hca_self, hca_sq_run_of_uar, &uar);
}
