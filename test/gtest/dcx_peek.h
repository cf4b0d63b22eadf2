/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * A look inside an interface of dcx, by dcx's own headers, which are C, for tests
 * in C++. Nothing in here knows the structures of UCX.
 */
#ifndef DCX_TEST_DCX_PEEK_H
#define DCX_TEST_DCX_PEEK_H

#include <infiniband/mlx5dv.h>
#include <stddef.h>
#include <stdint.h>
#include <uct/api/uct.h>

struct dcx_view {
    const uint8_t *ring;       /* of the first initiator */
    unsigned      num_bb;
    uint16_t      pi;
    uint32_t      dbrec;       /* its record, host order */
    uint32_t      qpn;
    uint32_t      dctn;
    uint64_t      dc_key;
    size_t        am_short;    /* limits, less what UCT's 8-byte header takes */
    size_t        put_short;
    size_t        am_iov, rma_iov;
};

/* Of an interface of dcx, with its address */
void dcx_peek(uct_iface_h iface, const void *iface_addr,
              struct dcx_view *view);

/* Completes the address of an interface whose bytes were changed. */
void dcx_peek_seal_addr(void *iface_addr);

/* The queues as verbs know them; of the initiators, the first */
struct ibv_qp *dcx_peek_dci(uct_iface_h iface);
struct ibv_qp *dcx_peek_dct(uct_iface_h iface);

/* The receive completion that was taken last */
const struct mlx5_cqe64 *dcx_peek_last_recv(uct_iface_h iface);

/* The address vector that an endpoint writes into its WQEs: 48 bytes, those
 * behind the compact form zero if it has that. Returns whether it has. */
int dcx_peek_av(uct_ep_h ep, uint8_t *av);

/* What UCP asks from 1.18 on: whether the endpoint leads to these addresses */
int dcx_peek_is_connected(uct_ep_h ep, const void *dev_addr,
                          const void *iface_addr);

/* sizeof() of the two kinds of endpoint, whose limits dcx_ep.h asserts */
struct dcx_ep_sizes {
    size_t ep, grh_ep;
};
void dcx_peek_ep_sizes(struct dcx_ep_sizes *sizes);

/* Whether an endpoint of the interface needs grants for active messages */
int dcx_peek_has_fc(uct_iface_h iface);

/* Endpoints of the interface that may have asked for credits, or have a loan */
void dcx_peek_set_max_fc_entries(uct_iface_h iface, unsigned max);

/* Answers that the interface may make room for, beside those that exist */
void dcx_peek_set_max_answers(uct_iface_h iface, unsigned max);

/* How often the receiver was reminded of an endpoint that waits for credits */
unsigned dcx_peek_reminders(uct_ep_h ep);

/* Endpoints that wait for credits */
unsigned dcx_peek_num_blocked(uct_iface_h iface);

/* The address that the interface's requests for credits come from: to a GID of
 * these bytes no way leads. */
void dcx_peek_set_origin_gid(uct_iface_h iface, const uint8_t *gid);

/* How often the kernel is asked from now on for the way to a RoCE neighbour, of
 * one interface at a time */
void dcx_peek_count_neigh(uct_iface_h iface, unsigned *count);

/* Active messages that an endpoint may send without a grant */
unsigned dcx_peek_credits(uct_ep_h ep);

/* The next progress reminds those who are blocked. */
void dcx_peek_tick(uct_iface_h iface);

/* Initiators that exist, those of them that drain, and the completion queues
 * that they share */
struct dcx_dci_count {
    unsigned num_dci, num_draining, num_cqs;
};
void dcx_peek_dcis(uct_iface_h iface, struct dcx_dci_count *count);

/* The number of the initiator that the endpoint has, or 0xffff */
unsigned dcx_peek_place(uct_ep_h ep);

/* From now on none can be created. */
void dcx_peek_no_more_dcis(uct_iface_h iface);

/* Tagged buffers of the interface, 0 if its device matches no tags */
unsigned dcx_peek_num_tags(uct_iface_h iface);

/* What is made by DEVX then */
struct dcx_devx_objects {
    struct mlx5dv_devx_obj *xrq, *dct, *cmd;
    uint32_t               xrqn, dctn, cmd_qpn;
};
void dcx_peek_devx(uct_iface_h iface, struct dcx_devx_objects *objects);

/* Tagged buffers that are posted, or canceled and not yet removed */
unsigned dcx_peek_num_posted(uct_iface_h iface);

/* Whether the device knows what was posted, and how many unexpected messages the
 * user has been handed. A message and an operation on the list are not in order:
 * a late device may find one unexpected that was sent after its receive was
 * posted. */
int dcx_peek_list_is_told(uct_iface_h iface);

/* How often layouts were there when they were asked for, and had to be made */
struct dcx_layout_stats {
    uint64_t hits, misses;
};
void dcx_peek_layouts(uct_iface_h iface, struct dcx_layout_stats *stats);

/* From now on there are none, as if their queue were of no use any more. */
void dcx_peek_no_more_layouts(uct_iface_h iface);

/* Keys of registered memory */
uint32_t dcx_peek_lkey(uct_mem_h memh);
uct_rkey_t dcx_peek_rkey(uct_mem_h memh);

/* What this UCX wants of an interface of a network (UCT_DCX_UCX_IFACE_FLAGS) */
uint64_t dcx_peek_network_flags(void);

#endif
