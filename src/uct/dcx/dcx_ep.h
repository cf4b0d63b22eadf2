/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * An endpoint: the way to one peer, and the queue of those who wait for it.
 * All that is connected is the address vector; queues are lent by the
 * interface while operations are outstanding. Used by the interface's thread.
 */
#ifndef UCT_DCX_EP_H
#define UCT_DCX_EP_H

#include "dcx_iface.h"


enum {
    /* the address vector has a second part: this is a uct_dcx_grh_ep_t */
    UCT_DCX_EP_FLAG_GRH         = UCS_BIT(0),

    /* it has no initiator any more, and its operations are refused with
     * 'error' */
    UCT_DCX_EP_FLAG_FAILED      = UCS_BIT(1),

    /* uct_ep_invalidate() came: while the endpoint had no initiator, or it has
     * a shared one and the mark is on the way */
    UCT_DCX_EP_FLAG_INVALIDATED = UCS_BIT(2),

    /* a request for credits is on the way: 'reserve' is its place in the
     * table of requests */
    UCT_DCX_EP_FLAG_FC_ASKED    = UCS_BIT(3),

    /* ... and there is no credit left: what is in line waits for a grant */
    UCT_DCX_EP_FLAG_FC_BLOCKED  = UCS_BIT(4),

    /* no error of it is news to the user */
    UCT_DCX_EP_FLAG_MUTED       = UCS_BIT(6),

    /* an operation was refused, and it was said why */
    UCT_DCX_EP_FLAG_REFUSED     = UCS_BIT(7),

    /* the peer's receive buffers are smaller than ours: this is a
     * uct_dcx_small_ep_t */
    UCT_DCX_EP_FLAG_SMALL       = UCS_BIT(8),

    /* not the user's: a grant goes out on it */
    UCT_DCX_EP_FLAG_GRANT       = UCS_BIT(9),

    /* its operations end with the error of a shared initiator (dcx_dci_lost.c),
     * only while that is being sorted out */
    UCT_DCX_EP_FLAG_LOST        = UCS_BIT(15)
};


struct uct_dcx_ep {
    uct_base_ep_t       super;
    ucs_arbiter_group_t pending;
    uct_dcx_av_t        av;
    uint16_t            dci;     /* or UCT_DCX_NO_DCI */
    uint16_t            flags;
    uint16_t            stream;  /* of a shared initiator, 0 if it has none */
    uint16_t            last;    /* first block of what it posted there last */
    union {
        uint16_t        credits; /* active messages until used_up() */
        uint16_t        left;    /* failed: shared initiator on which the last
                                  * of its operations may be, or none */
    };
    union {
        uint16_t        reserve; /* credits kept back until then */
        uint16_t        error;   /* failed: -ucs_status_t */
    };
    uint32_t            pid;     /* of the peer */
};

/* The endpoint of a peer whose packets need a global route header. */
typedef struct uct_dcx_grh_ep {
    uct_dcx_ep_t  super;
    uct_dcx_grh_t grh;
} uct_dcx_grh_ep_t;

/* The endpoint of a peer with smaller receive buffers than ours, with or
 * without a header. */
typedef struct uct_dcx_small_ep {
    uct_dcx_grh_ep_t super;
    uint32_t         am_limit; /* bytes of an active message */
} UCS_V_ALIGNED(16) uct_dcx_small_ep_t;

/* A job has an endpoint for each peer. With asserts UCX's arbiter group takes
 * 16 bytes more. */
#define UCT_DCX_EP_ASSERT_SIZE  (UCS_ENABLE_ASSERT * 16)
static_assert(sizeof(uct_dcx_ep_t) <= 48 + UCT_DCX_EP_ASSERT_SIZE,
              "endpoint without GRH");
static_assert(sizeof(uct_dcx_grh_ep_t) <= 80 + UCT_DCX_EP_ASSERT_SIZE,
              "endpoint with GRH");
static_assert((sizeof(uct_dcx_ep_t) % 16 == 0) &&
              (sizeof(uct_dcx_grh_ep_t) % 16 == 0), "uct_dcx_slab_init()");


/* Whether an address vector goes on with a global route header. */
static inline int uct_dcx_av_has_grh(const uct_dcx_av_t *av)
{
    return (av->dqp_dct & htobe32(MLX5_EXTENDED_UD_AV)) != 0;
}


static inline uct_dcx_iface_t *uct_dcx_ep_iface(const uct_dcx_ep_t *ep)
{
    return ucs_derived_of(ep->super.super.iface, uct_dcx_iface_t);
}


