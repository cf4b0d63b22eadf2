/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The receiving half of an interface: the DC target that all peers address,
 * the shared receive queue behind it, the buffers, and the delivery of active
 * messages. Everything belongs to the thread that progresses the interface.
 */
#ifndef UCT_DCX_RX_H
#define UCT_DCX_RX_H

#include "dcx_config.h"
#include "dcx_cq.h"
#include "dcx_port.h"

#include <ucs/datastruct/mpool.h>

typedef struct uct_dcx_iface uct_dcx_iface_t;


/* What precedes each active message on the wire. These are the first bytes of
 * a tag matching header (struct ibv_tmh): a device that matches tags leaves
 * a message of this opcode alone. */
typedef struct uct_dcx_am_hdr {
    uint8_t opcode; /* IBV_TMH_NO_TAG */
    uint8_t am_id;
} UCS_S_PACKED uct_dcx_am_hdr_t;


/* Head of a receive buffer. Behind it, at iface->rx.payload_offset, lies the
 * payload of the message, and right before that its uct_dcx_am_hdr_t. */
typedef struct uct_dcx_rx_desc {
    uint32_t lkey;
} uct_dcx_rx_desc_t;


/* One entry of the SRQ: the device follows the chain of next_wqe_index. */
typedef struct uct_dcx_srq_wqe {
    struct mlx5_wqe_srq_next_seg next;
    struct mlx5_wqe_data_seg     data;
} uct_dcx_srq_wqe_t;

static_assert(sizeof(uct_dcx_srq_wqe_t) == 32, "the stride of libmlx5's SRQ");


/* The part iface->rx */
typedef struct uct_dcx_rx {
    uct_dcx_srq_wqe_t  *wqes;
    uct_dcx_am_hdr_t   **hdrs;    /* in the buffer of each entry, NULL if it
                                   * has none */
    volatile __be32    *dbrec;
    uint16_t           head;      /* next entry to post */
    uint16_t           tail;      /* end of the chain, never posted */
    uint16_t           counter;   /* entries posted since the beginning */
    int                excess;    /* entries from head to before tail, over
                                   * 'batch' */
    unsigned           missing;   /* entries without a buffer */
    int                batch;     /* post when so many are free */
    unsigned           max_poll;  /* messages of one call of progress */
    unsigned           length;    /* entries in the ring */
    unsigned           payload_offset;
    unsigned           headroom;  /* of the user, right before the payload */
    unsigned           seg_size;
    uct_recv_desc_t    release;   /* takes back a buffer the user kept */
    ucs_mpool_t        mp;
    struct ibv_srq     *srq;
    struct ibv_qp      *dct;
    uint64_t           dc_key;
} uct_dcx_rx_t;


/* Entries that are neither posted nor hold a message. */
static inline unsigned uct_dcx_rx_num_free(const uct_dcx_rx_t *rx)
{
    return rx->excess + rx->batch;
}


/* Where the device puts a message into a buffer. */
static UCS_F_ALWAYS_INLINE uct_dcx_am_hdr_t *
uct_dcx_rx_hdr(const uct_dcx_rx_t *rx, uct_dcx_rx_desc_t *desc)
{
    return UCS_PTR_BYTE_OFFSET(desc, rx->payload_offset -
                               sizeof(uct_dcx_am_hdr_t));
}


/* ... and back */
static inline uct_dcx_rx_desc_t *
uct_dcx_rx_desc(const uct_dcx_rx_t *rx, uct_dcx_am_hdr_t *hdr)
{
    return UCS_PTR_BYTE_OFFSET(hdr + 1, -(ptrdiff_t)rx->payload_offset);
}


/* Creates the queue: rx->srq, its chain and table of buffers. */
ucs_status_t uct_dcx_srq_init(uct_dcx_iface_t *iface,
                              const uct_dcx_iface_config_t *config);

/* Creates rx->mp, and lays out its buffers for 'params'. */
ucs_status_t uct_dcx_srq_init_buffers(uct_dcx_iface_t *iface,
                                      const uct_iface_params_t *params);

/* Frees all buffers. The device must be off them. */
void uct_dcx_srq_cleanup_buffers(uct_dcx_rx_t *rx);

/* Posts the free entries for which there are buffers. */
void uct_dcx_srq_post(uct_dcx_rx_t *rx);

/* Creates target, queue and buffers; needs iface->port and the receive CQ
 * parameters. 'params' gives headroom and alignment. Errors are logged. */
ucs_status_t
uct_dcx_rx_init(uct_dcx_iface_t *iface, const uct_dcx_iface_config_t *config,
                const uct_iface_params_t *params);

/* Takes the target off the network first, then frees what it wrote to. */
void uct_dcx_rx_cleanup(uct_dcx_iface_t *iface);

/* Delivers messages, the one of 'cqe' first, which is the next completion, and
 * posts fresh buffers; then does the rest of progress. Returns the number of
 * completions taken. */
unsigned uct_dcx_rx_poll(uct_dcx_iface_t *iface, struct mlx5_cqe64 *cqe);

/* A message that is nobody's. */
void uct_dcx_rx_no_am(uct_dcx_iface_t *iface, const uct_dcx_am_hdr_t *hdr,
                      unsigned length);

/* Posts the buffers that were short before, if there are any by now. */
void uct_dcx_rx_refill(uct_dcx_iface_t *iface);

#endif
