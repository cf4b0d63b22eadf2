/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Completion queues. All of it runs under the CQ's lock, in whatever thread of
 * whatever process has the completion.
 */
#define _GNU_SOURCE
#include "hca_cq.h"
#include "hca_async.h"
#include "hca_cq_event.h"
#include "hca_cq_mini.h"
#include "hca_pcie.h"
#include "hca_todo.h"
#include "softhca/base/hca_log.h"
#include "softhca/fabric/hca_arena.h"

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <infiniband/mlx5dv.h>
#include <string.h>
#include <time.h>

#define HCA_CQ_INDEX 0xffffffu /* indices have 24 bits */
#define HCA_CQE_SE   0x02      /* op_own (mlx5dv_get_cqe_se()) */
#define HCA_CQE_FRONT 16       /* struct ibv_tmh, struct mlx5_tm_cqe */

static_assert(sizeof(struct mlx5_cqe64) == 64, "64-byte entry");
static_assert(sizeof(struct mlx5_err_cqe) == 64, "64-byte entry");
static_assert(offsetof(struct mlx5_err_cqe, srqn) ==
              offsetof(struct mlx5_cqe64, srqn_uidx), "both carry uidx");

uint32_t hca_cq_consumer(const struct hca_cq *cq)
{
    const uint32_t *dbrec = hca_ptr(cq->dbrec);

    /* pairs with the program's barrier between reading a CQE and giving it
     * back */
    return be32toh(__atomic_load_n(&dbrec[0], __ATOMIC_ACQUIRE)) &
           HCA_CQ_INDEX;
}

uint32_t hca_cq_index(uint32_t pi)
{
    return pi & HCA_CQ_INDEX;
}

uint64_t hca_cq_timestamp(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC_RAW, &ts);
    return ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

static void hca_cqe_fill_app(struct mlx5_cqe64 *to, const struct hca_cqe *cqe)
{
    uint16_t stride = htobe16(cqe->stride);

    to->app      = cqe->app;
    to->app_op   = cqe->app_op;
    to->app_info = htobe16(cqe->app_info);
    memcpy(&to->rsvd20[2], &stride, sizeof(stride));
    if (cqe->front != NULL) {
        memcpy(to, cqe->front, HCA_CQE_FRONT);
    }
}

static void hca_cqe_fill_good(struct mlx5_cqe64 *to, const struct hca_cqe *cqe)
{
    to->ml_path        = cqe->dlid_path;
    to->slid           = htobe16(cqe->slid);
    to->flags_rqpn     = htobe32(((uint32_t)cqe->l3 << 28) |
                                 ((uint32_t)cqe->sl << 24) | cqe->src_qpn);
    to->srqn_uidx      = htobe32(cqe->uidx);
    to->imm_inval_pkey = cqe->imm;
    to->byte_cnt       = htobe32(cqe->byte_cnt);
    to->sop_drop_qpn   = htobe32(cqe->sop_qpn);
    to->wqe_counter    = htobe16(cqe->wqe_counter);
    if (cqe->app != 0) {
        hca_cqe_fill_app(to, cqe);
    }
}

static void hca_cqe_fill_error(struct mlx5_err_cqe *to,
                               const struct hca_cqe *cqe)
{
    to->srqn             = htobe32(cqe->uidx);
    to->vendor_err_synd  = cqe->vendor;
    to->syndrome         = cqe->syndrome;
    to->s_wqe_opcode_qpn = htobe32(cqe->sop_qpn);
    to->wqe_counter      = htobe16(cqe->wqe_counter);
}

static bool hca_cqe_is_error(const struct hca_cqe *cqe)
{
    return (cqe->opcode == MLX5_CQE_REQ_ERR) ||
           (cqe->opcode == MLX5_CQE_RESP_ERR);
}

/* Inline data: up to 32 bytes take the start of the 64-byte entry; up to 64
 * the first half of a 128-byte one. libmlx5 looks for the 32 bytes of a
 * requester in the first half of a 128-byte entry, UCX in the second: such
 * data is written to both. @return the bits of op_own. */
