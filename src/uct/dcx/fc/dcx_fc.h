/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Flow control of active messages. A receiver has one queue of buffers for all
 * of its peers; if it is empty, the device refuses a message and the sender's
 * device retransmits it later (RNR). To avoid this, each endpoint has credits:
 * it begins with a few, and requests more of the receiver before they run out;
 * without credits, active messages wait. Requests and grants are messages of
 * the transport itself. Everything belongs to the thread that progresses the
 * interface. Diagram and guarantee: docs/dcx.md, "Flow control".
 *
 * dcx_fc.c is the sender's side, dcx_fc_grant.c the receiver's, dcx_fc_rndv.c
 * ends rendezvous that the receiver's device could not fetch. Called by
 * active messages (ep/), by the delivery of messages and by progress (iface/).
 * This room must not know the content of the user's messages, nor how an
 * endpoint fails or is destroyed.
 */
#ifndef UCT_DCX_FC_H
#define UCT_DCX_FC_H

#include "uct/dcx/net/dcx_addr.h"
#include "uct/dcx/net/dcx_port_addr.h"
#include "uct/dcx/queue/dcx_post.h"
#include "uct/dcx/sched/dcx_fc_table.h"
#include "uct/dcx/sched/dcx_tx.h"

#include <ucs/time/time_def.h>


/* Ids of the transport's own messages, above those of UCT */
enum {
    UCT_DCX_FC_ID_REQUEST = 0x40, /* uct_dcx_fc_request_t */
    UCT_DCX_FC_ID_GRANT   = 0x41, /* uct_dcx_fc_grant_t */
    UCT_DCX_FC_ID_ASK     = 0x42, /* uct_dcx_fc_request_t with @rndv */
    UCT_DCX_FC_ID_LOST    = 0x43  /* uct_dcx_fc_grant_t with @rndv */
};


/* A grant, or the state of an endpoint in a request; or the id of a rendezvous,
 * with zeros */
typedef struct uct_dcx_fc_grant {
    union {
        struct {
            __be16 entry; /* index of the endpoint's entry, where it
                           * requests */
            __be16 seq;   /* number of the request, to drop a late grant */
        };
        __be32 rndv;
    };
    __be16 credits; /* request: credits left; grant: credits to add */
    __be16 extra;   /* credits beyond the base. Request: returned; grant: part
                     * of @credits */
    __be16 epoch;   /* epoch in which @extra was granted */
} UCS_S_PACKED uct_dcx_fc_grant_t;


/* A request; it contains the address of the sender, which a receive completion
 * does not have. */
typedef struct uct_dcx_fc_request {
    uct_dcx_fc_grant_t state;
    uct_dcx_target_t origin;
} UCS_S_PACKED uct_dcx_fc_request_t;


/* The origin, padded to whole segments of a WQE */
typedef union uct_dcx_fc_origin {
    uct_dcx_target_t fields;
    uint8_t segs[48];
} uct_dcx_fc_origin_t;

static_assert(sizeof(uct_dcx_fc_origin_t) - sizeof(uct_dcx_target_t) <
                  UCT_DCX_WQE_SEG,
              "no segment more than the target takes");


/* Callbacks for endpoints of answers: the room above creates all endpoints. */
typedef struct uct_dcx_fc_ep_ops {
    ucs_status_t (*init)(uct_dcx_ep_t *ep, uct_dcx_queues_t *queues);
    void (*cleanup)(uct_dcx_ep_t *ep);
} uct_dcx_fc_ep_ops_t;


/* Flow control of an interface */
struct uct_dcx_fc {
    uct_dcx_queues_t *queues;
    int enabled;

    /* sender */
    uct_dcx_fc_table_t table;
    double thresh;       /* fraction of a grant that is
                          * reserve */
    ucs_time_t interval; /* between ticks */
    ucs_time_t next_tick;
    unsigned num_due;           /* entries not checked since the last
                                 * tick */
    unsigned next_due;          /* first of these entries */
    uct_dcx_fc_origin_t origin; /* address in our own requests */

