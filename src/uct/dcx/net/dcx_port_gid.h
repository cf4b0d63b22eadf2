/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The own GID of a port; part of opening it.
 */
#ifndef UCT_DCX_PORT_GID_H
#define UCT_DCX_PORT_GID_H

#include "dcx_port.h"


/* Finds the GID and, on RoCE, its subnet. Errors are logged. */
ucs_status_t uct_dcx_port_init_gid(uct_dcx_port_t *port,
                                   const uct_dcx_iface_config_t *config);

#endif
