/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * A copy of the kernel's routes, taken when a port opens: checks of peers then
 * make no system calls. Knows no port.
 */
#ifndef UCT_DCX_ROUTES_H
#define UCT_DCX_ROUTES_H

#include <infiniband/verbs.h>
#include <stdint.h>
#include <ucs/type/status.h>


/* Routes to an IP subnet. Routes of several network interfaces to one subnet
 * have an entry each. */
typedef struct uct_dcx_route_entry {
    union ibv_gid subnet;
    uint32_t netdev;  /* index of the network interface */
    uint8_t bits;     /* length of the subnet's prefix */
    uint8_t is_local; /* the subnet is this machine's own */
} uct_dcx_route_entry_t;


/* All zero: no routes */
typedef struct uct_dcx_routes {
    uct_dcx_route_entry_t *entries;
    unsigned count;
} uct_dcx_routes_t;


/* Reads the routes of all of the kernel's tables, for IPv4 or IPv6. Logs
 * errors. */
ucs_status_t uct_dcx_routes_init(uct_dcx_routes_t *routes, int is_ipv4);
void uct_dcx_routes_cleanup(uct_dcx_routes_t *routes);

/* Returns non-zero if network interface @netdev has a route to @peer, and no
 * other one has a route with a longer prefix. Also returns non-zero if the
 * loopback interface has a route to @peer, or @peer is an address of this
 * machine (UCX, uct_ib_iface_roce_is_routable()). */
int uct_dcx_routes_lead(const uct_dcx_routes_t *routes,
                        const union ibv_gid *peer, unsigned netdev);

#endif