static uint8_t hca_cqe_fill_data(struct mlx5_cqe64 *to, uint8_t *first_half,
                                 const struct hca_cqe *cqe)
{
    if ((cqe->data_len > 32) || cqe->wide) {
        memcpy(first_half, cqe->data, cqe->data_len);
        return MLX5_INLINE_SCATTER_64;
    }
    memcpy(to, cqe->data, cqe->data_len);
    if (cqe->both && (first_half != NULL)) {
        memcpy(first_half, cqe->data, cqe->data_len);
    }
    return MLX5_INLINE_SCATTER_32;
}

static uint8_t *hca_cq_entry(const struct hca_cq *cq, uint32_t index)
{
    uint32_t slot = index & ((1u << cq->ring.log_cnt) - 1);

    return (uint8_t*)hca_ptr(cq->ring.buf) +
           ((size_t)slot << cq->ring.log_stride);
}

static void hca_cq_count(struct hca_cq *cq, uint8_t opcode, uint64_t length)
{
    bool is_send = (opcode == MLX5_CQE_REQ) || (opcode == MLX5_CQE_REQ_ERR);

    hca_pcie_add(&cq->pcie, is_send ? HCA_PCIE_SEND_CQE : HCA_PCIE_RECV_CQE, 0,
                 length);
}

/* The first half of an entry of 128 bytes is written for data, or padded. */
static unsigned hca_cqe_length(const struct hca_cq *cq,
                               const struct hca_cqe *cqe)
{
    bool has_data = (cq->ring.log_stride == 7) && (cqe->data_len > 0) &&
                    ((cqe->data_len > 32) || cqe->wide || cqe->both);

    return (has_data || cq->is_padded) ? 128 : 64;
}

/* The owner bit makes the entry valid: it goes last, with all that was
 * written for this message before it. Pairs with the poller's barrier.
 * @param format  bits of op_own, beside those of inline data */
static void hca_cq_put(struct hca_cq *cq, const struct hca_cqe *cqe,
                       uint8_t format)
{
    uint32_t pi     = cq->pi & HCA_CQ_INDEX;
    uint8_t *entry  = hca_cq_entry(cq, pi);
    uint8_t *target = entry + (1u << cq->ring.log_stride) - 64;
    union {
        struct mlx5_cqe64   good;
        struct mlx5_err_cqe error;
        uint32_t            words[16];
    } image = {};
    uint8_t op_own = (cqe->opcode << 4) | format |
                     ((pi >> cq->ring.log_cnt) & 1);

    if (hca_cqe_is_error(cqe)) {
        hca_cqe_fill_error(&image.error, cqe);
    } else {
        hca_cqe_fill_good(&image.good, cqe);
        if (cqe->data_len > 0) {
            op_own |= hca_cqe_fill_data(&image.good,
                                        (target == entry) ? NULL : entry, cqe);
        }
        if (cq->timestamp) {
            image.good.timestamp = htobe64(hca_cq_timestamp());
        }
    }
    if (cq->is_padded && (cqe->data_len == 0)) {
        memset(entry, 0, 64);
    }
    image.good.op_own = op_own | (cqe->solicited ? HCA_CQE_SE : 0);
    memcpy(target, image.words, 60);
    __atomic_store_n((uint32_t*)(target + 60), image.words[15],
                     __ATOMIC_RELEASE);
    if (hca_pcie_is_on()) {
        hca_cq_count(cq, cqe->opcode, hca_cqe_length(cq, cqe));
    }
}

static void hca_cq_advance(struct hca_cq *cq, uint32_t num)
{
    cq->pi = (cq->pi + num) & HCA_CQ_INDEX;
}

static void hca_cq_write(struct hca_cq *cq, const struct hca_cqe *cqe)
{
    hca_cq_put(cq, cqe, 0);
    hca_cq_advance(cq, 1);
}

