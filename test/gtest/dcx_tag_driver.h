/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The sending side of tag matching, for tests in C++: the headers of dcx are C.
 * Only for programs that are linked with libdcx.la, and for one interface at a
 * time.
 */
#ifndef DCX_TEST_DCX_TAG_DRIVER_H
#define DCX_TEST_DCX_TAG_DRIVER_H

#include <uct/api/uct.h>

struct dcx_tag_limits {
    size_t max_short, bcopy, rndv_hdr; /* bytes */
    size_t iov;                        /* entries */
};

/* Lets the interface send tagged messages; it receives them as untagged ones.
 * @max_request: bytes of the longest rendezvous request that the device can
 * serve, 0: none. Stores the resulting limits. */
void dcx_tag_open(uct_iface_h iface, size_t max_request,
                  struct dcx_tag_limits *limits);

/* Undoes dcx_tag_open(); all rendezvous must have ended. */
void dcx_tag_close(uct_iface_h iface);

/* Returns the DC access key of the interface's own target. */
uint64_t dcx_tag_dc_key(uct_iface_h iface);

/* Marks the endpoint's peer as matching tags, for any address. */
void dcx_tag_matches(uct_ep_h ep);

/* Begins a rendezvous, but sends no request. Returns the operation, NULL if
 * there is no memory. */
void *dcx_tag_rndv_begin(uct_ep_h ep, uct_completion_t *comp);
uint32_t dcx_tag_rndv_id(void *op);

/* Simulates that a FIN has arrived. */
void dcx_tag_rndv_fin(uct_iface_h iface, uint32_t id);
unsigned dcx_tag_rndv_count(uct_iface_h iface);

/* Makes @id the id of the next rendezvous. At least one must have begun before:
 * that has made room in the list of ids. */
void dcx_tag_rndv_set_next(uct_iface_h iface, uint32_t id);

/* Packs a remote key into a buffer of rkey_packed_size bytes. */
void dcx_tag_pack_rkey(uint32_t rkey, void *buffer);

#endif
