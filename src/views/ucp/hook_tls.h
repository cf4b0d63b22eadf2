/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * UCX_TLS, as a context is about to take it: a list of transports, of "all", or
 * of those that shall not be, which begins with ^.
 */
#ifndef HOOK_TLS_H
#define HOOK_TLS_H

/* Whether dcx may be used */
int hook_tls_has_dcx(const char *tls);

/* Whether no peer comes by anything else */
int hook_tls_is_dcx_only(const char *tls);

/* The same, and the copy transport of views; which the caller frees. NULL: it
 * is no list, so that it has it, or there is no memory. */
char *hook_tls_with_views(const char *tls);

#endif
