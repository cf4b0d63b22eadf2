/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The neighbours of a RoCE port: the MAC for each GID. Only the kernel knows
 * them (it uses ARP, or knows the router). A query is a system call, and takes
 * up to a second if there is no answer. So answers are cached here, one for
 * each port of the network, for all peers behind it. Failures are cached for
 * some time. Belongs to a port; used by the interface's thread.
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


/* An answer of the kernel. @failed is the time of a failure, or 0. */
typedef struct uct_dcx_neighbour {
    uct_dcx_mac_t mac;
    ucs_time_t failed;
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


/* Queries the MAC of @gid; logs errors. */
typedef ucs_status_t (*uct_dcx_neigh_resolve_t)(void *arg,
                                                const union ibv_gid *gid,
                                                uct_dcx_mac_t *mac);

typedef struct uct_dcx_neigh {
    khash_t(uct_dcx_neigh) known;
    uct_dcx_neigh_resolve_t resolve;
    void *arg;
} uct_dcx_neigh_t;


void uct_dcx_neigh_init(uct_dcx_neigh_t *neigh, uct_dcx_neigh_resolve_t resolve,
                        void *arg);
void uct_dcx_neigh_cleanup(uct_dcx_neigh_t *neigh);

/* Finds the MAC of @gid; queries it if it is not known. For @patience after a
 * failure, it does not query again, and returns UCS_ERR_UNREACHABLE, not
 * logged. @patience is 0 if the caller may wait for the kernel. */
ucs_status_t uct_dcx_neigh_get(uct_dcx_neigh_t *neigh, const union ibv_gid *gid,
                               ucs_time_t patience, uct_dcx_mac_t *mac);

/* Forgets the MAC of a peer that did not answer: it may have moved. */
void uct_dcx_neigh_forget(uct_dcx_neigh_t *neigh, const union ibv_gid *gid);

#endif
