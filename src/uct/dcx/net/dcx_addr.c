/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Checks the interface address of a peer; see dcx_addr.h.
 */
#include "dcx_addr.h"

#include "uct/dcx/base/dcx_config.h"

#include <ucs/debug/log.h>


/* Compares the options of a peer. Its receive buffers may be smaller than ours:
 * UCP then limits bcopy and zcopy messages if the peer's address has the size
 * (UCX_ADDRESS_VERSION=v2), and longer ones are refused when they are sent. But
 * UCP never limits short messages by the peer's size, so that all of these have
 * to fit. */
static int uct_dcx_addr_check_options(const uct_dcx_iface_addr_t *addr,
                                      const uct_dcx_addr_own_t *own,
                                      ucs_log_level_t level)
{
    if (be32toh(addr->seg_size) < own->am_short) {
        ucs_log(level,
                "the peer has UCX_DCX_SEG_SIZE=%u, but short messages of this "
                "process have up to %zu bytes: raise UCX_DCX_SEG_SIZE there, "
                "or lower UCX_DCX_TX_MIN_INLINE here",
                be32toh(addr->seg_size), own->am_short);
        return 0;
    }

    if ((addr->flags ^ own->flags) & UCT_DCX_ADDR_FLAG_FC) {
        ucs_log(level,
                "the peer has UCX_DCX_FC_ENABLE=%c, this process %c: set the "
                "same value in all processes",
                (addr->flags & UCT_DCX_ADDR_FLAG_FC) ? 'y' : 'n',
                (own->flags & UCT_DCX_ADDR_FLAG_FC) ? 'y' : 'n');
        return 0;
    }
    return 1;
}


int uct_dcx_addr_check(const uct_dcx_iface_addr_t *addr,
                       const uct_dcx_addr_own_t *own, ucs_log_level_t level)
{
    if (addr->version != UCT_DCX_ADDR_VERSION) {
        ucs_log(level,
                "the peer's address has version %u instead of %u: run the "
                "same version of dcx in all processes",
                addr->version, UCT_DCX_ADDR_VERSION);
        return 0;
    }

    if (addr->check != uct_dcx_addr_crc(addr)) {
        ucs_log(level,
                "the peer's interface address is damaged or truncated: its "
                "checksum is 0x%x instead of 0x%x",
                be32toh(addr->check), be32toh(uct_dcx_addr_crc(addr)));
        return 0;
    }

    if (addr->flags & ~UCT_DCX_ADDR_FLAGS) {
        ucs_log(level,
                "the peer's interface address is damaged: it has unknown "
                "flags 0x%x",
                addr->flags);
        return 0;
    }

    if (!(addr->dctn[0] | addr->dctn[1] | addr->dctn[2])) {
        ucs_log(level, "the peer's interface address is damaged: it has no "
                       "DCT number");
        return 0;
    }

    if ((be32toh(addr->seg_size) < UCT_DCX_MIN_SEG_SIZE) ||
        (be32toh(addr->seg_size) > UCT_DCX_MAX_SEG_SIZE)) {
        ucs_log(level,
                "the peer's interface address is damaged: it has receive "
                "buffers of %u bytes",
                be32toh(addr->seg_size));
        return 0;
    }

    return uct_dcx_addr_check_options(addr, own, level);
}
