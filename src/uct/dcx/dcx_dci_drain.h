/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * A shared initiator after its first completion with error. Owned by the thread
 * that progresses the interface.
 */
#ifndef UCT_DCX_DCI_DRAIN_H
#define UCT_DCX_DCI_DRAIN_H

#include "dcx_dci_lost.h"


struct uct_dcx_drain {
    uint16_t          next;       /* all before this block have completed */
    uint16_t          place;      /* the next operation to be looked at */
    int16_t           room;       /* of the queue, before */
    uint16_t          is_fresh;   /* no completion has been taken, and the
                                     consumer index may be within a WQE */
    uct_dcx_failure_t failures[]; /* the first of each stream */
};


/* Starts with the completion of 'cqe'; all before it have been retired. */
void uct_dcx_dci_drain(uct_dcx_iface_t *iface, uct_dcx_dci_t *dci,
                       const struct mlx5_cqe64 *cqe);

/* The same without one: all that the device has not begun is flushed. */
void uct_dcx_dci_drain_all(uct_dcx_iface_t *iface, uct_dcx_dci_t *dci);

void uct_dcx_drain_free(uct_dcx_drain_t *drain);


/* Whether the completion of the WQE at 'index' has been taken. */
static inline int
uct_dcx_drain_has_taken(const uct_dcx_dci_t *dci, uint16_t index)
{
    return (dci->drain != NULL) &&
           UCS_CIRCULAR_COMPARE16(index, <, dci->drain->next);
}


/* What the WQE at 'index', which has completed and begins with 'ctrl', fell
 * victim to: the failure of its stream, if that is not behind it. NULL: it has
 * been acknowledged. */
static inline uct_dcx_failure_t *
uct_dcx_drain_failure(uct_dcx_failure_t *failures,
                      const struct mlx5_wqe_ctrl_seg *ctrl, uint16_t index)
{
    uct_dcx_failure_t *failure =
            &failures[be16toh(ctrl->dci_stream_channel_id)];

    return ((failure->status != UCS_OK) &&
            UCS_CIRCULAR_COMPARE16(failure->index, <=, index)) ? failure : NULL;
}

#endif
