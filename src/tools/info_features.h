/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The features of mlx5 devices, by the sections of NVIDIA's "Migration to
 * RDMA-Core" from "Accelerated Verbs" to "VLAN Offload", and their use by dcx.
 */
#ifndef DCX_INFO_FEATURES_H
#define DCX_INFO_FEATURES_H

#include "info_report.h"

/* Prints a line for each section, with the capability that the first device of
 * @report has. */
void info_features_print(const struct info_report *report, FILE *out);

#endif