/* An entry is the program's with its last word; it counts after that. What is
 * held is for one index: at another, it was counted, and not yet forgotten. */
void hca_cq_repair(void *obj)
{
    struct hca_cq *cq = obj;
    uint32_t pi       = cq->pi & HCA_CQ_INDEX;
    uint8_t op_own    = hca_cq_entry(cq, pi)[(1u << cq->ring.log_stride) - 1];
    uint32_t num      = 1;
    struct hca_minis *minis = hca_cq_minis(cq);

    if ((minis != NULL) && (minis->pi != pi)) {
        minis->num = 0;
    }
    if (((op_own >> 4) != MLX5_CQE_INVALID) &&
        ((op_own & 1) == ((pi >> cq->ring.log_cnt) & 1))) {
        if ((minis != NULL) && (minis->num > 0)) {
            num        = minis->num;
            minis->num = 0;
        }
        hca_cq_advance(cq, num);
    }
    hca_cq_notify_late(cq);
}

/* @param num  completions that are held */
static bool hca_cq_is_full(const struct hca_cq *cq, uint32_t num)
{
    return ((cq->pi + num - hca_cq_consumer(cq)) & HCA_CQ_INDEX) >=
           (1u << cq->ring.log_cnt);
}

/* Once, whether its lock is held or not: of several that wait for one that is
 * stopped, each would say so. */
static bool hca_cq_to_error(struct hca_cq *cq)
{
    return !__atomic_exchange_n(&cq->overrun, true, __ATOMIC_ACQ_REL);
}

static void hca_cq_fail(struct hca_cq *cq)
{
    hca_todo_add_overrun(cq->obj.num);
    hca_async_event(&cq->obj, IBV_EVENT_CQ_ERR);
}

static int hca_cq_overrun(struct hca_cq *cq)
{
    if (hca_cq_to_error(cq)) {
        hca_warn("cq 0x%x: overrun: %u entries, consumer index 0x%x, "
                 "producer 0x%x", cq->obj.num, 1u << cq->ring.log_cnt,
                 hca_cq_consumer(cq), cq->pi);
        hca_cq_fail(cq);
    }
    return -EOVERFLOW;
}

/* It was not to be had: there is none, or it is given up, once. */
static __attribute__((noinline)) void hca_cq_held_up(uint32_t cqn)
{
    struct hca_cq *cq = hca_obj_peek(HCA_KIND_CQ, cqn);

    if ((cq != NULL) && hca_cq_to_error(cq)) {
        hca_warn("cq 0x%x: in error: it takes no completions while that "
                 "process is stopped", cqn);
        hca_cq_fail(cq);
    }
}

struct hca_cq *hca_cq_lock(uint32_t cqn)
{
    struct hca_cq *cq = hca_obj_lock(HCA_KIND_CQ, cqn);

    if (__builtin_expect(cq == NULL, 0)) {
        hca_cq_held_up(cqn);
    }
    return cq;
}

/* --- compression ---------------------------------------------------------- */

static void hca_cq_write_minis(struct hca_cq *cq, const struct hca_minis *minis)
{
    struct hca_cqe title = minis->first;

    for (unsigned i = 0; i < minis->num; i += PRM_MINI_CQES) {
        memcpy(hca_cq_entry(cq, cq->pi + ((i == 0) ? 1 : i)), &minis->minis[i],
               PRM_MINI_CQES * sizeof(minis->minis[0]));
        if (hca_pcie_is_on()) {
            hca_cq_count(cq, title.opcode,
                         PRM_MINI_CQES * sizeof(minis->minis[0]));
        }
    }
    title.byte_cnt = minis->num;
    hca_cq_put(cq, &title, PRM_CQE_FORMAT_COMPRESSED);
}

