/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Tag matching: operations on a list and messages to its SRQ, in most cases
 * valid but for a few bytes. After each the list must be consistent.
 */
#define _GNU_SOURCE
#include "fuzz_req.h"
#include "softhca/exec/hca_rndv_fetch.h"
#include "softhca/exec/hca_tm_op.h"
#include "softhca/fabric/hca_dev.h"
#include "softhca/obj/hca_cq.h"
#include "softhca/obj/hca_srq.h"
#include "softhca/obj/hca_tm.h"
#include "softhca/resp/hca_resp.h"
#include "softhca/resp/hca_rndv.h"

#include <common/prm.h>
#include <endian.h>
#include <stdlib.h>
#include <string.h>

#define FUZZ_TM_LOG 3u /* entries of the list */
#define FUZZ_TM_PDN 1u

/* Areas of the ring memory, by page */
enum { FUZZ_TM_CQ_AT = 64, FUZZ_TM_SRQ_AT = 80, FUZZ_TM_DB_AT = 96 };

struct fuzz_tm {
    struct hca_mkey *mkey; /* over fuzz_buf */
    struct hca_cq *cq;
    struct hca_srq *srq;
    struct hca_qp *qp;
};

static hca_off_t fuzz_tm_page(unsigned page)
{
    return hca_off(fuzz_ring + page * 4096);
}

static void fuzz_tm_create(struct fuzz_tm *tm)
{
    const struct hca_cq_spec cq = {
        .ring  = {fuzz_tm_page(FUZZ_TM_CQ_AT), 8, fuzz_below(2) ? 6 : 7},
        .dbrec = fuzz_tm_page(FUZZ_TM_DB_AT),
        .ignore_overrun = true,
    };
    struct hca_srq_spec srq = {
        .ring     = {fuzz_tm_page(FUZZ_TM_SRQ_AT), 4, 5},
        .dbrec    = fuzz_tm_page(FUZZ_TM_DB_AT) + 64,
        .pdn      = FUZZ_TM_PDN,
        .has_tm   = true,
        .log_tags = FUZZ_TM_LOG,
    };

    hca_cq_create(&cq, &tm->cq);

    tm->mkey         = hca_obj_alloc(HCA_KIND_MKEY, 0);
    tm->mkey->type   = HCA_MKEY_MR;
    tm->mkey->pdn    = FUZZ_TM_PDN;
    tm->mkey->qpn    = 0xffffff;
    tm->mkey->access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ;
    tm->mkey->iova   = (uintptr_t)fuzz_buf;
    tm->mkey->va     = (uintptr_t)fuzz_buf;
    tm->mkey->length = FUZZ_BUF_SIZE;
    hca_obj_publish(HCA_KIND_MKEY, tm->mkey);

    srq.cqn = tm->cq->obj.num;
    if (fuzz_below(2)) {
        srq.num_strides = 8;
        srq.log_stride  = 6 + fuzz_below(3);
    }
    hca_srq_create(&srq, &tm->srq);

    tm->qp         = hca_obj_alloc(HCA_KIND_QP, 0);
    tm->qp->type   = fuzz_below(2) ? HCA_QP_RC : HCA_QP_DCT;
    tm->qp->pdn    = FUZZ_TM_PDN;
    tm->qp->srqn   = tm->srq->obj.num;
    tm->qp->has_tm = true;
    tm->qp->cs_res = fuzz_below(3) * 32;
    hca_obj_publish(HCA_KIND_QP, tm->qp);

    /* connected to itself, for a rendezvous; no retries */
    tm->qp->state                   = fuzz_below(4) ? IBV_QPS_RTS : IBV_QPS_RTR;
    tm->qp->attr.dest_qpn           = tm->qp->obj.num;
    tm->qp->attr.path.dlid          = hca_dev_lid(0);
    tm->qp->attr.access             = IBV_ACCESS_REMOTE_READ;
    tm->qp->attr.mtu                = IBV_MTU_256;
    tm->qp->attr.timeout            = 1;
    tm->qp->attr.max_dest_rd_atomic = 1;
}

static void fuzz_tm_destroy(struct fuzz_tm *tm)
{
    struct hca_cq_events events;
    uint32_t num_events;

    hca_obj_free(HCA_KIND_QP, tm->qp);
    hca_srq_destroy(tm->srq, &num_events);
    hca_cq_destroy(tm->cq, &events);
    hca_obj_free(HCA_KIND_MKEY, tm->mkey);
}

/* Checks that head to tail has all entries of the list and no other. */
static void fuzz_tm_check(const struct fuzz_tm *fuzz)
{
    const struct hca_tm *tm = hca_srq_tm(fuzz->srq);
    unsigned listed = 0, reached = 0;
    uint16_t prev = HCA_TM_NONE;

    for (unsigned i = 0; i < tm->size; i++) {
        listed += (tm->entries[i].state == HCA_TM_LISTED);
    }
    for (uint16_t i = tm->head; i != HCA_TM_NONE; i = tm->entries[i].next) {
        if ((i >= tm->size) || (tm->entries[i].prev != prev) ||
            (++reached > listed)) {
            abort();
        }
        prev = i;
    }
    if ((reached != listed) || (tm->tail != prev)) {
        abort();
    }
}

/* Overwrites one byte, in every fourth call. */
static void fuzz_tm_spoil(void *ptr, size_t size)
{
    if (fuzz_below(4) == 0) {
        fuzz_bytes((uint8_t *)ptr + fuzz_below(size), 1);
    }
}

