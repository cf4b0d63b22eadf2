/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Causes in the options of UCX and of Open MPI.
 */
#ifndef DCX_INFO_UCX_H
#define DCX_INFO_UCX_H

#include "info_why.h"

extern const info_cause_t info_ucx_causes[];

/* Returns the device and port that carry UCX's messages, "dcx/mlx5_0:1", as UCP
 * chose it; NULL if it is not dcx, or UCP was not asked yet. */
const char *info_ucx_lane(void);

/* Returns the variables that programs which connect by socket address have to
 * set in addition; NULL: none. */
const char *info_ucx_sockaddr(void);

#endif
