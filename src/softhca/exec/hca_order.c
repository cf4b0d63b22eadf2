/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/* The order of a queue pair's WQEs: see hca_order.h. */
#include "hca_order.h"
#include "softhca/base/hca_log.h"
#include "softhca/base/hca_random.h"
#include "softhca/obj/hca_mkey.h"

#include <infiniband/mlx5dv.h>
#include <stdlib.h>
#include <string.h>

enum hca_order hca_order;

static uint32_t hca_order_seed = 1;

void hca_order_init(void)
{
    static const char *const names[] = {
        [HCA_ORDER_OOO]     = "ooo",
        [HCA_ORDER_RELAXED] = "relaxed",
    };
    const char *value = getenv("SOFTHCA_ORDER");

    for (unsigned i = HCA_ORDER_OOO; value && (i <= HCA_ORDER_RELAXED); i++) {
        size_t length = strlen(names[i]);
        char *end     = (char *)value + length;

        if (strncmp(value, names[i], length)) {
            continue;
        }
        if ((end[0] == ':') && (end[1] >= '0') && (end[1] <= '9')) {
            hca_order_seed = strtoul(end + 1, &end, 10);
        }
        if (*end == '\0') {
            hca_order = i;
            return;
        }
    }
    if (value != NULL) {
        hca_error("SOFTHCA_ORDER=%s: use ooo or relaxed, or one of them with "
                  "a seed: ooo:7",
                  value);
    }
}

/* Returns true for half of the numbers. */
static bool hca_order_is_chosen(uint32_t number)
{
    return (hca_random(hca_order_seed, number) >> 63) != 0;
}

bool hca_order_keeps(uint32_t psn)
{
    return ((hca_random(hca_order_seed, psn) >> 62) & 1) != 0;
}

static bool hca_order_is_relaxed(const struct hca_wqe *wqe)
{
    const struct hca_mkey *mkey = hca_mkey_peek(wqe->rkey);

    return (mkey != NULL) && hca_mkey_is_relaxed(mkey);
}

/* Returns the order that a queue pair gives up; its device gives up @own by
 * itself. */
static unsigned hca_order_dp(const struct hca_qp *qp, unsigned own)
{
    return (qp->attr.dp_force || (qp->attr.dp_ordering > own)) ?
               qp->attr.dp_ordering :
               own;
}

/* Returns the order that both the sender, which routes, and its peer, which
 * places, give up: the flag must be set on both (mlx5dv_create_qp(3),
 * MLX5DV_QP_CREATE_OOO_DP). By itself the device sends on adaptive routes on
 * some service levels, and places reads, writes and atomics as they arrive. */
static unsigned hca_order_dp_of_both(const struct hca_qp *qp,
                                     const struct hca_wqe *wqe)
{
    bool is_dc                  = (qp->type == HCA_QP_DCI);
    const struct hca_path *path = is_dc ? &wqe->path : &qp->attr.path;
    const struct hca_qp *peer =
        hca_obj_peek(HCA_KIND_QP, is_dc ? wqe->dqpn : qp->attr.dest_qpn);
    unsigned sent   = hca_order_dp(qp, (HCA_ORDER_OOO_SLS >> path->sl) & 1);
    unsigned placed = (peer != NULL) ? hca_order_dp(peer, HCA_DP_OOO_RW) :
                                       HCA_DP_OOO_RW;

    return (sent < placed) ? sent : placed;
}

/* Reads a WQE. @return true if it may pass another or be passed; a WQE that
 * takes a receive of its target only with HCA_DP_OOO_ALL. */
static bool hca_order_read(const struct hca_qp *qp, uint16_t idx,
                           uint16_t posted, struct hca_wqe *wqe)
{
    bool is_message;

    hca_wqe_peek(wqe, qp, idx, posted);
    if ((wqe->blocks == 0) || (hca_wqe_read(wqe, qp, idx, posted) != HCA_OK) ||
        (wqe->op->flags & HCA_OP_LOCAL)) {
        return false;
    }
    is_message = (wqe->opcode == MLX5_OPCODE_RDMA_WRITE_IMM) ||
                 !(wqe->op->flags & HCA_OP_RADDR);
    if (hca_order == HCA_ORDER_OOO) {
        return hca_order_dp_of_both(qp, wqe) >=
               (is_message ? HCA_DP_OOO_ALL : HCA_DP_OOO_RW);
    }
    return !is_message && (wqe->opcode != MLX5_OPCODE_RDMA_READ) &&
           hca_order_is_relaxed(wqe);
}

/* Reads a WQE. @return true if the next one may pass it: atomics are executed
 * in order, and before all WQEs behind them. */
static bool hca_order_may_be_passed(const struct hca_qp *qp, uint16_t idx,
                                    uint16_t posted, struct hca_wqe *wqe)
{
    return hca_order_read(qp, idx, posted, wqe) &&
           !(wqe->op->flags & HCA_OP_ATOMIC);
}

static bool hca_order_may_pass(const struct hca_qp *qp, uint16_t idx,
                               uint16_t posted, const struct hca_wqe *first)
{
    struct hca_wqe wqe;

    return hca_order_read(qp, idx, posted, &wqe) &&
           (hca_wqe_fm(&wqe) != HCA_FM_STRONG) &&
           !((first->op->flags & HCA_OP_DATA_IN) && hca_wqe_is_fenced(&wqe)) &&
           ((qp->type != HCA_QP_DCI) || (wqe.dqpn == first->dqpn));
}

bool hca_order_holds(const struct hca_qp *qp, uint16_t idx, uint16_t blocks,
                     unsigned num_waiting)
{
    struct hca_wqe wqe;

    return hca_order_is_chosen(qp->req.psn + num_waiting) &&
           hca_order_may_be_passed(qp, idx, blocks, &wqe);
}

bool hca_order_passes(const struct hca_qp *qp, uint16_t first,
                      uint16_t first_blocks, uint16_t idx, uint16_t blocks)
{
    struct hca_wqe wqe;

    return hca_order_read(qp, first, first_blocks, &wqe) &&
           hca_order_may_pass(qp, idx, blocks, &wqe);
}