/* Initiator and flags side by side, so that one test tells whether there is
 * anything about the endpoint that most do not have. */
static UCS_F_ALWAYS_INLINE uint32_t uct_dcx_ep_state(const uct_dcx_ep_t *ep)
{
    return ((uint32_t)ep->flags << 16) | ep->dci;
}

enum {
    UCT_DCX_EP_STATE_NO_DCI = UCS_BIT(15), /* no other initiator has it */
    UCT_DCX_EP_STATE_ODD    = (UCT_DCX_EP_FLAG_GRH | UCT_DCX_EP_FLAG_FAILED |
                               UCT_DCX_EP_FLAG_INVALIDATED |
                               UCT_DCX_EP_FLAG_SMALL) << 16
};

static_assert(UCT_DCX_NO_DCI & UCT_DCX_EP_STATE_NO_DCI, "it is told by a bit");


/* Whether nothing of the endpoint is outstanding on its initiator. On a shared
 * one 'last' may be from before the counters went round: nothing of it begins
 * there then. */
static inline int
uct_dcx_ep_is_idle(const uct_dcx_ep_t *ep, const uct_dcx_dci_t *dci)
{
    if (!uct_dcx_dci_is_shared(dci)) {
        return uct_dcx_dci_is_idle(dci);
    }

    return !uct_dcx_dci_is_outstanding(dci, ep->last) ||
           (uct_dcx_dci_wqe_ep(dci, ep->last) != ep);
}


/* The initiator on which operations of the endpoint may be outstanding, or
 * UCT_DCX_NO_DCI. */
static inline uint16_t uct_dcx_ep_last_dci(const uct_dcx_ep_t *ep)
{
    return (ep->flags & UCT_DCX_EP_FLAG_FAILED) ? ep->left : ep->dci;
}


UCS_CLASS_DECLARE(uct_dcx_ep_t, uct_dcx_iface_t*, const uct_dcx_av_t*);
UCS_CLASS_DECLARE(uct_dcx_grh_ep_t, uct_dcx_iface_t*, const uct_dcx_av_t*,
                  const uct_dcx_grh_t*);
UCS_CLASS_DECLARE(uct_dcx_small_ep_t, uct_dcx_iface_t*, const uct_dcx_av_t*,
                  const uct_dcx_grh_t*, uint32_t);


/* The address vector to a peer that asked for something. Errors are logged. */
ucs_status_t
uct_dcx_ep_make_answer_av(uct_dcx_iface_t *iface,
                          const uct_dcx_fc_origin_t *target, uct_dcx_av_t *av,
                          uct_dcx_grh_t *grh);

/* Calls 'visit' for each endpoint of the user, of which it is not to destroy
 * any. */
void uct_dcx_ep_for_each(uct_dcx_iface_t *iface,
                         void (*visit)(void *ep, void *arg), void *arg);

/* Posts a write of no bytes: only a live peer answers it. */
void uct_dcx_ep_post_probe(uct_dcx_ep_t *ep, uct_dcx_dci_t *dci);


/* dcx_ep_fail.c: from now on operations are refused with 'status'. It has no
 * operations on an exclusive initiator. Returns whether the error handler has
 * to be called: not if it has failed before, or the user gave it up. */
int uct_dcx_ep_fail(uct_dcx_ep_t *ep, ucs_status_t status);

/* The error of a failed endpoint. The first time it is logged. */
ucs_status_t uct_dcx_ep_refuse(uct_dcx_ep_t *ep);

/* 'dci' was taken for an endpoint that has failed, or is to. NULL: it went back
 * to the pool, or is a shared one and cannot be posted on. */
uct_dcx_dci_t *
uct_dcx_ep_attach_odd(uct_dcx_iface_t *iface, uct_dcx_ep_t *ep,
                      uct_dcx_dci_t *dci);

/* A flush of 'ep' that waits for what is outstanding on 'dci'. */
ucs_status_t
uct_dcx_ep_flush_wait(uct_dcx_ep_t *ep, uct_dcx_dci_t *dci,
                      uct_completion_t *comp);

/* uct_ep_flush() with UCT_FLUSH_FLAG_CANCEL */
ucs_status_t uct_dcx_ep_flush_cancel(uct_dcx_ep_t *ep, uct_completion_t *comp);


