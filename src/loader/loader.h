/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * What the rest of libdcx_loader.so needs of its first part: UCX, without being
 * linked with it, and the transport.
 */
#ifndef LOADER_H
#define LOADER_H

/* A symbol of a UCX library that is in the process already, looked for in scope
 * (RTLD_NEXT or RTLD_DEFAULT) first; NULL: there is none. */
void *loader_ucx_symbol(void *scope, const char *library, const char *symbol);

/* libuct_dcx.so as a handle of dlopen(); NULL: it was not opened (yet: libuct
 * has not looked for its transports), or could not be. */
void *loader_plugin(void);

#endif
