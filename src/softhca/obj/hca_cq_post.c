/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Adding completions to a CQ (hca_cq.h): under its lock, by the thread that
 * executes the WQE, which may be another process' than the CQ's.
 */
#define _GNU_SOURCE
#include "hca_cq.h"
#include "hca_async.h"
#include "hca_cq_event.h"
#include "hca_cq_mini.h"
#include "hca_cq_post.h"
#include "hca_todo.h"
#include "softhca/base/hca_log.h"

#include <errno.h>
#include <infiniband/mlx5dv.h>

/* Counts entries that were written, but not counted: the last word of an entry
 * makes it valid. Drops held completions that were counted: their index,
 * minis->pi, is not the producer index any more. */
void hca_cq_repair(void *obj)
{
    struct hca_cq *cq       = obj;
    struct hca_minis *minis = hca_cq_minis(cq);
    uint32_t num            = 1;

    if ((minis != NULL) && (minis->pi != hca_cq_index(cq->pi))) {
        minis->num = 0;
    }
    if (hca_cqe_is_put(cq)) {
        if ((minis != NULL) && (minis->num > 0)) {
            num        = hca_minis_num(minis);
            minis->num = 0;
        }
        hca_cq_advance(cq, num);
    }
    hca_cq_notify_late(cq);
}

/* Returns true if there is no room for another completion behind @num held
 * ones. Reads the program's doorbell record only if the queue looks full by the
 * consumer index that was read last. */
static bool hca_cq_is_full(struct hca_cq *cq, uint32_t num)
{
    if (__builtin_expect(!hca_cq_looks_full(cq, num), 1)) {
        return false;
    }
    cq->ci = hca_cq_consumer(cq);
    return hca_cq_looks_full(cq, num);
}

static void hca_cq_fail_locked(struct hca_cq *cq)
{
    cq->overrun = true;
    hca_todo_add_overrun(cq->obj.num);
    hca_async_event(&cq->obj, IBV_EVENT_CQ_ERR);
}

void hca_cq_fail(uint32_t cqn)
{
    struct hca_cq *cq = hca_obj_lock(HCA_KIND_CQ, cqn);

    if (cq == NULL) {
        return;
    }
    if (!cq->overrun) {
        hca_cq_fail_locked(cq);
    }
    hca_obj_unlock(cq);
}

static enum hca_check hca_cq_overrun(struct hca_cq *cq)
{
    if (!cq->overrun) {
        hca_warn("cq 0x%x: overrun: %u entries, consumer index 0x%x, "
                 "producer 0x%x",
                 cq->obj.num, 1u << cq->ring.log_cnt, hca_cq_consumer(cq),
                 cq->pi);
        hca_cq_fail_locked(cq);
    }
    return HCA_CHECK_CQ;
}

/* --- compression ---------------------------------------------------------- */

/* Writes the held completions, a single one as a plain entry. */
static void hca_cq_close_locked(struct hca_cq *cq)
{
    struct hca_minis *minis = hca_cq_minis(cq);
    unsigned num            = hca_minis_num(minis);
    struct hca_cqe title;

    if (num > 1) {
        hca_cqe_put_minis(cq, minis);
    } else if (num == 1) {
        title = hca_minis_title(minis);
        hca_cqe_put(cq, &title, 0);
    }
    hca_cq_advance(cq, num);
    atomic_signal_fence(memory_order_release); /* hca_cq_repair() */
    minis->num = 0;
    while (cq->armed && (num-- > 0)) {
        hca_cq_notify(cq, false);
    }
}

/* Holds @cqe for compression.
 * @return false if it must be written instead; none is held then. */
static bool hca_cq_hold(struct hca_cq *cq, const struct hca_cqe *cqe)
{
    struct hca_minis *minis = hca_cq_minis(cq);
    bool is_plain = (cq->obj.proc == hca_self) && hca_mini_is_plain(cqe);

    if ((minis->num > 0) && (!is_plain || !hca_minis_take(minis, cqe) ||
                             (minis->num == (1u << cq->ring.log_cnt)))) {
        hca_cq_close_locked(cq);
    }
    if (!is_plain || cq->overrun ||
        (!cq->ignore_overrun && hca_cq_is_full(cq, minis->num)) ||
        !hca_todo_add_held(cq->obj.num)) {
        hca_cq_close_locked(cq);
        return false;
    }
    minis->pi = cq->pi;
    hca_minis_add(minis, cqe);
    return true;
}

void hca_cq_close(uint32_t cqn)
{
    struct hca_cq *cq = hca_obj_lock(HCA_KIND_CQ, cqn);

    if (cq != NULL) {
        hca_cq_close_locked(cq);
        hca_obj_unlock(cq);
    }
}

/* --- all queues ----------------------------------------------------------- */

enum hca_check hca_cq_post_locked(struct hca_cq *cq, const struct hca_cqe *cqe)
{
    if (__builtin_expect(cq->minis != 0, 0) && hca_cq_hold(cq, cqe)) {
        return HCA_OK;
    }
    if (cq->overrun || (!cq->ignore_overrun && hca_cq_is_full(cq, 0))) {
        return hca_cq_overrun(cq);
    }
    hca_cqe_put(cq, cqe, 0);
    hca_cq_advance(cq, 1);
    if (cqe->solicited || hca_cqe_is_error(cqe)) {
        cq->solicited_pi = cq->pi;
    }
    if (cq->armed) {
        hca_cq_notify(cq, cqe->solicited || hca_cqe_is_error(cqe));
    }
    return HCA_OK;
}

enum hca_check hca_cq_post(uint32_t cqn, const struct hca_cqe *cqe)
{
    struct hca_cq *cq = hca_obj_lock(HCA_KIND_CQ, cqn);
    enum hca_check check;

    if (cq == NULL) {
        return HCA_CHECK_CQ;
    }
    check = hca_cq_post_locked(cq, cqe);
    hca_obj_unlock(cq);
    return check;
}

/* Writes a RESIZE_CQ entry, at an index of its own: libmlx5 copies the entries
 * not polled yet to index + 1 of the new ring and continues behind them
 * (mlx5_cq_resize_copy_cqes()). */
int hca_cq_resize(uint32_t cqn, const struct hca_ring *ring)
{
    static const struct hca_cqe mark = {.opcode = MLX5_CQE_RESIZE_CQ};
    struct hca_cq *cq                = hca_obj_lock(HCA_KIND_CQ, cqn);
    uint32_t pending;

    if (cq == NULL) {
        return -ENOENT;
    }
    if (cq->minis != 0) {
        hca_cq_close_locked(cq);
    }
    pending = hca_cq_index(cq->pi - hca_cq_consumer(cq));
    if (pending >= (1u << ring->log_cnt)) {
        hca_obj_unlock(cq);
        return -EINVAL;
    }
    hca_cqe_put(cq, &mark, 0);
    hca_cq_advance(cq, 1);
    cq->ring = *ring;
    hca_obj_unlock(cq);
    return 0;
}
