/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Layouts of keys in an interface's memory domain, for tests in C++: the
 * headers are C. Only for programs that are linked with dcx (libdcx.la).
 */
#ifndef DCX_TEST_DCX_KEY_DRIVER_H
#define DCX_TEST_DCX_KEY_DRIVER_H

#include <uct/api/uct.h>

/* Gives a key the layout of two blocks of 'bytes' at 'address', with a gap of
 * 'bytes' between them, for peers. Returns its number, 0 on failure. */
uint32_t dcx_key_set(uct_iface_h iface, uct_mem_h memh, void *address,
                     uint32_t bytes);

/* Returns the keys of the domain: uct_dcx_keys_t. */
void *dcx_key_keys(uct_md_h md);

/* Counts the layouts of the domain, and layouts that were invalidated with
 * their memory. */
void dcx_key_count(uct_md_h md, unsigned *num_set, unsigned *invalidated);

#endif
