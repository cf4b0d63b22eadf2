/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The DC initiators of an interface: their queues, what is outstanding on
 * them, and which endpoint holds which. Everything belongs to the thread that
 * progresses the interface. An initiator is in the pool (no endpoint, nothing
 * outstanding), held by one endpoint, or draining: its endpoint is gone and
 * the last operations are on the way.
 */
#ifndef UCT_DCX_DCI_H
#define UCT_DCX_DCI_H

#include "dcx_config.h"
#include "dcx_cq.h"
#include "dcx_policy.h"
#include "dcx_port.h"
#include "dcx_sq.h"

#include <ucs/datastruct/arbiter.h>
#include <ucs/datastruct/mpool.h>
#include <ucs/datastruct/queue.h>

typedef struct uct_dcx_dci   uct_dcx_dci_t;
typedef struct uct_dcx_ep    uct_dcx_ep_t;
typedef struct uct_dcx_iface uct_dcx_iface_t;
typedef struct uct_dcx_op    uct_dcx_op_t;


/* Ends an operation: frees what it held, tells the user. */
typedef void (*uct_dcx_op_done_t)(uct_dcx_dci_t *dci, uct_dcx_op_t *op,
                                  ucs_status_t status);

/* An operation that is outstanding, at the index of its first block. */
struct uct_dcx_op {
    uct_dcx_op_done_t done;     /* NULL: nobody waits for it */
    uct_completion_t  *comp;
    void              *buffer;
    uint16_t          num_bb;   /* blocks that its WQE takes */
    uint16_t          canceled; /* the user was told already */
};


/* A flush that waits until everything posted before it has completed. */
typedef struct uct_dcx_flush {
    ucs_queue_elem_t queue;
    uct_completion_t *comp;
    uint16_t         pi;      /* of the send queue when flush was called */
} uct_dcx_flush_t;


struct uct_dcx_dci {
    uct_dcx_sq_t     sq;
    uct_dcx_op_t     *ops;     /* one for each block of the ring */
    uct_dcx_ep_t     *ep;      /* NULL: in the pool or draining */
    uint64_t         *results; /* one for each block: where atomics land */
    uint16_t         index;
    uint8_t          in_error; /* was moved to the error state by us */
    unsigned         turn;     /* counts resets and returns to the pool */
    ucs_queue_head_t flushes;
    struct ibv_qp    *qp;
} UCS_V_ALIGNED(UCS_SYS_CACHE_LINE_SIZE);


/* The part iface->dci */
typedef struct uct_dcx_dci_set {
    uct_dcx_dci_t *dci;
    unsigned      num_dci;
    uct_dcx_pool_t pool;
    ucs_arbiter_t wait_dci;    /* endpoints that wait for an initiator */
    ucs_arbiter_t wait_room;   /* endpoints that hold one which was full */
    uint16_t      *by_qpn;     /* index by the low bits of the QP number */
    uint32_t      qpn_mask;
    uint64_t      *results;
    uint32_t      results_lkey;
    struct ibv_mr *results_mr;
    ucs_mpool_t   flush_mp;
    int           throttled;   /* shares are in force */
    uct_dcx_ep_t  *failing;    /* its error handler is still to be called */
    uint8_t       timeout;     /* code of the ACK timeout */
    uint8_t       retry_count;
    uint8_t       rnr_retry_count;
    uint8_t       max_rd_atomic;
} uct_dcx_dci_set_t;


/* The initiator that a send completion belongs to, NULL if it was reset since.
 * A table of the low bits of QP numbers, as wide as it takes to tell ours
 * apart: the user index in the completion is libmlx5's, not ours. */
static UCS_F_ALWAYS_INLINE uct_dcx_dci_t *
uct_dcx_dci_find(uct_dcx_dci_set_t *set, uint32_t qpn)
{
    uint16_t index = set->by_qpn[qpn & set->qpn_mask];
    uct_dcx_dci_t *dci;

    if (ucs_unlikely(index == UCT_DCX_NO_DCI)) {
        return NULL;
    }

    dci = &set->dci[index];
    return ucs_likely(dci->sq.qpn == qpn) ? dci : NULL;
}


static UCS_F_ALWAYS_INLINE int uct_dcx_dci_is_idle(const uct_dcx_dci_t *dci)
{
    return dci->sq.pi == dci->sq.ci;
}


/* Creates one initiator, ready to send, of the set it lies in. */
ucs_status_t
uct_dcx_dci_init(uct_dcx_iface_t *iface, uct_dcx_dci_t *dci,
                 const uct_dcx_iface_config_t *config);

void uct_dcx_dci_cleanup(uct_dcx_iface_t *iface, uct_dcx_dci_t *dci);

/* ibv_modify_qp() that sets the state and what 'mask' adds. */
int uct_dcx_dci_modify(uct_dcx_dci_t *dci, struct ibv_qp_attr *attr, int mask);

/* From RESET to RTS. Errors are logged. */
ucs_status_t
uct_dcx_dci_connect(uct_dcx_iface_t *iface, uct_dcx_dci_t *dci);

/* Creates the initiators and the pool. Needs iface->port and the send CQ.
 * Errors are logged. */
ucs_status_t uct_dcx_dci_set_init(uct_dcx_iface_t *iface,
                                  const uct_dcx_iface_config_t *config);

void uct_dcx_dci_set_cleanup(uct_dcx_iface_t *iface);

/* Ends, in order, the operations before block 'until'. Returns 0 if a callback
 * of the user, who may destroy the endpoint in it, had the initiator reset or
 * given back: everything before 'until' has ended then, and what is outstanding
 * now is of whoever took the initiator since. */
int uct_dcx_dci_retire(uct_dcx_iface_t *iface, uct_dcx_dci_t *dci,
                       uint16_t until, ucs_status_t status);

/* Queues a flush behind what is outstanding on 'dci'. */
ucs_status_t uct_dcx_dci_add_flush(uct_dcx_iface_t *iface, uct_dcx_dci_t *dci,
                                   uct_completion_t *comp);

/* The endpoint is gone, and nobody may be told of what is outstanding later:
 * all completions come now, as cancelled. Copied operations stay with the
 * device and are freed when they complete. If there are others, the queue is
 * reset, as their memory is the user's again. */
void uct_dcx_dci_leave(uct_dcx_iface_t *iface, uct_dcx_dci_t *dci);

/* Takes the queue to the error state and sees to it that a completion with
 * error comes, even if nothing was outstanding any more. */
ucs_status_t uct_dcx_dci_to_error(uct_dcx_dci_t *dci);

/* A send completion with error: fails what is outstanding, calls the error
 * handler of the endpoint and makes the initiator usable again. */
void uct_dcx_dci_fail(uct_dcx_iface_t *iface, uct_dcx_dci_t *dci,
                      const struct mlx5_cqe64 *cqe);

#endif
