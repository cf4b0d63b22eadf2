/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The neighbours of a RoCE port: which MAC leads to which GID. The kernel
 * alone can tell (it asks with ARP, or knows the router), which takes a system
 * call, and may take a second if nobody answers; here its answers are kept, one
 * for each port of the network, however many peers live behind it. That it had
 * none is kept for a while. Belongs to a port; used by the interface's thread.
 */
#ifndef UCT_DCX_NEIGH_H
#define UCT_DCX_NEIGH_H

#include <infiniband/verbs.h>
#include <stddef.h>
#include <stdint.h>
#include <ucs/datastruct/khash.h>
#include <ucs/time/time_def.h>
#include <ucs/type/status.h>


typedef struct uct_dcx_mac {
    uint8_t bytes[6];
} uct_dcx_mac_t;


/* An answer of the kernel. If 'failed' is not 0 there was no way at that
 * time. */
typedef struct uct_dcx_neighbour {
    uct_dcx_mac_t mac;
    ucs_time_t    failed;
} uct_dcx_neighbour_t;


static inline khint_t uct_dcx_neigh_hash(union ibv_gid gid)
{
    return kh_int64_hash_func(gid.global.subnet_prefix * 31 ^
                              gid.global.interface_id);
}

static inline int uct_dcx_neigh_equal(union ibv_gid a, union ibv_gid b)
{
    return (a.global.subnet_prefix == b.global.subnet_prefix) &&
           (a.global.interface_id == b.global.interface_id);
}

KHASH_INIT(uct_dcx_neigh, union ibv_gid, uct_dcx_neighbour_t, 1,
           uct_dcx_neigh_hash, uct_dcx_neigh_equal);


/* Asks for the MAC of 'gid'; reports its own errors. */
typedef ucs_status_t
(*uct_dcx_neigh_resolve_t)(void *arg, const union ibv_gid *gid,
                           uct_dcx_mac_t *mac);

typedef struct uct_dcx_neigh {
    khash_t(uct_dcx_neigh)  known;
    uct_dcx_neigh_resolve_t resolve;
    void                    *arg;
} uct_dcx_neigh_t;


void uct_dcx_neigh_init(uct_dcx_neigh_t *neigh,
                        uct_dcx_neigh_resolve_t resolve, void *arg);
void uct_dcx_neigh_cleanup(uct_dcx_neigh_t *neigh);

/* Asks if the MAC is not known, but not so soon after a failure: others wait
 * meanwhile. 'patience' is how long that counts, 0 if the caller may wait. */
ucs_status_t
uct_dcx_neigh_get(uct_dcx_neigh_t *neigh, const union ibv_gid *gid,
                  ucs_time_t patience, uct_dcx_mac_t *mac);

/* The peer did not answer: it may have moved. */
void uct_dcx_neigh_forget(uct_dcx_neigh_t *neigh, const union ibv_gid *gid);

#endif
