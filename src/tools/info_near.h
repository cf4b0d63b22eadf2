/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Finds mistyped names, and the names that are nearest.
 */
#ifndef DCX_INFO_NEAR_H
#define DCX_INFO_NEAR_H

#include <stddef.h>

/* Finds the first entry of the comma-separated @list that is "dcx" with one
 * mistake or in upper case; "dc" is another transport. @list has no "dcx".
 * Stores the entry's @length in bytes. @return NULL: there is none */
const char *info_near_dcx(const char *list, size_t *length);

/* Describes in @text, of @max bytes, the first variable UCX_DCX_* that is no
 * option, and the option with a similar name, if any. Leaves @text unchanged if
 * there is no such variable. */
void info_near_option(char *text, size_t max);

#endif
