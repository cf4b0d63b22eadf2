/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Flow control of active messages. A receiver has one queue of buffers for all
 * of its peers; a message that finds it empty is refused by the device and sent
 * again later (RNR). So each endpoint has credits, begins with a few, and asks
 * the receiver for more before they are used up; without any, active messages
 * wait. Asking and granting are messages of the transport's own. dcx_fc.c and
 * dcx_fc_ask.c are the sender's side, dcx_fc_grant.c the receiver's,
 * dcx_credit.h the arithmetic. Everything belongs to the thread that progresses
 * the interface. Drawing and guarantee: docs/dcx.md, "Flow control".
 */
#ifndef UCT_DCX_FC_H
#define UCT_DCX_FC_H

#include "dcx_config.h"
#include "dcx_credit.h"
#include "dcx_port.h"

#include <ucs/datastruct/list.h>
#include <ucs/datastruct/mpool.h>
#include <ucs/time/time_def.h>

typedef struct uct_dcx_dci    uct_dcx_dci_t;
typedef struct uct_dcx_ep     uct_dcx_ep_t;
typedef struct uct_dcx_iface  uct_dcx_iface_t;
typedef struct uct_dcx_am_hdr uct_dcx_am_hdr_t;


/* Ids of the transport's own messages, beyond those of UCT */
enum {
    UCT_DCX_FC_ID_REQUEST = 0x40, /* uct_dcx_fc_request_t */
    UCT_DCX_FC_ID_GRANT   = 0x41  /* uct_dcx_fc_grant_t */
};


/* Names a request: the receiver gives it back with the grant. */
typedef struct uct_dcx_fc_token {
    __be32 seq;
    __be16 index; /* in the table of requests */
} UCS_S_PACKED uct_dcx_fc_token_t;


/* Where a grant goes to: a receiver does not know who sends. */
typedef struct uct_dcx_fc_origin {
    __be64             dc_key;
    uint8_t            dctn[3];
    uct_dcx_dev_addr_t dev_addr;
} UCS_S_PACKED uct_dcx_fc_origin_t;


/* ... in whole segments of a WQE */
typedef union uct_dcx_fc_own {
    uct_dcx_fc_origin_t fields;
    uint8_t             segs[48];
} uct_dcx_fc_own_t;

static_assert(sizeof(uct_dcx_fc_own_t) - sizeof(uct_dcx_fc_origin_t) <
              UCT_DCX_WQE_SEG, "and no more of them than it takes");


typedef struct uct_dcx_fc_request {
    uct_dcx_fc_token_t  token;
    __be16              want;
    __be16              who;  /* tells endpoints of one origin apart, mostly */
    uct_dcx_fc_origin_t origin;
} UCS_S_PACKED uct_dcx_fc_request_t;


typedef struct uct_dcx_fc_grant {
    uct_dcx_fc_token_t token;
    __be16             credits;
} UCS_S_PACKED uct_dcx_fc_grant_t;


/* A request on the way. */
typedef struct uct_dcx_fc_ask {
    uct_dcx_ep_t *ep;   /* NULL: this entry is free */
    uint32_t     seq;
    uint16_t     next;  /* free entry behind this one */
    uint16_t     ticks; /* of the timer, since the endpoint is blocked */
} uct_dcx_fc_ask_t;


/* The part iface->fc */
typedef struct uct_dcx_fc {
    int                    enabled;
    uct_dcx_credit_sizes_t sizes;

    /* sender */
    uct_dcx_fc_ask_t       *asks;
    unsigned               num_asks;    /* length of the table */
    unsigned               max_asks;    /* ... at most */
    uint16_t               free_ask;    /* first free entry */
    uint32_t               seq;         /* of the next request */
    unsigned               num_blocked; /* endpoints without credits */
    unsigned               num_unasked; /* ... for whose request there was no
                                         * entry */
    ucs_time_t             interval;
    ucs_time_t             next_tick;
    unsigned               num_due;     /* entries that the last tick has still
                                         * to look at */
    unsigned               next_due;    /* ... and the first of them */
    int                    is_late_due; /* it has also to ask late */

    /* receiver */
    uct_dcx_credit_book_t  book;
    uct_dcx_credit_crowd_t crowd;
    ucs_mpool_t            answers;     /* uct_dcx_fc_answer_t */
    ucs_list_link_t        idle;        /* those that are nobody's now */
    ucs_list_link_t        held;        /* until there is room in the book */
    uct_dcx_credit_quiet_t quiet;       /* while there are such */
    ucs_time_t             patience;    /* until promised ones are given up */
    ucs_list_link_t        lined;       /* wait for an initiator */

    uct_dcx_fc_own_t       origin;      /* of our own requests */
} uct_dcx_fc_t;