static struct mlx5_wqe_data_seg fuzz_tm_buffer(const struct fuzz_tm *tm,
                                               uint32_t length)
{
    return (struct mlx5_wqe_data_seg){
        .byte_count = htobe32(fuzz_below(4) ? length : fuzz_int(2)),
        .lkey       = htobe32((tm->mkey->obj.num << 8) | tm->mkey->variant),
        .addr       = htobe64((uintptr_t)fuzz_buf + fuzz_int(1)),
    };
}

static void fuzz_tm_op(struct fuzz_tm *tm)
{
    static const uint8_t ops[]    = {PRM_TM_OPCODE_APPEND, PRM_TM_OPCODE_APPEND,
                                     PRM_TM_OPCODE_REMOVE, PRM_TM_OPCODE_NOP};
    struct hca_wqe wqe            = {.qpn = tm->qp->obj.num, .body_at = 1};
    struct mlx5_wqe_data_seg data = fuzz_tm_buffer(tm, 64);
    struct mlx5_wqe_tm_seg seg    = {0};
    uint8_t op                    = ops[fuzz_below(FUZZ_COUNT(ops))];

    seg.opcode = op << PRM_TM_OPCODE_SHIFT;
    seg.flags  = fuzz_below(2) * PRM_TM_SW_CNT + fuzz_below(2) * PRM_TM_CQE_REQ;
    seg.index  = htobe16(fuzz_below(1 << FUZZ_TM_LOG));
    seg.sw_cnt = htobe16(hca_srq_tm(tm->srq)->hw_phase_cnt);
    seg.append_tag  = htobe64(fuzz_below(4));
    seg.append_mask = htobe64(3);
    fuzz_tm_spoil(&seg, sizeof(seg));
    fuzz_tm_spoil(&data, sizeof(data));
    wqe.ds = (op == PRM_TM_OPCODE_APPEND) ? 4 : 3;
    wqe.ds = (fuzz_below(16) == 0) ? fuzz_below(64) : wqe.ds;
    memcpy(wqe.raw + 16, &seg, sizeof(seg));
    memcpy(wqe.raw + 48, &data, sizeof(data));
    hca_tm_op_execute(tm->qp, &wqe);
}

static void fuzz_tm_recv(const struct fuzz_tm *tm)
{
    struct mlx5_wqe_data_seg data = fuzz_tm_buffer(
        tm, 64 + (tm->srq->strides.number << tm->srq->strides.log_size));
    uint32_t *posted = (uint32_t *)hca_ptr(tm->srq->dbrec);
    uint8_t *wqe = (uint8_t *)hca_ptr(tm->srq->ring.buf) + tm->srq->head * 32;

    memset(wqe, 0, 16);
    wqe[3] = (tm->srq->head + 1) & 15;
    memcpy(wqe + 16, &data, sizeof(data));
    fuzz_tm_spoil(wqe, 32);
    *posted = htobe32(tm->srq->consumed + 1);
}

static void fuzz_tm_send(struct fuzz_tm *tm)
{
    static const struct hca_path path;
    struct hca_rndv_request rndv = {
        .tmh = {.opcode = fuzz_below(4) ? IBV_TMH_EAGER : fuzz_below(5),
                .tag    = htobe64(fuzz_below(4))},
        .rvh = {.va   = htobe64((uintptr_t)fuzz_buf + fuzz_int(1)),
                .rkey = htobe32((tm->mkey->obj.num << 8) | tm->mkey->variant),
                .len  = htobe32(fuzz_below(128))},
    };
    struct hca_ack ack = {.code = HCA_ACK_NONE};
    static struct hca_responder resp;
    struct hca_sgl data;
    struct hca_msg msg = {
        .op       = HCA_MSG_SEND,
        .has_imm  = fuzz_below(2),
        .mtu      = IBV_MTU_256,
        .dest_qpn = tm->qp->obj.num,
        .path     = &path,
        .data     = &data,
    };
    bool goes_on  = (tm->srq->strides.number > 0) && (fuzz_below(8) == 0);
    size_t length = fuzz_below(4) ? 64 : fuzz_int(2) % 8192;
    size_t first  = fuzz_below(64);

    fuzz_tm_spoil(&rndv, sizeof(rndv));
    memcpy(fuzz_buf, &rndv, sizeof(rndv));
    hca_sgl_init(&data, hca_owner(hca_self));
    first = (first < length) ? first : length;
    if (first > 0) {
        hca_sgl_add(&data, fuzz_buf, first);
    }
    if (length > first) {
        hca_sgl_add(&data, fuzz_buf + first, length - first);
    }

    msg.arrived = goes_on ? fuzz_below(length + 1) : 0;
    memset(&resp, 0, sizeof(resp));
    resp.qp  = tm->qp;
    resp.msg = &msg;
    resp.ack = &ack;
    hca_sgl_init(&resp.memory, hca_owner(hca_self));
    hca_obj_lock(HCA_KIND_QP, tm->qp->obj.num);
    hca_resp_tm_send(&resp);
    hca_obj_unlock(tm->qp);
    hca_sgl_put(&resp.memory);
    hca_rndv_fetch();
}

void fuzz_tm(int fd, uint32_t uar)
{
    struct fuzz_tm tm;

    (void)fd;
    (void)uar;
    fuzz_tm_create(&tm);
    for (unsigned i = fuzz_below(64); (i > 0) && (fuzz_left > 0); i--) {
        if (fuzz_below(2)) {
            fuzz_tm_op(&tm);
        } else {
            fuzz_tm_recv(&tm);
            fuzz_tm_send(&tm);
        }
        fuzz_tm_check(&tm);
    }
    fuzz_tm_destroy(&tm);
}
