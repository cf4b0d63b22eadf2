/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * softhca, the software device, where it cannot start: it says so on stderr when
 * devices are listed, and what would mend that follows from its words.
 */
#ifndef DCX_INFO_SOFT_H
#define DCX_INFO_SOFT_H

#include "info_why.h"

#include <infiniband/verbs.h>

/* ibv_get_device_list(). What is written to stderr meanwhile stays there.
 * @param error  softhca's last error of it, of INFO_TEXT_MAX bytes; or "" */
struct ibv_device **info_soft_list(char *error);

/* That it could not start, with that error. */
void info_soft_blame(const char *error, struct info_verdict *verdict);

#endif
