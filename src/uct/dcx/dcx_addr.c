/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The interface address of a peer: what can be known to be wrong with it. UCT
 * hands addresses over without their lengths. That of the port is looked at in
 * dcx_port_addr.c. Called when endpoints are created.
 */
#include "dcx_iface.h"

#include <ucs/debug/log.h>


static int
uct_dcx_addr_check_options(const uct_dcx_iface_t *iface,
                           const uct_dcx_iface_addr_t *addr,
                           ucs_log_level_t level)
{
    if (be32toh(addr->seg_size) != iface->rx.seg_size) {
        ucs_log(level, "the peer has UCX_DCX_SEG_SIZE=%u, this process %u: set "
                "the same everywhere (or its address is damaged)",
                be32toh(addr->seg_size), iface->rx.seg_size);
        return 0;
    }

    if (addr->flags != uct_dcx_iface_addr_flags(iface)) {
        ucs_log(level, "the peer has UCX_DCX_FC_ENABLE=%c, this process %c: "
                "set the same everywhere",
                (addr->flags & UCT_DCX_ADDR_FLAG_FC) ? 'y' : 'n',
                iface->fc.enabled ? 'y' : 'n');
        return 0;
    }
    return 1;
}


int uct_dcx_addr_check(const uct_dcx_iface_t *iface,
                       const uct_dcx_iface_addr_t *addr, ucs_log_level_t level)
{
    if (addr->version != UCT_DCX_ADDR_VERSION) {
        ucs_log(level, "the peer's address is of version %u, this is %u: run "
                "the same dcx everywhere", addr->version, UCT_DCX_ADDR_VERSION);
        return 0;
    }

    if (addr->flags & ~UCT_DCX_ADDR_FLAG_FC) {
        ucs_log(level, "the peer's interface address is damaged, it has "
                "unknown flags 0x%x", addr->flags);
        return 0;
    }

    if (!(addr->dctn[0] | addr->dctn[1] | addr->dctn[2])) {
        ucs_log(level, "the peer's interface address is damaged, it has no "
                "number of a DCT");
        return 0;
    }

    return uct_dcx_addr_check_options(iface, addr, level);
}
