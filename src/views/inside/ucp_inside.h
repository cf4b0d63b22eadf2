/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The border to UCP's insides.
 */
#ifndef UCP_INSIDE_H
#define UCP_INSIDE_H


/* The index of an endpoint's configuration, by any thread. */
unsigned ucp_inside_ep_config(const void *ucp_ep);

/* The lock that UCP's functions take of a worker that any thread may call; of
 * others there is none. A thread may have it already. */
void ucp_inside_worker_lock(void *ucp_worker);
void ucp_inside_worker_unlock(void *ucp_worker);

/* One of the interfaces that are active of a new worker gets no messages: UCP
 * does not count it any more. Of more than one, it has the device match tags of
 * senders alone that it has had messages of. 0: the worker has not the members
 * that it had where dcx was built, and is as it was. */
int ucp_inside_worker_discount(void *ucp_worker);

/* Whether UCP takes the type of memory from the handle that it is given, and
 * from nothing else where it has newer protocols (UCX_PROTO_ENABLE=y). */
int ucp_inside_has_typed_handles(void);

#endif
