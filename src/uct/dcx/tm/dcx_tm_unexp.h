/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Unexpected messages, which match no buffer of the list; see dcx_tm.h. The
 * device counts them, and so does this code. Inlined into the function that
 * takes completions (iface/dcx_rx_tm.c).
 */
#ifndef UCT_DCX_TM_UNEXP_H
#define UCT_DCX_TM_UNEXP_H

#include "dcx_tm.h"


/* Delivers a message of @length bytes at @tmh, which has that header. */
static UCS_F_ALWAYS_INLINE ucs_status_t uct_dcx_tm_eager(uct_dcx_tm_t *tm,
                                                         struct ibv_tmh *tmh,
                                                         size_t length,
                                                         uint64_t imm,
                                                         unsigned flags)
{
    void *context = NULL;

    return tm->eager_cb(tm->eager_arg, tmh + 1, length - sizeof(*tmh),
                        flags | UCT_CB_PARAM_FLAG_FIRST, tmh->tag, imm,
                        &context);
}


/* Delivers a message that has an immediate, is a request, or is malformed. */
static UCS_F_NOINLINE ucs_status_t
uct_dcx_tm_deliver_rare(uct_dcx_tm_t *tm, struct ibv_tmh *tmh, size_t length,
                        const struct mlx5_cqe64 *cqe, unsigned flags)
{
    uint64_t imm;

    if (length < sizeof(*tmh)) {
        uct_dcx_queues_dropped(
            tm->queues, "a malformed tagged message of %zu bytes", length);
        return UCS_OK;
    }

    if (tmh->opcode == IBV_TMH_RNDV) {
        return uct_dcx_tm_unexpected_rndv(tm, tmh, length);
    }

    imm = uct_dcx_tm_imm(cqe, tmh->app_ctx);
    if (uct_dcx_tm_is_request(cqe, imm)) {
        return tm->rndv_cb(tm->rndv_arg, 0, tmh->tag, tmh + 1,
                           length - sizeof(*tmh), 0, 0, NULL);
    }

    return uct_dcx_tm_eager(tm, tmh, length, imm, flags);
}


static UCS_F_ALWAYS_INLINE ucs_status_t
uct_dcx_tm_deliver(uct_dcx_tm_t *tm, struct ibv_tmh *tmh, size_t length,
                   const struct mlx5_cqe64 *cqe, unsigned flags)
{
    if (ucs_unlikely((length < sizeof(*tmh)) || (tmh->opcode == IBV_TMH_RNDV) ||
                     uct_dcx_tm_has_imm(cqe))) {
        return uct_dcx_tm_deliver_rare(tm, tmh, length, cqe, flags);
    }

    return uct_dcx_tm_eager(tm, tmh, length, 0, flags);
}


/* Counts the message after the user's callback. In the callback the user
 * removes the receive that it finds for the message; until then, the device
 * must not match that receive. */
static UCS_F_ALWAYS_INLINE ucs_status_t
uct_dcx_tm_unexpected(uct_dcx_tm_t *tm, struct ibv_tmh *tmh, size_t length,
                      const struct mlx5_cqe64 *cqe, unsigned flags)
{
    ucs_status_t status = uct_dcx_tm_deliver(tm, tmh, length, cqe, flags);

    tm->unexpected++;
    return status;
}

#endif
