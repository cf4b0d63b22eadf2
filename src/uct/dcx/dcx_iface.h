/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The interface: UCT's base type and the parts it is made of, each declared in
 * its own header and touched by its own file. One thread at a time may use an
 * interface (UCT's rule for thread modes single and serialized).
 */
#ifndef UCT_DCX_IFACE_H
#define UCT_DCX_IFACE_H

#include "dcx_dci.h"
#include "dcx_fc.h"
#include "dcx_rx.h"
#include "dcx_slab.h"


/* Sizes of the greatest operations, resolved when the interface opens. */
typedef struct uct_dcx_limits {
    unsigned max_bb;        /* building blocks of a WQE */
    size_t   am_short;      /* message, its 8-byte header included */
    size_t   am_bcopy;
    size_t   am_zcopy;      /* header and data */
    size_t   am_hdr;
    size_t   am_iov;
    size_t   put_short;
    size_t   rma_bcopy;
    size_t   rma_zcopy;
    size_t   rma_iov;
    size_t   get_iov;       /* not above rma_iov */
} uct_dcx_limits_t;


/* What progress has to see to without a completion; in most of its calls
 * there is nothing. */
enum {
    /* somebody may be served: uct_dcx_pending_serve() */
    UCT_DCX_TODO_PENDING = UCS_BIT(0),

    /* buffers were short when messages were received */
    UCT_DCX_TODO_REFILL  = UCS_BIT(1),

    /* send completions come to more than one queue, for good */
    UCT_DCX_TODO_GROUPS  = UCS_BIT(2),

    /* requests for credits are held back, or an endpoint is blocked */
    UCT_DCX_TODO_FC      = UCS_BIT(3),

    /* initiators have tails: see uct_dcx_dci_set_t */
    UCT_DCX_TODO_TAILS   = UCS_BIT(4)
};


/* The part iface->event: what the user waits on, dcx_event.c */
typedef struct uct_dcx_event {
    int fd;         /* ready when one of the channel and the timer is */
    int timer_fd;
    int timer_runs; /* or has gone off */
} uct_dcx_event_t;


struct uct_dcx_iface {
    uct_base_iface_t        super;
    uint8_t                 todo;       /* UCT_DCX_TODO_* */
    uct_dcx_dci_set_t       dci;
    uct_dcx_rx_t            rx;
    uct_dcx_fc_t            fc;
    uct_dcx_cq_t            rx_cq;
    ucs_mpool_t             tx_mp;      /* uct_dcx_tx_desc_t */
    uct_dcx_slab_t          eps;        /* uct_dcx_ep_t */
    uct_dcx_slab_t          grh_eps;    /* uct_dcx_grh_ep_t */
    uct_dcx_slab_t          small_eps;  /* uct_dcx_small_ep_t */
    uct_dcx_limits_t        limits;
    unsigned                tx_max_poll;
    uct_dcx_port_t          port;
    struct ibv_comp_channel *channel;
    uct_dcx_event_t         event;
};


/* The interface address, as it travels: 24 bytes. */
typedef struct uct_dcx_iface_addr {
    uint8_t version;  /* UCT_DCX_ADDR_VERSION */
    uint8_t flags;    /* UCT_DCX_ADDR_FLAG_*, must be those of the sender */
    uint8_t dctn[3];  /* number of the DCT, big endian */
    __be64  dc_key;
    __be16  credits;  /* what an endpoint to here begins with */
    __be32  pid;      /* of the process, for messages */
    __be32  seg_size; /* receive buffer: no longer message may be sent */
    uint8_t check;    /* of all that is before; last, as what stands behind a
                       * truncated address is not it */
} UCS_S_PACKED uct_dcx_iface_addr_t;

enum {
    UCT_DCX_ADDR_VERSION = 5
};

enum {
    UCT_DCX_ADDR_FLAG_FC = UCS_BIT(0) /* speaks flow control */
};


/* What 'check' is to be: the highest byte of a hash. */
static inline uint8_t uct_dcx_iface_addr_hash(uct_dcx_iface_addr_t addr)
{
    const uint64_t factor = 0x9e3779b97f4a7c15ull;
    uint64_t word[3];

    static_assert(sizeof(addr) == sizeof(word), "all of the address");
    addr.check = 0;
    memcpy(word, &addr, sizeof(word));
    return ((((word[0] * factor) ^ word[1]) * factor ^ word[2]) * factor) >> 56;
}


/* What both sides have to agree on. */
static inline uint8_t uct_dcx_iface_addr_flags(const uct_dcx_iface_t *iface)
{
    return iface->fc.enabled ? UCT_DCX_ADDR_FLAG_FC : 0;
}


/* dcx_iface.c: all that is put down in iface->todo. Returns the number of
 * completions taken. */
unsigned uct_dcx_iface_do(uct_dcx_iface_t *iface);

/* dcx_tx_poll.c: takes send completions of the first queue, 'cqe' first,
 * which is the next of them, and sees to iface->todo after that. Returns how
 * many. */
unsigned
uct_dcx_tx_poll(uct_dcx_iface_t *iface, const struct mlx5_cqe64 *cqe);


/* What a call of progress does when there is no message, or none any more. */
static UCS_F_ALWAYS_INLINE unsigned
uct_dcx_iface_progress_tx(uct_dcx_iface_t *iface)
{
    const struct mlx5_cqe64 *cqe = uct_dcx_cq_next(&iface->dci.group[0].cq);

    if (cqe != NULL) {
        return uct_dcx_tx_poll(iface, cqe);
    }
    return ucs_unlikely(iface->todo != 0) ? uct_dcx_iface_do(iface) : 0;
}


/* dcx_addr.c: whether the address is of a peer that this interface can speak
 * to. Otherwise it is logged why not, at 'level'. */
int uct_dcx_addr_check(const uct_dcx_iface_t *iface,
                       const uct_dcx_iface_addr_t *addr, ucs_log_level_t level);


static inline const char *uct_dcx_iface_name(const uct_dcx_iface_t *iface)
{
    return uct_dcx_device_name(iface->port.dev);
}


/* dcx_caps.c: the limits that follow from the options and the port, and what
 * UCT asks about them. */
void uct_dcx_caps_init(uct_dcx_limits_t *limits,
                       const uct_dcx_iface_config_t *config,
                       const uct_dcx_port_t *port);
ucs_status_t uct_dcx_caps_query(uct_iface_h iface, uct_iface_attr_t *attr);
ucs_status_t
uct_dcx_caps_estimate_perf(uct_iface_h iface, uct_perf_attr_t *attr);

/* dcx_event.c: iface->channel, which goes after its queues, and iface->event;
 * UCT's event operations. */
ucs_status_t uct_dcx_event_init(uct_dcx_iface_t *iface);
void uct_dcx_event_cleanup(uct_dcx_iface_t *iface);
ucs_status_t uct_dcx_event_fd_get(uct_iface_h iface, int *fd_p);
ucs_status_t uct_dcx_event_arm(uct_iface_h iface, unsigned events);

#endif
