/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The send queues of this process. The mutex guards their list; finding a queue
 * by its number needs none.
 */
#include "hca_sq.h"
#include "hca_late.h"
#include "hca_order.h"
#include "hca_requester.h"
#include "hca_stream.h"
#include "softhca/base/hca_mutex.h"

#include <errno.h>
#include <stdlib.h>

static pthread_mutex_t hca_sq_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct hca_sq *hca_sqs;

void hca_sq_forked(void)
{
    pthread_mutex_init(&hca_sq_mutex, NULL);
    hca_sqs = NULL;
}

static struct hca_sq *hca_sq_new(struct hca_qp *qp)
{
    struct hca_sq *sq = calloc(1, sizeof(*sq));

    if (sq == NULL) {
        return NULL;
    }
    sq->qp       = qp;
    sq->qpn      = qp->obj.num;
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
    pthread_mutex_lock(&hca_sq_mutex);
    qp->req.sq       = sq;
    qp->req.attached = true;
    sq->next         = hca_sqs;
    hca_sqs          = sq;
    pthread_mutex_unlock(&hca_sq_mutex);
    return 0;
}

void hca_sq_del(struct hca_qp *qp)
{
    struct hca_sq **link = &hca_sqs;

    pthread_mutex_lock(&hca_sq_mutex);
    hca_mutex_lock(&qp->sq_lock);
    qp->req.attached = false;
    hca_mutex_unlock(&qp->sq_lock);
    while ((*link != NULL) && (*link != qp->req.sq)) {
        link = &(*link)->next;
    }
    if (*link != NULL) {
        *link = (*link)->next;
    }
    pthread_mutex_unlock(&hca_sq_mutex);
}

void hca_sq_drop_kept(struct hca_qp *qp)
{
    struct hca_sq *sq = qp->req.sq;

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
        if (qp->req.sq != NULL) {
            hca_posted_flush(&qp->req.sq->posted);
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

void hca_sq_run_all(uint32_t uar)
{
    pthread_mutex_lock(&hca_sq_mutex);
    for (struct hca_sq *sq = hca_sqs; sq != NULL; sq = sq->next) {
        if ((uar == HCA_ANY_UAR) || (sq->qp->uar == uar)) {
            hca_requester_run(sq->qp, sq->qpn);
        }
    }
    pthread_mutex_unlock(&hca_sq_mutex);
}