    /* receiver */
    uct_dcx_credit_bank_t bank;
    const uct_dcx_fc_ep_ops_t *ep_ops;
    ucs_mpool_t answers;     /* uct_dcx_fc_answer_t */
    ucs_list_link_t waiting; /* answers that wait for their turn */
    ucs_list_link_t sending; /* answers that are posted, or wait for an
                              * initiator */
    ucs_list_link_t late;    /* answers that have failed, and are sent again */
    struct uct_dcx_fc_answer *retried; /* the one of these that is in
                                        * @sending, or NULL */
    ucs_time_t next_retry;             /* when the next of these is due */
    ucs_time_t pause;                  /* before that, from the begin of the
                                        * previous one */
    unsigned num_sending;              /* length of @sending */
    unsigned max_sending;              /* 0: stopped */
    ucs_time_t patience;               /* until an answer is canceled */
};


/* Opens flow control; @queues are open. Logs errors. */
ucs_status_t uct_dcx_fc_init(uct_dcx_fc_t *fc, uct_dcx_queues_t *queues,
                             const uct_dcx_fc_ep_ops_t *ep_ops,
                             const uct_dcx_iface_config_t *config);

/* Stops posting, and drops answers that are not posted. Called before the
 * initiators are destroyed. */
void uct_dcx_fc_stop(uct_dcx_fc_t *fc);

/* Frees everything; called after the initiators are destroyed. */
void uct_dcx_fc_cleanup(uct_dcx_fc_t *fc);

/* Runs UCT_DCX_TODO_FC and UCT_DCX_TODO_RNDV: reminds the receivers of blocked
 * endpoints, and asks those of rendezvous, when it is time. */
void uct_dcx_fc_progress(uct_dcx_fc_t *fc);

/* Returns 1 if any endpoint is blocked, a rendezvous waits for a FIN, or an
 * answer is under way. Stores the time until progress is needed in @left; 0: it
 * is due, or nothing waits. */
int uct_dcx_fc_time_left(const uct_dcx_fc_t *fc, ucs_time_t *left);

/* Returns non-zero if a blocked endpoint has pending requests. */
int uct_dcx_fc_has_pending(const uct_dcx_fc_t *fc);

/* Handles a message of the transport of @length bytes. Drops any other message
 * that has no id of UCT, or is shorter than its header, and logs an error. */
void uct_dcx_fc_receive(uct_dcx_fc_t *fc, const uct_dcx_am_hdr_t *hdr,
                        size_t length);

/* uct_dcx_fc_get() for an endpoint without credits */
uct_dcx_dci_t *uct_dcx_fc_get_dci(uct_dcx_ep_t *ep);


/* Sets the initial credits of a new endpoint. */
static inline void uct_dcx_fc_init_ep(uct_dcx_ep_t *ep, uint16_t credits)
{
    ep->credits  = credits;
    ep->fc_entry = UCT_DCX_EP_NO_FC_ENTRY;
}


/* Returns the initiator on which @ep may post an active message, see
 * uct_dcx_tx_get(). Returns NULL if none is available, or the endpoint has no
 * credits. */
static UCS_F_ALWAYS_INLINE uct_dcx_dci_t *
uct_dcx_fc_get(uct_dcx_queues_t *queues, uct_dcx_ep_t *ep)
{
    return ucs_likely(ep->credits > 0) ? uct_dcx_tx_get(&queues->dci, ep) :
                                         uct_dcx_fc_get_dci(ep);
}


/* Ends the post of an active message: takes a credit. */
static UCS_F_ALWAYS_INLINE void uct_dcx_fc_post(const uct_dcx_wqe_t *wqe,
                                                uct_dcx_dci_t *dci,
                                                uct_dcx_ep_t *ep,
                                                const uct_dcx_post_t *tx)
{
    uct_dcx_post_end(wqe, dci, ep, tx);
    ep->credits--;
}


/* Returns the properties to compare a peer's address with. */
static inline uct_dcx_addr_own_t uct_dcx_fc_addr_own(const uct_dcx_fc_t *fc)
{
    const uct_dcx_addr_own_t own = {
        .flags    = fc->enabled ? UCT_DCX_ADDR_FLAG_FC : 0,
        .am_short = sizeof(uct_dcx_am_hdr_t) + fc->queues->limits.am_short,
    };

    return own;
}

#endif
