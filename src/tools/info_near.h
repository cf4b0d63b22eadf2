/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Names that a user has mistyped, and those that are near.
 */
#ifndef DCX_INFO_NEAR_H
#define DCX_INFO_NEAR_H

#include <stddef.h>

/* Finds the entry of @list, with commas, that is "dcx" but for one mistake.
 * @length  of the entry. @return NULL: there is none */
const char *info_near_dcx(const char *list, size_t *length);

/* Describes in @text the first variable UCX_DCX_* that is no option, with the
 * option of the nearest name. Leaves it as it is if there is none. */
void info_near_option(char *text, size_t max);

#endif