/* One alone is an entry like others. */
static void hca_cq_close_locked(struct hca_cq *cq)
{
    struct hca_minis *minis = hca_cq_minis(cq);
    unsigned num            = minis->num;

    if (num > 1) {
        hca_cq_write_minis(cq, minis);
    } else if (num == 1) {
        hca_cq_put(cq, &minis->first, 0);
    }
    hca_cq_advance(cq, num);
    atomic_signal_fence(memory_order_release); /* hca_cq_repair() */
    minis->num = 0;
    while (cq->armed && (num-- > 0)) {
        hca_cq_notify(cq, false);
    }
}

/* @return false if it is to be written, after what is held. */
static bool hca_cq_hold(struct hca_cq *cq, const struct hca_cqe *cqe)
{
    struct hca_minis *minis = hca_cq_minis(cq);
    bool is_plain           = (cq->obj.proc == hca_self) &&
                              hca_mini_is_plain(cqe);

    if ((minis->num > 0) &&
        (!is_plain || !hca_minis_take(minis, cqe) ||
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
    struct hca_cq *cq = hca_cq_lock(cqn);

    if (cq != NULL) {
        hca_cq_close_locked(cq);
        hca_obj_unlock(cq);
    }
}

int hca_cq_compress(struct hca_cq *cq)
{
    cq->minis = hca_off(hca_arena_alloc(sizeof(struct hca_minis)));
    return (cq->minis != 0) ? 0 : -ENOMEM;
}

bool hca_cq_free(struct hca_cq *cq)
{
    struct hca_minis *minis = hca_cq_minis(cq);

    if (!hca_obj_free(HCA_KIND_CQ, cq)) {
        return false;
    }
    hca_arena_free(minis);
    return true;
}

/* --- all of them ---------------------------------------------------------- */

static int hca_cq_post_locked(struct hca_cq *cq, const struct hca_cqe *cqe)
{
    if (__builtin_expect(cq->minis != 0, 0) && hca_cq_hold(cq, cqe)) {
        return 0;
    }
    if (cq->overrun || (!cq->ignore_overrun && hca_cq_is_full(cq, 0))) {
        return hca_cq_overrun(cq);
    }
    hca_cq_write(cq, cqe);
    if (cqe->solicited || hca_cqe_is_error(cqe)) {
        cq->solicited_pi = cq->pi;
    }
    if (cq->armed) {
        hca_cq_notify(cq, cqe->solicited || hca_cqe_is_error(cqe));
    }
    return 0;
}

int hca_cq_post(uint32_t cqn, const struct hca_cqe *cqe)
{
    struct hca_cq *cq = hca_cq_lock(cqn);
    int ret;

    if (cq == NULL) {
        return -ENOENT;
    }
    ret = hca_cq_post_locked(cq, cqe);
    hca_obj_unlock(cq);
    return ret;
}

unsigned hca_cq_inline_room(uint32_t cqn, unsigned scatter)
{
    const struct hca_cq *cq;

    if (scatter == 0) {
        return 0;
    }
    cq = hca_obj_peek(HCA_KIND_CQ, cqn);
    if (cq == NULL) {
        return 0;
    }
    return ((cq->ring.log_stride == 7) && (scatter >= 64)) ? 64 : 32;
}

/* The RESIZE_CQ entry takes an index of its own: the library copies what it
 * has not polled to index + 1 of the new ring and goes on behind it
 * (mlx5_cq_resize_copy_cqes()). */
int hca_cq_resize(uint32_t cqn, const struct hca_ring *ring)
{
    static const struct hca_cqe mark = {.opcode = MLX5_CQE_RESIZE_CQ};
    struct hca_cq *cq = hca_cq_lock(cqn);
    uint32_t pending;

    if (cq == NULL) {
        return -ETIMEDOUT;
    }
    if (cq->minis != 0) {
        hca_cq_close_locked(cq);
    }
    pending = (cq->pi - hca_cq_consumer(cq)) & HCA_CQ_INDEX;
    if (pending >= (1u << ring->log_cnt)) {
        hca_obj_unlock(cq);
        return -EINVAL;
    }
    hca_cq_write(cq, &mark);
    cq->ring = *ring;
    hca_obj_unlock(cq);
    return 0;
}
