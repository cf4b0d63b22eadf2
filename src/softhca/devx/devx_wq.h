/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Context of a receive queue in the mailboxes of RMPs and XRQs (mlx5_ifc.h:
 * wq).
 */
#ifndef DEVX_WQ_H
#define DEVX_WQ_H

#include "devx.h"
#include "softhca/obj/hca_srq.h"

#define DEVX_WQ_SIZE 0xc0u

#define WQ_TYPE DEVX_BITS(0x00, 31, 28)
enum {
    WQ_TYPE_LIST           = 0,
    WQ_TYPE_CYCLIC         = 1,
    WQ_TYPE_LIST_STRIDES   = 2,
    WQ_TYPE_CYCLIC_STRIDES = 3
};

#define WQ_LWM DEVX_BITS(0x04, 15, 0)
#define WQ_PD  DEVX_BITS(0x08, 23, 0)

/* Checks the context that begins at @base of the in mailbox.
 * @return DEVX_OK or DEVX_BAD_PARAM, logged. */
enum devx_status devx_wq_check(struct devx_call *call, size_t base);

/* Fills in the ring, the doorbell record, the low-water mark, the type and the
 * strides, after devx_wq_check(). @return as devx_find_ring(). */
enum devx_status devx_wq_fill(struct devx_call *call, size_t base,
                              struct hca_srq_spec *spec);

/* Creates the queue and makes call->obj its owner.
 * @return DEVX_OK, DEVX_NO_RES. */
enum devx_status devx_srq_make(struct devx_call *call,
                               const struct hca_srq_spec *spec);

/* Writes the context of a query's answer; @wq is zero before. */
void devx_wq_put(uint8_t *wq, const struct hca_srq *hw);

#endif
