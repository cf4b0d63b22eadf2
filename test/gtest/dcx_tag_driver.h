/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The sending side of tag matching, for tests in C++: the headers are C. Only
 * for programs that are linked with dcx (libdcx.la), and for one interface at a
 * time. Errors abort.
 */
#ifndef DCX_TEST_DCX_TAG_DRIVER_H
#define DCX_TEST_DCX_TAG_DRIVER_H

#include <uct/api/uct.h>

struct dcx_tag_limits {
    size_t max_short, bcopy, rndv_hdr; /* bytes */
    size_t iov;                        /* entries */
};

/* Lets the interface send tagged messages; it receives them as untagged ones.
 * @max_request: maximum bytes of a rendezvous request for the device; a longer
 * one is the program's. */
void dcx_tag_open(uct_iface_h iface, size_t max_request,
                  struct dcx_tag_limits *limits);

/* All rendezvous have ended. */
void dcx_tag_close(uct_iface_h iface);

/* Returns the DC access key of the interface's own target. */
uint64_t dcx_tag_dc_key(uct_iface_h iface);

/* Marks the endpoint's peer as matching tags, for any address. */
void dcx_tag_matches(uct_ep_h ep);

/* Begins a rendezvous, but sends no request. Returns the operation, NULL
 * without memory. */
void *dcx_tag_rndv_begin(uct_ep_h ep, uct_completion_t *comp);
uint32_t dcx_tag_rndv_id(void *op);

/* Simulates that a FIN has arrived. */
void dcx_tag_rndv_fin(uct_iface_h iface, uint32_t id);
unsigned dcx_tag_rndv_count(uct_iface_h iface);

/* Makes @id the next id; a rendezvous has begun before. */
void dcx_tag_rndv_set_next(uct_iface_h iface, uint32_t id);

/* Packs a remote key into a buffer of rkey_packed_size bytes. */
void dcx_tag_pack_rkey(uint32_t rkey, void *buffer);

#endif
