/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The queues of an interface.
 *
 * queue/ is the room of the rings: DC initiators and their outstanding WQEs,
 * the receive queue, buffers, completions, and posting. It must not know the
 * purpose of a WQE, how initiators are assigned, which endpoints wait for one,
 * nor the handling of failed operations: it has the data of an endpoint, not
 * the rules.
 */
#ifndef UCT_DCX_QUEUES_H
#define UCT_DCX_QUEUES_H

#include "dcx_dci.h"
#include "dcx_dm.h"
#include "dcx_srq.h"
#include "uct/dcx/base/dcx_slab.h"
#include "uct/dcx/strided/dcx_key.h"

typedef struct uct_dcx_fc uct_dcx_fc_t; /* fc/ */
typedef struct uct_dcx_tm uct_dcx_tm_t; /* tm/ */


/* Maximum sizes of operations, set when the interface opens; bytes unless
 * noted */
typedef struct uct_dcx_limits {
    unsigned max_bb;   /* WQEBBs of a WQE */
    unsigned num_tags; /* tagged buffers, 0: the device matches no tags */
    size_t seg_size;   /* of a receive buffer */
    size_t am_size;    /* of an active message, with its uct_dcx_am_hdr_t */
    size_t am_short;   /* of a message, including its 8-byte header */
    size_t am_copied;  /* of a copied message in the WQE, or in device
                        * memory */
    size_t am_bcopy;
    size_t am_zcopy; /* header and data */
    size_t am_hdr;
    size_t am_iov; /* pieces */
    size_t put_short;
    size_t put_copied; /* like @am_copied */
    size_t rma_bcopy;
    size_t rma_zcopy;
    size_t rma_iov;         /* pieces */
    size_t get_iov;         /* pieces, at most rma_iov */
    struct {                /* of memory that is not plain (dcx_iov.h) */
        unsigned max_plain; /* pieces that become scatter entries */
        size_t copy;        /* bytes up to which all data is copied, if it
                             * has more pieces */
        size_t copy_piece;  /* bytes up to which an average piece is copied */
        unsigned max_klm;   /* translations of a strided mkey, 0: there are
                             * no such mkeys */
    } strided;
    struct {               /* 0 without tag matching */
        size_t max_short;  /* also for the header of a request that the user
                            * carries out */
        size_t bcopy;      /* also of an eager message without a copy */
        size_t iov;        /* pieces */
        size_t rndv_zcopy; /* 0: the device fetches no data */
        size_t rndv_hdr;
        size_t min_recv; /* the shortest buffer that is posted */
    } tag;
} uct_dcx_limits_t;


/* The first part of an interface, to which an endpoint points. A function that
 * needs less takes a smaller part: the set of initiators, the receive queue, a
 * pool, the port. */
typedef struct uct_dcx_queues {
    uct_base_iface_t super;
    uct_dcx_dci_set_t dci;
    uct_dcx_rx_t rx;
    ucs_mpool_t desc_mp; /* uct_dcx_desc_t */
    uct_dcx_dm_t dm;
    uct_dcx_limits_t limits;
    struct {
        uct_dcx_slab_t plain; /* uct_dcx_ep_t */
        uct_dcx_slab_t grh;   /* uct_dcx_grh_ep_t */
        uct_dcx_slab_t small; /* uct_dcx_small_ep_t */
    } eps;                    /* memory of the user's endpoints */
    uct_dcx_port_t port;
    struct ibv_comp_channel *channel; /* of all completion queues */
    uct_dcx_fc_t *fc;                 /* used when credits are short */
    uct_dcx_tm_t *tm;                 /* NULL: the device matches no tags */
} uct_dcx_queues_t;


/* Sets limits.strided.max_klm. The port is open. */
void uct_dcx_queues_init_keys(uct_dcx_queues_t *queues);

/* Creates the queue for strided mkeys, at the port of the interface, if the
 * memory domain has none yet. Returns as uct_dcx_keys_open(). */
ucs_status_t uct_dcx_queues_open_keys(uct_dcx_queues_t *queues);

/* Returns the strided mkeys of the memory domain, opened by
 * uct_dcx_queues_open_keys() if necessary. Returns NULL if that fails, which is
 * logged, and sets limits.strided.max_klm to 0. */
uct_dcx_keys_t *uct_dcx_queues_keys(uct_dcx_queues_t *queues);


/* Counts a message that is dropped, and logs the first one, and each one that
 * doubles the count: a peer cannot fill the log. @reason is a format. */
void uct_dcx_queues_dropped(uct_dcx_queues_t *queues, const char *reason, ...)
    __attribute__((cold)) UCS_F_PRINTF(2, 3);


/* Posts receive buffers into the free entries. Sets UCT_DCX_TODO_REFILL if a
 * batch of entries or more stays free, else clears it. */
static inline void uct_dcx_queues_refill(uct_dcx_queues_t *queues)
{
    uct_dcx_rx_t *rx = &queues->rx;

    uct_dcx_srq_post(rx);
    if (rx->excess >= 0) {
        /* the queue may be empty */
        queues->dci.todo |= UCT_DCX_TODO_REFILL;
    } else {
        queues->dci.todo &= ~UCT_DCX_TODO_REFILL;
    }
}

#endif
