/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Why UCX does not use dcx: the causes, in the order in which one hides the
 * next, are looked at one by one; the first that holds is named, with the one
 * thing to do.
 */
#ifndef DCX_INFO_WHY_H
#define DCX_INFO_WHY_H

#include "info_verdict.h"

/* Of each file, causes in order; the last row has no function. */
typedef void (*info_cause_t)(const struct info_report *report,
                             struct info_verdict *verdict);

extern const info_cause_t info_device_causes[];

/* Prints what is wrong, or that nothing is. @return whether UCX uses dcx. */
bool info_why_print(const struct info_report *report, bool json, FILE *out);

#endif
