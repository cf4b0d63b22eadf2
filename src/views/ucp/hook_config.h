/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Options of UCP, as a context is about to take them: UCP prints all of them as
 * text. Options are found in it by their names without the prefix UCX_.
 */
#ifndef HOOK_CONFIG_H
#define HOOK_CONFIG_H

#include <ucp/api/ucp.h>

/* Returns the options of @config, as text for the functions below. The caller
 * frees it. NULL: there is no memory. */
char *hook_config_read(const ucp_config_t *config);

/* Returns an option's value, which the caller frees. NULL: there is no such
 * option, or no memory. */
char *hook_config_value(const char *text, const char *name);

/* Returns 1 if the environment has the option, with the prefix of the
 * configuration or without. */
int hook_config_is_in_environment(const char *text, const char *name);

/* Returns 1 if the option has this value. */
int hook_config_is(const char *text, const char *name, const char *value);

#endif
