/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Preloaded by a test of the loader: reports another version of UCX than the
 * one that dcx was built for; with FAKE_UCP_UNKNOWN, none.
 */
#include <stdlib.h>

const char *ucp_get_version_string(void);

const char *ucp_get_version_string(void)
{
    return (getenv("FAKE_UCP_UNKNOWN") == NULL) ? "9.9.9" : NULL;
}
