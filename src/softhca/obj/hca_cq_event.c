/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Completion events: see hca_cq_event.h. The arm doorbell record holds a
 * sequence number, which the program increments when it takes an event. A
 * request with the number of the last event was made before the program took
 * that event, and is void (PRM, CQ doorbell record; libmlx5's mlx5_arm_cq(),
 * mlx5_cq_event()).
 */
#include "hca_cq_event.h"
#include "hca_async.h"
#include "hca_cq.h"
#include "softhca/fabric/hca_chan.h"
#include "softhca/fabric/hca_timer.h"

#include <endian.h>
#include <infiniband/mlx5dv.h>
#include <rdma/ib_user_verbs.h>

#define HCA_ARM_SN(_word) (((_word) >> 28) & 3)

/* Timers of moderated queues. Without a free one an event is sent at once. */
#define HCA_CQ_TIMERS 64u

struct hca_cq_timer {
    struct hca_timer timer;
    _Atomic uint32_t cqn; /* 0: free */
};

static struct hca_cq_timer hca_cq_timers[HCA_CQ_TIMERS];

/* Sends the event. The queue stays armed until it is written: if that fails, or
 * its writer is killed before, the next completion tries again. */
static void hca_cq_fire(struct hca_cq *cq)
{
    struct ib_uverbs_comp_event_desc desc = {.cq_handle = cq->obj.user_handle};

    if ((cq->chan != 0) && (hca_chan_write(cq->chan, &desc, sizeof(desc),
                                           &cq->comp_events) != 0)) {
        return;
    }
    if (hca_async_notify(&cq->obj, HCA_EQE_COMP) != 0) {
        return;
    }
    cq->armed       = false;
    cq->mod_pending = 0;
    cq->fired_sn    = cq->arm_sn + 1;
}

static void hca_cq_timer_fn(struct hca_timer *timer)
{
    struct hca_cq_timer *entry = (struct hca_cq_timer *)timer;
    struct hca_cq *cq = hca_obj_lock(HCA_KIND_CQ, atomic_load(&entry->cqn));

    atomic_store(&entry->cqn, 0);
    if (cq != NULL) {
        if (cq->armed && (cq->mod_pending > 0)) {
            hca_cq_fire(cq);
        }
        hca_obj_unlock(cq);
    }
}

/* Starts the timer that sends a delayed event. In the owner's process only: its
 * helper lives as long as the queue, a peer's may end before the timer is due.
 * @return false if the event must be sent now. */
static bool hca_cq_hold_back(struct hca_cq *cq)
{
    if (cq->obj.proc != hca_self) {
        return false;
    }
    for (unsigned i = 0; i < HCA_CQ_TIMERS; i++) {
        struct hca_cq_timer *entry = &hca_cq_timers[i];
        uint32_t none              = 0;

        if (atomic_compare_exchange_strong(&entry->cqn, &none, cq->obj.num)) {
            entry->timer.fn = hca_cq_timer_fn;
            hca_timer_arm(&entry->timer,
                          hca_time_ns() + cq->mod_period_us * 1000ull);
            return true;
        }
    }
    return false;
}

void hca_cq_event_forked(void)
{
    for (unsigned i = 0; i < HCA_CQ_TIMERS; i++) {
        atomic_store(&hca_cq_timers[i].cqn, 0);
    }
}

/* Sends an event after mod_count completions or mod_period_us after the first,
 * whichever comes first (ibv_modify_cq(3)); at once if the period is 0. */
static void hca_cq_moderate(struct hca_cq *cq)
{
    cq->mod_pending++;
    if ((cq->mod_period_us == 0) || (cq->mod_pending >= cq->mod_count)) {
        hca_cq_fire(cq);
        return;
    }
    if ((cq->mod_pending == 1) && !hca_cq_hold_back(cq)) {
        hca_cq_fire(cq);
    }
}

void hca_cq_notify(struct hca_cq *cq, bool solicited)
{
    if (cq->armed_se && !solicited) {
        return;
    }
    if (cq->mod_count > 1) {
        hca_cq_moderate(cq);
    } else {
        hca_cq_fire(cq);
    }
}

/* Returns true if there are completions (solicited ones, if armed for these)
 * that the program had not seen when it armed.
 * @param ci  consumer index of the request */
static bool hca_cq_has_news(const struct hca_cq *cq, uint32_t ci)
{
    uint32_t pi = cq->armed_se ? cq->solicited_pi : cq->pi;

    pi = hca_cq_index(pi - ci);
    return (pi != 0) && (pi <= (1u << 23));
}

static uint32_t hca_cq_arm_word(const struct hca_cq *cq)
{
    const uint32_t *dbrec = hca_at(cq->dbrec);

    /* pairs with the program's barrier before the doorbell */
    return be32toh(__atomic_load_n(&dbrec[1], __ATOMIC_ACQUIRE));
}

static void hca_cq_arm_locked(struct hca_cq *cq, uint32_t word)
{
    cq->arm_word = word;
    if ((cq->fired_sn != 0) && (HCA_ARM_SN(word) == cq->fired_sn - 1u)) {
        return;
    }
    cq->arm_sn      = HCA_ARM_SN(word);
    cq->armed       = true;
    cq->armed_se    = (word & MLX5_CQ_DB_REQ_NOT_SOL) != 0;
    cq->mod_pending = 0;
    if (hca_cq_has_news(cq, hca_cq_index(word))) {
        hca_cq_notify(cq, true);
    }
}

void hca_cq_notify_late(struct hca_cq *cq)
{
    if (cq->armed && hca_cq_has_news(cq, hca_cq_index(cq->arm_word))) {
        hca_cq_notify(cq, true);
    }
}

void hca_cq_arm(uint32_t cqn)
{
    struct hca_cq *cq = hca_obj_lock(HCA_KIND_CQ, cqn);

    if (cq != NULL) {
        hca_cq_arm_locked(cq, hca_cq_arm_word(cq));
        hca_obj_unlock(cq);
    }
}

/* Returns true if the doorbell may have been a request to arm this CQ. A first
 * request, for all completions, leaves the record as it was: 0. */
static bool hca_cq_may_be_asked(const struct hca_cq *cq, uint32_t word)
{
    bool is_first = !cq->armed && (cq->fired_sn == 0) &&
                    ((cq->chan != 0) || (cq->obj.devx.chan != 0));

    return (word != cq->arm_word) || is_first;
}

static void hca_cq_arm_if_moved(void *obj, void *arg)
{
    struct hca_cq *cq = hca_obj_lock(HCA_KIND_CQ,
                                     ((struct hca_cq *)obj)->obj.num);
    uint32_t word;

    (void)arg;
    if (cq != NULL) {
        word = hca_cq_arm_word(cq);
        if (hca_cq_may_be_asked(cq, word)) {
            hca_cq_arm_locked(cq, word);
        }
        hca_obj_unlock(cq);
    }
}

void hca_cq_arm_moved(void)
{
    hca_obj_foreach(HCA_KIND_CQ, hca_self, hca_cq_arm_if_moved, NULL);
}
