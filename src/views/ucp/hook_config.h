/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Options of UCP, as a context is about to take them: UCP prints all of them,
 * and they are looked for by their names without what all begin with.
 */
#ifndef HOOK_CONFIG_H
#define HOOK_CONFIG_H

#include <ucp/api/ucp.h>

/* What is in effect, for the functions below, which the caller frees; NULL: it
 * is not known */
char *hook_config_read(const ucp_config_t *config);

/* An option's value, which the caller frees; NULL: it is not known */
char *hook_config_value(const char *text, const char *name);

/* Whether that is this value */
int hook_config_is(const char *text, const char *name, const char *value);

#endif
