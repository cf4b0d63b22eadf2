/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Flow control of active messages. A receiver has one queue of buffers for all
 * of its peers; a message that finds it empty is refused by the device and sent
 * again later (RNR). So each endpoint has credits, begins with a few, and
 * requests more of the receiver before they are used up; without any, active
 * messages wait. Requests and grants are messages of the transport's own.
 * Everything belongs to the thread that progresses the interface. Drawing and
 * guarantee: docs/dcx.md, "Flow control".
 *
 * fc/ is the room of that: dcx_fc.c is the sender's side, dcx_fc_grant.c the
 * receiver's. Called by active messages (ep/), by the delivery of messages and
 * by progress (iface/). It must not know what a message of the user is, nor how
 * an endpoint fails or goes.
 */
#ifndef UCT_DCX_FC_H
#define UCT_DCX_FC_H

#include "uct/dcx/net/dcx_addr.h"
#include "uct/dcx/net/dcx_port_addr.h"
#include "uct/dcx/queue/dcx_post.h"
#include "uct/dcx/sched/dcx_fc_table.h"
#include "uct/dcx/sched/dcx_tx.h"

#include <ucs/time/time_def.h>


/* Ids of the transport's own messages, beyond those of UCT */
enum {
    UCT_DCX_FC_ID_REQUEST = 0x40, /* uct_dcx_fc_request_t */
    UCT_DCX_FC_ID_GRANT   = 0x41  /* uct_dcx_fc_grant_t */
};


/* A grant, and what a request says of its endpoint */
typedef struct uct_dcx_fc_grant {
    __be16 entry;   /* of the sender */
    __be16 seq;     /* number of its request, which may be answered already */
    __be16 credits; /* request: those left; grant: those granted */
    __be16 loan;    /* request: what is returned; grant: what of them is lent */
    __be16 epoch;   /* ... and in which it was */
} UCS_S_PACKED uct_dcx_fc_grant_t;


/* With the address of the sender, which a receive completion does not have. */
typedef struct uct_dcx_fc_request {
    uct_dcx_fc_grant_t state;
    uct_dcx_target_t   origin;
} UCS_S_PACKED uct_dcx_fc_request_t;


/* The origin in whole segments of a WQE */
typedef union uct_dcx_fc_origin {
    uct_dcx_target_t fields;
    uint8_t          segs[48];
} uct_dcx_fc_origin_t;

static_assert(sizeof(uct_dcx_fc_origin_t) - sizeof(uct_dcx_target_t) <
              UCT_DCX_WQE_SEG, "and no more of them than it takes");


/* Endpoints of answers are created by the room above, as all others. */
typedef struct uct_dcx_fc_ep_ops {
    ucs_status_t (*init)(uct_dcx_ep_t *ep, uct_dcx_queues_t *queues);
    void         (*cleanup)(uct_dcx_ep_t *ep);
} uct_dcx_fc_ep_ops_t;


/* Flow control of an interface. */
struct uct_dcx_fc {
    uct_dcx_queues_t          *queues;
    int                       enabled;

    /* sender */
    uct_dcx_fc_table_t        table;
    double                    thresh;    /* part of a loan that is reserve */
    ucs_time_t                interval;
    ucs_time_t                next_tick;
    unsigned                  num_due;   /* entries that the last tick has not
                                          * looked at yet */
    unsigned                  next_due;  /* ... and the first of them */
    uct_dcx_fc_origin_t       origin;    /* of our own requests */

    /* receiver */
    uct_dcx_credit_bank_t     bank;
    const uct_dcx_fc_ep_ops_t *ep_ops;
    ucs_mpool_t               answers;   /* uct_dcx_fc_answer_t */
    ucs_list_link_t           waiting;   /* ... that wait for an initiator */
};


/* 'queues' are open. Errors are logged. */
ucs_status_t uct_dcx_fc_init(uct_dcx_fc_t *fc, uct_dcx_queues_t *queues,
                             const uct_dcx_fc_ep_ops_t *ep_ops,
                             const uct_dcx_iface_config_t *config);

/* No more of it is posted: before the initiators are destroyed. */
void uct_dcx_fc_stop(uct_dcx_fc_t *fc);

/* Frees the rest: after the initiators are destroyed. */
void uct_dcx_fc_cleanup(uct_dcx_fc_t *fc);

/* Reminds receivers of requests that are due: UCT_DCX_TODO_FC. */
void uct_dcx_fc_progress(uct_dcx_fc_t *fc);

/* Returns non-zero if any endpoint is blocked, and stores the time until the
 * next reminder. */
int uct_dcx_fc_time_left(const uct_dcx_fc_t *fc, ucs_time_t *left);

/* Returns non-zero if an endpoint that waits for a grant has pending
 * requests. */
int uct_dcx_fc_has_pending(const uct_dcx_fc_t *fc);

/* A message that has no id of UCT, or is too short for one. */
void uct_dcx_fc_receive(uct_dcx_fc_t *fc, const uct_dcx_am_hdr_t *hdr,
                        size_t length);

/* uct_dcx_fc_get() of an endpoint without credits. */
uct_dcx_dci_t *uct_dcx_fc_get_dci(uct_dcx_ep_t *ep);


/* A new endpoint may send so many active messages. */
static inline void uct_dcx_fc_init_ep(uct_dcx_ep_t *ep, uint16_t credits)
{
    ep->credits  = credits;
    ep->fc_entry = UCT_DCX_EP_NO_FC_ENTRY;
}


/* The initiator on which 'ep' may post an active message, see uct_dcx_tx_get().
 * NULL: it can have none, or has no credit. */
static UCS_F_ALWAYS_INLINE uct_dcx_dci_t *
uct_dcx_fc_get(uct_dcx_queues_t *queues, uct_dcx_ep_t *ep)
{
    return ucs_likely(ep->credits > 0) ? uct_dcx_tx_get(&queues->dci, ep) :
                                         uct_dcx_fc_get_dci(ep);
}


/* uct_dcx_post_end() of an active message: takes a credit. */
static UCS_F_ALWAYS_INLINE void
uct_dcx_fc_post(const uct_dcx_wqe_t *wqe, uct_dcx_dci_t *dci, uct_dcx_ep_t *ep,
                const uct_dcx_post_t *tx)
{
    uct_dcx_post_end(wqe, dci, ep, tx);
    ep->credits--;
}


/* Returns the properties that the address of a peer is compared with. */
static inline uct_dcx_addr_own_t uct_dcx_fc_addr_own(const uct_dcx_fc_t *fc)
{
    const uct_dcx_addr_own_t own = {
        .flags    = fc->enabled ? UCT_DCX_ADDR_FLAG_FC : 0,
        .am_short = sizeof(uct_dcx_am_hdr_t) + fc->queues->limits.am_short
    };

    return own;
}

#endif
