/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Atomics.
 */
#ifndef UCT_DCX_ATOMIC_H
#define UCT_DCX_ATOMIC_H

#include "uct/dcx/dev/dcx_device.h"

#include <uct/api/uct.h>


/* Operations of UCT's tables; what they return is written in uct/api/uct.h. */
ucs_status_t
uct_dcx_ep_atomic_cswap64(uct_ep_h ep, uint64_t compare, uint64_t swap,
                          uint64_t remote_addr, uct_rkey_t rkey,
                          uint64_t *result, uct_completion_t *comp);
ucs_status_t
uct_dcx_ep_atomic_cswap32(uct_ep_h ep, uint32_t compare, uint32_t swap,
                          uint64_t remote_addr, uct_rkey_t rkey,
                          uint32_t *result, uct_completion_t *comp);
ucs_status_t
uct_dcx_ep_atomic64_post(uct_ep_h ep, unsigned opcode, uint64_t value,
                         uint64_t remote_addr, uct_rkey_t rkey);
ucs_status_t
uct_dcx_ep_atomic32_post(uct_ep_h ep, unsigned opcode, uint32_t value,
                         uint64_t remote_addr, uct_rkey_t rkey);
ucs_status_t
uct_dcx_ep_atomic64_fetch(uct_ep_h ep, uct_atomic_op_t opcode, uint64_t value,
                          uint64_t *result, uint64_t remote_addr,
                          uct_rkey_t rkey, uct_completion_t *comp);
ucs_status_t
uct_dcx_ep_atomic32_fetch(uct_ep_h ep, uct_atomic_op_t opcode, uint32_t value,
                          uint32_t *result, uint64_t remote_addr,
                          uct_rkey_t rkey, uct_completion_t *comp);

/* Which atomics the device does, as UCT announces them. */
void uct_dcx_atomic_query(const uct_dcx_device_t *dev, uct_iface_attr_t *attr);

#endif
