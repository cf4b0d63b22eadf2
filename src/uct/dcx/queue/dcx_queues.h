/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The queues of an interface.
 *
 * queue/ is the room of the rings: DC initiators with what is outstanding on
 * them, the receive queue, their buffers and completions, and how a WQE is
 * posted. All rooms above call it. It must not know why somebody posts, who
 * gets which initiator or who waits for one, nor what becomes of an operation
 * that fails: of an endpoint it has the data, not the rules.
 */
#ifndef UCT_DCX_QUEUES_H
#define UCT_DCX_QUEUES_H

#include "dcx_dci.h"
#include "dcx_srq.h"
#include "uct/dcx/base/dcx_slab.h"
#include "uct/dcx/strided/dcx_key.h"

typedef struct uct_dcx_fc uct_dcx_fc_t; /* fc/ */
typedef struct uct_dcx_tm uct_dcx_tm_t; /* tm/ */


/* Sizes of the greatest operations, resolved when the interface opens. */
typedef struct uct_dcx_limits {
    unsigned max_bb;        /* WQEBBs of a WQE */
    unsigned num_tags;      /* tagged buffers, 0: the device matches no tags */
    size_t   seg_size;      /* receive buffer */
    size_t   am_short;      /* message, its 8-byte header included */
    size_t   am_bcopy;
    size_t   am_zcopy;      /* header and data */
    size_t   am_hdr;
    size_t   am_iov;
    size_t   put_short;
    size_t   rma_bcopy;
    size_t   rma_zcopy;
    size_t   rma_iov;
    size_t   get_iov;       /* not above rma_iov */
    struct {                /* of memory that is not plain (dcx_iov.h) */
        unsigned max_plain; /* pieces that become scatter entries */
        size_t   copy;      /* bytes that are copied, if they are in more */
        size_t   copy_piece; /* ... and of an average piece */
        unsigned max_klm;   /* of a key with a layout, 0: there are none */
    } strided;
    struct {                /* 0 without tag matching */
        size_t   max_short; /* also the header of a request that the user
                             * carries out */
        size_t   bcopy;     /* also without a copy */
        size_t   iov;
        size_t   rndv_zcopy;
        size_t   rndv_hdr;
        size_t   min_recv;  /* the shortest buffer that is posted */
    } tag;
} uct_dcx_limits_t;


/* The part of an interface that an endpoint leads to: the first. A function
 * that needs less takes less: the set of initiators, the receive queue, a pool,
 * the port. */
typedef struct uct_dcx_queues {
    uct_base_iface_t        super;
    uct_dcx_dci_set_t       dci;
    uct_dcx_rx_t            rx;
    ucs_mpool_t             desc_mp;  /* uct_dcx_desc_t */
    uct_dcx_limits_t        limits;
    struct {
        uct_dcx_slab_t      plain;    /* uct_dcx_ep_t */
        uct_dcx_slab_t      grh;      /* uct_dcx_grh_ep_t */
        uct_dcx_slab_t      small;    /* uct_dcx_small_ep_t */
    } eps;                            /* where those of the user lie */
    uct_dcx_port_t          port;
    struct ibv_comp_channel *channel; /* of all completion queues */
    uct_dcx_fc_t            *fc;      /* looked at when credits are short */
    uct_dcx_tm_t            *tm;      /* NULL: the device matches no tags */
} uct_dcx_queues_t;


/* Sets limits.strided.max_klm, which this part alone writes. The port is
 * open. */
void uct_dcx_queues_init_keys(uct_dcx_queues_t *queues);

/* Creates the queue that gives keys their layouts, at the port of the
 * interface, if the memory domain has none yet. Returns as
 * uct_dcx_keys_open(). */
ucs_status_t uct_dcx_queues_open_keys(uct_dcx_queues_t *queues);

/* Returns the keys with layouts of the memory domain, see
 * uct_dcx_queues_open_keys(). NULL on failure, which is logged: this interface
 * goes on without them. */
uct_dcx_keys_t *uct_dcx_queues_keys(uct_dcx_queues_t *queues);


/* Posts the buffers that are short, if there are any by now; else it is put down
 * in 'todo'. */
static inline void uct_dcx_queues_refill(uct_dcx_queues_t *queues)
{
    uct_dcx_rx_t *rx = &queues->rx;

    uct_dcx_srq_post(rx);
    if (rx->excess >= 0) {
        /* no message may come any more */
        queues->dci.todo |= UCT_DCX_TODO_REFILL;
    } else {
        queues->dci.todo &= ~UCT_DCX_TODO_REFILL;
    }
}

#endif
