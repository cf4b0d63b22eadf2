/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Tag matching by the device: buffers that the user has posted with a tag are
 * appended to a list of the receive queue, which is an XRQ then. The device
 * puts a message that matches right there and fetches the data of a rendezvous
 * by itself; what matches none comes by a receive buffer like an active
 * message. Everything belongs to the thread that progresses the interface.
 * Drawing: docs/tag-matching.md. How the list works: rdma-core,
 * Documentation/tag_matching.md.
 *
 * The device is told of buffers by the command queue of the list: a QP that is
 * attached to the XRQ and connected to itself. Each operation takes one WQEBB;
 * its completion, if it requests one, is one of the receive CQ, and so is the
 * end of the queue in an error: its number is in sop_drop_qpn then.
 *
 * tm/ is the room of that: dcx_tm_list.c posts buffers and ends them,
 * dcx_tm_strided.c posts those that are not one piece of memory, dcx_tm_unexp.c
 * has the messages that match none, dcx_tm_rndv.c the rendezvous of the sending
 * side.
 * Called by UCT (posting), by tagged operations (ep/) and by the delivery of
 * messages (iface/).
 * It must not know how a message is sent, nor whose a receive buffer is.
 */
#ifndef UCT_DCX_TM_H
#define UCT_DCX_TM_H

#include "dcx_tm_rndv.h"
#include "uct/dcx/dev/dcx_devx_qp.h"
#include "uct/dcx/queue/dcx_queues.h"
#include "uct/dcx/strided/dcx_key.h"

#include <infiniband/tm_types.h>


enum {
    UCT_DCX_TM_NONE         = UINT16_MAX, /* index of no entry */

    /* headers of a request for a rendezvous, and how much of the user's header
     * the first of them takes */
    UCT_DCX_TM_RNDV_HDR     = sizeof(struct ibv_tmh) + sizeof(struct ibv_rvh) +
                              sizeof(struct prm_ravh),
    UCT_DCX_TM_RNDV_IN_TMH  = 2,

    /* the device compares counts of 16 bits: it is told long before it could
     * take a late one for an early one */
    UCT_DCX_TM_MAX_UNSYNCED = 1 << 13
};


/* A tagged buffer of the device's list. It is in use until all that says
 * something of it has come: its match or its removal, and the end of each
 * REMOVE. */
typedef struct uct_dcx_tm_entry {
    uct_tag_context_t *ctx;        /* NULL: nobody is told */
    void              *buffer;     /* where its first byte is */
    uct_tag_t         tag;         /* as posted, then that of the message */
    uint32_t          length;      /* as posted */
    __be32            app_ctx;     /* in the header of the message */
    uint16_t          bucket;      /* of its buffer, while there is 'ctx' */
    uint16_t          chain;       /* next one of that */
    uint8_t           num_awaited; /* 0: free */
    uint8_t           is_matched;
} uct_dcx_tm_entry_t;


/* dcx_tm_strided.c */
typedef struct uct_dcx_tm_strided uct_dcx_tm_strided_t;


/* A tagged buffer to be posted */
typedef struct uct_dcx_tm_post {
    uct_tag_t tag;
    uct_tag_t mask;
    void      *buffer; /* where its first byte is */
    uint64_t  addr;    /* ... in the space of the key */
    uint32_t  lkey;    /* MLX5_INVALID_LKEY without bytes: of memory it would be
                        * 2 GiB */
    uint32_t  length;
} uct_dcx_tm_post_t;


struct uct_dcx_tm {
    uct_dcx_queues_t         *queues;
    uct_dcx_devx_qp_t        cmd;
    uct_dcx_tm_entry_t       *entries;
    uct_dcx_tm_strided_t     *strided;     /* ... beside them; NULL: none yet */
    uint16_t                 next;         /* where the device puts what is
                                            * appended next */
    uint16_t                 num_free;
    uint16_t                 num_entries;  /* 'next' is never free */
    uint16_t                 unexpected;   /* messages that were delivered */
    uint16_t                 synced;       /* ... when the device was told */
    uint16_t                 bucket_mask;
    uint16_t                 cqe_mask;     /* of WQEBBs, those where it is 0
                                            * complete */
    uint16_t                 awaited_head;
    uint16_t                 awaited_tail;
    uint16_t                 *free;        /* a stack */
    uint16_t                 *buckets;     /* entries by their buffers */
    uint16_t                 *ops;         /* the entry of each WQEBB of the
                                            * ring, or UCT_DCX_TM_NONE */
    uint16_t                 *awaited;     /* WQEBBs whose operations complete,
                                            * in turn */
    uct_dcx_tm_rndv_t        rndv;
    uct_tag_unexp_eager_cb_t eager_cb;
    void                     *eager_arg;
    uct_tag_unexp_rndv_cb_t  rndv_cb;
    void                     *rndv_arg;
    uct_recv_desc_t          release;      /* takes back the buffer of an
                                            * unexpected message */
};


