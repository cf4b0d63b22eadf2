/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The shared receive queue of an interface, its buffers, and the format of a
 * message in them. It is an SRQ of verbs, or an XRQ if the device matches tags;
 * both have the same ring. Filled and emptied by the receiving side; owned by
 * the thread that progresses the interface.
 */
#ifndef UCT_DCX_SRQ_H
#define UCT_DCX_SRQ_H

#include "uct/dcx/base/dcx_config.h"
#include "uct/dcx/dev/dcx_cq.h"
#include "dcx_xrq.h"

#include <ucs/datastruct/mpool.h>


/* The header of each active message on the wire. These are the first bytes of a
 * tag matching header (struct ibv_tmh): a device that matches tags ignores a
 * message with this opcode. */
typedef struct uct_dcx_am_hdr {
    uint8_t opcode; /* IBV_TMH_NO_TAG */
    uint8_t am_id;
} UCS_S_PACKED uct_dcx_am_hdr_t;


/* Head of a receive buffer. The payload of the message follows at
 * rx->payload_offset, and right before that its uct_dcx_am_hdr_t. */
typedef struct uct_dcx_rx_desc {
    uint32_t lkey;
} uct_dcx_rx_desc_t;


/* One entry of the SRQ; the device follows the chain of next_wqe_index. */
typedef struct uct_dcx_srq_wqe {
    struct mlx5_wqe_srq_next_seg next;
    struct mlx5_wqe_data_seg data;
} uct_dcx_srq_wqe_t;

static_assert(sizeof(uct_dcx_srq_wqe_t) == 32, "the stride of libmlx5's SRQ");


/* The receiving side of an interface */
typedef struct uct_dcx_rx {
    uct_dcx_cq_t cq;
    uct_dcx_srq_wqe_t *wqes;
    uct_dcx_am_hdr_t **hdrs; /* in the buffer of each entry; NULL if it has
                              * none */
    volatile __be32 *dbrec;
    uint16_t head;     /* next entry to post */
    uint16_t tail;     /* end of the chain, never posted */
    uint16_t counter;  /* entries posted so far */
    int excess;        /* free entries, from @head to before @tail,
                        * minus @batch */
    unsigned missing;  /* entries without a buffer */
    unsigned dropped;  /* messages that no process may send */
    int batch;         /* post if this number of entries are free */
    unsigned max_poll; /* messages of one call of progress */
    unsigned length;   /* entries in the chain */
    unsigned max_length;
    unsigned payload_offset;
    unsigned headroom;       /* for the user, right before the payload */
    unsigned seg_size;       /* maximum bytes of a message, with its header */
    uct_recv_desc_t release; /* releases a buffer that the user kept */
    ucs_mpool_t mp;
    unsigned num_tags;   /* tagged buffers, 0: the device matches no
                          * tags */
    struct ibv_srq *srq; /* by verbs, if @num_tags is 0 */
    uint32_t srqn;       /* number of the shared receive queue */
    int srq_failed;      /* set by the thread of events, dcx_async.c */
    struct ibv_qp *dct;
    uct_dcx_xrq_t xrq; /* by DEVX, if @num_tags is not 0 */
    uct_dcx_devx_obj_t dct_obj;
    int has_devx_dct; /* the target is @dct_obj, not @dct */
    uint32_t dctn;
    uint64_t dc_key;
} uct_dcx_rx_t;


/* Returns the number of entries that are neither posted nor hold a message. */
static inline unsigned uct_dcx_srq_num_free(const uct_dcx_rx_t *rx)
{
    return rx->excess + rx->batch;
}


/* Returns the place of a message in a buffer. */
static UCS_F_ALWAYS_INLINE uct_dcx_am_hdr_t *
uct_dcx_srq_hdr(const uct_dcx_rx_t *rx, uct_dcx_rx_desc_t *desc)
{
    return UCS_PTR_BYTE_OFFSET(desc,
                               rx->payload_offset - sizeof(uct_dcx_am_hdr_t));
}


/* Returns the buffer that contains the message at @hdr. */
static inline uct_dcx_rx_desc_t *uct_dcx_srq_desc(const uct_dcx_rx_t *rx,
                                                  uct_dcx_am_hdr_t *hdr)
{
    return UCS_PTR_BYTE_OFFSET(hdr + 1, -(ptrdiff_t)rx->payload_offset);
}


/* Creates the queue and the pool of its buffers for @iface; posts none. @params
 * gives headroom and alignment. rx->length, ->max_length, ->seg_size,
 * ->num_tags, ->cq and ->dc_key are set. Logs errors, except
 * UCS_ERR_NO_MEMORY. */
ucs_status_t uct_dcx_srq_init(uct_dcx_rx_t *rx, uct_base_iface_t *iface,
                              const uct_dcx_port_t *port,
                              const uct_dcx_iface_config_t *config,
                              const uct_iface_params_t *params);

/* Destroys the queue, and frees its buffers. The DCT is destroyed already. */
void uct_dcx_srq_cleanup(uct_dcx_rx_t *rx, const uct_dcx_device_t *dev);

/* Posts the free entries for which there are buffers. */
void uct_dcx_srq_post(uct_dcx_rx_t *rx);

/* Adds all entries to the chain. The new ones are free. */
void uct_dcx_srq_grow(uct_dcx_rx_t *rx);

#endif
