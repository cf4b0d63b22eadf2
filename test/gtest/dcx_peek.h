/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Reads and changes internals of a dcx interface, for tests in C++: the headers
 * of dcx are C. This header does not depend on structures of UCX.
 */
#ifndef DCX_TEST_DCX_PEEK_H
#define DCX_TEST_DCX_PEEK_H

#include <infiniband/mlx5dv.h>
#include <stddef.h>
#include <stdint.h>
#include <uct/api/uct.h>

struct dcx_view {
    const uint8_t *ring; /* ring of the first initiator */
    unsigned num_bb;
    uint16_t pi;
    uint32_t dbrec; /* doorbell record, host order */
    uint32_t qpn;
    uint32_t dctn;
    uint64_t dc_key;
    size_t am_short; /* limits, without UCT's 8-byte header */
    size_t put_short;
    size_t am_iov, rma_iov;
};

/* Reads an interface of dcx and its address. */
void dcx_peek(uct_iface_h iface, const void *iface_addr, struct dcx_view *view);

/* Recomputes the checksum of an interface address that was changed. */
void dcx_peek_seal_addr(void *iface_addr);

/* Return the queues as objects of verbs; of the initiators, the first. */
struct ibv_qp *dcx_peek_dci(uct_iface_h iface);
struct ibv_qp *dcx_peek_dct(uct_iface_h iface);

/* Returns the receive completion that was polled last. */
const struct mlx5_cqe64 *dcx_peek_last_recv(uct_iface_h iface);

/* Copies the address vector that an endpoint writes into its WQEs: 48 bytes,
 * with zeros after a compact one. Returns 1 if it is compact. */
int dcx_peek_av(uct_ep_h ep, uint8_t *av);

/* Returns 1 if the endpoint leads to these addresses; UCP asks this since
 * 1.18. */
int dcx_peek_is_connected(uct_ep_h ep, const void *dev_addr,
                          const void *iface_addr);

/* sizeof() of both kinds of endpoint; dcx_ep.h asserts their limits */
struct dcx_ep_sizes {
    size_t ep, grh_ep;
};
void dcx_peek_ep_sizes(struct dcx_ep_sizes *sizes);

/* Returns 1 if endpoints of the interface need grants for active messages. */
int dcx_peek_has_fc(uct_iface_h iface);

/* Limits the number of endpoints that can request credits, or have extra ones,
 * at a time. */
void dcx_peek_set_max_fc_entries(uct_iface_h iface, unsigned max);

/* Sets the number of answers that the interface can allocate from now on. */
void dcx_peek_set_max_answers(uct_iface_h iface, unsigned max);

/* Returns the number of repeated requests for credits of an endpoint. */
unsigned dcx_peek_reminders(uct_ep_h ep);

/* Sets the number of an endpoint's last request for credits. */
void dcx_peek_set_request(uct_ep_h ep, uint16_t number);

/* Returns the number of endpoints that wait for credits. */
unsigned dcx_peek_num_blocked(uct_iface_h iface);

/* Sets the source address of the interface's requests for credits; there is no
 * route to a GID of these bytes. */
void dcx_peek_set_origin_gid(uct_iface_h iface, const uint8_t *gid);

/* Counts in @count, from now on, the interface's look-ups of RoCE neighbours in
 * the kernel. Works for one interface at a time. */
void dcx_peek_count_neigh(uct_iface_h iface, unsigned *count);

/* Returns the number of active messages that an endpoint can send before it
 * needs a grant. */
unsigned dcx_peek_credits(uct_ep_h ep);

/* Returns the receive buffers of an interface that can be posted now. */
unsigned dcx_peek_rx_buffers(uct_iface_h iface);

/* Returns the credits beyond the base that a receiver has granted and that were
 * not returned. */
unsigned dcx_peek_granted(uct_iface_h iface);

/* Makes the next progress repeat the requests of blocked endpoints. */
void dcx_peek_tick(uct_iface_h iface);

/* Number of existing initiators, how many of them drain, and number of their
 * completion queues */
struct dcx_dci_count {
    unsigned num_dci, num_draining, num_cqs;
};
void dcx_peek_dcis(uct_iface_h iface, struct dcx_dci_count *count);

/* Take and release UCX's lock of a worker, as UCP does around progress. */
void dcx_peek_block(uct_worker_h worker);
void dcx_peek_unblock(uct_worker_h worker);

/* Returns the index of the endpoint's initiator, 0xffff if it has none. */
unsigned dcx_peek_place(uct_ep_h ep);

/* Makes the creation of initiators fail from now on. */
void dcx_peek_no_more_dcis(uct_iface_h iface);

/* Returns the maximum of receives in the device's tag list, 0 if the device
 * matches no tags. */
unsigned dcx_peek_num_tags(uct_iface_h iface);

/* Objects that dcx creates by DEVX if the device matches tags */
struct dcx_devx_objects {
    struct mlx5dv_devx_obj *xrq, *dct, *cmd;
    uint32_t xrqn, dctn, cmd_qpn;
};
void dcx_peek_devx(uct_iface_h iface, struct dcx_devx_objects *objects);

/* Returns the number of receives that the device has and that have not
 * ended. */
unsigned dcx_peek_num_posted(uct_iface_h iface);

/* Returns the number of operations on the list, modulo 2^16. */
uint16_t dcx_peek_num_list_ops(uct_iface_h iface);

/* Returns 1 if the device has all posted receives, and knows the number of
 * unexpected messages given to the user. Before, it may treat a message as
 * unexpected though its receive was posted: messages and operations on the list
 * are unordered. */
int dcx_peek_list_is_told(uct_iface_h iface);

/* Numbers of layouts that were found, and that had to be created */
struct dcx_layout_stats {
    uint64_t hits, misses;
};
void dcx_peek_layouts(uct_iface_h iface, struct dcx_layout_stats *stats);

/* Makes layouts fail from now on, as if the UMR queue were in error. */
void dcx_peek_no_more_layouts(uct_iface_h iface);

/* Holds the UMR queue, or releases it: UMRs that were posted do not complete
 * while it is held. */
void dcx_peek_hold_layouts(uct_iface_h iface, int is_held);

/* Waits for the next layout that is deregistered. As soon as its handle is
 * free, registers this memory, before the deregistration returns. Sets @memh_p
 * to the new handle if that is the freed one, else to NULL. */
void dcx_peek_register_at_free(uct_md_h md, void *address, size_t length,
                               uct_mem_h *memh_p);

/* Returns 0 for memory that is registered on demand only. */
int dcx_peek_is_pinned(uct_mem_h memh);

/* Memory in a dma-buf, and its address in operations */
struct dcx_dmabuf {
    int fd;
    uint64_t offset;
    void *address;
    size_t length;
};

/* Registers a dma-buf, as UCX does since 1.14. */
ucs_status_t dcx_peek_reg_dmabuf(uct_md_h md, const struct dcx_dmabuf *buf,
                                 uct_mem_h *memh_p);

/* Returns 1 if the domain announces dma-bufs to UCX since 1.14. */
int dcx_peek_has_dmabuf(uct_md_h md);

/* Keys of registered memory */
uint32_t dcx_peek_lkey(uct_mem_h memh);
uct_rkey_t dcx_peek_rkey(uct_mem_h memh);

/* Returns the flags that this UCX needs from interfaces of a network
 * (UCT_DCX_UCX_IFACE_FLAGS). */
uint64_t dcx_peek_network_flags(void);

#endif
