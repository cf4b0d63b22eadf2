/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Access to the mkeys of an interface's memory domain, for tests in C++: the
 * headers of dcx are C. Only for programs that are linked with libdcx.la.
 */
#ifndef DCX_TEST_DCX_KEY_DRIVER_H
#define DCX_TEST_DCX_KEY_DRIVER_H

#include <uct/api/uct.h>

/* Gives a key this layout, for peers: two blocks of @bytes, the first one at
 * @address, with a gap of @bytes between them. Returns the rkey, 0 on
 * failure. */
uint32_t dcx_key_set(uct_iface_h iface, uct_mem_h memh, void *address,
                     uint32_t bytes);

/* Returns the keys of the domain, a uct_dcx_keys_t. */
void *dcx_key_keys(uct_md_h md);

/* Stores the number of keys that have a layout, and the number of layouts that
 * were invalidated with their memory so far. */
void dcx_key_count(uct_md_h md, unsigned *num_set, unsigned *invalidated);

#endif
