/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Tag matching by the device: buffers that the user has posted with a tag are
 * appended to a list of the receive queue, which is an XRQ then. The device
 * writes a matching message directly to its buffer, and fetches the data of a
 * rendezvous by itself. A message that matches none uses a receive buffer like
 * an active message. Everything belongs to the thread that progresses the
 * interface. Diagram: docs/tag-matching.md. Description of the list: rdma-core,
 * Documentation/tag_matching.md.
 *
 * Buffers are appended and removed by operations of the command queue: a QP
 * that is attached to the XRQ and connected to itself. Each operation takes one
 * WQEBB. Its completion arrives in the receive CQ; that of an error has the QP
 * number in sop_drop_qpn.
 *
 * dcx_tm_list.c posts buffers and completes them, dcx_tm_strided.c posts
 * buffers that are not one piece of memory, dcx_tm_unexp.h has the messages
 * that match none, dcx_tm_rndv.c the rendezvous of the sending side. Called by
 * UCT (posting), by tagged operations (ep/) and by the delivery of messages
 * (iface/). This room must not know how a message is sent, nor the owner of a
 * receive buffer.
 */
#ifndef UCT_DCX_TM_H
#define UCT_DCX_TM_H

#include "dcx_tm_rndv.h"
#include "uct/dcx/dev/dcx_devx_qp.h"
#include "uct/dcx/queue/dcx_queues.h"
#include "uct/dcx/strided/dcx_key.h"

#include <infiniband/tm_types.h>


enum {
    UCT_DCX_TM_NONE = UINT16_MAX, /* index of no entry */

    /* bytes of the headers of a rendezvous request, and of the user's header
     * that fit in the first of them */
    UCT_DCX_TM_RNDV_HDR = sizeof(struct ibv_tmh) + sizeof(struct ibv_rvh) +
                          sizeof(struct prm_ravh),
    UCT_DCX_TM_RNDV_IN_TMH = 2,

    /* failed rendezvous that are remembered; a power of two */
    UCT_DCX_TM_MAX_LOST = 4096,

    /* the device compares counts of 16 bits: it gets the count long before it
     * could confuse a late one with an early one */
    UCT_DCX_TM_MAX_UNSYNCED = 1 << 13
};


/* A tagged buffer of the device's list. It is in use until all its completions
 * have arrived: its match or its removal, and the end of each REMOVE. */
typedef struct uct_dcx_tm_entry {
    uct_tag_context_t *ctx; /* NULL: no callbacks */
    void *buffer;           /* address of its first byte */
    uct_tag_t tag;          /* as posted, then that of the message */
    uint32_t length;        /* as posted */
    __be32 app_ctx;         /* in the header of the message */
    uint16_t bucket;        /* hash bucket of @buffer, while @ctx is
                             * set */
    uint16_t chain;         /* next entry of the bucket */
    uint8_t num_awaited;    /* completions to come; 0: free */
    uint8_t is_matched;
} uct_dcx_tm_entry_t;


/* dcx_tm_strided.c */
typedef struct uct_dcx_tm_strided uct_dcx_tm_strided_t;


/* A tagged buffer to be posted */
typedef struct uct_dcx_tm_post {
    uct_tag_t tag;
    uct_tag_t mask;
    void *buffer;  /* address of its first byte */
    uint64_t addr; /* address in the space of the key */
    uint32_t lkey; /* MLX5_INVALID_LKEY without bytes: a key of memory would
                    * mean 2 GiB */
    uint32_t length;
} uct_dcx_tm_post_t;


struct uct_dcx_tm {
    uct_dcx_queues_t *queues;
    uct_dcx_devx_qp_t cmd;
    uct_dcx_tm_entry_t *entries;
    uct_dcx_tm_strided_t *strided; /* an element for each entry; NULL:
                                    * none yet */
    uint16_t next;                 /* entry for the next buffer that is
                                    * appended */
    uint16_t num_free;
    uint16_t num_entries; /* @next is never free */
    uint16_t unexpected;  /* unexpected messages that were
                           * delivered */
    uint16_t synced;      /* value of @unexpected that the
                           * device knows */
    uint16_t bucket_mask;
    uint16_t cqe_mask; /* an operation requests a completion
                        * if these bits of its index are
                        * 0 */
    uint16_t awaited_head;
    uint16_t awaited_tail;
    int is_syncing;        /* uct_dcx_tm_sync() awaits a completion */
    unsigned max_unsynced; /* count of unexpected messages of which the
                            * device is told: 1, or
                            * UCT_DCX_TM_MAX_UNSYNCED if it matches all
                            * that is posted */
    uint16_t *free;        /* a stack */
    uint16_t *buckets;     /* entries by their buffers */
    uint16_t *ops;         /* the entry of each WQEBB of the
                        * ring, or UCT_DCX_TM_NONE */
    uint16_t *awaited;     /* WQEBBs whose operations request a
                        * completion, in order */
    uct_dcx_tm_rndv_t rndv;
    __be32 *lost;      /* ids of peers' rendezvous whose data was
                        * not fetched, the last of them */
    uint32_t num_lost; /* counts all */
    uct_tag_unexp_eager_cb_t eager_cb;
    void *eager_arg;
    uct_tag_unexp_rndv_cb_t rndv_cb;
    void *rndv_arg;
    uct_recv_desc_t release; /* releases the buffer of an
                              * unexpected message */
};


/* Returns non-zero if a user with these parameters may post tags. */
int uct_dcx_tm_is_wanted(const uct_iface_params_t *params);

