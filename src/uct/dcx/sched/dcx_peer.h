/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Names of peers for log messages. Called when something has failed, never on
 * the data path.
 */
#ifndef UCT_DCX_PEER_H
#define UCT_DCX_PEER_H

#include "uct/dcx/queue/dcx_endpoint.h"

enum { UCT_DCX_PEER_NAME_MAX = 192 };


/* Writes the name of the peer of @ep: number of the DCT, address of its port,
 * process id, and the name of this host if that port is @port itself. */
void uct_dcx_peer_name(const uct_dcx_port_t *port, const uct_dcx_ep_t *ep,
                       char name[UCT_DCX_PEER_NAME_MAX]);

#endif