/* Needs the other parts of the interface. Errors are logged. */
ucs_status_t uct_dcx_fc_init(uct_dcx_iface_t *iface,
                             const uct_dcx_iface_config_t *config);

/* No more of it is posted: before the initiators are destroyed. */
void uct_dcx_fc_stop(uct_dcx_iface_t *iface);

/* ... and after that */
void uct_dcx_fc_cleanup(uct_dcx_iface_t *iface);

/* The endpoint begins with what the address of its peer says. */
void uct_dcx_fc_ep_init(uct_dcx_ep_t *ep, unsigned initial);

/* The endpoint goes or has failed: a grant that comes for it is dropped. */
void uct_dcx_fc_ep_cleanup(uct_dcx_iface_t *iface, uct_dcx_ep_t *ep);

/* What progress has to see to: UCT_DCX_TODO_FC. */
void uct_dcx_fc_progress(uct_dcx_iface_t *iface);

/* Whether that would do more than look at the clock. */
static inline int uct_dcx_fc_is_ready(uct_dcx_fc_t *fc)
{
    return !ucs_list_is_empty(&fc->held);
}

/* Whether endpoints are blocked: they are to be reminded in so long a time. */
int uct_dcx_fc_time_left(const uct_dcx_fc_t *fc, ucs_time_t *left);

/* Whether an endpoint waits for a grant with requests of the user in line. */
int uct_dcx_fc_has_pending(uct_dcx_iface_t *iface);

/* A message that has no id of UCT, or is too short for one. */
void uct_dcx_fc_receive(uct_dcx_iface_t *iface, const uct_dcx_am_hdr_t *hdr,
                        size_t length);

/* No credit is left: nothing more is sent until a grant comes. */
void uct_dcx_fc_wait(uct_dcx_iface_t *iface, uct_dcx_ep_t *ep);

/* dcx_fc_ask.c */
void uct_dcx_fc_ask_init(uct_dcx_fc_t *fc);
void uct_dcx_fc_ask_cleanup(uct_dcx_fc_t *fc);

/* Asks for credits. Nothing is posted if there is no place for one more
 * request: it comes with the tick after the endpoint was blocked. */
void uct_dcx_fc_ask(uct_dcx_iface_t *iface, uct_dcx_ep_t *ep,
                    uct_dcx_dci_t *dci);

void uct_dcx_fc_block(uct_dcx_iface_t *iface, uct_dcx_ep_t *ep);

/* The endpoint neither waits nor has it asked any more. */
void uct_dcx_fc_unblock(uct_dcx_fc_t *fc, uct_dcx_ep_t *ep);

/* The receivers of all those who wait are to be reminded. */
void uct_dcx_fc_tick(uct_dcx_fc_t *fc);

/* Reminds of those for whom there is an initiator now; the next call goes on
 * with the others. */
void uct_dcx_fc_remind_due(uct_dcx_iface_t *iface);

/* Who asked; NULL if he is gone, or was answered before. */
static inline uct_dcx_ep_t *
uct_dcx_fc_find(const uct_dcx_fc_t *fc, const uct_dcx_fc_token_t *token)
{
    unsigned index = be16toh(token->index);

    return ((index < fc->num_asks) &&
            (fc->asks[index].seq == be32toh(token->seq))) ?
           fc->asks[index].ep : NULL;
}

/* dcx_fc_grant.c */
ucs_status_t uct_dcx_fc_grant_init(uct_dcx_iface_t *iface, double rnr_timeout);
void uct_dcx_fc_grant_stop(uct_dcx_iface_t *iface);
void uct_dcx_fc_grant_cleanup(uct_dcx_iface_t *iface);
void uct_dcx_fc_receive_request(uct_dcx_iface_t *iface,
                                const uct_dcx_fc_request_t *request);

/* Answers requests that were held back, if that is possible now. There are
 * some. */
void uct_dcx_fc_grant_held(uct_dcx_iface_t *iface);

#endif
