/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Errors of softhca, the software device, when it cannot start. It prints them
 * on stderr when devices are listed; they tell how to fix the problem.
 */
#ifndef DCX_INFO_SOFT_H
#define DCX_INFO_SOFT_H

#include "info_why.h"

#include <infiniband/verbs.h>

/* Calls ibv_get_device_list(). Output on stderr meanwhile is printed, too.
 * @param error  softhca's last error in it, of INFO_TEXT_MAX bytes; or "" */
struct ibv_device **info_soft_list(char *error);

/* Blames softhca, which could not start because of @error. */
void info_soft_blame(const char *error, struct info_verdict *verdict);

#endif