/* Returns non-zero if a user who gave these parameters may post tags. */
int uct_dcx_tm_is_wanted(const uct_iface_params_t *params);

/* 'queues' are open, and the receive queue is an XRQ with a list of 'num_tags'
 * buffers and one more. Errors are logged. */
ucs_status_t
uct_dcx_tm_init(uct_dcx_tm_t *tm, uct_dcx_queues_t *queues, unsigned num_tags,
                const uct_iface_params_t *params);

/* No completion comes any more. */
void uct_dcx_tm_cleanup(uct_dcx_tm_t *tm);


/* UCT's operations: see uct_iface_tag_recv_zcopy(), ..._cancel() */
ucs_status_t
uct_dcx_tm_recv_zcopy(uct_iface_h tl_iface, uct_tag_t tag, uct_tag_t tag_mask,
                      const uct_iov_t *iov, size_t iovcnt,
                      uct_tag_context_t *ctx);
ucs_status_t uct_dcx_tm_recv_cancel(uct_iface_h tl_iface,
                                    uct_tag_context_t *ctx, int force);

/* The same for an iov that is not plain (dcx_iov.h), or in memory of a layout */
__typeof__(uct_dcx_tm_recv_zcopy)
        uct_dcx_tm_strided_recv_zcopy __attribute__((cold));

/* The user's context of a buffer that was posted by it; NULL of one that was not,
 * or is muted */
uct_tag_context_t *
uct_dcx_tm_strided_ctx(const uct_dcx_tm_t *tm, uint16_t index);

/* ... and the user hears nothing more of it: see uct_dcx_tm_detach(). */
void uct_dcx_tm_strided_mute(uct_dcx_tm_t *tm, uint16_t index);

/* Copies the first bytes of a posted buffer, whatever it is made of. Returns
 * UCS_ERR_CANCELED if it is the user's again, as he has canceled by force. */
ucs_status_t uct_dcx_tm_strided_read(const uct_dcx_tm_t *tm, uint16_t index,
                                     void *dest, size_t length);

/* The list is no more. */
void uct_dcx_tm_strided_cleanup(uct_dcx_tm_t *tm);


/* A completion of the list: a match, or an operation. */
void uct_dcx_tm_list_complete(uct_dcx_tm_t *tm, struct mlx5_cqe64 *cqe);

/* A message of 'length' bytes at 'tmh' that has matched nothing, with its
 * completion. 'flags' are those of a receive callback; returns UCS_INPROGRESS
 * if the user keeps the buffer, as they allow. */
ucs_status_t
uct_dcx_tm_unexpected(uct_dcx_tm_t *tm, struct ibv_tmh *tmh, size_t length,
                      const struct mlx5_cqe64 *cqe, unsigned flags);

/* A request for a rendezvous, at 'tmh', that the device does not fetch: the
 * user is to. */
ucs_status_t
uct_dcx_tm_unexpected_rndv(uct_dcx_tm_t *tm, struct ibv_tmh *tmh,
                           size_t length);


/* An operation of the command queue has failed, and all that follow do: nothing
 * is posted or removed any more. What was not appended ends with
 * UCS_ERR_IO_ERROR. */
void uct_dcx_tm_failed(uct_dcx_tm_t *tm, const struct mlx5_cqe64 *cqe);

/* Messages were delivered that matched nothing. Until the device is told, it
 * leaves what was posted since they arrived unmatched: so that it is, if there
 * is anything posted. */
void uct_dcx_tm_sync(uct_dcx_tm_t *tm);


static UCS_F_ALWAYS_INLINE int
uct_dcx_tm_has_imm(const struct mlx5_cqe64 *cqe)
{
    return mlx5dv_get_cqe_opcode((struct mlx5_cqe64*)cqe) ==
           MLX5_CQE_RESP_SEND_IMM;
}


/* The user's immediate of a message; 0 of one that was sent without. */
static UCS_F_ALWAYS_INLINE uint64_t
uct_dcx_tm_imm(const struct mlx5_cqe64 *cqe, __be32 app_ctx)
{
    return uct_dcx_tm_has_imm(cqe) ? ((uint64_t)be32toh(app_ctx) << 32) |
                                     be32toh(cqe->imm_inval_pkey) : 0;
}


/* An immediate of 0 is a request of a rendezvous that the user carries out. */
static UCS_F_ALWAYS_INLINE int
uct_dcx_tm_is_request(const struct mlx5_cqe64 *cqe, uint64_t imm)
{
    return (imm == 0) && uct_dcx_tm_has_imm(cqe);
}

#endif
