/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Finds the reason why UCX does not use dcx. Checks the causes one by one, in
 * the order in which one hides the next. Prints the first that applies, and how
 * to fix it.
 */
#ifndef DCX_INFO_WHY_H
#define DCX_INFO_WHY_H

#include "info_verdict.h"

/* A check for a cause. Sets the reason and the fix of @verdict if the cause
 * applies. Tables of checks are in order, and end with NULL. */
typedef void (*info_cause_t)(const struct info_report *report,
                             struct info_verdict *verdict);

/* Causes in the machine and in the loading of the transport */
extern const info_cause_t info_device_causes[];

/* Prints the cause, or that there is none. @return true if UCX uses dcx. */
bool info_why_print(const struct info_report *report, bool json, FILE *out);

#endif
