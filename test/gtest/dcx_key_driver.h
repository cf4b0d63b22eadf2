/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Layouts of keys in an interface's memory domain, for tests in C++: the
 * headers are C. Only for programs that are linked with dcx (libdcx.la).
 */
#ifndef DCX_TEST_DCX_KEY_DRIVER_H
#define DCX_TEST_DCX_KEY_DRIVER_H

#include <uct/api/uct.h>

/* Has a key lead peers to two blocks of 'bytes' at 'address', with as many
 * between them. Returns its number, 0 on failure. */
uint32_t dcx_key_set(uct_iface_h iface, uct_mem_h memh, void *address,
                     uint32_t bytes);

/* The keys of the domain, uct_dcx_keys_t */
void *dcx_key_keys(uct_md_h md);

/* Layouts that the domain has, and those that went with their region */
void dcx_key_count(uct_md_h md, unsigned *num_set, unsigned *invalidated);

#endif
