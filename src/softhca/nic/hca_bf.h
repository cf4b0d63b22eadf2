/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * BlueFlame: a WQE that is pushed to the register instead of its first eight
 * bytes, which a NIC may execute without reading the ring. This device executes
 * what is in the ring as soon as the first bytes ring, and compares with it
 * what was pushed. No lock is held.
 */
#ifndef HCA_BF_H
#define HCA_BF_H

#include <stdint.h>

/* The first store to a register, which rings queue qpn; 0: none is known. */
void hca_bf_begin(uint32_t qpn, const void *value, unsigned size);

/* A later one of this thread, `pos` bytes behind it. */
void hca_bf_more(unsigned pos, const void *value, unsigned size);

#endif
