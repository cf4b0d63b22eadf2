/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Doorbells: from a store to a UAR page (hca_uar.h) to its queue. The value is
 * the first eight bytes of a WQE, which name the QP; the doorbell records say
 * what to execute. A shorter store names no queue: all queues of the page run.
 * A wrong number rings nothing, as on a NIC.
 *
 * hca_uar_mutex guards the list of pages; a doorbell needs none.
 */
#include "hca_uar.h"
#include "hca_bf.h"
#include "hca_requester.h"
#include "hca_sq.h"
#include "hca_thread.h"
#include "softhca/base/hca_log.h"
#include "softhca/doorbell/hca_trap.h"
#include "softhca/obj/hca_cq_event.h"
#include "softhca/obj/hca_pcie.h"

#include <common/prm.h>
#include <endian.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <x86intrin.h>

/* Offset in the page of the doorbell of CQs (MLX5_CQ_DOORBELL of the driver's
 * cq.h); the registers of send queues are in hca_push.h. */
#define HCA_UAR_CQ_DB 0x20u

struct hca_uar {
    uint32_t id;
    void *page;
    bool is_wc;   /* write-combining: pushes arrive whole */
    bool is_told; /* a torn push was logged */
    struct hca_uar *next;
    struct hca_push push;
};

static pthread_mutex_t hca_uar_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct hca_uar *hca_uars;

void hca_uar_forked(void)
{
    struct hca_uar *uar;

    pthread_mutex_init(&hca_uar_mutex, NULL);
    while ((uar = hca_uars) != NULL) {
        hca_uars = uar->next;
        if (uar->page != NULL) {
            hca_trap_del(uar->page); /* a store there is a plain fault now */
        }
        free(uar);
    }
}

/* Finds a page, under the mutex. */
static struct hca_uar *hca_uar_find(uint32_t id)
{
    struct hca_uar *uar = hca_uars;

    while ((uar != NULL) && (uar->id != id)) {
        uar = uar->next;
    }
    return uar;
}

/* Finds or adds a page, under the mutex. */
static struct hca_uar *hca_uar_get(uint32_t id)
{
    struct hca_uar *uar = hca_uar_find(id);

    if (uar == NULL) {
        uar = calloc(1, sizeof(*uar));
        if (uar != NULL) {
            uar->id   = id;
            uar->next = hca_uars;
            hca_uars  = uar;
        }
    }
    return uar;
}

static void hca_uar_unknown(const struct hca_uar *uar, const char *what,
                            uint32_t number)
{
    hca_warn("uar 0x%x: doorbell register: %s is 0x%x, expected that of a "
             "queue of this page",
             uar->id, what, number);
}

/* Rings a CQ, only through the page that its context names (cqc.uar_page).
 * @param cqn  0: any CQ of this process */
static void hca_uar_ring_cq(struct hca_uar *uar, uint32_t cqn)
{
    struct hca_cq *cq;

    if (cqn == 0) { /* a store of less than eight bytes */
        hca_cq_arm_moved();
        return;
    }
    cq = hca_obj_peek(HCA_KIND_CQ, cqn);
    if ((cq == NULL) || (cq->obj.proc != hca_self) || (cq->uar != uar->id)) {
        hca_uar_unknown(uar, "cqn", cqn);
        return;
    }
    if (hca_pcie_is_on()) {
        hca_pcie_ring(&cq->pcie);
    }
    hca_cq_arm(cqn);
}

/* Returns the first 64 bits of the stored value; 0 if it has fewer. */
static uint64_t hca_uar_hint(const void *value, unsigned size)
{
    __be64 hint = 0;

    if (size >= sizeof(hint)) {
        memcpy(&hint, value, sizeof(hint));
    }
    return be64toh(hint);
}

static struct hca_qp *hca_uar_find_qp(const struct hca_uar *uar, uint32_t qpn)
{
    struct hca_qp *qp = hca_obj_peek(HCA_KIND_QP, qpn);

    if ((qp == NULL) || (qp->obj.proc != hca_self) || (qp->uar != uar->id)) {
        hca_uar_unknown(uar, "qpn", qpn);
        return NULL;
    }
    return qp;
}

/* Rings a send queue. The hint is the beginning of ctrl, whose second word has
 * the QPN in bits 31..8. */
static void hca_uar_ring_sq(struct hca_uar *uar, uint64_t hint)
{
    uint32_t qpn = (uint32_t)hint >> 8;
    struct hca_qp *qp;

    if (qpn == 0) {
        hca_sq_run_all(uar->id); /* a store of less than eight bytes */
        return;
    }
    qp = hca_uar_find_qp(uar, qpn);
    if (qp == NULL) {
        return;
    }
    if (hca_pcie_is_on()) {
        hca_pcie_ring(&qp->pcie);
    }
    hca_requester_run(qp, qpn);
}

