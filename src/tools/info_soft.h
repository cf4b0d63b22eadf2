/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Errors of softhca, the software device, when it cannot start. It prints them
 * on stderr when devices are listed; each says how to fix the problem.
 */
#ifndef DCX_INFO_SOFT_H
#define DCX_INFO_SOFT_H

#include "info_why.h"

#include <infiniband/verbs.h>

/* Calls ibv_get_device_list(). Output on stderr meanwhile, up to 4 KiB, is
 * printed afterwards. Before, prints a note if softhca cannot copy from the
 * memory of other processes.
 * @param error  gets softhca's last error in it, or ""; of INFO_TEXT_MAX bytes
 * @return the list, which the caller frees; NULL: error */
struct ibv_device **info_soft_list(char *error);

/* Blames softhca, which could not start because of @error; "": unknown */
void info_soft_blame(const char *error, struct info_verdict *verdict);

#endif
