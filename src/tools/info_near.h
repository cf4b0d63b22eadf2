/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Finds mistyped names, and the names that are nearest.
 */
#ifndef DCX_INFO_NEAR_H
#define DCX_INFO_NEAR_H

#include <stddef.h>

/* Finds the entry of the comma-separated @list that is "dcx" with one mistake.
 * Stores its @length in bytes. @return NULL: there is none */
const char *info_near_dcx(const char *list, size_t *length);

/* Describes in @text the first variable UCX_DCX_* that is no option, and the
 * option with the nearest name. Leaves @text unchanged if there is no such
 * variable. */
void info_near_option(char *text, size_t max);

#endif
