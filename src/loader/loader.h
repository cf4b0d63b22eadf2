/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Access to UCX and to the transport for the rest of libdcx_loader.so, which is
 * linked with neither.
 */
#ifndef LOADER_H
#define LOADER_H

/* Returns @symbol of a library that the process has loaded, or NULL. Looks in
 * @scope (RTLD_NEXT or RTLD_DEFAULT) first, then in @library, a SONAME. */
void *loader_ucx_symbol(void *scope, const char *library, const char *symbol);

/* Returns the handle of libuct_dcx.so from dlopen(); it is never closed. NULL:
 * UCX is not the version that dcx was built for, the library could not be
 * opened, or libuct has not looked for its transports yet. */
void *loader_plugin(void);

#endif
