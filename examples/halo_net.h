/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * An interface of dcx, as any program opens one, and what is done with it
 * while operations are under way. An error ends all ranks.
 */
#ifndef HALO_NET_H
#define HALO_NET_H

#include <mpi.h>
#include <uct/api/uct.h>

#define CHECK(_call) check((_call), #_call)

struct net {
    uct_component_h     component;
    uct_md_h            md;
    ucs_async_context_t *async;
    uct_worker_h        worker;
    uct_iface_h         iface;
};

/* Ends all ranks if 'status' is an error. */
void check(ucs_status_t status, const char *what);

/* Zeroed memory */
void *alloc(size_t size);

/* port: such as mlx5_0:1, of the adapter mlx5_0 */
void net_open(struct net *net, const char *port);
void net_close(struct net *net);

/* Endpoints to the 'count' neighbours in the cartesian communicator 'comm', in
 * MPI's order */
void net_connect(struct net *net, MPI_Comm comm, uct_ep_h *eps, int count);

/* Whether what returned 'status' has to be posted once more, as there was no
 * room for it; there may be now. */
int net_retry(struct net *net, ucs_status_t status);

/* Until all that was posted has been done, at the peers. */
void net_flush(struct net *net);

#endif