/* Handles a push to a page that is not write-combining. It arrives in pieces:
 * the first is a doorbell, the others are ignored, and the WQE is read from the
 * ring. (By this Linux finds out if a platform combines: mlx5_core_test_wc() of
 * mlx5/core/wc.c.) */
static void hca_uar_push_torn(struct hca_uar *uar, unsigned half)
{
    uint64_t hint = be64toh(uar->push.data[half][0]);
    bool has_rung = !(uar->push.words[half] & 1);

    hca_push_end(&uar->push, half);
    if (!uar->is_told) {
        hca_warn("uar 0x%x: a wqe of qp 0x%x is pushed to a page that is not "
                 "write-combining: a NIC takes it for a doorbell",
                 uar->id, (uint32_t)hint >> 8);
        uar->is_told = true;
    }
    if (!has_rung) {
        hca_uar_ring_sq(uar, hint);
    }
}

static void hca_uar_push(struct hca_uar *uar, unsigned half)
{
    struct hca_bf_wqe wqe = hca_bf_wqe(uar->push.data[half]);
    struct hca_qp *qp     = hca_uar_find_qp(uar, wqe.qpn);

    if (uar->push.words[half ^ 1] != 0) {
        hca_bf_fail_short(uar->id, &uar->push, half ^ 1);
    }
    if (wqe.size > HCA_PUSH_HALF_SIZE) { /* changed by a second writer */
        hca_bf_fail_short(uar->id, &uar->push, half);
    } else if (qp == NULL) {
        hca_push_end(&uar->push, half);
    } else {
        hca_bf_push(qp, &uar->push, half, &wqe);
    }
}

/* Handles a store to the doorbell of CQs. The second word of the value is the
 * CQ's number (mlx5_arm_cq()). */
static __attribute__((noinline)) void
hca_uar_store_cq(struct hca_uar *uar, const void *value, unsigned size)
{
    uint32_t cqn = hca_uar_hint(value, size) & 0xffffff;

    if (hca_thread_enter_doorbell(cqn)) {
        hca_uar_ring_cq(uar, cqn);
        hca_thread_leave();
    }
}

/* Fails the pushes of both halves of a register, which stop short. */
static __attribute__((noinline)) void hca_uar_fail_short(struct hca_uar *uar,
                                                         unsigned half)
{
    hca_bf_fail_short(uar->id, &uar->push, half);
    hca_bf_fail_short(uar->id, &uar->push, half ^ 1);
}

/* Handles a store of up to eight bytes to the beginning of a half; or of more,
 * with an unknown value (hca_trap.h). */
static void hca_uar_store_head(struct hca_uar *uar, unsigned half,
                               const void *value, unsigned size)
{
    uint64_t hint = hca_uar_hint(value, size);

    if (!hca_thread_enter_doorbell(0)) {
        return;
    }
    if (__builtin_expect(hca_bf_is_short(&uar->push, half), 0)) {
        hca_uar_fail_short(uar, half);
    }
    hca_bf_ring(&uar->push, half, htobe64(hint));
    hca_uar_ring_sq(uar, hint);
    hca_thread_leave();
}

/* Returns true if a store to the beginning of a half begins another WQE than
 * the last one there did. libc's memcpy() may store the beginning twice, with
 * the same value. Bit 0 of words[] is clear if the half has no beginning yet,
 * or that was a doorbell. */
static bool hca_uar_is_other(const struct hca_push *push, unsigned half,
                             const void *value)
{
    return (push->words[half] & 1) &&
           (memcmp(push->data[half], value, sizeof(uint64_t)) != 0);
}

/* Handles any other store of a push. The last one of a WQE rings. */
static __attribute__((noinline)) void hca_uar_store_part(struct hca_uar *uar,
                                                         uintptr_t offset,
                                                         const void *value,
                                                         unsigned size)
{
    unsigned half = hca_push_half(offset);
    uint64_t ctrl = htobe64(hca_uar_hint(value, size));
    void *to      = hca_push_part(&uar->push, offset, size, ctrl);

    if (to != NULL) {
        memcpy(to, value, size);
        return;
    }
    if (!hca_thread_enter_doorbell(0)) {
        hca_push_end(&uar->push, half);
        return;
    }
    if ((offset % HCA_PUSH_HALF_SIZE == 0) &&
        hca_uar_is_other(&uar->push, half, value)) {
        hca_bf_fail_short(uar->id, &uar->push, half);
    }
    if (hca_push_last(&uar->push, offset, value, size)) {
        if (uar->is_wc) {
            hca_uar_push(uar, half);
        } else {
            hca_uar_push_torn(uar, half);
        }
    }
    hca_thread_leave();
}

