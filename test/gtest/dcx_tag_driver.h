/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The sending side of tag matching, for tests in C++: the headers are C. Only
 * for programs that are linked with dcx (libdcx.la).
 */
#ifndef DCX_TEST_DCX_TAG_DRIVER_H
#define DCX_TEST_DCX_TAG_DRIVER_H

#include <uct/api/uct.h>

struct dcx_tag_limits {
    size_t max_short, bcopy, iov, rndv_hdr;
};

/* Lets the interface send tagged messages; it receives them as untagged ones.
 * `max_request`: maximum bytes of a rendezvous request for the device. */
void dcx_tag_open(uct_iface_h iface, size_t max_request,
                  struct dcx_tag_limits *limits);
void dcx_tag_close(uct_iface_h iface);

/* Returns the DC access key of the interface's own target. */
uint64_t dcx_tag_dc_key(uct_iface_h iface);

/* Marks the endpoint's peer as matching tags, for any address. */
void dcx_tag_matches(uct_ep_h ep);

/* Begins a rendezvous without a request; returns the same as
 * uct_ep_tag_rndv_zcopy(). */
void *dcx_tag_rndv_begin(uct_ep_h ep, uct_completion_t *comp);
uint32_t dcx_tag_rndv_id(void *op);
void dcx_tag_rndv_fin(uct_iface_h iface, uint32_t id);
unsigned dcx_tag_rndv_count(uct_iface_h iface);

/* Sets the last used id. */
void dcx_tag_rndv_set_last(uct_iface_h iface, uint32_t id);

/* Packs a key of this number, as of a peer's memory. */
void dcx_tag_pack_rkey(uint32_t rkey, void *buffer);

#endif
