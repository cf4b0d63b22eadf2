/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The folder of the UCX that dcx was built for, DCX_UCX_LIBDIR. dcx_info and
 * the loader name it where another UCX runs.
 */
#ifndef DCX_COMMON_UCX_HOME_H
#define DCX_COMMON_UCX_HOME_H

#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Return true if that folder has a UCX, and @libucp is not its libucp. */
static inline bool ucx_home_is_missed(const char *libucp)
{
    char home[PATH_MAX], path[PATH_MAX];

    return (realpath(DCX_UCX_LIBDIR "/libucp.so.0", home) != NULL) &&
           (realpath(libucp, path) != NULL) && (strcmp(home, path) != 0);
}

#endif