/* Returns true if a store to the beginning of a half pushes a whole WQE by
 * itself, and no other push is under way. */
static bool hca_uar_is_block(const struct hca_uar *uar, unsigned half,
                             const void *value, unsigned size)
{
    unsigned length = (hca_uar_hint(value, size) & PRM_CTRL_DS) * 16;

    return (size == HCA_BB_SIZE) && (length > 0) && (length <= HCA_BB_SIZE) &&
           uar->is_wc && !hca_bf_is_short(&uar->push, half);
}

/* Fast path of hca_uar_store_part(): executes a WQE of one block that one store
 * has pushed. */
static void hca_uar_store_block(struct hca_uar *uar, unsigned half,
                                const void *value)
{
    uint64_t block[HCA_BB_SIZE / sizeof(uint64_t)];
    struct hca_bf_wqe wqe;
    struct hca_qp *qp;

    hca_push_end(&uar->push, half);
    if (!hca_thread_enter_doorbell(0)) {
        return;
    }
    memcpy(block, value, sizeof(block));
    wqe = hca_bf_wqe(block);
    qp  = hca_uar_find_qp(uar, wqe.qpn);
    if (qp != NULL) {
        hca_bf_push_block(qp, block, &wqe);
    }
    hca_thread_leave();
}

/* Ticks of this thread, counted if some thread asks for them; in the static TLS
 * block, as hca_todo is. */
static atomic_bool hca_uar_has_ticks;
static __thread uint64_t hca_uar_ticks
    __attribute__((tls_model("initial-exec")));

static inline void hca_uar_take(struct hca_uar *uar, uintptr_t offset,
                                const void *value, unsigned size)
{
    if (!hca_push_is_register(offset)) {
        if (offset == HCA_UAR_CQ_DB) {
            hca_uar_store_cq(uar, value, size);
        }
    } else if (offset % HCA_PUSH_HALF_SIZE != 0) {
        hca_uar_store_part(uar, offset, value, size);
    } else if ((size <= 8) || (hca_uar_hint(value, size) == 0)) {
        hca_uar_store_head(uar, hca_push_half(offset), value, size);
    } else if (hca_uar_is_block(uar, hca_push_half(offset), value, size)) {
        hca_uar_store_block(uar, hca_push_half(offset), value);
    } else {
        hca_uar_store_part(uar, offset, value, size);
    }
}

static __attribute__((noinline)) void hca_uar_take_timed(struct hca_uar *uar,
                                                         uintptr_t offset,
                                                         const void *value,
                                                         unsigned size)
{
    uint64_t start = __rdtsc();

    hca_uar_take(uar, offset, value, size);
    hca_uar_ticks += __rdtsc() - start;
}

/* hca_trap_fn */
static void hca_uar_store(void *arg, uintptr_t offset, const void *value,
                          unsigned size)
{
    if (__builtin_expect(
            atomic_load_explicit(&hca_uar_has_ticks, memory_order_relaxed),
            0)) {
        hca_uar_take_timed(arg, offset, value, size);
    } else {
        hca_uar_take(arg, offset, value, size);
    }
}

uint64_t softhca_ticks(void)
{
    atomic_store_explicit(&hca_uar_has_ticks, true, memory_order_relaxed);
    return hca_uar_ticks;
}

int hca_uar_init(uint32_t id, bool is_wc)
{
    struct hca_uar *uar;

    pthread_mutex_lock(&hca_uar_mutex);
    uar = hca_uar_get(id);
    if (uar != NULL) {
        uar->is_wc   = is_wc;
        uar->is_told = false;
    }
    pthread_mutex_unlock(&hca_uar_mutex);
    return (uar == NULL) ? -ENOMEM : 0;
}

int hca_uar_add(uint32_t id, void *page)
{
    struct hca_uar *uar;
    int ret = -ENOMEM;

    pthread_mutex_lock(&hca_uar_mutex);
    uar = hca_uar_get(id);
    if (uar != NULL) {
        ret = hca_trap_add_push(page, hca_uar_store, uar, &uar->push);
        if (ret == 0) {
            uar->page = page;
        }
    }
    pthread_mutex_unlock(&hca_uar_mutex);
    return ret;
}

void hca_uar_del(uint32_t id)
{
    struct hca_uar *uar;

    pthread_mutex_lock(&hca_uar_mutex);
    uar = hca_uar_find(id);
    if ((uar != NULL) && (uar->page != NULL)) {
        hca_trap_del(uar->page);
        uar->page = NULL;
    }
    pthread_mutex_unlock(&hca_uar_mutex);
}
