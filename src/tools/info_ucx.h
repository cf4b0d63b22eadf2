/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Causes in the options of UCX and of Open MPI, and in the MPIs.
 */
#ifndef DCX_INFO_UCX_H
#define DCX_INFO_UCX_H

#include "info_why.h"

extern const info_cause_t info_ucx_causes[];

/* Returns the transport, device and port that UCP chose for messages, as
 * "dcx/mlx5_0:1"; NULL: not dcx, or info_ucx_causes did not ask UCP yet. */
const char *info_ucx_lane(void);

/* Returns the setting that programs need to connect by socket address, as
 * "UCX_TLS=dcx,tcp"; NULL: none. The text is valid until the next call. */
const char *info_ucx_sockaddr(void);

#endif
