/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The data of an endpoint: the path to one peer, its initiator, its credits.
 * sched/ assigns initiators, ep/ has UCT's operations. Used by the interface's
 * thread.
 */
#ifndef UCT_DCX_ENDPOINT_H
#define UCT_DCX_ENDPOINT_H

#include "dcx_queues.h"


/* The states of an endpoint. sched/dcx_tx.h has their transitions, docs/dcx.md
 * a diagram. */
typedef enum uct_dcx_ep_state {
    UCT_DCX_EP_OPEN,
    UCT_DCX_EP_REQUESTED, /* has sent a request for credits */
    UCT_DCX_EP_BLOCKED,   /* has requested credits, and has none left */
    UCT_DCX_EP_GIVEN_UP,  /* canceled by uct_ep_invalidate(): it fails with a
                           * completion, see uct_dcx_ep_cancel(); without an
                           * initiator, not before it gets one */
    UCT_DCX_EP_FAILED,    /* has no initiator any longer; operations are refused
                           * with @error */
    UCT_DCX_EP_LAST
} uct_dcx_ep_state_t;


enum {
    /* the address vector has a second part: a uct_dcx_grh_ep_t */
    UCT_DCX_EP_FLAG_GRH = UCS_BIT(0),

    /* the peer's receive buffers are smaller than ours: a uct_dcx_small_ep_t */
    UCT_DCX_EP_FLAG_SMALL = UCS_BIT(1),

    /* belongs to flow control, not to the user: sends grants */
    UCT_DCX_EP_FLAG_GRANT = UCS_BIT(2),

    /* errors are not reported to the user */
    UCT_DCX_EP_FLAG_MUTED = UCS_BIT(3),

    /* an operation was refused, and the reason logged */
    UCT_DCX_EP_FLAG_REFUSED = UCS_BIT(4),

    /* bound to a shared initiator */
    UCT_DCX_EP_FLAG_SHARED = UCS_BIT(5),

    /* the peer does not match tags */
    UCT_DCX_EP_FLAG_NO_TM = UCS_BIT(6),

    /* its last operation waits for the layout of a strided mkey */
    UCT_DCX_EP_FLAG_LAYOUT = UCS_BIT(7),

    /* flags of endpoints whose WQEs uct_dcx_post_end_special() finishes */
    UCT_DCX_EP_FLAGS_SPECIAL = UCT_DCX_EP_FLAG_GRH | UCT_DCX_EP_FLAG_SHARED
};


enum { UCT_DCX_EP_NO_FC_ENTRY = UINT16_MAX };


struct uct_dcx_ep {
    uct_base_ep_t super;
    UCS_STATS_NODE_DECLARE(unused) /* pads the size to a multiple of 16 */
    ucs_arbiter_group_t pending;
    uct_dcx_av_t av;
    uint16_t dci;    /* or UCT_DCX_NO_DCI */
    uint8_t state;   /* uct_dcx_ep_state_t */
    uint8_t flags;   /* UCT_DCX_EP_FLAG_* */
    uint16_t stream; /* of a shared initiator, 0 if it has none */
    union {
        uint16_t last; /* first WQEBB of its last WQE on a shared initiator */
        uint16_t home; /* index of the exclusive initiator that it took last;
                        * 0 if it took none */
    };
    union {
        uint16_t credits; /* active messages that it may send before it
                           * requests credits; once it has requested some,
                           * before it is blocked */
        uint16_t left;    /* failed: shared initiator on which its last
                           * operations may be outstanding, or
                           * UCT_DCX_NO_DCI */
    };
    union {
        uint16_t fc_entry; /* in the table of flow control, or
                            * UCT_DCX_EP_NO_FC_ENTRY */
        uint16_t error;    /* failed: -ucs_status_t */
    };
    uint32_t pid; /* process id of the peer */
};

/* The endpoint of a peer whose packets need a global route header */
typedef struct uct_dcx_grh_ep {
    uct_dcx_ep_t super;
    uct_dcx_grh_t grh;
} uct_dcx_grh_ep_t;

/* The endpoint of a peer whose receive buffers are shorter than the longest
 * message that it gets, with or without a route header */
typedef struct uct_dcx_small_ep {
    uct_dcx_grh_ep_t super;
    uint32_t am_limit; /* maximum bytes of an active message, without its
                        * uct_dcx_am_hdr_t */
} UCS_V_ALIGNED(16) uct_dcx_small_ep_t;

/* Sizes are limited, as a job has an endpoint for each peer. With asserts UCX's
 * arbiter group takes 16 bytes more. With UCX's statistics a pointer to them
 * and a pad take 16 bytes more. */
#define UCT_DCX_EP_EXTRA_SIZE \
    (UCS_ENABLE_ASSERT * 16 + 2 * (sizeof(uct_base_ep_t) - sizeof(uct_ep_t)))
static_assert(sizeof(uct_dcx_ep_t) <= 48 + UCT_DCX_EP_EXTRA_SIZE,
              "endpoint without GRH");
static_assert(sizeof(uct_dcx_grh_ep_t) <= 80 + UCT_DCX_EP_EXTRA_SIZE,
              "endpoint with GRH");
static_assert((sizeof(uct_dcx_ep_t) % 16 == 0) &&
                  (sizeof(uct_dcx_grh_ep_t) % 16 == 0),
              "uct_dcx_slab_init()");


/* Returns non-zero if a global route header follows an address vector. */
static inline int uct_dcx_av_has_grh(const uct_dcx_av_t *av)
{
    return (av->dqp_dct & htobe32(MLX5_EXTENDED_UD_AV)) != 0;
}


/* Returns the number of the DCT in an address vector. */
static inline uint32_t uct_dcx_av_dctn(const uct_dcx_av_t *av)
{
    return be32toh(av->dqp_dct) & UCS_MASK(24);
}


static inline uct_dcx_queues_t *uct_dcx_ep_queues(const uct_dcx_ep_t *ep)
{
    return ucs_derived_of(ep->super.super.iface, uct_dcx_queues_t);
}


static inline uct_dcx_dci_set_t *uct_dcx_ep_dci_set(const uct_dcx_ep_t *ep)
{
    return &uct_dcx_ep_queues(ep)->dci;
}


static inline int uct_dcx_ep_has_requested(const uct_dcx_ep_t *ep)
{
    return (ep->state == UCT_DCX_EP_REQUESTED) ||
           (ep->state == UCT_DCX_EP_BLOCKED);
}


/* Returns non-zero if nothing of the endpoint is outstanding on its initiator.
 * On a shared one @last may be older than a wrap of the counters: then no WQE
 * of this endpoint begins there. */
static inline int uct_dcx_ep_is_idle(const uct_dcx_ep_t *ep,
                                     const uct_dcx_dci_t *dci)
{
    if (!uct_dcx_dci_is_shared(dci)) {
        return uct_dcx_txq_is_idle(&dci->txq);
    }

    return !uct_dcx_txq_is_outstanding(&dci->txq, ep->last) ||
           (uct_dcx_dci_wqe_ep(dci, ep->last) != ep);
}


/* Returns the initiator on which operations of the endpoint may be outstanding,
 * or UCT_DCX_NO_DCI. */
static inline uint16_t uct_dcx_ep_last_dci(const uct_dcx_ep_t *ep)
{
    return (ep->state == UCT_DCX_EP_FAILED) ? ep->left : ep->dci;
}

#endif
