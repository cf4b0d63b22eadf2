/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Posting and polling of UMRs; see dcx_umr.h.
 */
#include "dcx_umr.h"
#include "uct/dcx/ucx/dcx_ucx.h"

#include <ucs/debug/log.h>


static_assert(UCT_DCX_DEVICE_MAX_INLINE == UCT_DCX_UMR_MAX_INLINE,
              "as many as a WQE holds");


/* Returns the fence that the device requires on a WQE behind a UMR, so that the
 * UMR completes first (get_umr_fence() of mlx5_ib in Linux). */
static uint8_t uct_dcx_umr_fence(uint8_t fence)
{
    return (fence == PRM_UMR_FENCE_NONE) ? 0 :
           (fence == PRM_UMR_FENCE_SMALL) ?
                                           MLX5_WQE_CTRL_INITIATOR_SMALL_FENCE :
                                           UCT_DCX_WQE_STRONG_ORDER;
}


ucs_status_t uct_dcx_umr_init(uct_dcx_umr_t *umr, const uct_dcx_device_t *dev,
                              const uct_dcx_devx_path_t *path)
{
    const uct_dcx_cq_params_t cq_params = {
        .ctx       = dev->ctx,
        .length    = UCT_DCX_UMR_NUM_BB, /* each WQE may be flushed */
        .cqe_size  = sizeof(struct mlx5_cqe64),
        .what      = "UMR",
        .log_level = UCS_LOG_LEVEL_ERROR,
    };
    uct_dcx_devx_qp_params_t qp_params = {
        .dev    = dev,
        .path   = path,
        .name   = "UMR QP",
        .num_bb = UCT_DCX_UMR_NUM_BB,
        .max_bb = UCT_DCX_UMR_MAX_BB,
    };
    ucs_status_t status;

    memset(umr, 0, sizeof(*umr));
    status = uct_dcx_cq_init(&umr->cq, &cq_params);
    if (status != UCS_OK) {
        return status;
    }

    qp_params.cqn = umr->cq.cqn;
    status        = uct_dcx_devx_qp_init(&umr->qp, &qp_params);
    if (status != UCS_OK) {
        uct_dcx_cq_cleanup(&umr->cq);
        return status;
    }

    umr->fence       = uct_dcx_wqe_flags(uct_dcx_umr_fence(dev->umr.fence));
    umr->max_inline  = dev->umr.max_inline;
    umr->qp.bf.flush = 1; /* threads take turns */
    umr->qp.sq.carry = 0;
    return UCS_OK;
}


void uct_dcx_umr_cleanup(uct_dcx_umr_t *umr)
{
    uct_dcx_devx_qp_cleanup(&umr->qp);
    uct_dcx_cq_cleanup(&umr->cq);
}


static void uct_dcx_umr_begin_wqe(const uct_dcx_umr_t *umr, uct_dcx_wqe_t *wqe)
{
    const uct_dcx_sq_t *sq = &umr->qp.sq;

    uct_dcx_wqe_begin(wqe, sq->start, sq->mask, sq->pi);
}


static UCS_F_ALWAYS_INLINE void
uct_dcx_umr_finish_wqe(uct_dcx_umr_t *umr, uct_dcx_wqe_t *wqe, uint32_t number)
{
    uct_dcx_sq_t *sq              = &umr->qp.sq;
    const uct_dcx_wqe_ctrl_t ctrl = {
        .opcode = MLX5_OPCODE_UMR,
        .imm    = number,
        .carry  = sq->carry,
        .sender = sq->sender,
    };

    umr->doorbell = uct_dcx_wqe_finish(wqe, &ctrl);
    umr->unrung   = (struct mlx5_wqe_ctrl_seg *)wqe->first;
    umr->first    = wqe->index;
    sq->pi += uct_dcx_wqe_ds_to_bb(wqe->ds);
    sq->carry = umr->fence;
}


void uct_dcx_umr_post_layout(uct_dcx_umr_t *umr, uint32_t number,
                             const uct_dcx_sgl_t *layout,
                             uct_dcx_umr_klm_t *list, uint32_t list_lkey)
{
    uct_dcx_wqe_t wqe;

    if (uct_dcx_sgl_num_klm(layout) <= umr->max_inline) {
        list = NULL;
    } else {
        uct_dcx_umr_translate(layout, NULL, list);
    }

    uct_dcx_umr_begin_wqe(umr, &wqe);
    uct_dcx_umr_write_layout(&wqe, number, layout, list, list_lkey);
    uct_dcx_umr_finish_wqe(umr, &wqe, number);
}


void uct_dcx_umr_post_invalidate(uct_dcx_umr_t *umr, uint32_t number)
{
    uct_dcx_wqe_t wqe;

    uct_dcx_umr_begin_wqe(umr, &wqe);
    uct_dcx_umr_write_invalidate(&wqe);
    uct_dcx_umr_finish_wqe(umr, &wqe, number);
}


void uct_dcx_umr_ring(uct_dcx_umr_t *umr)
{
    uct_dcx_sq_t *sq = &umr->qp.sq;
    int is_alone     = umr->first == umr->rung;
    uint16_t end     = sq->pi;
    unsigned num_bb  = (uint16_t)(end - umr->first);

    if (umr->unrung == NULL) {
        return;
    }

    umr->unrung->fm_ce_se |= MLX5_WQE_CTRL_CQ_UPDATE;
    umr->unrung                      = NULL;
    umr->rung                        = end;
    umr->ends[umr->first & sq->mask] = end;
    umr->num_doorbells++;
    if (is_alone) {
        uct_dcx_sq_push(sq, umr->first, num_bb, umr->doorbell);
    } else {
        uct_dcx_sq_ring(sq, umr->first, num_bb, umr->doorbell);
    }
}


/* Records a failure. The first error has the cause; the WQEs behind it were
 * flushed. */
static void uct_dcx_umr_fail(uct_dcx_umr_t *umr, const struct mlx5_cqe64 *cqe)
{
    if (umr->error == NULL) {
        umr->error  = uct_dcx_cqe_syndrome(cqe);
        umr->failed = be16toh(cqe->wqe_counter);
    }
}


ucs_status_t uct_dcx_umr_poll(uct_dcx_umr_t *umr)
{
    uct_dcx_sq_t *sq = &umr->qp.sq;
    struct mlx5_cqe64 *cqe;

    while ((cqe = uct_dcx_cq_next(&umr->cq)) != NULL) {
        if (uct_dcx_cqe_is_sent(cqe)) {
            sq->ci = umr->ends[be16toh(cqe->wqe_counter) & sq->mask];
        } else {
            uct_dcx_umr_fail(umr, cqe);
        }
        uct_dcx_cq_advance(&umr->cq, sizeof(*cqe));
        uct_dcx_cq_update(&umr->cq);
    }
    return (umr->error == NULL) ? UCS_OK : UCS_ERR_IO_ERROR;
}


ucs_status_t uct_dcx_umr_restart(uct_dcx_umr_t *umr)
{
    ucs_status_t status = uct_dcx_devx_qp_restart(&umr->qp);

    if (status != UCS_OK) {
        uct_dcx_devx_destroy(&umr->qp.obj);
    }
    uct_dcx_cq_remove(&umr->cq, umr->qp.obj.number);
    umr->qp.sq.carry = 0;
    umr->unrung      = NULL;
    umr->error       = NULL;
    umr->rung        = 0;
    return status;
}
