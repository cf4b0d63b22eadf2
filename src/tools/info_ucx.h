/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Causes that lie with the options of UCX and of Open MPI.
 */
#ifndef DCX_INFO_UCX_H
#define DCX_INFO_UCX_H

#include "info_why.h"

extern const info_cause_t info_ucx_causes[];

/* Which device and port carries UCX's messages, "dcx/mlx5_0:1", as UCP chose
 * it; NULL if that is not dcx, or was not asked for yet. */
const char *info_ucx_lane(void);

/* What programs that connect by socket address need besides, as variables to set;
 * NULL if nothing. */
const char *info_ucx_sockaddr(void);

#endif
