/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * A look inside an interface of dcx, whose headers are C, for tests in C++.
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

/* sizeof() of the two kinds of endpoint, and of UCX's part of them */
struct dcx_ep_sizes {
    size_t ep, grh_ep;
    int    has_asserts; /* UCX was built with them: its part is longer */
};
void dcx_peek_ep_sizes(struct dcx_ep_sizes *sizes);

/* Whether an endpoint of the interface needs grants for active messages */
int dcx_peek_has_fc(uct_iface_h iface);

/* Requests for credits that the interface may have on the way */
void dcx_peek_set_max_asks(uct_iface_h iface, unsigned max);

/* Endpoints that wait for credits; those that could not ask yet count twice */
unsigned dcx_peek_num_blocked(uct_iface_h iface);

/* The address that the interface's requests for credits come from: to a GID of
 * these bytes no way leads. */
void dcx_peek_set_origin_gid(uct_iface_h iface, const uint8_t *gid);

/* How often the kernel is asked from now on for the way to a RoCE neighbour, of
 * one interface at a time */
void dcx_peek_count_neigh(uct_iface_h iface, unsigned *count);

/* Active messages that an endpoint may send without a grant */
unsigned dcx_peek_credits(uct_ep_h ep);

/* Names of the options of a configuration that UCT has read, those of UCX's
 * own tables in it left out. Returns how many; writes 'max' at most. */
unsigned dcx_peek_options(const void *config, const char **names,
                          unsigned max);

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

/* ... and no receive buffers be had but those that exist. */
void dcx_peek_no_more_buffers(uct_iface_h iface);

/* uct_ep_invalidate(), which is not in UCT's public headers */
ucs_status_t dcx_peek_invalidate(uct_ep_h ep);

/* Keys of registered memory */
uint32_t dcx_peek_lkey(uct_mem_h memh);
uint32_t dcx_peek_rkey(uct_mem_h memh);

#endif
