/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Completions: see hca_completer.h. Numbers in a CQE are those of CQE version 1
 * (rdma-core, providers/mlx5/cq.c):
 *
 *   srqn_uidx     user index of the QP; of the SRQ for XRC and tag matching
 *   wqe_counter   first basic block of a send; for a receive, the running index
 *                 in its queue, or the WQE's index in an SRQ that is a list
 */
#include "hca_completer.h"
#include "hca_grh.h"
#include "softhca/fabric/hca_count.h"
#include "softhca/fabric/hca_dev.h"
#include "softhca/obj/hca_cq_post.h"

#include <common/prm.h>

static uint32_t hca_completer_sop_qpn(const struct hca_qp *qp,
                                      const struct hca_wqe *wqe)
{
    return ((uint32_t)wqe->opcode << 24) | qp->obj.num;
}

/* Completes a READ whose data goes into the CQE. */
static enum hca_check hca_completer_send_data(const struct hca_qp *qp,
                                              struct hca_cqe cqe,
                                              const void *data)
{
    cqe.data     = data;
    cqe.data_len = cqe.byte_cnt;
    cqe.both     = true;
    return hca_cq_post(qp->scqn, &cqe);
}

enum hca_check hca_completer_send(const struct hca_qp *qp,
                                  const struct hca_wqe *wqe, const void *data)
{
    struct hca_cqe cqe = {
        .opcode      = MLX5_CQE_REQ,
        .wqe_counter = wqe->idx,
        .sop_qpn     = hca_completer_sop_qpn(qp, wqe),
        .uidx        = qp->uidx,
        .byte_cnt    = wqe->length,
    };

    if (data != NULL) {
        return hca_completer_send_data(qp, cqe, data);
    }
    return hca_cq_post_inline(qp->scqn, &cqe);
}

/* Counts a completion in error in the counter of all, and in that of its
 * syndrome, if there is one. */
static void hca_completer_count_send(unsigned dev, uint8_t syndrome)
{
    static const uint8_t counts[256] = {
        [MLX5_CQE_SYNDROME_WR_FLUSH_ERR] = HCA_COUNT_REQ_CQE_FLUSH_ERROR,
        [MLX5_CQE_SYNDROME_REMOTE_INVAL_REQ_ERR] =
            HCA_COUNT_REQ_REMOTE_INVALID_REQUEST,
        [MLX5_CQE_SYNDROME_REMOTE_ACCESS_ERR] =
            HCA_COUNT_REQ_REMOTE_ACCESS_ERRORS,
        [MLX5_CQE_SYNDROME_TRANSPORT_RETRY_EXC_ERR] =
            HCA_COUNT_REQ_TRANSPORT_RETRIES_EXCEEDED,
        [MLX5_CQE_SYNDROME_RNR_RETRY_EXC_ERR] =
            HCA_COUNT_REQ_RNR_RETRIES_EXCEEDED,
    };

    hca_count(dev, HCA_COUNT_REQ_CQE_ERROR);
    if (counts[syndrome] != 0) {
        hca_count(dev, counts[syndrome]);
    }
}

static void hca_completer_count_recv(unsigned dev, uint8_t syndrome)
{
    hca_count(dev, HCA_COUNT_RESP_CQE_ERROR);
    if (syndrome == MLX5_CQE_SYNDROME_WR_FLUSH_ERR) {
        hca_count(dev, HCA_COUNT_RESP_CQE_FLUSH_ERROR);
    } else if (syndrome == MLX5_CQE_SYNDROME_LOCAL_LENGTH_ERR) {
        hca_count(dev, HCA_COUNT_RESP_LOCAL_LENGTH_ERROR);
    }
}

void hca_completer_send_error(const struct hca_qp *qp,
                              const struct hca_wqe *wqe, enum hca_check check,
                              enum hca_check vendor)
{
    struct hca_cqe cqe = {
        .opcode      = MLX5_CQE_REQ_ERR,
        .syndrome    = hca_check_desc(check)->syndrome,
        .vendor      = vendor,
        .wqe_counter = wqe->idx,
        .sop_qpn     = hca_completer_sop_qpn(qp, wqe),
        .uidx        = qp->uidx,
    };

    hca_completer_count_send(qp->obj.dev, cqe.syndrome);
    hca_cq_post(qp->scqn, &cqe);
}

static uint8_t hca_completer_opcode(const struct hca_msg *msg)
{
    if (msg->op == HCA_MSG_WRITE) {
        return MLX5_CQE_RESP_WR_IMM;
    }
    if (msg->has_imm) {
        return MLX5_CQE_RESP_SEND_IMM;
    }
    return msg->has_inval ? MLX5_CQE_RESP_SEND_INV : MLX5_CQE_RESP_SEND;
}

/* Sets the sender's path. RoCE has no LIDs, and the packet type in the field of
 * the service level. dlid_path has as many bits as the port's LMC. */
static void hca_completer_add_path(struct hca_cqe *cqe,
                                   const struct hca_msg *msg, unsigned dev)
{
    const struct hca_path *path = msg->path;

    cqe->sl = path->sl;
    if (__builtin_expect(
            hca_dev_has_one_lid(msg->src_dev) && hca_dev_has_one_lid(dev), 1)) {
        cqe->slid = hca_dev_one_lid(msg->src_dev);
    } else if (hca_dev_is_roce(msg->src_dev)) {
        cqe->sl = hca_grh_packet_type(path, msg->src_dev);
    } else {
        cqe->slid      = hca_dev_path_lid(msg->src_dev, path->src_path_bits);
        cqe->dlid_path = path->dlid & hca_dev_path_mask(dev);
    }
}

