/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The sending side of tag matching, for tests in C++: the headers are C. Only
 * for programs that dcx is linked into (libdcx.la).
 */
#ifndef DCX_TEST_DCX_TAG_DRIVER_H
#define DCX_TEST_DCX_TAG_DRIVER_H

#include <uct/api/uct.h>

struct dcx_tag_limits {
    size_t max_short, bcopy, iov, rndv_hdr;
};

/* Tagged messages can be sent by the interface; it receives them as if they were
 * none. `max_request`: what a device takes of a request for a rendezvous. */
void dcx_tag_open(uct_iface_h iface, size_t max_request,
                  struct dcx_tag_limits *limits);
void dcx_tag_close(uct_iface_h iface);

/* The DC access key of the interface's own target */
uint64_t dcx_tag_dc_key(uct_iface_h iface);

/* The endpoint's peer matches tags, whatever its address says. */
void dcx_tag_matches(uct_ep_h ep);

/* Rendezvous under way: what uct_ep_tag_rndv_zcopy() returns, without a request */
void *dcx_tag_rndv_begin(uct_ep_h ep, uct_completion_t *comp);
uint32_t dcx_tag_rndv_id(void *op);
void dcx_tag_rndv_fin(uct_iface_h iface, uint32_t id);
unsigned dcx_tag_rndv_count(uct_iface_h iface);

/* From now on ids go on behind this one. */
void dcx_tag_rndv_set_last(uct_iface_h iface, uint32_t id);

/* A packed key of this number, as of memory of a peer */
void dcx_tag_pack_rkey(uint32_t rkey, void *buffer);

#endif