/* Opens tag matching. @queues are open, and the receive queue is an XRQ with a
 * list of @num_tags + 1 buffers. Logs errors, except UCS_ERR_NO_MEMORY. */
ucs_status_t uct_dcx_tm_init(uct_dcx_tm_t *tm, uct_dcx_queues_t *queues,
                             unsigned num_tags,
                             const uct_iface_params_t *params);

/* Closes tag matching, and ends operations that are still open with
 * UCS_ERR_CANCELED; no completion arrives any longer. */
void uct_dcx_tm_cleanup(uct_dcx_tm_t *tm);


/* Operations of UCT: see uct_iface_tag_recv_zcopy(), ..._cancel() */
ucs_status_t uct_dcx_tm_recv_zcopy(uct_iface_h tl_iface, uct_tag_t tag,
                                   uct_tag_t tag_mask, const uct_iov_t *iov,
                                   size_t iovcnt, uct_tag_context_t *ctx);
ucs_status_t uct_dcx_tm_recv_cancel(uct_iface_h tl_iface,
                                    uct_tag_context_t *ctx, int force);

/* uct_dcx_tm_recv_zcopy() of an iov that is not plain (dcx_iov.h), or in memory
 * of a layout */
__typeof__(uct_dcx_tm_recv_zcopy) uct_dcx_tm_strided_recv_zcopy
    __attribute__((cold));

/* Returns the user's context of a buffer that dcx_tm_strided.c posted; NULL for
 * other buffers, and after uct_dcx_tm_strided_mute(). */
uct_tag_context_t *uct_dcx_tm_strided_ctx(const uct_dcx_tm_t *tm,
                                          uint16_t index);

/* Stops all callbacks to the user for a buffer that dcx_tm_strided.c posted:
 * see uct_dcx_tm_detach(). */
void uct_dcx_tm_strided_mute(uct_dcx_tm_t *tm, uint16_t index);

/* Copies the first @length bytes of a posted buffer, of any form. Returns
 * UCS_ERR_CANCELED if the user has canceled it by force, and owns it again, or
 * as uct_dcx_keys_read(). */
ucs_status_t uct_dcx_tm_strided_read(const uct_dcx_tm_t *tm, uint16_t index,
                                     void *dest, size_t length);

/* Releases the keys and frees the state of all entries; the list is
 * destroyed. */
void uct_dcx_tm_strided_cleanup(uct_dcx_tm_t *tm);


/* Handles a completion of the list: a match, or an operation. */
void uct_dcx_tm_list_complete(uct_dcx_tm_t *tm, struct mlx5_cqe64 *cqe);

/* Returns non-zero if the device could not fetch the data of a peer's
 * rendezvous. */
int uct_dcx_tm_is_lost(const uct_dcx_tm_t *tm, __be32 id);

/* Delivers a rendezvous request of @length bytes at @tmh, whose data the device
 * does not fetch: the user has to. Drops a malformed one. */
ucs_status_t uct_dcx_tm_unexpected_rndv(uct_dcx_tm_t *tm, struct ibv_tmh *tmh,
                                        size_t length);


/* Ends all posted buffers with UCS_ERR_IO_ERROR, those that are being canceled
 * with UCS_ERR_CANCELED: the device has failed. No others can be posted. */
void uct_dcx_tm_close(uct_dcx_tm_t *tm);

/* Handles the failure of an operation of the command queue, after which all
 * others fail: nothing can be posted or removed any longer. A buffer that was
 * not appended ends with UCS_ERR_IO_ERROR, one that was not removed with
 * UCS_ERR_CANCELED. */
void uct_dcx_tm_failed(uct_dcx_tm_t *tm, const struct mlx5_cqe64 *cqe);

/* Tells the device the number of delivered unexpected messages, if any buffer
 * is posted or UCT_DCX_TM_MAX_UNSYNCED is reached, and the command queue has
 * room. Waits for the completion before it does so again. */
void uct_dcx_tm_sync(uct_dcx_tm_t *tm);


/* Returns non-zero if the device may have to be told the number of delivered
 * unexpected messages. Before it is told, the device does not match buffers
 * that were posted after these messages arrived. */
static UCS_F_ALWAYS_INLINE int uct_dcx_tm_is_behind(const uct_dcx_tm_t *tm)
{
    return (uint16_t)(tm->unexpected - tm->synced) >= tm->max_unsynced;
}


static UCS_F_ALWAYS_INLINE int uct_dcx_tm_has_imm(const struct mlx5_cqe64 *cqe)
{
    return mlx5dv_get_cqe_opcode((struct mlx5_cqe64 *)cqe) ==
           MLX5_CQE_RESP_SEND_IMM;
}


/* Returns the user's immediate of a message; 0 for a message without one. */
static UCS_F_ALWAYS_INLINE uint64_t uct_dcx_tm_imm(const struct mlx5_cqe64 *cqe,
                                                   __be32 app_ctx)
{
    return uct_dcx_tm_has_imm(cqe) ? ((uint64_t)be32toh(app_ctx) << 32) |
                                         be32toh(cqe->imm_inval_pkey) :
                                     0;
}


/* Returns non-zero for a request of a rendezvous that the user carries out: its
 * immediate is 0. */
static UCS_F_ALWAYS_INLINE int
uct_dcx_tm_is_request(const struct mlx5_cqe64 *cqe, uint64_t imm)
{
    return (imm == 0) && uct_dcx_tm_has_imm(cqe);
}

#endif