/* Adds the fields of strides. A filler (PRM_CQE_MP_FILLER) is not of the
 * message. */
static void hca_completer_add_strides(struct hca_cqe *cqe,
                                      const struct hca_recv *recv)
{
    if (recv->mp_flags & PRM_CQE_MP_FILLER) {
        cqe->opcode    = MLX5_CQE_RESP_SEND;
        cqe->app_op    = 0;
        cqe->imm       = 0;
        cqe->byte_cnt  = 0;
        cqe->solicited = false;
    }
    cqe->has_app_info = true;
    cqe->stride       = recv->stride;
    cqe->byte_cnt |= recv->mp_flags |
                     (recv->num_strides << PRM_CQE_MP_STRIDES_SHIFT);
}

/* Adds the fields of tag matching. Only the first completion of a match has the
 * header of the message. For a tagged buffer the length is that of the data,
 * without the header, and inline data takes the first half of the CQE
 * (providers/mlx5/cq.c, handle_tag_matching()). */
static void hca_completer_add_tm(struct hca_cqe *cqe,
                                 const struct hca_recv *recv)
{
    cqe->app    = PRM_CQE_APP_TAG_MATCHING;
    cqe->app_op = recv->tm_op;
    if ((recv->tm_op == PRM_CQE_TM_NO_TAG) ||
        (recv->tm_op == PRM_CQE_TM_UNEXPECTED)) {
        if (recv->num_strides > 0) {
            hca_completer_add_strides(cqe, recv);
        }
        return;
    }
    cqe->has_app_info = true;
    cqe->app_info     = recv->tm_index;
    cqe->front        = recv->tmh;
    cqe->wqe_counter  = 0;
    if (recv->tm_op == PRM_CQE_TM_CONSUMED) {
        cqe->opcode   = MLX5_CQE_NO_PACKET;
        cqe->imm      = 0;
        cqe->byte_cnt = 0;
    } else {
        cqe->byte_cnt = recv->tm_bytes;
        cqe->data_len = (cqe->data != NULL) ? cqe->byte_cnt : 0;
        cqe->wide     = true;
    }
}

static enum hca_check hca_completer_recv_tm(const struct hca_recv *recv,
                                            struct hca_cqe cqe)
{
    hca_completer_add_tm(&cqe, recv);
    return hca_cq_post(recv->cqn, &cqe);
}

enum hca_check hca_completer_recv(const struct hca_qp *qp,
                                  const struct hca_recv *recv,
                                  const struct hca_msg *msg, const void *data)
{
    struct hca_cqe cqe = {
        .opcode      = hca_completer_opcode(msg),
        .solicited   = msg->solicited,
        .wqe_counter = recv->index,
        .sop_qpn     = qp->obj.num,
        .uidx        = recv->uidx,
        .src_qpn     = msg->src_qpn,
        .imm         = (msg->has_imm || msg->has_inval) ? msg->imm : 0,
        .byte_cnt    = msg->data->length,
    };

    hca_completer_add_path(&cqe, msg, qp->obj.dev);
    if (qp->type == HCA_QP_UD) {
        cqe.l3 = msg->path->grh;
        cqe.byte_cnt += HCA_GRH_SIZE;
    }
    if (data != NULL) {
        cqe.data     = data;
        cqe.data_len = msg->data->length;
    }
    if (__builtin_expect(recv->tm_op != 0, 0)) {
        return hca_completer_recv_tm(recv, cqe);
    }
    return hca_cq_post_inline(recv->cqn, &cqe);
}

enum hca_check hca_completer_tm_op(const struct hca_srq *srq, uint8_t tm_op,
                                   uint16_t index,
                                   const struct mlx5_tm_cqe *result)
{
    struct hca_cqe cqe = {
        .opcode       = MLX5_CQE_NO_PACKET,
        .uidx         = srq->uidx,
        .app          = PRM_CQE_APP_TAG_MATCHING,
        .app_op       = tm_op,
        .has_app_info = true,
        .app_info     = index,
        .front        = result,
    };

    return hca_cq_post(srq->cqn, &cqe);
}

static enum hca_check hca_completer_resp_error(const struct hca_qp *qp,
                                               uint32_t cqn,
                                               struct hca_cqe *cqe,
                                               enum hca_check check)
{
    cqe->opcode   = MLX5_CQE_RESP_ERR;
    cqe->syndrome = hca_check_desc(check)->syndrome;
    cqe->vendor   = check;
    cqe->sop_qpn  = qp->obj.num;
    hca_completer_count_recv(qp->obj.dev, cqe->syndrome);
    return hca_cq_post(cqn, cqe);
}

enum hca_check hca_completer_recv_error(const struct hca_qp *qp,
                                        const struct hca_recv *recv,
                                        enum hca_check check)
{
    struct hca_cqe cqe = {.wqe_counter = recv->index, .uidx = recv->uidx};

    return hca_completer_resp_error(qp, recv->cqn, &cqe, check);
}

void hca_completer_flush_recv(const struct hca_qp *qp, uint16_t index)
{
    struct hca_cqe cqe = {.wqe_counter = index, .uidx = qp->uidx};

    hca_completer_resp_error(qp, qp->rcqn, &cqe, HCA_CHECK_FLUSH);
}
