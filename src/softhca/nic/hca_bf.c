/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * A push is a row of stores by one thread, which nobody else's may disturb
 * (write combining): what it is about is remembered per thread.
 */
#include "hca_bf.h"
#include "softhca/base/hca_mutex.h"
#include "hca_qp.h"
#include "hca_requester.h"
#include "hca_thread.h"
#include "hca_wqe.h"

#include <common/prm.h>
#include <endian.h>
#include <string.h>

#define HCA_BF_MAX 256u /* half of the register (log_bf_reg_size) */

/* No completion can tell: the WQE may be executed, and its own be there. */
static void hca_bf_fail(struct hca_qp *qp, unsigned pos)
{
    hca_mutex_lock(&qp->sq_lock);
    if (qp->req.attached &&
        (atomic_load(&qp->obj.num) == hca_thread.bf_qpn)) {
        hca_check_wqe(HCA_CHECK_BF_COPY, hca_thread.bf_qpn, hca_thread.bf_idx,
                      pos);
        hca_qp_fail_fatal(qp);
        hca_requester_run_locked(qp);
    }
    hca_mutex_unlock(&qp->sq_lock);
    hca_thread.bf_qpn = 0;
}

static bool hca_bf_is_zero(const uint8_t *value, unsigned size)
{
    return (value[0] == 0) && !memcmp(value, value + 1, size - 1);
}

/* Zeroes are what a value is that is not known (hca_trap.h). What lies behind
 * the WQE, up to whole blocks, is not looked at. */
static void hca_bf_compare(unsigned pos, const void *value, unsigned size)
{
    struct hca_qp *qp = hca_obj_peek(HCA_KIND_QP, hca_thread.bf_qpn);
    uint8_t ring[HCA_BF_MAX];

    if ((qp == NULL) || (pos >= hca_thread.bf_size)) {
        hca_thread.bf_qpn = 0;
        return;
    }
    size = (size < hca_thread.bf_size - pos) ? size :
                                               hca_thread.bf_size - pos;
    hca_wqe_copy(ring, qp, hca_thread.bf_idx, pos + size);
    if (!hca_bf_is_zero(value, size) && memcmp(ring + pos, value, size)) {
        hca_bf_fail(qp, pos);
    }
}

void hca_bf_begin(uint32_t qpn, const void *value, unsigned size)
{
    uint32_t words[2];

    memcpy(words, value, sizeof(words));
    hca_thread.bf_qpn  = qpn;
    hca_thread.bf_idx  = (be32toh(words[0]) & PRM_CTRL_IDX) >> 8;
    hca_thread.bf_size = (be32toh(words[1]) & PRM_CTRL_DS) * 16;
    if (hca_thread.bf_size > HCA_BF_MAX) {
        hca_thread.bf_qpn = 0;
    } else if (size > sizeof(words)) {
        hca_bf_compare(0, value, size);
    }
}

void hca_bf_more(unsigned pos, const void *value, unsigned size)
{
    if (hca_thread.bf_qpn != 0) {
        hca_bf_compare(pos, value, size);
    }
}
