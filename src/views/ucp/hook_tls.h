/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * UCX_TLS, as a context is about to take it: a list of transports, "all", or,
 * after ^, a list of transports that must not be used.
 */
#ifndef HOOK_TLS_H
#define HOOK_TLS_H

/* Returns 1 if dcx may be used. */
int hook_tls_has_dcx(const char *tls);

/* Returns 1 if only dcx can reach other processes. */
int hook_tls_is_dcx_only(const char *tls);

/* Returns the list with the copy transport of views appended. The caller frees
 * it. NULL: nothing is to be appended, or there is no memory. */
char *hook_tls_with_views(const char *tls);

#endif
