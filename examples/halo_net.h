/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Opens an interface of dcx, as any program does, and progresses its
 * operations. An error ends all ranks.
 */
#ifndef HALO_NET_H
#define HALO_NET_H

#include <mpi.h>
#include <uct/api/uct.h>

#define CHECK(_call) check((_call), #_call)

struct net {
    uct_component_h component;
    uct_md_h md;
    ucs_async_context_t *async;
    uct_worker_h worker;
    uct_iface_h iface;
};

/* Ends all ranks if 'status' is an error. */
void check(ucs_status_t status, const char *what);

/* Allocates zeroed memory. */
void *alloc(size_t size);

/* Opens a port, such as mlx5_0:1 of the adapter mlx5_0. */
void net_open(struct net *net, const char *port);
void net_close(struct net *net);

/* Creates endpoints to the 'count' neighbours in the cartesian communicator
 * 'comm', in MPI's order. */
void net_connect(struct net *net, MPI_Comm comm, uct_ep_h *eps, int count);

/* Returns 1 if an operation that returned 'status' has to be posted again,
 * because there was no room for it; makes progress. */
int net_retry(struct net *net, ucs_status_t status);

/* Waits until all posted operations have completed at the peers. */
void net_flush(struct net *net);

#endif