/* Operations of UCT's tables; what they return is written in uct/api/uct.h. */
ucs_status_t uct_dcx_ep_create(const uct_ep_params_t *params, uct_ep_h *ep_p);
void uct_dcx_ep_destroy(uct_ep_h ep);
ucs_status_t
uct_dcx_ep_flush(uct_ep_h ep, unsigned flags, uct_completion_t *comp);
ucs_status_t uct_dcx_ep_fence(uct_ep_h ep, unsigned flags);
ucs_status_t
uct_dcx_ep_check(uct_ep_h ep, unsigned flags, uct_completion_t *comp);
ucs_status_t uct_dcx_ep_invalidate(uct_ep_h ep, unsigned flags);

ucs_status_t uct_dcx_ep_pending_add(uct_ep_h ep, uct_pending_req_t *req,
                                    unsigned flags);
void uct_dcx_ep_pending_purge(uct_ep_h ep, uct_pending_purge_callback_t cb,
                              void *arg);

ucs_status_t uct_dcx_ep_am_short(uct_ep_h ep, uint8_t id, uint64_t header,
                                 const void *payload, unsigned length);
ucs_status_t uct_dcx_ep_am_short_iov(uct_ep_h ep, uint8_t id,
                                     const uct_iov_t *iov, size_t iovcnt);
ssize_t uct_dcx_ep_am_bcopy(uct_ep_h ep, uint8_t id,
                            uct_pack_callback_t pack_cb, void *arg,
                            unsigned flags);
ucs_status_t
uct_dcx_ep_am_zcopy(uct_ep_h ep, uint8_t id, const void *header,
                    unsigned header_length, const uct_iov_t *iov,
                    size_t iovcnt, unsigned flags, uct_completion_t *comp);

ucs_status_t uct_dcx_ep_put_short(uct_ep_h ep, const void *buffer,
                                  unsigned length, uint64_t remote_addr,
                                  uct_rkey_t rkey);
ssize_t uct_dcx_ep_put_bcopy(uct_ep_h ep, uct_pack_callback_t pack_cb,
                             void *arg, uint64_t remote_addr, uct_rkey_t rkey);
ucs_status_t uct_dcx_ep_put_zcopy(uct_ep_h ep, const uct_iov_t *iov,
                                  size_t iovcnt, uint64_t remote_addr,
                                  uct_rkey_t rkey, uct_completion_t *comp);
ucs_status_t
uct_dcx_ep_get_bcopy(uct_ep_h ep, uct_unpack_callback_t unpack_cb, void *arg,
                     size_t length, uint64_t remote_addr, uct_rkey_t rkey,
                     uct_completion_t *comp);
ucs_status_t uct_dcx_ep_get_zcopy(uct_ep_h ep, const uct_iov_t *iov,
                                  size_t iovcnt, uint64_t remote_addr,
                                  uct_rkey_t rkey, uct_completion_t *comp);

ucs_status_t
uct_dcx_ep_atomic_cswap64(uct_ep_h ep, uint64_t compare, uint64_t swap,
                          uint64_t remote_addr, uct_rkey_t rkey,
                          uint64_t *result, uct_completion_t *comp);
ucs_status_t
uct_dcx_ep_atomic_cswap32(uct_ep_h ep, uint32_t compare, uint32_t swap,
                          uint64_t remote_addr, uct_rkey_t rkey,
                          uint32_t *result, uct_completion_t *comp);
ucs_status_t
uct_dcx_ep_atomic64_post(uct_ep_h ep, unsigned opcode, uint64_t value,
                         uint64_t remote_addr, uct_rkey_t rkey);
ucs_status_t
uct_dcx_ep_atomic32_post(uct_ep_h ep, unsigned opcode, uint32_t value,
                         uint64_t remote_addr, uct_rkey_t rkey);
ucs_status_t
uct_dcx_ep_atomic64_fetch(uct_ep_h ep, uct_atomic_op_t opcode, uint64_t value,
                          uint64_t *result, uint64_t remote_addr,
                          uct_rkey_t rkey, uct_completion_t *comp);
ucs_status_t
uct_dcx_ep_atomic32_fetch(uct_ep_h ep, uct_atomic_op_t opcode, uint32_t value,
                          uint32_t *result, uint64_t remote_addr,
                          uct_rkey_t rkey, uct_completion_t *comp);

/* Which atomics the device does, as UCT announces them. */
void uct_dcx_atomic_query(const uct_dcx_device_t *dev, uct_iface_attr_t *attr);

#endif
