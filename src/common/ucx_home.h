/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * DCX_UCX_LIBDIR, the folder of the UCX that dcx was built for. If a UCX of
 * another version runs, and the folder has a libucp.so.0 that is not used, the
 * messages of dcx_info and of the loader name the folder.
 */
#ifndef DCX_COMMON_UCX_HOME_H
#define DCX_COMMON_UCX_HOME_H

#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Returns true if DCX_UCX_LIBDIR has a libucp.so.0 and @libucp, the path of the
 * libucp in use, is another file; false if either path cannot be resolved. */
static inline bool ucx_home_is_shadowed(const char *libucp)
{
    char home[PATH_MAX], path[PATH_MAX];

    return (realpath(DCX_UCX_LIBDIR "/libucp.so.0", home) != NULL) &&
           (realpath(libucp, path) != NULL) && (strcmp(home, path) != 0);
}

#endif
